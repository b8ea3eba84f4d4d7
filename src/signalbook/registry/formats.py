"""Where format and compatibility checks enter the write path: FMT-1 to FMT-9.

Rule 1: a format is a row of `FORMATS`; without a row its versions are kept, and say that nobody checked them.
Rule 2: the four `*validated*` attributes are the server's: they are computed with every write of a version and never
count as a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from signalbook.document.model import ResourceType
from signalbook.errors import Problem, RegistryError

__all__ = ["FORMATS", "VALIDATED", "Format", "FormatChecker", "find_format", "judge_compatibility", "judge_format"]

VALIDATED = ("formatvalidated", "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason")


class FormatChecker(Protocol):
    """What a schema format knows how to do with documents."""

    def check(self, document: bytes) -> Iterable[Problem]:
        """Yield what is wrong with a document as one of this format."""
        ...

    def compare(self, older: bytes, newer: bytes, rule: str) -> Iterable[Problem]:
        """Yield what makes a newer document incompatible under `backward`, `forward` or `full`."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One row: a lower-case name that may hold a `*`, its checker, and the compatibility rules it can judge."""

    name: str
    checker: FormatChecker
    compatibilities: tuple[str, ...] = ()


FORMATS: list[Format] = []


def find_format(name: str) -> Format | None:
    """Return the row that a format's name belongs to, without regard to case."""
    lowered = name.lower()
    return next((row for row in FORMATS if fnmatchcase(lowered, row.name)), None)


def judge_format(
    kind: ResourceType, attrs: dict[str, Any], document: bytes | None, external: bool, subject: str
) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that say whether a version's document has the format it claims: FMT-3, FMT-5, FMT-6."""
    name = attrs.get("format")
    if not kind.validateformat or not name:
        return
    row = find_format(name)
    if external:
        if kind.strictvalidation:
            raise RegistryError("format_external", subject)
        yield "formatvalidated", False
        yield "formatvalidatedreason", "The document is stored outside of the registry"
    elif row is None:
        if kind.strictvalidation:
            raise RegistryError("format_unknown", subject, format=name)
        yield "formatvalidated", False
        yield "formatvalidatedreason", f"The format {name} is not one this registry can check"
    else:
        for problem in row.checker.check(document or b""):
            raise RegistryError("format_violation", subject, detail=problem.message, format=name)
        yield "formatvalidated", True


def judge_compatibility(
    kind: ResourceType, compatibility: str | None, lineage: Sequence[tuple[dict[str, Any], bytes]], subject: str
) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that say whether the newest of `lineage` (oldest first) keeps the promise: FMT-4, FMT-8."""
    attrs = lineage[-1][0]
    name = attrs.get("format")
    if not kind.validatecompatibility or not name or not compatibility:
        return
    row = find_format(name)
    if row is None or compatibility.lower() not in row.compatibilities or attrs.get("formatvalidated") is not True:
        if kind.strictvalidation:
            raise RegistryError("compatibility_unknown", subject, compat=compatibility, format=name)
        yield "compatibilityvalidated", False
        yield "compatibilityvalidatedreason", f"Compatibility {compatibility} cannot be checked for format {name}"
        return
    rule, _, transitive = compatibility.lower().partition("_")
    for claims, older in lineage[:-1] if transitive else lineage[-2:-1]:
        if not claims.get("format"):
            continue  # FMT-2: nothing is said of it, so nothing is compared with it
        for problem in row.checker.compare(older, lineage[-1][1], rule):
            raise RegistryError("compatibility_violation", subject, detail=problem.message, compat=compatibility)
    yield "compatibilityvalidated", True
