"""Values by the model: value types, the definition of an attribute, and the compiled checks of an entity's attributes.

Rule 1: a value type is a row. Its `read` gives back the value in its canonical form, or raises ValueError with what is
wrong in words that follow an attribute's name ("must be a string").
Rule 2: a `Level` is a compiled scope of attribute definitions. It sees only what a client controls; ids, times, `self`
and the like are the registry's to take out.
Rule 3: a check is a closure made once, when the model is read: value in, canonical value out (None: leave it out). A
fault goes to `report`, which raises it (`normalise`) or collects it (`problems`) under the attribute's path; the value
goes on as it is, so that all can be collected.
Rule 4: nothing here changes its arguments.

core/spec.md 1.0-rc4, Data Types; `urireference` and `uri-reference` are how 1.0-rc2 models spell `uri`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import isfinite
from types import MappingProxyType
from typing import Any

from signalbook.errors import Problem, RegistryError
from signalbook.model.xids import (
    MAP_KEY,
    NAME_PATTERNS,
    Types,
    Xid,
    known_xid,
    known_xidtype,
    must_match,
    of_target,
    parse_xidtype,
)
from signalbook.template import NAME_IN_BRACES

__all__ = [
    "CLIENT", "NONEMPTY", "TYPE_ALIASES", "VALUE_TYPES", "Attribute", "Attributes", "Check", "Level", "Report",
    "Types", "ValueType", "check_value", "compile_level", "compile_value", "from_text", "moment", "text_of",
]  # fmt: skip

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class ValueType:
    """One type: its name, whether it is a scalar, and the function that reads a JSON value of it."""

    name: str
    scalar: bool
    read: Callable[[Any], Any]


def check_value(type_name: str, value: object) -> str | None:
    """What is wrong with `value` as a value of the type, or None."""
    try:
        VALUE_TYPES[type_name].read(value)
    except ValueError as problem:
        return str(problem)
    return None


def text_of(value: object) -> str:
    """The string serialization of a scalar: what `ifvalues` keys and HTTP headers hold."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    # A container has none; writing it out could take any length and depth.
    return f"<{value.__class__.__name__}>" if isinstance(value, (dict, list)) else str(value)


_INTEGER_TEXT = re.compile(r"-?[0-9]{1,20}")
_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?")


def from_text(type_name: str, text: str) -> Any:
    """The value of a type that `text` (of an HTTP header, say) means; `text` itself where it means none."""
    if type_name == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if type_name in ("integer", "uinteger"):
        return int(text) if _INTEGER_TEXT.fullmatch(text) else text
    if type_name == "decimal" and _DECIMAL_TEXT.fullmatch(text):
        return int(text) if _INTEGER_TEXT.fullmatch(text) else float(text)
    return text


def moment(timestamp: str) -> tuple[str, str]:
    """A key that orders normalised timestamps, whatever number of fraction digits each has."""
    return timestamp[:19], timestamp[20:-1].rstrip("0")


def _read_any(value: Any) -> Any:
    layer = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in layer:
            members = container.values() if isinstance(container, dict) else container
            inner += [member for member in members if isinstance(member, (dict, list))]
        if not inner:
            return value
        layer = inner
    raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")


def _of_class(kind: type, article_and_name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value.__class__ is not kind:
            raise ValueError(f"must be {article_and_name}")
        return value

    return read


def _integer(lowest: int, highest: int, name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value.__class__ is float and value.is_integer():
            value = int(value)
        if value.__class__ is not int or not lowest <= value <= highest:
            raise ValueError(f"must be {name}")
        return value

    return read


def _read_decimal(value: Any) -> Any:
    if value.__class__ is int and -(2**63) <= value < 2**64:
        return value
    if value.__class__ is not float or not isfinite(value):
        raise ValueError("must be a decimal")
    return value


# RFC 3339 section 5.6; the offset may be missing, since the specification only recommends it, and then means UTC.
_TIMESTAMP = re.compile(
    r"([0-9]{4})(-[0-9]{2}-[0-9]{2})[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9]):([0-5][0-9]|60)(\.[0-9]+)?"
    r"(?:[Zz]|([+-])((?:[01][0-9]|2[0-3])):([0-5][0-9]))?"
)


def _read_timestamp(value: Any) -> Any:
    if value.__class__ is not str:
        raise ValueError("must be a timestamp")
    found = _TIMESTAMP.fullmatch(value)
    if found is None:
        raise ValueError("must be an RFC3339 timestamp")
    year, day, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        # datetime has neither a year 0, which is a leap year like 2000, nor a second 60.
        at = datetime.fromisoformat(f"{year if year != '0000' else '2000'}{day}T{minute}")
        if sign and hours + minutes != "0000":
            if year == "0000":
                raise ValueError
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            at = at - offset if sign == "+" else at + offset
            year, day, minute = f"{at.year:04}", f"-{at.month:02}-{at.day:02}", f"{at.hour:02}:{at.minute:02}"
    except (ValueError, OverflowError):
        raise ValueError("must be an RFC3339 timestamp") from None
    return f"{year}{day}T{minute}:{second}{fraction or ''}Z"


# A reference is taken as people write them: text without control characters. The strict types follow RFC 3986.
_LOOSE = re.compile(r"[^\x00-\x1f\x7f]*")
_CHARACTERS = r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_ABSOLUTE = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:{_CHARACTERS}+")
_RELATIVE = re.compile(rf"(?![^/?#]*:){_CHARACTERS}*")
# RFC 6570 sections 2.1 to 2.3, every operator and modifier.
_VARIABLE = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?:\*|:[1-9][0-9]{0,3})?"
_TEMPLATE = re.compile(rf"(?:[^\x00-\x1f\x7f{{}}]|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*")


def _matching(pattern: re.Pattern[str], article_and_name: str, hint: str = "") -> Callable[[Any], Any]:
    matches = pattern.fullmatch

    def read(value: Any) -> Any:
        if value.__class__ is not str or not matches(value):
            raise ValueError(f"must be {article_and_name}{hint if isinstance(value, str) else ''}")
        return value

    return read


def _read_xid(value: Any) -> Any:
    if value.__class__ is not str:
        raise ValueError("must be an xid")
    try:
        Xid.parse(value)
    except ValueError as problem:
        raise ValueError(f"value ({value}) isn't a valid xid, {problem}") from None
    return value


def _read_xidtype(value: Any) -> Any:
    if value.__class__ is not str:
        raise ValueError("must be an xidtype")
    try:
        parse_xidtype(value)
    except ValueError as problem:
        raise ValueError(f"value ({value}) isn't a valid xidtype, {problem}") from None
    return value


VALUE_TYPES: Mapping[str, ValueType] = MappingProxyType(
    {
        name: ValueType(name, scalar, read)
        for name, scalar, read in (
            ("any", False, _read_any),
            ("array", False, _of_class(list, "an array")),
            ("boolean", True, _of_class(bool, "a boolean")),
            ("decimal", True, _read_decimal),
            ("integer", True, _integer(-(2**63), 2**63 - 1, "an integer")),
            ("map", False, _of_class(dict, "a map")),
            ("object", False, _of_class(dict, "an object")),
            ("string", True, _of_class(str, "a string")),
            ("timestamp", True, _read_timestamp),
            ("uinteger", True, _integer(0, 2**64 - 1, "a uinteger")),
            ("uri", True, _matching(_LOOSE, "a uri")),
            ("uriabsolute", True, _matching(_ABSOLUTE, "a uriabsolute")),
            ("urirelative", True, _matching(_RELATIVE, "a urirelative")),
            ("uritemplate", True, _matching(_TEMPLATE, "a uritemplate", f": {NAME_IN_BRACES}")),
            ("url", True, _matching(_LOOSE, "a url")),
            ("urlabsolute", True, _matching(_ABSOLUTE, "a urlabsolute")),
            ("urlrelative", True, _matching(_RELATIVE, "a urlrelative")),
            ("xid", True, _read_xid),
            ("xidtype", True, _read_xidtype),
        )
    }
)

TYPE_ALIASES: Mapping[str, str] = MappingProxyType(
    {"urireference": "uri", "uri-reference": "uri", "urlreference": "url", "url-reference": "url"}
)


# An attribute's definition as a value, and how the full model writes it; an `item` is one without a name.


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute (or item) of a model, with the aspects of core/model.md under their own names."""

    name: str = ""
    type: str
    target: str = ""
    namecharset: str = ""
    description: str = ""
    enum: tuple[Any, ...] = ()
    strict: bool | None = None
    matchcase: bool = False
    exact: bool = False  # whether its enum is compared with case: its model says so, or the specification of its type
    matchversions: bool = False
    readonly: bool = False
    immutable: bool = False
    required: bool = False
    default: Any = None
    attributes: Attributes = field(default_factory=lambda: MappingProxyType({}))
    item: Attribute | None = None
    ifvalues: Mapping[str, Attributes] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def scalar(self) -> bool:
        """Whether its values are scalars."""
        return VALUE_TYPES[self.type].scalar

    @property
    def allowed(self) -> tuple[Any, ...]:
        """The only values it may have; empty where the model sets no limit."""
        return () if self.strict is False else self.enum

    def allows(self, value: Any) -> bool:
        """Whether its enum, where it has a strict one, holds a value."""
        return not self.allowed or self.comparable(value) in map(self.comparable, self.allowed)

    def comparable(self, value: Any) -> Any:
        """A value in the form in which it is compared with those of an enum: texts without case, as a rule."""
        return value.lower() if isinstance(value, str) and not self.exact else value

    def to_dict(self) -> dict[str, Any]:
        """Its definition as the full model shows it: aspects in the specification's order, none that says nothing."""
        shown: dict[str, Any] = {}
        for aspect in _ASPECTS:
            value = getattr(self, aspect)
            if value or (aspect == "strict" and value is not None):
                shown[aspect] = list(value) if aspect == "enum" else value
        if self.default is not None:
            shown["default"] = self.default
        if self.attributes:
            shown["attributes"] = {name: inner.to_dict() for name, inner in self.attributes.items()}
        if self.item is not None:
            shown["item"] = self.item.to_dict()
        if self.ifvalues:
            shown["ifvalues"] = {
                value: {"siblingattributes": {name: inner.to_dict() for name, inner in siblings.items()}}
                for value, siblings in self.ifvalues.items()
            }
        return shown

    def walk(self) -> Iterator[tuple[tuple[str, ...], Attribute]]:
        """It and every attribute statically nested in it through objects, each with its path."""
        yield (self.name,), self
        for inner in self.attributes.values():
            if inner.name != "*":
                yield from (((self.name, *path), found) for path, found in inner.walk())


Attributes = Mapping[str, Attribute]

_ASPECTS = (
    *("name", "type", "target", "namecharset", "description", "enum"),
    *("strict", "matchcase", "matchversions", "readonly", "immutable", "required"),
)

# What a `Level` normalises; the registry takes care of the rest before it asks.
CLIENT = frozenset(
    {
        *("name", "description", "documentation", "icon", "labels"),
        *("deprecated", "constraints", "contenttype", "format", "compatibility"),
    }
)

# ATTR-5, ATTR-7, and `format` and `compatibility` as an xRegistry server answers.
NONEMPTY = frozenset({"name", "documentation", "icon", "format", "compatibility"})


# Definitions compiled into checks.

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
        return _check_scalar(attribute, types, spec=spec) if attribute.scalar else _check_any
    item = compile_value(_item(attribute), types, compile_object)
    return _check_map(item) if attribute.type == "map" else _check_array(item)


def _ignore(value: Any, at: str, name: str, report: Report) -> None:
    """TYPE-17: what a client writes to a read-only attribute is not even looked at."""


def _check_any(value: Any, at: str, name: str, report: Report) -> Any:
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


def _check_map(item: Check) -> Check:
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


def _check_array(item: Check) -> Check:
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


def _check_scalar(attribute: Attribute, types: Types, *, spec: bool) -> Check:
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
        return known_xidtype(read, types)
    if attribute.type == "xid":
        read = known_xid(read, types)
    return of_target(read, attribute.target) if attribute.target else read


def _deprecated(check: Check) -> Check:
    def ordered(value: Any, at: str, name: str, report: Report) -> Any:
        value = check(value, at, name, report)
        if value.__class__ is dict and {"effective", "removal"} <= value.keys():
            effective, removal = value["effective"], value["removal"]
            if isinstance(effective, str) and isinstance(removal, str) and moment(removal) < moment(effective):
                report("invalid_attribute", f"{at}{name}.removal", f"must not be sooner than {at}{name}.effective")
        return value

    return ordered


_CHOICES_KEPT = 4096


@dataclass(slots=True, eq=False)
class AttributeScope:
    """The checks of one object's members, and what its `ifvalues` add to them.

    `switches` are the attributes whose value brings siblings: name, default, and the siblings for each value.
    """

    attributes: Attributes
    checks: Mapping[str, Check]
    defaults: tuple[tuple[str, Any], ...] = ()
    required: frozenset[str] = frozenset()
    switches: tuple[tuple[str, Any, Mapping[str, AttributeScope]], ...] = ()
    charset: str = ""
    reserved: frozenset[str] = frozenset()
    clashes: tuple[str, ...] = ()
    _chosen: dict[tuple[str | None, ...], AttributeScope] = field(default_factory=dict)

    def active(self, attrs: Mapping[str, Any]) -> AttributeScope:
        """The scope that holds for an object with these members: this one with the siblings they bring."""
        scope = self
        while scope.switches:
            values = []
            for name, default, cases in scope.switches:
                value = attrs.get(name)
                text = text_of(default if value is None else value).casefold()
                values.append(text if text in cases else None)
            key = tuple(values)
            found = scope._chosen.get(key)
            if found is None:
                found = scope._join(key)
                if len(scope._chosen) < _CHOICES_KEPT:
                    scope._chosen[key] = found
            scope = found
        return scope

    def _join(self, key: tuple[str | None, ...]) -> AttributeScope:
        joined = AttributeScope(
            attributes=dict(self.attributes),
            checks=dict(self.checks),
            charset=self.charset,
            reserved=self.reserved,
            defaults=self.defaults,
            required=self.required,
            clashes=self.clashes,
        )
        for value, (_, _, cases) in zip(key, self.switches, strict=True):
            if value is None:
                continue
            siblings = cases[value]
            # IFVAL-4: two active sections must not bring the same name.
            joined.clashes += tuple(name for name in siblings.attributes if name in joined.attributes)
            joined.attributes = {**joined.attributes, **siblings.attributes}
            joined.checks = {**joined.checks, **siblings.checks}
            joined.defaults += siblings.defaults
            joined.required |= siblings.required
            joined.switches += siblings.switches
        return joined

    def run(self, attrs: Mapping[str, Any], at: str, report: Report) -> dict[str, Any]:
        """The canonical members of one object whose path is `at`."""
        scope = self.active(attrs) if self.switches else self
        for name in scope.clashes:
            report("invalid_attribute", at + name, 'is defined by more than one active "ifvalues"')
        checks = scope.checks
        found = {}
        undeclared = []
        for name, value in attrs.items():
            if value is None:
                continue
            check = checks.get(name)
            if check is None:
                undeclared.append(name)
                continue
            value = check(value, at, name, report)
            if value is not None:
                found[name] = value
        if undeclared:
            scope._extend(undeclared, attrs, found, at, report)
        for name, value in scope.defaults:
            if name not in found:
                found[name] = value
        if scope.required and not scope.required <= found.keys():
            missing = sorted(at + name for name in scope.required - found.keys())
            report("required_attribute_missing", ",".join(missing), "")
        return found

    def _extend(
        self, names: list[str], attrs: Mapping[str, Any], found: dict[str, Any], at: str, report: Report
    ) -> None:
        """Take the members that no attribute of this scope names: as its `*` says, or not at all."""
        check = self.checks.get("*")
        pattern = NAME_PATTERNS[self.charset]
        for name in sorted(names):
            if check is None:
                report("unknown_attribute", at + name, "")
            elif name in self.reserved:
                report("invalid_attribute", at + name, f"Versions can't define an extension called: {name}")
            elif not pattern.fullmatch(name):
                report("invalid_attribute", at + name, must_match(pattern))
            else:
                found[name] = check(attrs[name], at, name, report)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """What a client may say about one kind of entity.

    `attributes` are the declared ones that a client controls, `names` their names; `system` are those of the server's
    own attributes that the model narrows.
    """

    attributes: Attributes
    system: Attributes
    names: frozenset[str]
    _scope: AttributeScope
    _system: AttributeScope

    def normalise(self, attrs: Mapping[str, Any], subject: str) -> dict[str, Any]:
        """A new dict with defaults filled in, values canonical and nulls gone; raises on the first fault."""
        return self._scope.run(attrs, "", _refuser(subject))

    def problems(self, attrs: Mapping[str, Any], subject: str) -> Iterator[Problem]:
        """Every fault that `normalise` would stop at."""
        found: list[Problem] = []

        def note(code: str, name: str, detail: str) -> None:
            args = _args(code, name, detail)
            found.append(Problem(name, code, f"{subject}: {', '.join(args.values())} ({code})", args))

        self._scope.run(attrs, "", note)
        yield from found

    def check_system(self, name: str, value: Any, subject: str) -> Any:
        """The canonical form of one of the server's attributes; raises where it is not what the model narrows it to."""
        check = self._system.checks.get(name)
        return value if check is None or value is None else check(value, "", name, _refuser(subject))

    def find(self, name: str, attrs: Mapping[str, Any] = MappingProxyType({})) -> Attribute | None:
        """The definition that `name` has in an entity with `attrs`; `ifvalues` and `*` count too."""
        attributes = self._scope.active(attrs).attributes
        return attributes.get(name) or attributes.get("*")


def compile_level(
    attributes: Attributes,
    base: Collection[str],
    narrowed: Collection[str],
    types: Types,
    reserved: frozenset[str] = frozenset(),
) -> Level:
    """The level of an entity with these attributes, of which `base` are the specification's.

    `narrowed` are the names the model itself defines; `reserved` ones are refused where only `*` would allow them.
    """
    client = {name: attribute for name, attribute in attributes.items() if name not in base or name in CLIENT}
    system = {name: attributes[name] for name in narrowed if name in base and name not in CLIENT}
    return Level(
        attributes=MappingProxyType(client),
        system=MappingProxyType(system),
        names=frozenset(client),
        _scope=compile_scope(client, types, base=base, reserved=reserved),
        _system=compile_scope(system, types, base=base),
    )


def compile_scope(
    attributes: Attributes,
    types: Types,
    *,
    charset: str = "",
    base: Collection[str] = (),
    reserved: frozenset[str] = frozenset(),
) -> AttributeScope:
    """The scope of an object's members; those in `base` are the specification's own."""

    def compile_object(attribute: Attribute) -> Check:
        scope = compile_scope(attribute.attributes, types, charset=attribute.namecharset)

        def check(value: Any, at: str, name: str, report: Report) -> Any:
            if value.__class__ is dict:
                return scope.run(value, f"{at}{name}.", report)
            report("invalid_attribute", at + name, "must be an object")
            return value

        return check

    values = attributes.values()
    return AttributeScope(
        attributes=attributes,
        checks={a.name: compile_value(a, types, compile_object, spec=a.name in base) for a in values},
        defaults=tuple((a.name, a.default) for a in values if a.default is not None),
        required=frozenset(a.name for a in values if a.required),
        switches=tuple(
            (
                a.name,
                a.default,
                {text.casefold(): compile_scope(s, types, charset=charset) for text, s in a.ifvalues.items()},
            )
            for a in values
            if a.ifvalues
        ),
        charset=charset,
        reserved=reserved,
    )


def _refuser(subject: str) -> Report:
    def refuse(code: str, name: str, detail: str) -> None:
        raise RegistryError(code, subject, **_args(code, name, detail))

    return refuse


def _args(code: str, name: str, detail: str) -> dict[str, str]:
    if code == "required_attribute_missing":
        return {"list": name}
    return {"name": name, "error_detail": detail} if detail else {"name": name}
