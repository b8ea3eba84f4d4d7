"""Whether a document of an older dialect is one by the rules of its own text, before it is converted or stored.

Rule: each finding is a `Problem` with the code `invalid` and the place in the document as it was written. What no rule
speaks of passes: the registry's own rules judge it once it is converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from signalbook.cloudevents.attributes import is_clean, is_timestamp, is_uri_reference, read_media_type
from signalbook.dialects.detect import level_of
from signalbook.dialects.rows import SEGMENT, may_become, to_id
from signalbook.errors import Problem
from signalbook.jsontext import Json
from signalbook.model.xids import is_authority
from signalbook.protocols.message import find_protocol
from signalbook.protocols.values import is_base64
from signalbook.spec.dialects.dialect import CANONICAL, Dialect
from signalbook.spec.dialects.v01 import METASCHEMAS, Field, Metaschema, Section01

__all__ = ["check", "check_definition", "check_group"]

# Whether a 0.1 definition is one: the rules of sections 2 and 3, each finding a `Problem`.
#
# Rule: a format that 0.1 does not define has rules of its own, which nobody here knows.


# RFC 6570 section 2: an expression is an operator, then variables with modifiers between commas.
_VARIABLE = r"(?:[A-Za-z0-9_.-]|%[0-9A-Fa-f]{2})+(?:\*|:[1-9][0-9]{0,3})?"
_TEMPLATE = re.compile(rf"(?:[^{{}}]|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*", re.DOTALL)
_MEMBERS = frozenset({"value", "required", "description"})  # section 3.1.1


def _problem(path: str, message: str) -> Problem:
    name = path.strip("/").replace("/", ".")
    return Problem(path, "invalid_attribute", message, {"name": name, "error_detail": message})


def check_group(group: Json) -> Iterator[Problem]:
    """What is wrong with the attributes of a group: section 2.1.1."""
    if group.get("specversion") != "0.1":
        yield _problem("/specversion", 'must be "0.1"')
    yield from _texts(group, ("id", "format"), required=True)
    yield from _texts(group, ("description", "documentation", "tags"))
    yield from _segments(group, ("id",))
    yield from _times(group, ("createdtimeutc", "updatedtimeutc"))


def check_definition(definition: Json, form: str) -> Iterator[Problem]:
    """What is wrong with a definition version of a format: sections 2.2.4, 2.2.5 and 3."""
    if definition.get("specversion", "0.1") != "0.1":
        yield _problem("/specversion", 'must be "0.1"')
    yield from _texts(definition, ("id",), required=True)
    yield from _texts(definition, ("description", "documentation", "tags", "authority", "relation", "format"))
    for name in ("relatedto", "relatedvia"):
        yield from _texts(definition, (name,), required=definition.get(name) is not None)
    yield from _segments(definition, ("id", "relatedto", "relatedvia"))
    yield from _times(definition, ("createdtimeutc",))
    if not isinstance(definition.get("version", 1), int) or isinstance(definition.get("version"), bool):
        yield _problem("/version", "must be an integer")
    authority = definition.get("authority")
    if isinstance(authority, str) and authority and not is_authority(authority):
        yield _problem("/authority", f"must be a URI, and '{authority}' is not a valid one")
    if definition.get("relatedvia") is not None and definition.get("relatedto") is None:
        yield _problem("/relatedvia", 'needs "relatedto", the message that it relates to')
    body = definition.get("definition")
    if not isinstance(body, dict):
        yield _problem("/definition", "must be an object")
        return
    metaschema = METASCHEMAS.get(form)
    if metaschema is not None:
        yield from _sections(body, metaschema)
        yield from _RULES.get(form, _none)(definition, body, metaschema)
        yield from _related(definition, body, metaschema)


def _times(entity: Json, names: tuple[str, ...]) -> Iterator[Problem]:
    for name in names:
        value = entity.get(name)
        if value is not None and not (isinstance(value, str) and is_timestamp(value)):
            yield _problem(f"/{name}", "must be a timestamp of RFC 3339")


def _texts(entity: Json, names: tuple[str, ...], *, required: bool = False) -> Iterator[Problem]:
    for name in names:
        value = entity.get(name)
        if value is None and not required:
            continue
        if not isinstance(value, str) or (required and not value):
            yield _problem(f"/{name}", "must be a non-empty string" if required else "must be a string")


def _segments(entity: Json, names: tuple[str, ...]) -> Iterator[Problem]:
    for name in names:
        value = entity.get(name)
        if isinstance(value, str) and value and (not SEGMENT.fullmatch(value) or "%2f" in value.lower()):
            yield _problem(f"/{name}", "must be a segment-nz-nc of RFC 3986, without a slash")


# --- metaschemas --------------------------------------------------------------------------------------------------


def _sections(body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    for name, value in body.items():
        section = metaschema.sections.get(name)
        path = f"/definition/{name}"
        if section is None:
            yield _problem(path, f"is not a section of this format; it has {', '.join(metaschema.sections)}")
        elif not isinstance(value, dict):
            yield _problem(path, "must be an object")
        else:
            yield from _fields(value, section, path)


def _fields(value: Json, section: Section01, path: str) -> Iterator[Problem]:
    for name, member in value.items():
        place = f"{path}/{name}"
        if section.fields is None:
            if not re.fullmatch(section.pattern, name):
                yield _problem(place, f"its name must match {section.pattern}")
            kind = (section.kinds or {}).get(name, "template")
            yield from _field(member, kind, place, section.may_be_text)
            yield from _choice(member, (section.choices or {}).get(name), kind, place)
        elif name not in section.fields:
            yield _problem(place, f"is not a field of this section; it has {', '.join(section.fields)}")
        else:
            yield from _field(member, section.fields[name], place, section.may_be_text)
            yield from _choice(member, (section.choices or {}).get(name), section.fields[name], place)


def _field(member: Any, kind: Field, path: str, may_be_text: bool) -> Iterator[Problem]:
    if kind == "choice":
        return
    if not isinstance(member, dict):
        is_text = isinstance(member, str) and may_be_text
        if not is_text and (kind not in _PLAIN or isinstance(member, list)):
            yield _problem(path, "must be an object")
        else:
            yield from _value(member, kind, path)
        return
    for name in member.keys() - (_MEMBERS | {"schematype", "schema"} if kind == "dataschema" else _MEMBERS):
        yield _problem(f"{path}/{name}", "is not a member of an attribute's value; it has value, required, description")
    if not isinstance(member.get("required", False), bool):
        yield _problem(f"{path}/required", "must be a boolean")
    for name in ("description", "schematype"):
        if not isinstance(member.get(name, ""), str):
            yield _problem(f"{path}/{name}", "must be a string")
    yield from _value(member.get("value"), kind, f"{path}/value")
    if kind == "dataschema":
        yield from _schema(member.get("schema"), member.get("schematype"), f"{path}/schema")


def _value(value: Any, kind: Field, path: str) -> Iterator[Problem]:
    """Section 3.1.1: a value is a template; what it is further constrained to holds with the placeholders filled."""
    if value is None:
        return
    if not isinstance(value, str):
        if kind not in _PLAIN:
            yield _problem(path, "must be a string")
        elif not _PLAIN[kind](value):
            yield _problem(path, _WORDS[kind])
        return
    if not _TEMPLATE.fullmatch(value):
        yield _problem(path, "must be a template of RFC 6570")
    elif not is_clean(value):
        yield _problem(path, "must not have control characters")
    elif value and not _fits(value, kind):
        yield _problem(path, f"{_WORDS[kind]}, and '{value}' is not a valid one")


def _fits(value: str, kind: Field) -> bool:
    if kind in _SAMPLES and value.count("{") > 1:
        return True  # each may stand for another part of it
    return kind not in _TEXTS or may_become(value, _TEXTS[kind], _SAMPLES.get(kind, ("1",)))


def _schema(schema: Any, schematype: Any, path: str) -> Iterator[Problem]:
    """Section 3.1.2: a schema is a text or an object; that of Protobuf a text, that of Avro and JSON is JSON."""
    if schema is None:
        return
    if not isinstance(schema, str | dict):
        yield _problem(path, "must be a string or an object")
    elif schematype == "Protobuf" and not isinstance(schema, str):
        yield _problem(path, "must be a string, for it is a file of Protobuf")
    elif schematype in ("Avro", "JSON") and isinstance(schema, str) and not _is_json(schema):
        yield _problem(path, f"must be JSON, for the schema is one of {schematype}")


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _choice(member: Any, choices: tuple[str, ...] | None, kind: Field, path: str) -> Iterator[Problem]:
    """A field with a few values has one of them; only of those that are templates one may be left open."""
    if choices is None:
        return
    value = member.get("value") if isinstance(member, dict) else member
    if kind == "choice":
        if isinstance(member, dict) and value is None:
            return
        if not isinstance(value, str) or value not in choices:
            yield _problem(path, f"must be one of {', '.join(choices)}, as a string")
    elif value not in (None, "") and not may_become(str(value), choices.__contains__, choices):
        yield _problem(path, f"must be one of {', '.join(choices)}")


def _is_whole(most: int, least: int = 0) -> Callable[[str], bool]:
    return lambda text: bool(re.fullmatch(r"-?[0-9]{1,19}", text)) and least <= int(text) <= most


def _plain_whole(test: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and test(str(value))


_INTEGERS: Mapping[str, Callable[[str], bool]] = {
    "integer": _is_whole(2**31 - 1, -(2**31)), "ubyte": _is_whole(2**8 - 1), "uint": _is_whole(2**32 - 1),
}  # fmt: skip
# What a text of each kind has to be; CloudEvents "Type System", MQTT 5.0 section 4.7, NATS "Subject-Based Messaging".
_TEXTS: Mapping[str, Callable[[str], Any]] = {
    **_INTEGERS,
    "count": _INTEGERS["uint"],  # a number that the text has as a string
    "boolean": lambda text: text in ("true", "false"),
    "timestamp": is_timestamp,
    "binary": is_base64,
    "uri": is_uri_reference,
    "dataschema": is_uri_reference,  # a relative one leads to a schema of this catalog
    "media": lambda text: read_media_type(text) is not None,
    "topic": lambda text: not re.search("[+#]", text),
    "subject": re.compile(r"(?!(?:.*\.)?[*>](?:\.|$))[^\s.]+(?:\.[^\s.]+)*").fullmatch,
}
# Kinds whose values JSON may have as such, and texts of whose parts one is tried in the place of a placeholder.
_PLAIN: Mapping[str, Callable[[Any], bool]] = {
    **{kind: _plain_whole(test) for kind, test in _INTEGERS.items()},
    "boolean": lambda value: isinstance(value, bool),
}
_SAMPLES: Mapping[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "timestamp": ("2000-01-01T00:00:00Z",),
    "binary": ("AAAA", "AA=="),
    "media": ("application/json",),
}
_WORDS: Mapping[str, str] = {
    "integer": "must be an integer of 32 bits",
    "ubyte": "must be an integer from 0 to 255",
    "uint": "must be an integer of 32 bits without a sign",
    "count": "must be an integer of 32 bits without a sign",
    "boolean": "must be true or false",
    "timestamp": "must be a timestamp of RFC 3339",
    "binary": "must be Base64",
    "uri": "must be a URI",
    "dataschema": "must be a URI",
    "media": "must be a media type",
    "topic": "must be the name of a topic, without wildcards",
    "subject": "must be a subject, without spaces, empty parts and wildcards",
    "template": "must be a string",
}


# --- one format ---------------------------------------------------------------------------------------------------


def _none(definition: Json, body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    return iter(())


def _cloudevents(definition: Json, body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    """Section 3.2.1: the `type` is there, and the definition has its name; what every event has is never optional."""
    attributes = body.get("attributes")
    kind = attributes.get("type") if isinstance(attributes, dict) else None
    value = kind.get("value") if isinstance(kind, dict) else None
    if not isinstance(value, str) or not value:
        yield _problem("/definition/attributes/type", "must be present, with a value")
    elif value != unquote(str(definition.get("id"))):
        yield _problem("/id", f"must be the value of the attribute 'type' ({value})")
    for name in ("id", "source", "specversion", "type"):
        attribute = attributes.get(name) if isinstance(attributes, dict) else None
        if isinstance(attribute, dict) and attribute.get("required") is False:
            words = "must not be false, for every CloudEvent has this attribute"
            yield _problem(f"/definition/attributes/{name}/required", words)


def mqttversion(body: Json) -> str:
    """The version of MQTT that a definition is for."""
    publish = body.get("publish")
    value = publish.get("mqttversion", "5.0") if isinstance(publish, dict) else "5.0"
    return str(value.get("value", "5.0")) if isinstance(value, dict) else str(value)


def _mqtt(definition: Json, body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    """Section 3.4.1: some fields are of MQTT 5.0 only; 3.4.4: and so are relations."""
    if mqttversion(body) == "5.0":
        return
    publish = body.get("publish")
    for name in sorted(metaschema.modern & publish.keys()) if isinstance(publish, dict) else ():
        yield _problem(f"/definition/publish/{name}", "is of MQTT 5.0 only")
    if "userproperty" in body:
        yield _problem("/definition/userproperty", "is of MQTT 5.0 only")
    if "relatedvia" in definition:
        yield _problem("/relatedvia", "is of MQTT 5.0 only")


_RULES = {"CloudEvents": _cloudevents, "MQTT": _mqtt}


def _related(definition: Json, body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    """Sections 3.2.2, 3.3.8 and 3.4.4: `relatedvia` names a field that carries the relation."""
    via = definition.get("relatedvia")
    if not isinstance(via, str) or not via:
        return
    if metaschema.via_attribute:
        attributes = body.get(metaschema.via_attribute)
        if not isinstance(attributes, dict) or via not in attributes:
            yield _problem("/relatedvia", f"must name one of the definition's {metaschema.via_attribute}")
        return
    section, _, name = via.partition(".")
    fields = body.get(section)
    if via in metaschema.via:
        return
    if section not in metaschema.via_sections or not isinstance(fields, dict) or name not in fields:
        places = [*metaschema.via, *(f"{one}.{{name}}" for one in metaschema.via_sections)]
        yield _problem("/relatedvia", f"must be {' or '.join(places) or 'absent in this format'}")


_EXPECTED = {str: "text", dict: "object", bool: "true or false", list: "list"}
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
_SAMPLES_checks = {int: ("1",), bool: ("true", "false")}  # of whose parts one stands for a placeholder
_IN_TEXT = {int: re.compile(r"-?\d+"), bool: re.compile("true|false")}
# Section01 2.2: what is common to all versions of a definition.
_COMMON = ("id", "format", "authority")


def check(document: Any, dialect: Dialect, level: str = "") -> Iterator[Problem]:
    """What is wrong with a document of a dialect; one that cannot be read at all is not checked."""
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
        if entity.get(name) is not None and not _fits_type(entity[name], kinds):
            named = kinds if isinstance(kinds, tuple) else (kinds,)
            yield _invalid(f"{at}/{name}", f"must be {' or '.join(_EXPECTED[kind] for kind in named)}")
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
            if value is None or _fits_type(value, kind):
                continue
            if not isinstance(value, str) or not may_become(value, _IN_TEXT[kind].fullmatch, _SAMPLES_checks[kind]):
                words = "a number" if kind is int else _EXPECTED[kind]
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


def _fits_type(value: Any, kinds: type | tuple[type, ...]) -> bool:
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
