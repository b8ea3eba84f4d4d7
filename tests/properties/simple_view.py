"""What a registry in plain dicts looks like from outside: `GET /?inline=*` without addresses, and a filter's answer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.properties.simple_registry import SimpleRegistry
from tests.properties.simple_turn import SINGULAR, Entity


def view(registry: SimpleRegistry) -> Entity:
    """What `GET /?inline=*` shows, without addresses."""
    root = registry.root
    shown = {"registryid": "r", "xid": "/", **_common(root)}
    for plural, groups in root["groups"].items():
        shown[plural + "count"] = len(groups)
        shown[plural] = {gid: _group(registry, plural, gid, group) for gid, group in groups.items()}
    return shown


def _common(entity: Entity) -> Entity:
    return {**entity["attrs"], **{name: entity[name] for name in ("epoch", "createdat", "modifiedat")}}


def _group(registry: SimpleRegistry, plural: str, gid: str, group: Entity) -> Entity:
    xid = f"/{plural}/{gid}"
    files = {rid: _file(registry, f"{xid}/files/{rid}", rid, file) for rid, file in group["files"].items()}
    return {SINGULAR[plural] + "id": gid, "xid": xid, **_common(group), "filescount": len(files), "files": files}


def _file(registry: SimpleRegistry, xid: str, rid: str, file: Entity) -> Entity:
    meta: Entity = {"fileid": rid, "xid": xid + "/meta", **({"xref": file["xref"]} if file["xref"] else {})}
    shown: Entity = {"fileid": rid, "xid": xid, "meta": meta}
    target = registry.target(file)
    if target is None:
        return shown
    default = target["default"]
    versions = {
        vid: {
            "fileid": rid, "versionid": vid, "xid": f"{xid}/versions/{vid}", "isdefault": vid == default,
            "ancestorid": version["ancestorid"], **_common(version),
        }
        for vid, version in target["versions"].items()
    }  # fmt: skip
    choice = {"readonly": False, "defaultversionid": default, "defaultversionsticky": target["sticky"]}
    meta.update(_common(target), **choice)
    return {**versions[default], **shown, "versionscount": len(versions), "versions": versions}


def matching(registry: SimpleRegistry, stage: str) -> Iterator[str]:
    """The xids of the resources whose default version has a label `stage` of this value."""
    shown = view(registry)
    for group in [*shown["dirs"].values(), *shown["boxes"].values()]:
        for file in group["files"].values():
            if file.get("labels", {}).get("stage", "").lower() == stage.lower():
                yield file["xid"]
