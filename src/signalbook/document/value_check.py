"""One attribute's definition compiled into the function that checks a value of it.

Rule 1: the fault is reported under the attribute's path and the value goes on as it is, so that all can be collected.
Rule 2: what is inside an object is somebody else's: `compile_object` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from signalbook.document.attribute import Attribute
from signalbook.document.attribute_read import TARGET
from signalbook.document.spec_attributes import NONEMPTY
from signalbook.document.value_types import VALUE_TYPES, moment, text_of
from signalbook.document.xid import MAP_KEY, Xid, must_match, parse_xidtype

__all__ = ["Check", "Report", "Types", "compile_value"]

# The plural names of the Group types, each with those of its Resource types.
Types = Mapping[str, Collection[str]]
# error name, dotted path, words
Report = Callable[[str, str, str], None]
# value, path of the owning object ("" or with a dot at its end), name, report
Check = Callable[[Any, str, str, Report], Any]

# ID-12: an attribute's name and the text of its value have at most 4096 bytes together; a value of fewer characters
# than `_SHORT` cannot reach that, whatever they are.
_LONGEST = 4096
_SHORT = 1000


def compile_value(
    attribute: Attribute, types: Types, compile_object: Callable[[Attribute], Check], *, spec: bool = False
) -> Check:
    """The check of one attribute or item; `spec` says that it is one of the specification's own attributes."""
    if attribute.readonly and not spec:
        return _ignore
    if attribute.type == "object":
        check = compile_object(attribute)
        return _deprecated(check) if spec and attribute.name == "deprecated" else check
    if attribute.item is None:
        return _scalar(attribute, types, spec=spec) if attribute.scalar else _any
    item = compile_value(_item(attribute), types, compile_object)
    return _map(item) if attribute.type == "map" else _array(item)


def _ignore(value: Any, at: str, name: str, report: Report) -> None:
    """TYPE-17: what a client writes to a read-only attribute is not even looked at."""


def _any(value: Any, at: str, name: str, report: Report) -> Any:
    if value.__class__ is dict or value.__class__ is list:
        try:
            VALUE_TYPES["any"].read(value)
        except ValueError as problem:
            report("invalid_attribute", at + name, str(problem))
    return value


def _item(attribute: Attribute) -> Attribute:
    """The item of an array or map, whose own enum is that of its items."""
    item = attribute.item
    assert item is not None
    if not attribute.enum:
        return item
    return replace(item, enum=attribute.enum, strict=attribute.strict, exact=attribute.exact)


def _map(item: Check) -> Check:
    matches = MAP_KEY.fullmatch

    def check(value: Any, at: str, name: str, report: Report) -> Any:
        if value.__class__ is not dict:
            report("invalid_attribute", at + name, "must be a map")
            return value
        found = {}
        inner = at + name
        for key, member in value.items():
            if not matches(key):
                report("invalid_attribute", inner, f'map key name "{key}" {must_match(MAP_KEY)}')
            if member is not None:
                step = f".{key}" if key.isidentifier() else f"['{key}']"
                found[key] = item(member, inner, step, report)
        return found

    return check


def _array(item: Check) -> Check:
    def check(value: Any, at: str, name: str, report: Report) -> Any:
        if value.__class__ is not list:
            report("invalid_attribute", at + name, "must be an array")
            return value
        found = []
        inner = at + name
        for index, member in enumerate(value):
            if member is None:  # TYPE-3
                report("invalid_attribute", f"{inner}[{index}]", "can't be null")
            else:
                found.append(item(member, inner, f"[{index}]", report))
        return found

    return check


def _scalar(attribute: Attribute, types: Types, *, spec: bool) -> Check:
    read = _reader(attribute, types)
    comparable = attribute.comparable
    allowed = frozenset(map(comparable, attribute.allowed))
    nonempty = spec and attribute.name in NONEMPTY

    def check(value: Any, at: str, name: str, report: Report) -> Any:
        try:
            value = read(value)
        except ValueError as problem:
            report("invalid_attribute", at + name, str(problem))
            return value
        if value.__class__ is str:
            if len(value) >= _SHORT and len(name) + len(value.encode("utf-8", "surrogatepass")) > _LONGEST:
                report("invalid_attribute", at + name, f"must not take more than {_LONGEST} bytes with its name")
            if nonempty and not value:
                report("invalid_attribute", at + name, "can't be an empty string")
                return value
        if allowed and comparable(value) not in allowed:
            listed = ", ".join(map(text_of, attribute.allowed))
            report("invalid_attribute", at + name, f"value ({text_of(value)}) must be one of the enum values: {listed}")
        return value

    if attribute.type != "string" or allowed or nonempty:
        return check

    def check_string(value: Any, at: str, name: str, report: Report) -> Any:
        return value if value.__class__ is str and len(value) < _SHORT else check(value, at, name, report)

    return check_string


def _reader(attribute: Attribute, types: Types) -> Callable[[Any], Any]:
    read = VALUE_TYPES[attribute.type].read
    if attribute.type == "xidtype":
        return _known_xidtype(read, types)
    if attribute.type == "xid":
        read = _known_xid(read, types)
    return _targeted(read, attribute.target) if attribute.target else read


def _known_xid(read: Callable[[Any], Any], types: Types) -> Callable[[Any], Any]:
    def known(value: Any) -> Any:
        xid = Xid.parse(read(value))
        if xid.groups and xid.groups not in types:
            raise ValueError(f'value ({value}) references an unknown Group type "{xid.groups}"')
        if xid.resources and xid.resources not in types[xid.groups]:
            raise ValueError(f'value ({value}) references an unknown Resource type "{xid.resources}"')
        return value

    return known


def _known_xidtype(read: Callable[[Any], Any], types: Types) -> Callable[[Any], Any]:
    def known(value: Any) -> Any:
        groups, resources, _ = parse_xidtype(read(value))
        if groups and groups not in types:
            raise ValueError(f'value ({value}) references an unknown Group type "{groups}"')
        if resources and resources not in types[groups]:
            raise ValueError(f'value ({value}) references an unknown Resource type "{resources}"')
        return value

    return known


def _targeted(read: Callable[[Any], Any], target: str) -> Callable[[Any], Any]:
    """MODEL-10: an xid, or a uri or url that begins with "/", must be of the target's type."""
    found = TARGET.fullmatch(target)
    assert found is not None
    type_ = f"/{found[1]}" + (f"/{found[2]}" if found[2] else "")
    versions = f"{type_}/versions"
    wanted = {None: {type_}, "/versions": {versions}, "[/versions]": {type_, versions}}[found[3]]

    def matching(value: Any) -> Any:
        value = read(value)
        if value.startswith("/"):
            try:
                matches = Xid.parse(value).type in wanted
            except ValueError:
                matches = False
            if not matches:
                raise ValueError(f'must match "{target}" target')
        return value

    return matching


def _deprecated(check: Check) -> Check:
    def ordered(value: Any, at: str, name: str, report: Report) -> Any:
        value = check(value, at, name, report)
        if value.__class__ is dict and {"effective", "removal"} <= value.keys():
            effective, removal = value["effective"], value["removal"]
            if isinstance(effective, str) and isinstance(removal, str) and moment(removal) < moment(effective):
                report("invalid_attribute", f"{at}{name}.removal", f"must not be sooner than {at}{name}.effective")
        return value

    return ordered
