"""Where format and compatibility checks enter the write path: FMT-1 to FMT-9.

Rule 1: a format is a row of `signalbook.schemas`, as far as the registry's capabilities list it; the versions of any
other are kept, and say that nobody checked them.
Rule 2: the four `*validated*` attributes are the server's: they are computed with every write of a version and never
count as a change.
Rule 3: a schema is read in the state of the registry that the request leaves behind; it may refer to documents there,
and to nothing else. One that is wrong in itself is refused; one that cannot be used because of another is kept, and
says so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, Protocol

from signalbook import schemas
from signalbook.budget import current, within
from signalbook.errors import RegistryError
from signalbook.model.model import ResourceType
from signalbook.registry.capabilities import Capabilities
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

__all__ = [
    "AT_WORST", "IN_TURN", "TURNS", "VALIDATED", "DocumentValidator", "Postponed", "Readings", "SchemaReferences",
    "Verdict", "VersionDocument", "keep_read", "verdict_attributes",
]  # fmt: skip

# Schemas that are read and compared for one write, outside of its turn.
#
# Rule 1: while one write has the turn all others wait. In its turn a write takes no more than `IN_TURN` steps for its
# schemas. Where they need more, it goes on without their verdicts to learn which it needs, is undone, makes those
# checks while others write, and takes the turn again.
# Rule 2: a reading is used again only where the document is the same and each of its questions has the same answer as
# before; a comparison, where it is of the same readings. So a verdict is never older than the turn that it counts in:
# what changed in between is noticed by what it is, and is checked again.
# Rule 3: where that goes on, the last of `TURNS` may take `AT_WORST` steps. A write that needs more has to be
# sent again.

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


# Versions judged by their readings.

VALIDATED = ("formatvalidated", "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason")

UNKNOWN = "Unknown format"
EXTERNAL = "The document is stored outside of the registry"

_EACH_READ, _BYTES_A_STEP, _VERSIONS_A_STEP = 50, 250, 10
_LONGEST_DETAIL = 2000


@dataclass(slots=True)
class VersionDocument:
    """One version of a line: its xid, its attributes, and its document, which is loaded when it is asked for."""

    xid: str
    attrs: dict[str, Any]
    load: Callable[[], bytes | None]
    _document: bytes | None = None

    @property
    def document(self) -> bytes:
        """The bytes; empty where the version has none."""
        if self._document is None:
            self._document = self.load() or b""
        return self._document


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a look at a version: the error that a refusal would be, and why; both empty where all is well."""

    error: str = ""
    reason: str = ""


GOOD = Verdict()


@dataclass(frozen=True, slots=True)
class DocumentValidator:
    """What a registry says about the versions of one resource; `trust_unknown` lets pass what cannot be decided.

    `ask` gives what a schema of a format's family is read with, `base` is what relative references start from. A check
    that is postponed is made later, once `connect` has been told what to read the registry with.
    """

    kind: ResourceType
    capabilities: Capabilities
    ask: Callable[[str], SchemaReferences]
    base: str
    budget: StepBudget
    readings: Readings
    connect: Callable[[Connection], None]
    trust_unknown: bool = False
    judged: bool = False  # who writes has judged the documents; what is found is noted, and refused only by strictness
    uses: dict[str, frozenset[str]] = field(default_factory=dict)  # by xid, what a document that was read refers to

    def validate_format(self, version: VersionDocument, external: bool) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that say whether a document has the format it claims: FMT-3, FMT-5, FMT-6."""
        verdict = self.find_format_verdict(version, external)
        refused = (verdict.error in _VIOLATIONS and not self.judged) or self.kind.strictvalidation if verdict else False
        if verdict is not None and verdict.error and refused:
            error = "format_violation" if verdict.error == _BY_OTHERS else verdict.error
            detail = verdict.reason if error == "format_violation" else ""
            args = {} if external else {"format": version.attrs["format"]}
            raise RegistryError(error, version.xid, detail=detail, **args)
        yield from verdict_attributes("format", verdict)

    def validate_compatibility(
        self, compatibility: str | None, version: VersionDocument, before: Before, subject: str
    ) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that say whether a version keeps the promise to those before it: FMT-4, FMT-8."""
        verdict = self.find_compatibility_verdict(compatibility, version, before)
        if verdict is not None and verdict.error in _VIOLATIONS and not self.judged:
            raise RegistryError(verdict.error, subject, detail=verdict.reason, compat=compatibility)
        if verdict is not None and verdict.error and self.kind.strictvalidation:
            args = {"compat": compatibility, "format": version.attrs["format"]}
            raise RegistryError("compatibility_unknown", f"{subject}/meta", **args)
        yield from verdict_attributes("compatibility", verdict)

    def find_format_verdict(self, version: VersionDocument, external: bool) -> Verdict | None:
        """Return what is to say of a version's format; None where nothing is."""
        name = version.attrs.get("format")
        if not self.kind.validateformat or not name:
            return None
        row = self._find(name)
        if external:
            return Verdict("format_external", EXTERNAL)
        if row is None:
            return Verdict("format_unknown", UNKNOWN)
        if not version.document:  # FMT-7; no format of the table has an empty document
            words = f'Version "{version.xid}" is empty and therefore not a valid {name} file.'
            return Verdict("format_violation", words)
        try:
            self._read_schema(row, version)
        except Postponed:
            self._postpone(partial(self.find_format_verdict, version, external))
        except SchemaError as error:
            if _is_missing_library(error):
                return Verdict("format_unknown", str(error))
            # What is wrong with others is not a fault of this document, and may be mended without touching it.
            return Verdict(_BY_OTHERS if error.by_others else "format_violation", _shorten(str(error)))
        return GOOD

    def find_compatibility_verdict(
        self, compatibility: str | None, version: VersionDocument, before: Before
    ) -> Verdict | None:
        """Return what is to say of the promise that a version has to keep; None where nothing is."""
        attrs = version.attrs
        name = attrs.get("format")
        if not self.kind.validatecompatibility or not name or not compatibility:
            return None
        if attrs.get("formatvalidated") is not True:
            return Verdict(_UNKNOWN, attrs.get("formatvalidatedreason") or UNKNOWN)
        if not self._knows(name, compatibility):
            return Verdict(_UNKNOWN, f"Compatibility {compatibility} cannot be checked for format {name}")
        return self._compare(compatibility, version, before)

    def _postpone(self, check: Callable[[], object]) -> None:
        def later(db: Connection) -> None:
            self.connect(db)
            check()

        self.readings.postpone(later)

    def _find(self, name: str) -> Format | None:
        row = schemas.find(name)
        return row if row is not None and row.name.lower() in self.capabilities.formats else None

    def _knows(self, name: str, compatibility: str) -> bool:
        row = self._find(name)
        return row is not None and compatibility.lower() in self.capabilities.compatibilities.get(row.name.lower(), ())

    def _compare(self, compatibility: str, newest: VersionDocument, line: Before) -> Verdict:
        """Return what a comparison with those before a version says of it."""
        left = self.budget.left
        skipped: list[VersionDocument] = []
        try:
            self.budget.spend(0)  # where none is left, those before are not even looked for
            # FMT-2: nothing is said of a version without a format, so nothing is compared with it.
            before = line(compatibility.lower().endswith("_transitive"))
            self.budget.spend(len(before) // _VERSIONS_A_STEP)
            before = [one for one in before if one.attrs.get("format")]
            skipped = [one for one in before if one.attrs.get("formatvalidated") is not True]
            compared = [one for one in before if one.attrs.get("formatvalidated") is True]
            self.budget.spend(_EACH_READ * len(compared))
            for one in compared:
                self.budget.spend(len(one.document) // _BYTES_A_STEP)
            read = [self._read_schema(_row(one), one) for one in (*compared, newest)]
            found = self.readings.compare(read, compatibility.lower(), self.budget, trust_unknown=self.trust_unknown)
        except Postponed:
            self.budget.add(left - self.budget.left)
            self._postpone(partial(self._compare, compatibility, newest, line))
            return GOOD
        except TooMuch:
            if self.trust_unknown:
                return GOOD
            words = f'Version "{newest.xid}" comes after too many versions, or too large ones, to be compared with'
            return Verdict("compatibility_violation", words)
        except SchemaError as error:  # only what it refers to can have changed since it was found to have its format
            return Verdict(_UNKNOWN, _shorten(str(error)))
        if found:
            words = f'Version "{newest.xid}" is not {compatibility} compatible: {"; ".join(map(_sentence, found))}'
            return Verdict("compatibility_violation", _shorten(words))
        if skipped:
            return Verdict(_UNKNOWN, f'Version "{skipped[0].xid}", which it is compared with, was not validated')
        return GOOD

    def _read_schema(self, row: Format, version: VersionDocument) -> Schema:
        def ask() -> SchemaReferences:
            asking = self.ask(row.family)
            asking.begin(version.attrs)
            return asking

        found, asked = self.readings.read(row, version.document, self.base, ask)
        self.uses[version.xid] = asked
        if isinstance(found, SchemaError):
            raise found.with_traceback(None)
        return found


# Gives what comes before a version, oldest first: with True all of it, else only the one that it comes after.
Before = Callable[[bool], Sequence[VersionDocument]]

_VIOLATIONS = ("format_violation", "compatibility_violation")
_BY_OTHERS = "format_violation by others"
_UNKNOWN = "compatibility_unknown"


def verdict_attributes(aspect: str, verdict: Verdict | None) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that tell a verdict on `format` or `compatibility`."""
    if verdict is not None:
        yield f"{aspect}validated", not verdict.error
        if verdict.error:
            yield f"{aspect}validatedreason", verdict.reason


def _row(version: VersionDocument) -> Format:
    row = schemas.find(version.attrs["format"])
    assert row is not None
    return row


def _is_missing_library(error: SchemaError) -> bool:
    return isinstance(error.__cause__, ModuleNotFoundError)


def _sentence(found: Difference) -> str:
    return f"{found.path or '/'}: {found.message} [{found.kind}]"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else text[: _LONGEST_DETAIL - 1] + "…"
