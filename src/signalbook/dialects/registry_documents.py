"""Documents of nested maps (0.5, discovery, 1.0): every entity by the table of its level.

Rule: the tree is the canonical one; a dialect may have other names for its collections, never other levels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson

from signalbook.dialects.forms import FORMS
from signalbook.dialects.rows import MAX_LABEL, ConversionStep, inward, outward, parsed
from signalbook.errors import Problem, RegistryError
from signalbook.jsontext import Json
from signalbook.model.normalise import differences, from_canonical, respelled, spelled_members, to_canonical
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.dialects.dialect import CANONICAL, Dialect, DialectTable
from signalbook.spec.versions import DEFAULT

__all__ = [
    "as_it_came",
    "filled_formats",
    "keep_as_it_came",
    "labels_in",
    "meaning",
    "overrides",
    "read_entity",
    "read_registry",
    "refuse",
    "respellings",
    "rewritten",
    "without_given",
    "write_entity",
    "write_registry",
]

# What a canonical document means: the document without what a server assigns and without what says nothing.
#
# Rule: two documents that read alike mean the same; `convert` there and back never changes a meaning without a note.


_ASSIGNED = frozenset(
    {"self", "shortself", "xid", "epoch", "modifiedat", "isdefault", "ancestorid", "ancestor", "metaurl"}
    | {"versionsurl", "versionscount", "messagesurl", "messagescount", "schemasurl", "schemascount"}
    | {"messagegroupsurl", "messagegroupscount", "schemagroupsurl", "schemagroupscount", "endpointsurl"}
    | {"endpointscount", "defaultversionurl"}
)
_FIRST = "1"  # core/spec.md: the id that a server gives to a lone version
_OWN = frozenset({"messagegroupid", "schemagroupid", "endpointid"})
_IDS = _OWN | {"messageid", "schemaid", "versionid"}
_SECTIONS = (
    "envelopemetadata", "properties", "application-properties", "message-annotations", "delivery-annotations", "footer",
    "headers", "query", "user_properties", "protocoloptions",
)  # fmt: skip


def meaning(value: Any) -> Any:
    """A canonical document or entity, reduced to what it means; its `specversion` is the label of a document."""
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if name != "specversion"}
    return _meaning(value)


def _meaning(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = {name: member for name, member in value.items() if name not in _ASSIGNED and member not in (None, {}, [])}
    for name in ("messagegroups", "schemagroups", "endpoints", "messages", "schemas", "versions"):
        if isinstance(found.get(name), dict):
            found[name] = {key: _member(_meaning(member), key) for key, member in found[name].items()}
    if found.get("versionid") == _FIRST and "versions" not in found:
        del found["versionid"]
    if isinstance(found.get("meta"), dict):
        found["meta"] = {name: member for name, member in _meaning(found["meta"]).items() if member is not False}
    for name in _SECTIONS:
        if name in found:
            found[name] = _properties(found[name])
    return _content_type(found)


def _member(entity: Any, key: str) -> Any:
    """A member of a map without ids: its own is the key, and those above it are those of the maps it is in."""
    if not isinstance(entity, dict):
        return entity
    return {name: value for name, value in entity.items() if name not in _IDS or (name in _OWN and value != key)}


def _properties(value: Any) -> Any:
    """Property definitions without a type that is the default anyway: a text is a template either way."""
    if isinstance(value, list):
        return [_properties(member) for member in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in ("string", "uritemplate"):
        value = {name: member for name, member in value.items() if name != "type"}
    return {name: _properties(member) for name, member in value.items() if name != "value"} | (
        {"value": value["value"]} if "value" in value else {}
    )


def _content_type(found: Json) -> Json:
    """A message's content type where an envelope has it, be it stated there, beside it, or in both places."""
    content, metadata = found.get("datacontenttype"), found.get("envelopemetadata")
    if content is None or "envelope" not in found:
        return found
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    member = metadata.get("datacontenttype") or {}
    if not isinstance(member, dict) or member.get("value", content) != content:
        return found
    rest = {name: value for name, value in found.items() if name != "datacontenttype"}
    return {**rest, "envelopemetadata": {**metadata, "datacontenttype": {**member, "value": content}}}


# How an entity of an older dialect was written, where the way there and back would write it otherwise.
#
# Rule 1: what differs is a merge patch (RFC 7396) in the label `PREFIX.written`: `HTTP/2` where the dialect writes
# `HTTP/1.1`, `a, b` where it writes `a,b`. Nothing there says anything of its own.
# Rule 2: it is shown as long as it means what the entity says now; once somebody changed that, it is shown no longer.


Read = Callable[[Json], Json]


def keep_as_it_came(given: Json, shown: Json, found: Json, dialect: Dialect, names: Collection[str] = ()) -> bool:
    """Keep with `found`, which was read from `given`, what of it is shown otherwise; whether there is room for it.

    `names` are the members of which this is kept; all of them where there are none.
    """
    patch = _patch(shown, {name: value for name, value in given.items() if value is not None})
    if names:
        patch = {name: value for name, value in patch.items() if name in names}
    if not patch:
        return True
    text = orjson.dumps(patch, option=orjson.OPT_SORT_KEYS).decode()
    if len(text.encode()) + len(_label(dialect)) > MAX_LABEL:
        return False
    labels = found.get("labels")
    if labels is not None and not isinstance(labels, dict):
        return True
    found["labels"] = {**(labels or {}), _label(dialect): text}
    return True


def as_it_came(source: Json, dialect: Dialect, write: Callable[[Json], Json], read: Read) -> Json:
    """What `write` makes of an entity, as it was written once where that reads alike."""
    labels = source.get("labels")
    if not isinstance(labels, dict) or _label(dialect) not in labels:
        return write(source)
    patch = parsed(labels[_label(dialect)])
    rest = {name: value for name, value in labels.items() if name != _label(dialect)}
    plain = {name: value for name, value in source.items() if name != "labels"} | ({"labels": rest} if rest else {})
    shown = write(plain)
    if not isinstance(patch, dict):
        return shown
    told = meaning(read(shown))
    patched: Json = _patched(shown, patch)
    for candidate in (_without_held(patched, labels), patched):
        if meaning(read(candidate)) == told:
            return candidate
    return shown


def _without_held(patched: Json, given: Json) -> Json:
    """An entity without the labels for what it had no room for as it was shown, and may say itself once patched."""
    labels = patched.get("labels")
    if not isinstance(labels, dict):
        return patched
    kept = {name: value for name, value in labels.items() if name in given or not name.startswith("1.0.")}
    return {name: value for name, value in patched.items() if name != "labels"} | ({"labels": kept} if kept else {})


def _label(dialect: Dialect) -> str:
    return f"{dialect.prefix}.written"


def _patch(before: Json, after: Json) -> Json:
    """The merge patch that makes the one of the other."""
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        known = before.get(name)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = _patch(known, value)
            if inner:
                patch[name] = inner
        elif (name not in before or known != value or type(known) is not type(value)) and not _has_null(value):
            patch[name] = value
    return patch


def _has_null(value: Any) -> bool:
    """Whether a value says somewhere that something is not there, which a patch cannot add."""
    if isinstance(value, dict):
        return any(_has_null(member) for member in value.values())
    return value is None


def _patched(before: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _patched(found.get(name), value)
    return found


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
_NO_TABLE = DialectTable()


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
    found = _read_entity(rest, "registry", dialect, notes, "", {})
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
    found = _read_entity(rest, level, dialect, notes, at, group or {})
    if isinstance(found.get("meta"), dict):
        given = found["meta"].get("labels")
        found["meta"] = _read_entity(found["meta"], "meta", dialect, notes, f"{at}/meta", {})
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


def _read_entity(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    found = _read_plain(entity, level, dialect, notes, at, group)
    if dialect.written and dialect.spec is None and level not in _UNSPELLED and not _is_alias(found):
        table = _table(dialect, level)
        shown = _outward(found, table, dialect, [], at, group)
        if not keep_as_it_came(entity, shown, found, dialect, _names(table)):
            notes.append(Problem(at, "changed", "is shown in this dialect's spelling; its own spelling cannot be kept"))
    return found


def _read_plain(entity: Json, level: str, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    table = _table(dialect, level)
    step = ConversionStep(dialect, notes, at, dict(entity), envelope=_text_or_empty(group.get("envelope")))
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


def _names(table: DialectTable) -> frozenset[str]:
    """The members of an entity that are spelled otherwise in 1.0."""
    return frozenset(row.there.partition("/")[0] for row in table.rows) - {"", "labels", "id", *_META, *_VERSIONS}


def _read_inherited(entity: Json, dialect: Dialect, at: str, group: Json, table: DialectTable) -> Json | None:
    """A message that leaves its protocol to its group, read by that protocol's options."""
    protocol = group.get("protocol")
    if not isinstance(protocol, str) or protocol not in dialect.options:
        return None
    step = ConversionStep(
        dialect, [], at, dict(entity), protocol=protocol, envelope=_text_or_empty(group.get("envelope"))
    )
    return inward(step, table.rows, FORMS)


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _table(dialect: Dialect, level: str) -> DialectTable:
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


def _deprecations(value: Any, table: DialectTable, dialect: Dialect, at: str, verb: str) -> Iterator[Problem]:
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


def _outward(entity: Json, table: DialectTable, dialect: Dialect, notes: list[Problem], at: str, group: Json) -> Json:
    protocol = str(entity.get("protocol") or group.get("protocol") or "")
    envelope = _text_or_empty(entity.get("envelope") or group.get("envelope"))
    step = ConversionStep(dialect, notes, at, without_given(entity), protocol=protocol, envelope=envelope)
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


# What can only be said of a whole document: a derived message beside its base, a message beside its schema.
#
# 0.5 "`basemessageurl`": the base is overridden by the definition. 1.0 merges the two deeply, so that a derived message
# gets what its base has and it has not.


_PARTS = ("envelopemetadata", "protocoloptions", "envelopeoptions")


def overrides(document: Json) -> Iterator[Problem]:
    """A note for each part of a message that 1.0 fills up from its base, where the document holds the base too."""
    messages = _messages(document)
    for xid, message in messages.items():
        base = messages.get(str(message.get("basemessage", "")), {})
        for part in _PARTS:
            more = sorted(_more(base.get(part), message.get(part)))
            if more:
                words = f"1.0 adds what the base message has and this one has not: {', '.join(more)}"
                yield Problem(f"{xid}/{part}", "changed", words)


def _more(base: Any, own: Any) -> Iterator[str]:
    """The members of the base's part that the derived message leaves out of its own."""
    if isinstance(base, dict) and isinstance(own, dict):
        yield from base.keys() - own.keys()
        for name in base.keys() & own.keys():
            yield from (f"{name}.{inner}" for inner in _more(base[name], own[name]))


def filled_formats(document: Json) -> Iterator[Problem]:
    """Give each message that refers to a schema of the document, and leaves its format out, that format; note each."""
    for _, group in _members(document, "schemagroups"):
        for _, schema in _members(group, "schemas"):
            for _, version in _members(schema, "versions") if schema.get("format") else ():
                version.setdefault("format", schema["format"])
    for xid, message in _messages(document).items():
        uri = message.get("dataschemauri")
        if not isinstance(uri, str) or "dataschemaformat" in message:
            continue
        form = _format(document, uri.partition("#")[0].strip("/").split("/"))
        if form:
            message["dataschemaformat"] = form
            yield Problem(f"{xid}/dataschemaformat", "changed", f"is '{form}', as the schema that it refers to says")


def _format(document: Mapping[str, Any], steps: list[str]) -> str:
    schema: Any = document
    for step in steps[:4]:
        schema = schema.get(step) if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or steps[0] != "schemagroups":
        return ""
    versions = schema.get("versions")
    named = versions.get(steps[5]) if isinstance(versions, dict) and len(steps) > 5 else None
    newest = list(versions.values())[-1:] if isinstance(versions, dict) else []
    places = [named, schema, *newest]
    return next((str(one["format"]) for one in places if isinstance(one, dict) and one.get("format")), "")


def _messages(document: Mapping[str, Any]) -> dict[str, Json]:
    return {
        f"/{groups}/{groupid}/messages/{messageid}": message
        for groups in ("messagegroups", "endpoints")
        for groupid, group in _members(document, groups)
        for messageid, message in _members(group, "messages")
    }


def _members(entity: Mapping[str, Any], name: str) -> Iterator[tuple[str, Json]]:
    """The objects of a collection; a document from outside may have anything in its place."""
    members = entity.get(name)
    if isinstance(members, dict):
        yield from ((key, member) for key, member in members.items() if isinstance(member, dict))
