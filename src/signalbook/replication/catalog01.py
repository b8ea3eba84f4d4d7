"""A catalog that speaks only the 0.1 message catalog API (seed 004, section 4), and what is read from it.

Rule 1: the text leaves open what a listing holds: documents, or ids and numbers, whole or in pages. All are read, and
what a listing lacks is asked for.
Rule 2: versions keep the numbers and the times that the source gave them. What a definition says without an authority,
it says with the source's: the base of its canonical links where it has those, else its address (2.2.4). One that states
an authority may be a copy under another name than its owner's: its canonical link has that name, which it keeps.
Rule 3: such a catalog has neither a feed nor epochs: everything is read, and a digest of it shows whether it changed.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import orjson

from signalbook.client import Client, RemoteError
from signalbook.dialects.catalog01_documents import (
    read_definition,
    read_group,
)
from signalbook.dialects.rows import from_id, to_id
from signalbook.errors import RegistryError
from signalbook.jsontext import Json
from signalbook.model.values import VALUE_TYPES
from signalbook.replication.entries import log_digest, owner_by
from signalbook.replication.scope import ReplicationScope
from signalbook.spec.dialects import DIALECTS

__all__ = [
    "DIALECT",
    "GROUPS",
    "Catalog01",
    "Catalog01Source",
    "definition_path",
    "group_path",
    "without_assigned",
]

DIALECT = DIALECTS["0.1"]
ROOT = "/messagecatalog"
GROUPS = "/messagegroups"
_ABSENT = (404, 410)
_NOT_OFFERED = (404, 405, 410, 501)
_ASSIGNED = frozenset({"version", "versions", "createdtimeutc", "updatedtimeutc", "definitions"})
_SYSTEM = ("messagegroupid", "messageid", "versionid", "createdat", "modifiedat", "messages", "versions", "ancestorid")
_MOST_SNAPSHOTS = 200
_MOST_BYTES = 256 << 10
_VERSION_URI = re.compile(r"(.+)/([^/]+)/messagedefinitions/([^/]+?)(?:/versions?/[0-9]+)?")
_VERSION_URN = re.compile(r"(urn:.+):([^:]+):([^:]+):[0-9]+", re.I)


class Catalog01:
    """The operations of the 0.1 API that replication uses, at one peer."""

    def __init__(self, peer: Client) -> None:
        self.peer = peer

    def features(self) -> Json | None:
        """What the catalog says it can do (4.2.1); None where it does not say."""
        try:
            found = self.peer.request("OPTIONS", ROOT).value
        except RemoteError as error:
            if error.status in _NOT_OFFERED:
                return None
            raise
        return found if isinstance(found, dict) and isinstance(found.get("filterattributes"), list) else None

    def groups(self) -> Iterator[tuple[str, Json]]:
        """Every group by its id, without its definitions."""
        for id_, group in self._listed(ROOT, "id"):
            whole = group if "format" in group else self.find(group_path(id_))
            if whole is not None:
                yield id_, whole

    def definitions(self, group: str) -> list[tuple[str, Json]]:
        """The definitions of a group by their ids, in their latest versions; none where the group has gone."""
        try:
            found = list(self._listed(f"{group_path(group)}/messagedefinitions", "id"))
        except RemoteError as error:
            if error.status in _ABSENT:
                return []
            raise
        whole = ((id_, one if _is_whole(one) else self.find(definition_path(group, id_))) for id_, one in found)
        return [(id_, one) for id_, one in whole if one is not None]

    def versions(self, group: str, id_: str, latest: Json) -> list[Json]:
        """The versions of a definition, the oldest first, each a document of its own."""
        path = definition_path(group, id_)
        try:
            listed = list(self._listed(f"{path}/versions", "version"))
        except RemoteError as error:
            if error.status not in _NOT_OFFERED:
                raise
            given = latest.get("versions")
            listed = [(str(one.get("version", "")), one) for one in (_objects(given) or [latest])]
        common = {name: value for name, value in latest.items() if name not in {*_ASSIGNED, "definition"}}
        found = {}
        for number, one in listed:
            if not (number.isascii() and number.isdigit() and len(number) <= 18):
                raise RemoteError(f"{self.peer.name} has a version '{number[:50]}' of '{id_}', which is not a number")
            whole: Json | None = one if "definition" in one else self.find(f"{path}/versions/{number}")
            if whole is not None:
                found[int(number)] = {**({} if "id" in whole else common), **whole, "version": int(number)}
        return [found[number] for number in sorted(found)]

    def find(self, path: str) -> Json | None:
        """The document at a path; None where there is none."""
        try:
            found = self.peer.request("GET", path).value
        except RemoteError as error:
            if error.status in _ABSENT:
                return None
            raise
        if not isinstance(found, dict):
            raise RemoteError(f"{self.peer.name} answered {path} with something other than an object")
        return found

    def canonical(self, group: str, id_: str) -> tuple[str, str, str]:
        """The authority, the group and the id that the canonical link of a definition states; empty without one."""
        try:
            uri, _ = self.peer.request("GET", definition_path(group, id_)).find_link("canonical")
        except RemoteError as error:
            if error.status in _ABSENT:
                return "", "", ""
            raise
        found = _VERSION_URN.fullmatch(uri) or _VERSION_URI.fullmatch(uri)
        return (found[1], found[2], found[3]) if found is not None and len(uri) <= 1500 else ("", "", "")

    def _listed(self, path: str, name: str) -> Iterator[tuple[str, Json]]:
        """The members of a listing by their ids or numbers; one that is listed by its name alone has no more."""
        for reply, _ in self.peer.pages(path):
            value = reply.value
            if isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()):
                value = [{name: key, **one} for key, one in value.items()]
            if not isinstance(value, list):
                raise RemoteError(f"{self.peer.name} answered {path} with something other than a list")
            for one in value:
                member = one if isinstance(one, dict) else {name: one}
                named = member.get(name)
                if isinstance(named, bool) or not isinstance(named, (str, int)) or named == "":
                    raise RemoteError(f"{self.peer.name} lists something without '{name}' at {path}")
                yield str(named), member if isinstance(one, dict) else {}


def _objects(value: Any) -> list[Json]:
    return value if isinstance(value, list) and all(isinstance(one, dict) for one in value) else []


def _is_whole(definition: Json) -> bool:
    return "definition" in definition or bool(_objects(definition.get("versions")))


def group_path(group: str) -> str:
    """Where a group is in the API."""
    return f"{ROOT}/{quote(group, safe=_SAFE)}"


def definition_path(group: str, id_: str) -> str:
    """Where a definition is in the API."""
    return f"{group_path(group)}/messagedefinitions/{quote(id_, safe=_SAFE)}"


_SAFE = "!$&'()*+,;=@~%"
_URI = "%/:?#[]@!$&'()*+,;=~-._"


def without_assigned(document: Json) -> Json:
    """What of a document its author says; numbers and times are a catalog's."""
    return {name: value for name, value in document.items() if name not in _ASSIGNED}


class Catalog01Source:
    """A 0.1 catalog as a source: its groups and definitions as the entries that travel."""

    def __init__(self, peer: Client, authority: str = "") -> None:
        self.api = Catalog01(peer)
        self.catalog = peer.address + ROOT
        self._said = authority
        self._authority = authority
        self._known = ""
        self._logs: dict[str, list[Any]] = {}

    @property
    def authority(self) -> str:
        """The authority of what names none."""
        return self._authority or self._known or self.catalog

    def known_as(self, authority: str) -> None:
        """Keep the authority that the target knows the source by, where it states none itself."""
        self._known = authority
        self._authority = self._said

    def subjects(self, scope: ReplicationScope) -> str:
        """What the subjects of the events within a scope begin with."""
        names = [from_id(step) for step in scope.xid.split("/")[2::2]]
        return ROOT if not names else group_path(names[0]) if len(names) == 1 else definition_path(*names)

    def has(self, scope: ReplicationScope) -> bool:
        """Whether the source has the group or the definition that a scope names."""
        steps = scope.xid.split("/")[1:]
        if steps[0] != "messagegroups" or (len(steps) > 2 and steps[2] != "messages"):
            return False
        names = [from_id(step) for step in steps[1::2]]
        return (
            not names or self.api.find(group_path(names[0]) if len(names) == 1 else definition_path(*names)) is not None
        )

    def everything(self, scope: ReplicationScope, marks: Any) -> Iterator[Json | str]:
        """Every entry within a scope that is not as its mark says; of the others the xid at the target."""
        for gid, group in self.api.groups():
            if scope.holds(f"{GROUPS}/{to_id(gid)}"):
                yield from self._group(gid, group, scope, marks)

    def entries(self, xids: Iterable[str], scope: ReplicationScope) -> Iterator[Json]:
        """Definitions as they are now; one that is not there any more is a deleted entry."""
        for xid in xids:
            gid, id_ = (from_id(step) for step in xid.split("/")[2::2])
            latest = self.api.find(definition_path(gid, id_))
            group = self.api.find(group_path(gid)) if latest is not None else None
            if latest is None or group is None:
                yield {**self._head(xid, scope), "body": None, "mark": ""}
                continue
            definition = self._definition(gid, id_, group, latest, scope)
            if isinstance(definition, dict):
                if definition["origin"]["catalog"] != self.catalog:  # its group is the source's all the same
                    yield self._group_entry(gid, group, self.api.definitions(gid), scope)
                yield definition

    def earlier(self, xid: str, before: int, scope: ReplicationScope) -> Json | None:
        """An entry with the page of its log before a number, as it was read just now."""
        log = self._logs.get(xid)
        if log is None:
            return None
        return {**log[3], "body": log[0], "mark": log[1], "log": _page(log[2], before)}

    def _group(self, gid: str, group: Json, scope: ReplicationScope, marks: Any) -> Iterator[Json | str]:
        xid = f"{GROUPS}/{to_id(gid)}"
        definitions = self.api.definitions(gid)
        self._learn(gid, definitions)
        yield self._group_entry(gid, group, definitions, scope)
        wanted = [(id_, one) for id_, one in definitions if scope.holds(f"{xid}/messages/{to_id(id_)}")]
        for start in range(0, len(wanted), 50):
            some = wanted[start : start + 50]
            known = marks([scope.renamed(f"{xid}/messages/{to_id(id_)}") for id_, _ in some])
            for id_, latest in some:
                mark = known.get(scope.renamed(f"{xid}/messages/{to_id(id_)}"), "")
                entry = self._definition(gid, id_, group, latest, scope, mark)
                if entry is not None:
                    yield entry

    def _group_entry(self, gid: str, group: Json, definitions: list[tuple[str, Json]], scope: ReplicationScope) -> Json:
        """A group as it travels."""
        xid = f"{GROUPS}/{to_id(gid)}"
        try:
            form = group.get("format")
            agreed = [one for _, one in definitions if _can_be_read(one, form)]
            read = read_group({**without_assigned(group), "id": gid, "definitions": agreed}, DIALECT, [], xid)
            body: Json = {"body": scope.rewritten(_without_system_members(read) | _created(group))}
        except RegistryError as error:
            body = {"body": None, "flaw": f"the source shows a group that is not one of 0.1: {error}"}
        return {**self._head(xid, scope), **body, "mark": ""}

    def _definition(
        self, gid: str, id_: str, group: Json, latest: Json, scope: ReplicationScope, known: str = ""
    ) -> Json | str | None:
        """A definition with all its versions, as it travels; None where it was deleted since it was listed.

        Where its mark is the one that is known, that is its xid at the target.
        """
        xid = f"{GROUPS}/{to_id(gid)}/messages/{to_id(id_)}"
        documents = self.api.versions(gid, id_, latest)
        if not documents:
            return None
        if not self._authority:
            self._learn(gid, [(id_, latest)])
        seen = orjson.dumps([group.get("format"), documents], option=orjson.OPT_SORT_KEYS, default=str)
        mark = hashlib.sha256(seen).hexdigest()
        if known == mark[:32]:
            return scope.renamed(xid)
        head = self._head(xid, scope)
        head["origin"] |= self._origin(gid, id_, latest, xid)
        form = str(group.get("format", ""))
        try:
            log = []
            for one in documents:
                if not isinstance(one["definition"], dict):
                    raise RegistryError("invalid_attribute", xid, name="definition", error_detail="must be an object")
                said = read_definition(without_assigned({**one, "id": id_}), DIALECT, [], xid, form)
                log.append(
                    [one["version"], _time(one.get("createdtimeutc")), scope.rewritten(_without_system_members(said))]
                )
        except RegistryError as error:
            return {**head, "body": None, "mark": "", "flaw": f"the source shows a definition that is not one: {error}"}
        created = {"createdat": log[0][1]} if log[0][1] else {}
        changed = {"modifiedat": log[-1][1]} if log[-1][1] else {}
        body = {"meta": {}, "versions": {"1": {**log[-1][2], **created, **changed, "ancestor": "1"}}}
        page = _page(log, 0)
        self._logs = {} if page["end"] else {xid: [body, mark[:32], log, head]}
        return {**head, "body": body, "mark": mark[:32], "log": page}

    def _learn(self, gid: str, definitions: list[tuple[str, Json]]) -> None:
        """Find out the source's own base by the first definition that leaves its authority to it."""
        if self._authority:
            return
        for id_, one in definitions:
            if not one.get("authority"):
                base = self.api.canonical(gid, id_)[0]
                stated = base if base.startswith(("http://", "https://")) and len(base) <= 1000 else ""
                self._authority = stated or self._known or self.catalog
                return

    def _origin(self, gid: str, id_: str, latest: Json, xid: str) -> Json:
        """What the origin of a definition is where its URI is made of other names than the source's own."""
        stated = latest.get("authority")
        if not isinstance(stated, str) or not stated:
            return {}
        base, group, name = self.api.canonical(gid, id_)
        home = f"{GROUPS}/{to_id(group)}/messages/{to_id(name)}"
        if base.rstrip("/") != quote(stated, safe=_URI).rstrip("/") or home.lower() == xid.lower():
            return {}
        return {"catalog": owner_by(self.catalog, stated), "authority": stated, "home": home}

    def _head(self, xid: str, scope: ReplicationScope) -> Json:
        revision = int(time.time() * 1000)
        origin = {"catalog": self.catalog, "authority": self.authority, "revision": revision, "home": xid}
        return {"xid": scope.renamed(xid), "source": xid, "origin": origin}


def _can_be_read(definition: Json, form: Any) -> bool:
    try:
        read_definition(definition, DIALECT, [], "", form if isinstance(form, str) else "")
    except RegistryError:
        return False
    return True


def _without_system_members(entity: Json) -> Json:
    return {name: value for name, value in entity.items() if name not in _SYSTEM}


def _created(group: Json) -> Json:
    at = _time(group.get("createdtimeutc"))
    return {"createdat": at} if at else {}


def _time(value: Any) -> str:
    """A time as it is kept; empty where the source states none."""
    try:
        return str(VALUE_TYPES["timestamp"].read(value))
    except ValueError:
        return ""


def _page(log: list[Any], before: int) -> Json:
    """The newest part of a log before a number that is small enough to be sent at once."""
    older = [one for one in log if not before or one[0] < before]
    page: list[Any] = []
    size = 0
    for one in reversed(older):
        size += len(orjson.dumps(one))
        if page and (size > _MOST_BYTES or len(page) == _MOST_SNAPSHOTS):
            break
        page.append(one)
    page.reverse()
    digest = log_digest((number, at, True) for number, at, _ in log)
    return {"digest": digest, "before": before, "end": len(page) == len(older), "snapshots": page}
