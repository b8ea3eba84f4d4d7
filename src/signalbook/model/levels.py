"""The attributes of one entity, judged by the model: a `Level` is a compiled scope of attribute definitions.

Rule 1: a `Level` sees only what a client controls; ids, times, `self` and the like are the registry's to take out.
Rule 2: a check is a closure made once, when the model is read: value in, canonical value out (None: leave it out). A
fault goes to `report`, which raises it (`normalise`) or collects it (`problems`); only a fault puts a path together.
Rule 3: nothing here changes its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from signalbook.errors import Problem, RegistryError
from signalbook.model.attributes import CLIENT, NAME_PATTERNS, NONEMPTY, TARGET, Attribute, Attributes
from signalbook.model.value_types import VALUE_TYPES, moment, text_of
from signalbook.model.xids import MAP_KEY, Xid, must_match, parse_xidtype

__all__ = ["Check", "Level", "Report", "Types", "compile_level", "compile_value"]

# One attribute's definition compiled into the function that checks a value of it.
#
# Rule 1: the fault is reported under the attribute's path and the value goes on as it is, so that all can be collected.
# Rule 2: what is inside an object is somebody else's: `compile_object` is given.


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


_CHOICES_KEPT = 4096


@dataclass(slots=True, eq=False)
class Scope:
    """The checks of one object's members, and what its `ifvalues` add to them.

    `switches` are the attributes whose value brings siblings: name, default, and the siblings for each value.
    """

    attributes: Attributes
    checks: Mapping[str, Check]
    defaults: tuple[tuple[str, Any], ...] = ()
    required: frozenset[str] = frozenset()
    switches: tuple[tuple[str, Any, Mapping[str, Scope]], ...] = ()
    charset: str = ""
    reserved: frozenset[str] = frozenset()
    clashes: tuple[str, ...] = ()
    _chosen: dict[tuple[str | None, ...], Scope] = field(default_factory=dict)

    def active(self, attrs: Mapping[str, Any]) -> Scope:
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

    def _join(self, key: tuple[str | None, ...]) -> Scope:
        joined = Scope(
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
    _scope: Scope
    _system: Scope

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
) -> Scope:
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
    return Scope(
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
