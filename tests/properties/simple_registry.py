"""The rules of a registry in plain dicts, written down from core/spec.md and core/model.md 1.0-rc4 and nothing else.

Rule 1: clear before quick: a request works on a copy of everything, which is thrown away where something is wrong.
Rule 2: what is wrong with a request is collected, not raised, since the specification does not say which of several
errors comes first; `Stop` ends a request that makes no sense any further.
Rule 3: an entity's epoch moves by one a request, and all of a request happens at one instant.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.properties.simple_lineage import Rules, in_order, lineage_problems, newest, oldest_first
from tests.properties.simple_turn import SINGULAR, Entity, Stop, Turn, new_entity

SYSTEM = {"epoch", "createdat", "modifiedat", "versionid", "ancestorid", "meta", "versions", "files"}
META = {"epoch", "createdat", "modifiedat", "xref", "defaultversionid", "defaultversionsticky"}
KNOWN = {"name", "labels"}


class SimpleRegistry:
    """A registry of dirs and boxes with files, and what a request does to it."""

    def __init__(self, rules: Rules, now: str) -> None:
        self.rules = rules
        self.root: Entity = new_entity(now)
        self.root["groups"] = {"dirs": {}, "boxes": {}}

    # ---- one request

    def send(self, method: str, path: str, body: Entity | None, now: str, flag: str | None = None) -> list[str]:
        """Do what a request asks for; returns what is wrong with it, and then nothing has happened."""
        before, rules = self.root, self.rules
        self.root = copy.deepcopy(before)
        self.turn, self.flag = Turn(now, method == "PATCH"), flag
        parts = [part for part in path.split("/") if part]
        try:
            self._route(method, parts, body)
        except Stop:
            assert self.turn.wrong
        if self.turn.wrong:
            self.root, self.rules = before, rules
        for entity in self.turn.touched:
            entity["epoch"] += 0 if entity["new"] else 1
        for entity in self.turn.touched:
            entity["new"] = False
        return self.turn.wrong

    def _route(self, method: str, parts: list[str], body: Entity | None) -> None:
        match method, parts:
            case "PUT", ["modelsource"]:
                self._model(body or {})
            case "DELETE", _:
                self._route_delete(parts, body)
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
                self.turn.fail("missing_versions")
            case _, [plural, gid, "files", rid, *rest]:
                self._update_file(method, self._parent(plural, gid), rid, rest, body or {})

    def _route_delete(self, parts: list[str], body: Entity | None) -> None:
        match parts:
            case [plural]:
                self._delete(self.root["groups"][plural], self.root, body, SINGULAR[plural])
            case [plural, gid]:
                self._delete_one(self.root["groups"][plural], self.root, gid, body)
            case [plural, gid, "files"]:
                group = self.turn.there(self.root["groups"][plural], gid)
                self._delete(group["files"], group, body, "file")
            case [plural, gid, "files", rid]:
                group = self.turn.there(self.root["groups"][plural], gid)
                self._delete_one(group["files"], group, rid, body)
            case [plural, gid, "files", rid, "versions", *vid]:
                group = self.turn.there(self.root["groups"][plural], gid)
                self._delete_versions(group, rid, body, vid)

    # ---- registry and groups

    def _has(self, plural: str, gid: str, rid: str) -> bool:
        return rid in self.root["groups"][plural].get(gid, {}).get("files", {})

    def _update_root(self, method: str, body: Entity) -> None:
        if method != "POST":
            self.turn.write(self.root, body, {"registryid": "r"}, SYSTEM | {"dirs", "boxes"}, KNOWN)
        elif set(body) - {"dirs", "boxes"}:
            self.turn.fail("groups_only")
        for plural in ("dirs", "boxes"):
            for gid, entry in (body.get(plural) or {}).items():
                self._group(plural, gid, entry)

    def _parent(self, plural: str, gid: str) -> Entity:
        group = self.turn.find(self.root["groups"][plural], gid, self.root)
        group.setdefault("files", {})
        return group

    def _update_group(self, method: str, plural: str, gid: str, body: Entity) -> None:
        if method != "POST":
            self._group(plural, gid, body)
            return
        if set(body) - {"files"}:
            self.turn.fail("resources_only")
        self._files(self._parent(plural, gid), body.get("files") or {})

    def _group(self, plural: str, gid: str, body: Entity) -> None:
        group = self._parent(plural, gid)
        self.turn.write(group, body, {SINGULAR[plural] + "id": gid}, SYSTEM, KNOWN)
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
        file = self.turn.find(group["files"], rid, group)
        if "versions" not in file:
            file.update(id=rid, versions={}, xref=None, default=None, sticky=False, nextid=1)
        file["stored"] = file["modifiedat"]  # before this request
        return file

    def _file(self, group: Entity, rid: str, body: Entity) -> None:
        file = self._open(group, rid)
        meta, versions = body.get("meta"), body.get("versions") or {}
        if body.get("fileid", rid) != rid:
            self.turn.fail("mismatched_id")
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
                self.turn.fail("mismatched_id")
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
            self.turn.stop("extra_xref_attribute")
        if len(bodies) > 1 and self.flag == "request":
            self.turn.fail("too_many_versions")
        made = ""
        for vid, body in bodies.items():
            made = vid or self._next_id(file)
            if self.flag == "request":
                self.flag = made
            self._version(file, made, body)
        if bodies or self.flag:
            self._settle(file, None)
        if one and made not in file["versions"]:
            self.turn.fail("bad_request")  # pruned at once

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
            self.turn.stop("versionid_not_allowed")
        version = self.turn.find(versions, vid, file)
        version.setdefault("ancestorid", None)
        known = KNOWN | ({"color"} if self.rules.color else set())
        self.turn.write(version, body, {"versionid": vid, "fileid": file["id"]}, SYSTEM, known)
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
            self.turn.write(file, meta, {"fileid": file["id"]}, META, {"labels"})
            self._choose(file, meta)
        if self.flag == "null":
            file["default"], file["sticky"] = None, False
        elif self.flag is not None:
            file["default"], file["sticky"] = self.flag, True
        if file["sticky"] and file["default"] is not None and file["default"] not in file["versions"]:
            if self.flag is not None or (meta or {}).get("defaultversionid") == file["default"]:
                self.turn.stop("unknown_id")
            file["sticky"] = False  # the chosen one is gone
        if not file["sticky"] or file["default"] is None:
            file["default"] = newest(self.rules, file["versions"])
        if file["sticky"] and self.rules.maxversions == 1:
            self.turn.stop("setdefaultversionsticky_false")
        if choice != (file["default"], file["sticky"]):
            self.turn.touch(file)
        self._prune(file)
        if not file["sticky"]:
            file["default"] = newest(self.rules, file["versions"])
        self.turn.wrong += lineage_problems(self.rules, file["versions"])

    def _choose(self, file: Entity, meta: Entity) -> None:
        """What meta says about the default version: `defaultversionid` and `defaultversionsticky`."""
        id_, sticky = meta.get("defaultversionid"), meta.get("defaultversionsticky")
        if not self.turn.patch:
            file["sticky"] = bool(sticky)
            file["default"] = id_ if sticky else None
        elif "defaultversionsticky" in meta:
            file["sticky"] = bool(sticky)
            if not sticky or "defaultversionid" in meta:
                file["default"] = id_ if sticky else None
        elif "defaultversionid" in meta:
            file["default"], file["sticky"] = id_, id_ is not None

    # ---- version modes

    def _set_ancestor(self, version: Entity, ancestor: str) -> None:
        """A version whose ancestor changes is changed; where modifiedat makes the order, that one rests."""
        if version["ancestorid"] != ancestor:
            modified = version["modifiedat"]
            self.turn.touch(version)
            if self.rules.versionmode == "modifiedat":
                version["modifiedat"] = modified
            version["ancestorid"] = ancestor

    def _find_ancestors(self, file: Entity) -> None:
        versions = file["versions"]
        if self.rules.versionmode != "manual":
            chain = in_order(self.rules, versions)
            for before, vid in zip([*chain[:1], *chain], chain, strict=False):
                self._set_ancestor(versions[vid], before)
            return
        if any(v["ancestorid"] is not None and v["ancestorid"] not in versions for v in versions.values()):
            self.turn.stop("unknown_id")
        latest = newest(self.rules, versions) if any(v["ancestorid"] for v in versions.values()) else None
        for vid in sorted((vid for vid, v in versions.items() if v["ancestorid"] is None), key=str.lower):
            versions[vid]["ancestorid"] = latest or vid
            latest = vid

    def _prune(self, file: Entity) -> None:
        """The oldest version goes first and the default never."""
        versions = file["versions"]
        while self.rules.maxversions and len(versions) > self.rules.maxversions:
            order = oldest_first(self.rules, versions)
            self._remove_version(file, next(vid for vid in order if vid != file["default"]))
            self._find_ancestors(file)

    def _remove_version(self, file: Entity, gone: str) -> None:
        del file["versions"][gone]
        self.turn.touch(file)
        if self.rules.versionmode == "manual":
            for vid, version in file["versions"].items():
                if version["ancestorid"] == gone:
                    self._set_ancestor(version, vid)

    # ---- cross references

    def _is_xref(self, file: Entity, meta: Entity | None) -> bool:
        if meta is not None and "xref" in meta:
            return bool(meta["xref"])
        return file["xref"] is not None and (meta is None or self.turn.patch)

    def _become_xref(self, file: Entity, meta: Entity, own: set[str]) -> None:
        if own or self.flag is not None or set(meta) - {"fileid", "xref", "epoch"}:
            self.turn.fail("extra_xref_attribute")
        xref = meta.get("xref") or file["xref"]
        if not re.fullmatch(r"/(dirs|boxes)/\w+/files/\w+", xref):
            self.turn.fail("malformed_xref")
        if not file["new"] and file["xref"] is None and meta.get("epoch") not in (None, file["epoch"]):
            self.turn.fail("mismatched_epoch")
        file.update(xref=xref, versions={}, default=None, sticky=False, attrs={})

    def _leave_xref(self, file: Entity) -> bool:
        if file["xref"] is None:
            return False
        target = self.target(file)
        file["shown"] = target["epoch"] if target else file["epoch"]
        file["epoch"] = max(file["epoch"], target["epoch"] if target else 0)
        file["xref"] = None
        self.turn.touch(file)
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
        entity = self.turn.there(siblings, id_)
        if body and body["epoch"] != entity["epoch"]:
            self.turn.fail("mismatched_epoch")
        del siblings[id_]
        self.turn.touch(parent)

    def _delete(self, siblings: Entity, parent: Entity, body: Entity | None, singular: str) -> None:
        for id_, entry in ({id_: {} for id_ in siblings} if body is None else body).items():
            if id_ not in siblings:
                continue
            if entry.get(singular + "id", id_) != id_:
                self.turn.fail("mismatched_id")
            if singular == "file":
                if entry.get("epoch") is not None and "epoch" not in (entry.get("meta") or {}):
                    self.turn.fail("misplaced_epoch")
                entry = entry.get("meta") or {}
            if entry.get("epoch") not in (None, siblings[id_]["epoch"]):
                self.turn.fail("mismatched_epoch")
            del siblings[id_]
            self.turn.touch(parent)

    def _delete_versions(self, group: Entity, rid: str, body: Entity | None, vid: list[str]) -> None:
        file = self.turn.there(group["files"], rid)
        if file["xref"] is not None:  # they are its target's
            self.turn.stop("extra_xref_attribute")
        file["stored"] = file["modifiedat"]
        if vid:
            self.turn.there(file["versions"], vid[0])
            body = {vid[0]: body or {}}
        doomed = list(file["versions"]) if body is None else [one for one in body if one in file["versions"]]
        for one in doomed:
            entry = (body or {}).get(one, {})
            if entry.get("epoch") not in (None, file["versions"][one]["epoch"]):
                self.turn.fail("mismatched_epoch")
        if body is not None and self.flag in doomed:
            self.turn.stop("bad_request")
        if len(doomed) == len(file["versions"]):  # a resource has at least one
            del group["files"][rid]
            self.turn.touch(group)
            return
        for one in doomed:
            self._remove_version(file, one)
        self._settle(file, None)

    # ---- the model

    def _model(self, rules: Any) -> None:
        """Another model: what is there has to obey it, the limits are enforced at once."""
        before, self.rules = self.rules, rules
        self.turn.touch(self.root)
        files = [f for groups in self.root["groups"].values() for g in groups.values() for f in g["files"].values()]
        for file in files:
            if not rules.color and any("color" in version["attrs"] for version in file["versions"].values()):
                self.turn.wrong += ["model_compliance_error", "unknown_attribute"]  # the general name, or what is wrong
            if not file["xref"] and rules != before:
                self._settle(file, None)
