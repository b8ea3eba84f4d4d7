"""Pushing to a catalog that speaks only the 0.1 message catalog API (seed 004, section 5.3).

Rule 1: such a catalog keeps no state of a replication: each run compares what is there with what there should be. A
definition there is the source's where its authority says so; what is another's is never changed, but reported
as a conflict.
Rule 2: versions are posted in their order and get the catalog's numbers; where one is not the source's, a note says so.
Rule 3: what was posted already is known by what it says: the definition, and of the latest the common attributes too.
Rule 4: deleted is what has the source's own authority and is not at the source; of another authority, what the source
had in an earlier run of this process, and, where it still states that authority, what its feed says was deleted. What
else has gone from the source stays, with a note: nothing says that it was the source's.
Rule 5: the API makes a definition's URI of the names that it has there. What its owner calls otherwise cannot keep its
owner's URI, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from signalbook.client import Client, RemoteError
from signalbook.dialects.catalog01_documents import (
    common_format,
    format_of,
    write_group,
    write_lone,
)
from signalbook.dialects.rows import from_id, to_id
from signalbook.errors import Problem, RegistryError
from signalbook.jsontext import Json
from signalbook.replication.catalog01 import (
    DIALECT,
    GROUPS,
    Catalog01,
    definition_path,
    group_path,
    without_assigned,
)
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.target import ReplicationReport
from signalbook.spec.dialects.v01 import GENERIC

__all__ = ["Catalog01Target"]

_COMMON = ("description", "tags", "documentation", "relatedto", "relatedvia", "relation", "labels")
_GROUP = ("description", "tags", "documentation", "labels")
_NOT_OFFERED_THERE = (404, 405, 501)
_REFERENCES = ("dataschemauri", "dataschemaxid")


class Catalog01Target:
    """One catalog of 0.1 and the replication that writes to it; what became of entries goes into `report`.

    `authority` returns the source's own. `earlier` reads more of a log at the source, `was_deleted` returns which of
    these xids the source's feed says were deleted. `pushed` has the authority of each definition, by its xid in lower
    case, that earlier runs found at the source and here as the source's; this run makes it anew.
    """

    def __init__(
        self, peer: Client, scope: ReplicationScope, report: ReplicationReport, authority: Callable[[], str],
        earlier: Callable[[str, int], Json | None], was_deleted: Callable[[set[str]], set[str]],
        pushed: dict[str, str],
    ) -> None:  # fmt: skip
        self._api = Catalog01(peer)
        self._peer = peer
        self._scope = scope
        self._report = report
        self._source_authority = authority
        self._earlier = earlier
        self._was_deleted = was_deleted
        self._pushed = pushed
        self._groups: dict[str, Json] = {}
        self._forms: dict[str, str] = {}
        self._there: dict[str, dict[str, Json]] = {}
        self._met: set[str] = set()
        self._ours: set[str] = set()
        self._stated: set[str] = set()
        self._differing: list[tuple[Json, str, Json, Json]] = []
        features = self._api.features()
        if features is not None and features.get("update") is not True:
            raise RemoteError(f"{peer.name} takes no changes: its features (OPTIONS) do not say 'update'", status=405)

    @property
    def _authority(self) -> str:
        return self._source_authority().rstrip("/")

    def write(self, entries: Iterable[Json]) -> None:
        """Make the catalog have what the source has, and not what it has no more."""
        waiting: list[tuple[Json, str]] = []
        undecided: dict[str, Json] = {}  # groups that get the format of their definitions
        held: list[Json] = []  # definitions of such a group
        for entry in entries:
            gid = _ids(entry["xid"])[0]
            if held and gid != _ids(held[0]["xid"])[0]:
                waiting += self._write_held(undecided, held)
                held = []
            self._met.add(entry["xid"].lower())
            if not self._is_definition(entry, undecided):
                continue
            if gid in undecided:
                held.append(entry)
            elif refused := self._try(entry):
                waiting.append((entry, refused))
        if held:
            waiting += self._write_held(undecided, held)
        for entry in undecided.values():
            self._write_group(entry, [])
        while waiting:  # one may be related to another that came later
            again = [(entry, refused) for entry, _ in waiting if (refused := self._try(entry))]
            if len(again) == len(waiting):
                break
            waiting = again
        for entry, refused in waiting:
            self._record(entry, "refused", refused)
        self._sweep()
        for differing in self._differing:
            self._update_group(*differing)

    def _is_definition(self, entry: Json, undecided: dict[str, Json]) -> bool:
        """Whether an entry is a definition to write; a group is written, or undecided, and the rest is reported."""
        if entry["body"] is None and not entry.get("flaw"):
            return False
        if not entry["xid"].startswith(f"{GROUPS}/"):
            self._record(entry, "unsupported")
        elif entry.get("flaw"):
            self._record(entry, "refused", entry["flaw"])
        elif entry["xid"].count("/") != 2:
            return True
        elif _has_format(entry["body"] or {}):
            self._write_group(entry, [])
        else:
            undecided[_ids(entry["xid"])[0]] = entry
        return False

    def _write_held(self, undecided: dict[str, Json], held: list[Json]) -> list[tuple[Json, str]]:
        """Write a group that gets its format by its definitions, and these; those that are refused, and why."""
        self._write_group(undecided.pop(_ids(held[0]["xid"])[0]), held)
        return [(entry, refused) for entry in held if (refused := self._try(entry))]

    def _record(self, entry: Json, outcome: str, detail: str = "") -> None:
        self._report.add([{"xid": entry["xid"], "source": entry["source"], "outcome": outcome, "detail": detail}])

    def _try(self, entry: Json) -> str:
        """Write a definition; in words why the catalog refuses it, where it does."""
        try:
            self._record(entry, *self._write_definition(entry))
        except RemoteError as error:
            if not 400 <= error.status < 500 or error.status in (401, 403):
                raise
            return str(error)
        except RegistryError as error:
            return str(error)
        return ""

    # ---- groups

    def _write_group(self, entry: Json, definitions: list[Json]) -> None:
        gid = _ids(entry["xid"])[0]
        body = entry["body"] or {}
        self._groups[gid] = body
        form = common_format(body, (said for one in definitions for said in _said(one)), DIALECT)
        self._forms[gid] = form
        wanted = write_group(to_id(gid), {**_client(body), "messages": {}}, form, DIALECT, [])
        wanted.pop("definitions", None)
        there = self._api.find(group_path(gid))
        if there is None:
            self._peer.request("PUT", group_path(gid), without_assigned(wanted))
            self._record(entry, "written")
            return
        if there.get("format") != form:
            words = f"the catalog's group has the format '{there.get('format')}', this one '{form}'"
            self._record(entry, "conflict", words)
        elif _agree(wanted, there, _GROUP):
            self._record(entry, "same")
        else:
            self._differing.append((entry, gid, wanted, there))

    def _update_group(self, entry: Json, gid: str, wanted: Json, there: Json) -> None:
        """Write a group that differs where all in it is the source's; where it is empty, if nothing is lost by that."""
        ids = self._definitions(gid)
        is_ours = not any(there.get(name) for name in _GROUP)
        if ids:
            is_ours = all(f"{GROUPS}/{to_id(gid)}/messages/{id_}".lower() in self._ours for id_ in ids)
        if not is_ours:
            self._record(
                entry, "conflict", "the catalog has a group of this name, which differs and is not the source's"
            )
            return
        self._peer.request("PUT", group_path(gid), without_assigned(wanted))
        self._record(entry, "written")

    def _definitions(self, gid: str) -> dict[str, Json]:
        if gid not in self._there:
            self._there[gid] = {to_id(id_): one for id_, one in self._api.definitions(gid)}
        return self._there[gid]

    def _authority_of(self, definition: Json) -> str:
        return str(definition.get("authority") or "").rstrip("/")

    # ---- definitions

    def _write_definition(self, entry: Json) -> tuple[str, str]:
        gid, id_ = _ids(entry["xid"])
        line = [(number, self._document(entry, id_, said)) for number, said in self._line(entry)]
        if not line:
            return "refused", "it shows another message (xref), which a catalog of 0.1 cannot express"
        there = self._definitions(gid).get(to_id(id_))
        latest = line[-1][1]
        self._stated.add(str(latest["authority"]).rstrip("/"))
        if there is None:
            self._post(entry, gid, line, [])
            self._own(entry, latest)
            return "written", ""
        if self._authority_of(there) != str(latest["authority"]).rstrip("/"):
            if _agree(latest, there, (*_COMMON, "definition")):
                return "same", ""
            if not there.get("authority") and latest["authority"].rstrip("/") == f"{self._peer.address}/messagecatalog":
                return "ours", ""
            whose = there.get("authority") or "the catalog itself"
            return "conflict", f"the catalog has a definition of this name, and its authority is {whose}"
        self._own(entry, latest)
        versions = self._api.versions(gid, id_, there)
        kept = _aligned([one for _, one in line], versions)
        last = max(kept, default=-1)
        extra = [one["version"] for place, one in enumerate(versions) if place not in kept.values()]
        stuck = [number for number in extra if not self._delete_version(gid, id_, number)]
        for number in stuck:
            self._report.note(entry["xid"], f"its version {number} was deleted at the source and stays at the target")
        is_latest = last == len(line) - 1 and not (stuck and max(stuck) > versions[kept[last]]["version"])
        new = [] if is_latest else line[last + 1 :] or line[-1:]
        self._post(entry, gid, new, versions)
        return ("written" if new or len(extra) > len(stuck) else "same"), ""

    def _own(self, entry: Json, document: Json) -> None:
        xid, authority = entry["xid"].lower(), str(document["authority"]).rstrip("/")
        self._ours.add(xid)
        self._pushed[xid] = authority
        home = str(entry["origin"].get("home") or entry["xid"])
        if home.lower() != xid:
            words = f"its owner's URI for it, {_uri(authority, home)}, does not lead to it at the target"
            self._report.note(entry["xid"], f"{words}, which makes another of the names that it has there")

    def _line(self, entry: Json) -> list[tuple[int, Json]]:
        """The versions of a definition as the source has them: all that its log holds, or what it says now."""
        log = entry.get("log")
        if not log:
            versions = ((entry.get("body") or {}).get("versions") or {}).values()
            return [(1, one) for one in list(versions)[-1:]]
        found = [one for one in log["snapshots"] if one[2] is not None]
        while not log["end"] and log["snapshots"]:
            earlier = self._earlier(entry["source"], log["snapshots"][0][0])
            if earlier is None or not earlier.get("log"):
                break
            if not earlier["log"]["snapshots"] or earlier["log"]["snapshots"][0][0] >= log["snapshots"][0][0]:
                break  # a source that gives no earlier part, but the same again
            log = earlier["log"]
            found = [*(one for one in log["snapshots"] if one[2] is not None), *found]
        return [(number, said) for number, _, said in found]

    def _document(self, entry: Json, id_: str, said: Json) -> Json:
        gid = _ids(entry["xid"])[0]
        group = self._groups.get(gid, {})
        attrs = {name: self._absolute(name, value) for name, value in _client(said).items()}
        notes: list[Problem] = []
        form = self._forms.get(gid, "")
        own = format_of(attrs, DIALECT, group)
        if form not in ("", GENERIC, own):
            words = f"must be that of the group, and is '{own}'"
            raise RegistryError("invalid_attribute", entry["xid"], name="format", error_detail=words)
        written = write_lone(to_id(id_), attrs, DIALECT, notes, entry["xid"], group, form)
        for note in notes:
            if note.code == "lost":
                self._report.note(entry["xid"], f"{note.path.rpartition('/')[2]} {note.message}")
        authority = written.get("authority") or entry["origin"]["authority"]
        return {**without_assigned(written), "specversion": DIALECT.label, "authority": authority}

    def _absolute(self, name: str, value: Any) -> Any:
        """A reference to a schema of the source, which the other catalog cannot know by a path alone."""
        base = self._authority.removesuffix("/messagecatalog")
        if name in _REFERENCES and isinstance(value, str) and value.startswith("/") and base.startswith("http"):
            return base + value
        return value

    def _post(self, entry: Json, gid: str, line: list[tuple[int, Json]], before: list[Json]) -> None:
        newest = max((int(one["version"]) for one in before), default=0)
        for number, document in line:
            answer = self._peer.request("POST", f"{group_path(gid)}/messagedefinitions", document).value
            got = answer.get("version") if isinstance(answer, dict) else None
            newest = int(got) if isinstance(got, int) else newest + 1
            if newest != number:
                self._report.note(entry["xid"], f"the source's version {number} is version {newest} at the target")

    def _delete_version(self, gid: str, id_: str, number: int) -> bool:
        try:
            self._peer.request("DELETE", f"{definition_path(gid, id_)}/versions/{number}")
        except RemoteError as error:
            if error.status not in _NOT_OFFERED_THERE:
                raise
            return False
        return True

    # ---- deleting

    def _sweep(self) -> None:
        """Delete what the source has no more; a group goes with the last of what is the source's."""
        names = [gid for gid, _ in self._api.groups() if self._scope_holds(gid)]
        found = {f"{GROUPS}/{to_id(gid)}": gid for gid in names}
        places = {
            f"{xid}/messages/{id_}": (gid, one)
            for xid, gid in found.items()
            for id_, one in self._definitions(gid).items()
            if f"{xid}/messages/{id_}".lower() not in self._met and self._scope.holds_renamed(f"{xid}/messages/{id_}")
        }
        ours = {xid for xid, (_, one) in places.items() if self._authority_of(one) == self._authority}
        others = {xid for xid, (_, one) in places.items() if xid not in ours and one.get("authority")}
        stated = {xid for xid in others if self._authority_of(places[xid][1]) in self._stated}
        known = {xid for xid in others if self._authority_of(places[xid][1]) == self._pushed.get(xid.lower())}
        empty = {xid for xid, gid in found.items() if xid.lower() not in self._met and not self._definitions(gid)}
        asked = others | empty
        gone = self._was_deleted(asked) if asked else set()
        emptied = set()
        for xid in sorted((gone & others) - stated - known):
            words = f"it has gone from the source and stays, for its authority is {places[xid][1]['authority']}"
            self._report.note(xid, f"{words}; use --authority to push what it has authority over")
        for xid in sorted(ours | known | (gone & stated)):
            gid, _ = places[xid]
            self._pushed.pop(xid.lower(), None)
            self._delete(xid, definition_path(gid, from_id(xid.rpartition("/")[2])))
            del self._definitions(gid)[xid.rpartition("/")[2]]
            emptied.add(f"{GROUPS}/{to_id(gid)}")
        for xid in sorted(emptied | (gone & empty)):
            if xid.lower() not in self._met and not self._definitions(found[xid]):
                self._delete(xid, group_path(found[xid]))

    def _scope_holds(self, gid: str) -> bool:
        return self._scope.holds_renamed(f"{GROUPS}/{to_id(gid)}")

    def _delete(self, xid: str, path: str) -> None:
        try:
            self._peer.request("DELETE", path)
        except RemoteError as error:
            if error.status in (404, 410):
                return
            if not 400 <= error.status < 500 or error.status in (401, 403):
                raise
            self._report.add([{"xid": xid, "outcome": "refused", "detail": str(error)}])
            return
        self._report.add([{"xid": xid, "outcome": "deleted", "detail": ""}])


def _ids(xid: str) -> list[str]:
    return [from_id(step) for step in xid.split("/")[2::2]]


def _uri(authority: str, home: str) -> str:
    """The URI of a definition (2.2.2), which is made of the names that it has at its owner."""
    group, id_ = _ids(home)
    if authority.lower().startswith("urn:"):
        return f"{authority}:{group}:{id_}"
    return f"{authority}/{group}/messagedefinitions/{id_}"


def _has_format(group: Json) -> bool:
    """Whether a group states an envelope that is a format of 0.1, which all its messages then have."""
    return bool(group.get("envelope")) and format_of(group, DIALECT, {}) in DIALECT.formats


def _said(entry: Json) -> list[Json]:
    """What a definition says, and has said as far as its log came with it."""
    snapshots = (entry.get("log") or {}).get("snapshots") or []
    versions = ((entry.get("body") or {}).get("versions") or {}).values()
    return [said for _, _, said in snapshots if said is not None] or list(versions)[-1:]


def _client(attrs: Json) -> Json:
    left = ("createdat", "modifiedat", "ancestorid", "versionid", "messageid", "messagegroupid")
    return {name: value for name, value in attrs.items() if name not in left}


def _agree(one: Json, other: Json, names: Iterable[str]) -> bool:
    """Whether two documents say the same; labels are further attributes, which a catalog need not keep."""
    return all(one.get(name) == other.get(name) for name in names if name != "labels" or name in other)


def _aligned(line: list[Json], versions: list[Json]) -> dict[int, int]:
    """Which version there each of the source's is, in their order: as many as can be."""
    last = len(line) - 1

    def same(place: int, other: Json) -> bool:
        names = ("definition",) if place != last else ("definition", *_COMMON)
        return _agree(line[place], other, names)

    found: dict[int, int] = {}
    start = 0
    while start < min(len(line), len(versions)) and same(start, versions[start]):
        found[start] = start
        start += 1
    rows, columns = len(line) - start, len(versions) - start
    longest = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            longest[row][column] = (
                1 + longest[row + 1][column + 1]
                if same(start + row, versions[start + column])
                else max(longest[row + 1][column], longest[row][column + 1])
            )
    return found | dict(_steps(longest, start, lambda row, column: same(start + row, versions[start + column])))


def _steps(longest: list[list[int]], start: int, same: Callable[[int, int], bool]) -> Iterator[tuple[int, int]]:
    row = column = 0
    while row < len(longest) - 1 and column < len(longest[0]) - 1:
        if same(row, column):
            yield start + row, start + column
            row, column = row + 1, column + 1
        elif longest[row + 1][column] >= longest[row][column + 1]:
            row += 1
        else:
            column += 1
