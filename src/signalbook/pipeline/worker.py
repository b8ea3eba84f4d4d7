"""What one task does: judge its records and write them, each to its message's table or to the dead letters.

Rule 1: this is the engine of `catalog.match`, record by record; nothing is matched in another way here.
Rule 2: every record becomes exactly one row somewhere. `input` counts what was read, before anything is judged.
Rule 3: a task reports what it wrote; only what a successful attempt reported is ever committed.
"""

from __future__ import annotations

import contextlib
import gc
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

from signalbook.errors import Problem
from signalbook.messages.answer import Answer, Outcome
from signalbook.messages.catalog import Catalog
from signalbook.messages.fast import SwiftRoad
from signalbook.messages.match import answer as answer_by
from signalbook.messages.observe import Observed, content_encodings, observe
from signalbook.pipeline.catalog import Book
from signalbook.pipeline.columns.events import BARE, Carriage, Shape, SwiftColumns
from signalbook.pipeline.columns.kafka import KafkaRoad, road_of
from signalbook.pipeline.files import Folder
from signalbook.pipeline.manifest import Tally
from signalbook.pipeline.read.records import KafkaRow, Record, expand
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
from signalbook.pipeline.writers import Bounds, Queue, Row, Writers
from signalbook.protocols import BINDINGS, Message

__all__ = ["Job", "Judge", "Refusal", "Task", "run", "without_collector"]


_DEAD = DeadLetters()
_MATCHED = Outcome.MATCHED.value
# Where in a message that stands which is in a column of no attribute.
_PLACES = {"data": "/data", "payload": "/data", "transport": "/protocoloptions", "context": "", "extensions": ""}
# Why a record goes to no table: the answer about it, and the problems that decided.
Refusal = tuple[Answer, tuple[Problem, ...]]


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a batch are told: the catalog, the lake, and the tables that are not where names alone say."""

    book: Book
    lake: Folder
    stamp: Stamp
    tables: dict[str, str] = field(repr=False)
    refused: dict[str, str] = field(default_factory=dict, repr=False)
    within: tuple[str, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)


class Judge:
    """Records to answers, by the catalog of a job."""

    def __init__(self, catalog: Catalog, within: Iterable[str] = ()) -> None:
        self._scope = catalog.scope(within)
        self._absolute = catalog.absolute
        self.swift: SwiftRoad = self._scope.swift
        self._kafka: KafkaRoad | None = None

    @property
    def kafka(self) -> KafkaRoad:
        """The swift road of events that Kafka carries."""
        if self._kafka is None:
            self._kafka = road_of(self._scope)
        return self._kafka

    def answer(self, record: Record) -> tuple[Answer, Observed | None]:
        """The answer about a record, and the message as it was observed, where it could be."""
        if record.reason is not None:
            return _malformed(record.reason), None
        given = record.given
        swift = self.swift.answer(given) if isinstance(given, bytes) else None
        return self.patient_answer(record) if swift is None else (swift, Observed(None, swift.cloudevent))

    def patient_answer(self, record: Record) -> tuple[Answer, Observed | None]:
        """The same about a record that the swift road did not take."""
        if record.reason is not None:
            return _malformed(record.reason), None
        given = record.given
        found = list(observe(given))
        if len(found) != 1:
            return _malformed(f"a batch of {len(found)} events in the place of one"), None
        observed = found[0]
        answer = answer_by(self._scope, observed, self._absolute)
        if isinstance(given, bytes):
            self.swift.learn(given, [answer])
        return answer, observed if isinstance(observed, Observed) else None

    def patient_answer_of_row(self, row: KafkaRow, record: Record) -> tuple[Answer, Observed | None]:
        """The same about a record of Kafka."""
        answer, observed = self.patient_answer(record)
        if observed is not None:
            self.kafka.learn(row, observed, answer)
        return answer, observed


def _malformed(words: str) -> Answer:
    return Answer(Outcome.MALFORMED, problems=(Problem("", "malformed", words),))


class Task:
    """One attempt at a part of a batch."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._catalog = job.book.catalog()
        self._judge = Judge(self._catalog, job.within)
        self._layouts: dict[str, tuple[Layout, Queue]] = {}
        self._shapes: dict[Shape, Queue | None] = {}
        self.tally = Tally()
        self.writers = Writers(job.lake, job.stamp, uuid.uuid4().hex[:12], self._refused, job.bounds)
        self._dead = self.writers.queue(DEAD_LETTERS, _DEAD)

    def run(self, records: Iterable[Record | KafkaRow]) -> dict[str, Any]:
        """Judge and write all records; what was written and counted, as a JSON value."""
        swiftly = 0
        with self.writing():
            for record in records:
                if isinstance(record, KafkaRow):
                    # Kafka carries no batches: a row is one input.
                    swiftly += 1
                    if not self._row_lands_swiftly(record):
                        self._land_or_bury(record)
                    continue
                # What the swift road takes is one event: nothing to be taken apart.
                if self._lands_swiftly(record):
                    swiftly += 1
                    continue
                self.tally.records += 1
                for one in expand((record,)):
                    self.tally.input += 1
                    if one is record or not self._lands_swiftly(one):
                        self._land_or_bury(one)
        self.tally.records += swiftly
        self.tally.input += swiftly
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
                self.tally.outcomes[_MATCHED] += queue.seen
                self.tally.messages[shape.xid] += queue.seen

    def report(self) -> dict[str, Any]:
        """What was counted and written, as a JSON value."""
        return {**self.tally.to_json(), "files": [one.to_json() for one in self.writers.written]}

    def land(self, record: Record) -> Refusal | None:
        """Take a record to its message's table; the answer and the reasons where it goes to none."""
        return self._land(record, *self._judge.answer(record))

    def _lands_swiftly(self, record: Record) -> bool:
        """Whether the record is an event that the swift road takes, if its data holds when its columns are made."""
        data = record.data
        if data is None or record.reason is not None or record.message is not None:
            return False
        parts = self._judge.swift.parts(data)
        if parts is None:
            return False
        shape = parts[0]
        try:
            queue = self._shapes[shape]
        except KeyError:
            queue = self._shapes[shape] = self._swift_queue(shape)
        if queue is None:
            return False
        self.writers.add(queue, (parts, record, None), len(data))
        return True

    def _row_lands_swiftly(self, row: KafkaRow) -> bool:
        """The same of a record of Kafka."""
        found = self._judge.kafka.parts(row)
        if found is None:
            return False
        parts, carriage = found
        shape = parts[0]
        try:
            queue = self._shapes[shape]
        except KeyError:
            queue = self._shapes[shape] = self._swift_queue(shape, carriage)
        if queue is None:
            return False
        self.writers.add(queue, (parts, row, None), len(row.value or b""))
        return True

    def _swift_queue(self, shape: Shape, carriage: Carriage = BARE) -> Queue | None:
        if shape.xid in self._job.refused:
            return None
        layout, queue = self._layout(shape.xid)
        return self.writers.queue(queue.table, SwiftColumns(layout, shape, carriage))

    def _land_or_bury(self, given: Record | KafkaRow) -> None:
        if isinstance(given, KafkaRow):
            record = given.record()
            found = self._judge.patient_answer_of_row(given, record)
        else:
            record, found = given, self._judge.patient_answer(given)
        refusal = self._land(record, *found)
        if refusal is not None:
            self._bury(record, *refusal)

    def _land(self, record: Record, answer: Answer, observed: Observed | None) -> Refusal | None:
        self.tally.outcomes[answer.outcome.value] += 1
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
                answer = self._of_no_bytes(answer, observed, xid)
            cells = _cells(layout, observed, answer, payload)
        except CellError as error:
            return answer, (Problem(_misfit(layout, observed, answer), COLUMN_PROBLEM, str(error)),)
        self.tally.messages[xid] += 1
        self.tally.unchecked += bool(answer.unchecked)
        self.writers.add(queue, (cells, record, answer), record.size)
        return None

    def _of_no_bytes(self, answer: Answer, observed: Observed, xid: str) -> Answer:
        """The answer with the value of a payload of no bytes, where the schema has one: in Protobuf, all defaults."""
        schema = self._catalog.schema(xid)
        if answer.checked is not None or schema is None or isinstance(schema, Problem):
            return answer
        checked = schema.check(b"", observed.data_content_type() or "")
        return answer if checked.problems else answer._replace(checked=checked)

    def lament(self, record: Record, answer: Answer, problems: tuple[Problem, ...]) -> None:
        """Count a record that does not land, and why."""
        self.tally.dead += 1
        event = answer.cloudevent
        place = {"origin": record.origin, "position": record.position, "id": None if event is None else event.id}
        meant = answer.definition or (answer.candidates[0].definition if answer.candidates else None)
        for problem in problems or (Problem("", answer.outcome.value, _WORDS.get(answer.outcome.value, "")),):
            self.tally.problem(answer.outcome.value, meant, problem, place)

    def _layout(self, xid: str) -> tuple[Layout, Queue]:
        layout = layout_of(self._catalog, xid)
        found = self._layouts[xid] = (layout, self.writers.queue(self._job.tables[xid], layout))
        return found

    def _refused(self, queue: Queue, row: Row, words: str) -> None:
        """A row that Arrow did not take: its message is a dead letter after all."""
        cells, record, answer = row
        if queue is self._dead:
            raise CellError(f"a dead letter cannot be written: {words}")
        self.tally.messages[queue.columns.definition or ""] -= 1
        if answer is None:
            # The swift road took it: judged patiently it gets its row, or the reason why it has none.
            self.tally.outcomes[_MATCHED] -= 1
            self._land_or_bury(record)
        else:
            layout, _ = self._layouts[queue.columns.definition or ""]
            self.tally.unchecked -= bool(answer.unchecked)
            problem = Problem(_refused_cell(layout, cells), COLUMN_PROBLEM, f"a column cannot hold a value: {words}")
            self._bury(record if isinstance(record, Record) else record.record(), answer, (problem,))

    def _bury(self, record: Record, answer: Answer, problems: tuple[Problem, ...]) -> None:
        self.lament(record, answer, problems)
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
    """The attributes that become cells: of the event, or of the one that a native message maps to."""
    event = observed.event if observed.event is not None else answer.cloudevent
    return {} if event is None else event.attributes


def _cells(layout: Layout, observed: Observed, answer: Answer, payload: bytes | None) -> tuple[Any, ...]:
    """The row of a message; a time that its column cannot hold stands among the extensions alone."""
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


def _misfit(layout: Layout, observed: Observed, answer: Answer) -> str:
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


def _refused_cell(layout: Layout, cells: tuple[Any, ...]) -> str:
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


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Millions of short-lived values are made in the block, and none of them in a circle."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def run(job: Job, records: Iterable[Record | KafkaRow]) -> bytes:
    """Do the task and report it as one line of JSON."""
    with without_collector():
        return orjson.dumps(Task(job).run(records))
