"""`Layout`: the table of a message, its columns, and messages as its rows; and the table of dead letters.

Rule 1: the top level is fixed: the attributes of CloudEvents, `extensions`, the structs `context`, `transport`, `data`
and `judged`, and `payload`, the original bytes. A struct that would have no members is left out.
Rule 2: columns follow from the definition and its schema, never from the messages. Each may be null.
Rule 3: a table grows by columns; one whose type would change refuses the definition.
Rule 4: a cell is exact, or its text is kept beside it: a moment that a column cannot give back (an offset, more than
six digits of a second) is in `extensions` as well, as it came. What a column cannot hold at all raises `CellError`, and
the message is a dead letter; but an event's `time` of that kind is in `extensions` alone.
Rule 5: a dead letter says why it did not land, and its `record` is the input byte for byte, up to 64 MiB; beyond that
its place, length and hash are kept.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa

from signalbook.cloudevents import CloudEvent
from signalbook.cloudevents.attributes import canonical
from signalbook.errors import Problem
from signalbook.messages.answer import Answer
from signalbook.messages.catalog import Catalog
from signalbook.messages.observe import Observed
from signalbook.pipeline.read.records import Record
from signalbook.protocols import BINDINGS, FIELDS, PROTOCOLS, Message, Mode, WireError, claims_event, mode_of
from signalbook.schemas import Schema, SchemaError
from signalbook.schemas.format import column_names
from signalbook.template import Template

__all__ = [
    "ATTRIBUTE_CELLS",
    "COLUMN_PROBLEM",
    "DEAD_LETTERS",
    "DEAD_LETTER_SCHEMA",
    "JUDGED",
    "MOMENT",
    "TABLE_PROBLEM",
    "TRANSPORT",
    "CellError",
    "DeadLetters",
    "Layout",
    "Repeated",
    "Stamp",
    "attribute_text",
    "gives_back",
    "layout_of",
    "moment",
    "table_names",
    "table_path",
    "transport_cells",
    "type_changes",
]

# Names of tables: a message's group is the schema, its id the table, in small letters, digits and `_`. Where two
# messages have one name, or it is too long or taken, `_` and eight hex digits of the SHA-256 of the xid follow. A
# message that has a table in the lake keeps its name.


DEAD_LETTERS = "signalbook/dead_letters"
_LONGEST = 100
_strange = re.compile("[^a-z0-9_]").sub


def table_names(xids: Iterable[str], owners: Mapping[str, str] | None = None) -> dict[str, str]:
    """The path `schema/table` of each message; `owners` are the messages whose tables a lake has, by their paths.

    >>> table_names(["/messagegroups/Fleet/messages/car.moved"])
    {'/messagegroups/Fleet/messages/car.moved': 'fleet/car_moved'}
    """
    owners = owners or {}
    plain = {xid: table_path(xid) for xid in xids}
    often = Counter(plain.values())
    first: dict[str, str] = {}
    for xid in sorted(plain):
        first.setdefault(plain[xid], xid)
    names = {}
    for xid, path in plain.items():
        owner = owners.get(path, first[path] if often[path] > 1 else xid)
        names[xid] = path if owner == xid and path != DEAD_LETTERS else _with_mark(path, xid, often)
    return names


def table_path(xid: str) -> str:
    """The path of a message's table where nobody else has it."""
    _, _, group, _, message = xid.split("/", 4)
    return f"{_table_name(group)}/{_table_name(message)}"


def _table_name(name: str) -> str:
    simple = _strange("_", name.lower()).lstrip("_") or "x"
    if len(simple) <= _LONGEST:
        return simple
    return f"{simple[:_LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _with_mark(path: str, xid: str, taken: Container[str]) -> str:
    digits = hashlib.sha256(xid.encode()).hexdigest()
    return next(name for length in (8, 16, 64) if (name := f"{path}_{digits[:length]}") not in taken)


# `Repeated`: one value as a column of any length, made once.


_LEAST = 16


class Repeated:
    """A column that repeats one value, or null; the longest one made so far is kept and sliced."""

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


# Values of messages as cells of tables: moments, attributes, what a transport said.


MOMENT = pa.timestamp("us", tz="UTC")
TRANSPORT = pa.struct(
    [
        ("protocol", pa.string()),
        ("address", pa.string()),
        ("key", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", MOMENT),
        ("schemaid", pa.int64()),
        ("fields", pa.string()),
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OWN_COLUMNS = {"KAFKA": frozenset({"topic", "key", "partition", "offset"})}


class CellError(ValueError):
    """A value that its column cannot hold, in words."""


def moment(text: str) -> datetime:
    """The moment that an RFC 3339 text means, to the microsecond; a second 60 is the next minute's first."""
    if text[19:] == "Z" and text[17:19] != "60":
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise CellError(f"the column's type cannot hold the time {text}") from None
    spelled = text.upper()
    leap = spelled[17:19] == "60"
    if leap:
        spelled = f"{spelled[:17]}59{spelled[19:]}"
    try:
        found = datetime.fromisoformat(spelled).astimezone(UTC)
        return found + timedelta(seconds=1) if leap else found
    except (ValueError, OverflowError):
        raise CellError(f"the column's type cannot hold the time {text}") from None


def gives_back(text: str, at: datetime) -> bool:
    """Whether a moment in a column can be written as that very text."""
    if text[19:] == "Z" and text[10] == "T" and text[17:19] != "60":
        return True
    digits = "microseconds" if at.microsecond % 1000 else "milliseconds" if at.microsecond else "seconds"
    return at.replace(tzinfo=None).isoformat(timespec=digits) + "Z" == text


def attribute_text(value: Any) -> str:
    """An attribute's canonical string."""
    return value if type(value) is str else canonical(value)


def _whole(value: Any) -> int:
    try:
        return int(value)
    except ValueError:
        raise CellError(f"the column's type has no {value!r}") from None


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else attribute_text(value) == "true"


def _octets(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise CellError("the column's type holds Base64 only") from None


def _moment_of(value: Any) -> datetime:
    return moment(attribute_text(value))


# The columns of attributes, by the type that a definition gives them; any other is text.
ATTRIBUTE_CELLS: Mapping[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "boolean": (pa.bool_(), _flag),
    "integer": (pa.int32(), _whole),
    "binary": (pa.binary(), _octets),
    "timestamp": (MOMENT, _moment_of),
}


def transport_cells(observed: Observed, schemaid: int | None) -> dict[str, Any] | None:
    """What the message's transport said; None for a bare event."""
    message = observed.message
    if message is None:
        return None
    cells: dict[str, Any] = {
        "protocol": message.protocol,
        "address": _target_of(message),
        "schemaid": schemaid,
        "fields": _other_fields(message),
    }
    if message.protocol == "KAFKA":
        cells |= {name: message.get(name) for name in ("key", "partition", "offset")}
        cells["timestamp"] = _kafka_moment(message.get("timestamp"))
    return cells


def _kafka_moment(stated: Any) -> datetime | None:
    """The timestamp of a record; None where it is not a valid moment, which is then in `fields` only."""
    try:
        return _EPOCH + timedelta(milliseconds=stated) if isinstance(stated, int) else stated and moment(stated)
    except (CellError, OverflowError):
        return None


def _target_of(message: Message) -> str | None:
    stated = PROTOCOLS[message.protocol].target(message.fields)
    return stated if isinstance(stated, str) else None


def _other_fields(message: Message) -> str | None:
    """The fields that have no column of their own, in the JSON form of messages."""
    table, own = FIELDS[message.protocol], _OWN_COLUMNS.get(message.protocol, frozenset())
    written = {}
    for name, value in message.fields.items():
        if value is not None and name not in own:
            ending, form = table[name].kind.write(value)
            written[name + ending] = form
    return orjson.dumps(written).decode() if written else None


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
    """The struct of payloads and what makes it; None where there is no schema, or it has no columns."""
    if schema is None or isinstance(schema, Problem):
        return None
    try:
        return schema.columns(), schema.convert
    except SchemaError:
        return None


def type_changes(table: pa.Schema, wanted: pa.Schema) -> Iterator[tuple[str, str]]:
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


# Dead letters: the one table of messages that did not land, with all that is needed to match them again.


# The codes of the reasons that are the pipeline's own; all others are those of matching.
COLUMN_PROBLEM = "column"
TABLE_PROBLEM = "table"

_PROBLEMS = pa.list_(pa.struct([("path", pa.string()), ("code", pa.string()), ("message", pa.string())]))
_CANDIDATES = pa.list_(pa.struct([("definition", pa.string()), ("problems", _PROBLEMS)]))
DEAD_LETTER_SCHEMA = pa.schema(
    [
        ("outcome", pa.string()),
        ("definition", pa.string()),
        ("problems", _PROBLEMS),
        ("candidates", _CANDIDATES),
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("record", pa.binary()),
        ("length", pa.int64()),
        ("sha256", pa.string()),
        ("judged", JUDGED),
    ]
)
_MOST_CANDIDATES = 20
_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The layout of the table of dead letters."""

    schema: pa.Schema = DEAD_LETTER_SCHEMA
    definition: str | None = None

    def row(self, answer: Answer, problems: tuple[Problem, ...], record: Record) -> tuple[Any, ...]:
        """The cells of a message that does not land."""
        event = answer.cloudevent
        named = _identity_of(record) if event is None else (event.id, event.source, event.type)
        near = [
            {"definition": one.definition, "problems": _problems(one.problems)}
            for one in answer.candidates[:_MOST_CANDIDATES]
        ]
        kept = (record.kept(), record.size, record.sha256)
        return answer.outcome.value, answer.definition, _problems(problems), near, *named, *kept

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> tuple[list[pa.Array], Sequence[int]]:
        """The columns of all rows, without `judged`."""
        columns = zip(*(row[0] for row in rows), strict=True)
        types = [one.type for one in DEAD_LETTER_SCHEMA][:-1]
        return [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)], ()


def _identity_of(record: Record) -> tuple[str | None, ...]:
    """The id, source and type of what is not a valid event, as far as they can be read."""
    try:
        found = _members(record)
    except (WireError, ValueError, RecursionError):
        found = {}
    values = (found.get(name) for name in ("id", "source", "type"))
    return tuple(_clean(value) if isinstance(value, str) else None for value in values)


def _members(record: Record) -> Mapping[str, Any]:
    """The members of a JSON event, bare or carried, or the attributes that a message carries beside its payload."""
    message = record.message
    if message is None:
        value = orjson.loads(record.data or b"")
        if not isinstance(value, dict) or "protocol" not in value:
            return value if isinstance(value, dict) else {}
        message = Message.from_json(record.data or b"")
    if not claims_event(message):
        return {}
    if mode_of(message) is not Mode.BINARY:
        value = orjson.loads(message.payload or b"")
        return value if isinstance(value, dict) else {}
    binding = BINDINGS[message.protocol]
    found = {}
    for name, value in binding.carried(message.fields):
        plain = name.lower() if binding.any_case else name
        for prefix in binding.prefixes:
            if plain.startswith(prefix):
                with contextlib.suppress(ValueError):
                    found[plain.removeprefix(prefix)] = binding.read_value(value)
    return found


def _problems(problems: Iterable[Problem]) -> list[dict[str, str]]:
    return [
        {"path": _clean(one.path), "code": one.code, "message": _clean(one.message)}
        for one in list(problems)[:_MOST_PROBLEMS]
    ]


def _clean(text: str) -> str:
    """The text with what UTF-8 cannot write replaced: a problem may quote a lone surrogate."""
    return text.encode("utf-8", "replace").decode()
