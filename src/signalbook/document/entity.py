"""The attributes of one entity, judged by the model: a `Level` is a compiled scope of attribute definitions.

Rule 1: a `Level` sees only what a client controls; ids, times, `self` and the like are the registry's to take out.
Rule 2: a check is a closure made once, when the model is read: value in, canonical value out (None: leave it out). A
fault goes to `report`, which raises it (`normalise`) or collects it (`problems`); only a fault puts a path together.
Rule 3: nothing here changes its arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from signalbook.document.attribute import Attribute, Attributes
from signalbook.document.attribute_read import NAME_PATTERNS
from signalbook.document.spec_attributes import CLIENT
from signalbook.document.value_check import Check, Report, Types, compile_value
from signalbook.document.value_types import text_of
from signalbook.document.xid import must_match
from signalbook.errors import Problem, RegistryError

__all__ = ["Level", "compile_level"]

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
