"""`Layout`: the columns of one message's table, and messages as its rows.

Rule 1: the top level is fixed: the attributes of CloudEvents, `extensions`, the structs `context`, `transport`, `data`
and `judged`, and `payload`, the original bytes. A struct that would have no members is left out.
Rule 2: columns follow from the definition and its schema, never from the messages. Each may be null.
Rule 3: a table grows by columns; one whose type would change refuses the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from signalbook.cloudevents import CloudEvent
from signalbook.errors import Problem
from signalbook.messages.answer import Answer
from signalbook.messages.catalog import Catalog
from signalbook.messages.observed import Observed
from signalbook.pipeline.cells import (
    ATTRIBUTE_CELLS,
    MOMENT,
    TRANSPORT,
    CellError,
    attribute_text,
    gives_back,
    moment,
    transport_cells,
)
from signalbook.schemas import Schema, SchemaError
from signalbook.schemas.column_names import column_names
from signalbook.template import Template

__all__ = ["JUDGED", "Layout", "Stamp", "grown", "layout_of"]

TEXTS = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject")
JUDGED = pa.struct(
    [
        ("digest", pa.string()),
        ("definition", pa.string()),
        ("run", pa.string()),
        ("batch", pa.int64()),
        ("origin", pa.string()),
        ("position", pa.int64()),
    ]
)
_EXTENSIONS = pa.map_(pa.string(), pa.string())
_OWN = frozenset({"extensions", "context", "transport", "data", "judged", "payload"})
_CORE = frozenset({*TEXTS, "time"})
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every row of a batch is marked with."""

    digest: str
    run: str
    batch: int


@dataclass(frozen=True, slots=True)
class _Extension:
    """An attribute that a definition declares beyond those of the specification, and its column."""

    name: str
    column: str
    type: pa.DataType
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """One table: the rows of its messages are tuples, in the order of `schema` up to `judged`."""

    definition: str
    schema: pa.Schema
    extensions: tuple[_Extension, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = _CORE
    convert: Callable[[Any], Any] | None = None

    def row(self, observed: Observed, answer: Answer, payload: bytes | None) -> tuple[Any, ...]:
        """The cells of a matched message; raises `CellError`."""
        attributes = observed.attributes if observed.event is not None else _attributes(answer.cloudevent)
        time = attributes.get("time")
        at = None if time is None else moment(time)
        cells = [*map(attributes.get, TEXTS), at]
        cells += [None if (value := attributes.get(one.name)) is None else one.read(value) for one in self.extensions]
        cells.append(self._left_over(attributes, time, at))
        if self.names:
            cells.append({self.names[name]: value for name, value in answer.context.items()} or None)
        cells.append(transport_cells(observed, answer.schemaid))
        if self.convert is not None:
            cells.append(self._data(answer))
        cells.append(payload)
        return tuple(cells)

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> tuple[list[pa.Array], Sequence[int]]:
        """The columns of all rows, without `judged`; raises what Arrow raises where a value does not fit."""
        columns = zip(*(row[0] for row in rows), strict=True)
        types = [one.type for one in self.schema][:-1]
        return [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)], ()

    def _left_over(self, attributes: Mapping[str, Any], time: Any, at: Any) -> list[tuple[str, str]] | None:
        left = [(name, attribute_text(attributes[name])) for name in attributes if name not in self.known]
        if at is not None and not gives_back(time, at):
            left.append(("time", time))
        return left or None

    def _data(self, answer: Answer) -> Any:
        if answer.checked is None or self.convert is None:
            return None
        try:
            return self.convert(answer.checked.value)
        except (ValueError, TypeError, OverflowError, ArithmeticError, KeyError) as error:
            raise CellError(f"the columns of the payload cannot hold it: {error}") from None


def layout_of(catalog: Catalog, xid: str) -> Layout:
    """The table of a definition."""
    document = catalog.definition(xid).document
    extensions = _extensions(document.get("envelopemetadata"))
    names = column_names(sorted(_placeholders(document)))
    data = _payload_columns(catalog.schema(xid))
    fields = [(name, pa.string()) for name in TEXTS]
    fields += [("time", MOMENT), *((one.column, one.type) for one in extensions), ("extensions", _EXTENSIONS)]
    if names:
        fields.append(("context", pa.struct([(column, pa.string()) for column in names.values()])))
    fields.append(("transport", TRANSPORT))
    if data is not None:
        fields.append(("data", data[0]))
    fields += [("payload", pa.binary()), ("judged", JUDGED)]
    known = _CORE.union(one.name for one in extensions)
    return Layout(xid, pa.schema(fields), extensions, names, known, None if data is None else data[1])


def _payload_columns(schema: Schema | Problem | None) -> tuple[pa.DataType, Callable[[Any], Any]] | None:
    """The struct of payloads and what makes it; None where there is no schema, or it says of no payload what it is."""
    if schema is None or isinstance(schema, Problem):
        return None
    try:
        return schema.columns(), schema.convert
    except SchemaError:
        return None


def grown(table: pa.Schema, wanted: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the path of each column whose type would have to change for a definition, and why."""
    yield from _differences(pa.struct(list(table)), pa.struct(list(wanted)), "")


def _differences(held: pa.DataType, wanted: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    if pa.types.is_struct(held) and pa.types.is_struct(wanted):
        for one in wanted:
            at = held.get_field_index(one.name)
            if at >= 0:
                yield from _differences(held.field(at).type, one.type, f"{path}/{one.name}")
    elif pa.types.is_map(held) and pa.types.is_map(wanted):
        yield from _differences(held.item_type, wanted.item_type, f"{path}/value")
    elif _is_list(held) and _is_list(wanted):
        yield from _differences(held.value_type, wanted.value_type, f"{path}/element")
    elif held != wanted:
        yield path, f"the table's column {path} is {held}, the definition wants {wanted}"


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _extensions(metadata: Any) -> tuple[_Extension, ...]:
    if not isinstance(metadata, Mapping):
        return ()
    declared = [name for name in metadata if name not in _CORE and isinstance(metadata[name], Mapping)]
    columns = column_names(declared, reserved=_OWN | _CORE)
    found = []
    for name in declared:
        stated = metadata[name].get("type")
        kind, read = ATTRIBUTE_CELLS.get(str(stated).lower(), (pa.string(), attribute_text))
        found.append(_Extension(name, columns[name], kind, read))
    return tuple(found)


def _placeholders(document: Mapping[str, Any]) -> set[str]:
    """The names that a match of this definition may capture: those of every text below metadata and options."""
    found: set[str] = set()
    waiting: list[Any] = [document.get("envelopemetadata"), document.get("protocoloptions")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.update(Template.parse(value).names if "{" in value else ())
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return found


def _attributes(event: CloudEvent | None) -> Mapping[str, Any]:
    return _NOTHING if event is None else event.attributes
