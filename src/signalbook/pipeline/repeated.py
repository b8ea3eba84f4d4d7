"""`Repeated`: one value as a column of any length, made once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["Repeated"]

_LEAST = 16


class Repeated:
    """A value, or null, as often as it is asked for; what was made for one column serves the next."""

    __slots__ = ("_array", "_kind", "_value")

    def __init__(self, value: Any, kind: pa.DataType) -> None:
        self._value = value
        self._kind = kind
        self._array = pa.nulls(0, kind)

    def of(self, count: int) -> pa.Array:
        """The column of so many rows."""
        if len(self._array) < count:
            length = max(count, _LEAST, 2 * len(self._array))
            held = self._value is not None
            self._array = (
                pa.repeat(pa.scalar(self._value, self._kind), length) if held else pa.nulls(length, self._kind)
            )
        return self._array.slice(0, count)
