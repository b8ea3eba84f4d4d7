"""The forms of 0.1: attribute value templates, data schemas, and the versions of MQTT.

0.1 sections 3.1.1 and 3.1.2: a template's `value` is a text, the empty one permits any content, and `null` means that
the attribute is not listed; a `dataschema` refers to a schema, or holds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from signalbook.dialects.rows import (
    MISSING,
    PLAIN_FORMS,
    ConversionForm,
    ConversionStep,
    has_placeholder,
    is_same_in_both,
    is_template,
    note_template,
    parsed,
    template_text,
)
from signalbook.jsontext import Json
from signalbook.spec.dialects.dialect import DialectRow
from signalbook.spec.dialects.v01 import UNTYPED

__all__ = ["CATALOG_FORMS"]

_TEMPLATES = ("string", "uritemplate")  # the types whose values are templates anyway


def _template_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return _read_property(value, step, row.here)


def _read_property(value: Any, step: ConversionStep, place: str) -> Any:
    definition = dict(value) if isinstance(value, dict) else {"value": value}
    text = definition.pop("value", "")
    if text is None:
        return MISSING
    rest = step.rests.get(place, {})
    if "value" in rest and _as_01_text(rest["value"]) == text:
        return {**definition, **rest}
    rest = {name: member for name, member in rest.items() if name != "value"}  # somebody changed it since
    if isinstance(text, str) and text:
        definition["value"] = template_text(text, step, place)
        if is_template(definition["value"]) and place.rpartition("/")[2] not in UNTYPED:
            definition["type"] = "uritemplate"
    elif text != "":
        definition["value"] = text
    return {**definition, **rest}


def _template_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return _written(value, step, row.here)


def _written(value: Any, step: ConversionStep, place: str) -> Any:
    if not isinstance(value, dict):
        return {"value": str(value)}
    rest = {name: member for name, member in value.items() if name not in ("value", "required", "description")}
    if rest.get("type") in _TEMPLATES:
        del rest["type"]
    text = value.get("value", "")
    if "value" in value and not (isinstance(text, str) and is_same_in_both(text)):
        rest["value"] = text
    elif isinstance(text, str):
        note_template(text, step, place)
    text = _as_01_text(text)
    if rest:
        step.kept[place] = rest
    found = {name: value[name] for name in ("required", "description") if name in value}
    return {"value": text, **found}


def _as_01_text(value: Any) -> str:
    """A value as the text that 0.1 has for it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _attributes_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    found = _named_inward(value, step, row)
    content = found.get("datacontenttype") if isinstance(found, dict) else None
    constant = content.get("value") if isinstance(content, dict) else None
    if isinstance(constant, str) and not has_placeholder(constant):
        step.put("datacontenttype", constant)
    return found


def _named_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if not isinstance(value, dict):
        return value
    found = {name: _read_property(member, step, f"{row.here}/{name}") for name, member in value.items()}
    return {name: member for name, member in found.items() if member is not MISSING}


def _named_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _written(member, step, f"{row.here}/{name}")
        for name, member in ((_wire_name(key, member), _unnamed(member)) for key, member in value.items())
    }


def _wire_name(key: str, member: Any) -> str:
    return str(member["name"]) if isinstance(member, dict) and "name" in member else key


def _unnamed(member: Any) -> Any:
    return {k: v for k, v in member.items() if k != "name"} if isinstance(member, dict) else member


def _listed_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    options = step.target.get("protocoloptions")
    if isinstance(options, dict) and "user_properties" in options:
        return MISSING
    found = _named_inward(value, step, row)
    return [{"name": name, **member} for name, member in found.items()] if isinstance(found, dict) else found


def _listed_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """One property a name; those that repeat one are held as well."""
    if not isinstance(value, list):
        return value
    named = {str(member.get("name")): member for member in value if isinstance(member, dict)}
    if len(named) != len(value):
        step.hold("1.0.user_properties", value, row.here)
    return _named_outward(named, step, row)


# --- schemas ------------------------------------------------------------------------------------------------------

_DIALECT = re.compile(r"https?://json-schema\.org/(draft-0\d|draft/20\d\d-\d\d)/schema#?")


_INFERRED = "0.1.schematype"
_AVRO = frozenset({"record", "enum", "fixed", "error"})
_PROTO = re.compile(r"\s*(?://[^\n]*\s*)*(?:syntax|package|import|option|message|enum)\b")


def _inferred(schema: Any) -> str:
    """What a schema without a `schematype` seems to be (section 3.1.2): by its content, else nothing that is known."""
    if isinstance(schema, str) and schema.lstrip()[:1] in ("{", "["):
        schema = parsed(schema)
    if isinstance(schema, dict | list):
        return "Avro" if isinstance(schema, list) or schema.get("type") in _AVRO else "JSON"
    text = str(schema)
    return "Protobuf" if _PROTO.match(text) else "XSD" if text.lstrip().startswith("<") else "Unknown"


def _schema_format(schematype: str, schema: Any, step: ConversionStep) -> str:
    """`Avro`, `JSON` and `Protobuf` with their versions; any other name with one, for 1.0 wants both."""
    if schematype == "JSON" and isinstance(schema, dict):
        found = _DIALECT.fullmatch(str(schema.get("$schema", "")))
        if found:
            return f"JsonSchema/{found[1]}"
    if "/" in schematype:
        return schematype
    return step.dialect.schematypes.get(schematype) or f"{schematype}/unversioned"


def _schema_type(form: str, step: ConversionStep) -> str:
    name = form.partition("/")[0].lower()
    for schematype, known in step.dialect.schematypes.items():
        if known.partition("/")[0].lower() == name:
            return schematype
    return form.removesuffix("/unversioned")


# A `value` alone is what an event declares of itself; these labels say that it is the schema's address, or that too.
_ADDRESSES = ("1.0.dataschemauri", "1.0.dataschemauri.declared")


def _dataschema_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    event = row.there.startswith("definition/attributes")
    given = dict(value) if isinstance(value, dict) else {"value": value}
    schematype, schema, uri = given.pop("schematype", None), given.pop("schema", None), given.pop("value", None)
    held = step.take("labels/1.0.dataschemaformat")
    if schematype is None and schema is None:
        is_bare, is_both = (step.take(f"labels/{name}") == uri for name in _ADDRESSES)
        if is_bare or is_both:
            step.put("dataschemauri", uri)
        if uri is not None and not is_bare:
            given["value"] = uri
    else:
        if not isinstance(schematype, str) or not schematype:
            schematype = _inferred(schema)
            step.put(f"labels/{_INFERRED}", "inferred")
        form = held if held is not MISSING else _schema_format(schematype, schema, step)
        step.put("dataschemaformat", form)
        if schema is not None:
            step.put("dataschema", schema)
            if uri:
                given["value"] = uri
        elif uri:
            step.put("dataschemauri", uri)
    if given and event:
        step.put("envelopemetadata/dataschema", _read_property(given, step, "envelopemetadata/dataschema"))
    elif given:
        step.hold("0.1.dataschema", given, row.there)
    return MISSING


def _dataschema_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    event = row.there.startswith("definition/attributes")
    form, schema, uri = (step.take(name) for name in ("dataschemaformat", "dataschema", "dataschemauri"))
    declared = step.take("envelopemetadata/dataschema") if event else step.take("labels/0.1.dataschema")
    found: Json = {}
    if isinstance(declared, dict):
        found = _written(declared, step, "envelopemetadata/dataschema")
        if not found["value"]:
            del found["value"]
    elif declared is not MISSING:
        found = dict(parsed(declared)) if isinstance(parsed(declared), dict) else {}
    if uri is not MISSING:
        if found.get("value", uri) != uri:
            step.note("lost", "dataschemauri", f"'{uri}' differs from the declared 'dataschema'")
        elif not isinstance(form, str) and schema is MISSING:
            step.hold(_ADDRESSES["value" in found], uri, "dataschemauri")
        found.setdefault("value", uri)
    inferred = step.take(f"labels/{_INFERRED}") is not MISSING and schema is not MISSING
    if isinstance(form, str):
        schematype = _inferred(schema) if inferred else _schema_type(form, step)
        if not inferred:
            found["schematype"] = schematype
        if _schema_format(schematype, None if schema is MISSING else schema, step) != form:
            step.hold("1.0.dataschemaformat", form, "dataschemaformat")
    if schema is not MISSING:
        found["schema"] = schema
    return found or MISSING


# --- the rest -----------------------------------------------------------------------------------------------------


_MQTT_DEFAULT = "5.0"  # section 3.4.1


def _mqttversion_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    version = value.get("value") if isinstance(value, dict) else value
    if version is not None:
        step.put("protocol", f"MQTT/{version}")
    return MISSING


def _mqttversion_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    version = step.protocol.partition("/")[2]
    return MISSING if version in ("", _MQTT_DEFAULT) else version


def _choice_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    """One of a few texts, be it a template's value; `null` means that it is not listed."""
    text = value.get("value") if isinstance(value, dict) else value
    return MISSING if text is None else text


def _choice_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return value


def _number_inward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return MISSING if "versionid" in step.target else str(value)


def _number_outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    text = str(value)
    if text.isascii() and text.isdigit() and text == str(int(text)):
        return int(text)
    step.hold("1.0.versionid", text, row.here)
    return MISSING


def _filled(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return value or MISSING


CATALOG_FORMS: Mapping[str, ConversionForm] = {
    **PLAIN_FORMS,
    "template": ConversionForm(_template_inward, _template_outward),
    "attributes": ConversionForm(_attributes_inward, _named_outward),
    "named_templates": ConversionForm(_named_inward, _named_outward),
    "listed_templates": ConversionForm(_listed_inward, _listed_outward),
    "dataschema": ConversionForm(_dataschema_inward, _dataschema_outward),
    "mqttversion": ConversionForm(_mqttversion_inward, _mqttversion_outward),
    "choice": ConversionForm(_choice_inward, _choice_outward),
    "number": ConversionForm(_number_inward, _number_outward),
    "filled": ConversionForm(_filled, _filled),
}
