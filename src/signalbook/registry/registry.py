"""A registry from Python, without HTTP: the same operations, rules and errors.

    with Registry.open("signalbook.db") as registry:
        registry.put("/messagegroups/fleet", {"name": "Fleet"})
        registry.get("/messagegroups?inline=messages")

Rule 1: paths, flags and JSON values are those of the HTTP binding; a path may carry a query. Values go in and come out
as plain dicts; errors are `RegistryError`.
Rule 2: no number is changed: what HTTP would refuse is refused here; what comes out is an `int` of any size, a `float`
where its digits are those of the text, else a `Decimal`.
Rule 3: nothing is left out unseen. There is no header here that would tell of more, so a collection comes whole unless
the path or the limits say how much of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from signalbook import jsontext
from signalbook.errors import RegistryError, UsageError
from signalbook.jsontext import Json, check_json, is_deeper
from signalbook.model.model import Model, ResourceType
from signalbook.registry.read.reads import Limits, Page
from signalbook.registry.requests import RequestResult, Requests, Write, spec_version
from signalbook.registry.store import Connection, Store, open_store
from signalbook.registry.urls import COLLECTIONS, parse_flags
from signalbook.registry.write.versions import Ask
from signalbook.spec import versions
from signalbook.spec.builtin import builtin_modelsource

__all__ = ["Registry", "Transaction", "carry_documents", "model_source"]

# Documents within an exported registry: the most readable form that a load turns back into the same bytes.
#
# Rule 1: JSON stands as JSON where writing it again gives the same text; any other text stands as a string; what is
# neither stays in base64. So white space, digits, names given twice and a document that is `null` survive.
# Rule 2: a document of a media type that is shown in base64 stays so (DOC-13), and so does one without a media type:
# given otherwise, it would get one.


def carry_documents(exported: Mapping[str, Any] | list[Any], model: Model) -> None:
    """Put the documents of an export in base64 into the form that suits each; a list, which 0.1 has, holds none."""
    if isinstance(exported, list):
        return
    for kind, version in _versions(exported, model):
        encoded = version.get(f"{kind.singular}base64")
        if isinstance(encoded, str) and encoded:
            name, value = _form(kind, version.get("contenttype"), encoded)
            del version[f"{kind.singular}base64"]
            version[name] = value


def _versions(exported: Mapping[str, Any], model: Model) -> Iterator[tuple[ResourceType, dict[str, Any]]]:
    """Every resource and version that can hold a document, with its type."""
    for plural, group_type in model.groups.items():
        for group in _entries(exported.get(plural)):
            for resources, kind in group_type.resources.items():
                if kind.hasdocument:
                    for resource in _entries(group.get(resources)):
                        yield kind, resource
                        yield from ((kind, version) for version in _entries(resource.get("versions")))


def _entries(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value.values() if isinstance(entry, dict)] if isinstance(value, dict) else []


def _form(kind: ResourceType, contenttype: object, encoded: str) -> tuple[str, Any]:
    """The attribute that carries a document, and its value."""
    kept = f"{kind.singular}base64", encoded
    form = kind.content_kind(contenttype) if isinstance(contenttype, str) and contenttype else "binary"
    if form == "binary":
        return kept
    try:
        content = base64.b64decode(encoded, validate=True)
        text = content.decode()
    except (binascii.Error, UnicodeDecodeError):
        return kept
    if form == "json" and _is_plain(content):
        return kind.singular, orjson.loads(content)
    return kept if "\0" in text else (kind.singular, text)


_DEEPEST = 40
"""Levels of a document that leave room for those around it (`json_text.MAX_DEPTH`)."""


def _is_plain(content: bytes) -> bool:
    """Whether a document is JSON that is written again with the same bytes, and that is taken for a document."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    if value is None or isinstance(value, str) or is_deeper(value, _DEEPEST):
        return False
    return orjson.dumps(value) == content


# A collection comes whole, or is `too_large`.
_WHOLE = Limits(page=1 << 62)


def model_source(model: str | Mapping[str, Any]) -> Json:
    """Return the model that a new registry starts with: `builtin`, `empty`, or the source itself."""
    if isinstance(model, Mapping):
        return dict(model)
    if model not in _MODELS:
        raise UsageError(f"the model '{model}' is neither of {', '.join(_MODELS)}, nor a model source")
    return _MODELS[model]()


_MODELS: dict[str, Callable[[], Json]] = {"builtin": builtin_modelsource, "empty": dict}


class _Writes:
    """PUT, PATCH, POST and DELETE for whoever can run one write."""

    def _write(self, method: str, path: str, body: Any, load: str = "") -> RequestResult:
        raise NotImplementedError

    def write_text(self, method: str, path: str, value: Mapping[str, Any] | None, *, load: str = "") -> str:
        """Do one PUT, PATCH, POST or DELETE, and return its answer as the JSON text that HTTP sends.

        With the name of a load that it is a part of it touches only what says something new.
        """
        return _text_of(self._write(method, path, value, load))

    def load_part(self, path: str, value: Mapping[str, Any], load: str) -> tuple[int, int]:
        """POST a part of a load of this name, and return how many groups and resources in it were new or changed."""
        return self._write("POST", path, value, load).written or (0, 0)

    def put(self, path: str, value: Mapping[str, Any]) -> Json:
        """Create or replace the entity at a path, and return it."""
        return _value_of(self._write("PUT", path, value))

    def patch(self, path: str, value: Mapping[str, Any]) -> Json:
        """Change the named attributes of the entity at a path, and return it."""
        return _value_of(self._write("PATCH", path, value))

    def post(self, path: str, value: Mapping[str, Any]) -> Json:
        """Create or update several entities below a path, or one version of a resource, and return them."""
        return _value_of(self._write("POST", path, value))

    def delete(self, path: str, value: Mapping[str, Any] | None = None, *, epoch: int | None = None) -> None:
        """Delete the entity at a path, or those of a collection that a map names."""
        if epoch is not None:
            plain, query = _split(path)
            path = f"{plain}?{query}&epoch={epoch}" if query else f"{plain}?epoch={epoch}"
        self._write("DELETE", path, value)


class Transaction(_Writes):
    """Several writes that happen together or not at all; `get` sees those made so far.

    A write that is refused leaves nothing behind, so a caller may go on after it.
    """

    def __init__(self, requests: Requests, db: Connection, base: str, correlation: str) -> None:
        self._requests = requests
        self._db = db
        self._base = base
        self._correlation = correlation
        self._open = True

    def get(self, path: str) -> Json:
        """Return what a GET of a path shows; a collection whole, as `Registry.get` does."""
        self._check_open()
        path, query = _split(path)
        return _value_of(self._requests.read_in(self._db, path, query, self._base))

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the transaction has ended with its block; open another with registry.transaction()")

    def _write(self, method: str, path: str, body: Any, load: str = "") -> RequestResult:
        self._check_open()
        path, query = _split(path)
        self._db.execute("SAVEPOINT refusable")
        try:
            begun = self._requests.begin_write(self._db, method, path, query, self._base, self._correlation)
            answer = _finish_write(self._requests, begun, body, load)
        except RegistryError:
            self._db.execute("ROLLBACK TO SAVEPOINT refusable")
            raise
        self._db.execute("RELEASE SAVEPOINT refusable")
        return answer


class Registry(_Writes):
    """One registry in one store."""

    def __init__(self, requests: Requests, base: str = "") -> None:
        self._requests = requests
        self._base = base.rstrip("/")

    @classmethod
    def open(
        cls, store: str | Path = "memory:", *, registryid: str = "signalbook",
        model: str | Mapping[str, Any] = "builtin", specversion: str = versions.DEFAULT.name, base: str = "",
        limits: Limits | None = None, load_include: Callable[[str], Any] | None = None,
    ) -> Registry:  # fmt: skip
        """Open the registry in a store, made with this id and model where the store is new.

        `store` is `memory:`, a file, or `postgresql://…`; `base` is the URL that addresses in answers begin with.
        Without `limits` a collection is never cut; with them it is, at their `page`.
        """
        if not isinstance(store, str | Path) or not str(store):
            raise UsageError(f"{store!r} is not a store; write 'memory:', a file, or postgresql://…")
        opened: Store = open_store(str(store))
        try:
            requests = Requests(opened, spec_version(specversion), limits=limits or _WHOLE, load_include=load_include)
            requests.create(registryid, model_source(model))
        except BaseException:
            opened.close()
            raise
        return cls(requests, base)

    @property
    def store(self) -> Store:
        """The store that holds the registry."""
        return self._requests.store

    def get(self, path: str = "/") -> Json:
        """Return what a GET of a path shows, metadata always, never a document.

        A collection comes whole, or is `too_large`; `?limit=` cuts it, and `find` reads one of any size.
        """
        return _decode(self.get_text(path))

    def get_text(self, path: str = "/") -> str:
        """Return the same as the JSON text that HTTP sends, in which documents stand as they were written."""
        return self.get_page(path).text

    def get_page(self, path: str = "/") -> Page:
        """Return the same text with what tells of more: `next` for `?page=`, and the `count` of all entries."""
        path, query = _split(path)
        page = self._requests.read(path, query, self._base).page
        assert page is not None
        return page

    def find(self, path: str, filter: str = "", *, sort: str = "", page: int = 1000) -> Iterator[Json]:
        """Return the entities of a collection that a filter leaves, one by one and read in pages.

        It filters and pages whether or not the registry's capabilities let clients do so. A filter that the path
        carries is an alternative to this one: what fits either is found.
        """
        for text in (filter, sort):
            if not isinstance(text, str):
                raise UsageError(
                    f"{text!r} is not a text; put alternatives into the path: '/GROUPS?filter=a=1&filter=b=2'"
                )
        path, given = _split(path)
        asked = {"filter": filter, "sort": sort, "limit": str(page)}
        query = urlencode({name: text for name, text in asked.items() if text}, quote_via=quote)
        return self._find(path, f"{given}&{query}" if given else query)

    def _find(self, path: str, query: str) -> Iterator[Json]:
        following = ""
        while True:
            flags = parse_flags(query + (f"&page={following}" if following else ""), path=path)
            answer = self._requests.read(path, flags, self._base)
            if answer.target.kind not in COLLECTIONS:
                raise UsageError(f"'{path}' is not a collection; use get for a single entity")
            assert answer.page is not None
            yield from _decode(answer.page.text).values()
            following = answer.page.next
            if not following:
                return

    def export(self, specversion: str = "") -> Any:
        """Return the whole registry as one document, capabilities and model source included.

        Who takes it back gets every document with the same bytes, whatever it holds (`carry_documents`); a version
        before 1.0 has its own forms. That of 0.1 has the message groups alone, several in a list, and the whole log of
        each message.
        """
        flags = parse_flags("binary" + (f"&specversion={quote(specversion)}" if specversion else ""))
        if versions.find_older(specversion) is not None:
            flags = replace(flags, binary=False)
        exported = _value_of(self._requests.read("/export", flags, self._base))
        carry_documents(exported, self._requests.setup(self.store.reader()).model)
        return exported

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Make several writes one: all of them when the block ends, none where it raises."""
        with self.store.writing() as db:
            transaction = Transaction(self._requests, db, self._base, self._requests.correlation())
            try:
                yield transaction
            finally:
                transaction._open = False

    def _write(self, method: str, path: str, body: Any, load: str = "") -> RequestResult:
        path, query = _split(path)
        requests, correlation = self._requests, self._requests.correlation()

        def job(db: Connection) -> RequestResult:
            begun = requests.begin_write(db, method, path, query, self._base, correlation)
            return _finish_write(requests, begun, body, load)

        return requests.write(job)

    def close(self) -> None:
        """Finish what is under way and give the store back."""
        self.store.close()

    def __enter__(self) -> Registry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _split(path: str) -> tuple[str, str]:
    if not isinstance(path, str):
        raise UsageError(f"{path!r} is not a path; write a text such as '/messagegroups/fleet'")
    path, _, query = path.partition("?")
    if not path.startswith("/"):
        path = "/" + path
    return path, query


def _finish_write(requests: Requests, begun: Write, value: Any, load: str) -> RequestResult:
    """Finish a write that has begun, with a value of Python as its body."""
    target = begun.context.target
    if not isinstance(value, Mapping) and (value is not None or begun.method != "DELETE"):
        detail = f"the value must be a mapping, not of type {type(value).__name__}"
        raise RegistryError("parsing_data", target.path, error_detail=detail)
    body = check_json(value if value is None or isinstance(value, dict) else dict(value), target.path)
    setdefault = begun.context.flags.setdefaultversionid
    ask = Ask(begun.method == "PATCH", setdefault, target.kind == "meta", load=load)
    return requests.finish_write(begun, body, ask)


def _text_of(answer: RequestResult) -> str:
    return "" if answer.page is None else answer.page.text


def _value_of(answer: RequestResult) -> Json:
    return {} if answer.page is None else _decode(answer.page.text)


def _decode(text: str) -> Json:
    try:
        value: Json = jsontext.decode_json(text.encode())
    except jsontext.JsonError as error:
        raise UsageError(f"Python cannot hold what is there ({error}); get_text gives it as text") from None
    return value
