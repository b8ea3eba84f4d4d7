"""Whether a 0.1 definition is one: the rules of sections 2 and 3, each finding a `Problem`.

Rule: a format that 0.1 does not define has rules of its own, which nobody here knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from signalbook.document.dialects.ids import SEGMENT
from signalbook.document.dialects.properties import PROPERTY
from signalbook.errors import Problem
from signalbook.spec.dialects.metaschemas import METASCHEMAS, Field, Metaschema, Section

__all__ = ["check_definition", "check_group"]

Json = Mapping[str, Any]
# RFC 6570 section 2: an expression is an operator, then variables with modifiers between commas.
_VARIABLE = r"(?:[A-Za-z0-9_.-]|%[0-9A-Fa-f]{2})+(?:\*|:[1-9][0-9]{0,3})?"
_TEMPLATE = re.compile(rf"(?:[^{{}}]|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*", re.DOTALL)


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


def check_definition(definition: Json, form: str) -> Iterator[Problem]:
    """What is wrong with a definition version of a format: sections 2.2.4, 2.2.5 and 3."""
    if definition.get("specversion", "0.1") != "0.1":
        yield _problem("/specversion", 'must be "0.1"')
    yield from _texts(definition, ("id",), required=True)
    yield from _texts(definition, ("description", "documentation", "tags", "authority", "relation", "format"))
    yield from _texts(definition, ("relatedto", "relatedvia"))
    yield from _segments(definition, ("id", "relatedto", "relatedvia"))
    authority = definition.get("authority")
    if isinstance(authority, str) and authority and re.search(r"[\s<>\"{}|\\^`]", authority):
        yield _problem("/authority", "must be a URI")
    if "relatedvia" in definition and "relatedto" not in definition:
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
            kind: Field = "dataschema" if name == "dataschema" and path.endswith("/attributes") else "template"
            yield from _field(member, kind, place)
        elif name not in section.fields:
            yield _problem(place, f"is no field of this section; it has {', '.join(section.fields)}")
        else:
            yield from _field(member, section.fields[name], place)
            yield from _choice(member, (section.choices or {}).get(name), place)


def _field(member: Any, kind: Field, path: str) -> Iterator[Problem]:
    if kind == "text":
        return
    if not isinstance(member, dict):
        if kind in ("dataschema", "template") or isinstance(member, list):
            yield _problem(path, "must be an object")
        return
    for name in member.keys() - (PROPERTY | {"schematype", "schema"} if kind == "dataschema" else PROPERTY):
        yield _problem(f"{path}/{name}", "is no member of an attribute's value; it has value, required, description")
    if not isinstance(member.get("required", False), bool):
        yield _problem(f"{path}/required", "must be a boolean")
    for name in ("description", "schematype"):
        if not isinstance(member.get(name, ""), str):
            yield _problem(f"{path}/{name}", "must be a string")
    value = member.get("value")
    if isinstance(value, str):
        yield from _text(value, kind, path)
    elif value is not None and kind in ("template", "dataschema"):
        yield _problem(f"{path}/value", "must be a string")


def _text(value: str, kind: Field, path: str) -> Iterator[Problem]:
    if not _TEMPLATE.fullmatch(value):
        yield _problem(f"{path}/value", "must be a template of RFC 6570")
    elif "{" not in value and value:
        if kind == "integer" and not re.fullmatch(r"-?[0-9]{1,19}", value):
            yield _problem(f"{path}/value", "must be an integer")
        if kind == "boolean" and value not in ("true", "false"):
            yield _problem(f"{path}/value", "must be true or false")


def _choice(member: Any, choices: tuple[str, ...] | None, path: str) -> Iterator[Problem]:
    value = member.get("value") if isinstance(member, dict) else member
    if choices is not None and value not in (None, "") and "{" not in str(value) and str(value) not in choices:
        yield _problem(path, f"must be one of {', '.join(choices)}")


# --- one format ---------------------------------------------------------------------------------------------------


def _none(definition: Json, body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    return iter(())


def _cloudevents(definition: Json, body: Json, metaschema: Metaschema) -> Iterator[Problem]:
    """Section 3.2.1: the `type` is there, and the definition has its name."""
    attributes = body.get("attributes")
    kind = attributes.get("type") if isinstance(attributes, dict) else None
    value = kind.get("value") if isinstance(kind, dict) else None
    if not isinstance(value, str) or not value:
        yield _problem("/definition/attributes/type", "must be present, with a value")
    elif value != unquote(str(definition.get("id"))):
        yield _problem("/id", f"must be the value of the attribute 'type' ({value})")


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
