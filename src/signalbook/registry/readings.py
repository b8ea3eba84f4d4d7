"""Schemas that are read and compared for one write, outside of its turn.

Rule 1: while one write has the turn all others wait. In its turn a write takes no more than `IN_TURN` steps for its
schemas. Where they need more, it goes on without their verdicts to learn which it needs, is undone, makes those checks
while others write, and takes the turn again.
Rule 2: a reading is used again only where the document is the same and each of its questions has the same answer as
before; a comparison, where it is of the same readings. So a verdict is never older than the turn that it counts in:
what changed in between is noticed by what it is, and is checked again.
Rule 3: where that goes on, the last of `TURNS` may take `AT_WORST` steps. A write that needs more has to be sent again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Protocol

from signalbook import schemas
from signalbook.budget import current, within
from signalbook.registry.store import Connection
from signalbook.schemas import Difference, Format, Schema, SchemaError
from signalbook.schemas.format import (
    SECOND,
    Located,
    References,
    StepBudget,
    TooMuch,
    reading_steps,
    unreachable,
    unusable,
)

__all__ = ["AT_WORST", "IN_TURN", "TURNS", "Postponed", "Readings", "SchemaReferences", "keep_read"]

# What the checks of one write may take while it has the turn: about five milliseconds.
IN_TURN = 500
TURNS = 4
AT_WORST = SECOND
# Schemas that refer to no other are kept once they are read: a line of versions is compared again with each write.
_KEPT, _LARGEST_KEPT = 256, 64 * 1024
# What one reading may take: twice what a document at its limit does, unless its parts multiply.
MOST_READING = 2 * SECOND
_MOST_NAMED = 10


class Postponed(Exception):  # noqa: N818, RUF100 - not an error: the write is tried again
    """A check that would take too long while others wait."""


class SchemaReferences(References, Protocol):
    """The registry, asked for what one schema refers to; `asked` are the names so far."""

    asked: set[str]

    def begin(self, attrs: dict[str, Any], /) -> None:
        """Begin with a version, whose attributes may say what it means by a name."""
        ...


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What a question was refused with."""

    words: str


_Answer = bytes | None | _Refusal


@dataclass(frozen=True, slots=True)
class _SchemaReading:
    """What a document came to, and the answers to what it asked."""

    result: Schema | SchemaError
    answers: dict[str, _Answer]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What schemas, which it keeps, came to against each other."""

    read: tuple[Schema, ...]
    found: tuple[Difference, ...]
    steps: int


class _Questions:
    """What a reading is given to ask: it notes the answers, and answers by its notes once the reading is over.

    A schema keeps this for as long as it lives, and must not keep the registry.
    """

    __slots__ = ("_ask", "answers")

    def __init__(self, ask: SchemaReferences | None) -> None:
        self._ask = ask
        self.answers: dict[str, _Answer] = {}

    def __call__(self, uri: str) -> bytes | None:
        if uri not in self.answers:
            self.answers[uri] = _answer(self._ask, uri)
        found = self.answers[uri]
        if isinstance(found, _Refusal):
            raise unreachable(found.words)
        return found

    def end(self) -> None:
        """Ask nobody any more."""
        self._ask = None


def _answer(ask: SchemaReferences | None, uri: str) -> _Answer:
    if ask is None:
        return None
    try:
        found = ask(uri)
    except SchemaError as error:
        return _Refusal(error.problems[0].message)
    assert found is None or isinstance(found, bytes)
    return found


class _Kept:
    """The schemas that were read last of those that refer to no other, by format and text."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[tuple[str, bytes], Schema] = OrderedDict()
        self._mutex = Lock()

    def get(self, row: Format, document: bytes) -> Schema | None:
        if len(document) > _LARGEST_KEPT:
            return None
        with self._mutex:
            found = self._schemas.get((row.name, document))
            if found is not None:
                self._schemas.move_to_end((row.name, document))
        return found

    def keep(self, row: Format, document: bytes, schema: Schema) -> None:
        with self._mutex:
            self._schemas[row.name, document] = schema
            if len(self._schemas) > _KEPT:
                self._schemas.popitem(last=False)


_kept = _Kept()


def keep_read(format: str, document: bytes, schema: Schema) -> None:
    """Keep a schema that refers to no other, which somebody has read who is about to write it."""
    row = schemas.find(format)
    if row is not None and len(document) <= _LARGEST_KEPT:
        _kept.keep(row, document, schema)


class Readings:
    """The checks of one write, over all its turns."""

    __slots__ = ("_compared", "_postponed", "_read", "_turn")

    def __init__(self, steps: int | None = None) -> None:
        """Begin a turn of so many steps; None: nobody waits."""
        self._read: dict[tuple[str, str, bytes], _SchemaReading] = {}
        self._compared: dict[tuple[str, bool, tuple[int, ...]], _Comparison] = {}
        self._postponed: list[Callable[[Connection], object]] = []
        self._turn = None if steps is None else StepBudget(steps)

    def begin(self, steps: int) -> None:
        """Begin a turn, in which checks may take so many steps."""
        self._postponed = []
        self._turn = StepBudget(steps)

    @property
    def is_postponed(self) -> bool:
        """Whether this turn was for nothing but to learn what has to be checked."""
        return bool(self._postponed)

    def postpone(self, check: Callable[[Connection], object]) -> None:
        """Make a check when the turn is over; it is given what to read the registry with."""
        self._postponed.append(check)

    def catch_up(self, db: Connection) -> None:
        """Make the checks that were postponed, in a transaction that holds nobody up."""
        self._turn = None
        for check in self._postponed:
            check(db)

    def read(
        self, row: Format, document: bytes, base: str, ask: Callable[[], SchemaReferences]
    ) -> tuple[Schema | SchemaError, frozenset[str]]:
        """Return what a document comes to and the names that it asked for.

        `Postponed` where that takes too long for this turn.
        """
        asking = None
        reading = self._read.get((row.name, base, document))
        if reading is not None and reading.answers:
            asking = ask()
            if any(_answer(asking, uri) != before for uri, before in reading.answers.items()):
                reading = asking = None
        if reading is None and (known := _kept.get(row, document)) is not None:
            return known, frozenset()
        if reading is None:
            self._spend(reading_steps(row.family, document))
            reading, asking = self._read_anew(row, document, base, ask)
            self._read[row.name, base, document] = reading
        return reading.result, frozenset(asking.asked if asking is not None else ())

    def _read_anew(
        self, row: Format, document: bytes, base: str, ask: Callable[[], SchemaReferences]
    ) -> tuple[_SchemaReading, SchemaReferences | None]:
        if len(document) <= _LARGEST_KEPT:
            reading = _reading(row, document, _Questions(None), "")
            if not reading.answers:
                if not isinstance(reading.result, SchemaError):
                    _kept.keep(row, document, reading.result)
                return reading, None
        asking = ask()
        return _reading(row, document, _Questions(asking), base), asking

    def compare(
        self, read: Sequence[Schema], rule: str, budget: StepBudget, *, trust_unknown: bool
    ) -> tuple[Difference, ...]:
        """Return some of what breaks a promise between the last schema and those before; nothing: it holds.

        `Postponed` where that takes too long for this turn, `TooMuch` where the budget is spent.
        """
        key = (rule, trust_unknown, tuple(map(id, read)))
        known = self._compared.get(key)
        if known is None:
            # Out of a turn the budget of the write is the only bound.
            left = max(0, budget.left if self._turn is None else self._turn.left)
            part = StepBudget(left, whole=budget)
            breaking = schemas.compatible(read, rule, trust_unknown=trust_unknown, budget=part)
            found = tuple(islice(breaking, _MOST_NAMED))
            self._spend(left - part.left)
            known = self._compared[key] = _Comparison(tuple(read), found, left - part.left)
        else:
            budget.spend(known.steps)
        return known.found

    def _spend(self, steps: int) -> None:
        if self._turn is not None:
            try:
                self._turn.spend(steps)
            except TooMuch:
                raise Postponed from None


def _reading(row: Format, document: bytes, questions: _Questions, base: str) -> _SchemaReading:
    """Read a document; where it has no base yet, as one that stands alone."""
    result: Schema | SchemaError
    budget = current().part(MOST_READING, "Reading this schema")
    try:
        with within(budget):
            result = row.read(document, Located(questions, base) if base else questions)
    except SchemaError as error:
        result = error
    except TooMuch as error:
        if error.budget is not budget:
            raise
        result = unusable(str(error))
    questions.end()
    return _SchemaReading(result, questions.answers)
