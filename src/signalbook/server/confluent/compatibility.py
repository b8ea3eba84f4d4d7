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
from signalbook.schemas.canonical import Content, read_schema
from signalbook.schemas.format import Difference, Direction, SchemaError, StepBudget
from signalbook.schemas.protobuf import confluent as protobuf_rules

__all__ = ["Candidate", "Finding", "breaks", "compare_all", "messages"]

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
class Candidate:
    """A schema to compare with: its content, the texts that it refers to, and the number of its version."""

    content: Content
    texts: Mapping[str, str]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """What breaks a level, and against which version."""

    name: str
    path: str
    message: str
    older: Candidate


def compare_all(level: str, newer: Candidate, older: Sequence[Candidate]) -> list[Finding]:
    """What breaks a level between a schema and those before it, which are given with the newest first."""
    name, _, transitive = level.partition("_")
    wanted = older if transitive else older[:1]
    found: list[Finding] = []
    budget = StepBudget(_STEPS)
    for one in wanted:
        found.extend(breaks(_DIRECTIONS[name], one, newer, budget))
        if found:
            break
    return found


def breaks(directions: Iterable[Direction], older: Candidate, newer: Candidate, budget: StepBudget) -> list[Finding]:
    """What breaks a promise between two schemas."""
    wanted = frozenset(directions)
    if not wanted or older.content == newer.content:
        return []
    if older.content.type != newer.content.type:
        words = f"the type changes from {older.content.type} to {newer.content.type}"
        return [Finding("TYPE_MISMATCH", "/", words, older)]
    try:
        one, two = (read_schema(each.content.type, each.content.text, each.texts) for each in (older, newer))
    except SchemaError as error:
        return [Finding("UNREADABLE_SCHEMA", "/", str(error), older)]
    kind = newer.content.type
    if kind == "PROTOBUF":
        given = ((name, path, words) for name, path, words in protobuf_rules.broken(one, two, wanted))
        return [Finding(name, path, words, older) for name, path, words in islice(given, _MOST)]
    return [
        Finding(_NAMES.get(one.kind, one.kind.upper()), one.path or "/", one.message, older)
        for one in islice(_broken(kind, one, two, wanted, budget), _MOST)
    ]


def _broken(
    kind: str, older: Any, newer: Any, wanted: frozenset[Direction], budget: StepBudget
) -> Iterator[Difference]:
    found = schemas.compatible([older, newer], "full", budget=budget)
    for one in found:
        if one.breaks & wanted and not (kind == "AVRO" and one.kind == "logical_type_changed"):
            yield one


def messages(found: Sequence[Finding], level: str, policy: str = "") -> list[str]:
    """The findings as tools show them, with the version that they are about and the level."""
    if not found:
        return []
    lines = [
        f"{{errorType:'{one.name}', description:'{one.message} at path {one.path}', additionalInfo:''}}"
        for one in found
    ]
    older = found[0].older
    lines += [f"{{oldSchemaVersion: {older.number}}}", f"{{oldSchema: '{older.content.text}'}}"]
    return [*lines, f"{{validateFields: 'false', compatibility: '{level}'}}"]
