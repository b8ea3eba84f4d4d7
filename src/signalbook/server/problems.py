"""From an exception to the response a client sees: the only place that decides an error's status.

Rule 1: the form is the specification's (core/http.md "Error Processing", ERR-1 to ERR-5): `type`, `title`, `subject`,
`args`, as `application/json`.
Rule 2: what is not a `RegistryError` says nothing about itself; its traceback goes to the log under the `instance`
that the client is shown.
Rule 3: a failure of the store is foreseen and meets many requests at once: it is one line in the log, and all of them
show the same `instance`.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import orjson

from signalbook.budget import Cancelled, TooMuch
from signalbook.errors import RegistryError, StoreError, one_line
from signalbook.server.http import JSON, Response
from signalbook.spec.error_types import ERROR_TYPES, title, type_uri

__all__ = ["not_supported", "problem", "respond"]

_log = logging.getLogger("signalbook.server")

# Headers that an error brings with it, by its status or name.
_HEADERS: Mapping[int | str, tuple[tuple[str, str], ...]] = {
    401: (("www-authenticate", 'Bearer realm="signalbook"'),),
    503: (("retry-after", "1"),),
    "request_timeout": (("connection", "close"),),
    "unsupported_content_encoding": (("accept-encoding", "identity"),),
    "request_too_large": (("connection", "close"),),
}


class _NotSupportedError(RegistryError):
    """An action a path does not have, with those it has: RFC 9110 section 15.5.6 wants them in `Allow`."""

    def __init__(self, subject: str, action: str, allow: str, detail: str) -> None:
        super().__init__("action_not_supported", subject, detail=detail, action=action)
        self.allow = allow


def not_supported(subject: str, action: str, allow: str, detail: str = "") -> RegistryError:
    """`action_not_supported` (405) whose response will list `allow`, such as `GET, OPTIONS`."""
    return _NotSupportedError(subject, action, allow, detail)


def problem(error: RegistryError, instance: str = "") -> dict[str, Any]:
    """The body of an error response."""
    body: dict[str, Any] = {"type": type_uri(error.name), "title": title(error)}
    if error.detail:
        body["detail"] = error.detail
    if error.subject:
        body["subject"] = error.subject
    if error.args_:
        body["args"] = dict(sorted(error.args_.items()))
    if instance:
        body["instance"] = instance
    return body


def _new_instance() -> str:
    return f"urn:signalbook:failure:{secrets.token_hex(8)}"


class _StoreFailures:
    """The failures of the store that were logged lately, by their words."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, float]] = {}

    def instance(self, words: str) -> str:
        """The name of a failure; it is logged when it is new, and again when it lasts."""
        now = self._clock()
        with self._lock:
            known = self._known.get(words)
            if known is not None and now - known[1] < _LOGGED_AGAIN:
                return known[0]
            if len(self._known) >= _MOST_FAILURES:
                self._known.clear()
            instance = known[0] if known is not None else _new_instance()
            self._known[words] = (instance, now)
            _log.error("%s: the store failed: %s", instance, words)
        return instance


_LOGGED_AGAIN = 60.0
_MOST_FAILURES = 64
_store_failures = _StoreFailures()


def respond(error: BaseException, path: str) -> Response:
    """The response for whatever went wrong while answering a request for `path`."""
    instance = ""
    if isinstance(error, TooMuch):
        error = RegistryError("bad_request", path, error_detail=_too_much(error))
    if not isinstance(error, RegistryError):
        if isinstance(error, StoreError):
            instance = _store_failures.instance(one_line(str(error)))
            error = RegistryError("server_busy", path)
        else:
            instance = _new_instance()
            _log.error("%s while answering %s", instance, ascii(path), exc_info=error)
            error = RegistryError("server_error", path)
    status = ERROR_TYPES[error.name].status
    headers = [JSON, *_HEADERS.get(status, ()), *_HEADERS.get(error.name, ())]
    if isinstance(error, _NotSupportedError):
        headers.append(("allow", error.allow))
    return Response(status, headers, _encoded(problem(error, instance)))


def _too_much(error: TooMuch) -> str:
    if isinstance(error, Cancelled):
        return "the client left before the answer was there"
    words = "ask for less at once: fewer messages or entities, a smaller page, a narrower filter"
    return f"{str(error)[:1].lower()}{str(error)[1:]}; {words}"


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # text from outside that has no UTF-8 form, such as half a surrogate pair
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
