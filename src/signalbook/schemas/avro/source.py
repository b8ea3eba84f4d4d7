"""The text of an Avro schema in one spelling: as Avro's Java library prints it, and normalised, and written out.

Rule 1: names, not the way they are written, are what a schema says: a dotted name is a name and a namespace, and a
namespace that is the one around is left out.
Rule 2: documentation, defaults, aliases and other properties are part of a schema; the order of members is not.
Rule 3: a type that another document defines is a name here; written out, its definition stands where it comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbook.jsontext import encode_json
from signalbook.schemas.format import unusable

__all__ = ["definitions", "normalised", "printed"]

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_SCHEMA = frozenset({"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"})
_FIELD = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_DEEPEST = 200


def printed(document: Any, others: Mapping[str, Any] | None = None) -> str:
    """A schema as Java prints it; definitions of `others`, by full name, are written out where they first come."""
    return encode_json(_Printer(dict(others or {})).schema(document, "", 0))


def normalised(document: Any) -> str:
    """A schema with full names and its members in a fixed order."""
    return encode_json(_Normaliser().schema(document, "", 0))


def definitions(document: Any) -> dict[str, Any]:
    """The named types that a schema defines, by full name, each as a schema of its own."""
    found: dict[str, Any] = {}
    waiting: list[tuple[Any, str]] = [(document, "")]
    while waiting:
        one, space = waiting.pop()
        if isinstance(one, list):
            waiting.extend((member, space) for member in one)
        elif isinstance(one, dict):
            kind = one.get("type")
            if isinstance(kind, str) and kind in _NAMED and isinstance(one.get("name"), str):
                name, space = _split(one["name"], one.get("namespace"), space)
                found.setdefault(_full(name, space), {**one, "name": name, "namespace": space})
                fields = one.get("fields")
                waiting.extend((field.get("type"), space) for field in fields or () if isinstance(field, dict))
            elif isinstance(kind, list | dict):
                waiting.append((kind, space))
            else:
                waiting.extend((one[part], space) for part in ("items", "values") if part in one)
    return found


def _split(name: str, given: Any, around: str) -> tuple[str, str]:
    """The name and the namespace of a named type."""
    space, dot, last = name.rpartition(".")
    if dot:
        return last, space
    return name, given if isinstance(given, str) else around


def _full(name: str, space: str) -> str:
    return f"{space}.{name}" if space else name


def _bound(depth: int) -> None:
    if depth > _DEEPEST:
        raise unusable(f"types are nested more than {_DEEPEST} deep")


class _Printer:
    """One printing; a definition that came once is a name afterwards."""

    def __init__(self, others: dict[str, Any]) -> None:
        self._others = others

    def schema(self, one: Any, space: str, depth: int) -> Any:
        _bound(depth)
        if isinstance(one, str):
            return self._reference(one, space, depth)
        if isinstance(one, list):
            return [self.schema(member, space, depth + 1) for member in one]
        if not isinstance(one, dict):
            raise unusable("a schema is a name, an object or a list")
        kind = one.get("type")
        if not isinstance(kind, str):
            if kind is None:
                raise unusable("an object has no type")
            return self.schema(kind, space, depth + 1)  # as Java, which takes the type for the whole
        if kind in _NAMED:
            return self._named(one, kind, space, depth)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            inner = self.schema(one.get(part), space, depth + 1)
            return {"type": kind, part: inner, **_properties(one, _SCHEMA)}
        others = _properties(one, _SCHEMA)
        if kind in _PRIMITIVES:
            return {"type": kind, **others} if others else kind
        return self._reference(kind, space, depth)

    def _reference(self, name: str, space: str, depth: int) -> Any:
        if name in _PRIMITIVES:
            return name
        full = name if "." in name else _full(name, space)
        for known in (full, name):
            if known in self._others:
                return self.schema(self._others.pop(known), space, depth + 1)
        around, _, last = full.rpartition(".")
        return last if around == space else full if "." in name else name

    def _named(self, one: dict[str, Any], kind: str, around: str, depth: int) -> dict[str, Any]:
        if not isinstance(one.get("name"), str):
            raise unusable(f"a type {kind} has no name")
        name, space = _split(one["name"], one.get("namespace"), around)
        self._others.pop(_full(name, space), None)
        made: dict[str, Any] = {"type": kind, "name": name}
        if space != around:
            made["namespace"] = space
        if isinstance(one.get("doc"), str):
            made["doc"] = one["doc"]
        if kind in ("record", "error"):
            made["fields"] = [self._field(field, space, depth) for field in one.get("fields") or ()]
        elif kind == "enum":
            made["symbols"] = one.get("symbols")
            if "default" in one:
                made["default"] = one["default"]
        else:
            made["size"] = one.get("size")
        reserved = _SCHEMA | {"default"} if kind == "enum" else _SCHEMA
        made.update(_properties(one, reserved))
        aliases = [_relative(alias, space) for alias in _aliases(one)]
        if aliases:
            made["aliases"] = aliases
        return made

    def _field(self, field: Any, space: str, depth: int) -> dict[str, Any]:
        if not isinstance(field, dict) or "type" not in field:
            raise unusable("a field is an object with a type")
        made: dict[str, Any] = {"name": field.get("name"), "type": self.schema(field["type"], space, depth + 1)}
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if "default" in field:
            made["default"] = field["default"]
        if isinstance(field.get("order"), str) and field["order"].lower() != "ascending":
            made["order"] = field["order"].lower()
        if _aliases(field):
            made["aliases"] = _aliases(field)
        made.update(_properties(field, _FIELD))
        return made


class _Normaliser:
    """The same with full names and members in the order of the parsing canonical form."""

    def schema(self, one: Any, space: str, depth: int) -> Any:
        _bound(depth)
        if isinstance(one, str):
            return one if one in _PRIMITIVES or "." in one else _full(one, space)
        if isinstance(one, list):
            return [self.schema(member, space, depth + 1) for member in one]
        if not isinstance(one, dict):
            raise unusable("a schema is a name, an object or a list")
        kind = one.get("type")
        if not isinstance(kind, str):
            return self.schema(kind, space, depth + 1)
        others = dict(sorted(_properties(one, _SCHEMA | {"default"} if kind == "enum" else _SCHEMA).items()))
        if kind in _NAMED:
            return self._named(one, kind, space, depth, others)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            return {"type": kind, part: self.schema(one.get(part), space, depth + 1), **others}
        if kind in _PRIMITIVES:
            return {"type": kind, **others} if others else kind
        return kind if "." in kind else _full(kind, space)

    def _named(self, one: dict[str, Any], kind: str, around: str, depth: int, others: dict[str, Any]) -> dict[str, Any]:
        name, space = _split(str(one.get("name")), one.get("namespace"), around)
        made: dict[str, Any] = {"name": _full(name, space), "type": kind}
        if isinstance(one.get("doc"), str):
            made["doc"] = one["doc"]
        if kind in ("record", "error"):
            made["fields"] = [self._field(field, space, depth) for field in one.get("fields") or ()]
        elif kind == "enum":
            made["symbols"] = one.get("symbols")
            if "default" in one:
                made["default"] = one["default"]
        else:
            made["size"] = one.get("size")
        if _aliases(one):
            made["aliases"] = sorted({alias if "." in alias else _full(alias, space) for alias in _aliases(one)})
        return {**made, **others}

    def _field(self, field: Any, space: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"name": field.get("name"), "type": self.schema(field["type"], space, depth + 1)}
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if "default" in field:
            made["default"] = field["default"]
        if isinstance(field.get("order"), str) and field["order"].lower() != "ascending":
            made["order"] = field["order"].lower()
        if _aliases(field):
            made["aliases"] = sorted(set(_aliases(field)))
        return {**made, **dict(sorted(_properties(field, _FIELD).items()))}


def _properties(one: Mapping[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in reserved}


def _aliases(one: Mapping[str, Any]) -> list[str]:
    given = one.get("aliases")
    return [alias for alias in given if isinstance(alias, str)] if isinstance(given, list) else []


def _relative(alias: str, space: str) -> str:
    around, dot, last = alias.rpartition(".")
    return last if dot and around == space else alias
