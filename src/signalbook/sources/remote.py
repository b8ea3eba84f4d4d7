"""Documents over HTTP: asked for once, and after that only whether they changed.

Rule 1: an answer is bounded in bytes and in time; a redirect is not followed, for a token would travel with it.
Rule 2: the token goes to the host of the catalog alone, never to one that a document names.
Rule 3: whatever goes wrong is one `SourceError` that names the address and what to do.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signalbook.errors import SignalbookError, UsageError
from signalbook.sources.documents import YAML_SUFFIXES, parse_document

if TYPE_CHECKING:
    import httpx

__all__ = ["Fetched", "Reach", "SourceError", "Web", "is_address", "trusted", "unanswered"]

MEBIBYTE = 1024 * 1024


class SourceError(SignalbookError):
    """A catalog that cannot be had from where it is said to be; `status` is what its server answered, 0 for nothing."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reach:
    """How a catalog is asked, and how far: `resolve` names the hosts whose base messages are fetched.

    `schemas_required` says that a payload schema which cannot be applied is a problem, wherever it lies.
    """

    token: str = field(default="", repr=False)
    ca: Path | None = None
    timeout: float = 30.0
    largest: int = 256 * MEBIBYTE
    resolve: frozenset[str] = frozenset()
    schemas_required: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document, the tag under which its server knows it, and the address that the server says it has."""

    content: dict[str, Any]
    etag: str = ""
    root: str = ""


class Web:
    """The HTTP client of one source, opened with its first request."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._client: httpx.Client | None = None

    def get(self, address: str, known: Fetched | None = None, *, trusted: bool = True) -> Fetched:
        """The document at an address; `known` itself where it has not changed. The token goes to who is `trusted`."""
        import httpx

        headers = {"accept": "application/json"}
        if trusted and self._reach.token:
            headers["authorization"] = f"Bearer {self._reach.token}"
        if known is not None and known.etag:
            headers["if-none-match"] = known.etag
        try:
            with self._opened().stream("GET", address, headers=headers) as answer:
                if answer.status_code == 304 and known is not None:
                    return known
                content = self._body(address, answer)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise SourceError(f"'{address}' is not an address ({error}); try http://127.0.0.1:8080") from None
        except httpx.HTTPError as error:
            raise SourceError(unanswered(address, error)) from None
        if answer.status_code != 200:
            raise _refused(address, answer)
        in_yaml = address.endswith(YAML_SUFFIXES)
        document = parse_document(content, address, yaml_allowed=in_yaml, answered=True)
        return Fetched(document, answer.headers.get("etag", ""), _root(answer))

    def close(self) -> None:
        """Close what was opened."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _opened(self) -> httpx.Client:
        if self._client is None:
            import httpx

            self._client = httpx.Client(timeout=self._reach.timeout, verify=trusted(self._reach.ca))
        return self._client

    def _body(self, address: str, answer: httpx.Response) -> bytes:
        """All bytes of an answer; a server that sends too many, or drips them, is left."""
        until = time.monotonic() + max(self._reach.timeout, 1.0) * 10
        content = bytearray()
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > self._reach.largest:
                raise SourceError(f"{address} sends more than {self._reach.largest // MEBIBYTE} MiB; name fewer groups")
            if time.monotonic() > until:
                raise SourceError(f"{address} takes too long to send its catalog")
        return bytes(content)


def is_address(location: str) -> bool:
    """Whether a location is that of a web server."""
    return location.lower().startswith(("http://", "https://"))


_REMEDIES: Mapping[int, str] = {
    301: "it redirects elsewhere; name that address instead",
    302: "it redirects elsewhere; name that address instead",
    307: "it redirects elsewhere; name that address instead",
    308: "it redirects elsewhere; name that address instead",
    401: "give the token with --token, --token-file or SIGNALBOOK_TOKEN",
    403: "this token may not read it",
    404: "is it the root of an xRegistry server?",
}


def _refused(address: str, answer: httpx.Response) -> SourceError:
    remedy = _REMEDIES.get(answer.status_code, "is it an xRegistry server?")
    return SourceError(f"{address} answered {answer.status_code}; {remedy}", answer.status_code)


def _root(answer: httpx.Response) -> str:
    """The address of a registry by its own words (core/http.md: the link to its root)."""
    return next((str(link["url"]) for link in answer.links.values() if link.get("rel") == "xregistry-root"), "")


def unanswered(address: str, error: Exception) -> str:
    """Why there is no answer, in words, and what to do where it is for a certificate."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return f"the certificate of {address} is not trusted here; name the file of its authority (PEM) with --ca"
    return f"nothing answers at {address} ({error or type(error).__name__})"


def trusted(ca: Path | None) -> ssl.SSLContext | bool:
    """Whom a client trusts: those whose certificates a file holds, or those that are known."""
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--ca names '{ca}', which holds no certificates ({error})") from None
