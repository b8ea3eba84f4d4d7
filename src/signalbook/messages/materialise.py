"""Materialising a definition: its `xref` followed, then its `basemessage` chain, then everything merged upward.

Rule 1: what is merged with what, and what a group adds, is said in `document.inherited`.
Rule 2: a chain that comes back to itself, or that is too long, makes the definition unusable; a base that is missing or
lies in another registry is a note (message/spec.md, `basemessage`). The problem of an unusable definition is part of
answers, so its code is one of theirs.
Rule 3: materialising what is materialised changes nothing.
Rule 4: a definition that names no envelope or no protocol, and has none from its bases, has its group's: that of the
group it stands in, then those of what it is an alias of or derives from, the nearest first (message/spec.md: all
messages inside a group use the same envelope and the same protocol).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from signalbook.document.inherited import MAX_CHAIN, SELECTORS, chosen, derived, merge
from signalbook.document.spelling import to_canonical
from signalbook.errors import Problem, RegistryError
from signalbook.messages.definition import Definition
from signalbook.messages.entities import Entities, Entity
from signalbook.spec.builtin import MESSAGE
from signalbook.spec.protocols import stated_protocol

__all__ = ["materialise"]

Attributes = Mapping[str, Any]

# Of the codes that answers have: it is the definition that cannot be read.
_UNUSABLE = "malformed"


def materialise(entities: Entities, bases: Mapping[str, Attributes] | None = None) -> dict[str, Definition]:
    """Each definition of a catalog by its xid; `bases` are definitions of other registries by their URI."""
    external = {uri: to_canonical(MESSAGE, attributes, uri) for uri, attributes in (bases or {}).items()}
    return _Chains(entities, external).definitions()


class _Chains:
    """The definitions of one catalog, each materialised once, bases before what derives from them."""

    def __init__(self, entities: Entities, external: Mapping[str, Attributes]) -> None:
        self._entities = entities
        self._external = external
        self._done: dict[str, Definition] = {}

    def definitions(self) -> dict[str, Definition]:
        found = {}
        for xid, entity in self._entities.messages.items():
            found[xid] = self._in_group(self._aliased(entity) if entity.xref is not None else self._materialised(xid))
        return found

    def _in_group(self, definition: Definition) -> Definition:
        """The definition with the envelope and the protocol that its group gives it."""
        document = definition.document
        absent = [one for one in SELECTORS if one[0] not in document]
        if not absent or definition.problems:
            return definition
        implied: list[tuple[str, Attributes]] = []
        is_spelled = True
        for selector, metadata in absent:
            found = self._implied(definition, selector)
            if found is not None:
                implied.append((found[0], {selector: found[1]}))
                is_spelled = is_spelled and metadata.isdisjoint(document)
        if not implied:
            return definition
        document = {**document, **{name: value for _, stated in implied for name, value in stated.items()}}
        try:
            document = document if is_spelled else to_canonical(MESSAGE, document, definition.xid)
        except RegistryError as error:
            return replace(definition, document={}, problems=(Problem("/protocoloptions", _UNUSABLE, str(error)),))
        return replace(definition, document=document, implied=tuple(implied))

    def _implied(self, definition: Definition, selector: str) -> tuple[str, str] | None:
        """The group from which a definition has its envelope or its protocol, and which one that is."""
        for place in dict.fromkeys((definition.xid, definition.identity, *definition.derives_from)):
            stated = self._group(place).get(selector)
            if isinstance(stated, str) and stated:
                # A group may say that it has none.
                return None if stated_protocol(stated) is None else (place.rsplit("/", 2)[0], stated)
        return None

    def _aliased(self, alias: Entity) -> Definition:
        """The definition that an alias shows."""
        seen = [alias.xid]
        entity: Entity | None = alias
        while entity is not None and entity.xref is not None:
            if entity.xref in seen:
                words = f"leads back to itself: {_shown([*seen, entity.xref])}"
                return Definition(alias.xid, {}, {}, problems=(Problem("/meta/xref", _UNUSABLE, words),))
            seen.append(entity.xref)
            entity = self._entities.messages.get(entity.xref) if len(seen) <= MAX_CHAIN else None
        if entity is None:
            words = f"{seen[-1]} is not in the catalog"
            return Definition(alias.xid, {}, {}, problems=(Problem("/meta/xref", _UNUSABLE, words),))
        shown = self._materialised(entity.xid)
        return Definition(alias.xid, shown.document, shown.own, shown.bases, shown.xid, shown.notes, shown.problems)

    def _materialised(self, place: str) -> Definition:
        """The definition at a place, which is no alias; each on the way to the end of its chain is made with it."""
        path: dict[str, None] = {}
        at: str | None = place
        note: Problem | None = None
        while at is not None and at not in self._done:
            if at in path:
                words = f"leads back to itself: {_shown([*path, at])}"
                self._refuse(path, Problem("/basemessage", _UNUSABLE, words))
                return self._done[place]
            path[at] = None
            at, note = self._base(at)
        below = None if at is None else self._done[at]
        for at in reversed(path):
            below = self._done[at] = self._derived(at, below, () if note is None else (note,))
            note = None
        return self._done[place]

    def _refuse(self, places: Iterable[str], problem: Problem) -> None:
        for place in places:
            self._done[place] = Definition(place, {}, self._attributes(place), problems=(problem,))

    def _derived(self, place: str, base: Definition | None, notes: tuple[Problem, ...]) -> Definition:
        own, problems = self._attributes(place), self._problems(place)
        if base is None:
            try:
                document = chosen(merge({}, own), self._group(place), place)
            except RegistryError as error:
                return Definition(place, {}, own, problems=(Problem("/protocoloptions", _UNUSABLE, str(error)),))
            return Definition(place, document, own, notes=notes, problems=problems)
        bases = ((_message_of(base.xid), base.own), *base.bases)
        if len(bases) >= MAX_CHAIN:
            words = f"leads through more than {MAX_CHAIN} definitions"
            return Definition(place, {}, own, bases, problems=(Problem("/basemessage", _UNUSABLE, words),))
        try:
            own, document = derived(base.document, own, self._group(place), place)
        except RegistryError as error:
            return Definition(place, {}, own, bases, problems=(Problem("/protocoloptions", _UNUSABLE, str(error)),))
        return Definition(place, document, own, bases, None, (*base.notes, *notes), (*base.problems, *problems))

    def _group(self, place: str) -> Attributes:
        xid = _message_of(place).rsplit("/", 2)[0]
        group = self._entities.groups.get(xid) or self._entities.endpoints.get(xid)
        return {} if group is None else group.attributes

    def _base(self, place: str) -> tuple[str | None, Problem | None]:
        """The place of a definition's base, or why there is none."""
        reference = self._attributes(place).get("basemessage")
        if not isinstance(reference, str) or not reference:
            return None, None
        if reference in self._external:
            return reference, None
        found = self._entities.located(reference)
        resolved = self._target(found)
        if resolved is not None:
            return resolved, None
        if found.startswith("/"):
            return None, Problem("/basemessage", "dangling", f"{found} is not in the catalog")
        return None, Problem("/basemessage", "external", f"{found} lies outside the catalog and is not followed")

    def _target(self, reference: str) -> str | None:
        """The place that an xid means once aliases are followed."""
        for _ in range(MAX_CHAIN):
            entity = self._entities.messages.get(reference)
            if entity is None:
                found = self._entities.version(self._entities.messages, reference)
                return None if found is None else f"{found[0]}/versions/{reference.rpartition('/')[2]}"
            if entity.xref is None:
                return reference
            reference = entity.xref
        return None

    def _attributes(self, place: str) -> Attributes:
        if place in self._external:
            return self._external[place]
        found = self._entities.version(self._entities.messages, place)
        return {} if found is None else found[1]

    def _problems(self, place: str) -> tuple[Problem, ...]:
        entity = self._entities.messages.get(_message_of(place))
        return () if entity is None else entity.problems


def _message_of(place: str) -> str:
    """The xid of the message that a place is, or is a version of."""
    return place.partition("/versions/")[0] if place.startswith("/") else place


def _shown(places: list[str]) -> str:
    """A chain in words, its middle left out where it is long."""
    return " -> ".join(places if len(places) <= 10 else [*places[:5], "...", *places[-4:]])
