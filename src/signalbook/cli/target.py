"""The catalog a command works on: a store opened in this process, or a running server, behind one interface.

Rule 1: a command does not know which of the two it has; both take the same paths with the same flags and refuse with
the same `RegistryError`.
Rule 2: metadata is asked for and sent (`$details`); a resource's document travels as bytes only where it is asked for.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import msgspec
import orjson

from signalbook.cli.failures import Unreachable
from signalbook.document.carried import carry_documents
from signalbook.document.model_read import read_model
from signalbook.errors import RegistryError, StoreError, UsageError
from signalbook.sources import choose_model
from signalbook.spec import versions
from signalbook.spec.error_types import ERROR_TYPES

if TYPE_CHECKING:
    import httpx

    from signalbook import Registry

__all__ = ["Target", "check_exists", "open_target"]

TIMEOUT = 120.0


class Target(Protocol):
    """What a command can ask of a catalog; a path begins with `/` and may carry flags after `?`."""

    def get(self, path: str) -> Any:
        """What is at `path`, as JSON values."""
        ...

    def text(self, path: str) -> str:
        """The same as JSON text, in which every number and document stands as it was written."""
        ...

    def export(self, specversion: str | None) -> Any:
        """The whole registry, with documents in forms that a load turns back into the same bytes."""
        ...

    def send(self, method: str, path: str, body: Any = None) -> str:
        """The answer to a PUT, PATCH, POST or DELETE, as JSON text; empty where there is none."""
        ...

    def document(self, path: str) -> bytes:
        """The bytes of a resource's document."""
        ...


@contextmanager
def open_target(store: str, server: str | None, *, token: str = "", model: str | None = None) -> Iterator[Target]:
    """The server if one is named, else the store; a store that is not there is made only with a `model`."""
    if server:
        import httpx

        headers = {"authorization": f"Bearer {token}"} if token else {}
        with httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT) as client:
            yield _Server(client, server)
        return
    if model is None:
        check_exists(store)
    with ExitStack() as stack:
        yield _Store(store, model or "builtin", stack)


def details(path: str) -> str:
    """The path with `$details` after a resource or version, which a server takes as "the metadata, please"."""
    plain, mark, flags = path.partition("?")
    steps = plain.strip("/").split("/")
    wanted = len(steps) in (4, 6) and steps[-1] != "versions" and not steps[-1].endswith("$details")
    return f"{plain.rstrip('/')}$details{mark}{flags}" if wanted else path


class _Store:
    """A store that is opened, and if need be made, when it is first used: a mistake in the arguments leaves none."""

    def __init__(self, store: str, model: str, stack: ExitStack) -> None:
        self._store = store
        self._model = model
        self._stack = stack

    @cached_property
    def _registry(self) -> Registry:
        from signalbook import Registry
        from signalbook.registry.reads import Limits

        # what a server must refuse to build for a client may be as large as this machine allows
        limits = Limits(size=1 << 62, seconds=3600)
        return self._stack.enter_context(Registry.open(self._store, model=choose_model(self._model), limits=limits))

    def get(self, path: str) -> Any:
        return self._registry.get(path)

    def text(self, path: str) -> str:
        return self._registry.get_text(path)

    def export(self, specversion: str | None) -> Any:
        return self._registry.export(specversion or "")

    def send(self, method: str, path: str, body: Any = None) -> str:
        return self._registry.write_text(method, path, body)

    def document(self, path: str) -> bytes:
        plain, _, flags = path.partition("?")
        singular = self._singular(plain)
        found = self._registry.get(f"{plain}?inline={singular}&binary" + (f"&{flags}" if flags else ""))
        if f"{singular}url" in found:
            raise UsageError(f"the document of {plain} is not in the registry but at {found[f'{singular}url']}")
        return base64.b64decode(found.get(f"{singular}base64", ""))

    def _singular(self, path: str) -> str:
        """The singular name of the resource type at a path: its documents are attributes of that name."""
        steps = path.strip("/").split("/")
        if len(steps) not in (4, 6):
            raise UsageError(f"'{path}' has no document; only a resource or a version has one")
        for group in self._registry.get("/model").get("groups", {}).values():
            if steps[2] in group.get("resources", {}):
                return str(group["resources"][steps[2]]["singular"])
        raise RegistryError("not_found", path)


class _Server:
    def __init__(self, client: httpx.Client, address: str) -> None:
        self._client = client
        self._address = address

    def get(self, path: str) -> Any:
        return self._json(self._request("GET", details(path)))

    def text(self, path: str) -> str:
        return self._text(self._request("GET", details(path)))

    def export(self, specversion: str | None) -> Any:
        flags = [f"specversion={quote(specversion)}"] if specversion else []
        if versions.find_older(specversion or "") is None:
            flags.append("binary")
        exported = self.get("/export?" + "&".join(flags))
        carry_documents(exported, read_model(self.get("/model")))
        return exported

    def send(self, method: str, path: str, body: Any = None) -> str:
        content = None if body is None else orjson.dumps(body)
        answer = self._request(method, details(path) if method != "POST" else path, content)
        return self._text(answer) if answer.content else ""

    def document(self, path: str) -> bytes:
        return self._request("GET", path).content

    def _request(self, method: str, path: str, content: bytes | None = None) -> httpx.Response:
        import httpx

        headers = {"content-type": "application/json"} if content is not None else {}
        try:
            answer = self._client.request(method, path, content=content, headers=headers)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise Unreachable(
                f"'{self._address}' is no address of a server ({error}); try http://127.0.0.1:8080"
            ) from None
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise Unreachable(
                    f"the certificate of {self._address} is not trusted here; "
                    "name the file of its authority (PEM) in SSL_CERT_FILE"
                ) from None
            raise Unreachable(
                f"no server answers at {self._address} ({error or type(error).__name__}); "
                "start one with: signalbook serve"
            ) from None
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


def check_exists(store: str) -> None:
    """Refuse a file that is not there, where a new store would be made of a mistake."""
    if "://" in store or store.startswith("memory:"):
        return
    path = Path(store.removeprefix("sqlite:"))
    if not path.is_file():
        raise StoreError(f"there is no store '{path}'; make one with: signalbook load FILE --store {path}")
