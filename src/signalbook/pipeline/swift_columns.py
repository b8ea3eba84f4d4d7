"""`SwiftColumns`: events that the swift road took, as columns of their table.

Rule 1: the columns are those that `Layout` makes row by row. What all events of a shape share is written once, what
differs stands in the groups of the shape's pattern already.
Rule 2: a row is an event in the parts in which it was taken; nothing is read a second time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from signalbook.messages.swift import Shape, Taken
from signalbook.pipeline.cells import MOMENT, TRANSPORT, gives_back, moment
from signalbook.pipeline.payload_columns import PayloadColumns
from signalbook.pipeline.tables import TEXTS, Layout

__all__ = ["SwiftColumns"]

# The spellings of moments that a column gives back: in UTC, with no, three or six digits of which the last are not 000.
_plain = re.compile(r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.(?:[0-9]{3})?(?!000)[0-9]{3})?Z").fullmatch
_WHITE = b" \t\r\n"


class SwiftColumns:
    """The columns of the events of one shape in their definition's table."""

    __slots__ = ("_layout", "_left", "_names", "_parts", "_payloads", "definition", "schema")

    def __init__(self, layout: Layout, shape: Shape) -> None:
        self.schema = layout.schema
        self.definition: str | None = layout.definition
        self._layout = layout
        self._payloads: PayloadColumns | None = None
        if shape.has_data and layout.convert is not None:
            self._payloads = PayloadColumns(layout.schema.field("data").type, layout.convert)
        self._parts = dict(shape.attributes)
        self._left = [name for name, _ in shape.attributes if name not in layout.known]
        self._names = {layout.names[name]: at for name, at in shape.names}

    def arrays(self, rows: Sequence[Taken]) -> list[pa.Array]:
        """The columns of some events, without `judged`; raises where a value does not fit."""
        _, groups, contents, values = zip(*rows, strict=True)
        taken = list(zip(*groups, strict=True))
        count = len(rows)
        columns = [self._texts(name, taken, count) for name in TEXTS]
        times = self._values("time", taken, count)
        odd = () if times is None or all(map(_plain, times)) else times
        columns.append(_moments(times, odd, count))
        columns += [self._extension(one, taken, count) for one in self._layout.extensions]
        columns.append(self._left_over(odd, taken, count))
        if self._layout.names:
            columns.append(self._context(taken, count))
        columns.append(pa.nulls(count, TRANSPORT))
        if self._payloads is not None:
            columns.append(self._payloads.array(values))
        elif self._layout.convert is not None:
            columns.append(pa.nulls(count, self.schema.field("data").type))
        columns.append(pa.array([None if one is None else one.strip(_WHITE) for one in contents], pa.binary()))
        return columns

    def _values(self, name: str, taken: list[Any], count: int) -> Sequence[str] | None:
        """The texts of an attribute; None where the shape has none of that name."""
        part = self._parts.get(name)
        if part is None:
            return None
        return [part] * count if isinstance(part, str) else taken[part]

    def _texts(self, name: str, taken: list[Any], count: int) -> pa.Array:
        part = self._parts.get(name)
        if isinstance(part, int):
            return pa.array(taken[part], pa.string())
        return pa.nulls(count, pa.string()) if part is None else pa.repeat(pa.scalar(part, pa.string()), count)

    def _extension(self, one: Any, taken: list[Any], count: int) -> pa.Array:
        texts = self._values(one.name, taken, count)
        return pa.nulls(count, one.type) if texts is None else pa.array(list(map(one.read, texts)), one.type)

    def _left_over(self, odd: Sequence[str], taken: list[Any], count: int) -> pa.Array:
        """The attributes without a column; where some moments are not given back by theirs, those too."""
        kind = self.schema.field("extensions").type
        if not self._left and not odd:
            return pa.nulls(count, kind)
        texts = [self._values(name, taken, count) or () for name in self._left]
        pairs = [list(zip(self._left, row, strict=True)) for row in zip(*texts, strict=True)] or [[] for _ in odd]
        for row, time in zip(pairs, odd, strict=False):
            if not gives_back(time, moment(time)):
                row.append(("time", time))
        return pa.array([row or None for row in pairs], kind)

    def _context(self, taken: list[Any], count: int) -> pa.Array:
        kind = self.schema.field("context").type
        if not self._names:
            return pa.nulls(count, kind)
        held = [
            pa.nulls(count, pa.string()) if (at := self._names.get(one.name)) is None else pa.array(taken[at], one.type)
            for one in kind
        ]
        return pa.StructArray.from_arrays(held, fields=list(kind))


def _moments(times: Sequence[str] | None, odd: Sequence[str], count: int) -> pa.Array:
    if times is None:
        return pa.nulls(count, MOMENT)
    return pa.array(list(map(moment, odd)), MOMENT) if odd else pa.array(times, pa.string()).cast(MOMENT)
