"""Whether a schema may follow others by a level: the verdicts of Confluent's registry, and the words for them.

Rule 1: the comparison is the product's own (`schemas`); where Confluent decides otherwise, `verdict` follows it.
Rule 2: each finding has the name that tools show, and the version that it is about.
Rule 3: what cannot be decided within bounds is not compatible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from signalbook import schemas
from signalbook.jsontext import decode_json, encode_json
from signalbook.schemas.canonical import Content, read_schema
from signalbook.schemas.format import Difference, Direction, SchemaError, StepBudget

__all__ = ["ComparedSchema", "Incompatibility", "breaks", "compare_all", "messages"]

_MOST = 20
_STEPS = 200_000
_DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "NONE": (), "BACKWARD": ("backward",), "FORWARD": ("forward",), "FULL": ("backward", "forward"),
}  # fmt: skip
# The names of Avro's own findings, and of some of JSON Schema's; any other is its own name in capitals.
_NAMES = {
    "field_added": "READER_FIELD_MISSING_DEFAULT_VALUE",
    "field_removed": "READER_FIELD_MISSING_DEFAULT_VALUE",
    "symbol_removed": "MISSING_ENUM_SYMBOLS",
    "symbol_added": "MISSING_ENUM_SYMBOLS",
    "member_removed": "MISSING_UNION_BRANCH",
    "member_added": "MISSING_UNION_BRANCH",
    "name_changed": "NAME_MISMATCH",
    "size_changed": "FIXED_SIZE_MISMATCH",
    "type_changed": "TYPE_MISMATCH",
    "format_changed": "TYPE_MISMATCH",
    "required_added": "REQUIRED_ATTRIBUTE_ADDED",
    "type_narrowed": "TYPE_NARROWED",
    "enum_narrowed": "ENUM_ARRAY_NARROWED",
    "enum_changed": "ENUM_ARRAY_CHANGED",
    "union_narrowed": "SUM_TYPE_NARROWED",
}


@dataclass(frozen=True, slots=True)
class ComparedSchema:
    """A schema to compare with: its content, the texts that it refers to, and the number of its version."""

    content: Content
    texts: Mapping[str, str]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """What breaks a level, and against which version."""

    name: str
    path: str
    message: str
    older: ComparedSchema


def compare_all(level: str, newer: ComparedSchema, older: Sequence[ComparedSchema]) -> list[Incompatibility]:
    """What breaks a level between a schema and those before it, which are given with the newest first."""
    name, _, transitive = level.partition("_")
    wanted = older if transitive else older[:1]
    found: list[Incompatibility] = []
    budget = StepBudget(_STEPS)
    for one in wanted:
        found.extend(breaks(_DIRECTIONS[name], one, newer, budget))
        if found:
            break
    return found


def breaks(
    directions: Iterable[Direction], older: ComparedSchema, newer: ComparedSchema, budget: StepBudget
) -> list[Incompatibility]:
    """What breaks a promise between two schemas."""
    wanted = frozenset(directions)
    if not wanted or older.content == newer.content:
        return []
    if older.content.type != newer.content.type:
        words = f"the type changes from {older.content.type} to {newer.content.type}"
        return [Incompatibility("TYPE_MISMATCH", "/", words, older)]
    kind = newer.content.type
    try:
        one, two = (_read(each) for each in (older, newer))
    except SchemaError as error:
        return [Incompatibility("UNREADABLE_SCHEMA", "/", str(error), older)]
    if kind == "PROTOBUF":
        from signalbook.schemas.protobuf.compare import confluent_breaks  # with the compiler, where there is one

        given = islice(confluent_breaks(one, two, wanted), _MOST)
        return [Incompatibility(name, path, words, older) for name, path, words in given]
    return [
        Incompatibility(_NAMES.get(one.kind, one.kind.upper()), one.path or "/", one.message, older)
        for one in islice(_broken(kind, one, two, wanted, budget), _MOST)
    ]


def _broken(
    kind: str, older: Any, newer: Any, wanted: frozenset[Direction], budget: StepBudget
) -> Iterator[Difference]:
    for one in schemas.compatible([older, newer], "full", budget=budget):
        broken = one.breaks & wanted
        if kind == "AVRO" and one.kind == "logical_type_changed":
            continue
        if kind == "JSON" and one.kind in _REQUIRED:
            reader = newer if broken == {"backward"} else older
            if len(broken) == 1 and _has_default(reader.index.root.schema, one.path):
                continue
        if broken:
            yield one


_REQUIRED = ("required_added", "required_removed")
# What stands in a schema without being one.
_DATA = frozenset({"enum", "const", "default", "examples", "required"})


def _read(one: ComparedSchema) -> Any:
    """A schema as it is compared: for JSON, whether one alternative or several hold makes no difference."""
    content = one.content
    if content.type != "JSON" or '"oneOf"' not in f"{content.text}{''.join(one.texts.values())}":
        return read_schema(content.type, content.text, one.texts)
    texts = {name: _with_any_of(text) for name, text in one.texts.items()}
    return read_schema(content.type, _with_any_of(content.text), texts)


def _with_any_of(text: str) -> str:
    return encode_json(_any_of(decode_json(text.encode())))


def _any_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_any_of(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: one if name in _DATA else _any_of(one) for name, one in value.items()}
    if isinstance(made.get("oneOf"), list):
        branches = made.pop("oneOf")
        if "anyOf" not in made:
            made["anyOf"] = branches
        else:
            more = made.get("allOf") if isinstance(made.get("allOf"), list) else []
            made["allOf"] = [*(more or []), {"anyOf": branches}]
    return made


def _has_default(root: Any, path: str) -> bool:
    """Tell whether the property at a path of a JSON Schema has a default; local references are followed."""
    at = root
    for step in path.split("/")[1:]:
        at = _followed(root, at)
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list):
            at = at[int(name)] if name.isdigit() and int(name) < len(at) else None
        else:
            at = at.get(name) if isinstance(at, dict) else None
    at = _followed(root, at)
    return isinstance(at, dict) and "default" in at


def _followed(root: Any, at: Any) -> Any:
    for _ in range(20):
        link = at.get("$ref") if isinstance(at, dict) else None
        if not isinstance(link, str) or not link.startswith("#/") or "default" in at:
            return at
        at = root
        for step in link[2:].split("/"):
            at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at


def messages(found: Sequence[Incompatibility], level: str, policy: str = "") -> list[str]:
    """The findings as tools show them, with the version that they are about and the level."""
    if not found:
        return []
    lines = [
        f"{{errorType:'{one.name}', description:'{one.message}, at path {one.path}', additionalInfo:''}}"
        for one in found
    ]
    older = found[0].older
    lines += [f"{{oldSchemaVersion: {older.number}}}", f"{{oldSchema: '{older.content.text}'}}"]
    return [*lines, f"{{validateFields: 'false', compatibility: '{level}'}}"]
