"""Answering GET: one entity, a collection, or the registry's own documents, with every flag that shapes an answer.

Rule 1: all of an answer comes from one snapshot of the store.
Rule 2: what may be large is given piece by piece where the reader asks for that (`ReadContext.piecewise`); its pieces
are made in the snapshot, so whoever takes them does so within it.
Rule 3: a page of a plain collection is a range of keys; sorting and filtering look at what they must, then page.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import orjson

from signalbook.budget import current
from signalbook.errors import RegistryError
from signalbook.registry import filters, rows, urls
from signalbook.registry.capabilities import Setup
from signalbook.registry.filters import Filter, collated
from signalbook.registry.read.queries import MISS, Search, refuse_arrays
from signalbook.registry.read.render import Limits, Picked, ReadContext, View, pair
from signalbook.registry.rows import EntityRow
from signalbook.registry.urls import (
    COLLECTIONS,
    Flags,
    InlineSet,
    Path,
    PathError,
    RequestTarget,
    Wild,
    parse_path,
    values_at,
)

__all__ = ["MAX_TEXT", "Key", "Limits", "Page", "Sort", "parse", "read_target", "refuse_collections"]

# The `sort` flag: the order of a collection's entities.
#
# Rule 1: every order is total and repeatable: entities with the same value follow their ids in the same direction
# (SORT-3, SORT-5).
# Rule 2: an entity without a value comes lowest; values of different types come in the order boolean, number, text.


MAX_TEXT = 1024
Key: TypeAlias = tuple[int, Any]
Attrs = TypeVar("Attrs", bound=Mapping[str, Any])

_DIRECTIONS: Mapping[str, bool] = {"": False, "asc": False, "desc": True}
_MISSING: Key = (0, 0)


@dataclass(frozen=True, slots=True)
class Sort:
    """An attribute to sort on, and the direction."""

    path: Path
    descending: bool = False

    def key(self, id_: str, attrs: Mapping[str, Any]) -> tuple[Key, tuple[str, str], str]:
        """What to compare one entity by, lowest first."""
        return _rank(next(values_at(self.path, attrs), None)), collated(id_), id_

    def sorted(self, items: Iterable[tuple[str, Attrs]]) -> list[tuple[str, Attrs]]:
        """The (id, attributes) pairs in order, whatever order they came in."""
        return sorted(items, key=lambda item: self.key(*item), reverse=self.descending)


def _rank(value: Any) -> Key:
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    return (3, collated(value)) if isinstance(value, str) else _MISSING


def parse(text: str, subject: str, collections: Container[str] = ()) -> Sort:
    """The order that `text` (`ATTRIBUTE[=asc|desc]`) asks for; `collections` are names it must not lead into."""
    name, sign, direction = text.partition("=")
    if len(text) > MAX_TEXT:
        raise _bad(subject, text[:60] + "...", f"longer than {MAX_TEXT} characters")
    if direction not in _DIRECTIONS or (sign and not direction):
        raise _bad(subject, text, f'the order is "asc" or "desc", not "{direction}"')
    try:
        path = parse_path(name)
    except PathError as error:
        raise _bad(subject, text, str(error)) from None
    if any(isinstance(step, Wild) for step in path):
        raise _bad(subject, text, "a wildcard leads to more than one value")
    if path[0] in collections:
        raise _bad(subject, text, f'"{path[0]}" is a collection, not an attribute')
    return Sort(path, _DIRECTIONS[direction])


def _bad(subject: str, value: str, detail: str) -> RegistryError:
    return RegistryError("bad_sort", subject, value=value, error_detail=detail)


@dataclass(frozen=True, slots=True)
class Page:
    """An answer's JSON text; for a part of a collection where the next part begins, and how many there are.

    With `pieces`, which can be taken once and within the transaction, there is no text.
    """

    text: str
    next: str = ""
    count: int | None = None
    pieces: Iterator[str] | None = None


def refuse_collections(target: RequestTarget, flags: Flags) -> None:
    """Refuse `?collections` where it means nothing: FLAGS-3."""
    if flags.collections and target.kind not in ("registry", "group"):
        raise RegistryError("bad_flag", target.path, flag="collections")


def read_target(context: ReadContext) -> Page:
    """Return the answer to a GET."""
    setup, target, flags, limits, view = context.setup, context.target, context.flags, context.limits, context.view()
    refuse_collections(target, flags)
    if flags.sort is not None and target.kind not in COLLECTIONS:
        raise RegistryError("sort_noncollection", view.subject)
    inline = urls.parse_inline(flags.inline, _shape(setup, target), view.subject)
    if target.kind in ("registry", "export"):
        _check_available(setup, inline)
    wanted = filters.parse(flags.filters, view.subject)
    wanted = refuse_arrays(wanted, setup.model, target, view.subject)
    if not setup.capabilities.pagination:  # nobody could ask for the rest, so there is none: it is all or `too_large`
        limits = replace(limits, page=1 << 62)
    return _READERS[target.kind](_Reading(view, target, flags, inline, wanted, limits, context.piecewise))


def _check_available(setup: Setup, inline: InlineSet) -> None:
    """Refuse to inline a kind of data that the registry does not give out: CAP-3."""
    for name in sorted(urls.CONFIGURATION):
        if inline.child(name) is not None and name not in setup.capabilities.available:
            raise RegistryError("not_available", name)


def _shape(setup: Setup, target: RequestTarget) -> urls.InlineShape:
    if target.kind in ("registry", "export"):
        return setup.shape
    if target.kind in ("groups", "group"):
        return urls.group_shape(target.group_type)
    if target.kind in ("resources", "resource"):
        return urls.resource_shape(target.resource_type)
    return urls.META if target.kind == "meta" else urls.version_shape(target.resource_type)


@dataclass(slots=True)
class _Reading:
    view: View
    target: RequestTarget
    flags: Flags
    inline: InlineSet
    wanted: Filter
    limits: Limits
    piecewise: bool = False

    def page(self, pieces: Iterator[str], following: str = "", count: int | None = None) -> Page:
        """Return the page that has these pieces, joined unless they are asked for."""
        if self.piecewise:
            return Page("", following, count, pieces)
        return Page("".join(pieces), following, count)

    def search(self) -> Search:
        return Search(self.view, current().part(self.limits.filtering, "The filter"))

    def missing(self, xid: str) -> RegistryError:
        return RegistryError("not_found", xid)

    def row(self, kind: str, xid: str) -> EntityRow:
        """Return the row of an entity that has to be there, in exactly this spelling."""
        row = rows.load(self.view.db, kind + xid.lower())
        if row is None or row.xid != xid:
            raise self.missing(xid)
        return row

    def picked(self, find: Callable[[Search, Sequence[filters.Clauses]], object]) -> Picked | None:
        """Return what the filters leave of the entity asked for, which is an error where that is nothing: FILTER-9."""
        if not self.wanted:
            return None
        search = self.search()
        found = MISS if self.wanted.excludeall else search.check(find(search, self.wanted.alternatives))
        if found is MISS:
            raise self.missing(self.target.path)
        return found  # type: ignore[return-value]

    def members(
        self, find: Callable[[Search, Sequence[filters.Clauses]], dict[str, Picked | None]]
    ) -> dict[str, Picked | None]:
        """Return what the filters leave of the collection asked for."""
        search = self.search()
        found = {} if self.wanted.excludeall else find(search, self.wanted.alternatives)
        search.check(found)
        return found


# ---- single entities


def _read_registry(reading: _Reading) -> Page:
    row = reading.row("a", "/")
    picked = reading.picked(lambda search, alternatives: search.registry(row, alternatives))
    return reading.page(reading.view.registry(row, reading.inline, picked))


def _read_group(reading: _Reading) -> Page:
    kind = reading.target.group_type
    row = reading.row(rows.GROUP, reading.target.xid)
    picked = reading.picked(lambda search, alternatives: search.group(kind, row, alternatives))
    return reading.page(reading.view.show_group(kind, row, reading.inline, picked))


def _read_resource(reading: _Reading) -> Page:
    kind = reading.target.resource_type
    found = rows.load_resource(reading.view.db, rows.resource_key(reading.target.xid))
    if found is None or found[0].xid != reading.target.xid:
        raise reading.missing(reading.target.xid)
    picked = reading.picked(lambda search, alternatives: search.resource(kind, *found, alternatives))
    return reading.page(reading.view.show_resource(kind, *found, reading.inline, picked))


def _read_meta(reading: _Reading) -> Page:
    kind = reading.target.resource_type
    xid = reading.target.resource_xid
    row = rows.load(reading.view.db, rows.resource_key(xid))
    if row is None or row.xid != xid:
        raise reading.missing(reading.target.xid)
    found = reading.view.target(row)
    text = reading.view.meta(kind, row, found[0] if found else None)
    if reading.wanted:
        attrs = orjson.loads(text)
        reading.picked(lambda search, all_: None if any(search.hold(clauses, attrs) for clauses in all_) else MISS)
    return Page(text)


def _resource_of(reading: _Reading, missing: str) -> tuple[EntityRow, EntityRow]:
    """Return the resource that owns the versions asked for, and the one that really has them."""
    xid = reading.target.resource_xid
    row = rows.load(reading.view.db, rows.resource_key(xid))
    if row is None or row.xid != xid:
        raise reading.missing(missing)
    if reading.view.doc and row.xref is not None:
        raise RegistryError("cannot_doc_xref", reading.target.xid)
    found = reading.view.target(row)
    if found is None:
        raise reading.missing(missing)
    return row, found[0]


def _read_version(reading: _Reading) -> Page:
    target = reading.target
    row, real = _resource_of(reading, target.xid)
    version = rows.load(reading.view.db, rows.version_key(real.xid, target.vid))
    if version is None or version.xid.rpartition("/")[2] != target.vid:
        raise reading.missing(target.xid)
    kind = target.resource_type
    reading.picked(lambda search, alternatives: search.version(kind, row, real, version, alternatives))
    return Page(reading.view.version(kind, row, real, version, reading.inline))


# ---- collections


@dataclass(frozen=True, slots=True)
class _Collection:
    """A collection to show: the range of its rows, those that a filter left (None without one), how they are shown."""

    letter: str
    path: str
    members: Mapping[str, Any] | None
    show: Callable[[Iterable[tuple[Any, ...]]], Iterator[str]]
    select: str
    total: Callable[[], int]


def _read_groups(reading: _Reading) -> Page:
    kind, view = reading.target.group_type, reading.view
    members = None
    if reading.wanted:
        members = reading.members(lambda search, alternatives: search.groups(kind, alternatives))
    shown = _Collection(
        rows.GROUP,
        reading.target.xid,
        members,
        show=lambda found: view.show_groups(kind, (EntityRow(*one) for one in found), reading.inline, members),
        select=rows.SELECT_RANGE,
        total=lambda: orjson.loads(reading.row("a", "/").counts).get(kind.plural, 0),
    )
    return _read_page(reading, shown)


def _read_resources(reading: _Reading) -> Page:
    target, view = reading.target, reading.view
    kind = target.resource_type
    group = rows.load(view.db, rows.group_key(target.group_xid))
    if group is None or group.xid != target.group_xid:
        raise reading.missing(target.group_xid)
    members = None
    if reading.wanted:
        members = reading.members(
            lambda search, alternatives: search.resources(target.group_type, kind, target.xid, alternatives)
        )
    counts = orjson.loads(group.counts)
    shown = _Collection(
        rows.RESOURCE,
        target.xid,
        members,
        show=lambda found: view.show_resources(kind, map(pair, found), reading.inline, members),
        select=rows.SELECT_RESOURCES,
        total=lambda: counts.get(kind.plural, 0),
    )
    return _read_page(reading, shown)


def _read_versions(reading: _Reading) -> Page:
    target, view = reading.target, reading.view
    kind = target.resource_type
    row, real = _resource_of(reading, target.resource_xid)
    members = None
    if reading.wanted:
        members = reading.members(lambda search, alternatives: search.versions(kind, row, alternatives))
    shown = _Collection(
        rows.VERSION,
        real.xid + "/versions",
        members,
        show=lambda found: view.show_versions(
            kind, row, real, (EntityRow(*one) for one in found), reading.inline, members
        ),
        select=rows.SELECT_RANGE,
        total=lambda: real.size,
    )
    return _read_page(reading, shown)


def _read_page(reading: _Reading, shown: _Collection) -> Page:
    """Return one page of a collection, in the order asked for."""
    limit = min(reading.flags.limit or reading.limits.page, reading.limits.page)
    db = reading.view.db
    if reading.flags.sort is not None:
        return _read_sorted_page(reading, shown, limit)
    after = _token(reading.flags.page, reading.view.subject)
    if shown.members is not None:
        return _read_filtered_page(reading, shown, shown.members, after, limit)
    bounds = rows.child_range(shown.letter, shown.path, after)
    following, count = "", None
    if after is not None or shown.total() > limit:
        behind = db.execute(f"{_NAMES} LIMIT 2 OFFSET ?", (*bounds, limit - 1))
        following = _name(_id_of(behind[0])) if len(behind) > 1 else ""
    if following or after or reading.flags.limit:
        count = shown.total()
    return reading.page(shown.show(rows.in_batches(db, shown.select, bounds, limit)), following, count)


_NAMES = "SELECT key, xid FROM entities WHERE key > ? AND key < ? ORDER BY key"


def _read_filtered_page(
    reading: _Reading, shown: _Collection, members: Mapping[str, Any], after: str | None, limit: int
) -> Page:
    """Return a page of the members that a filter left."""
    ids = sorted((id_ for id_ in members if after is None or id_.lower() > after.lower()), key=str.lower)
    chosen = ids[:limit]
    following = _name(chosen[-1]) if len(ids) > limit else ""
    return reading.page(_show_members(reading, shown, chosen), following, len(members))


def _show_members(reading: _Reading, shown: _Collection, ids: Sequence[str]) -> Iterator[str]:
    resources = shown.select is rows.SELECT_RESOURCES
    return shown.show(rows.each_member(reading.view.db, shown.letter, shown.path, ids, resources=resources))


def _read_sorted_page(reading: _Reading, shown: _Collection, limit: int) -> Page:
    """Return a page of a collection in the order of an attribute: SORT-1 to SORT-5."""
    target, members = reading.target, shown.members
    nested = {"groups": set(target.group_type.resources), "resources": {"versions"}}.get(target.kind, set())
    order = parse(reading.flags.sort or "", reading.view.subject, nested)
    ranked = []  # what is compared and no more, so that a large collection is not in memory
    for found in rows.in_batches(reading.view.db, shown.select, rows.child_range(shown.letter, shown.path, None)):
        id_ = _id_of(found)
        if members is None or id_ in members:
            entity = orjson.loads("".join(shown.show([found])))[id_]
            ranked.append(order.key(id_, entity))
    ids = [key[-1] for key in sorted(ranked, reverse=order.descending)]
    start = _offset(reading.flags.page, reading.view.subject)
    following = _name(str(start + limit)) if start + limit < len(ids) else ""
    return reading.page(_show_members(reading, shown, ids[start : start + limit]), following, len(ids))


def _id_of(found: tuple[Any, ...]) -> str:
    return str(found[1]).rpartition("/")[2]


# ---- pages are named by where they begin; clients pass the name back as it is


def _name(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _token(page: str | None, subject: str) -> str | None:
    if page is None:
        return None
    try:
        place = base64.urlsafe_b64decode(page + "=" * (-len(page) % 4)).decode()
    except (binascii.Error, ValueError):
        raise _bad_page(subject) from None
    if "\0" in place or _name(place) != page:
        raise _bad_page(subject)
    return place


def _offset(page: str | None, subject: str) -> int:
    text = _token(page, subject)
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise _bad_page(subject)
    return int(text)


def _bad_page(subject: str) -> RegistryError:
    return RegistryError("bad_request", subject, error_detail='the value of "page" was not issued by this server')


_READERS: Mapping[str, Callable[[_Reading], Page]] = {
    "registry": _read_registry,
    "export": _read_registry,
    "groups": _read_groups,
    "group": _read_group,
    "resources": _read_resources,
    "resource": _read_resource,
    "meta": _read_meta,
    "versions": _read_versions,
    "version": _read_version,
}
