"""Errors of Confluent's API: a code, whose first three digits are the status, and a message.

Rule: a client finds out what happened by the code; the message is for people, and says what to do where that helps.
"""

from __future__ import annotations

from typing import Any

import orjson

from signalbook.errors import RegistryError, StoreError
from signalbook.server import problems
from signalbook.server.http import Response
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = ["MEDIA", "ConfluentError", "answered", "respond"]

MEDIA = "application/vnd.schemaregistry.v1+json"


class ConfluentError(Exception):
    """What a request is answered with instead of what it asked for."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The status of the answer."""
        return int(str(self.code)[:3])


def answered(status: int, value: Any, media: str = MEDIA) -> Response:
    """An answer in JSON."""
    return Response(status, [("content-type", media)], orjson.dumps(value))


# What an error of the registry is called here, where its status does not say enough.
_CODES = {"readonly": 42205, "not_found": 40401, "format_violation": 42201, "server_busy": 50002, "server_error": 50001}


def respond(error: BaseException, path: str, media: str = MEDIA) -> Response:
    """The answer for whatever went wrong."""
    if isinstance(error, ConfluentError):
        return answered(error.status, {"error_code": error.code, "message": error.message}, media)
    if isinstance(error, RegistryError):
        status = ERROR_TYPES[error.name].status
        words = " ".join(part for part in (title(error), error.detail) if part)
        code = _CODES.get(error.name) or {503: 50002, 500: 50001}.get(status, status)
        made = answered(int(str(code)[:3]), {"error_code": code, "message": words}, media)
        basic = [("www-authenticate", 'Basic realm="signalbook"')] if status == 401 else []
        return Response(made.status, [*made.headers, *basic], made.body)
    told = problems.respond(error, path)  # which writes it to the log
    code = 50002 if isinstance(error, StoreError) else 50001
    shown = orjson.loads(told.body)
    words = f"The server failed; its log has more under {shown.get('instance', 'the time of this request')}"
    return answered(500, {"error_code": code, "message": words}, media)
