"""Whether a 0.1 definition is one: the rules of sections 2 and 3, each finding a `Problem`.

Rule: a format that 0.1 does not define has rules of its own, which nobody here knows.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from signalbook.cloudevents.attributes import is_clean
from signalbook.cloudevents.media_type import read_media_type
from signalbook.cloudevents.timestamp import is_timestamp
from signalbook.cloudevents.uri import is_uri_reference
from signalbook.document.dialects.ids import SEGMENT
from signalbook.document.dialects.placeholders import may_become
from signalbook.errors import Problem
from signalbook.spec.dialects.metaschemas import METASCHEMAS, Field, Metaschema, Section

__all__ = ["check_definition", "check_group"]

Json = Mapping[str, Any]
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
    if isinstance(authority, str) and authority and not _is_authority(authority):
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


def _is_authority(text: str) -> bool:
    """Whether a text is a URI; without a scheme it is a name like `cloudevents.io`, as the text's example has it."""
    scheme, colon, rest = text.partition(":")
    if not is_uri_reference(text) or (colon and not rest):
        return False
    return scheme.lower() not in ("http", "https") or bool(re.match(r"//[^/?#:]|//[^/?#@]*@[^/?#:]", rest))


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
            yield _problem(path, f"is no section of this format; it has {', '.join(metaschema.sections)}")
        elif not isinstance(value, dict):
            yield _problem(path, "must be an object")
        else:
            yield from _fields(value, section, path)


def _fields(value: Json, section: Section, path: str) -> Iterator[Problem]:
    for name, member in value.items():
        place = f"{path}/{name}"
        if section.fields is None:
            if not re.fullmatch(section.pattern, name):
                yield _problem(place, f"its name must match {section.pattern}")
            kind = (section.kinds or {}).get(name, "template")
            yield from _field(member, kind, place, section.may_be_text)
            yield from _choice(member, (section.choices or {}).get(name), kind, place)
        elif name not in section.fields:
            yield _problem(place, f"is no field of this section; it has {', '.join(section.fields)}")
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
        yield _problem(f"{path}/{name}", "is no member of an attribute's value; it has value, required, description")
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


def _is_binary(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:  # not of its alphabet, or not of ASCII
        return False
    return True


_INTEGERS: Mapping[str, Callable[[str], bool]] = {
    "integer": _is_whole(2**31 - 1, -(2**31)), "ubyte": _is_whole(2**8 - 1), "uint": _is_whole(2**32 - 1),
}  # fmt: skip
# What a text of each kind has to be; CloudEvents "Type System", MQTT 5.0 section 4.7, NATS "Subject-Based Messaging".
_TEXTS: Mapping[str, Callable[[str], Any]] = {
    **_INTEGERS,
    "count": _INTEGERS["uint"],  # a number that the text has as a string
    "boolean": lambda text: text in ("true", "false"),
    "timestamp": is_timestamp,
    "binary": _is_binary,
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
