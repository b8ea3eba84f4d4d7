"""Groups, definitions and versions as the 0.1 catalog shows them, and how it asks the registry for them.

Rule 1: what is shown of a definition is a snapshot: its number is its version, its time the version's.
Rule 2: what is common to all versions, the documentation, is that of the newest, whichever version is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

import orjson

from signalbook.dialects.catalog01_documents import (
    TAGS_LABEL,
    can_be_label,
    common_format,
    format_of,
    with_common,
    write_definition,
    write_group,
    write_lone,
)
from signalbook.dialects.rows import from_id, to_id
from signalbook.errors import RegistryError
from signalbook.jsontext import Json
from signalbook.model.xids import kept_of
from signalbook.registry import changes
from signalbook.registry.changes import Snapshot
from signalbook.registry.read.reads import Page
from signalbook.registry.requests import Requests, newest_snapshot, with_log
from signalbook.registry.store import Connection
from signalbook.registry.urls import Flags, parse_flags
from signalbook.replication.links import home_of
from signalbook.server.http import Request
from signalbook.spec.dialects import DIALECTS

__all__ = ["FILTERS", "Catalog01View", "definition_path", "definition_xid", "version_uri"]

DIALECT = DIALECTS["0.1"]
ROOT = "/messagecatalog"
GROUPS = "/messagegroups"

# What a listing can be filtered by, and the attribute that it is in the registry; a tag is a label.
FILTERS: Mapping[str, str] = {
    "id": "id",
    "description": "description",
    "tags": "labels",
    "authority": "authority",
    "relatedto": "relatedto",
    "relatedvia": "relatedvia",
    "relation": "relation",
}
_PAGING = ("limit", "page")
_GIVEN = ("version", "createdtimeutc", "updatedtimeutc")


class Catalog01View:
    """Reads of one registry in the words of 0.1, within a transaction that is open."""

    def __init__(self, requests: Requests, request: Request) -> None:
        self._requests = requests
        self._request = request

    # ---- groups

    def groups(self, db: Connection) -> tuple[list[Json], Page]:
        """The groups that the request asks for, without their definitions, and the page they are on."""
        page = self._page(db, GROUPS, self._flags("messagegroupid"))
        found = [
            self._shown_group(key, group, self.format(db, group)) for key, group in orjson.loads(page.text).items()
        ]
        return self._tagged(found), page

    def group(self, db: Connection, groupid: str) -> Json:
        """A group with its definitions, each with all its versions (sections 2.1 and 2.2)."""
        group = self.find_group(db, groupid)
        form = self.format(db, group)
        room, definitions = self._requests.limits.size, []
        for entity in self._all(db, f"{GROUPS}/{groupid}/messages"):
            definitions.append(self._embedded(db, group, entity, form))
            room -= len(orjson.dumps(definitions[-1]))
            if room < 0:
                raise RegistryError("too_large", self._request.path)
        return {**self._shown_group(groupid, group, form), "definitions": definitions}

    def _embedded(self, db: Connection, group: Json, entity: Json, form: str) -> Json:
        xid = definition_xid(group["messagegroupid"], entity["messageid"])
        return write_definition(entity["messageid"], with_log(db, xid, entity), DIALECT, [], "", group, form)

    def format(self, db: Connection, group: Json) -> str:
        """The format of a group, which all its definitions are shown in."""
        own = format_of(group, DIALECT, {})
        xid = f"{GROUPS}/{group['messagegroupid']}"
        known = DIALECT.formats.get(own)
        if known is not None and group.get("envelope"):
            return own  # the registry sees to it that its messages have it too
        if group.get("protocol") and next(changes.said_below(db, xid, '"envelope":'), None) is None:
            return own
        return common_format(group, changes.said_below(db, xid), DIALECT)

    def find_group(self, db: Connection, groupid: str) -> Json:
        """The group as the registry has it; raises `not_found`."""
        found: Json = orjson.loads(self._page(db, f"{GROUPS}/{groupid}", Flags.EMPTY).text)
        return found

    def says_the_same(self, groupid: str, known: Json, before: str, group: Json, form: str) -> bool:
        """Whether a group that was sent says of itself what the one that is known says."""
        own = {"messagegroupid": groupid}
        told = [self._shown_group(groupid, {**one, **own}, of) for one, of in ((known, before), (group, form))]
        return _untimed(told[0]) == _untimed(told[1])

    def _shown_group(self, groupid: str, group: Json, form: str) -> Json:
        own = {name: value for name, value in group.items() if name not in ("messages", "messagesurl")}
        shown = write_group(groupid, own, form, DIALECT, [])
        del shown["definitions"]
        return shown

    # ---- definitions

    def definitions(self, db: Connection, groupid: str) -> tuple[list[Json], Page]:
        """The definitions of a group that the request asks for, and the page they are on."""
        group = self.find_group(db, groupid)
        page = self._page(db, f"{GROUPS}/{groupid}/messages", self._flags("messageid"))
        form = self.format(db, group)
        found = [self._latest(db, group, entity, form) for entity in orjson.loads(page.text).values()]
        return self._tagged(found), page

    def latest(self, db: Connection, groupid: str, messageid: str) -> Json:
        """A definition in its newest version."""
        group = self.find_group(db, groupid)
        page = self._page(db, definition_xid(groupid, messageid), Flags.EMPTY)
        return self._latest(db, group, orjson.loads(page.text), self.format(db, group))

    def _latest(self, db: Connection, group: Json, entity: Json, form: str) -> Json:
        return shown_version(entity["messageid"], self._newest(db, group, entity), group, form)

    def _newest(self, db: Connection, group: Json, entity: Json) -> Snapshot:
        xid = definition_xid(group["messagegroupid"], entity["messageid"])
        return newest_snapshot(db, xid, entity)

    def related(self, db: Connection, groupid: str, messageid: str) -> list[str]:
        """The other definitions of the group that are related to one, the first page of them."""
        flags = Flags(filters=(f"relatedto={_escaped(from_id(messageid))}",), raw="filter")
        page = self._page(db, f"{GROUPS}/{groupid}/messages", flags)
        found = orjson.loads(page.text).values()
        return [
            from_id(entity["messageid"])
            for entity in found
            if entity["messageid"] != messageid and to_id(entity["relatedto"]) == messageid
        ]

    # ---- versions

    def versions(self, db: Connection, groupid: str, messageid: str) -> tuple[list[Json], Page]:
        """The versions of a definition, the oldest first, and the page they are on."""
        group = self.find_group(db, groupid)
        xid = definition_xid(groupid, messageid)
        self._page(db, xid, Flags.EMPTY)
        flags = self._flags("")
        most = min(flags.limit or self._requests.limits.page, self._requests.limits.page)
        after = _number(flags.page or "0", self._request.path)
        found = changes.listing(db, xid, after, most + 1)
        following = str(found[most - 1].number) if len(found) > most else ""
        form = self.format(db, group)
        if not found:
            return [], Page("", following)
        newest = self.latest(db, groupid, messageid)
        shown = [with_common(shown_version(messageid, one, group, form), newest) for one in found[:most]]
        return shown, Page("", following)

    def has_all(
        self, db: Connection, groupid: str, messageid: str, versions: Sequence[Json], group: Json, form: str
    ) -> bool:
        """Whether these versions are in a definition's log already, in this order, and the last is what holds now."""
        log = changes.listing(db, definition_xid(groupid, messageid), 0, 1 << 31)
        shown = _alike([shown_version(messageid, one, group, form) for one in log])
        given = _alike([shown_version(messageid, Snapshot(1, "", one), group, form) for one in versions])
        left = iter(shown)
        return all(one in left for one in given) and shown[-1] == given[-1]

    def version(self, db: Connection, groupid: str, messageid: str, number: str) -> Json:
        """One version of a definition."""
        group = self.find_group(db, groupid)
        self._page(db, definition_xid(groupid, messageid), Flags.EMPTY)
        found = changes.find(db, definition_xid(groupid, messageid), _number(number, self._request.path))
        if found is None:
            raise RegistryError("not_found", self._request.path)
        shown = shown_version(messageid, found, group, self.format(db, group))
        return with_common(shown, self.latest(db, groupid, messageid))

    # ---- by URI

    def by_uri(self, db: Connection, uri: str) -> Json:
        """The one version that a URI names (section 2.2.2); raises `not_found` where it names none, or several.

        The URI that a version has comes first; where a shorter one could mean several definitions, it names none.
        """
        implied = self._request.base + ROOT
        found: dict[tuple[str, int], tuple[str, Snapshot, Json]] = {}
        for reading in _readings(uri):
            for group, entity in self._candidates(db, reading.group, reading.id):
                version = self._named(db, group, entity, reading.number)
                if version is not None and _authority(version.attrs, implied) == reading.authority:
                    xid = definition_xid(group["messagegroupid"], entity["messageid"])
                    found[xid, version.number] = (entity["messageid"], version, group)
            if found and reading.is_whole:
                break
        if len(found) != 1:
            detail = (
                f"Several definitions could be meant: {', '.join(sorted(xid for xid, _ in found))}." if found else ""
            )
            raise RegistryError("not_found", uri, detail=detail)
        ((messageid, version, group),) = found.values()
        shown = shown_version(messageid, version, group, self.format(db, group))
        return with_common(shown, self.latest(db, group["messagegroupid"], messageid))

    def _named(self, db: Connection, group: Json, entity: Json, number: str | None) -> Snapshot | None:
        """The version of a number, with the authority that it was written with, or the newest."""
        if number is None:
            return self._newest(db, group, entity)
        if not _is_number(number):
            return None
        return changes.find(db, definition_xid(group["messagegroupid"], entity["messageid"]), int(number))

    def _candidates(self, db: Connection, groupid: str | None, messageid: str) -> list[tuple[Json, Json]]:
        """The definitions that have this id at their owner, in that group where one is named."""
        ids = (_escaped(messageid), f"{_escaped(messageid)}~*")  # itself, and what is kept beside it
        flags = Flags(filters=tuple(f"messages.messageid={one}" for one in ids), inline=("messages",), raw="filter")
        found = orjson.loads(self._page(db, GROUPS, flags).text)
        candidates = [
            (group, entity)
            for group in found.values()
            for entity in (group.get("messages") or {}).values()
            if messageid in (entity["messageid"], kept_of(entity["messageid"]))
        ]
        homes = [self.home(db, group["messagegroupid"], entity["messageid"]) for group, entity in candidates]
        named = f"/messages/{messageid}" if groupid is None else definition_xid(groupid, messageid)
        return [one for one, home in zip(candidates, homes, strict=True) if home.endswith(named)]

    def home(self, db: Connection, groupid: str, messageid: str) -> str:
        """What a definition is called at its owner, which its URIs are made of."""
        return home_of(db, definition_xid(groupid, messageid))

    # ---- asking

    def _page(self, db: Connection, path: str, flags: Flags) -> Page:
        try:
            page = self._requests.read_in(db, path, flags, self._request.base).page
        except RegistryError as error:
            if error.name != "not_found":
                raise
            raise RegistryError("not_found", self._request.path) from None
        assert page is not None
        return page

    def _all(self, db: Connection, path: str) -> Iterator[Json]:
        """Every member of a collection, read in pages; raises where that is more than one answer may hold."""
        room, following = self._requests.limits.size, ""
        while True:
            page = self._page(db, path, Flags(page=following or None, raw="page"))
            room -= len(page.text)
            if room < 0:
                raise RegistryError("too_large", self._request.path)
            yield from orjson.loads(page.text).values()
            following = page.next
            if not following:
                return

    def _flags(self, id_attribute: str) -> Flags:
        """The flags of a listing: the part of it that is asked for, and what its members have to have."""
        pairs = parse_qsl(self._request.query, keep_blank_values=True)
        paging = "&".join(f"{name}={quote(text)}" for name, text in pairs if name in _PAGING)
        clauses = []
        for name, text in pairs:
            if name in _PAGING:
                continue
            if name not in FILTERS or not id_attribute:
                raise RegistryError("bad_flag", self._request.path, flag=name)
            clauses.append(_clause(name, text, id_attribute))
        flags = parse_flags(paging, path=self._request.path)
        filters = (",".join(clauses),) if clauses else ()
        return Flags(limit=flags.limit, page=flags.page, filters=filters, raw=self._request.query)

    def _tagged(self, shown: list[Json]) -> list[Json]:
        """Those of a page that show each tag the request asks for: what the registry finds may only contain it."""
        wanted = {text for name, text in parse_qsl(self._request.query, keep_blank_values=True) if name == "tags"}
        if not wanted:
            return shown
        return [one for one in shown if wanted <= {tag.strip() for tag in str(one.get("tags", "")).split(",")}]


def _clause(name: str, text: str, id_attribute: str) -> str:
    if name == "id":
        return f"{id_attribute}={_escaped(to_id(text))}"
    if name == "tags":  # one that cannot be a label's name is held with all the others in one label
        return f"labels['{text}']" if can_be_label(text) else f"labels['{TAGS_LABEL}']=*{_escaped(text)}*"
    return f"{FILTERS[name]}={_escaped(text)}"


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "*,\\" else character for character in text)


def _number(text: str, path: str) -> int:
    if not _is_number(text):
        raise RegistryError("not_found", path)
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def shown_version(messageid: str, snapshot: Snapshot, group: Json, form: str) -> Json:
    """A definition version as a document of its own, in its group's format."""
    numbered = {**snapshot.attrs, "versionid": str(snapshot.number), "createdat": snapshot.at}
    return write_lone(messageid, numbered, DIALECT, [], "", group, form)


def _alike(versions: Sequence[Json]) -> list[Json]:
    """What was said of each version, with what is common to all as the last has it."""
    return [_untimed(with_common(one, versions[-1])) for one in versions]


def _untimed(shown: Json) -> Json:
    """What was said of an entity, without what the catalog gives it."""
    return {name: value for name, value in shown.items() if name not in _GIVEN}


def definition_xid(groupid: str, messageid: str) -> str:
    """Where the registry has a definition."""
    return f"{GROUPS}/{groupid}/messages/{messageid}"


def definition_path(groupid: str, messageid: str, number: int | None = None) -> str:
    """Where the 0.1 catalog has a definition, or one of its versions."""
    path = f"{ROOT}/{from_id(groupid)}/messagedefinitions/{from_id(messageid)}"
    return path if number is None else f"{path}/versions/{number}"


def version_uri(authority: str, groupid: str, messageid: str, number: int) -> str:
    """The URI of a version: the authority as its base, and what identifies the version there."""
    if authority.lower().startswith("urn:"):
        return f"{authority}:{from_id(groupid)}:{from_id(messageid)}:{number}"
    return authority.rstrip("/") + definition_path(groupid, messageid, number)[len(ROOT) :]


def _authority(entity: Json, implied: str) -> str:
    return str(entity.get("authority") or implied).rstrip("/")


@dataclass(frozen=True, slots=True)
class _UriReading:
    """What a URI may mean; `is_whole` where it says all that the URI of a version says."""

    group: str | None
    id: str
    number: str | None
    authority: str

    @property
    def is_whole(self) -> bool:
        return self.group is not None and self.number is not None


def _readings(uri: str) -> list[_UriReading]:
    """What a URI may mean, the most exact first."""
    found: list[_UriReading] = []
    separator = ":" if uri.lower().startswith("urn:") else "/"
    parts = uri.rstrip("/").split(separator)
    words = [] if separator == ":" else ["messagedefinitions", "versions"]
    for shape in _SHAPES[separator]:
        count = len(shape)
        if len(parts) <= count:
            continue
        tail = parts[-count:]
        if any(want in words and want != got for want, got in zip(shape, tail, strict=True)):
            continue
        named = dict(zip(shape, tail, strict=True))
        authority = separator.join(parts[:-count]).rstrip("/")
        group = to_id(named["group"]) if "group" in named else None
        found.append(_UriReading(group, to_id(named["id"]), named.get("number"), authority))
    return found


_SHAPES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "/": (
        ("group", "messagedefinitions", "id", "versions", "number"),
        ("group", "messagedefinitions", "id"),
        ("id", "versions", "number"),
        ("id",),
    ),
    ":": (("group", "id", "number"), ("group", "id"), ("id", "number"), ("id",)),
}
