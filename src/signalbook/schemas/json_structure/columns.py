"""JSON Structure as columns: the Arrow struct of a type, and how a JSON value becomes a value of it.

Rule 1: what has a width has an exact column: integers, `decimal` with precision and scale, `date`, `binary`. Numbers
without a bound, 128-bit ones, and what has a zone or a fraction of any length (`datetime`, `time`, `duration`) are the
text that was written. `float` and `double` are doubles.
Rule 2: members that are not declared are kept in `_more`, as JSON text; so is an explicit null of an optional member.
Rule 3: what has no column (`any`, a union of several types, an inline union, a type that contains itself) is JSON text.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from signalbook.jsontext import encode_json
from signalbook.schemas.format import column_names
from signalbook.schemas.json_structure.translate import INTEGERS, StructureDocument

__all__ = ["MORE", "StructureCell", "table"]

MORE = "_more"
MOST_COLUMNS = 5000
_DEEPEST = 30


@dataclass(frozen=True, slots=True)
class StructureCell:
    """A column's type, and what makes a value of it; `nullable` says that JSON null is one of its values."""

    type: pa.DataType
    convert: Callable[[Any], Any]
    nullable: bool = False


def table(document: StructureDocument) -> StructureCell:
    """The struct of a document's payloads."""
    found = _StructureColumns(document).cell(document.start, ())
    if pa.types.is_struct(found.type) and not found.nullable:
        return found
    return StructureCell(pa.struct([pa.field("value", found.type)]), lambda value: {"value": found.convert(value)})


def _json(value: Any) -> str:
    return encode_json(value)


_TEXT = StructureCell(pa.string(), _json)  # null is the text `null`
_STRING = StructureCell(pa.string(), str)


class _StructureColumns:
    """Builds columns until there are too many; what is left then stays JSON text."""

    def __init__(self, document: StructureDocument) -> None:
        self._document = document
        self._room = MOST_COLUMNS

    def cell(self, schema: dict[str, Any], around: tuple[Any, ...]) -> StructureCell:
        """The column of a type."""
        found = self._document.effective(schema)
        kind = found.get("type")
        self._room -= 1
        given = schema.get("type")
        key = given.get("$ref") if isinstance(given, dict) else schema.get("$ref", id(schema))
        if self._room < 0 or len(around) > _DEEPEST or key in around or kind is None:
            return _TEXT
        around = (*around, key)
        if isinstance(kind, list):
            return self._union(found, around)
        if kind in ("object", "tuple", "choice"):
            return getattr(self, f"_{kind}")(found, around)  # type: ignore[no-any-return]
        if kind in ("array", "set", "map"):
            inner = found.get("items" if kind != "map" else "values")
            return self._many(kind, self.cell(inner, around)) if isinstance(inner, dict) else _TEXT
        return _scalar(str(kind), found)

    def _union(self, found: dict[str, Any], around: tuple[Any, ...]) -> StructureCell:
        kinds = found["type"]
        others = [one for one in kinds if one != "null"]
        if len(others) != 1:
            return _TEXT
        one = others[0]
        said: dict[str, Any] = {name: found[name] for name in ("precision", "scale") if name in found}
        inner = self.cell({**said, "type": one}, around)
        if inner is _TEXT or "null" not in kinds:
            return inner
        return StructureCell(inner.type, _or_none(inner.convert), nullable=True)

    def _many(self, kind: str, inner: StructureCell) -> StructureCell:
        if kind == "map":
            return StructureCell(
                pa.map_(pa.string(), inner.type),
                lambda value: [(key, inner.convert(one)) for key, one in value.items()],
            )
        return StructureCell(pa.list_(inner.type), lambda value: [inner.convert(one) for one in value])

    def _object(self, found: dict[str, Any], around: tuple[Any, ...]) -> StructureCell:
        cells = {name: self.cell(one, around) for name, one in found.get("properties", {}).items()}
        if not cells:
            return _TEXT
        names = column_names(cells, [MORE])
        fields = [pa.field(names[name], cell.type) for name, cell in cells.items()]
        fields.append(pa.field(MORE, pa.string()))

        def convert(value: Any) -> Any:
            row = {}
            more = {}
            for name, one in value.items():
                cell = cells.get(name)
                if cell is None or (one is None and cell is not _TEXT):
                    more[name] = one
                else:
                    row[names[name]] = cell.convert(one)
            row[MORE] = _json(more) if more else None
            return row

        return StructureCell(pa.struct(fields), convert)

    def _tuple(self, found: dict[str, Any], around: tuple[Any, ...]) -> StructureCell:
        order = found.get("tuple", [])
        cells = {name: self.cell(found["properties"][name], around) for name in order}
        names = column_names(cells)
        if not cells:
            return _TEXT
        fields = [pa.field(names[name], cell.type) for name, cell in cells.items()]
        return StructureCell(
            pa.struct(fields),
            lambda value: {names[name]: cells[name].convert(one) for name, one in zip(order, value, strict=True)},
        )

    def _choice(self, found: dict[str, Any], around: tuple[Any, ...]) -> StructureCell:
        if "$extends" in found:
            return _TEXT
        cells = {name: self.cell(one, around) for name, one in found.get("choices", {}).items()}
        # A choice that is null would not be a choice at all, once it stands in a column.
        cells = {name: _TEXT if cell.nullable or pa.types.is_null(cell.type) else cell for name, cell in cells.items()}
        if not cells:
            return _TEXT
        names = column_names(cells)
        fields = [pa.field(names[name], cell.type) for name, cell in cells.items()]
        return StructureCell(
            pa.struct(fields), lambda value: {names[name]: cells[name].convert(one) for name, one in value.items()}
        )


def _or_none(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _scalar(kind: str, found: dict[str, Any]) -> StructureCell:
    if kind == "decimal":
        precision, scale = found.get("precision"), found.get("scale")
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and 0 < precision <= 38:
            return StructureCell(pa.decimal128(precision, scale), Decimal)
        return _STRING
    return _SCALARS.get(kind, _TEXT)


_SCALARS: dict[str, StructureCell] = {
    **dict.fromkeys(("string", "uuid", "uri", "jsonpointer", "datetime", "time", "duration"), _STRING),
    **dict.fromkeys(("int128", "uint128"), _STRING),
    **{name: StructureCell(pa.int64() if name == "uint32" else pa.int32(), int) for name in INTEGERS},
    "int64": StructureCell(pa.int64(), int),
    "uint64": StructureCell(pa.decimal128(20, 0), Decimal),
    **dict.fromkeys(("float", "double", "float8"), StructureCell(pa.float64(), float)),
    "boolean": StructureCell(pa.bool_(), bool),
    "date": StructureCell(pa.date32(), date.fromisoformat),
    "binary": StructureCell(pa.binary(), base64.b64decode),
}
