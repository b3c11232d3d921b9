"""JSON-RPC 2.0: what a message is, and what an error looks like."""

from __future__ import annotations

import json
from typing import Any

PARSE_ERROR, INVALID_REQUEST, NO_SUCH_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
Message = dict[str, Any]


class RpcError(Exception):
    """An error reply: its code, its text, and what else the client may want to know."""

    def __init__(self, code: int, message: str, data: Message | None = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data

    def reply(self, identity: str | int | None) -> Message:
        """Return the message to the request of this id, None where that cannot be read."""
        body: Message = {"code": self.code, "message": str(self)}
        if self.data is not None:
            body["data"] = self.data
        return {"jsonrpc": "2.0", "id": identity, "error": body}


def parsed(line: str | bytes) -> Any:
    """Read one line; raises RpcError."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"must be JSON ({error})") from None


def wants_reply(message: Message) -> bool:
    """Tell requests from notifications, and from replies to what was never asked."""
    is_reply = "method" not in message and ("result" in message or "error" in message)
    return "id" in message and not is_reply


def request_id(message: Message) -> str | int:
    """Return a request's id; raises RpcError unless it is a string or a whole number."""
    identity = message["id"]
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number")
    return identity


def call_of(message: Message) -> tuple[str, Message]:
    """Return a request's method and parameters; raises RpcError."""
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object")
    return method, params
