"""`Catalog`: the definitions of some documents, ready to be asked about messages.

Rule 1: a catalog never changes. `updated` gives another, and compiles only what is not the same in both.
Rule 2: a document that somebody wrote is read by its dialect, one that a registry or a source gave is not read again.
Rule 3: what is wrong with one definition is said about that one; the others match as if it were not there.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import orjson

from signalbook.cloudevents import ABSENT
from signalbook.dialects.convert import ForeignDocument, detect, whole
from signalbook.errors import Problem, SignalbookError, UsageError
from signalbook.messages import match
from signalbook.messages.answer import Answer
from signalbook.messages.build import build
from signalbook.messages.carry import BuildPlan, Built
from signalbook.messages.compile import Compiled, EndpointLimits, compile_definition
from signalbook.messages.definition import Absolute, Definition, Entities, Entity, materialise
from signalbook.messages.fast import MatchScope, ScopeEntry
from signalbook.messages.fill import Origin
from signalbook.messages.observe import Given, GivenAll, UndoBudget, each, holds_batch, observe
from signalbook.messages.sample import sample
from signalbook.messages.schema_library import SchemaLibrary, SchemaPolicy
from signalbook.schemas import Schema

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

    def compiled(self, xid: str) -> Compiled:
        """The definition as constraints, with what is known of its payload's schema."""
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
        payload = catalog.compiled(self.xid).payload
        known = payload.own_mark
        return BuildPlan(
            self.definition.document,
            catalog.schema(self.xid),
            self.validate,
            catalog.absolute,
            known.schemaid,
            known.guid,
            has_ids=payload.has_ids,
        )


Documents = Mapping[str, Any]
_MOST_SCOPES = 64


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
    ) -> None:
        self.entities = entities
        self.schemas = schemas
        self._bases = bases
        self.definitions: Mapping[str, Definition] = MappingProxyType(materialise(entities, bases))
        known: Mapping[str, Compiled] = {} if before is None else before._compiled
        self._library: SchemaLibrary = SchemaLibrary(entities, None if before is None else before._library, schemas)
        self._compiled: dict[str, Compiled] = {
            xid: compile_definition(definition, self._library, known.get(xid))
            for xid, definition in self.definitions.items()
        }
        self._scopes: dict[frozenset[str], MatchScope] = {}

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
    ) -> Catalog:
        """The same of registry documents that a registry or a source gave, which are not recognised again."""
        return cls(Entities.of(*documents, roots=roots), bases, schemas=schemas)

    def updated(
        self, *documents: Any, bases: Mapping[str, Documents] | None = None, roots: Iterable[str] = ()
    ) -> Catalog:
        """The catalog of other documents of any dialect; what is the same in both is not compiled again."""
        return self.updated_canonical(*in_canonical(*documents), bases=bases, roots=roots)

    def updated_canonical(
        self, *documents: Documents, bases: Mapping[str, Documents] | None = None, roots: Iterable[str] = ()
    ) -> Catalog:
        """The same of registry documents that a registry or a source gave, which are not recognised again."""
        return Catalog(Entities.of(*documents, roots=roots), bases, self, self.schemas)

    def reached_by(self, *roots: str) -> Catalog:
        """The same catalog, reached by these addresses: what is named by one of them is its own."""
        return Catalog(self.entities.at(roots), self._bases, self, self.schemas)

    def addressed(self, *roots: str) -> Catalog:
        """The same catalog, of which nothing is named by these addresses; what is built with it has the first."""
        found = copy.copy(self)
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
        return self._of(xid).payload.schema

    def absolute(self, reference: str) -> str | None:
        """The absolute form of a reference; None where it is relative and the catalog has no address."""
        return self.entities.address(reference)

    def schemaid(self, xid: str) -> int | None:
        """The id of Confluent's framing that is known for a definition's schema; None where it is not known."""
        return self._of(xid).payload.own_mark.schemaid

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
        self, message: GivenAll, within: Iterable[str] = (), budget: UndoBudget | None = None
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

    def validate_each(self, message: GivenAll, xid: str, budget: UndoBudget | None = None) -> Iterator[Answer]:
        """The same one by one, as `match_each` does."""
        compiled = self._of(xid)
        for one in each(message):
            for found in observe(one, budget):
                yield match.answer_by_one(compiled, found, self.absolute)

    def scope(self, within: Iterable[str] = ()) -> MatchScope:
        """The definitions to look among: all of them, or those of groups and endpoints, or single ones."""
        names = frozenset([within] if isinstance(within, str) else within)
        found = self._scopes.get(names)
        if found is None:
            found = MatchScope(self._entries(names))
            if len(self._scopes) >= _MOST_SCOPES:
                self._scopes.clear()
            self._scopes[names] = found
        return found

    @cached_property
    def _fast_answer(self) -> Callable[[Any], Answer | None]:
        return self.scope().fast.answer

    def _entries(self, names: frozenset[str]) -> Iterable[ScopeEntry]:
        if not names:
            return (ScopeEntry(compiled) for xid, compiled in self._compiled.items() if self._usable(xid))
        found: list[ScopeEntry] = []
        for name in names:
            endpoint = self.entities.endpoints.get(name)
            if endpoint is not None:
                found += self._of_endpoint(endpoint)
            elif name in self.entities.groups:
                found += self._of_group(name, None)
            elif name in self._compiled:
                found += [ScopeEntry(self._compiled[name])] if self._usable(name) else []
            else:
                raise CatalogError(f'"{name}" is not a message group, endpoint or message of the catalog')
        return found

    def _of_endpoint(self, endpoint: Entity) -> list[ScopeEntry]:
        limits = EndpointLimits.of(endpoint.attributes)
        carried = endpoint.attributes.get("messagegroups")
        groups = [name for name in carried if isinstance(name, str)] if isinstance(carried, list) else []
        known = [self.entities.located(name) for name in groups]
        return [entry for name in (endpoint.xid, *known) for entry in self._of_group(name, limits)]

    def _of_group(self, name: str, limits: EndpointLimits | None) -> list[ScopeEntry]:
        return [ScopeEntry(self._compiled[xid], limits) for xid in self._members.get(name, ()) if self._usable(xid)]

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        members: dict[str, list[str]] = {}
        for xid, definition in self.definitions.items():
            members.setdefault(definition.group, []).append(xid)
        return members

    def _usable(self, xid: str) -> bool:
        return not self.definitions[xid].problems

    def _of(self, xid: str) -> Compiled:
        found = self._compiled.get(xid)
        if found is None:
            raise CatalogError(f'"{xid}" is not a message of the catalog')
        return found


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


def _answers(
    scope: MatchScope, message: Given, absolute: Absolute, budget: UndoBudget | None = None
) -> Iterator[Answer]:
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
