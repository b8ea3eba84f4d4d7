"""What a task is given, what it does, and what it reports.

A task gets a `Job`: the catalog, packed to travel, and the tables of the lake. It matches its records, writes each to
the table of its message or to the dead letters, and reports the files and the counts.

Rule 1: what travels to a task is text and its digest, never compiled objects, so a worker needs only the same package.
A process compiles a catalog once, and keeps the two that it used last: a stream changes from one to the next.
Rule 2: matching is that of `Catalog.match`, record by record; the fast path gives the same answers.
Rule 3: every record becomes exactly one row somewhere. `input` counts what was read, before anything is matched.
Rule 4: only what a successful attempt reported is ever committed.
"""

from __future__ import annotations

import contextlib
import gc
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
import pyarrow as pa

from signalbook.errors import Problem
from signalbook.messages.answer import Answer, Outcome
from signalbook.messages.catalog import Catalog, in_canonical
from signalbook.messages.fast import FastPath
from signalbook.messages.match import answer as answer_by
from signalbook.messages.observe import Observed, content_encodings, observe
from signalbook.messages.schema_library import SchemaPolicy
from signalbook.pipeline.columns.events import BARE, ColumnShape, EventCarrier, EventColumns
from signalbook.pipeline.columns.kafka import KafkaFastPath, fast_path_of
from signalbook.pipeline.files import Folder
from signalbook.pipeline.read.lines import expand
from signalbook.pipeline.read.records import KafkaRow, Record
from signalbook.pipeline.tables import (
    COLUMN_PROBLEM,
    DEAD_LETTERS,
    TABLE_PROBLEM,
    CellError,
    DeadLetters,
    Layout,
    Stamp,
    attribute_text,
    layout_of,
    moment,
)
from signalbook.pipeline.writers import Bounds, Row, RowQueue, Writers
from signalbook.protocols import BINDINGS, Message
from signalbook.sources import Contents

__all__ = [
    "REPORT",
    "ArrowTask",
    "Job",
    "LandingCounts",
    "PackedCatalog",
    "RecordMatcher",
    "Refusal",
    "Task",
    "report_row",
    "run",
    "without_garbage_collection",
]


_DEAD = DeadLetters()
_MATCHED = Outcome.MATCHED.value
# The place in a message of what is in each column that is not of one attribute.
_PLACES = {"data": "/data", "payload": "/data", "transport": "/protocoloptions", "context": "", "extensions": ""}
# What Spark runs: batches of rows in, batches of rows out.
ArrowTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
# The columns of what a task gives back to Spark.
REPORT = "report binary"
# Why a record goes to no table: the answer about it, and the problems that decided.
Refusal = tuple[Answer, tuple[Problem, ...]]


@dataclass(frozen=True, slots=True)
class PackedCatalog:
    """The documents of one catalog, and its digest.

    `roots` are the addresses by which it is reached; `schemas_required` says that a payload schema which cannot be
    applied is a problem, wherever it lies.
    """

    digest: str
    text: bytes = field(repr=False, compare=False)
    roots: tuple[str, ...] = ()
    schemas_required: bool = False

    @classmethod
    def of(
        cls,
        *documents: Any,
        bases: Mapping[str, Mapping[str, Any]] | None = None,
        roots: tuple[str, ...] = (),
        schemas_required: bool = False,
    ) -> PackedCatalog:
        """The catalog of these documents, each read by its dialect."""
        return cls._of(in_canonical(*documents), bases, roots, schemas_required)

    @classmethod
    def _of(
        cls,
        documents: Sequence[Mapping[str, Any]],
        bases: Mapping[str, Mapping[str, Any]] | None,
        roots: tuple[str, ...],
        schemas_required: bool,
    ) -> PackedCatalog:
        catalog = Catalog.from_canonical(*documents, bases=bases)
        text = orjson.dumps({"documents": documents, "bases": bases or {}}, default=_json_value)
        return cls(catalog.digest, zlib.compress(text, 1), roots, schemas_required)

    @classmethod
    def of_contents(cls, contents: Contents) -> PackedCatalog:
        """The catalog that a source holds."""
        documents = [document.content for document in contents.documents]
        return cls._of(documents, contents.external, contents.roots, contents.schemas_required)

    def catalog(self) -> Catalog:
        """The catalog, compiled."""
        return _compiled(self)


@lru_cache(2)
def _compiled(packed: PackedCatalog) -> Catalog:
    held = orjson.loads(zlib.decompress(packed.text))
    policy = SchemaPolicy(required=packed.schemas_required)
    return Catalog.from_canonical(*held["documents"], bases=held["bases"], roots=packed.roots, schemas=policy)


def _json_value(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True, slots=True)
class Job:
    """What every task of a batch is given: the catalog, the lake, the table of each message, and which are refused."""

    packed: PackedCatalog
    lake: Folder
    stamp: Stamp
    tables: dict[str, str] = field(repr=False)
    refused: dict[str, str] = field(default_factory=dict, repr=False)
    within: tuple[str, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)


class RecordMatcher:
    """Answers about records, by the catalog of a job."""

    def __init__(self, catalog: Catalog, within: Iterable[str] = ()) -> None:
        self._scope = catalog.scope(within)
        self._absolute = catalog.absolute
        self.fast: FastPath = self._scope.fast
        self._kafka: KafkaFastPath | None = None

    @property
    def kafka(self) -> KafkaFastPath:
        """The fast path of Kafka's records."""
        if self._kafka is None:
            self._kafka = fast_path_of(self._scope)
        return self._kafka

    def answer(self, record: Record) -> tuple[Answer, Observed | None]:
        """The answer about a record, and the message as it was observed, where it could be."""
        if record.reason is not None:
            return _malformed(record.reason), None
        given = record.given
        answer = self.fast.answer(given) if isinstance(given, bytes) else None
        return self.general_answer(record) if answer is None else (answer, Observed(None, answer.cloudevent))

    def general_answer(self, record: Record) -> tuple[Answer, Observed | None]:
        """The same about a record that the fast path did not take."""
        if record.reason is not None:
            return _malformed(record.reason), None
        given = record.given
        found = list(observe(given))
        if len(found) != 1:
            return _malformed(f"a batch of {len(found)} events in the place of one"), None
        observed = found[0]
        answer = answer_by(self._scope, observed, self._absolute)
        if isinstance(given, bytes):
            self.fast.learn(given, [answer])
        return answer, observed if isinstance(observed, Observed) else None

    def general_answer_of_row(self, row: KafkaRow, record: Record) -> tuple[Answer, Observed | None]:
        """The same about a record of Kafka."""
        answer, observed = self.general_answer(record)
        if observed is not None:
            self.kafka.learn(row, observed, answer)
        return answer, observed


def _malformed(words: str) -> Answer:
    return Answer(Outcome.MALFORMED, problems=(Problem("", "malformed", words),))


class Task:
    """One attempt at a part of a batch."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._catalog = job.packed.catalog()
        self._matcher = RecordMatcher(self._catalog, job.within)
        self._layouts: dict[str, tuple[Layout, RowQueue]] = {}
        self._shapes: dict[ColumnShape, RowQueue | None] = {}
        self.counts = LandingCounts()
        self.writers = Writers(job.lake, job.stamp, uuid.uuid4().hex[:12], self._refused, job.bounds)
        self._dead = self.writers.queue(DEAD_LETTERS, _DEAD)

    def run(self, records: Iterable[Record | KafkaRow]) -> dict[str, Any]:
        """Match and write all records; return what was written and counted, as a JSON value."""
        singles = 0
        with self.writing():
            for record in records:
                if isinstance(record, KafkaRow):
                    # Kafka carries no batches: a row is one input.
                    singles += 1
                    if not self._row_takes_fast_path(record):
                        self._take_general_path(record)
                    continue
                # What the fast path takes is one event, never a batch of them.
                if self._takes_fast_path(record):
                    singles += 1
                    continue
                self.counts.records += 1
                for one in expand((record,)):
                    self.counts.input += 1
                    if one is record or not self._takes_fast_path(one):
                        self._take_general_path(one)
        self.counts.records += singles
        self.counts.input += singles
        return self.report()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """What is landed in the block is in closed files after it."""
        try:
            yield
            self.writers.close()
        except BaseException:
            self.writers.abandon()
            raise
        for shape, queue in self._shapes.items():
            if queue is not None:
                self.counts.outcomes[_MATCHED] += queue.seen
                self.counts.messages[shape.xid] += queue.seen

    def report(self) -> dict[str, Any]:
        """What was counted and written, as a JSON value."""
        return {**self.counts.to_json(), "files": [one.to_json() for one in self.writers.written]}

    def land(self, record: Record) -> Refusal | None:
        """Take a record to its message's table; the answer and the reasons where it goes to none."""
        return self._land(record, *self._matcher.answer(record))

    def _takes_fast_path(self, record: Record) -> bool:
        """Queue a record that the fast path takes, and say whether it does.

        Its data is validated later, with that of others, when its columns are made.
        """
        data = record.data
        if data is None or record.reason is not None or record.message is not None:
            return False
        parts = self._matcher.fast.parts(data)
        if parts is None:
            return False
        shape = parts[0]
        try:
            queue = self._shapes[shape]
        except KeyError:
            queue = self._shapes[shape] = self._fast_queue(shape)
        if queue is None:
            return False
        self.writers.add(queue, (parts, record, None), len(data))
        return True

    def _row_takes_fast_path(self, row: KafkaRow) -> bool:
        """The same for a record of Kafka."""
        found = self._matcher.kafka.parts(row)
        if found is None:
            return False
        parts, carrier = found
        shape = parts[0]
        try:
            queue = self._shapes[shape]
        except KeyError:
            queue = self._shapes[shape] = self._fast_queue(shape, carrier)
        if queue is None:
            return False
        self.writers.add(queue, (parts, row, None), len(row.value or b""))
        return True

    def _fast_queue(self, shape: ColumnShape, carrier: EventCarrier = BARE) -> RowQueue | None:
        if shape.xid in self._job.refused:
            return None
        layout, queue = self._layout(shape.xid)
        return self.writers.queue(queue.table, EventColumns(layout, shape, carrier))

    def _take_general_path(self, given: Record | KafkaRow) -> None:
        if isinstance(given, KafkaRow):
            record = given.record()
            found = self._matcher.general_answer_of_row(given, record)
        else:
            record, found = given, self._matcher.general_answer(given)
        refusal = self._land(record, *found)
        if refusal is not None:
            self._write_dead_letter(record, *refusal)

    def _land(self, record: Record, answer: Answer, observed: Observed | None) -> Refusal | None:
        self.counts.outcomes[answer.outcome.value] += 1
        xid = answer.definition
        if xid is None or observed is None or not answer.matched:
            return answer, answer.problems
        reason = self._job.refused.get(xid)
        if reason is not None:
            return answer, (Problem("", TABLE_PROBLEM, reason),)
        try:
            layout, queue = self._layouts.get(xid) or self._layout(xid)
            payload = _payload(observed, record)
            if payload == b"":
                answer = self._answer_of_empty_payload(answer, observed, xid)
            cells = _cells(layout, observed, answer, payload)
        except CellError as error:
            return answer, (Problem(_place_of_misfit(layout, observed, answer), COLUMN_PROBLEM, str(error)),)
        self.counts.messages[xid] += 1
        self.counts.unchecked += bool(answer.unchecked)
        self.writers.add(queue, (cells, record, answer), record.size)
        return None

    def _answer_of_empty_payload(self, answer: Answer, observed: Observed, xid: str) -> Answer:
        """The answer with the value of an empty payload, where the schema has one: in Protobuf, all defaults."""
        schema = self._catalog.schema(xid)
        if answer.checked is not None or schema is None or isinstance(schema, Problem):
            return answer
        checked = schema.check(b"", observed.data_content_type() or "")
        return answer if checked.problems else answer._replace(checked=checked)

    def count_dead_letter(self, record: Record, answer: Answer, problems: tuple[Problem, ...]) -> None:
        """Count a record that does not land, and why."""
        self.counts.dead += 1
        event = answer.cloudevent
        place = {"origin": record.origin, "position": record.position, "id": None if event is None else event.id}
        meant = answer.definition or (answer.candidates[0].definition if answer.candidates else None)
        for problem in problems or (Problem("", answer.outcome.value, _WORDS.get(answer.outcome.value, "")),):
            self.counts.problem(answer.outcome.value, meant, problem, place)

    def _layout(self, xid: str) -> tuple[Layout, RowQueue]:
        layout = layout_of(self._catalog, xid)
        found = self._layouts[xid] = (layout, self.writers.queue(self._job.tables[xid], layout))
        return found

    def _refused(self, queue: RowQueue, row: Row, words: str) -> None:
        """Write a row that Arrow refused to the dead letters, unless the general path has a table for it."""
        cells, record, answer = row
        if queue is self._dead:
            raise CellError(f"a dead letter cannot be written: {words}")
        self.counts.messages[queue.columns.definition or ""] -= 1
        if answer is None:
            # The fast path took it. The general path gives it a row, or the reason why it has none.
            self.counts.outcomes[_MATCHED] -= 1
            self._take_general_path(record)
        else:
            layout, _ = self._layouts[queue.columns.definition or ""]
            self.counts.unchecked -= bool(answer.unchecked)
            problem = Problem(
                _place_of_refused_cell(layout, cells), COLUMN_PROBLEM, f"a column cannot hold a value: {words}"
            )
            self._write_dead_letter(record if isinstance(record, Record) else record.record(), answer, (problem,))

    def _write_dead_letter(self, record: Record, answer: Answer, problems: tuple[Problem, ...]) -> None:
        self.count_dead_letter(record, answer, problems)
        self.writers.add(self._dead, (_DEAD.row(answer, problems, record), record, answer), record.size)


_WORDS = {
    "unexpected": "no definition of the catalog describes the message",
    "ambiguous": "several definitions describe the message, and nothing decides between them",
    "nonconformant": "several definitions may be meant, and the message satisfies none of them",
}


def _payload(observed: Observed, record: Record) -> bytes | None:
    """The payload as it came: before a content encoding was undone."""
    if observed.message is None or not content_encodings(observed.message):
        found = observed.payload()
        return b"" if found is None and _has_no_bytes(observed) else found
    given = record.given
    return (given if isinstance(given, Message) else Message.from_json(given)).payload


def _has_no_bytes(observed: Observed) -> bool:
    """Whether there is a payload, and it has no bytes: that is another thing than none."""
    message = observed.message
    if observed.event is not None:
        data = observed.event.data
        return data is not None and not data.content
    return message is not None and message.payload == b"" and BINDINGS[message.protocol].tells_empty


def _attributes(observed: Observed, answer: Answer) -> Mapping[str, Any]:
    """The attributes that become cells: those of the event, or of the event that another message maps to."""
    event = observed.event if observed.event is not None else answer.cloudevent
    return {} if event is None else event.attributes


def _cells(layout: Layout, observed: Observed, answer: Answer, payload: bytes | None) -> tuple[Any, ...]:
    """The row of a message; a time that its column cannot hold is in `extensions` alone."""
    try:
        return layout.row(observed, answer, payload)
    except CellError:
        time = _attributes(observed, answer).get("time")
        if time is None or _is_moment(attribute_text(time)):
            raise
    if observed.event is not None:
        event = observed.event.with_attributes(time=None)
        observed = Observed(
            observed.message, event, observed.mode, observed.unreadable_payload, observed.unknown_encoding
        )
    elif answer.cloudevent is not None:
        answer = answer._replace(event=answer.cloudevent.with_attributes(time=None))
    cells = list(layout.row(observed, answer, payload))
    at = layout.schema.get_field_index("extensions")
    cells[at] = [*(cells[at] or ()), ("time", attribute_text(time))]
    return tuple(cells)


def _is_moment(text: str) -> bool:
    try:
        moment(text)
    except CellError:
        return False
    return True


def _place_of_misfit(layout: Layout, observed: Observed, answer: Answer) -> str:
    """The place of the attribute that its column cannot hold, else that of the payload."""
    attributes = _attributes(observed, answer)
    for one in layout.extensions:
        value = attributes.get(one.name)
        try:
            if value is not None:
                one.read(value)
        except CellError:
            return f"/envelopemetadata/{one.name}"
    return "/data"


def _place_of_refused_cell(layout: Layout, cells: tuple[Any, ...]) -> str:
    """The place of the first value that Arrow does not take."""
    names = {one.column: one.name for one in layout.extensions}
    for column, cell in zip(layout.schema, cells, strict=False):
        try:
            pa.array([cell], column.type)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            if column.name in _PLACES:
                return _PLACES[column.name]
            return f"/envelopemetadata/{names.get(column.name, column.name)}"
    return ""


# What a task counts: inputs, outcomes, messages, and problems with a few samples.
#
# Rule 1: the counts are bounded, whatever the messages are: beyond a thousand kinds of problems the rest is one line.
# Rule 2: a problem counts for a definition only where that definition was meant. What merely comes near an unexpected
# message, or is one of several, is in the sample as `near`.

_MOST_KINDS = 1000
_SAMPLES = 3
_LONGEST = 300
_REST = ("", "", "…", "")

# The outcomes of which no single definition is the one that was meant.
_UNDECIDED = frozenset({"unexpected", "ambiguous"})

_Kind = tuple[str, str, str, str]


@dataclass(slots=True)
class LandingCounts:
    """Counts that add up; `records` are the inputs before batches were taken apart.

    `unchecked` counts those of the landed whose payload no schema was applied to, though they have one.
    """

    input: int = 0
    records: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    problems: Counter[_Kind] = field(default_factory=Counter)
    samples: dict[_Kind, list[dict[str, Any]]] = field(default_factory=dict)
    dead: int = 0
    unchecked: int = 0

    @property
    def landed(self) -> int:
        """How many messages went to their tables."""
        return self.messages.total()

    def problem(self, outcome: str, definition: str | None, problem: Problem, place: Mapping[str, Any]) -> None:
        """Count one problem of a dead letter, and keep where it was seen first.

        A problem whose code is the outcome says that nothing was decided: the definition is then one that comes near.
        """
        near = definition if outcome in _UNDECIDED or problem.code == outcome else None
        kind = (outcome, "" if near else definition or "", problem.code, problem.path[:_LONGEST])
        if kind not in self.problems and len(self.problems) >= _MOST_KINDS:
            kind = _REST
        self.problems[kind] += 1
        seen = self.samples.setdefault(kind, [])
        if len(seen) < _SAMPLES:
            words = problem.message[:_LONGEST].encode("utf-8", "replace").decode()
            seen.append({**place, "message": words, **({"near": near} if near else {})})

    def to_json(self) -> dict[str, Any]:
        """The counts as a JSON value."""
        return {
            "input": self.input,
            "records": self.records,
            "landed": self.landed,
            "dead": self.dead,
            "unchecked": self.unchecked,
            "outcomes": dict(+self.outcomes),
            "messages": dict(+self.messages),
            "problems": [
                {
                    **dict(zip(("outcome", "definition", "code", "path"), kind, strict=True)),
                    "count": count,
                    "samples": self.samples.get(kind, []),
                }
                for kind, count in self.problems.most_common()
            ],
        }

    @classmethod
    def sum(cls, parts: Iterable[Mapping[str, Any]]) -> LandingCounts:
        """The sum of several counts, which are given as JSON values."""
        whole = cls()
        for part in parts:
            whole.input += part["input"]
            whole.records += part["records"]
            whole.dead += part["dead"]
            whole.unchecked += part.get("unchecked", 0)  # which older manifests do not have
            whole.outcomes.update(part["outcomes"])
            whole.messages.update(part["messages"])
            for one in part["problems"]:
                kind = (one["outcome"], one["definition"], one["code"], one["path"])
                if kind not in whole.problems and len(whole.problems) >= _MOST_KINDS:
                    kind = _REST
                whole.problems[kind] += one["count"]
                seen = whole.samples.setdefault(kind, [])
                seen.extend(one["samples"][: _SAMPLES - len(seen)])
        return whole


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off: the block makes millions of short-lived values and no reference cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def run(job: Job, records: Iterable[Record | KafkaRow]) -> bytes:
    """Run a task on the records, and return its report as one line of JSON."""
    with without_garbage_collection():
        return orjson.dumps(Task(job).run(records))


def report_row(report: bytes) -> pa.RecordBatch:
    """A task's report as the row that it returns to Spark."""
    return pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], ["report"])
