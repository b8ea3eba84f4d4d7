"""Filters over the stored tree: which entities a request leaves, as a tree of what was picked.

Rule 1: an alternative's clauses are pushed down the tree: those about an entity decide about it, those about a
collection decide about its members, and an entity stays where something of it is left (FILTER-7).
Rule 2: a clause that takes an array, a map or an object for a single value is refused: by the model where it can be
nothing else, by what is stored where it finds nothing for that reason, or would hold for that reason.
Rule 3: the index proposes candidates where a clause asks for equality; every answer comes from the entity itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import orjson

from signalbook.budget import Budget, TooMuch
from signalbook.errors import RegistryError
from signalbook.model.model import GroupType, Model, ResourceType
from signalbook.model.values import Attribute, Attributes, Level
from signalbook.registry import rows
from signalbook.registry.documents import document_names, render_document
from signalbook.registry.filters import Clause, Clauses, Filter, query, split
from signalbook.registry.read.render import Picked, View, pair
from signalbook.registry.rows import EntityRow
from signalbook.registry.store import Connection
from signalbook.registry.urls import InlineSet, Path, RequestTarget, Step, Wild

__all__ = ["MISS", "Search", "all_of", "refuse_arrays", "some_groups", "some_resources"]

MISS = object()  # nothing of the entity is left
Found = Picked | None | object
_META = InlineSet({"meta": InlineSet.NOTHING})
_CHUNK = 200
# The steps to read one entity for a filter, besides one for each expression.
AN_ENTITY = 2
# How many values that a wildcard leads to are looked at in one step.
_VALUES_A_STEP = 4


@dataclass(slots=True)
class Search:
    """One request's filters at work, and how many steps they may take."""

    view: View
    budget: Budget
    partial: bool = False  # whether the last candidates were but those that the index knows of
    spare: int = 200  # entities to look at for arrays where the index knows of none that match
    stumbled: RegistryError | None = None

    def _look(self) -> None:
        self._spend(AN_ENTITY)

    def _spend(self, steps: int) -> None:
        try:
            self.budget.spend(steps)
        except TooMuch as error:
            if error.budget is not self.budget:
                raise
            words = f"it takes more than {self.budget.allowed:,} steps; ask a smaller collection, or for equality"
            raise RegistryError("bad_filter", self.view.subject, value="filter", error_detail=words) from None

    def hold(self, clauses: Clauses, attrs: Mapping[str, Any]) -> bool:
        """Tell whether an entity satisfies all clauses; one that only an array keeps from it is remembered.

        A clause that holds where there is nothing is refused at once: what it lets through would be a wrong answer.
        """
        failed: Clause | None = None
        self._spend(len(clauses))
        for clause in clauses:
            self._spend(clause.breadth(attrs) // _VALUES_A_STEP)
            if not clause.holds(attrs):
                if clause.array_in(attrs) is None:
                    return False
                failed = failed or clause
        for clause in (failed,) if failed else clauses:
            place = clause.array_in(attrs) if failed or clause.negative else None
            if place is not None:
                self.stumbled = self.stumbled or clause.stumbled(place, self.view.subject, attrs)
                if not failed:
                    raise self.stumbled
        return failed is None

    def check(self, found: Found) -> Found:
        """Return what was found; where that is nothing because a clause takes an array for a value, say so."""
        if self.stumbled is not None and (found is MISS or found == {}):
            raise self.stumbled
        return found

    def registry(self, row: EntityRow, alternatives: Sequence[Clauses]) -> Found:
        """Return what is left of the registry."""
        attrs = orjson.loads("".join(self.view.registry(row, InlineSet.NOTHING, None)))
        groups = self.view.model.groups
        return self._node(
            attrs, alternatives, groups.__contains__, lambda plural, below: self.groups(groups[plural], below)
        )

    def groups(self, kind: GroupType, alternatives: Sequence[Clauses]) -> dict[str, Picked | None]:
        """Return the groups that are left of a collection."""
        low, high = rows.range_of(rows.GROUP, f"/{kind.plural}")
        left: dict[str, Picked | None] = {}
        for one in rows.in_batches(self.view.db, rows.SELECT_RANGE, (low, high)):
            row = EntityRow(*one)
            _keep(left, row, self.group(kind, row, alternatives))
        return left

    def group(self, kind: GroupType, row: EntityRow, alternatives: Sequence[Clauses]) -> Found:
        """Return what is left of a group."""
        self._look()
        attrs = orjson.loads(self.view.group(kind, row))
        return self._node(
            attrs, alternatives, kind.resources.__contains__,
            lambda plural, alts: self.resources(kind, kind.resources[plural], f"{row.xid}/{plural}", alts),
        )  # fmt: skip

    def resources(
        self, group: GroupType, kind: ResourceType, path: str, alternatives: Sequence[Clauses]
    ) -> dict[str, Picked | None]:
        """Return the resources that are left of a collection."""
        left: dict[str, Picked | None] = {}
        for row, default in self.candidates(group, kind, path, alternatives):
            _keep(left, row, self.resource(kind, row, default, alternatives))
        if not left and self.partial and any(clause.watched for clauses in alternatives for clause in clauses):
            self._look_for_arrays(kind, path, alternatives)
        return left

    def _look_for_arrays(self, kind: ResourceType, path: str, alternatives: Sequence[Clauses]) -> None:
        """Look at some resources that the index did not propose, only to say that a clause takes an array for a value.

        However many there are: this must not make of a look at the index one at the whole collection.
        """
        if self.stumbled is None and self.spare:
            some = self.view.db.execute(
                f"{rows.SELECT_RESOURCES} LIMIT ?", (*rows.range_of(rows.RESOURCE, path), self.spare)
            )
            self.spare -= len(some)
            for row, default in map(pair, some):
                self.resource(kind, row, default, alternatives)

    def resource(
        self, kind: ResourceType, row: EntityRow, default: EntityRow | None, alternatives: Sequence[Clauses]
    ) -> Found:
        """Return what is left of a resource."""
        self._look()
        alternatives = self._spelled(kind, alternatives)
        asks_meta = any(clause.head == "meta" for clauses in alternatives for clause in clauses)
        doc, self.view.doc = self.view.doc, False
        try:
            attrs = orjson.loads(self.view.resource(kind, row, default, _META if asks_meta else InlineSet.NOTHING))
        finally:
            self.view.doc = doc
        return self._node(attrs, alternatives, "versions".__eq__, lambda _, alts: self.versions(kind, row, alts))

    def versions(self, kind: ResourceType, row: EntityRow, alternatives: Sequence[Clauses]) -> dict[str, Picked | None]:
        """Return the versions that are left of a resource."""
        found = self.view.target(row)
        if found is None:
            return {}
        real = found[0]
        left: dict[str, Picked | None] = {}
        bounds = rows.range_of(rows.VERSION, real.xid + "/versions")
        for one in rows.in_batches(self.view.db, rows.SELECT_RANGE, bounds):
            version = EntityRow(*one)
            _keep(left, version, self.version(kind, row, real, version, alternatives))
        return left

    def version(
        self, kind: ResourceType, row: EntityRow, real: EntityRow, version: EntityRow, alternatives: Sequence[Clauses]
    ) -> Found:
        """Return what is left of a version: all of it or nothing."""
        self._look()
        alternatives = self._spelled(kind, alternatives)
        attrs = orjson.loads(self.view.version(kind, row, real, version))
        return None if any(self.hold(clauses, attrs) for clauses in alternatives) else MISS

    def _spelled(self, kind: ResourceType, alternatives: Sequence[Clauses]) -> Sequence[Clauses]:
        """Return clauses with attributes named as the answer names them, whichever version's name was given."""
        aliases, shown = kind.normaliser.aliases, self.view.spec.attributes
        if all(c.head not in aliases and c.head not in shown for clauses in alternatives for c in clauses):
            return alternatives
        return [
            tuple(_renamed(c, lambda head: shown.get(n := aliases.get(head, head), n)) for c in cs)
            for cs in alternatives
        ]

    def _node(
        self, attrs: Mapping[str, Any], alternatives: Sequence[Clauses], is_collection: Any, members_of: Any
    ) -> Found:
        below: dict[str, list[Clauses]] = {}
        for clauses in alternatives:
            own, nested = split(clauses, is_collection)
            if not self.hold(own, attrs):
                continue
            if not nested:
                return None
            if len(nested) == 1:  # nothing is a member of two collections
                for plural, rest in nested.items():
                    below.setdefault(plural, []).append(rest)
        picked = Picked()
        for plural, rests in below.items():
            members = members_of(plural, rests)
            if members:
                picked.members[plural] = members
                picked.queries[plural] = query(rests)
        return picked if picked.members else MISS

    # ---- candidates

    def candidates(
        self, group: GroupType, kind: ResourceType, path: str, alternatives: Sequence[Clauses]
    ) -> Iterator[tuple[EntityRow, EntityRow | None]]:
        """Return the resources that may match: those the index knows of, or all."""
        typename = f"{group.plural}/{kind.plural}"
        indexed = [self._indexed(typename, kind, path, clauses) for clauses in alternatives]
        db = self.view.db
        low, high = rows.range_of(rows.RESOURCE, path)
        self.partial = all(keys is not None for keys in indexed)
        if not self.partial:
            yield from map(pair, rows.in_batches(db, rows.SELECT_RESOURCES, (low, high)))
            return
        shown = db.execute("SELECT key FROM entities WHERE xref IS NOT NULL AND key > ? AND key < ?", (low, high))
        ordered = sorted({key for keys in indexed if keys for key in keys} | {key for (key,) in shown})
        for start in range(0, len(ordered), _CHUNK):
            chunk = ordered[start : start + _CHUNK]
            marks = ", ".join("?" * len(chunk))
            yield from map(pair, db.execute(rows.SELECT_RESOURCES_IN.format(marks), tuple(chunk)))

    def _indexed(self, typename: str, kind: ResourceType, path: str, clauses: Clauses) -> set[str] | None:
        """Return the keys of resources of which some version may satisfy a clause, or None where no index helps."""
        best: set[str] | None = None
        low, high = rows.range_of(rows.VERSION, path)
        for clause in clauses:
            number = _index_term(typename, _canonical(kind, clause))
            if number is None:
                continue
            found = {
                key[: key.rindex("/versions/")].replace(rows.VERSION, rows.RESOURCE, 1)
                for key in rows.find_candidates(self.view.db, number, low, high)
            }
            best = found if best is None else best & found
        return best


def _canonical(kind: ResourceType, clause: Clause) -> Clause:
    """Return a clause about a version as the index has it: without `versions`, in canonical spelling."""
    if clause.head == "versions":
        clause = clause.tail()
    aliases = kind.normaliser.aliases
    return _renamed(clause, lambda head: aliases.get(head, head))


def _renamed(clause: Clause, name: Callable[[str], str]) -> Clause:
    head = clause.head
    return clause if head is None or name(head) == head else replace(clause, path=(name(head), *clause.path[1:]))


def _keep(left: dict[str, Picked | None], row: EntityRow, found: Found) -> None:
    if found is not MISS:
        left[row.xid.rpartition("/")[2]] = found  # type: ignore[assignment]


def refuse_arrays(wanted: Filter, model: Model, target: RequestTarget, subject: str) -> Filter:
    """Refuse a clause that, by the model, can only take an array, a map or an object for one value.

    Return the filter with those clauses watched whose path may lead to one, as what is stored tells.
    """
    alternatives = tuple(
        tuple(_watched(clause, model, target, subject) for clause in clauses) for clauses in wanted.alternatives
    )
    return replace(wanted, alternatives=alternatives)


def _watched(clause: Clause, model: Model, target: RequestTarget, subject: str) -> Clause:
    level, path = _level_of(clause.path, model, target)
    if clause.compares and clause.path and not path:
        raise clause.refused_whole(subject)
    above = len(clause.path) - len(path)
    several: dict[int, Any] = {}  # what the path may take for one value, by the model: an example by its place
    definitions = list(_named(level.attributes, path[0])) if path else []
    for place, step in enumerate(path[1:], above + 1):
        for attribute in definitions:
            if _takes_for_one(attribute, step):
                several.setdefault(place, _example(attribute))
        definitions = [inner for attribute in definitions for inner in _below(attribute, step)]
    unsure = any(attribute.type == "any" for attribute in definitions)
    if clause.compares:
        for attribute in definitions:
            if attribute.type in _SEVERAL:
                several.setdefault(len(clause.path), _example(attribute))
        definitions = [attribute for attribute in definitions if attribute.type not in _SEVERAL]
    if several and not definitions:
        raise clause.refused(min(several), subject, several[min(several)])
    return replace(clause, watched=bool(several) or unsure)


_SEVERAL = frozenset({"array", "map", "object"})


def _example(attribute: Attribute) -> Any:
    """A value of an attribute's type, as far as it tells of arrays, maps and objects."""
    if attribute.type == "array":
        return [_example(attribute.item)] if attribute.item is not None else []
    return {} if attribute.type in _SEVERAL else ""


def _takes_for_one(attribute: Attribute, step: Step) -> bool:
    return attribute.type == "array" and (isinstance(step, str) or step is Wild.MEMBERS)


def _below(attribute: Attribute, step: Step) -> Iterator[Attribute]:
    """What a step below an attribute may be by the model; an attribute of any type has more such below it."""
    if attribute.type == "any":
        yield attribute
    elif attribute.type == "object":
        yield from _named(attribute.attributes, step)
    elif attribute.item is not None and (attribute.type == "array") is (isinstance(step, int) or step is Wild.ITEMS):
        yield attribute.item


def _named(attributes: Attributes, step: Step) -> Iterator[Attribute]:
    """The definitions that a member may have: its own, those that `ifvalues` bring, and that of an extension."""
    if isinstance(step, str) and step in attributes:
        yield attributes[step]
    elif isinstance(step, str) and "*" in attributes:
        yield attributes["*"]
    elif step is Wild.MEMBERS:
        yield from attributes.values()
    for attribute in attributes.values():
        for siblings in attribute.ifvalues.values():
            yield from _named(siblings, step)


def _level_of(path: Path, model: Model, target: RequestTarget) -> tuple[Level, Path]:
    """What a path's first attribute is looked up in, and the path from there on."""
    group, resource = target.group, target.resource
    if group is None and path and path[0] in model.groups:
        group, path = model.groups[str(path[0])], path[1:]
    elif group is None:
        return model.level, path
    if resource is None and path and path[0] in group.resources:
        resource, path = group.resources[str(path[0])], path[1:]
    elif resource is None:
        return group.level, path
    if path and path[0] == "meta":
        return resource.meta_level, path[1:]
    return resource.version_level, path[1:] if path and path[0] == "versions" else path


def _index_term(type_: str, clause: Clause) -> int | None:
    """Return the number to look a clause up by; None where no index helps."""
    wanted = clause.index_term()
    if wanted is None or clause.head in rows.OWN_COLUMNS or wanted[1] in rows.BOOLEAN_TEXTS:
        return None
    if not rows.UNINDEXED.isdisjoint(step for step in clause.path if isinstance(step, str)):
        return None
    return rows.term_number(type_, *wanted)


# Many entities as JSON text, in few statements: what a catalog is compiled of.
#
# Rule 1: entities are read by ranges of keys or by lists of keys, a bounded number at a time, within one transaction.
# How many statements that takes grows with the number of pages, not of entities.
# Rule 2: an entity is what its author said of it: a group its attributes, a resource its `meta` and its versions with
# their documents. What a server adds (addresses, epochs, times, counts) is left out.
# Rule 3: names and shapes are those that are stored, the canonical ones.


_PAGE = 200
# So many versions, of resources that have several, are read at once, and so many bytes of documents.
_VERSIONS = 500
_BYTES = 4 << 20
_FEW_RANGES = 50

_GROUP = "SELECT key, xid, doc FROM entities"
_RESOURCE = (
    "SELECT r.key, r.xid, r.type, r.link, r.xref, r.size, v.xid, v.form, v.doc, length(v.content)"
    " FROM entities r LEFT JOIN entities v ON v.key = r.link"
)
_VERSION = "SELECT key, xid, form, doc, length(content) FROM entities"
_GROUPS = f"{_GROUP} WHERE key > ? AND key < ? ORDER BY key"
_GROUPS_IN = f"{_GROUP} WHERE key IN ({{}})"
_RESOURCES = f"{_RESOURCE} WHERE r.key > ? AND r.key < ? ORDER BY r.key"
_RESOURCES_IN = f"{_RESOURCE} WHERE r.key IN ({{}})"
_VERSIONS_OF_ONE = f"{_VERSION} WHERE key > ? AND key < ? ORDER BY key"
_VERSIONS_OF_SOME = f"{_VERSION} WHERE {{}} ORDER BY key"
_CONTENTS = "SELECT key, content FROM entities WHERE key IN ({})"

Entry = tuple[str, str]
Row = tuple[Any, ...]


def all_of(db: Connection, kind: GroupType, resources: str) -> Iterator[Entry]:
    """Yield every group of a type, then every resource of one type in them: its xid and its JSON text."""
    for _, xid, doc in rows.in_batches(db, _GROUPS, rows.range_of(rows.GROUP, f"/{kind.plural}")):
        yield xid, doc
    resource = kind.resources.get(resources)
    if resource is None:
        return
    type_ = f"{kind.plural}/{resources}"
    found = rows.in_batches(db, _RESOURCES, rows.range_of(rows.RESOURCE, f"/{kind.plural}"))
    while page := list(islice(found, _PAGE)):
        yield from _resources(db, resource, [row for row in page if row[2] == type_])


def some_groups(db: Connection, xids: Iterable[str]) -> Iterator[Entry]:
    """Yield those of some groups that are there."""
    for _, xid, doc in _by_keys(db, _GROUPS_IN, rows.group_key, xids):
        yield xid, doc


def some_resources(db: Connection, kind: ResourceType, xids: Iterable[str]) -> Iterator[Entry]:
    """Yield those of some resources, which are of one type, that are there."""
    found = _by_keys(db, _RESOURCES_IN, rows.resource_key, xids)
    while page := list(islice(found, _PAGE)):
        yield from _resources(db, kind, page)


def _by_keys(db: Connection, select: str, key_of: Callable[[str], str], xids: Iterable[str]) -> Iterator[Row]:
    wanted = frozenset(xids)
    keys = sorted(set(map(key_of, wanted)))
    for start in range(0, len(keys), _PAGE):
        chunk = tuple(keys[start : start + _PAGE])
        for row in db.execute(select.format(", ".join("?" * len(chunk))), chunk):
            if row[1] in wanted:  # ids are found without regard to case, and named with it
                yield row


def _resources(db: Connection, kind: ResourceType, page: Sequence[Row]) -> Iterator[Entry]:
    """Yield the resources of a page."""
    several = [(row[1], row[5]) for row in page if row[4] is None and row[5] > 1]
    versions: dict[str, list[Row]] = {}
    for _, xid, _, link, xref, size, default, form, doc, length in page:
        if xref is None and size <= 1 and default is not None:
            versions[xid] = [(link, default, form, doc, length)]
    for xid, row in _versions(db, several):
        versions.setdefault(xid, []).append(row)
    contents = _Contents(db, kind, versions.values())
    for row in page:
        xid, link, xref, default = row[1], row[3], row[4], row[6]
        if xref is not None:
            yield xid, f'{{"meta":{{"xref":"{xref}"}}}}'
            continue
        chosen = (default or link or "").rpartition("/")[2]
        shown = ",".join(f'"{one[1].rpartition("/")[2]}":{contents.shown(one)}' for one in versions.get(xid, ()))
        yield xid, f'{{"meta":{{"defaultversionid":"{chosen}"}},"versions":{{{shown}}}}}'


def _versions(db: Connection, several: Sequence[tuple[str, int]]) -> Iterator[tuple[str, Row]]:
    """Yield the versions of resources that have several, given by their xids and how many those are."""
    few: list[str] = []
    count = 0
    for xid, size in several:
        if size > _VERSIONS:
            found = rows.in_batches(db, _VERSIONS_OF_ONE, rows.range_of(rows.VERSION, f"{xid}/versions"))
            yield from ((xid, row) for row in found)
            continue
        few.append(xid)
        count += size
        if count > _VERSIONS or len(few) == _FEW_RANGES:
            yield from _versions_of(db, few)
            few, count = [], 0
    if few:
        yield from _versions_of(db, few)


def _versions_of(db: Connection, xids: Sequence[str]) -> Iterator[tuple[str, Row]]:
    ranges = [rows.range_of(rows.VERSION, f"{xid}/versions") for xid in xids]
    select = _VERSIONS_OF_SOME.format(" OR ".join("(key > ? AND key < ?)" for _ in ranges))
    owners = {low: xid for (low, _), xid in zip(ranges, xids, strict=True)}
    for row in db.execute(select, tuple(bound for bounds in ranges for bound in bounds)):
        yield owners[f"{row[0].rpartition('/')[0]}/"], row


class _Contents:
    """The documents of versions, read ahead of those that are shown next, in the order in which they are shown."""

    def __init__(self, db: Connection, kind: ResourceType, versions: Iterable[list[Row]]) -> None:
        self._db = db
        self._kind = kind
        self._waiting = [(row[0], row[4]) for held in versions for row in held if row[4] is not None]
        self._waiting.reverse()
        self._read: dict[str, bytes] = {}

    def shown(self, version: Row) -> str:
        """Return a version as JSON text."""
        key, _, form, doc, length = version
        if length is None:
            return str(doc)
        content = self._taken(key)
        attrs = orjson.loads(doc)
        if document_names(self._kind)[1] in attrs:
            return str(doc)
        member = render_document(self._kind, attrs.get("contenttype"), form, content, False)
        return f"{{{member}}}" if doc == "{}" else f"{doc[:-1]},{member}}}"

    def _taken(self, key: str) -> bytes:
        while key not in self._read:
            chunk: list[str] = []
            size = 0
            while self._waiting and size < _BYTES:
                one, length = self._waiting.pop()
                chunk.append(one)
                size += length
            select = _CONTENTS.format(", ".join("?" * len(chunk)))
            self._read |= {one: bytes(content) for one, content in self._db.execute(select, tuple(chunk))}
        return self._read.pop(key)
