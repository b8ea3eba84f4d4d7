"""Loading catalog documents into a registry: what `signalbook load` does, and `signalbook lint` on trial.

Rule 1: documents are written one after the other in bounded requests, and may refer to each other in any order.
Rule 2: the registry's model rules what goes in; a document's own is taken over only where that is asked for.
Rule 3: a type may keep fewer versions than documents give (`maxversions`); what went is reported and is not a failure.
The older versions of a 0.1 definition are its history, which a registry keeps otherwise, so they count as kept.
Rule 4: all requests of a load are its parts: what is there already is left alone, and however it is cut, epochs and
times are those of one request.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.client import Client
from signalbook.dialects.catalog01_documents import assigned
from signalbook.dialects.convert import check, is_lone, relabelled
from signalbook.errors import Problem, RegistryError, SignalbookError, UsageError
from signalbook.sources.documents import (
    MAX_BYTES,
    MAX_ENTRIES,
    Document,
    Entry,
    Part,
    Raw,
    in_canonical,
    metadata,
    parts,
    recognise,
    with_history,
)

__all__ = ["REFERRING", "Loadable", "Loading", "Unkept", "Writing", "holder", "load_good", "loadable"]

# Writing the parts of catalog documents into a registry, whatever order they refer to each other in.
#
# Rule 1: a registry refuses a schema that refers to one it does not have. So a part that is refused for its documents
# waits until all others are written, and is tried again as long as that gets any of those that wait in.
# Rule 2: those left may refer to each other in a circle: they go in one request, as far as its size allows; what is
# refused then is wrong by itself.


Groups = dict[str, dict[str, Mapping[str, Any]]]
"""Groups without their resources, by the plural of their type and their id."""

# What is refused for documents that a schema refers to, and may be taken once these are there.
REFERRING = frozenset({"compatibility_violation", "format_violation"})


class Writing:
    """Sends parts, at once or when what they refer to is there; `max_bytes` bounds a request, 0 means no bound."""

    def __init__(self, send: Callable[[Part], object], max_bytes: int = 0) -> None:
        self._send = send
        self._max_bytes = max_bytes
        self._waiting: list[tuple[Part, RegistryError]] = []
        self._held: dict[str, RegistryError] = {}

    def write(self, part: Part) -> None:
        """Send a part; where it has to wait, later parts of its groups wait too."""
        if part.path in self._held:
            self._waiting.append((_joined({}, part.entries), self._held[part.path]))
        elif not self._sent(part):
            error = self._waiting[-1][1]
            self._held.update((f"/{plural}/{groupid}", error) for plural in part.body for groupid in part.body[plural])

    def finish(self) -> None:
        """Send what waits, or raise why the registry does not take it."""
        while self._waiting:
            tried, self._waiting = self._waiting, []
            if not sum(self._sent(part) for part, _ in tried):
                self._release()

    def _sent(self, part: Part) -> bool:
        try:
            self._send(part)
        except RegistryError as error:
            if error.name not in REFERRING or not part.entries:
                raise
            self._waiting.append((part, error))
            return False
        return True

    def _release(self) -> None:
        """Get on where all that waits is refused: in one request if that is not too large, else in smaller parts."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) == 1:
            raise waiting[0][1]
        entries = [entry for part, _ in waiting for entry in part.entries]
        if not self._max_bytes or sum(len(orjson.dumps(entry.resource)) for entry in entries) <= self._max_bytes:
            self._send(_merged([part for part, _ in waiting]))
        elif len(waiting) == len(entries):
            raise waiting[0][1]
        else:
            self._waiting = [(half, error) for part, error in waiting for half in _halves(part)]


def _merged(parts: Sequence[Part]) -> Part:
    alone: Groups = {}
    for part in parts:
        for plural, groups in _alone(part).items():
            alone.setdefault(plural, {}).update(groups)
    merged = _joined(alone, [entry for part in parts for entry in part.entries])
    merged.groups = sum(part.groups for part in parts)
    return merged


def _halves(part: Part) -> Iterator[Part]:
    middle = (len(part.entries) + 1) // 2
    first = _joined(_alone(part), part.entries[:middle])
    first.groups = part.groups
    yield first
    if part.entries[middle:]:
        yield _joined({}, part.entries[middle:])


def _alone(part: Part) -> Groups:
    """The groups of a part without their resources; some may have none."""
    alone = {plural: dict(groups) for plural, groups in part.body.items()} if part.path == "/" else {}
    for entry in part.entries:
        alone.setdefault(entry.plural, {})[entry.groupid] = entry.group
    return alone


def _joined(alone: Groups, entries: Sequence[Entry]) -> Part:
    """One part that writes these groups and resources."""
    part = Part(resources=len(entries), entries=list(entries))
    for plural, groups in alone.items():
        part.body[plural] = {groupid: dict(group) for groupid, group in groups.items()}
    for entry in entries:
        group = part.body.setdefault(entry.plural, {}).setdefault(entry.groupid, dict(entry.group))
        group.setdefault(entry.collection, {})[entry.resourceid] = entry.resource
    return part


@dataclass(frozen=True, slots=True)
class Loadable:
    """A document of any dialect as a registry takes it, and what there is to say; `logged` where 0.1 has a history.

    A note `invalid` means that it breaks the rules of its own dialect, and is not to be loaded. `is_lone` where it is
    one definition, which says nothing about the group that it is put into.
    """

    document: Document
    notes: tuple[Problem, ...] = ()
    logged: bool = False
    is_lone: bool = False


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
    found = recognise(raw, any_model=True)
    counted = found.dialect.form == "catalog"
    documents, notes = in_canonical(raw, found.dialect, group=group)
    wrong = check(raw.value, found.dialect)
    anew = assigned(raw.value) if counted else ()
    notes = (*wrong, *relabelled(found), *notes, *anew)
    return Loadable(with_history(documents, anew=counted), notes, counted, is_lone(raw.value, found.dialect))


class Loading:
    """One load: give it each document, then finish it.

    `written` is called for each request that was taken, with how many of its groups and resources were new or changed.
    `chunk` bounds the entries of a request, 0 writes each document in one; `model` is the registry's, if known. Loads
    of one `name` are parts of the same.
    """

    def __init__(
        self,
        registry: Client,
        *,
        chunk: int = MAX_ENTRIES,
        with_model: bool = False,
        with_metadata: bool = False,
        model: Mapping[str, Any] | None = None,
        written: Callable[[Part, int, int], object] = lambda part, groups, resources: None,
        name: str = "",
    ) -> None:
        self._registry = registry
        self._name = name or secrets.token_hex(8)
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
        model = self._model = self._model or self._registry.get("/model")
        if self._with_metadata and (attributes := metadata(document.content, model)):
            self._registry.write("PATCH", "/", attributes, load=self._name)
        bounds = {"max_entries": self._chunk, "max_bytes": self._max_bytes}
        for part in parts(document.content, model, source=document.source, **bounds):
            self._writing.write(self._added(part) if given.is_lone else part)
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

    def _added(self, part: Part) -> Part:
        """The part as one that only adds to its group, where that is there and may have more to say."""
        entry = part.entries[0]
        path = f"/{entry.plural}/{entry.groupid}"
        try:
            self._registry.get(path)
        except RegistryError as error:
            if error.name == "not_found":
                return part
        return Part(path, {entry.collection: {entry.resourceid: entry.resource}}, 0, 1, part.entries)

    def _send(self, part: Part) -> None:
        # An export carries the epochs of the registry it came from; here they mean nothing.
        found = self._registry.load_part(f"{part.path}?ignore=epoch", part.body, self._name)
        groups, resources = found or (part.groups, part.resources)
        self._written(part, min(groups, part.groups), min(resources, part.resources))

    def _define(self, content: Mapping[str, Any]) -> None:
        source = content.get("modelsource") or content.get("model")
        if source and source != self._registry.get("/modelsource"):
            self._registry.write("PUT", "/modelsource", source)
            self._model = None
        wanted: Mapping[str, Any] = content.get("capabilities") or {}
        there = self._registry.get("/capabilities") if wanted else {}
        if any(there.get(name) != value for name, value in wanted.items()):
            self._registry.write("PATCH", "/capabilities", wanted)


def load_good(
    start: Callable[[str], Loading],
    documents: Sequence[Loadable],
    refused: Callable[[Loadable, SignalbookError], object],
) -> list[Loading]:
    """Load every document that the registry takes, each in one request, and tell the others with the reason.

    `start` begins a load of a name that writes a document in one request. What is refused for what it refers to is
    tried again once others are there, and at last with all those that are left, less the ones at fault.
    """
    name = secrets.token_hex(8)
    done: list[Loading] = []

    def attempt(together: Sequence[Loadable]) -> SignalbookError | None:
        loading = start(name)
        try:
            for one in together:
                loading.load(one)
            loading.finish()
        except (RegistryError, UsageError) as error:
            return error
        done.append(loading)
        return None

    waiting = list(documents)
    while waiting:
        tried = [(one, attempt([one])) for one in waiting]
        left: list[Loadable] = []
        for one, error in tried:
            if isinstance(error, RegistryError) and error.name in REFERRING:
                left.append(one)
            elif error is not None:
                refused(one, error)
        if len(left) < len(waiting):
            waiting = left
            continue
        found = attempt(waiting)
        if found is None:
            break
        culprit = holder(waiting, found.subject if isinstance(found, RegistryError) else "")
        refused(culprit, found)
        waiting = [one for one in waiting if one is not culprit]
    return done


def holder(documents: Sequence[Loadable], xid: str) -> Loadable:
    """The document that defines an entity: the last that has the resource, else the group, else anything."""
    steps = xid.strip("/").split("/")[:4]

    def depth(one: Loadable) -> int:
        place: Any = one.document.content
        for count, step in enumerate(steps):
            if not isinstance(place, dict) or step not in place:
                return count
            place = place[step]
        return len(steps)

    return max(reversed(documents), key=depth)


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
