"""Loading catalog documents into a registry: what `signalbook load` does, and `signalbook lint` on trial.

Rule 1: documents are written one after the other in bounded requests, and may refer to each other in any order.
Rule 2: the registry's model rules what goes in; a document's own is taken over only where that is asked for.
Rule 3: a type may keep fewer versions than documents give (`maxversions`); what went is told and is no failure. The
older versions of a 0.1 definition are its history, which a registry keeps otherwise, so they count as kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from signalbook.document.dialects import check, detect, relabelled
from signalbook.document.dialects.history import assigned
from signalbook.errors import Problem, RegistryError
from signalbook.sources.dialects import Raw, in_canonical
from signalbook.sources.documents import Document
from signalbook.sources.history import with_history
from signalbook.sources.parts import MAX_BYTES, MAX_ENTRIES, Part, metadata, parts
from signalbook.sources.writing import Writing

__all__ = ["Loadable", "Loading", "Receiver", "Unkept", "loadable"]


class Receiver(Protocol):
    """A registry that is loaded into; paths and bodies are those of the HTTP binding."""

    def get(self, path: str) -> Any:
        """What is at `path`, as JSON values."""
        ...

    def send(self, method: str, path: str, body: Any = None) -> str:
        """The answer to a write, as JSON text."""
        ...


@dataclass(frozen=True, slots=True)
class Loadable:
    """A document of any dialect as a registry takes it, and what there is to say; `logged` where 0.1 has a history.

    A note `invalid` means that it breaks the rules of its own dialect, and is not to be loaded.
    """

    document: Document
    notes: tuple[Problem, ...] = ()
    logged: bool = False


@dataclass(frozen=True, slots=True)
class Unkept:
    """A resource with more versions in its documents than its type keeps, and their ids."""

    xid: str
    source: str
    given: tuple[str, ...]
    most: int

    @property
    def count(self) -> int:
        """How many versions did not stay."""
        return len(self.given) - self.most


def loadable(raw: Raw, group: str = "") -> Loadable:
    """What a load writes for a document that was read; `group` is for a definition that has none."""
    found = detect(raw.value)
    counted = found.dialect.form == "catalog"
    documents, notes = in_canonical(raw, found.dialect, group=group)
    wrong = check(raw.value, found.dialect)
    anew = assigned(raw.value) if counted else ()
    return Loadable(with_history(documents, anew=counted), (*wrong, *relabelled(found), *notes, *anew), counted)


class Loading:
    """One load: give it each document, then finish it; `written` is told of each request that was taken.

    `chunk` bounds the entries of a request, 0 writes each document in one; `model` is the registry's, if known.
    """

    def __init__(
        self,
        registry: Receiver,
        *,
        chunk: int = MAX_ENTRIES,
        with_model: bool = False,
        with_metadata: bool = False,
        model: Mapping[str, Any] | None = None,
        written: Callable[[Part], object] = lambda _: None,
    ) -> None:
        self._registry = registry
        self._chunk = chunk
        self._max_bytes = MAX_BYTES if chunk else 0
        self._with_model = with_model
        self._with_metadata = with_metadata
        self._model = model
        self._written = written
        self._writing = Writing(self._send, self._max_bytes)
        self._loaded: list[tuple[Document, Mapping[str, Any]]] = []

    def load(self, given: Loadable) -> None:
        """Write a document, but for what has to wait for others."""
        document = given.document
        if self._with_model:
            self._define(document.content)
        if self._with_metadata and (attributes := metadata(document.content)):
            self._registry.send("PATCH", "/", attributes)
        model = self._model = self._model or self._registry.get("/model")
        bounds = {"max_entries": self._chunk, "max_bytes": self._max_bytes}
        for part in parts(document.content, model, source=document.source, **bounds):
            self._writing.write(part)
        if not given.logged:
            self._loaded.append((document, model))

    def finish(self) -> None:
        """Write what has waited, or raise why the registry does not take it."""
        self._writing.finish()

    def unkept(self) -> list[Unkept]:
        """Once all is written, each resource of which not all versions could stay, in the order of the documents."""
        given: dict[str, tuple[str, int, dict[str, None]]] = {}
        for document, model in self._loaded:
            for xid, most, versions in _bounded(document.content, model):
                given.setdefault(xid, (document.source, most, {}))[2].update(dict.fromkeys(versions))
        found = (Unkept(xid, source, tuple(versions), most) for xid, (source, most, versions) in given.items())
        return [one for one in found if one.count > 0]

    def gone(self, unkept: Unkept) -> list[str]:
        """The xids of the versions of a resource that did not stay, as the registry has it now."""
        try:
            there = self._registry.get(f"{unkept.xid}/versions")
        except RegistryError:  # it may be written but not read
            return []
        return [f"{unkept.xid}/versions/{version}" for version in unkept.given if version not in there]

    def _send(self, part: Part) -> None:
        # An export carries the epochs of the registry it came from; here they mean nothing.
        self._registry.send("POST", f"{part.path}?ignore=epoch", part.body)
        self._written(part)

    def _define(self, content: Mapping[str, Any]) -> None:
        source = content.get("modelsource") or content.get("model")
        if source:
            self._registry.send("PUT", "/modelsource", source)
            self._model = None
        if content.get("capabilities"):
            self._registry.send("PATCH", "/capabilities", content["capabilities"])


def _bounded(content: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Each resource that gives versions and whose type keeps only so many: its xid, how many, and the versions."""
    for plural, group_type in (model.get("groups") or {}).items():
        types: Mapping[str, Any] = group_type.get("resources") or {}
        limits = {name: kind["maxversions"] for name, kind in types.items() if kind.get("maxversions")}
        for groupid, group in (content.get(plural) or {}).items() if limits else ():
            for collection, most in limits.items():
                for resourceid, resource in (group.get(collection) or {}).items():
                    if resource.get("versions"):
                        yield f"/{plural}/{groupid}/{collection}/{resourceid}", most, resource["versions"]
