"""The catalog a command works on: a store opened in this process, or a running server, behind one interface.

Rule 1: a command does not know which of the two it has; both take the same paths with the same flags and refuse with
the same `RegistryError`.
Rule 2: metadata is asked for and sent (`$details`); a resource's document travels as bytes only where it is asked for.
Rule 3: a collection is shown whole unless the flags say how much of it. The pages of a server are asked for at the
address that was named, wherever their links lead: the token goes nowhere else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

import msgspec
import orjson

from signalbook.cli.output import Unreachable
from signalbook.errors import RegistryError, StoreError, UsageError
from signalbook.model.model import ResourceType, read_model
from signalbook.registry.registry import carry_documents
from signalbook.sources import choose_model
from signalbook.sources.remote import trusted, unanswered
from signalbook.spec import versions
from signalbook.spec.error_types import ERROR_TYPES

if TYPE_CHECKING:
    import httpx

    from signalbook import Registry

__all__ = ["Shown", "Target", "check_exists", "document_type", "open_target", "refuse_folder"]

TIMEOUT = 120.0
# What a server says of a part of a load (docs/reference/http.md).
_WRITTEN = re.compile(r"groups=(\d{1,9}), resources=(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shown:
    """JSON text; of a part of a collection also where the next part is, and how many entries there are in all."""

    text: str
    following: str = ""
    count: int | None = None


class Target(Protocol):
    """What a command can ask of a catalog; a path begins with `/` and may carry flags after `?`."""

    def get(self, path: str) -> Any:
        """What is at `path`, as JSON values."""
        ...

    def show(self, path: str) -> Shown:
        """The same as JSON text, in which every number and document stands as it was written."""
        ...

    def export(self, specversion: str | None) -> Any:
        """The whole registry, with documents in forms that a load turns back into the same bytes."""
        ...

    def send(self, method: str, path: str, body: Any = None, *, load: str = "") -> str:
        """The answer to a PUT, PATCH, POST or DELETE, as JSON text; empty where there is none.

        A part of a load, which has a name, writes only what is new where the registry knows how.
        """
        ...

    def load_part(self, path: str, body: Any, load: str) -> tuple[int, int] | None:
        """POST a part of a load: how many of its groups and resources were new or changed, if the registry says so."""
        ...

    def document(self, path: str) -> bytes:
        """The bytes of a resource's document."""
        ...

    def put_document(self, path: str, content: bytes, contenttype: str | None, epoch: int | None) -> str:
        """Write the bytes of a resource's document, and give its metadata as JSON text; other attributes stay."""
        ...


@contextmanager
def open_target(
    store: str, server: str | None, *, token: str = "", ca: Path | None = None, model: str | None = None
) -> Iterator[Target]:
    """The server if one is named, else the store; a store that is not there is made only with a `model`."""
    if server:
        import httpx

        if not _is_address(server):
            raise UsageError(f"'{server}' is not a server address; try http://127.0.0.1:8080")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        with httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT, verify=trusted(ca)) as client:
            yield _Server(client, server)
        return
    if model is None:
        check_exists(store)
    with ExitStack() as stack:
        yield _Store(store, model or "builtin", stack)


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond 65535, half an IPv6 address
        return False


def details(path: str) -> str:
    """The path with `$details` after a resource or version, which a server takes as "the metadata, please"."""
    plain, mark, flags = path.partition("?")
    steps = plain.strip("/").split("/")
    wanted = len(steps) in (4, 6) and steps[-1] != "versions" and not steps[-1].endswith("$details")
    return f"{plain.rstrip('/')}$details{mark}{flags}" if wanted else path


def document_type(model: Any, path: str) -> ResourceType | None:
    """The type of the resource or version at a path where by the model, as a registry shows it, it has a document."""
    steps = path.partition("?")[0].removesuffix("$details").strip("/").split("/")
    if len(steps) not in (4, 6):
        return None
    group = read_model(model).groups.get(steps[0])
    kind = group.resources.get(steps[2]) if group is not None else None
    return kind if kind is not None and kind.hasdocument else None


def _with_document(model: Any, path: str) -> ResourceType:
    kind = document_type(model, path)
    if kind is None:
        raise UsageError(f"'{path}' has no document; only a resource or a version of a type with documents has one")
    return kind


class _Store:
    """A store that is opened, and if need be made, when it is first used: a mistake in the arguments leaves none."""

    def __init__(self, store: str, model: str, stack: ExitStack) -> None:
        self._store = store
        self._model = model
        self._stack = stack

    @cached_property
    def _registry(self) -> Registry:
        from signalbook import Registry
        from signalbook.registry.read.reads import Limits

        # what a server must refuse to build for a client may be as large as this machine allows
        limits = Limits(page=1 << 62, size=1 << 62, seconds=3600)
        return self._stack.enter_context(Registry.open(self._store, model=choose_model(self._model), limits=limits))

    def get(self, path: str) -> Any:
        return self._registry.get(path)

    def show(self, path: str) -> Shown:
        page = self._registry.get_page(path)
        plain, _, flags = path.partition("?")
        kept = [flag for flag in flags.split("&") if flag and not flag.startswith("page=")]
        following = f"{plain}?{'&'.join([*kept, f'page={page.next}'])}" if page.next else ""
        return Shown(page.text, following, page.count)

    def export(self, specversion: str | None) -> Any:
        return self._registry.export(specversion or "")

    def send(self, method: str, path: str, body: Any = None, *, load: str = "") -> str:
        return self._registry.write_text(method, path, body, load=load)

    def load_part(self, path: str, body: Any, load: str) -> tuple[int, int] | None:
        return self._registry.load_part(path, body, load)

    def document(self, path: str) -> bytes:
        plain, _, flags = path.partition("?")
        singular = _with_document(self.get("/model"), plain).singular
        found = self._registry.get(f"{plain}?inline={singular}&binary" + (f"&{flags}" if flags else ""))
        if f"{singular}url" in found:
            raise UsageError(f"the document of {plain} is not in the registry but at {found[f'{singular}url']}")
        return base64.b64decode(found.get(f"{singular}base64", ""))

    def put_document(self, path: str, content: bytes, contenttype: str | None, epoch: int | None) -> str:
        singular = _with_document(self.get("/model"), path).singular
        body = {f"{singular}base64": base64.b64encode(content).decode(), "contenttype": contenttype}
        return self.send("PATCH", path, body if epoch is None else {**body, "epoch": epoch})


class _Server:
    def __init__(self, client: httpx.Client, address: str) -> None:
        self._client = client
        self._address = address

    def get(self, path: str) -> Any:
        return self._json(self._request("GET", details(path)))

    def show(self, path: str) -> Shown:
        answer = self._request("GET", details(path))
        texts, asked = [self._text(answer)], {path}
        limited = any(flag.startswith("limit=") for flag in path.partition("?")[2].split("&"))
        while (following := _following(path, answer)) and not limited:
            if following in asked:
                raise Unreachable(f"{self._address} links the pages of {path} in a circle")
            asked.add(following)
            answer = self._request("GET", following)
            texts.append(self._text(answer))
        return Shown(_joined(texts), following, _count(answer))

    def export(self, specversion: str | None) -> Any:
        flags = [f"specversion={quote(specversion)}"] if specversion else []
        if versions.find_older(specversion or "") is None:
            flags.append("binary")
        exported = self.get("/export?" + "&".join(flags))
        carry_documents(exported, read_model(self.get("/model")))
        return exported

    def send(self, method: str, path: str, body: Any = None, *, load: str = "") -> str:
        answer = self._send(method, path, body, load)
        return self._text(answer) if answer.content else ""

    def load_part(self, path: str, body: Any, load: str) -> tuple[int, int] | None:
        answer = self._send("POST", path, body, load)
        if answer.content:
            self._text(answer)
        found = _WRITTEN.fullmatch(answer.headers.get("signalbook-written", ""))
        return (int(found[1]), int(found[2])) if found else None

    def _send(self, method: str, path: str, body: Any, load: str) -> httpx.Response:
        content = None if body is None else orjson.dumps(body)
        headers = {"content-type": "application/json"} if content is not None else {}
        if load:
            headers["prefer"] = f"load={load}"  # a server that does not know it leaves it alone (RFC 7240)
        return self._request(method, details(path) if method != "POST" else path, content, headers)

    def document(self, path: str) -> bytes:
        return self._request("GET", path).content

    def put_document(self, path: str, content: bytes, contenttype: str | None, epoch: int | None) -> str:
        _with_document(self.get("/model"), path)
        headers = {"content-type": contenttype} if contenttype else {}
        if epoch is not None:
            headers["xRegistry-epoch"] = str(epoch)
        self._request("PUT", path, content, headers)
        return self.show(path).text

    def _request(
        self, method: str, path: str, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        import httpx

        if headers is None:
            headers = {"content-type": "application/json"} if content is not None else {}
        try:
            answer = self._client.request(method, path, content=content, headers=headers)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UsageError(f"'{path}' cannot be asked for at {self._address} ({error})") from None
        except httpx.HTTPError as error:
            said = unanswered(self._address, error)
            remedy = "" if "--ca" in said else "; start one with: signalbook serve"
            raise Unreachable(said + remedy) from None
        if answer.status_code >= 400:
            raise self._refusal(answer)
        return answer

    def _json(self, answer: httpx.Response) -> Any:
        try:
            return orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            raise self._no_json(answer) from None

    def _text(self, answer: httpx.Response) -> str:
        try:
            msgspec.json.decode(answer.content, type=msgspec.Raw)
            return answer.content.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._no_json(answer) from None

    def _no_json(self, answer: httpx.Response) -> Unreachable:
        kind = answer.headers.get("content-type", "no content type")
        return Unreachable(f"{self._address} answered with {kind}, not with JSON; is it an xRegistry server?")

    def _refusal(self, answer: httpx.Response) -> RegistryError | Unreachable:
        """The error that a problem document states (core/http.md "Error Processing")."""
        try:
            body = orjson.loads(answer.content)
            name = str(body["type"]).rpartition("#")[2]
            args = {str(key): str(value) for key, value in (body.get("args") or {}).items()}
            words = [str(body[part]) for part in ("title", "detail") if body.get(part)]
            detail = ": ".join(words[1:] if name in ERROR_TYPES else words)
            error = RegistryError(name, str(body.get("subject", "")), detail=detail)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return Unreachable(
                f"{self._address} answered {answer.status_code} without an xRegistry error; is it an xRegistry server?"
            )
        error.args_.update(args)
        return error


def _following(path: str, answer: httpx.Response) -> str:
    """The path of the next page, where an answer links to one (core/http.md "Pagination")."""
    link = answer.links.get("next", {}).get("url", "")
    return f"{path.partition('?')[0]}?{urlsplit(link).query}" if link else ""


def _count(answer: httpx.Response) -> int | None:
    count = answer.links.get("next", {}).get("count", "")
    return int(count) if count.isascii() and count.isdigit() else None


def _joined(texts: list[str]) -> str:
    """The objects in several JSON texts as one."""
    if len(texts) == 1:
        return texts[0]
    return "{" + ",".join(inner for text in texts if (inner := text.strip()[1:-1].strip())) + "}"


def check_exists(store: str) -> None:
    """Refuse a file that is not there, where a new store would be made of a mistake."""
    if "://" in store or store.startswith("memory:"):
        return
    refuse_folder(store)
    path = Path(store.removeprefix("sqlite:"))
    if not path.is_file():
        raise StoreError(f"there is no store '{path}'; make one with: signalbook load FILE --store {path}")


def refuse_folder(store: str) -> None:
    """Refuse a folder, which no store is."""
    path = Path(store.removeprefix("sqlite:"))
    if "://" not in store and path.is_dir():
        raise UsageError(f"'{path}' is a folder; a store is a file: name one in it, such as {path}/signalbook.db")
