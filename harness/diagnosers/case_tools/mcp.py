"""The tools as a server of the Model Context Protocol: messages in, messages out, no I/O.

Source: the specification at modelcontextprotocol.io (JSON-RPC 2.0), of which this serves the
lifecycle, `ping` and tools. Versions differ for such a server only in batches, which one of them
has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.case_tools.tools import TOOLS, CaseTools, Told, check_diagnosis

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
WITH_BATCHES = "2025-03-26"
CHECK = "check_diagnosis"
PARSE_ERROR, INVALID_REQUEST, NO_SUCH_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
INSTRUCTIONS = (
    "The recording of one job. Find out whether something makes it slow, and what, with a cause"
    f" from the taxonomy. Before you answer, have {CHECK} check the form of your answer and the"
    " numbers that it cites."
)
Message = dict[str, Any]


class RpcError(Exception):
    """An error reply, by its code in JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpServer:
    """Serves one client on one case.

    Attributes:
        version: The version that was agreed on, None until then.
    """

    def __init__(self, tools: CaseTools) -> None:
        self._tools = tools
        self.version: str | None = None
        self._methods: dict[str, Callable[[Message], Message]] = {
            "initialize": self._initialize,
            "ping": lambda params: {},
            "tools/list": self._list,
            "tools/call": self._call,
        }

    def receive(self, line: str | bytes) -> str | None:
        """Return the reply to one line, None where none is due."""
        try:
            reply = self._answer(_parsed(line))
        except RpcError as error:
            reply = _error(None, error)
        return None if reply is None else json.dumps(reply, ensure_ascii=False)

    def _answer(self, document: Any) -> Message | list[Message] | None:
        if not isinstance(document, list):
            return self._one(document)
        if self.version != WITH_BATCHES or not document:
            raise RpcError(INVALID_REQUEST, "must be one message, found a batch")
        replies = [reply for item in document if (reply := self._one(item)) is not None]
        return replies or None

    def _one(self, message: Any) -> Message | None:
        """Serve one message; notifications, and replies to what was never asked, get none."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, RpcError(INVALID_REQUEST, "must be a JSON-RPC 2.0 message"))
        method, identity = message.get("method"), message.get("id")
        if "id" not in message or (method is None and ("result" in message or "error" in message)):
            return None
        try:
            if isinstance(identity, bool) or not isinstance(identity, str | int):
                identity = None
                raise RpcError(INVALID_REQUEST, "id must be a string or a whole number")
            return {"jsonrpc": "2.0", "id": identity, "result": self._served(method, message)}
        except RpcError as error:
            return _error(identity, error)
        except Exception as error:  # the client is told, and may go on with other requests
            text = f"the server failed: {type(error).__name__}: {error}"
            return _error(identity, RpcError(INTERNAL_ERROR, text))

    def _served(self, method: Any, message: Message) -> Message:
        if not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, "method must be a string")
        if method not in self._methods:
            known = ", ".join(self._methods)
            raise RpcError(NO_SUCH_METHOD, f"method must be one of {known}, found {method}")
        if self.version is None and method not in ("initialize", "ping"):
            raise RpcError(INVALID_REQUEST, f"initialize must come before {method}")
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "params must be an object")
        return self._methods[method](params)

    def _initialize(self, params: Message) -> Message:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a string")
        if self.version is not None:
            raise RpcError(INVALID_REQUEST, "initialize must come once")
        self.version = wanted if wanted in VERSIONS else VERSIONS[0]
        return {
            "protocolVersion": self.version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "evalharness", "version": _version()},
            "instructions": INSTRUCTIONS,
        }

    def _list(self, params: Message) -> Message:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "cursor must be left out, for there is one page")
        about = {name: (tool.about, tool.schema) for name, tool in TOOLS.items()}
        about[CHECK] = (
            "Check an answer before it is given: form, names, and the numbers it cites.",
            Diagnosis.model_json_schema(),
        )
        return {"tools": [_described(name, *parts) for name, parts in about.items()]}

    def _call(self, params: Message) -> Message:
        name, arguments = params.get("name"), params.get("arguments", {})
        if name not in (*TOOLS, CHECK):
            known = ", ".join((*TOOLS, CHECK))
            raise RpcError(INVALID_PARAMS, f"name must be one of {known}, found {name!r}")
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        told = self._told(str(name), arguments)
        return {"content": [{"type": "text", "text": told.text}], "isError": told.failed}

    def _told(self, name: str, arguments: Message) -> Told:
        if name == CHECK:
            return check_diagnosis(self._tools, arguments)
        return self._tools.call(name, arguments)


def _described(name: str, about: str, schema: Message) -> Message:
    unchanging = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": unchanging}


def _parsed(line: str | bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"must be JSON ({error})") from None


def _error(identity: str | int | None, error: RpcError) -> Message:
    body = {"code": error.code, "message": str(error)}
    return {"jsonrpc": "2.0", "id": identity, "error": body}


def _version() -> str:
    try:
        return metadata.version("evalharness")
    except metadata.PackageNotFoundError:  # a copy of the code without its installation
        return "unknown"
