"""JSON Structure compatibility, type by type.

Rule 1: nobody publishes rules for JSON Structure, so containment is followed, as for JSON Schema: backward holds where
every payload that the older schema takes is taken by the newer one. A member that is added to an open object breaks it,
for older payloads may hold that name with any value. A type may widen to one that is written alike (`int8` to `int32`,
not `int32` to `int64`, which is a string).
Rule 2: names of types and how they are referred to make no difference; what cannot be decided says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from signalbook.schemas.format import BREAKS_BOTH, MOST_STEPS, Difference, Direction, StepBudget, pointer
from signalbook.schemas.json_structure.translate import INTEGERS, STRING_INTEGERS, StructureDocument

if TYPE_CHECKING:
    from signalbook.schemas.json_structure.schema import JsonStructureSchema

__all__ = ["compare"]

_BACKWARD: frozenset[Direction] = frozenset({"backward"})
_FORWARD: frozenset[Direction] = frozenset({"forward"})
_NONE: frozenset[Direction] = frozenset()
_EACH_TYPE = 5
_MEMBERS_A_STEP = 4
_RANGES: dict[str, tuple[int, int]] = {**INTEGERS, **STRING_INTEGERS}
# Types, other than by range, whose every JSON value is one of the other type.
_WIDER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(INTEGERS, ("number", "float", "double")),
    **dict.fromkeys(STRING_INTEGERS, ("decimal",)),
    "float8": ("float", "double", "number"),
    "float": ("double", "number"),
    "double": ("float", "number"),  # written alike, and no bound is checked
    "number": ("double", "float"),
    **dict.fromkeys(("uuid", "uri", "jsonpointer"), ("string",)),
    "set": ("array",),
}
_LIMITS = {"minimum": 1, "exclusiveMinimum": 1, "maximum": -1, "exclusiveMaximum": -1, "minLength": 1, "maxLength": -1,
           "minItems": 1, "maxItems": -1, "minProperties": 1, "maxProperties": -1, "minEntries": 1, "maxEntries": -1,
           "minContains": 1, "maxContains": -1, "precision": -1, "scale": -1}  # fmt: skip
_OTHERS = ("pattern", "format", "multipleOf", "uniqueItems", "contains", "dependentRequired", "patternProperties",
           "propertyNames", "patternKeys", "keyNames", "has", "allOf", "anyOf", "oneOf", "not", "if", "then",
           "else")  # fmt: skip


def compare(
    older: JsonStructureSchema, newer: JsonStructureSchema, budget: StepBudget | None = None
) -> Iterator[Difference]:
    """Yield what differs between two schemas, and which promise each difference breaks."""
    walk = _StructureComparison(older.document, newer.document, budget or StepBudget(MOST_STEPS))
    yield from walk.types(older.document.start, newer.document.start, ())
    if older.document.extensions != newer.document.extensions:
        words = "the extensions that are used change"
        yield Difference("/$uses", "extensions_changed", words, BREAKS_BOTH, certain=False)


class _StructureComparison:
    """Walks two documents; each pair of types is looked at once."""

    def __init__(self, old: StructureDocument, new: StructureDocument, budget: StepBudget) -> None:
        self._old, self._new = old, new
        self._budget = budget
        self._seen: set[tuple[int, int]] = set()

    def types(self, old: dict[str, Any], new: dict[str, Any], steps: tuple[str, ...]) -> Iterator[Difference]:
        old_key, new_key = _target(self._old, old), _target(self._new, new)
        if (old_key, new_key) in self._seen:
            return
        self._seen.add((old_key, new_key))
        self._budget.spend(_EACH_TYPE)
        before, after = self._old.effective(old), self._new.effective(new)
        path = pointer(steps)
        one, two = before.get("type"), after.get("type")
        if isinstance(one, list) or isinstance(two, list):
            yield from self._unions(_as_list(one), _as_list(two), steps)
        elif one != two:
            yield from _changed(str(one), str(two), path)
        if one == two or (one, two) in (("set", "array"), ("array", "set")):
            yield from self._inside(str(one), before, after, steps)
        yield from _values(before, after, path)
        yield from _limits(before, after, path)

    def _inside(
        self, kind: str, old: dict[str, Any], new: dict[str, Any], steps: tuple[str, ...]
    ) -> Iterator[Difference]:
        if kind == "object":
            yield from self._objects(old, new, steps)
        elif kind == "tuple":
            yield from self._tuples(old, new, steps)
        elif kind == "choice":
            yield from self._choices(old, new, steps)
        else:
            for name in ("items", "values"):
                if isinstance(old.get(name), dict) and isinstance(new.get(name), dict):
                    yield from self.types(old[name], new[name], (*steps, name))
                elif (name in old) != (name in new):
                    narrowed = name in new
                    words = f"the type of the {name} is {'now' if narrowed else 'no longer'} said"
                    kind_ = "type_narrowed" if narrowed else "type_widened"
                    yield Difference(pointer((*steps, name)), kind_, words, _BACKWARD if narrowed else _FORWARD)

    # ---- unions

    def _unions(self, old: list[Any], new: list[Any], steps: tuple[str, ...]) -> Iterator[Difference]:
        path = pointer(steps)
        for mine, others, direction, kind in ((old, new, _BACKWARD, "removed"), (new, old, _FORWARD, "added")):
            homes = (self._old, self._new) if direction == _BACKWARD else (self._new, self._old)
            self._budget.spend(1 + (len(mine) + len(others)) // _MEMBERS_A_STEP)
            plain = {other for other in others if isinstance(other, str)}
            likes = {self._likeness(homes[1], other) for other in others if isinstance(other, dict)}
            for one in mine:
                if isinstance(one, dict):
                    taken = "any" in plain or self._likeness(homes[0], one) in likes
                else:
                    taken = any(_wider(one, other) for other in plain)
                if taken:
                    continue
                # A type of the user's own is matched by its likeness only, so it may fit another all the same.
                certain = not isinstance(one, dict)
                words = f"{one if certain else 'a type'} is {kind}"
                yield Difference(path, f"union_type_{kind}", words, direction, certain)

    def _likeness(self, home: StructureDocument, one: dict[str, Any]) -> str:
        """What a type in a union is, without its words; equal for types that are alike."""
        found = _without_words(home.effective(one if "type" in one else {"type": one}))
        self._budget.spend(1 + len(found.get("properties", ())) // _MEMBERS_A_STEP)
        return repr(sorted(found.items()))

    # ---- compound types

    def _objects(self, old: dict[str, Any], new: dict[str, Any], steps: tuple[str, ...]) -> Iterator[Difference]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = _required(old), _required(new)
        for name in dict.fromkeys((*before, *after)):
            place = pointer((*steps, "properties", name))
            if name in before and name in after:
                if (name in needed) != (name in needs):
                    required = name in needs
                    words = f"the member becomes {'required' if required else 'optional'}"
                    kind = "property_required" if required else "property_optional"
                    yield Difference(place, kind, words, _BACKWARD if required else _FORWARD)
                yield from self.types(before[name], after[name], (*steps, "properties", name))
            elif name in after:
                breaks = (_BACKWARD if name in needs or not _takes_less(old, after[name]) else _NONE) | (
                    _FORWARD if _is_closed(old) else _NONE
                )
                what = "a required" if name in needs else "an optional"
                yield Difference(place, "property_added", f"{what} member is added", breaks)
            else:
                breaks = (_FORWARD if name in needed or not _takes_less(new, before[name]) else _NONE) | (
                    _BACKWARD if _is_closed(new) else _NONE
                )
                what = "a required" if name in needed else "an optional"
                yield Difference(place, "property_removed", f"{what} member is removed", breaks)
        yield from self._additional(old, new, steps)
        if (_is_nested(old) or _is_nested(new)) and old.get("required") != new.get("required"):
            words = "which members are required together changes"
            yield Difference(pointer((*steps, "required")), "required_changed", words, BREAKS_BOTH, certain=False)

    def _additional(self, old: dict[str, Any], new: dict[str, Any], steps: tuple[str, ...]) -> Iterator[Difference]:
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if before == after:
            return
        place = (*steps, "additionalProperties")
        if isinstance(before, dict) and isinstance(after, dict):
            yield from self.types(before, after, place)
        elif (before is True or after is False) and before is not False:
            words = "members that are not declared are taken less freely"
            yield Difference(pointer(place), "additional_narrowed", words, _BACKWARD)
        else:
            words = "members that are not declared are taken more freely"
            yield Difference(pointer(place), "additional_widened", words, _FORWARD)

    def _tuples(self, old: dict[str, Any], new: dict[str, Any], steps: tuple[str, ...]) -> Iterator[Difference]:
        before, after = old.get("tuple", []), new.get("tuple", [])
        if len(before) != len(after):
            words = f"the tuple has {len(after)} items and not {len(before)}"
            yield Difference(pointer((*steps, "tuple")), "tuple_changed", words, BREAKS_BOTH)
            return
        for one, two in zip(before, after, strict=True):
            yield from self.types(old["properties"][one], new["properties"][two], (*steps, "properties", two))

    def _choices(self, old: dict[str, Any], new: dict[str, Any], steps: tuple[str, ...]) -> Iterator[Difference]:
        if (old.get("selector"), "$extends" in old) != (new.get("selector"), "$extends" in new):
            words = "the way to tell the members of the choice apart changes"
            yield Difference(pointer((*steps, "selector")), "selector_changed", words, BREAKS_BOTH)
            return
        before, after = old.get("choices", {}), new.get("choices", {})
        for name in dict.fromkeys((*before, *after)):
            place = (*steps, "choices", name)
            if name in before and name in after:
                yield from self.types(before[name], after[name], place)
            else:
                kind = "added" if name in after else "removed"
                breaks = _FORWARD if name in after else _BACKWARD
                yield Difference(pointer(place), f"choice_{kind}", f"a choice is {kind}", breaks)


def _target(document: StructureDocument, schema: dict[str, Any]) -> int:
    """What tells a type from others: the type a plain reference leads to, not the reference."""
    kind = schema.get("type")
    reference = kind.get("$ref") if isinstance(kind, dict) else schema.get("$ref")
    found = document.lookup(reference) if isinstance(reference, str) and len(schema) == 1 else None
    return id(schema if found is None else found)


def _as_list(kind: Any) -> list[Any]:
    return kind if isinstance(kind, list) else [kind]


def _is_closed(schema: dict[str, Any]) -> bool:
    return schema.get("additionalProperties") is False


def _takes_less(schema: dict[str, Any], member: Any) -> bool:
    """Whether what an object takes under a name that it does not declare is surely taken by a declared member."""
    if _is_closed(schema):
        return True
    others = schema.get("additionalProperties", True)
    if isinstance(others, dict):
        return _without_words(others) == _without_words(member)
    return bool(_without_words(member) == {"type": "any"})


def _is_nested(schema: dict[str, Any]) -> bool:
    return any(isinstance(one, list) for one in schema.get("required", ()))


def _required(schema: dict[str, Any]) -> frozenset[str]:
    return frozenset(one for one in schema.get("required", ()) if isinstance(one, str))


def _wider(one: str, two: str) -> bool:
    """Whether each JSON value of a primitive type is one of another."""
    if one == two or two == "any" or two in _WIDER.get(one, ()):
        return True
    if one in _RANGES and two in _RANGES and (one in INTEGERS) == (two in INTEGERS):
        (low, high), (lower, higher) = _RANGES[one], _RANGES[two]
        return lower <= low and high <= higher
    return False


def _without_words(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in schema.items() if name not in ("name", "description", "examples")}


def _changed(old: str, new: str, path: str) -> Iterator[Difference]:
    there, back = _wider(old, new), _wider(new, old)
    breaks = (_NONE if there else _BACKWARD) | (_NONE if back else _FORWARD)
    kind = "type_changed" if not there and not back else "type_widened" if there else "type_narrowed"
    yield Difference(path, kind, f"the type changes from {old} to {new}", breaks)


def _values(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
    before, after = _enumerated(old), _enumerated(new)
    if before == after:
        return
    if before is None or after is None:
        added = before is None
        words = f"the values are {'now' if added else 'no longer'} enumerated"
        yield Difference(path, "enum_added" if added else "enum_removed", words, _BACKWARD if added else _FORWARD)
        return
    for values, kind, breaks in ((before - after, "removed", _BACKWARD), (after - before, "added", _FORWARD)):
        if values:
            shown = ", ".join(sorted(values)[:10])
            yield Difference(path, f"enum_value_{kind}", f"values are {kind}: {shown}", breaks)


def _enumerated(schema: dict[str, Any]) -> frozenset[str] | None:
    if "const" in schema:
        return frozenset({repr(schema["const"])})
    values = schema.get("enum")
    return frozenset(map(repr, values)) if isinstance(values, list) else None


def _limits(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
    for name, sign in _LIMITS.items():
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if isinstance(before, bool) or isinstance(after, bool):
            yield Difference(path, "limit_changed", f"{name} changes", BREAKS_BOTH, certain=False)
            continue
        narrowed = before is None
        if before is not None and after is not None:
            narrowed = (Decimal(str(after)) - Decimal(str(before))) * sign > 0
        words = f"{name} changes from {'none' if before is None else before} to {'none' if after is None else after}"
        yield Difference(
            path, "limit_narrowed" if narrowed else "limit_widened", words, _BACKWARD if narrowed else _FORWARD
        )
    for name in _OTHERS:
        if old.get(name) != new.get(name):
            yield Difference(path, f"{name}_changed", f"{name} changes", BREAKS_BOTH, certain=False)
