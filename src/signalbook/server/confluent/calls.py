"""A call of Confluent's API: what it names and asks for, and how it is answered, in JSON, errors too.

Rule 1: parameters and members that are not known are passed over.
Rule 2: an error has a code, whose first three digits are the status: clients go by it. The message is for people, and
says what to do where that helps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from signalbook.budget import Cancelled, TooMuch
from signalbook.errors import RegistryError, StoreError
from signalbook.jsontext import JsonError, decode_json
from signalbook.registry.schema_ids import DEFAULT
from signalbook.server import problems
from signalbook.server.http import Request, Response
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = [
    "MEDIA",
    "MEDIA_TYPES",
    "ConfluentCall",
    "ConfluentError",
    "SchemaText",
    "accepted",
    "answered",
    "context_of",
    "respond",
]

MEDIA = "application/vnd.schemaregistry.v1+json"
MEDIA_TYPES = (MEDIA, "application/vnd.schemaregistry+json", "application/json")


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
    if isinstance(error, TooMuch) and not isinstance(error, Cancelled):
        return answered(422, {"error_code": 42209, "message": f"The schema is too large: {error}"}, media)
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


@dataclass(slots=True)
class ConfluentCall:
    """One request: what its path names, its parameters, and the context that it is made in."""

    request: Request
    parts: tuple[str, ...] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    context: str = DEFAULT

    def text(self, name: str, default: str = "") -> str:
        """A parameter; the first where it is repeated."""
        return next(iter(self.query.get(name, ())), default)

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.text(name).lower() == "true"

    def body(self) -> dict[str, Any]:
        """The JSON object that the request holds."""
        given = self.request.body
        if not given.strip():
            raise ConfluentError(422, "The request has no body; send a JSON object")
        try:
            body = decode_json(given)
        except JsonError as error:
            raise ConfluentError(400, f"The body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise ConfluentError(400, "The body must be a JSON object")
        return body

    def page(self, found: list[Any], most: int = 0) -> list[Any]:
        """The part of a list that was asked for."""
        offset, limit = (_whole(self.text(name), default) for name, default in (("offset", 0), ("limit", -1)))
        start = max(offset, 0)
        size = limit if limit > 0 and (not most or limit <= most) else most
        return found[start : start + size] if size else found[start:]


def _whole(text: str, default: int) -> int:
    try:
        return int(text) if text else default
    except ValueError:
        raise ConfluentError(404, "HTTP 404 Not Found") from None


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema by itself."""

    text: str


def context_of(name: str) -> str:
    """The context that a part of a path means: `name`, `.name` or `:.name:`."""
    if name.startswith(":.") and name.endswith(":"):
        name = name[1:-1]
    if ":" in name:
        raise ConfluentError(400, f"'{name}' is not a valid context: it has a colon")
    return name if name.startswith(".") else f".{name}"


def accepted(accept: str) -> str:
    """The type of the answer that a client accepts."""
    wanted = [one.partition(";")[0].strip().lower() for one in accept.split(",") if one.strip()]
    if not wanted or MEDIA in wanted or "*/*" in wanted or "application/*" in wanted:
        return MEDIA
    for one in wanted:
        if one in MEDIA_TYPES:
            return one
    raise ConfluentError(406, "HTTP 406 Not Acceptable")
