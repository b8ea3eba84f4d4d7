"""Who may: bearer tokens for reading and for writing, `read_only`, and writes that a web page sends unasked.

Rule 1: a write token may also read. Without a write token everybody may write where everybody may read; where reading
needs a token nobody may, unless `--open` says that readers are writers too.
Rule 2: every token is compared in constant time, and all of them each time.
Rule 3: where clients of Confluent's API ask, a token may come as a password.
Rule 4: a browser sends a page's requests to any address it likes, this machine's included. So a write that carries an
`Origin` and no token is refused unless it comes from a page of this server itself; and where only this machine may
read, so is a POST that asks, whose work a page could have done without reading the answer.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from dataclasses import replace
from urllib.parse import urlsplit

from signalbook.errors import RegistryError
from signalbook.server.http import Request
from signalbook.settings import Settings, is_loopback

__all__ = ["READS", "Access", "access_by", "tokens"]

READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""

_READ_ONLY = "This server is read-only; write to the registry that it shows, or start it without --read-only."
_NO_WRITERS = (
    "This server has a token for reading and none for writing; start it with --write-token to let it be written."
)
_SEPARATORS = re.compile(r"[\s,]+")


def tokens(text: str) -> tuple[str, ...]:
    """The tokens in a setting: one, or several between commas, spaces or line ends."""
    return tuple(token for token in _SEPARATORS.split(text) if token)


class Access:
    """The decision about one request, before anything of it is read but its head."""

    def __init__(
        self,
        *,
        read_tokens: tuple[str, ...] = (),
        write_tokens: tuple[str, ...] = (),
        read_only: bool = False,
        readers_write: bool = False,
        loopback: bool = True,
        basic: tuple[str, ...] = (),
        private: bool = False,
    ) -> None:
        self._readers = tuple(token.encode() for token in read_tokens)
        self._writers = tuple(token.encode() for token in write_tokens)
        self._read_only = read_only
        self._readers_write = readers_write
        self._loopback = loopback
        self._basic = basic
        self._private = private
        self.reading_is_open = not read_tokens

    def check(self, request: Request, *, asks: bool = False) -> None:
        """Raise `unauthorized` or `forbidden` unless this request may be answered; one that only `asks` is a read."""
        method = request.method
        if method in READS or asks:
            if not self.reading_is_open and method != "OPTIONS" and not self._is_reader(request):
                raise _unauthorized(request)
            if asks and self._private and not self._is_own_page(request):
                detail = "A web page of another origin may not ask a server that only this machine reaches."
                raise RegistryError("forbidden", request.path, detail=detail, action=method)
            return
        if self._read_only:
            raise RegistryError("forbidden", request.path, detail=_READ_ONLY, action=method)
        if self._writers:
            if not self._holds(request, self._writers):
                if self._readers and self._holds(request, self._readers):
                    detail = "The token is one for reading; ask the operator for one that may write."
                    raise RegistryError("forbidden", request.path, detail=detail, action=method)
                raise _unauthorized(request)
        elif not self.reading_is_open:
            if not self._is_reader(request):
                raise _unauthorized(request)
            if not self._readers_write:
                raise RegistryError("forbidden", request.path, detail=_NO_WRITERS, action=method)
        elif not self._is_own_page(request):
            detail = "A web page of another origin may not write without a token."
            raise RegistryError("forbidden", request.path, detail=detail, action=method)

    def may_read(self, request: Request) -> bool:
        """Whether this request could read."""
        return self.reading_is_open or self._is_reader(request)

    def is_known(self, request: Request) -> bool:
        """Whether whoever sent this request has a token, or may write without one."""
        return self.may_write(request) or (bool(self._readers) and self._is_reader(request))

    def may_write(self, request: Request) -> bool:
        """Whether whoever sent this request could write."""
        try:
            self.check(replace(request, method="PUT"))
        except RegistryError:
            return False
        return True

    def _is_reader(self, request: Request) -> bool:
        return self._holds(request, self._readers + self._writers)

    def _holds(self, request: Request, accepted: tuple[bytes, ...]) -> bool:
        scheme, _, given = (request.headers.get("authorization") or "").partition(" ")
        if scheme.lower() == "basic" and request.path.startswith(self._basic):
            token = _password(given)
        elif scheme.lower() == "bearer":
            token = given.strip().encode("utf-8", "replace")
        else:
            return False
        found = False
        for one in accepted:
            found |= hmac.compare_digest(one, token)
        return found

    def _is_own_page(self, request: Request) -> bool:
        origin = request.headers.get("origin")
        if origin is None:
            return True
        try:
            host = urlsplit(origin).hostname or ""
        except ValueError:
            return False
        if self._loopback:  # a foreign name that resolves to this machine is not this machine's page
            return is_loopback(host) and _site(origin) == _site(request.base)
        return _site(origin) == _site(request.base)


def access_by(settings: Settings) -> Access:
    """The decisions that the settings describe."""
    return Access(
        read_tokens=tokens(settings.read_token),
        write_tokens=tokens(settings.write_token),
        read_only=settings.read_only,
        readers_write=settings.open,
        loopback=is_loopback(settings.host),
        basic=_BASIC_AT_ROOT if settings.confluent_root else _BASIC,
        private=settings.is_private,
    )


# Where a token may also come as the password of a user: what clients of Confluent's API send. Nowhere else, because a
# browser sends passwords along with requests that nobody made.
_BASIC = ("/confluent/",)
_BASIC_AT_ROOT = (
    *_BASIC, "/subjects", "/schemas", "/compatibility/", "/config", "/mode", "/contexts", "/associations", "/v1/",
)  # fmt: skip


def _password(given: str) -> bytes:
    """The password of `Basic` credentials; empty where they are not any."""
    try:
        return base64.b64decode(given.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _unauthorized(request: Request) -> RegistryError:
    given = request.headers.get("authorization")
    detail = "The token is not one of this server's." if given else "A token is needed: Authorization: Bearer TOKEN."
    return RegistryError("unauthorized", request.path, detail=detail)


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
