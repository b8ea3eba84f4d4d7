"""A catalog at the other end of a wire: requests out, JSON back, both bounded.

Rule 1: an answer is bounded in bytes and in time, and a redirect is not followed: a token would travel with it.
Rule 2: whatever goes wrong there is one `PeerError` that names the catalog and what to do; `name` is the error that the
catalog itself stated, where it did.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from signalbook.errors import SignalbookError, UsageError
from signalbook.sources.remote import trusted, unanswered

if TYPE_CHECKING:
    import httpx

__all__ = ["Answer", "HttpPeer", "Peer", "PeerError", "refusal"]

MEBIBYTE = 1 << 20
_LARGEST = 64 * MEBIBYTE
_SECONDS = 30.0
_LONGEST_DETAIL = 500


class PeerError(SignalbookError):
    """A catalog that does not answer, or not as it should; `status` is 0 where it did not at all."""

    def __init__(self, words: str, status: int = 0, name: str = "") -> None:
        super().__init__(words)
        self.status = status
        self.name = name


@dataclass(frozen=True, slots=True)
class Answer:
    """What a catalog answered: JSON values, and the headers by lower-case name."""

    value: Any
    headers: Mapping[str, str]


class Peer(Protocol):
    """One catalog; `address` is how people know it, and empty where it has none."""

    address: str

    def request(
        self, method: str, path: str, body: Any = None, wait: float = 0, media: str = "application/json"
    ) -> Answer:
        """The answer to one request; `path` may carry a query, `wait` is how long the answer may be held back."""
        ...


class HttpPeer:
    """A catalog behind an address."""

    def __init__(self, address: str, token: str = "", ca: Path | None = None) -> None:
        import httpx

        self.address = address.rstrip("/")
        headers = {"accept": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.Client(headers=headers, timeout=_SECONDS, follow_redirects=False, verify=trusted(ca))

    def request(
        self, method: str, path: str, body: Any = None, wait: float = 0, media: str = "application/json"
    ) -> Answer:
        """The answer to one request, whose body is JSON of a media type."""
        import httpx

        content = None if body is None else orjson.dumps(body)
        headers = {"content-type": media} if content is not None else {}
        timeout = httpx.Timeout(_SECONDS + wait)
        try:
            with self._client.stream(
                method, self.address + path, content=content, headers=headers, timeout=timeout
            ) as answer:
                text = self._text(answer, wait)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UsageError(f"'{self.address}' is not an address ({error}); try http://127.0.0.1:8080") from None
        except httpx.HTTPError as error:
            raise PeerError(unanswered(self.address, error)) from None
        if answer.status_code >= 300:
            raise refusal(self.address, path, answer.status_code, text)
        return Answer(_json(self.address, text), {name.lower(): value for name, value in answer.headers.items()})

    def close(self) -> None:
        """Close what was opened."""
        self._client.close()

    def _text(self, answer: httpx.Response, wait: float) -> bytes:
        until = time.monotonic() + _SECONDS * 10 + wait
        text = bytearray()
        for piece in answer.iter_bytes():
            text += piece
            if len(text) > _LARGEST:
                raise PeerError(f"{self.address} sends more than {_LARGEST // MEBIBYTE} MiB in one answer")
            if time.monotonic() > until:
                raise PeerError(f"{self.address} takes too long to answer")
        return bytes(text)


def _json(address: str, text: bytes) -> Any:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        pass
    try:  # a text or a number that cannot be kept is not a reason to leave the rest
        return json.loads(text, parse_float=_number, parse_constant=_Unkept)
    except (ValueError, RecursionError):
        raise PeerError(f"{address} answered with something other than JSON; is it a catalog?", 200) from None


@dataclass(frozen=True, slots=True)
class _Unkept:
    """A number that is kept by nobody; what holds it cannot be sent on."""

    text: str


def _number(text: str) -> float | _Unkept:
    return float(text) if math.isfinite(float(text)) else _Unkept(text)


_REMEDIES: Mapping[int, str] = {
    401: "give its token",
    403: "its token may not do that",
    404: "is it the root of a catalog?",
}


def refusal(address: str, path: str, status: int, text: bytes) -> PeerError:
    """The error that an answer states."""
    try:
        stated = orjson.loads(text)
        name, title = str(stated["type"]).rpartition("#")[2], str(stated.get("title", ""))
        detail = str(stated.get("detail") or "")[:_LONGEST_DETAIL]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        name = title = detail = ""
    remedy = "it redirects, which is not followed" if 300 <= status < 400 else _REMEDIES.get(status, "")
    if status == 403 and detail:  # it may be the token, or the whole server that is read-only
        remedy = detail
    title = title.rstrip(".")
    words = f"{address} answered {status} at {path.partition('?')[0]}"
    return PeerError(
        "; ".join(part for part in (f"{words}: {title}" if title else words, remedy) if part), status, name
    )
