"""The rules of a registry in plain dicts, written down from core/spec.md and core/model.md 1.0-rc4 and nothing else.

Rule 1: clear before quick: a request works on a copy of everything, which is thrown away where something is wrong.
Rule 2: what is wrong with a request is collected, not raised, since the specification does not say which of several
errors comes first; `Stop` ends a request that makes no sense any further.
Rule 3: an entity's epoch moves by one a request, and all of a request happens at one instant.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

Entity = dict[str, Any]
SINGULAR = {"dirs": "dir", "boxes": "box", "files": "file", "versions": "version"}
SYSTEM = {"epoch", "createdat", "modifiedat", "versionid", "ancestorid", "meta", "versions", "files"}
META = {"epoch", "createdat", "modifiedat", "xref", "defaultversionid", "defaultversionsticky"}
KNOWN = {"name", "labels"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What the model says about files."""

    versionmode: str = "manual"
    maxversions: int = 0
    singleversionroot: bool = False
    setversionid: bool = True
    color: bool = True  # whether versions may have this attribute

    def source(self) -> Entity:
        """The model: files in dirs, and the same files in boxes."""
        color = {"color": {"type": "string"}} if self.color else {}
        files = {
            "singular": "file", "hasdocument": False, "versionmode": self.versionmode, "maxversions": self.maxversions,
            "singleversionroot": self.singleversionroot, "setversionid": self.setversionid, "attributes": color,
        }  # fmt: skip
        dirs = {"singular": "dir", "resources": {"files": files}}
        return {"groups": {"dirs": dirs, "boxes": {"singular": "box", "ximportresources": ["/dirs/files"]}}}


class Stop(Exception):
    """Nothing more to find out about a wrong request."""


class SimpleRegistry:
    """A registry of dirs and boxes with files, and what a request does to it."""

    def __init__(self, rules: Rules, now: str) -> None:
        self.rules = rules
        self.root: Entity = self._entity(now)
        self.root["groups"] = {"dirs": {}, "boxes": {}}

    @staticmethod
    def _entity(now: str) -> Entity:
        return {"epoch": 1, "createdat": now, "modifiedat": now, "attrs": {}, "new": False}

    # ---- one request

    def send(self, method: str, path: str, body: Entity | None, now: str, flag: str | None = None) -> list[str]:
        """Do what a request asks for; returns what is wrong with it, and then nothing has happened."""
        before, rules = self.root, self.rules
        self.root = copy.deepcopy(before)
        self.now, self.flag, self.wrong, self.touched = now, flag, [], list[Entity]()
        self.patch = method == "PATCH"
        parts = [part for part in path.split("/") if part]
        try:
            self._route(method, parts, body)
        except Stop:
            assert self.wrong
        if self.wrong:
            self.root, self.rules = before, rules
        for entity in self.touched:
            entity["epoch"] += 0 if entity["new"] else 1
        for entity in self.touched:
            entity["new"] = False
        return self.wrong

    def _route(self, method: str, parts: list[str], body: Entity | None) -> None:
        match method, parts:
            case "PUT", ["modelsource"]:
                self._model(body or {})
            case "DELETE", [plural]:
                self._delete(self.root["groups"][plural], self.root, body, SINGULAR[plural])
            case "DELETE", [plural, gid]:
                self._delete_one(self.root["groups"][plural], self.root, gid, body)
            case "DELETE", [plural, gid, "files"]:
                group = self._there(self.root["groups"][plural], gid)
                self._delete(group["files"], group, body, "file")
            case "DELETE", [plural, gid, "files", rid]:
                group = self._there(self.root["groups"][plural], gid)
                self._delete_one(group["files"], group, rid, body)
            case "DELETE", [plural, gid, "files", rid, "versions", *vid]:
                group = self._there(self.root["groups"][plural], gid)
                self._delete_versions(group, rid, body, vid)
            case _, []:
                self._update_root(method, body or {})
            case _, [plural]:
                for gid, entry in (body or {}).items():
                    self._group(plural, gid, entry)
            case _, [plural, gid]:
                self._update_group(method, plural, gid, body or {})
            case _, [plural, gid, "files"]:
                if body:
                    self._files(self._parent(plural, gid), body)
            case _, [plural, gid, "files", rid, "versions"] if not body and not self._has(plural, gid, rid):
                self._fail("missing_versions")
            case _, [plural, gid, "files", rid, *rest]:
                self._update_file(method, self._parent(plural, gid), rid, rest, body or {})

    # ---- what every entity has

    def _fail(self, name: str) -> None:
        self.wrong.append(name)

    def _stop(self, name: str) -> None:
        self.wrong.append(name)
        raise Stop

    def _touch(self, entity: Entity) -> None:
        """An entity is changed: its epoch and modifiedat move, once a request."""
        if not any(entity is one for one in self.touched):
            self.touched.append(entity)
            entity["modifiedat"] = self.now

    def _has(self, plural: str, gid: str, rid: str) -> bool:
        return rid in self.root["groups"][plural].get(gid, {}).get("files", {})

    def _there(self, siblings: Entity, id_: str) -> Entity:
        if id_ not in siblings:
            self._stop("not_found")
        entity: Entity = siblings[id_]
        return entity

    def _find(self, siblings: Entity, id_: str, parent: Entity) -> Entity:
        """The entity of this id, new where it is missing; ids differ by more than case."""
        if id_ not in siblings:
            if id_.lower() in {other.lower() for other in siblings}:
                self._stop("bad_request")
            entity = siblings[id_] = {**self._entity(self.now), "new": True}
            self._touch(entity)
            self._touch(parent)
        found: Entity = siblings[id_]
        return found

    def _write(self, entity: Entity, body: Entity, ids: dict[str, str], system: set[str], known: set[str]) -> None:
        """Times, epoch, ids and attributes of one entity in a request."""
        for name, id_ in ids.items():
            if body.get(name, id_) not in (id_, None):
                self._fail("mismatched_id")
        shown = entity.pop("shown", entity["epoch"])
        if not entity["new"] and body.get("epoch") not in (None, shown):
            self._fail("mismatched_epoch")
        previous = None if entity["new"] else entity.get("stored", entity["modifiedat"])
        self._touch(entity)
        if "createdat" in body:
            entity["createdat"] = body["createdat"] or self.now
        given = body.get("modifiedat")
        entity["modifiedat"] = self.now if given in (None, previous) else given
        attrs = {name: value for name, value in body.items() if name not in system and name not in ids}
        for name, value in attrs.items():
            if value is not None and name not in known:
                self._fail("unknown_attribute")
            if value is not None and (not isinstance(value, dict) if name == "labels" else not isinstance(value, str)):
                self._fail("invalid_attribute")
        merged = {**entity["attrs"], **attrs} if self.patch else attrs
        entity["attrs"] = {name: value for name, value in merged.items() if value is not None}

    # ---- registry and groups

    def _update_root(self, method: str, body: Entity) -> None:
        if method != "POST":
            self._write(self.root, body, {"registryid": "r"}, SYSTEM | {"dirs", "boxes"}, KNOWN)
        elif set(body) - {"dirs", "boxes"}:
            self._fail("groups_only")
        for plural in ("dirs", "boxes"):
            for gid, entry in (body.get(plural) or {}).items():
                self._group(plural, gid, entry)

    def _parent(self, plural: str, gid: str) -> Entity:
        group = self._find(self.root["groups"][plural], gid, self.root)
        group.setdefault("files", {})
        return group

    def _update_group(self, method: str, plural: str, gid: str, body: Entity) -> None:
        if method != "POST":
            self._group(plural, gid, body)
            return
        if set(body) - {"files"}:
            self._fail("resources_only")
        self._files(self._parent(plural, gid), body.get("files") or {})

    def _group(self, plural: str, gid: str, body: Entity) -> None:
        group = self._parent(plural, gid)
        self._write(group, body, {SINGULAR[plural] + "id": gid}, SYSTEM, KNOWN)
        self._files(group, body.get("files") or {})

    def _files(self, group: Entity, bodies: Entity) -> None:
        for rid, body in bodies.items():
            self._file(group, rid, body)

    # ---- resources: "Resource Processing Algorithm"

    def _update_file(self, method: str, group: Entity, rid: str, rest: list[str], body: Entity) -> None:
        match method, rest:
            case "POST", []:
                self._some_versions(group, rid, {body.get("versionid"): body}, one=True)
            case _, []:
                self._file(group, rid, body)
            case _, ["meta"]:
                self._meta_alone(group, rid, body)
            case _, ["versions"]:
                self._some_versions(group, rid, body)
            case _, ["versions", vid]:
                self._some_versions(group, rid, {vid: body}, one=True)

    def _open(self, group: Entity, rid: str) -> Entity:
        file = self._find(group["files"], rid, group)
        if "versions" not in file:
            file.update(id=rid, versions={}, xref=None, default=None, sticky=False, nextid=1)
        file["stored"] = file["modifiedat"]  # before this request
        return file

    def _file(self, group: Entity, rid: str, body: Entity) -> None:
        file = self._open(group, rid)
        meta, versions = body.get("meta"), body.get("versions") or {}
        if body.get("fileid", rid) != rid:
            self._fail("mismatched_id")
        if self._is_xref(file, meta):
            own = {name for name in body if name not in ("fileid", "meta")}
            self._become_xref(file, meta or {}, own)
            return
        fresh = self._leave_xref(file) or file["new"]
        if fresh:
            target = body.get("versionid") or (meta or {}).get("defaultversionid")
            if target is None and not versions:
                target = self.flag if self.flag not in (None, "null", "request") else self._next_id(file)
        else:
            target = file["default"]
            if body.get("versionid") not in (None, target):
                self._fail("mismatched_id")
        for vid, entry in versions.items():
            self._version(file, vid, entry)
        if target is not None and target not in versions:
            own_body = {name: value for name, value in body.items() if name not in ("meta", "versions", "fileid")}
            self._version(file, target, {**own_body, "versionid": target})
        self._settle(file, meta)

    def _meta_alone(self, group: Entity, rid: str, body: Entity) -> None:
        file = self._open(group, rid)
        if self._is_xref(file, body):
            self._become_xref(file, body, set())
            return
        if self._leave_xref(file) or file["new"]:
            self._version(file, self._next_id(file), {})
        self._settle(file, body)

    def _some_versions(self, group: Entity, rid: str, bodies: dict[Any, Entity], *, one: bool = False) -> None:
        file = self._open(group, rid)
        if file["xref"] and bodies:
            self._stop("extra_xref_attribute")
        if len(bodies) > 1 and self.flag == "request":
            self._fail("too_many_versions")
        made = ""
        for vid, body in bodies.items():
            made = vid or self._next_id(file)
            if self.flag == "request":
                self.flag = made
            self._version(file, made, body)
        if bodies or self.flag:
            self._settle(file, None)
        if one and made not in file["versions"]:
            self._fail("bad_request")  # pruned at once

    def _next_id(self, file: Entity) -> str:
        """The server's own versionids count up and never restart."""
        while str(file["nextid"]) in file["versions"]:
            file["nextid"] += 1
        file["made"] = str(file["nextid"])
        file["nextid"] += 1
        return str(file["made"])

    def _version(self, file: Entity, vid: str, body: Entity) -> None:
        """Create or update one version; its ancestor stays open where nobody named one."""
        versions = file["versions"]
        if vid not in versions and not self.rules.setversionid and vid != file.get("made"):
            self._stop("versionid_not_allowed")
        version = self._find(versions, vid, file)
        version.setdefault("ancestorid", None)
        known = KNOWN | ({"color"} if self.rules.color else set())
        self._write(version, body, {"versionid": vid, "fileid": file["id"]}, SYSTEM, known)
        if body.get("ancestorid") is not None:
            version["ancestorid"] = vid if body["ancestorid"] == "request" else body["ancestorid"]

    def _settle(self, file: Entity, meta: Entity | None) -> None:
        """Steps 3 to 5 and 10: ancestors, meta, default version, limits."""
        file.pop("made", None)
        if meta is None:
            file.pop("shown", None)
        self._find_ancestors(file)
        choice = (file["default"], file["sticky"])
        if meta is not None:
            self._write(file, meta, {"fileid": file["id"]}, META, {"labels"})
            self._choose(file, meta)
        if self.flag == "null":
            file["default"], file["sticky"] = None, False
        elif self.flag is not None:
            file["default"], file["sticky"] = self.flag, True
        if file["sticky"] and file["default"] is not None and file["default"] not in file["versions"]:
            if self.flag is not None or (meta or {}).get("defaultversionid") == file["default"]:
                self._stop("unknown_id")
            file["sticky"] = False  # the chosen one is gone
        if not file["sticky"] or file["default"] is None:
            file["default"] = self._newest(file)
        if file["sticky"] and self.rules.maxversions == 1:
            self._stop("setdefaultversionsticky_false")
        if choice != (file["default"], file["sticky"]):
            self._touch(file)
        self._prune(file)
        if not file["sticky"]:
            file["default"] = self._newest(file)
        self._check_lineage(file)

    def _choose(self, file: Entity, meta: Entity) -> None:
        """What meta says about the default version: `defaultversionid` and `defaultversionsticky`."""
        id_, sticky = meta.get("defaultversionid"), meta.get("defaultversionsticky")
        if not self.patch:
            file["sticky"] = bool(sticky)
            file["default"] = id_ if sticky else None
        elif "defaultversionsticky" in meta:
            file["sticky"] = bool(sticky)
            if not sticky or "defaultversionid" in meta:
                file["default"] = id_ if sticky else None
        elif "defaultversionid" in meta:
            file["default"], file["sticky"] = id_, id_ is not None

    # ---- version modes

    def _order(self, vid: str, version: Entity) -> tuple[Any, ...]:
        if self.rules.versionmode == "semver":
            return precedence(vid)
        return (version["modifiedat" if self.rules.versionmode == "modifiedat" else "createdat"], vid.lower())

    def _sorted(self, versions: Entity) -> list[str]:
        return sorted(versions, key=lambda vid: self._order(vid, versions[vid]))

    def _newest(self, file: Entity) -> str:
        versions = {vid: v for vid, v in file["versions"].items() if v["ancestorid"] is not None}
        if self.rules.versionmode == "manual":
            named = {v["ancestorid"] for vid, v in versions.items() if v["ancestorid"] != vid}
            versions = {vid: v for vid, v in versions.items() if vid not in named} or versions
        return self._sorted(versions)[-1]

    def _set_ancestor(self, version: Entity, ancestor: str) -> None:
        """A version whose ancestor changes is changed; where modifiedat makes the order, that one rests."""
        if version["ancestorid"] != ancestor:
            modified = version["modifiedat"]
            self._touch(version)
            if self.rules.versionmode == "modifiedat":
                version["modifiedat"] = modified
            version["ancestorid"] = ancestor

    def _find_ancestors(self, file: Entity) -> None:
        versions = file["versions"]
        if self.rules.versionmode != "manual":
            chain = self._sorted(versions)
            for before, vid in zip([*chain[:1], *chain], chain, strict=False):
                self._set_ancestor(versions[vid], before)
            return
        if any(v["ancestorid"] is not None and v["ancestorid"] not in versions for v in versions.values()):
            self._stop("unknown_id")
        newest = self._newest(file) if any(v["ancestorid"] for v in versions.values()) else None
        for vid in sorted((vid for vid, v in versions.items() if v["ancestorid"] is None), key=str.lower):
            versions[vid]["ancestorid"] = newest or vid
            newest = vid

    def _prune(self, file: Entity) -> None:
        """The oldest version goes first and the default never; a text for the oldest without roots there is none."""
        versions = file["versions"]
        while self.rules.maxversions and len(versions) > self.rules.maxversions:
            order = self._sorted(versions)
            if self.rules.versionmode == "manual":
                named = {v["ancestorid"] for vid, v in versions.items() if v["ancestorid"] != vid}
                order.sort(key=lambda vid: 0 if versions[vid]["ancestorid"] == vid else 1 if vid in named else 2)
            self._remove_version(file, next(vid for vid in order if vid != file["default"]))
            self._find_ancestors(file)

    def _remove_version(self, file: Entity, gone: str) -> None:
        del file["versions"][gone]
        self._touch(file)
        if self.rules.versionmode == "manual":
            for vid, version in file["versions"].items():
                if version["ancestorid"] == gone:
                    self._set_ancestor(version, vid)

    def _check_lineage(self, file: Entity) -> None:
        versions = file["versions"]
        for vid in versions:
            seen, at = {vid}, vid
            while versions[at]["ancestorid"] != at:
                at = versions[at]["ancestorid"]
                if at in seen:
                    self._stop("ancestor_circular_reference")
                seen.add(at)
        roots = sum(1 for vid, v in versions.items() if v["ancestorid"] == vid)
        if self.rules.singleversionroot and roots > 1:
            self._fail("multiple_roots")

    # ---- cross references

    def _is_xref(self, file: Entity, meta: Entity | None) -> bool:
        if meta is not None and "xref" in meta:
            return bool(meta["xref"])
        return file["xref"] is not None and (meta is None or self.patch)

    def _become_xref(self, file: Entity, meta: Entity, own: set[str]) -> None:
        if own or set(meta) - {"fileid", "xref", "epoch"}:
            self._fail("extra_xref_attribute")
        xref = meta.get("xref") or file["xref"]
        if not re.fullmatch(r"/(dirs|boxes)/\w+/files/\w+", xref):
            self._fail("malformed_xref")
        if not file["new"] and file["xref"] is None and meta.get("epoch") not in (None, file["epoch"]):
            self._fail("mismatched_epoch")
        file.update(xref=xref, versions={}, default=None, sticky=False, attrs={})

    def _leave_xref(self, file: Entity) -> bool:
        if file["xref"] is None:
            return False
        target = self.target(file)
        file["shown"] = target["epoch"] if target else file["epoch"]
        file["epoch"] = max(file["epoch"], target["epoch"] if target else 0)
        file["xref"] = None
        self._touch(file)
        return True

    def target(self, file: Entity) -> Entity | None:
        """The resource that shows in a resource's place; a reference to a reference shows nothing."""
        if file["xref"] is None:
            return file
        _, plural, gid, _, rid = file["xref"].split("/")
        found: Entity | None = self.root["groups"][plural].get(gid, {}).get("files", {}).get(rid)
        return found if found is not None and found["xref"] is None else None

    # ---- deleting

    def _delete_one(self, siblings: Entity, parent: Entity, id_: str, body: Entity | None) -> None:
        entity = self._there(siblings, id_)
        if body and body["epoch"] != entity["epoch"]:
            self._fail("mismatched_epoch")
        del siblings[id_]
        self._touch(parent)

    def _delete(self, siblings: Entity, parent: Entity, body: Entity | None, singular: str) -> None:
        for id_, entry in ({id_: {} for id_ in siblings} if body is None else body).items():
            if id_ not in siblings:
                continue
            if entry.get(singular + "id", id_) != id_:
                self._fail("mismatched_id")
            if singular == "file":
                if entry.get("epoch") is not None and "epoch" not in (entry.get("meta") or {}):
                    self._fail("misplaced_epoch")
                entry = entry.get("meta") or {}
            if entry.get("epoch") not in (None, siblings[id_]["epoch"]):
                self._fail("mismatched_epoch")
            del siblings[id_]
            self._touch(parent)

    def _delete_versions(self, group: Entity, rid: str, body: Entity | None, vid: list[str]) -> None:
        file = self._there(group["files"], rid)
        file["stored"] = file["modifiedat"]
        if vid:
            self._there(file["versions"], vid[0])
            body = {vid[0]: body or {}}
        doomed = list(file["versions"]) if body is None else [one for one in body if one in file["versions"]]
        for one in doomed:
            entry = (body or {}).get(one, {})
            if entry.get("epoch") not in (None, file["versions"][one]["epoch"]):
                self._fail("mismatched_epoch")
        if body is not None and self.flag in doomed:
            self._stop("bad_request")
        if len(doomed) == len(file["versions"]):  # a resource has at least one
            del group["files"][rid]
            self._touch(group)
            return
        for one in doomed:
            self._remove_version(file, one)
        self._settle(file, None)

    # ---- the model

    def _model(self, rules: Any) -> None:
        """Another model: what is there has to obey it, the limits are enforced at once."""
        before, self.rules = self.rules, rules
        self._touch(self.root)
        files = [f for groups in self.root["groups"].values() for g in groups.values() for f in g["files"].values()]
        for file in files:
            if not rules.color and any("color" in version["attrs"] for version in file["versions"].values()):
                self.wrong += ["model_compliance_error", "unknown_attribute"]  # the general name, or what is wrong
            if not file["xref"] and rules != before:
                self._settle(file, None)


def precedence(vid: str) -> tuple[Any, ...]:
    """semver.org section 11; missing numbers are 0, and what is no semantic version comes before all others."""
    match = re.fullmatch(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([\w.-]+))?", vid)
    if match is None:
        return (0, vid.lower())
    numbers = tuple(int(number or 0) for number in match.groups()[:3])
    names = (match[4] or "").split(".")
    pre = tuple((0, int(name), "") if name.isdigit() else (1, 0, name) for name in names)
    return (1, *numbers, not match[4], *([pre] if match[4] else []), vid.lower())
