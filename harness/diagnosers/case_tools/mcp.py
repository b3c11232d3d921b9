"""The tools as a server of the Model Context Protocol: messages in, messages out, no I/O.

Source: the specification at modelcontextprotocol.io, of which this serves the lifecycle, `ping`
and tools. Up to 2025-11-25 a client greets with `initialize`, and versions differ for such a
server only in batches, which one of them has. Since 2026-07-28 every request states its version
itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.case_tools.rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_SUCH_METHOD,
    Message,
    RpcError,
    call_of,
    parsed,
    request_id,
    wants_reply,
)
from harness.diagnosers.case_tools.tools import TOOLS, CaseTools, check_diagnosis

GREETED = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATED = ("2026-07-28",)
WITH_BATCHES = "2025-03-26"
UNSUPPORTED_VERSION = -32022
META = "io.modelcontextprotocol/"
LASTING = {"ttlMs": 3_600_000, "cacheScope": "public"}
CHECK = "check_diagnosis"
CAPABILITIES: Message = {"tools": {}}
INSTRUCTIONS = (
    "The recording of one job. Find out whether something makes it slow, and what, with a cause"
    f" from the taxonomy. Before you answer, have {CHECK} check the form of your answer and the"
    " numbers that it cites."
)


class McpServer:
    """Serves one client on one case.

    Attributes:
        version: The version that `initialize` agreed on, None until then.
    """

    def __init__(self, tools: CaseTools) -> None:
        self._tools = tools
        self.version: str | None = None
        tools_only: dict[str, Callable[[Message], Message]] = {
            "tools/list": self._list,
            "tools/call": self._call,
        }
        self._greeted = {"initialize": self._initialize, "ping": _ping, **tools_only}
        self._stated = {"server/discover": _discover, **tools_only}

    def receive(self, line: str | bytes) -> str | None:
        """Return the reply to one line, None where none is due."""
        try:
            reply = self._answer(parsed(line))
        except RpcError as error:
            reply = error.reply(None)
        return None if reply is None else json.dumps(reply, ensure_ascii=False)

    def _answer(self, document: Any) -> Message | list[Message] | None:
        if not isinstance(document, list):
            return self._one(document)
        if self.version != WITH_BATCHES or not document:
            raise RpcError(INVALID_REQUEST, "must be one message, found a batch")
        replies = [reply for item in document if (reply := self._one(item)) is not None]
        return replies or None

    def _one(self, message: Any) -> Message | None:
        identity = None
        try:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise RpcError(INVALID_REQUEST, "must be a JSON-RPC 2.0 message")
            if not wants_reply(message):
                return None
            identity = request_id(message)
            return {"jsonrpc": "2.0", "id": identity, "result": self._served(*call_of(message))}
        except RpcError as error:
            return error.reply(identity)
        except Exception as error:  # the client is told, and may go on with other requests
            text = f"the server failed: {type(error).__name__}: {error}"
            return RpcError(INTERNAL_ERROR, text).reply(identity)

    def _served(self, method: str, params: Message) -> Message:
        stated = _stated_version(params)
        if stated is not None:
            return self._served_alone(method, params)
        serve = _method(self._greeted, method)
        if self.version is None and method not in ("initialize", "ping"):
            raise RpcError(INVALID_REQUEST, f"initialize must come before {method}")
        return serve(params)

    def _served_alone(self, method: str, params: Message) -> Message:
        """Serve a request that states its version."""
        result = _method(self._stated, method)(params)
        lasting = {} if method == "tools/call" else LASTING
        about = {META + "serverInfo": _server_info()}
        return {"resultType": "complete", **lasting, **result, "_meta": about}

    def _initialize(self, params: Message) -> Message:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a string")
        if self.version is not None:
            raise RpcError(INVALID_REQUEST, "initialize must come once")
        self.version = wanted if wanted in GREETED else GREETED[0]
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES,
            "serverInfo": _server_info(),
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
        if name == CHECK:
            told = check_diagnosis(self._tools, arguments)
        else:
            told = self._tools.call(str(name), arguments)
        return {"content": [{"type": "text", "text": told.text}], "isError": told.failed}


def _ping(params: Message) -> Message:
    return {}


def _discover(params: Message) -> Message:
    return {
        "supportedVersions": [*STATED, *GREETED],
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }


def _stated_version(params: Message) -> str | None:
    """Return the version that a request states, None where it states none; raises RpcError."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or META + "protocolVersion" not in meta:
        return None
    version = meta[META + "protocolVersion"]
    if not isinstance(version, str) or not isinstance(meta.get(META + "clientCapabilities"), dict):
        must = f"_meta must hold {META}protocolVersion (a string) and {META}clientCapabilities"
        raise RpcError(INVALID_PARAMS, must)
    if version not in STATED:
        data = {"supported": [*STATED], "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return version


def _method(
    table: dict[str, Callable[[Message], Message]], method: str
) -> Callable[[Message], Message]:
    if method not in table:
        known = ", ".join(table)
        raise RpcError(NO_SUCH_METHOD, f"method must be one of {known}, found {method}")
    return table[method]


def _described(name: str, about: str, schema: Message) -> Message:
    unchanging = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": unchanging}


def _server_info() -> Message:
    try:
        version = metadata.version("evalharness")
    except metadata.PackageNotFoundError:  # a copy of the code without its installation
        version = "unknown"
    return {"name": "evalharness", "version": version}
