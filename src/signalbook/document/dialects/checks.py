"""Whether a document of an older dialect is one by the rules of its own text, before it is converted or stored.

Rule: each finding is a `Problem` with the code `invalid` and the place in the document as it was written. What no rule
speaks of passes: the registry's own rules judge it once it is converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from signalbook.document.dialects.detect import level_of
from signalbook.document.dialects.ids import to_id
from signalbook.document.dialects.metaschema import check_definition, check_group
from signalbook.document.dialects.placeholders import may_become
from signalbook.errors import Problem
from signalbook.spec.dialects.dialect import CANONICAL, Dialect
from signalbook.spec.protocols import find_protocol

__all__ = ["check"]

Json = dict[str, Any]

_WORDS = {str: "text", dict: "object", bool: "true or false", list: "list"}
_RESOURCES: Mapping[str, Mapping[str, str]] = dict(CANONICAL.values())
# Seed 003, the tables of the bindings: options that are numbers or flags, as `{"value": …}` or plainly.
_OPTIONS: Mapping[str, Mapping[str, type]] = {
    "KAFKA": {"partition": int, "timestamp": int},
    "MQTT/3.1.1": {"qos": int, "retain": bool},
    "MQTT/5.0": {"qos": int, "retain": bool, "payload-format": int, "message-expiry-interval": int},
}
_HEADER = {"durable": bool, "priority": int, "ttl": int, "first-acquirer": bool, "delivery-count": int}
# The same tables: options that MQTT 3.1.1 has not, in the spelling of the text; the model file has underscores.
_ONLY_IN_5 = (
    "payload-format", "message-expiry-interval", "response-topic", "correlation-data", "content-type",
    "user-properties",
)  # fmt: skip
_SAMPLES = {int: ("1",), bool: ("true", "false")}  # of whose parts one stands for a placeholder
_IN_TEXT = {int: re.compile(r"-?\d+"), bool: re.compile("true|false")}
# Section 2.2: what is common to all versions of a definition.
_COMMON = ("id", "format", "authority")


def check(document: Any, dialect: Dialect, level: str = "") -> Iterator[Problem]:
    """What is wrong with a document of a dialect; a document that cannot be read at all is none of it."""
    yield from _CHECKS[dialect.form](document, dialect, level)


def _invalid(path: str, message: str) -> Problem:
    return Problem(path, "invalid", message)


# --- nested maps ------------------------------------------------------------------------------------------------------


def _check_maps(document: Any, dialect: Dialect, level: str) -> Iterator[Problem]:
    if isinstance(document, dict):
        yield from _entity(document, level or level_of(document), dialect, "", "")


def _entity(entity: Json, level: str, dialect: Dialect, at: str, key: str, binding: Any = None) -> Iterator[Problem]:
    """What is wrong with an entity and all below it; `binding` is that of its group."""
    plain = level.removesuffix("version")
    for name, kinds in dialect.shapes.get(plain, {}).items():
        if entity.get(name) is not None and not _fits(entity[name], kinds):
            named = kinds if isinstance(kinds, tuple) else (kinds,)
            yield _invalid(f"{at}/{name}", f"must be {' or '.join(_WORDS[kind] for kind in named)}")
    if key and plain == level:
        yield from _key(entity, level, dialect, at, key)
    binding = entity.get("binding", binding)
    if plain == "message" and any(row.there == "message" for row in _rows(dialect, plain)):
        yield from _options(entity, binding, at)
        yield from _together(entity, binding, at)
    for name, below in _collections(level, dialect).items():
        found = entity.get(name)
        for inner, member in found.items() if isinstance(found, dict) else ():
            if isinstance(member, dict):
                yield from _entity(member, below, dialect, f"{at}/{name}/{inner}", inner, binding)


def _options(message: Json, binding: Any, at: str) -> Iterator[Problem]:
    """Options that are numbers or flags have such values, or templates of them."""
    protocol, options = find_protocol(binding), message.get("message")
    if not isinstance(options, dict):
        return
    header = options.get("header") if protocol == "AMQP/1.0" else None
    for found, kinds, where in ((options, _OPTIONS.get(protocol or "", {}), ""), (header, _HEADER, "/header")):
        if not isinstance(found, dict):
            continue
        spelled = {one: kind for name, kind in kinds.items() for one in (name, name.replace("-", "_"))}
        for name, kind in spelled.items():
            member = found.get(name)
            value = member.get("value") if isinstance(member, dict) else member
            if value is None or _fits(value, kind):
                continue
            if not isinstance(value, str) or not may_become(value, _IN_TEXT[kind].fullmatch, _SAMPLES[kind]):
                words = "a number" if kind is int else _WORDS[kind]
                yield _invalid(f"{at}/message{where}/{name}", f"must be {words}, and '{value}' is not")


def _together(message: Json, binding: Any, at: str) -> Iterator[Problem]:
    """Members and options that exclude or need each other, and options that the version of a protocol has not."""
    schema, url, form = (message.get(name) for name in ("schema", "schemaurl", "schemaformat"))
    if schema is not None and url is not None:
        yield _invalid(f"{at}/schema", "must not be present together with 'schemaurl'")
    if form is None and message.get("basemessageurl") is None:  # a base may have it
        if schema is not None:
            yield _invalid(f"{at}/schemaformat", "must be present together with 'schema'")
        elif isinstance(url, str) and not url.startswith(("#", "/")):  # a schema of the document has a format itself
            yield _invalid(f"{at}/schemaformat", "must be present together with 'schemaurl'")
    protocol, options = find_protocol(binding), message.get("message")
    if not isinstance(options, dict):
        return
    if protocol == "HTTP" and options.get("status") is not None and options.get("method") is not None:
        yield _invalid(f"{at}/message/status", "must not be present together with 'method'")
    for name in (name for name in _ONLY_IN_5 if protocol == "MQTT/3.1.1"):
        for spelled in (name, name.replace("-", "_")):
            if options.get(spelled) is not None:
                yield _invalid(f"{at}/message/{spelled}", "is an option of MQTT/5.0, and the binding is MQTT/3.1.1")


def _fits(value: Any, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (not isinstance(value, bool) or kinds is bool)


def _key(entity: Json, level: str, dialect: Dialect, at: str, key: str) -> Iterator[Problem]:
    """An entity's id is its key in the map it stands in."""
    name = next((row.there for row in _rows(dialect, level) if row.here == f"{level}id"), f"{level}id")
    if entity.get(name, key) != key:
        yield _invalid(f"{at}/{name}", f"is '{entity[name]}', and its key '{key}'")


def _rows(dialect: Dialect, level: str) -> tuple[Any, ...]:
    table = dialect.tables.get(level)
    return table.rows if table is not None else ()


def _collections(level: str, dialect: Dialect) -> dict[str, str]:
    """The collections of an entity, in the dialect's names as well, and the level of what they hold."""
    if level == "registry":
        found = {name: below for name, (below, _) in CANONICAL.items()}
    else:
        found = {**_RESOURCES.get(level, {}), "versions": f"{level.removesuffix('version')}version"}
    return found | {old: found[name] for old, name in dialect.collections.items() if name in found}


# --- lists of groups and definitions ----------------------------------------------------------------------------------


def _check_lists(document: Any, dialect: Dialect, level: str) -> Iterator[Problem]:
    for place, group in enumerate(document if isinstance(document, list) else [document]):
        at = f"/{place}" if isinstance(document, list) else ""
        if not isinstance(group, dict):
            continue
        if "definition" in group or "versions" in group:
            yield from _definition(group, str(group.get("format", "")), at)
            continue
        yield from _placed(check_group({"specversion": dialect.label, **group}), at)
        listed = group.get("definitions")
        definitions = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        ids = {to_id(one["id"]) for one in definitions if isinstance(one.get("id"), str)}
        for number, definition in enumerate(definitions):
            where = f"{at}/definitions/{number}"
            yield from _definition(definition, str(group.get("format", "")), where)
            yield from _relations(definition, ids, where)


def _definition(definition: Json, form: str, at: str) -> Iterator[Problem]:
    if definition.get("format", form) != form:
        yield _invalid(f"{at}/format", f"must be that of the group ({form})")
    common = {name: value for name, value in definition.items() if name != "versions"}
    versions = definition.get("versions")
    if not isinstance(versions, list):
        yield from _placed(check_definition(common, form), at)
        return
    for place, version in enumerate(versions):
        if isinstance(version, dict):
            where = f"{at}/versions/{place}"
            for name in _COMMON:
                if name in version and version[name] != common.get(name):
                    yield _invalid(f"{where}/{name}", "must be that of the definition")
            yield from _placed(check_definition({**common, **version}, form), where)


def _relations(definition: Json, ids: set[str], at: str) -> Iterator[Problem]:
    """Section 2.2.4: `relatedto` names a definition of the same group."""
    versions = definition.get("versions")
    for one in (definition, *(versions if isinstance(versions, list) else ())):
        other = one.get("relatedto") if isinstance(one, dict) else None
        if isinstance(other, str) and other and to_id(other) not in ids:
            yield _invalid(f"{at}/relatedto", f"must name a definition of the group; there is no '{other}'")


def _placed(problems: Iterator[Problem], at: str) -> Iterator[Problem]:
    for problem in problems:
        yield _invalid(at + problem.path, problem.message)


_CHECKS: Mapping[str, Callable[[Any, Dialect, str], Iterator[Problem]]] = {
    "registry": _check_maps,
    "catalog": _check_lists,
}
