"""JSON Schemas with payloads that fit, and what their columns hold as `schema-formats.md` says.

A payload is text, so that every spelling of a number is met. What a column holds is said by `cells`, which shares no
code with the product: it is what the product is compared with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.pipeline.column_spelling import columns

__all__ = ["cells", "decoded", "fitting", "schemas"]

NAMES = ["a", "A", "b c", "_additional", "größe", "d-e"]
SCALARS: list[Any] = [
    {"type": "string"},
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "integer", "minimum": -1e30, "maximum": 1e30},
    {"type": "number"},
    {"type": "number", "multipleOf": 0.01},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "date"},
    {"enum": ["red", "green"]},
    {"const": True},
    {"type": ["string", "integer"]},
    {},
]


def schemas(depth: int = 3) -> st.SearchStrategy[Any]:
    """Schemas of every kind of column; a list or a map has no more than one kind of value."""
    leaf = st.sampled_from(SCALARS)
    if depth == 0:
        return leaf
    inner = schemas(depth - 1)
    return st.one_of(
        leaf,
        leaf.filter(lambda one: "type" in one and isinstance(one["type"], str)).map(_nullable),
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda one: {"type": "object", "additionalProperties": one}, inner.filter(bool)),
        objects(inner),
    )


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    """An object of some properties, of which some are required."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    required = draw(st.lists(st.sampled_from(names), unique=True))
    return {"type": "object", "properties": {name: draw(inner) for name in names}, "required": required}


WHOLE = st.integers(-(2**70), 2**70).map(str) | st.integers(-(2**55), 2**55).map(str)
DIGITS = st.text("0123456789", min_size=1, max_size=22)
NUMBER = (
    WHOLE
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.builds(lambda whole, digits: f"{whole}.{digits}", st.integers(-999, 999), DIGITS)
    | st.sampled_from(["1e3", "-0", "-0.0", "1E-7", "0.1", "1e400", "12345678901234567890.5"])
)
MOMENT = st.datetimes(min_value=datetime(1000, 1, 1)).map(lambda at: at.isoformat() + "Z") | st.sampled_from(
    ["2024-05-17T14:30:00+02:00", "2024-05-17T12:30:00.123456789Z", "2024-05-17T12:30:00.5Z", "2016-12-31T23:59:60Z"]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(json.dumps)


def fitting(schema: Any) -> st.SearchStrategy[str]:  # noqa: C901  one branch a kind
    """The texts of payloads that a schema of these accepts."""
    if "enum" in schema:
        return st.sampled_from([json.dumps(one) for one in schema["enum"]])
    if "const" in schema:
        return st.just(json.dumps(schema["const"]))
    match schema.get("type"):
        case [kind, "null"]:
            return st.just("null") | fitting({**schema, "type": kind})
        case list() | None:
            several = TEXT | WHOLE
            return several if "type" in schema else several | st.sampled_from(["null", '{"x":[1.50]}', "[]"])
        case "string":
            return {"date-time": MOMENT, "date": st.dates().map(lambda day: f'"{day}"')}.get(
                schema.get("format", ""), TEXT
            ).map(lambda text: text if text.startswith('"') else f'"{text}"')
        case "boolean":
            return st.sampled_from(["true", "false"])
        case "integer":
            if "minimum" in schema:
                return st.integers(-(10**29), 10**29).map(str)
            return WHOLE | st.sampled_from(["1.0", "1e2", "-0.0"])
        case "number":
            if "multipleOf" in schema:
                return st.integers(-(10**12), 10**12).map(lambda cents: f"{cents // 100}.{cents % 100:02}")
            return NUMBER
        case "array":
            return st.lists(fitting(schema["items"]), max_size=3).map(lambda items: f"[{','.join(items)}]")
    if "additionalProperties" in schema:
        return st.dictionaries(TEXT, fitting(schema["additionalProperties"]), max_size=3).map(_braced)
    members = {name: fitting(one) for name, one in schema["properties"].items()}
    required = {name: members.pop(name) for name in schema["required"]}
    extra = {"more": st.sampled_from(["null", "1.10", '{"y":"z"}'])}
    made = st.fixed_dictionaries(required, optional={**members, **extra})
    return made.map(lambda one: _braced({json.dumps(name): text for name, text in one.items()}))


def _braced(members: dict[str, str]) -> str:
    return "{" + ",".join(f"{name}:{text}" for name, text in members.items()) + "}"


def decoded(text: str) -> Any:
    """A JSON text with every digit of its numbers."""
    return json.loads(text, parse_float=Decimal, parse_int=int)


class Aside:
    """A value that its column cannot give back; `near` is what stands there."""

    def __init__(self, near: Any = None) -> None:
        self.near = near


def cells(schema: Any, value: Any) -> dict[str, Any]:
    """The struct of a payload; what is not an object with properties is the column `value`."""
    if "properties" in schema:
        found: dict[str, Any] = _object(schema, value)
        return found
    held = None if value is None and not _is_text(schema) else _cell(schema, value)
    if isinstance(held, Aside):
        return {"value": held.near, "_additional": value}
    return {"value": held, "_additional": None}


def _is_text(schema: Any) -> bool:
    """Whether the column is JSON text, which holds null as well."""
    kind = schema.get("type")
    return not ({"enum", "const"} & schema.keys()) and (kind is None or (isinstance(kind, list) and "null" not in kind))


def _object(schema: Any, value: dict[str, Any]) -> dict[str, Any]:
    spelled = columns(schema["properties"])
    found: dict[str, Any] = dict.fromkeys(spelled.values())
    aside = {name: member for name, member in value.items() if name not in spelled}
    for name in spelled.keys() & value.keys():
        inner = schema["properties"][name]
        if value[name] is None and not _is_text(inner):
            if name not in schema["required"]:
                aside[name] = None
            continue
        held = _cell(inner, value[name])
        if isinstance(held, Aside):
            aside[name], held = value[name], held.near
        found[spelled[name]] = held
    return {**found, "_additional": aside or None}


def _cell(schema: Any, value: Any) -> Any:
    """What a column holds of a value that is there."""
    if _is_text(schema):
        return ("JSON", value)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" and "properties" in schema:
        return _object(schema, value)
    if kind in ("object", "array"):
        inner = schema["items" if kind == "array" else "additionalProperties"]
        several = value if kind == "array" else list(value.values())
        held = [None if one is None and not _is_text(inner) else _cell(inner, one) for one in several]
        near = [one.near if isinstance(one, Aside) else one for one in held]
        whole = near if kind == "array" else list(zip(value, near, strict=True))
        return Aside(whole) if any(isinstance(one, Aside) for one in held) else whole
    if kind == "integer":
        return Decimal(value) if "minimum" in schema else int(value) if -(2**63) <= value < 2**63 else Aside()
    if kind == "number":
        return Decimal(value) if "multipleOf" in schema else _double(value)
    return _STRINGS.get(schema.get("format", ""), lambda text: text)(value)


def _double(value: int | Decimal) -> Any:
    """The nearest double; the number stands aside where that has another value, or another shortest decimal."""
    try:
        near = float(value)
    except OverflowError:
        return Aside()
    if near in (float("inf"), float("-inf")):
        return Aside()
    same = near == value if isinstance(value, int) else Decimal(repr(near)) == value
    return near if same else Aside(near)


_spelled_in_utc = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(?:\d{3})?(?!000)\d{3})?Z").fullmatch


def _moment(text: str) -> Any:
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return Aside()
    return at if _spelled_in_utc(text) else Aside(at)


_STRINGS: dict[str, Callable[[str], Any]] = {"date-time": _moment, "date": date.fromisoformat}
