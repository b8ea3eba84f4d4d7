"""Cutting a catalog document into requests that a registry takes one by one.

Rule 1: a document's groups go in as they stand; the registry's own read-only members stay behind.
Rule 2: a part is bounded in entries and in bytes. A group's first part writes the group; what does not fit follows in
parts that only add to it, so no part undoes what an earlier one wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from signalbook.errors import UsageError

__all__ = ["Entry", "Part", "metadata", "parts"]

MAX_ENTRIES = 500
MAX_BYTES = 4 * 1024 * 1024

# core/spec.md "Registry Entity": what a registry says about itself and a client cannot set.
READ_ONLY = frozenset(
    {"$schema", "specversion", "registryid", "self", "shortself", "xid", "epoch", "createdat", "modifiedat"}
)
DEFINING = frozenset({"capabilities", "model", "modelsource"})
DESCRIPTIVE = frozenset({"name", "description", "documentation", "icon", "labels"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource of a part, and where it goes; `group` is its group without resources."""

    plural: str
    groupid: str
    group: Mapping[str, Any]
    collection: str
    resourceid: str
    resource: Any


@dataclass(slots=True)
class Part:
    """One request: POST `body` at `path`; it writes so many groups and resources."""

    path: str = "/"
    body: dict[str, Any] = field(default_factory=dict)
    groups: int = 0
    resources: int = 0
    entries: list[Entry] = field(default_factory=list, compare=False, repr=False)


def metadata(document: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """What the document says about the registry itself and a client may set: its name, its labels, its extensions."""
    types: Mapping[str, Any] = model.get("groups") or {}
    views = _views(document, types)
    others = READ_ONLY | DEFINING | types.keys() | views
    return {name: value for name, value in document.items() if name not in others}


def parts(
    document: Mapping[str, Any],
    model: Mapping[str, Any],
    *,
    source: str = "the document",
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> Iterator[Part]:
    """The requests that write every group of `document` into a registry with this `model`; 0 means no bound."""
    part, size = Part(), 0
    for plural, group_type, groups in _collections(document, model, source):
        for groupid, group in groups.items():
            if not isinstance(group, Mapping):
                raise UsageError(f'{source}: "{plural}/{groupid}" is not an object, so it is not a group')
            lone, entries = _without_resources(group, group_type)
            cost = len(orjson.dumps(lone))
            if _full(part, size, cost, max_entries, max_bytes):
                yield part
                part, size = Part(), 0
            part.body.setdefault(plural, {})[groupid] = dict(lone)
            part.groups += 1
            size += cost
            for resources, resourceid, resource in entries:
                cost = len(orjson.dumps(resource))
                if _full(part, size, cost, max_entries, max_bytes):
                    yield part
                    part, size = Part(path=f"/{plural}/{groupid}"), 0
                place = part.body if part.path != "/" else part.body[plural][groupid]
                place.setdefault(resources, {})[resourceid] = resource
                part.entries.append(Entry(plural, groupid, lone, resources, resourceid, resource))
                part.resources += 1
                size += cost
            if part.path != "/" and part.body:
                yield part
                part, size = Part(), 0
    if part.body:
        yield part


def _full(part: Part, size: int, cost: int, max_entries: int, max_bytes: int) -> bool:
    entries = part.groups + part.resources
    return bool(entries) and (0 < max_entries <= entries or 0 < max_bytes < size + cost)


def _collections(
    document: Mapping[str, Any], model: Mapping[str, Any], source: str
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Each group collection of the document with its type; raises where a member is nothing the model knows."""
    types: Mapping[str, Any] = model.get("groups") or {}
    declared: Mapping[str, Any] = model.get("attributes") or {}
    own = READ_ONLY | DESCRIPTIVE | DEFINING | _views(document, types) | declared.keys()
    for name, value in document.items():
        if name in types:
            if not isinstance(value, Mapping):
                raise UsageError(f"{source}: '{name}' is not an object of groups")
            yield name, types[name], value
        elif name not in own and "*" not in declared:
            known = ", ".join(sorted(types)) or "none"
            raise UsageError(
                f"{source}: '{name}' is no group type of the registry's model (it has: {known}); "
                "correct the name, or load the document's own model with --with-model"
            )


def _views(document: Mapping[str, Any], types: Mapping[str, Any]) -> set[str]:
    """The members that tell the address and the size of a collection, be it of a type that the model does not have."""
    pairs = {name.removesuffix("url") for name in document if f"{name.removesuffix('url')}count" in document}
    return {f"{plural}{suffix}" for plural in {*types, *pairs} for suffix in ("url", "count")}


def _without_resources(
    group: Mapping[str, Any], group_type: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
    """A group without its resources, and these as (collection, id, resource)."""
    names = [name for name in _resource_types(group_type) if isinstance(group.get(name), Mapping)]
    lone = {name: value for name, value in group.items() if name not in names}
    return lone, [(name, resourceid, resource) for name in names for resourceid, resource in group[name].items()]


def _resource_types(group_type: Mapping[str, Any]) -> list[str]:
    imported = [str(xid).rpartition("/")[2] for xid in group_type.get("ximportresources") or ()]
    return [*(group_type.get("resources") or {}), *imported]
