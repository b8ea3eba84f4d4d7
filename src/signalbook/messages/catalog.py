"""`Catalog`: the definitions of some documents, ready to be asked about messages.

Rule 1: a catalog never changes. `updated` and `changed` give another, and compile only what is not the same in both:
the definitions that differ, and those that derive from them, show them or stand in a group that differs.
Rule 2: a document that somebody wrote is read by its dialect, one that a registry or a source gave is not read again.
Rule 3: what is wrong with one definition is said about that one; the others match as if it were not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import orjson

from signalbook.budget import Budget
from signalbook.cloudevents import ABSENT
from signalbook.dialects.convert import ForeignDocument, detect, whole
from signalbook.errors import Problem, SignalbookError, UsageError
from signalbook.messages import match
from signalbook.messages.answer import Answer
from signalbook.messages.build import build
from signalbook.messages.carry import BuildPlan, Built
from signalbook.messages.compile import Compiled, EndpointLimits, compile_definition
from signalbook.messages.definition import ENTITIES, Absolute, Definition, Entities, Entity, consulted, materialise
from signalbook.messages.fast import MatchScope, ScopeEntry
from signalbook.messages.fill import Origin
from signalbook.messages.layered import GONE, Changes, Layered, Lock, Rows, duplicate, put, rows_of, take
from signalbook.messages.observe import Given, GivenAll, each, holds_batch, observe
from signalbook.messages.sample import sample
from signalbook.messages.schema_library import SchemaLibrary, SchemaPolicy
from signalbook.model.message_rules import OF_GROUP
from signalbook.schemas import Schema
from signalbook.schemas.framing import Mark

__all__ = ["Catalog", "CatalogError", "HandleCatalog", "MessageHandle", "in_canonical"]

# `MessageHandle`: one definition of a catalog, to build, show and check messages by.
#
# catalog.message("/messagegroups/fleet/messages/moved").build(context={"vin": "A1"}, data={"speed": 80})


class HandleCatalog(Protocol):
    """What a handle asks of its catalog."""

    def schema(self, xid: str) -> Schema | Problem | None:
        """The payload schema of a definition, or why it is not available."""
        ...

    def validate(self, message: Given, xid: str) -> Answer:
        """What one definition says about a message."""
        ...

    def absolute(self, reference: str) -> str | None:
        """The absolute form of a reference into the catalog."""
        ...

    def frame_of(self, xid: str) -> tuple[Mark, bool]:
        """What is known for Confluent's frame of a definition's payloads, and whether the catalog has such ids."""
        ...


@dataclass(frozen=True, slots=True)
class MessageHandle:
    """A definition, and the catalog that it stands in."""

    catalog: HandleCatalog
    definition: Definition

    @property
    def xid(self) -> str:
        """The definition's xid."""
        return self.definition.xid

    @property
    def document(self) -> Mapping[str, Any]:
        """The definition as materialised."""
        return self.definition.document

    def build(
        self,
        *,
        data: Any = ABSENT,
        context: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        protocol: str | Mapping[str, Any] | None = None,
        schemaid: int | str | None = None,
        origin: Origin | None = None,
    ) -> Built:
        """The message that these values make, or all that is missing or wrong; see `messages.build.build`."""
        if self.definition.problems:
            return Built(problems=self.definition.problems)
        return build(
            self._plan(),
            data=data,
            context=context,
            attributes=attributes,
            protocol=protocol,
            schemaid=schemaid,
            origin=origin,
        )

    def sample(self) -> Built:
        """An example message, payload included; the same each time. Where none can be made, the problems say why.

        Where the payload's schema lies elsewhere, the example has no payload.
        """
        if self.definition.problems:
            return Built(problems=self.definition.problems)
        return sample(self._plan(), self.xid)

    def validate(self, message: Given) -> Answer:
        """What is wrong with a message that is to be one of this definition."""
        return self.catalog.validate(message, self.xid)

    def _plan(self) -> BuildPlan:
        catalog = self.catalog
        known, has_ids = catalog.frame_of(self.xid)
        return BuildPlan(
            self.definition.document,
            catalog.schema(self.xid),
            self.validate,
            catalog.absolute,
            known.schemaid,
            known.guid,
            has_ids=has_ids,
        )


Documents = Mapping[str, Any]
_MOST_SCOPES = 64
# So many definitions may differ before a scope is made anew rather than of the one before.
_MOST_BEHIND = 1000


@dataclass(slots=True)
class _Containers:
    """What is in scope: everything, or by its group, with the limits of each endpoint that carries it, or alone."""

    everything: bool
    groups: dict[str, dict[EndpointLimits | None, None]]
    single: frozenset[str]

    def entries(self, compiled: Compiled) -> list[ScopeEntry]:
        """The entries that a definition is in scope by."""
        definition = compiled.definition
        found = [ScopeEntry(compiled)] if self.everything or definition.xid in self.single else []
        return [*found, *(ScopeEntry(compiled, limits) for limits in self.groups.get(definition.group, ()))]


@dataclass(frozen=True, slots=True)
class _OlderScope:
    """A scope of a state before, what was in it, and the definitions that differ since with their identities there."""

    containers: _Containers
    scope: MatchScope
    identities: Layered[str, str]


class CatalogError(SignalbookError):
    """A question that the catalog cannot take: about what it does not have, or for one answer about a batch."""


class Catalog:
    """Message definitions; ask it with `match` and `validate`.

    >>> catalog = Catalog.from_documents(
    ...     {
    ...         "messagegroups": {
    ...             "fleet": {
    ...                 "messages": {
    ...                     "moved": {
    ...                         "envelope": "CloudEvents/1.0",
    ...                         "envelopemetadata": {
    ...                             "type": {"value": "moved"},
    ...                             "source": {"value": "/vehicles/{vin}"},
    ...                         },
    ...                     }
    ...                 }
    ...             }
    ...         }
    ...     }
    ... )
    >>> answer = catalog.match({"specversion": "1.0", "id": "1", "type": "moved", "source": "/vehicles/WVW1"})
    >>> answer.outcome.value, answer.definition, answer.context
    ('matched', '/messagegroups/fleet/messages/moved', {'vin': 'WVW1'})
    """

    def __init__(
        self,
        entities: Entities,
        bases: Mapping[str, Documents] | None = None,
        before: Catalog | None = None,
        schemas: SchemaPolicy = SchemaPolicy(),  # noqa: B008  # which never changes
        lock: Callable[[], Lock] = nullcontext,
    ) -> None:
        self.entities = entities
        self.schemas = schemas
        self._bases = bases
        materialised = materialise(entities, bases)
        self.definitions: Mapping[str, Definition] = Layered(materialised)
        self._library: SchemaLibrary = SchemaLibrary(entities, None if before is None else before._library, schemas)
        known: Mapping[str, Compiled] = {} if before is None else before._compiled
        self._compiled: Layered[str, Compiled] = Layered(
            {xid: _compiled(definition, known.get(xid)) for xid, definition in materialised.items()}
        )
        # The definitions of each group, and those that are made of another definition or of another's group.
        self._members: Layered[str, Rows[str]] = Layered(_by_group(materialised.values()))
        self._dependants: Layered[str, Rows[str]] = Layered(self._who_consults())
        self._scopes: dict[frozenset[str], MatchScope] = {}
        # Scopes of a state before this one, and the definitions that differ since, each with its identity there.
        self._older: dict[frozenset[str], _OlderScope] = {}
        self._make_lock = lock
        self._lock = lock()

    @classmethod
    def from_documents(
        cls,
        *documents: Any,
        bases: Mapping[str, Documents] | None = None,
        roots: Iterable[str] = (),
        schemas: SchemaPolicy = SchemaPolicy(),  # noqa: B008  # which never changes
    ) -> Catalog:
        """The catalog of documents, each read by its dialect as a file is; raises `UsageError` where none is known.

        `bases` are definitions of other registries by their URI, `roots` the addresses by which this one is reached.
        """
        return cls.from_canonical(*in_canonical(*documents), bases=bases, roots=roots, schemas=schemas)

    @classmethod
    def from_canonical(
        cls,
        *documents: Documents,
        bases: Mapping[str, Documents] | None = None,
        roots: Iterable[str] = (),
        schemas: SchemaPolicy = SchemaPolicy(),  # noqa: B008  # which never changes
        lock: Callable[[], Lock] = nullcontext,
    ) -> Catalog:
        """The same of registry documents that a registry or a source gave, which are not recognised again.

        Where several threads ask, `lock` makes what they wait for while one of them makes an index, such as an `RLock`.
        """
        return cls(Entities.of(*documents, roots=roots), bases, schemas=schemas, lock=lock)

    def updated(
        self, *documents: Any, bases: Mapping[str, Documents] | None = None, roots: Iterable[str] = ()
    ) -> Catalog:
        """The catalog of other documents of any dialect; what is the same in both is not compiled again."""
        return self.updated_canonical(*in_canonical(*documents), bases=bases, roots=roots)

    def updated_canonical(
        self, *documents: Documents, bases: Mapping[str, Documents] | None = None, roots: Iterable[str] = ()
    ) -> Catalog:
        """The same of registry documents that a registry or a source gave, which are not recognised again."""
        return self.updated_entities(Entities.of(*documents, roots=roots), bases)

    def updated_entities(self, entities: Entities, bases: Mapping[str, Documents] | None = None) -> Catalog:
        """The same of entities that are read already."""
        differing = self.entities.differing(entities) if (bases or {}) == (self._bases or {}) else None
        if differing is None:
            return Catalog(entities, bases, self, self.schemas, self._make_lock)
        return self._with(_shared(self.entities, entities, differing), differing)

    def changed(self, changes: Mapping[str, Documents | None]) -> Catalog:
        """The catalog where some groups and resources are not as they were; only what they are part of is compiled.

        `changes` has by its xid what each is by now: a group without its resources, a resource with its `meta` and
        versions; None where it is gone, and with a group all that it held.
        """
        found = self.entities.changed(changes)
        if found is None:
            raise CatalogError("an entity that states an address of its own cannot be changed alone")
        return self._with(*found)

    def _with(self, entities: Entities, differing: frozenset[str]) -> Catalog:
        """The catalog of other entities, which differ in these."""
        if not differing:
            return self
        found = duplicate(self)
        found.__dict__.pop("digest", None)
        found.__dict__.pop("_fast_answer", None)
        found.entities = entities
        schemas = [xid for xid in differing if xid.startswith("/schemagroups/")]
        if schemas:
            found._library = self._library.changed(entities, schemas)
        affected = self._affected(entities, differing)
        materialised = materialise(entities, self._bases, affected)
        definitions: dict[str, Definition] = {}
        compiled: dict[str, Compiled] = {}
        members = Changes(self._members)
        for xid in affected:
            before, after = self.definitions.get(xid), materialised.get(xid)
            if before == after:
                continue
            definitions[xid] = after if after is not None else GONE
            compiled[xid] = compile_definition(after, self._compiled.get(xid)) if after is not None else GONE
            if before is None or after is None:
                group = xid.rsplit("/", 2)[0]
                held = members.get(group) or []
                members.set(group, (take(held, xid) if after is None else put(held, xid)) or GONE)
        found.definitions = self._layered_definitions().changed(definitions)
        found._compiled = self._compiled.changed(compiled)
        found._members = members.made()
        found._dependants = self._dependants_after(entities, affected)
        found._lock = self._make_lock()
        found._scopes = {}
        found._older = self._left_behind(definitions.keys())
        return found

    def _layered_definitions(self) -> Layered[str, Definition]:
        assert isinstance(self.definitions, Layered)
        return self.definitions

    def _affected(self, entities: Entities, differing: Iterable[str]) -> list[str]:
        """The definitions that may be others where these entities are: themselves, and all that are made of them."""
        found: dict[str, None] = {}
        for xid in differing:
            if xid in entities.messages or xid in self.entities.messages:
                found[xid] = None
                found |= dict.fromkeys(self._dependants.get(xid, ()))
            elif self._gives(self.entities, xid) != self._gives(entities, xid):
                found |= dict.fromkeys(self._members.get(xid, ()))
                found |= dict.fromkeys(self._dependants.get(xid, ()))
        return list(found)

    def count_made_of(self, xids: Iterable[str]) -> int:
        """How many definitions may be others where these entities are, at most."""
        return sum(1 + len(self._dependants.get(xid, ())) + len(self._members.get(xid, ())) for xid in xids)

    def _gives(self, entities: Entities, xid: str) -> list[Any]:
        """What a group gives to its definitions."""
        group = entities.groups.get(xid) or entities.endpoints.get(xid)
        return [None if group is None else group.attributes.get(name) for name in OF_GROUP]

    def _who_consults(self) -> dict[str, Rows[str]]:
        found: dict[str, list[str]] = {}
        for xid in self.definitions:
            for other in consulted(self.entities, self._bases or {}, xid):
                found.setdefault(other, []).append(xid)
        return {other: rows_of(xids) for other, xids in found.items()}

    def _dependants_after(self, entities: Entities, affected: Iterable[str]) -> Layered[str, Rows[str]]:
        changes, bases = Changes(self._dependants), self._bases or {}
        for xid in affected:
            before, after = consulted(self.entities, bases, xid), consulted(entities, bases, xid)
            for other in before - after:
                changes.set(other, take(changes.get(other) or [], xid) or GONE)
            for other in after - before:
                changes.set(other, put(changes.get(other) or [], xid))
        return changes.made()

    def _left_behind(self, differing: Iterable[str]) -> dict[frozenset[str], _OlderScope]:
        """The scopes that another state can be made of; not those that too much has changed since."""
        with self._lock:
            older = {
                **self._older,
                **{
                    names: _OlderScope(self._containers(names), scope, Layered())
                    for names, scope in self._scopes.items()
                },
            }
        found: dict[frozenset[str], _OlderScope] = {}
        for names, one in older.items():
            more: dict[str, str] = {}
            for xid in differing:
                if xid not in one.identities:
                    known = self.definitions.get(xid)
                    more[xid] = xid if known is None else known.identity
            identities = one.identities.changed(more)
            if len(identities) <= max(_MOST_BEHIND, len(self.definitions) // 4):
                found[names] = _OlderScope(one.containers, one.scope, identities)
        return found

    def prepared_as(self, other: Catalog) -> Catalog:
        """The catalog, with the indexes that another has, so that no message waits for them."""
        with other._lock:
            known = dict(other._scopes)
        for names, scope in known.items():
            try:
                self.scope(names).prepared_as(scope)
            except CatalogError:  # what it was about is not there any more
                continue
        return self

    def reached_by(self, *roots: str) -> Catalog:
        """The same catalog, reached by these addresses: what is named by one of them is its own."""
        return Catalog(self.entities.at(roots), self._bases, self, self.schemas, self._make_lock)

    def addressed(self, *roots: str) -> Catalog:
        """The same catalog, of which nothing is named by these addresses; what is built with it has the first."""
        found = duplicate(self)
        found.entities = self.entities.at(roots)
        return found

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the catalog's canonical JSON, without epochs, times and the registry's own URLs."""
        content = {
            name: {xid: entity.content() for xid, entity in collection.items()}
            for name, collection in (
                ("groups", self.entities.groups),
                ("messages", self.entities.messages),
                ("schemas", self.entities.schemas),
                ("endpoints", self.entities.endpoints),
            )
        }
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()

    @property
    def problems(self) -> dict[str, tuple[Problem, ...]]:
        """What makes definitions unusable, by their xid."""
        return {xid: definition.problems for xid, definition in self.definitions.items() if definition.problems}

    def definition(self, xid: str) -> Definition:
        """The definition of that name, materialised."""
        return self._of(xid).definition

    def message(self, xid: str) -> MessageHandle:
        """The definition of that name, to build, sample and validate messages by."""
        return MessageHandle(self, self.definition(xid))

    def schema(self, xid: str) -> Schema | Problem | None:
        """The payload schema of a definition, or why it is not available; None where it does not name one."""
        return self._of(xid).payload.schema(self._library)

    def absolute(self, reference: str) -> str | None:
        """The absolute form of a reference; None where it is relative and the catalog has no address."""
        return self.entities.address(reference)

    def schemaid(self, xid: str) -> int | None:
        """The id of Confluent's framing that is known for a definition's schema; None where it is not known."""
        return self._of(xid).payload.own_mark(self._library).schemaid

    def frame_of(self, xid: str) -> tuple[Mark, bool]:
        """The id and the guid that are known for a definition's schema, and whether the catalog has such ids at all."""
        payload = self._of(xid).payload
        return payload.own_mark(self._library), payload.has_ids(self._library)

    def by_id(self, context: str, schemaid: int) -> Schema | Problem | None:
        """The schema that an id of Confluent's stands for in a context; None where the catalog does not know it."""
        known = self._library.ids.by_id(context, schemaid)
        return None if known is None else self._library.writer(known, "")

    def by_guid(self, guid: str) -> Schema | Problem | None:
        """The schema that has a guid of Confluent's; None where the catalog does not know it."""
        known = self._library.ids.by_guid(guid.lower())
        return None if known is None else self._library.writer(known, "")

    def compiled(self, xid: str) -> Compiled:
        """The definition of that name as constraints."""
        return self._of(xid)

    def match(self, message: Given, within: Iterable[str] = ()) -> Answer:
        """What the catalog says about one message; `within` are groups, endpoints and definitions to look among."""
        if message.__class__ is bytes and not within:
            answer = self._fast_answer(message)
            if answer is not None:
                return answer
        _expect_one(message, "match_all")
        return self.match_all(message, within)[0]

    def match_all(self, message: GivenAll, within: Iterable[str] = ()) -> list[Answer]:
        """The same for a batch, or for any iterable of messages: one answer for each, in their order."""
        return list(self.match_each(message, within))

    def match_each(
        self, message: GivenAll, within: Iterable[str] = (), budget: Budget | None = None
    ) -> Iterator[Answer]:
        """The same one by one, each made when it is asked for; `budget` bounds what content encodings may hide."""
        scope = self.scope(within)
        for one in each(message):
            yield from _answers(scope, one, self.absolute, budget)

    def validate(self, message: Given, xid: str) -> Answer:
        """What one definition says about a message: that it holds, or everything that is wrong."""
        _expect_one(message, "validate_all")
        return self.validate_all(message, xid)[0]

    def validate_all(self, message: GivenAll, xid: str) -> list[Answer]:
        """The same for a batch, or for any iterable of messages: one answer for each, in their order."""
        return list(self.validate_each(message, xid))

    def validate_each(self, message: GivenAll, xid: str, budget: Budget | None = None) -> Iterator[Answer]:
        """The same one by one, as `match_each` does."""
        compiled = self._of(xid)
        for one in each(message):
            for found in observe(one, budget):
                yield match.answer_by_one(compiled, found, self._library, self.absolute)

    def scope(self, within: Iterable[str] = ()) -> MatchScope:
        """The definitions to look among: all of them, or those of groups and endpoints, or single ones."""
        names = frozenset([within] if isinstance(within, str) else within)
        found = self._scopes.get(names)
        if found is None:
            with self._lock:
                found = self._scopes.get(names)
                if found is None:
                    found = self._made_of_older(names) or MatchScope(
                        self._entries(names), self._library, self._make_lock
                    )
                    if len(self._scopes) >= _MOST_SCOPES:
                        self._scopes.clear()
                    self._scopes[names] = found
        return found

    def _made_of_older(self, names: frozenset[str]) -> MatchScope | None:
        """The scope made of that of a state before, at the cost of what differs; None where it has to be made anew."""
        older = self._older.pop(names, None)
        containers = self._containers(names)
        if older is None or older.containers != containers:
            return None
        come = [
            entry
            for xid in older.identities
            if xid in self._compiled and self._usable(xid)
            for entry in containers.entries(self._compiled[xid])
        ]
        return older.scope.changed(older.identities, come, self._library)

    @cached_property
    def _fast_answer(self) -> Callable[[Any], Answer | None]:
        return self.scope().fast.answer

    def _entries(self, names: frozenset[str]) -> Iterable[ScopeEntry]:
        containers = self._containers(names)
        if not names:
            xids: Iterable[str] = self._compiled
        else:
            within = (xid for group in containers.groups for xid in self._members.get(group, ()))
            xids = dict.fromkeys((*within, *containers.single))
        return (entry for xid in xids if self._usable(xid) for entry in containers.entries(self._compiled[xid]))

    def _containers(self, names: frozenset[str]) -> _Containers:
        """What is in scope by its name, by its group, or by an endpoint that carries its group."""
        found = _Containers(not names, {}, frozenset())
        for name in names:
            endpoint = self.entities.endpoints.get(name)
            if endpoint is not None:
                limits = EndpointLimits.of(endpoint.attributes)
                for group in (endpoint.xid, *self._carried(endpoint)):
                    found.groups.setdefault(group, {})[limits] = None
            elif name in self.entities.groups:
                found.groups.setdefault(name, {})[None] = None
            elif name in self._compiled:
                found.single |= {name}
            else:
                raise CatalogError(f'"{name}" is not a message group, endpoint or message of the catalog')
        return found

    def _carried(self, endpoint: Entity) -> list[str]:
        """The groups that an endpoint carries besides its own messages."""
        carried = endpoint.attributes.get("messagegroups")
        groups = [name for name in carried if isinstance(name, str)] if isinstance(carried, list) else []
        return [self.entities.located(name) for name in groups]

    def _usable(self, xid: str) -> bool:
        return not self.definitions[xid].problems

    def _of(self, xid: str) -> Compiled:
        found = self._compiled.get(xid)
        if found is None:
            raise CatalogError(f'"{xid}" is not a message of the catalog')
        return found


def _compiled(definition: Definition, before: Compiled | None) -> Compiled:
    """The definition, ready to be tested; where it is the same as before, that."""
    return before if before is not None and before.definition == definition else compile_definition(definition, before)


def _by_group(definitions: Iterable[Definition]) -> dict[str, Rows[str]]:
    found: dict[str, list[str]] = {}
    for definition in definitions:
        found.setdefault(definition.group, []).append(definition.xid)
    return {group: rows_of(xids) for group, xids in found.items()}


def _shared(before: Entities, after: Entities, differing: frozenset[str]) -> Entities:
    """The entities as they are after, as few changes of those before."""
    found: dict[str, Any] = {}
    for name in ENTITIES:
        one, two = getattr(before, name), getattr(after, name)
        found[name] = one.changed({xid: two.get(xid, GONE) for xid in differing if xid in one or xid in two})
    return replace(before, **found)


def in_canonical(*documents: Any) -> list[Documents]:
    """Documents of any dialect as a registry has them; of a definition in several versions, the newest counts."""
    several = len(documents) > 1
    return [
        _in_canonical(_with_plain_mappings(document), f"document {number}" if several else "the document")
        for number, document in enumerate(documents, 1)
    ]


def _in_canonical(document: Any, name: str) -> Documents:
    try:
        dialect = detect(document).dialect
    except UsageError as error:
        mark = "" if isinstance(error, ForeignDocument) else ":"
        raise UsageError(f"{name}{mark} {error}") from None
    try:
        found: Documents = whole(document, dialect)[0][-1]
    except UsageError as error:
        raise UsageError(f"{name} {error}") from None
    return found


def _with_plain_mappings(value: Any) -> Any:
    """A value with dictionaries in place of other mappings; itself where it has only dictionaries."""
    if isinstance(value, Mapping):
        members = {key: _with_plain_mappings(member) for key, member in value.items()}
        same = isinstance(value, dict) and all(members[key] is member for key, member in value.items())
        return value if same else members
    if isinstance(value, list | tuple):
        listed = [_with_plain_mappings(member) for member in value]
        same = isinstance(value, list) and all(one is other for one, other in zip(listed, value, strict=True))
        return value if same else listed
    return value


def _answers(scope: MatchScope, message: Given, absolute: Absolute, budget: Budget | None = None) -> Iterator[Answer]:
    """The answers about one message, or about each event of a batch that is one document."""
    fast = scope.fast.answer(message) if isinstance(message, bytes) else None
    if fast is not None:
        yield fast
        return
    count, answer = 0, None
    for observed in observe(message, budget):
        count, answer = count + 1, match.answer(scope, observed, absolute)
        yield answer
    if count == 1 and answer is not None and isinstance(message, bytes):
        scope.fast.learn(message, (answer,))


def _expect_one(message: Given, instead: str) -> None:
    if holds_batch(message):
        raise CatalogError(f"this is a batch; {instead} gives an answer for each of its events")
