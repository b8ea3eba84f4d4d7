"""What a path addresses: the registry, a collection, an entity, or one of the registry's own documents.

Rule: a path is read against the model, left to right; the first part that cannot be is the subject of the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from signalbook.errors import RegistryError
from signalbook.model.model import GroupType, Model, ResourceType

__all__ = ["COLLECTIONS", "DETAILS", "DOCUMENTS", "Kind", "Target", "find_target"]

Kind = Literal[
    "registry", "groups", "group", "resources", "resource", "meta", "versions", "version",
    "capabilities", "capabilitiesoffered", "export", "model", "modelsource",
]  # fmt: skip
DETAILS = "$details"
DOCUMENTS: frozenset[Kind] = frozenset({"capabilities", "capabilitiesoffered", "export", "model", "modelsource"})
COLLECTIONS: frozenset[Kind] = frozenset({"groups", "resources", "versions"})


@dataclass(frozen=True, slots=True)
class Target:
    """An address, resolved against the model; `path` is what the client asked for, `xid` what it is."""

    kind: Kind
    path: str
    xid: str
    group: GroupType | None = None
    gid: str = ""
    resource: ResourceType | None = None
    rid: str = ""
    vid: str = ""
    details: bool = False

    @property
    def group_type(self) -> GroupType:
        """The group type, which every address below the registry has."""
        assert self.group is not None
        return self.group

    @property
    def resource_type(self) -> ResourceType:
        """The resource type, which every address below a group has."""
        assert self.resource is not None
        return self.resource

    @property
    def group_xid(self) -> str:
        """The xid of the group that is addressed or owns what is."""
        return f"/{self.group_type.plural}/{self.gid}"

    @property
    def resource_xid(self) -> str:
        """The xid of the resource that is addressed or owns what is."""
        return f"{self.group_xid}/{self.resource_type.plural}/{self.rid}"

    @property
    def document(self) -> bool:
        """True where the bytes of a document are meant, not the metadata: DOC-1."""
        return self.kind in ("resource", "version") and self.resource_type.hasdocument and not self.details


def find_target(model: Model, path: str) -> Target:
    """Return what a path addresses, or the error that says why it addresses nothing."""
    details = path.endswith(DETAILS)
    bare = path[: -len(DETAILS)] if details else path
    if len(bare) > 1 and bare.endswith("/") and not details:
        bare = path = bare[:-1]
    parts = bare.split("/")[1:] if bare != "/" else []
    if not parts or parts == [""]:
        if details:
            raise RegistryError("bad_details", path)
        return Target("registry", path, "/")
    if parts[0] in DOCUMENTS:
        if details or len(parts) > 1:
            raise RegistryError("bad_details" if details and len(parts) == 1 else "api_not_found", path)
        return Target(parts[0], path, bare)
    return _in_groups(model, path, parts, details)


def _in_groups(model: Model, path: str, parts: list[str], details: bool) -> Target:
    group = model.groups.get(parts[0])
    if group is None:
        raise RegistryError("not_found", f"/{parts[0]}", detail=f"There is no group type {parts[0]!r} in the model.")
    if len(parts) == 1:
        _refuse(details, path)
        return Target("groups", path, f"/{parts[0]}", group)
    gid = _id(parts, 1, group.singular, path, details)
    if len(parts) == 2:
        _refuse(details, path)
        return Target("group", path, f"/{parts[0]}/{gid}", group, gid)
    if not parts[2]:
        if details and len(parts) == 3:
            raise RegistryError("bad_details", path)
        raise RegistryError(
            "bad_request", "/" + "/".join(parts[:2]) + "/",
            error_detail="Resource type in URL cannot be an empty string",
        )  # fmt: skip
    resource = group.resources.get(parts[2])
    if resource is None:
        raise RegistryError(
            "not_found", "/" + "/".join(parts[:3]), detail=f"There is no resource type {parts[2]!r} in {parts[0]!r}."
        )
    if len(parts) == 3:
        _refuse(details, path)
        return Target("resources", path, "/" + "/".join(parts), group, gid, resource)
    return _in_resource(path, parts, details, group, gid, resource)


def _in_resource(
    path: str, parts: list[str], details: bool, group: GroupType, gid: str, resource: ResourceType
) -> Target:
    rid = _id(parts, 3, resource.singular, path, details)
    xid = "/" + "/".join(parts)
    if len(parts) == 4:
        return Target("resource", path, xid, group, gid, resource, rid, details=details)
    if parts[4] == "meta" and len(parts) == 5:
        _refuse(details, path)
        return Target("meta", path, xid, group, gid, resource, rid)
    if parts[4] == "versions" and len(parts) == 5:
        _refuse(details, path)
        return Target("versions", path, xid, group, gid, resource, rid)
    if parts[4] == "versions" and len(parts) == 6:
        vid = _id(parts, 5, "version", path, details)
        return Target("version", path, xid, group, gid, resource, rid, vid, details)
    raise RegistryError("not_found", path)


def _refuse(details: bool, path: str) -> None:
    if details:
        raise RegistryError("bad_details", path)


def _id(parts: list[str], index: int, singular: str, path: str, details: bool) -> str:
    if not parts[index]:
        subject = path if details and len(parts) == index + 1 else "/" + "/".join(parts[:index]) + "/"
        raise RegistryError(
            "bad_request", subject, error_detail=f'"{singular}id" value in URL cannot be an empty string'
        )
    return parts[index]
