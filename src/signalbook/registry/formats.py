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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from signalbook import schemas
from signalbook.errors import RegistryError
from signalbook.model.model import ResourceType
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.readings import Postponed, Readings, SchemaReferences
from signalbook.registry.store import Connection
from signalbook.schemas import Difference, Format, Schema, SchemaError
from signalbook.schemas.format import StepBudget, TooMuch

__all__ = ["VALIDATED", "DocumentValidator", "Verdict", "VersionDocument", "verdict_attributes"]

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
