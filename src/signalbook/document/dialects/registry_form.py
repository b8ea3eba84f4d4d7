"""Documents of nested maps (0.5, discovery, 1.0): every entity by the table of its level.

Rule: the tree is the canonical one; a dialect may have other names for its collections, never other levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signalbook.document.dialects.as_written import as_it_came, keep_as_it_came
from signalbook.document.dialects.forms import FORMS
from signalbook.document.dialects.rows import Step, inward, outward
from signalbook.document.respelled import differences, respelled
from signalbook.document.spelling import from_canonical, spelled_members, to_canonical
from signalbook.errors import Problem, RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.dialects.dialect import CANONICAL, Dialect, Table
from signalbook.spec.versions import DEFAULT

__all__ = [
    "labels_in",
    "read_entity",
    "read_registry",
    "refuse",
    "respellings",
    "rewritten",
    "without_given",
    "write_entity",
    "write_registry",
]

Json = dict[str, Any]

_DOMAINS = {
    "messagegroup": MESSAGE,
    "message": MESSAGE,
    "schemagroup": SCHEMA,
    "schema": SCHEMA,
    "endpoint": ENDPOINT,
}
_RESOURCES: Mapping[str, Mapping[str, str]] = dict(CANONICAL.values())
_GROUPS = frozenset(_RESOURCES)
_UNSPELLED = frozenset({"registry", "meta"})
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


def _below(level: str) -> Mapping[str, str]:
    """The collections that an entity has, with the level of their members: resources or versions."""
    if level in _RESOURCES or level.endswith("version"):
        return _RESOURCES.get(level, {})
    return {"versions": f"{level}version"}


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
    below = _below(level)
    nested = {name: members(entity[name], f"{at}/{name}") for name in below if entity.get(name) is not None}
    rest = {name: value for name, value in entity.items() if name not in below}
    found = _read(rest, level, dialect, notes, at, group or {})
    if isinstance(found.get("meta"), dict):
        given = found["meta"].get("labels")
        found["meta"] = _read(found["meta"], "meta", dialect, notes, f"{at}/meta", {})
        found["meta"] = _lifted(found, found["meta"], given, at)
    for name, value in nested.items():
        found[name] = {
            key: read_entity(member, below[name], dialect, notes, f"{at}/{name}/{key}", found)
            for key, member in value.items()
        }
    return found


def labels_in(entity: Json, at: str) -> Json:
    """The labels of an entity, to which others are added; raises where they are not a map."""
    labels = entity.get("labels") or {}
    if not isinstance(labels, dict):
        raise refuse(at, "labels", "must be a map")
    return labels


def _lifted(found: Json, meta: Json, given: Any, at: str) -> Json:
    """A meta without the labels that hold what it has no place for: they are the resource's; its own stay."""
    labels, own = meta.get("labels"), given if isinstance(given, dict) else {}
    if not isinstance(labels, dict) or labels.keys() <= own.keys():
        return meta
    held = {name: value for name, value in labels.items() if name not in own}
    found["labels"] = {**labels_in(found, at), **held}
    rest = {name: value for name, value in meta.items() if name != "labels"}
    return {**rest, "labels": dict(own)} if own else rest


def _read(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    found = _read_plain(entity, level, dialect, notes, at, group)
    if dialect.written and dialect.spec is None and level not in _UNSPELLED and not _is_alias(found):
        table = _table(dialect, level)
        shown = _outward(found, table, dialect, [], at, group)
        if not keep_as_it_came(entity, shown, found, dialect, _names(table)):
            notes.append(
                Problem(at, "changed", "is shown as this text spells it, for there is no room to keep its own")
            )
    return found


def _read_plain(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    table = _table(dialect, level)
    step = Step(dialect, notes, at, dict(entity), envelope=_text(group.get("envelope")))
    found = inward(step, table.rows, FORMS) if table.rows else step.source
    if level.removesuffix("version") == "message" and "protocol" not in found and "protocoloptions" in found:
        found = _read_inherited(entity, dialect, at, group, table) or found
    if level in _UNSPELLED:
        return found
    return dict(to_canonical(_DOMAINS.get(level.removesuffix("version"), ""), found, at, group=level in _GROUPS))


def _is_alias(found: Json) -> bool:
    """Whether a resource shows another, and has nothing of its own that could be kept."""
    meta = found.get("meta")
    return isinstance(meta, dict) and "xref" in meta


def _names(table: Table) -> frozenset[str]:
    """The members of an entity that are spelled otherwise in 1.0."""
    return frozenset(row.there.partition("/")[0] for row in table.rows) - {"", "labels", "id", *_META, *_VERSIONS}


def _read_inherited(entity: Json, dialect: Dialect, at: str, group: Json, table: Table) -> Json | None:
    """A message that leaves its protocol to its group, read by that protocol's options."""
    protocol = group.get("protocol")
    if not isinstance(protocol, str) or protocol not in dialect.options:
        return None
    step = Step(dialect, [], at, dict(entity), protocol=protocol, envelope=_text(group.get("envelope")))
    return inward(step, table.rows, FORMS)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


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


def respellings(
    document: Json, dialect: Dialect, level: str = "registry", at: str = "", verb: str = "is stored"
) -> Iterator[Problem]:
    """A note for each place of a document of 1.0 that is stored in another spelling; `level` is what it holds."""
    if level == "registry":
        for plural, (below, _) in CANONICAL.items():
            for groupid, group in _objects(document.get(plural)):
                yield from respellings(group, dialect, below, f"/{plural}/{groupid}", verb)
        return
    plain, collections = level.removesuffix("version"), _below(level)
    own = {name: value for name, value in document.items() if name not in collections}
    if level in _GROUPS:
        yield from _deprecations(own.pop("deprecated", None), _table(dialect, level), dialect, at, verb)
    else:
        meta = own.pop("meta", None)
        deprecated = meta.get("deprecated") if isinstance(meta, dict) else None
        yield from _deprecations(deprecated, _table(dialect, "meta"), dialect, f"{at}/meta", verb)
    found = respelled(_DOMAINS.get(plain, ""), own, dialect.spec or DEFAULT, group=level in _GROUPS)
    yield from (Problem(at + place, "respelled", f"{verb} {words}") for place, words in found)
    for collection, below in collections.items():
        for key, member in _objects(document.get(collection)):
            yield from respellings(member, dialect, below, f"{at}/{collection}/{key}", verb)


def _deprecations(value: Any, table: Table, dialect: Dialect, at: str, verb: str) -> Iterator[Problem]:
    """A note for a member of `deprecated`, of a group or a meta, whose name the dialect does not have."""
    if not isinstance(value, dict):
        return
    if dialect.spec is not None:
        wanted = dialect.spec.members.get("deprecated", {}).get("documentation", "documentation")
    else:
        wanted = "docs" if any(row.here == "deprecated" for row in table.rows) else "documentation"
    for name in ("docs", "documentation"):
        if name in value and name != wanted and wanted not in value:
            yield Problem(f"{at}/deprecated/{name}", "respelled", f'{verb} as "{wanted}"')


def rewritten(document: Json, written: Json, notes: Sequence[Problem]) -> Iterator[Problem]:
    """A note for each place of a document that is written otherwise in another version of 1.0.

    What `notes` tell of already, as held in a label for instance, is not told again.
    """
    told = {note.path for note in notes if note.code in ("held", "lost", "respelled")}
    label = {"specversion": written.get("specversion")}
    for place, words in differences({**document, **label}, {**written, **label}):
        if place not in told:
            yield Problem(place, "respelled", f"is written {words}")


def _objects(value: Any) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        yield from ((key, member) for key, member in value.items() if isinstance(member, dict))


# --- out of the canonical form ----------------------------------------------------------------------------------------


def write_registry(document: Json, dialect: Dialect, notes: list[Problem]) -> Json:
    """A canonical document as the dialect has it."""
    rest = {name: value for name, value in document.items() if name not in CANONICAL}
    found = {"specversion": dialect.label, **_write(rest, "registry", dialect, notes, "", {})}
    for name, (level, _) in CANONICAL.items():
        if name in document:
            found[name] = {
                key: write_entity(group, level, dialect, notes, f"/{name}/{key}")
                for key, group in members(document[name], f"/{name}").items()
            }
    return found


def write_entity(
    entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str = "", group: Json | None = None
) -> Json:
    """One canonical group or resource, with all below it, as the dialect has it."""
    below = _below(level)
    nested = {name: entity[name] for name in below if isinstance(entity.get(name), dict)}
    rest = {name: value for name, value in entity.items() if name not in nested}
    found = _write(rest, level, dialect, notes, at, group or {})
    for name, value in nested.items():
        found[name] = {
            key: write_entity(member, below[name], dialect, notes, f"{at}/{name}/{key}", rest)
            for key, member in members(value, f"{at}/{name}").items()
        }
    return found


def _write(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    if dialect.spec is not None:
        if isinstance(entity.get("meta"), dict):
            entity = {**entity, "meta": spelled_members(entity["meta"], dialect.spec)}
        if level in _GROUPS:
            entity = dict(spelled_members(entity, dialect.spec))
        if level in _UNSPELLED:
            return dict(entity)
        domain = _DOMAINS.get(level.removesuffix("version"), "")
        return dict(from_canonical(domain, entity, dialect.spec, group=level in _GROUPS))
    table = _table(dialect, level)
    return as_it_came(
        entity,
        dialect,
        lambda own: _outward(own, table, dialect, notes, at, group),
        lambda shown: _read_plain(shown, level, dialect, [], at, group),
    )


def _outward(entity: Json, table: Table, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    protocol = str(entity.get("protocol") or group.get("protocol") or "")
    envelope = _text(entity.get("envelope") or group.get("envelope"))
    step = Step(dialect, notes, at, without_given(entity), protocol=protocol, envelope=envelope)
    return outward(step, table.rows, FORMS, table)


# What a server shows of every meta: its own addresses and times, and choices nobody made.
_META = frozenset({"self", "shortself", "xid", "epoch", "createdat", "modifiedat", "messageid", "schemaid"})
_VERSIONS = frozenset({"defaultversionid", "defaultversionurl", "defaultversionsticky", "readonly", "origin"})
_UNCHOSEN = (("readonly", False), ("defaultversionsticky", False))


def without_given(entity: Json) -> Json:
    """An entity whose meta, if it has one, says only what somebody chose."""
    meta = entity.get("meta")
    if not isinstance(meta, dict):
        return dict(entity)
    chosen = {name: value for name, value in meta.items() if name not in _META and (name, value) not in _UNCHOSEN}
    rest = {name: value for name, value in entity.items() if name != "meta"}
    return {**rest, "meta": chosen} if chosen else rest
