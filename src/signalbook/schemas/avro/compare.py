"""What changed between two Avro schemas, and which promises that breaks.

Rule 1: backward means that the newer schema reads what the older wrote, forward the other way round; both by the
specification's schema resolution (in `decode`), as Java's `SchemaCompatibility` and the registries built on it.
Rule 2: a path names fields, `items`, `values` and the members of unions, from the top.
Rule 3: resolution ignores logical types; a reader does not. Another unit or scale changes what the same bytes mean and
breaks both; a logical type that comes or goes narrows what values there may be, which is for the owner to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from signalbook.schemas.avro.resolve import (
    Resolution,
    TooManyPairs,
    field_of,
    names_match,
    pair_steps,
    promotes,
)
from signalbook.schemas.avro.schema import NOTHING, Field, Node, of_values
from signalbook.schemas.format import BREAKS_BOTH, MOST_STEPS, Difference, Direction, Schema, StepBudget, pointer

if TYPE_CHECKING:
    from signalbook.schemas.avro.payload import AvroSchema

__all__ = ["compare"]

Steps = tuple[str, ...]
_MOST = 1000


def compare(older: Schema, newer: Schema, budget: StepBudget | None = None) -> Iterator[Difference]:
    """Yield the differences of two Avro schemas, the breaking ones with the promises they break."""
    old, new = cast("AvroSchema", older).node, cast("AvroSchema", newer).node
    budget = budget or StepBudget(MOST_STEPS)
    try:
        found = [
            *_DirectionComparison(old, new, "backward", budget).differences(),
            *_DirectionComparison(new, old, "forward", budget).differences(),
        ]
    except TooManyPairs:
        words = "the schemas have too many types against each other to be compared"
        yield Difference("", "too_large", words, BREAKS_BOTH, certain=False)
        return
    merged: dict[tuple[str, str, str], Difference] = {}
    for one in found:
        key = (one.path, one.kind, one.message)
        before = merged.get(key)
        merged[key] = one if before is None else replace(before, breaks=before.breaks | one.breaks)
    yield from list(merged.values())[:_MOST]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words for changes, seen from one direction of reading."""

    field: str
    symbols: str
    member: str


_WORDS: dict[Direction, _Words] = {
    "backward": _Words("field_added", "symbol_removed", "member_removed"),
    "forward": _Words("field_removed", "symbol_added", "member_added"),
}


class _DirectionComparison:
    """One direction: what the reader cannot read of what the writer wrote."""

    def __init__(self, writer: Node, reader: Node, direction: Direction, budget: StepBudget) -> None:
        self._budget = budget
        self._direction = direction
        self._breaks = frozenset({direction})
        self._words = _WORDS[direction]
        self._resolution = Resolution(writer, reader, budget)
        self._seen: set[tuple[int, int]] = set()
        self._start = (writer, reader)

    def differences(self) -> Iterator[Difference]:
        waiting: list[tuple[Node, Node, Steps]] = [(*self._start, ())]
        while waiting:
            writer, reader, steps = waiting.pop()
            if (id(writer), id(reader)) not in self._seen:
                self._seen.add((id(writer), id(reader)))
                self._budget.spend(pair_steps(writer, reader))
                inner: list[tuple[Node, Node, Steps]] = []
                yield from self._pair(writer, reader, steps, inner)
                waiting.extend(reversed(inner))

    def _difference(self, steps: Steps, kind: str, message: str) -> Difference:
        return Difference(pointer(steps), kind, message, self._breaks)

    def _pair(
        self, writer: Node, reader: Node, steps: Steps, inner: list[tuple[Node, Node, Steps]]
    ) -> Iterator[Difference]:
        if writer.kind == "union" or reader.kind == "union":
            yield from self._union(writer, reader, steps, inner)
        elif writer.kind != reader.kind:
            if not promotes(writer.kind, reader.kind):
                yield self._difference(steps, "type_changed", self._changed(writer, reader))
        elif writer.inner is not None and reader.inner is not None:
            inner.append((writer.inner, reader.inner, (*steps, "items" if writer.kind == "array" else "values")))
        else:
            yield from self._same_kind(writer, reader, steps, inner)
        yield from self._logical(writer, reader, steps)

    def _changed(self, writer: Node, reader: Node) -> str:
        old, new = self._in_time(writer, reader)
        return f"the type changes from {_describe_kind(old)} to {_describe_kind(new)}"

    def _in_time(self, writer: Node, reader: Node) -> tuple[Node, Node]:
        return (writer, reader) if self._direction == "backward" else (reader, writer)

    def _same_kind(
        self, writer: Node, reader: Node, steps: Steps, inner: list[tuple[Node, Node, Steps]]
    ) -> Iterator[Difference]:
        if writer.name and not names_match(writer, reader):
            old, new = self._in_time(writer, reader)
            words = f"the name changes from {old.name} to {new.name}, and no alias of the reader says so"
            yield self._difference(steps, "name_changed", words)
        elif writer.kind == "record":
            yield from self._fields(writer, reader, steps, inner)
        elif writer.kind == "fixed" and writer.size != reader.size:
            old, new = self._in_time(writer, reader)
            yield self._difference(
                steps, "size_changed", f"the size of {new.name} changes from {old.size} to {new.size}"
            )
        elif writer.kind == "enum":
            yield from self._symbols(writer, reader, steps)

    def _fields(
        self, writer: Node, reader: Node, steps: Steps, inner: list[tuple[Node, Node, Steps]]
    ) -> Iterator[Difference]:
        by_name = {field.name: field for field in writer.fields}
        for field in reader.fields:
            found = field_of(by_name, field)
            if found is not None:
                inner.append((found.node, field.node, (*steps, field.name)))
                if found.name != field.name:
                    words = f"the field {found.name} is read as {field.name}"
                    yield Difference(pointer((*steps, field.name)), "field_renamed", words)
            else:
                yield self._unwritten(field, reader, steps)

    def _unwritten(self, field: Field, reader: Node, steps: Steps) -> Difference:
        """A field that the reader wants and the writer does not know."""
        place = pointer((*steps, field.name))
        if self._direction == "backward":
            words = f"the field {field.name} of {reader.name} is new"
        else:
            words = f"the field {field.name} of {reader.name} is no longer there"
        if field.default is NOTHING:
            return Difference(place, self._words.field, f"{words} and has no default", self._breaks)
        return Difference(place, self._words.field, f"{words}; it {_has(self._direction)} a default")

    def _symbols(self, writer: Node, reader: Node, steps: Steps) -> Iterator[Difference]:
        known = set(reader.symbols)
        missing = [symbol for symbol in writer.symbols if symbol not in known]
        for symbol in missing:
            words = f"the symbol {symbol} of {reader.name} is {'gone' if self._direction == 'backward' else 'new'}"
            if reader.default is None:
                yield self._difference((*steps, symbol), self._words.symbols, f"{words} and the reader has no default")
            else:
                place = pointer((*steps, symbol))
                yield Difference(place, self._words.symbols, f"{words}; it is read as {reader.default}")

    def _union(
        self, writer: Node, reader: Node, steps: Steps, inner: list[tuple[Node, Node, Steps]]
    ) -> Iterator[Difference]:
        several = len(of_values(writer)) > 1
        for member in writer.members if writer.kind == "union" else (writer,):
            place = (*steps, member.label) if several else steps
            if reader.kind != "union":
                if self._surface(member, reader):
                    inner.append((member, reader, place))
                else:
                    words = f"a value of type {member.label} is not a valid {reader.label}"
                    yield self._difference((*steps, member.label), self._words.member, words)
                continue
            found = self._resolution.member(member, reader)
            if found is not None:
                inner.append((member, found, place))
            else:
                words = f"a value of type {member.label} does not fit any member of the union"
                yield self._difference((*steps, member.label), self._words.member, words)

    def _surface(self, writer: Node, reader: Node) -> bool:
        if writer.kind != reader.kind:
            return promotes(writer.kind, reader.kind)
        return not writer.name or names_match(writer, reader)

    def _logical(self, writer: Node, reader: Node, steps: Steps) -> Iterator[Difference]:
        if writer.logical == reader.logical and (writer.precision, writer.scale) == (reader.precision, reader.scale):
            return
        if "union" in (writer.kind, reader.kind):
            return
        old, new = (_describe_logical(one) for one in self._in_time(writer, reader))
        words = f"the logical type changes from {old} to {new}"
        if writer.logical == reader.logical == "decimal" and writer.scale == reader.scale:
            if writer.precision > reader.precision:
                yield self._difference(steps, "logical_type_changed", words)
        elif writer.logical and reader.logical and (writer.kind == reader.kind):
            yield self._difference(steps, "logical_type_changed", words)
        elif reader.logical:
            yield replace(self._difference(steps, "logical_type_changed", words), certain=False)


def _has(direction: Direction) -> str:
    return "has" if direction == "backward" else "had"


def _describe_kind(node: Node) -> str:
    return f"{node.kind} {node.name}" if node.name else node.kind


def _describe_logical(node: Node) -> str:
    if node.logical == "decimal":
        return f"decimal({node.precision},{node.scale})"
    return node.logical or f"plain {node.kind}"
