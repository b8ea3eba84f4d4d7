"""Where format and compatibility checks enter the write path: FMT-1 to FMT-9.

Rule 1: a format is a row of `signalbook.schemas`, as far as the registry's capabilities list it; the versions of any
other are kept, and say that nobody checked them.
Rule 2: the four `*validated*` attributes are the server's: they are computed with every write of a version and never
count as a change.
Rule 3: a schema is read in the state of the registry that the request leaves behind; it may refer to documents there,
and to nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from signalbook import schemas
from signalbook.document.model import ResourceType
from signalbook.errors import RegistryError
from signalbook.registry.capabilities import Capabilities
from signalbook.schemas import Difference, Format, References, Schema, SchemaError

__all__ = ["VALIDATED", "Judge", "Member"]

VALIDATED = ("formatvalidated", "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason")

UNKNOWN = "Unknown format"
EXTERNAL = "The document is stored outside of the registry"

# Schemas that refer to no other are kept once they are read: a line of versions is compared again with each write.
_KEPT, _LARGEST_KEPT = 256, 64 * 1024
_MOST_NAMED = 10
_LONGEST_DETAIL = 2000


@dataclass(frozen=True, slots=True)
class Member:
    """One version of a line: its xid, its attributes, and its document, empty where it has none."""

    xid: str
    attrs: dict[str, Any]
    document: bytes


@dataclass(frozen=True, slots=True)
class Judge:
    """What a registry says about versions of one type; `trust_unknown` lets pass what cannot be decided."""

    kind: ResourceType
    capabilities: Capabilities
    references: References
    trust_unknown: bool = False

    def judge_format(self, version: Member, external: bool) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that say whether a document has the format it claims: FMT-3, FMT-5, FMT-6."""
        name = version.attrs.get("format")
        if not self.kind.validateformat or not name:
            return
        row = self._find(name)
        if external:
            error, reason = "format_external", EXTERNAL
        elif row is None:
            error, reason = "format_unknown", UNKNOWN
        else:
            error, reason = "format_unknown", self._read_or_refuse(row, name, version)
        if reason and self.kind.strictvalidation:
            raise RegistryError(error, version.xid, **({} if external else {"format": name}))
        yield "formatvalidated", not reason
        if reason:
            yield "formatvalidatedreason", reason

    def judge_compatibility(
        self, compatibility: str | None, line: Sequence[Member], subject: str
    ) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that say whether the last of a line (oldest first) keeps the promise: FMT-4, FMT-8."""
        attrs = line[-1].attrs
        name = attrs.get("format")
        if not self.kind.validatecompatibility or not name or not compatibility:
            return
        if attrs.get("formatvalidated") is not True:
            reason = attrs.get("formatvalidatedreason") or UNKNOWN
        elif not self._knows(name, compatibility):
            reason = f"Compatibility {compatibility} cannot be checked for format {name}"
        else:
            reason = self._compare_or_refuse(compatibility, line, subject)
        if reason and self.kind.strictvalidation:
            raise RegistryError("compatibility_unknown", f"{subject}/meta", compat=compatibility, format=name)
        yield "compatibilityvalidated", not reason
        if reason:
            yield "compatibilityvalidatedreason", reason

    def _find(self, name: str) -> Format | None:
        row = schemas.find(name)
        return row if row is not None and row.name.lower() in self.capabilities.formats else None

    def _knows(self, name: str, compatibility: str) -> bool:
        row = self._find(name)
        return row is not None and compatibility.lower() in self.capabilities.compatibilities.get(row.name.lower(), ())

    def _read_or_refuse(self, row: Format, name: str, version: Member) -> str:
        """Return why a document could not be looked at, or nothing where it has its format."""
        if not version.document:  # FMT-7; no format of the table has an empty document
            detail = f'Version "{version.xid}" is empty and therefore not a valid {name} file.'
            raise RegistryError("format_violation", version.xid, detail=detail, format=name)
        try:
            _read(row, version.document, self.references)
        except SchemaError as error:
            if _is_missing_library(error):
                return str(error)
            raise RegistryError("format_violation", version.xid, detail=_shorten(str(error)), format=name) from error
        return ""

    def _compare_or_refuse(self, compatibility: str, line: Sequence[Member], subject: str) -> str:
        """Return why a line could not be compared, or nothing where its last version keeps the promise."""
        transitive = compatibility.lower().endswith("_transitive")
        # FMT-2: nothing is said of a version without a format, so nothing is compared with it.
        before = [one for one in (line[:-1] if transitive else line[-2:-1]) if one.attrs.get("format")]
        newest = line[-1]
        skipped = [one for one in before if one.attrs.get("formatvalidated") is not True]
        compared = [one for one in before if one.attrs.get("formatvalidated") is True]
        try:
            read = [self._read(one) for one in (*compared, newest)]
            found = list(
                islice(schemas.compatible(read, compatibility.lower(), trust_unknown=self.trust_unknown), _MOST_NAMED)
            )
        except SchemaError as error:
            if _is_missing_library(error):
                return str(error)
            # Only what it refers to can have changed since it was found to have its format.
            detail = _shorten(str(error))
            raise RegistryError("compatibility_violation", subject, detail=detail, compat=compatibility) from error
        if found:
            detail = f'Version "{newest.xid}" is not {compatibility} compatible: {"; ".join(map(_sentence, found))}'
            raise RegistryError("compatibility_violation", subject, detail=_shorten(detail), compat=compatibility)
        return f'Version "{skipped[0].xid}", which it is compared with, was not validated' if skipped else ""

    def _read(self, version: Member) -> Schema:
        row = schemas.find(version.attrs["format"])
        assert row is not None
        return _read(row, version.document, self.references)


def _read(row: Format, document: bytes, references: References) -> Schema:
    if len(document) <= _LARGEST_KEPT:
        try:
            return _read_alone(row, document)
        except _RefersToOthersError:
            pass
    return row.read(document, references)


class _RefersToOthersError(Exception):
    """A schema that depends on more than its own text."""


@lru_cache(maxsize=_KEPT)
def _read_alone(row: Format, document: bytes) -> Schema:
    asked: list[str] = []
    try:
        schema = row.read(document, asked.append)  # which answers None to all
    except SchemaError:
        if asked:
            raise _RefersToOthersError from None
        raise
    if asked:
        raise _RefersToOthersError
    return schema


def _is_missing_library(error: SchemaError) -> bool:
    return isinstance(error.__cause__, ModuleNotFoundError)


def _sentence(found: Difference) -> str:
    return f"{found.path or '/'}: {found.message} [{found.kind}]"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else text[: _LONGEST_DETAIL - 1] + "…"
