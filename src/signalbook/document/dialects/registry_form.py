"""Documents of nested maps (0.5, discovery, 1.0): every entity by the table of its level.

Rule: the tree is the canonical one; a dialect may have other names for its collections, never other levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbook.document.dialects.forms import FORMS
from signalbook.document.dialects.rows import Step, inward, outward
from signalbook.document.spelling import from_canonical, to_canonical
from signalbook.errors import Problem, RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.dialects.dialect import CANONICAL, Dialect, Table

__all__ = ["read_entity", "read_registry", "refuse", "without_given", "write_entity", "write_registry"]

Json = dict[str, Any]

_DOMAINS = {
    "messagegroup": MESSAGE,
    "message": MESSAGE,
    "schemagroup": SCHEMA,
    "schema": SCHEMA,
    "endpoint": ENDPOINT,
}
_RESOURCES: Mapping[str, Mapping[str, str]] = dict(CANONICAL.values())
_NO_TABLE = Table()


def refuse(at: str, name: str, words: str) -> RegistryError:
    """The error of a document that is not of the form it has to be."""
    return RegistryError("invalid_attribute", at or "/", name=name, error_detail=words)


def members(value: Any, at: str) -> Mapping[str, Json]:
    """The members of a collection, which has to be a map of objects."""
    if not isinstance(value, dict):
        raise refuse(at, at.rpartition("/")[2], "must be a map")
    for key, member in value.items():
        if not isinstance(member, dict):
            raise refuse(f"{at}/{key}", key, "must be an object")
    return value


# --- into the canonical form ------------------------------------------------------------------------------------------


def read_registry(document: Json, dialect: Dialect, notes: list[Problem]) -> Json:
    """A whole document in the canonical form."""
    document = _collections(document, dialect.collections)
    groups = {name: document[name] for name in CANONICAL if document.get(name) is not None}
    rest = {name: value for name, value in document.items() if name not in CANONICAL}
    found = _read(rest, "registry", dialect, notes, "", {})
    found.pop("specversion", None)
    for name, value in groups.items():
        level = CANONICAL[name][0]
        found[name] = {
            key: read_entity(group, level, dialect, notes, f"/{name}/{key}")
            for key, group in members(value, f"/{name}").items()
        }
    return found


def read_entity(
    entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None
) -> Json:
    """One group or resource, with all below it, in the canonical form."""
    entity = _collections(entity, dialect.collections)
    below = {**_RESOURCES.get(level, {}), "versions": f"{level}version"}
    nested = {name: members(entity[name], f"{at}/{name}") for name in below if entity.get(name) is not None}
    rest = {name: value for name, value in entity.items() if name not in below}
    found = _read(rest, level, dialect, notes, at, group or {})
    if isinstance(found.get("meta"), dict):
        given = found["meta"].get("labels")
        found["meta"] = _read(found["meta"], "meta", dialect, notes, f"{at}/meta", {})
        found["meta"] = _lifted(found, found["meta"], given)
    for name, value in nested.items():
        found[name] = {
            key: read_entity(member, below[name], dialect, notes, f"{at}/{name}/{key}", found)
            for key, member in value.items()
        }
    return found


def _lifted(found: Json, meta: Json, given: Any) -> Json:
    """A meta without the labels that hold what it has no place for: they are the resource's; its own stay."""
    labels, own = meta.get("labels"), given if isinstance(given, dict) else {}
    if not isinstance(labels, dict) or labels.keys() <= own.keys():
        return meta
    held = {name: value for name, value in labels.items() if name not in own}
    found["labels"] = {**(found.get("labels") or {}), **held}
    rest = {name: value for name, value in meta.items() if name != "labels"}
    return {**rest, "labels": dict(own)} if own else rest


def _read(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    table = _table(dialect, level)
    step = Step(dialect, notes, at, dict(entity))
    found = inward(step, table.rows, FORMS) if table.rows else step.source
    if level.removesuffix("version") == "message" and "protocol" not in found and "protocoloptions" in found:
        found = _read_inherited(entity, dialect, at, group, table) or found
    domain = _DOMAINS.get(level.removesuffix("version"), "")
    return dict(to_canonical(domain, found, at))


def _read_inherited(entity: Json, dialect: Dialect, at: str, group: Json, table: Table) -> Json | None:
    """A message that leaves its protocol to its group, read by that protocol's options."""
    protocol = group.get("protocol")
    if not isinstance(protocol, str) or protocol not in dialect.options:
        return None
    return inward(Step(dialect, [], at, dict(entity), protocol=protocol), table.rows, FORMS)


def _table(dialect: Dialect, level: str) -> Table:
    return dialect.tables.get(level) or dialect.tables.get(level.removesuffix("version"), _NO_TABLE)


def _collections(entity: Json, names: Mapping[str, str]) -> Json:
    """An entity with today's names of its collections; an array of that name is something else."""
    if not names.keys() & entity.keys():
        return entity
    for name, value in entity.items():
        if isinstance(value, dict) and names.get(name, name) != name and names[name] in entity:
            raise refuse("", name, f"and '{names[name]}' are two names of one collection")
    return {(names.get(name, name) if isinstance(value, dict) else name): value for name, value in entity.items()}


# --- out of the canonical form ----------------------------------------------------------------------------------------


def write_registry(document: Json, dialect: Dialect, notes: list[Problem]) -> Json:
    """A canonical document as the dialect has it."""
    rest = {name: value for name, value in document.items() if name not in CANONICAL}
    found = {"specversion": dialect.label, **_write(rest, "registry", dialect, notes, "")}
    for name, (level, _) in CANONICAL.items():
        if name in document:
            found[name] = {
                key: write_entity(group, level, dialect, notes, f"/{name}/{key}")
                for key, group in members(document[name], f"/{name}").items()
            }
    return found


def write_entity(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str = "") -> Json:
    """One canonical group or resource, with all below it, as the dialect has it."""
    below = {**_RESOURCES.get(level, {}), "versions": f"{level}version"}
    nested = {name: entity[name] for name in below if isinstance(entity.get(name), dict)}
    rest = {name: value for name, value in entity.items() if name not in nested}
    found = _write(rest, level, dialect, notes, at)
    for name, value in nested.items():
        found[name] = {
            key: write_entity(member, below[name], dialect, notes, f"{at}/{name}/{key}")
            for key, member in members(value, f"{at}/{name}").items()
        }
    return found


def _write(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str) -> Json:
    if dialect.spec is not None:
        return dict(from_canonical(_DOMAINS.get(level.removesuffix("version"), ""), entity, dialect.spec))
    table = _table(dialect, level)
    protocol = str(entity.get("protocol", ""))
    return outward(Step(dialect, notes, at, without_given(entity), protocol=protocol), table.rows, FORMS, table)


# What a server shows of every meta: its own addresses and times, and choices nobody made.
_META = frozenset({"self", "shortself", "xid", "epoch", "createdat", "modifiedat", "messageid", "schemaid"})
_UNCHOSEN = (("readonly", False), ("defaultversionsticky", False))


def without_given(entity: Json) -> Json:
    """An entity whose meta, if it has one, says only what somebody chose."""
    meta = entity.get("meta")
    if not isinstance(meta, dict):
        return dict(entity)
    chosen = {name: value for name, value in meta.items() if name not in _META and (name, value) not in _UNCHOSEN}
    rest = {name: value for name, value in entity.items() if name != "meta"}
    return {**rest, "meta": chosen} if chosen else rest
