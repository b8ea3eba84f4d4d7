"""The client of a registry: one that is served somewhere, over HTTP, or one in a store that this process opens.

Rule 1: a caller does not know which of the two it has. Both take the paths, flags, headers and bodies of the HTTP
binding and give the same answers and errors. They differ in their `Transport`, which has one task: a `Call` in, a
`RegistryReply` out. `HttpTransport` sends it with httpx; `app.StoreTransport` hands it to what the server answers with.
Rule 2: a reply is bounded in bytes, before and after decompression, and in time, by `exchange`; its depth, how many
pages a collection has and what they hold together are bounded here.
Rule 3: a redirect is not followed, and pages are asked for at the address that was named: the token goes nowhere else.

    SignalbookError
    ├── RemoteError          a registry that does not answer, or not as it should
    │   ├── Unanswered       nothing answers at its address
    │   └── Refusal          an error that the registry states; also a RegistryError
    └── RegistryError
        └── Refusal
"""

from __future__ import annotations

import json
import math
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urljoin, urlsplit

import msgspec
import orjson

from signalbook.errors import RegistryError, SignalbookError, UsageError
from signalbook.jsontext import MAX_DEPTH, check_json, is_deeper
from signalbook.spec import versions
from signalbook.spec.error_types import ERROR_TYPES

if TYPE_CHECKING:
    from signalbook.exchange import Exchange
    from signalbook.model.model import ResourceType

__all__ = [
    "Call",
    "Client",
    "HttpTransport",
    "Refusal",
    "RegistryReply",
    "RemoteError",
    "ReplyBounds",
    "Shown",
    "Transport",
    "Unanswered",
    "UnkeptNumber",
    "connect",
    "document_type",
    "is_address",
    "refusal",
]

MEBIBYTE = 1 << 20
MOST_PAGES = 100_000
"""Pages that one collection is read by."""

LARGEST_SHOWN = 1024 * MEBIBYTE
"""Bytes of all pages of a collection that is shown whole."""

DEEPEST_REPLY = 2 * MAX_DEPTH
"""Levels of nesting in an answer: twice what can be stored, so that an entity which is too deep is refused alone."""

_LONGEST_DETAIL = 500
# RFC 8288: a reference in angle brackets and then its parameters, of which `rel` may be any.
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_COUNT = re.compile(r';\s*count\s*=\s*"?([0-9]{1,15})"?', re.ASCII)
# What a server says of a part of a load (docs/reference/http.md).
_WRITTEN = re.compile(r"groups=(\d{1,9}), resources=(\d{1,9})", re.ASCII)


class RemoteError(SignalbookError):
    """A registry that does not answer, or not as it should.

    `status` is what it answered, 0 where it did not; `name` is the error that it stated, if any.
    """

    def __init__(self, *words: str, status: int = 0, name: str = "") -> None:
        super().__init__(*words)
        self.status = status
        self.name = name


class Unanswered(RemoteError):
    """Nothing answers at an address."""


class Refusal(RegistryError, RemoteError):
    """An error that a registry states in its answer (core/http.md "Error Processing"); `words` say which registry."""

    def __init__(self, error: RegistryError, status: int, words: str) -> None:
        super().__init__(error.name, error.subject, detail=error.detail)
        self.args_.update(error.args_)
        self.status = status
        self.words = words

    def __str__(self) -> str:
        return self.words


# Calls, replies, transports ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """One request: `path` may have a query; `wait` is how many seconds the answer may be held back.

    An `anonymous` call is sent without the token.
    """

    method: str
    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0
    anonymous: bool = False


@dataclass(frozen=True, slots=True)
class RegistryReply:
    """One answer of the registry with this name; headers by lower-case name, repeated ones joined by commas."""

    name: str
    status: int
    headers: Mapping[str, str]
    content: bytes = b""

    @property
    def value(self) -> Any:
        """The content as JSON values; None where there is none.

        A text or a number that cannot be kept is not a reason to leave the rest: such a number is an `UnkeptNumber`.
        """
        if not self.content:
            return None
        try:
            value = orjson.loads(self.content)
        except orjson.JSONDecodeError:
            try:
                value = json.loads(self.content, parse_float=_read_number, parse_constant=UnkeptNumber)
            except ValueError:
                raise self.not_json() from None
            except RecursionError:
                raise self._too_deep() from None
        self._check_depth(value)
        return value

    def kept_value(self) -> Any:
        """The content as JSON values; an error where there is none, or a number or a text cannot be kept."""
        try:
            value = orjson.loads(self.content)
        except orjson.JSONDecodeError as error:
            raise (self._too_deep() if _is_about_depth(error) else self.not_json()) from None
        self._check_depth(value)
        return value

    def text(self) -> str:
        """The content as JSON text."""
        try:
            msgspec.json.decode(self.content, type=msgspec.Raw)
            return self.content.decode()
        except RecursionError:
            raise self._too_deep() from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self.not_json() from None

    def _check_depth(self, value: Any) -> None:
        opened = self.content.count(b"{") + self.content.count(b"[")
        if opened > DEEPEST_REPLY and is_deeper(value, DEEPEST_REPLY):
            raise self._too_deep()

    def _too_deep(self) -> RemoteError:
        return RemoteError(f"{self.name} answered with JSON that is nested deeper than {DEEPEST_REPLY} levels")

    def not_json(self) -> RemoteError:
        """The error that the content is something other than JSON."""
        kind = self.headers.get("content-type", "no content type")
        words = f"{self.name} answered with {kind[:100]}, not with JSON; is it an xRegistry server?"
        return RemoteError(words, status=self.status)

    def find_link(self, relation: str) -> tuple[str, str]:
        """The reference and the parameters of the link with a relation (RFC 8288); two empty texts without one."""
        for reference, parameters in _LINK.findall(self.headers.get("link", "")):
            if re.search(rf'(?:^|;)\s*rel\s*=\s*"?(?:[^";]*\s)?{relation}(?=[\s";,]|$)', parameters, re.I):
                return reference, parameters
        return "", ""


class UnkeptNumber:
    """A number that no double keeps; what holds it cannot be sent on, since orjson refuses it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def _is_about_depth(error: orjson.JSONDecodeError) -> bool:
    return "depth" in str(error)


def _read_number(text: str) -> float | UnkeptNumber:
    return float(text) if math.isfinite(float(text)) else UnkeptNumber(text)


class Transport(Protocol):
    """What brings a call to a registry and its reply back."""

    @property
    def address(self) -> str:
        """Where the registry is served; empty for a store."""
        ...

    @property
    def name(self) -> str:
        """What error messages call the registry."""
        ...

    def answer(self, call: Call) -> RegistryReply:
        """The reply to a call, whatever its status; `RemoteError` where none comes."""
        ...

    def close(self) -> None:
        """Give back what was opened."""
        ...


@dataclass(frozen=True, slots=True)
class ReplyBounds:
    """How many seconds a registry may be silent, and how many bytes it may send in one answer.

    A whole answer may take ten times as long as a silence.
    """

    timeout: float = 30.0
    largest: int = 64 * MEBIBYTE


class HttpTransport:
    """Calls over HTTP; the connection is opened with the first.

    Without an `address` the path of a call is a whole address.
    """

    def __init__(
        self, address: str = "", token: str = "", ca: Path | None = None, bounds: ReplyBounds | None = None
    ) -> None:
        self.address = self.name = address.rstrip("/")
        self._token = token
        self._ca = ca
        self._bounds = bounds or ReplyBounds()
        self._exchange: Exchange | None = None

    def answer(self, call: Call) -> RegistryReply:
        """The reply to a call, whatever its status."""
        import httpx

        from signalbook.exchange import Excess

        url = self.address + call.path
        headers = {"accept": "application/json", **call.headers}
        if self._token and not call.anonymous:
            headers["authorization"] = f"Bearer {self._token}"
        silence, largest = self._bounds.timeout + call.wait, self._bounds.largest
        seconds = max(self._bounds.timeout, 1.0) * 10 + call.wait
        try:
            status, given, content = self._opened().ask(
                call.method, url, call.content, headers, silence=silence, seconds=seconds, largest=largest
            )
        except Excess as error:
            self.close()
            raise RemoteError(f"{self.name or url} {error}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UsageError(f"'{url}' is not an address ({error}); try http://127.0.0.1:8080") from None
        except httpx.HTTPError as error:
            raise _unanswered(self.name or url, error) from None
        named = {name.lower(): text for name, text in given.items()}
        return RegistryReply(self.name or url, status, named, content)

    def close(self) -> None:
        """Close the connections."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    def _opened(self) -> Exchange:
        if self._exchange is None:
            from signalbook.exchange import Exchange

            self._exchange = Exchange(lambda: _trusted(self._ca))
        return self._exchange


def _trusted(ca: Path | None) -> ssl.SSLContext:
    """The certificates that a client trusts: those in a file, or the well-known ones."""
    if ca is None:
        import httpx

        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--ca names '{ca}', which holds no certificates ({error})") from None


def _unanswered(name: str, error: Exception) -> RemoteError:
    """Why there is no answer, in words, and what to do where a certificate is the reason."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        remedy = "name the file of its authority (PEM) with --ca"
        return RemoteError(f"the certificate of {name} is not trusted here; {remedy}")
    import httpx

    why = str(error) or type(error).__name__
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)):
        return Unanswered(f"nothing answers at {name} ({why})")
    if isinstance(error, httpx.TimeoutException):
        return RemoteError(f"{name} did not answer in time ({why})")
    if isinstance(error, httpx.ProtocolError) and not re.search("disconnected|closed", why):
        return RemoteError(f"{name} does not speak HTTP as it should ({why[:_LONGEST_DETAIL]})")
    return RemoteError(f"{name} broke off its answer ({why})")


def is_address(location: str) -> bool:
    """Whether a location is that of a web server."""
    return location.lower().startswith(("http://", "https://"))


def connect(address: str, token: str = "", ca: Path | None = None, bounds: ReplyBounds | None = None) -> Client:
    """The client of a registry that is served at an address."""
    if not _is_valid_address(address):
        raise UsageError(f"'{address}' is not a server address; try http://127.0.0.1:8080")
    return Client(HttpTransport(address, token, ca, bounds))


def _is_valid_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond 65535, half an IPv6 address
        return False


# The client ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """JSON text; of a part of a collection also where the next part is, and how many entries there are in all."""

    text: str
    following: str = ""
    count: int | None = None


class Client:
    """One registry; a path begins with `/` and may have flags after `?`.

    Metadata are asked for and sent (`$details`), but for the methods that say they are about a document.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def address(self) -> str:
        """Where the registry is served; empty for a store."""
        return self._transport.address

    @property
    def name(self) -> str:
        """What error messages call the registry."""
        return self._transport.name

    def close(self) -> None:
        """Give back what was opened."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, call: Call) -> RegistryReply:
        """The reply to a call; an error where the registry refuses it or redirects."""
        reply = self._transport.answer(call)
        if reply.status >= 300 and reply.status != 304:
            raise refusal(reply, call.path)
        return reply

    def request(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, wait: float = 0
    ) -> RegistryReply:
        """The reply to a request whose body, where there is one, is JSON."""
        content = None if body is None else _to_json(body, path)
        given = {**({} if content is None else {"content-type": "application/json"}), **(headers or {})}
        return self.send(Call(method, path, content, given, wait))

    # ---- reading

    def get(self, path: str) -> Any:
        """What is at a path, as JSON values."""
        return self.request("GET", _with_details(path)).kept_value()

    def show(self, path: str) -> Shown:
        """The same as JSON text, in which every number and document stands as it was written.

        A collection is shown whole, unless the flags say how much of it.
        """
        limited = any(flag.startswith("limit=") for flag in path.partition("?")[2].split("&"))
        texts: list[str] = []
        size = 0
        shown = Shown("")
        for reply, following in self.pages(_with_details(path), same_path=True):
            texts.append(reply.text())
            size += len(reply.content)
            if size > LARGEST_SHOWN:
                held = f"{path.partition('?')[0]} at {self.name} holds more than {LARGEST_SHOWN // MEBIBYTE} MiB"
                raise RemoteError(f"{held}; ask for a part of it with ?filter= or ?limit=")
            count = _COUNT.search(reply.find_link("next")[1])
            shown = Shown(
                _joined(texts) if limited or not following else "", following, int(count[1]) if count else None
            )
            if limited:
                break
        return shown

    def pages(self, path: str, *, same_path: bool = False) -> Iterator[tuple[RegistryReply, str]]:
        """The pages of a collection, each with the path of the next one (core/http.md "Pagination").

        With `same_path` only the query of a link counts, wherever it leads: a registry behind a proxy may not know its
        own address. Without it a link that leads elsewhere is an error.
        """
        asked: set[str] = set()
        while path:
            if path in asked:
                raise RemoteError(f"{self.name} links the pages of {path.partition('?')[0]} in a circle")
            if len(asked) >= MOST_PAGES:
                raise RemoteError(f"{self.name} has more than {MOST_PAGES} pages of {path.partition('?')[0]}")
            asked.add(path)
            reply = self.request("GET", path)
            following = self._following(path, reply, same_path=same_path)
            yield reply, following
            path = following

    def _following(self, path: str, reply: RegistryReply, *, same_path: bool) -> str:
        link, _ = reply.find_link("next")
        if not link:
            return ""
        if same_path:
            return f"{path.partition('?')[0]}?{urlsplit(link).query}"
        place = urljoin(self.address + path, link)
        if not place.startswith(f"{self.address}/"):
            raise RemoteError(f"{self.name} sends on to {place[:200]}, which is not followed")
        return place.removeprefix(self.address)

    def export(self, specversion: str | None = None) -> Any:
        """The whole registry, with documents in forms that a load turns back into the same bytes."""
        from signalbook.model.model import read_model
        from signalbook.registry.registry import carry_documents

        flags = [f"specversion={quote(specversion)}"] if specversion else []
        if versions.find_older(specversion or "") is None:
            flags.append("binary")
        exported = self.get("/export?" + "&".join(flags))
        carry_documents(exported, read_model(self.get("/model")))
        return exported

    # ---- writing

    def write(self, method: str, path: str, body: Any = None, *, load: str = "") -> str:
        """The answer to a PUT, PATCH, POST or DELETE, as JSON text; empty where there is none.

        A part of a load, which has a name, writes only what is new where the registry knows how.
        """
        reply = self._write(method, path, body, load)
        return reply.text() if reply.content else ""

    def load_part(self, path: str, body: Any, load: str) -> tuple[int, int] | None:
        """POST a part of a load: how many of its groups and resources were new or changed, if the registry says so."""
        found = _WRITTEN.fullmatch(self._write("POST", path, body, load).headers.get("signalbook-written", ""))
        return (int(found[1]), int(found[2])) if found else None

    def _write(self, method: str, path: str, body: Any, load: str) -> RegistryReply:
        # A server that does not know the preference leaves it alone (RFC 7240).
        headers = {"prefer": f"load={load}"} if load else {}
        return self.request(method, path if method == "POST" else _with_details(path), body, headers=headers)

    # ---- documents

    def read_document(self, path: str) -> bytes:
        """The bytes of a resource's document."""
        plain = path.partition("?")[0]
        self._check_document(plain)
        reply = self._transport.answer(Call("GET", path))
        if 300 <= reply.status < 400 and "location" in reply.headers:
            raise UsageError(f"the document of {plain} is not in the registry but at {reply.headers['location']}")
        if reply.status >= 300:
            raise refusal(reply, path)
        return reply.content

    def write_document(self, path: str, content: bytes, contenttype: str | None, epoch: int | None) -> str:
        """Write the bytes of a resource's document, and give its metadata as JSON text; other attributes stay."""
        self._check_document(path.partition("?")[0])
        headers = {"content-type": contenttype} if contenttype else {}
        if epoch is not None:
            headers["xRegistry-epoch"] = str(epoch)
        self.send(Call("PUT", path, content, headers))
        return self.show(path).text

    def _check_document(self, path: str) -> None:
        if document_type(self.get("/model"), path) is None:
            raise UsageError(f"'{path}' has no document; only a resource or a version of a type with documents has one")


def _to_json(body: Any, path: str) -> bytes:
    """A body as JSON text; `parsing_data`, as a registry would say it, where it cannot be one."""
    try:
        return orjson.dumps(body)
    except TypeError:
        check_json(body, path.partition("?")[0])
        raise


def _with_details(path: str) -> str:
    """The path with `$details` after a resource or version, which asks a registry for metadata."""
    plain, mark, flags = path.partition("?")
    steps = plain.strip("/").split("/")
    wanted = len(steps) in (4, 6) and steps[-1] != "versions" and not steps[-1].endswith("$details")
    return f"{plain.rstrip('/')}$details{mark}{flags}" if wanted else path


def document_type(model: Any, path: str) -> ResourceType | None:
    """The type of the resource or version at a path where by the model, as a registry shows it, it has a document."""
    from signalbook.model.model import read_model

    steps = path.partition("?")[0].removesuffix("$details").strip("/").split("/")
    if len(steps) not in (4, 6):
        return None
    group = read_model(model).groups.get(steps[0])
    kind = group.resources.get(steps[2]) if group is not None else None
    return kind if kind is not None and kind.hasdocument else None


def _joined(texts: list[str]) -> str:
    """The objects in several JSON texts as one."""
    if len(texts) == 1:
        return texts[0]
    return "{" + ",".join(inner for text in texts if (inner := text.strip()[1:-1].strip())) + "}"


# Refusals ------------------------------------------------------------------------------------------------------------

_REMEDIES: Mapping[int, str] = {
    401: "give its token",
    403: "its token may not do that",
    404: "is it the root of a registry?",
}


def refusal(reply: RegistryReply, path: str) -> RemoteError:
    """The error that a reply states; one without an xRegistry error is not of an xRegistry server."""
    stated = _stated(reply.content)
    said = f"{reply.name} answered {reply.status} at {path.partition('?')[0]}"
    remedy = "it redirects, which is not followed" if reply.status < 400 else _REMEDIES.get(reply.status, "")
    if stated is None:
        remedy = remedy if remedy and reply.status != 404 else "is it an xRegistry server?"
        return RemoteError(f"{said} without an xRegistry error; {remedy}", status=reply.status)
    title, error = stated
    if reply.status == 403 and error.detail:  # it may be the token, or the whole server that is read-only
        remedy = error.detail[:_LONGEST_DETAIL]
    said = f"{said}: {title.rstrip('.')}" if title else said
    return Refusal(error, reply.status, f"{said}; {remedy}" if remedy else said)


def _stated(content: bytes) -> tuple[str, RegistryError] | None:
    """The title and the error that a problem document states; None where it is not one."""
    try:
        body = orjson.loads(content)
        name = str(body["type"]).rpartition("#")[2]
        args = {key[:100]: str(value)[:_LONGEST_DETAIL] for key, value in list((body.get("args") or {}).items())[:20]}
        title, detail = (str(body.get(member) or "")[:_LONGEST_DETAIL] for member in ("title", "detail"))
        # The title of an error that is not in the specification's list is all there is to say about it.
        said = detail if name in ERROR_TYPES else ": ".join(part for part in (title, detail) if part)
        error = RegistryError(name[:100], str(body.get("subject", ""))[:2000], detail=said)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    error.args_.update(args)
    return title, error
