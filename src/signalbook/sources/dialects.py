"""Catalog documents of any dialect as documents that a registry takes.

Rule: what becomes of a document is `document.dialects.whole`; here its source is named in whatever is wrong with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from signalbook.document.dialects import Detection, ForeignDocument, detect, whole
from signalbook.errors import Problem, UsageError
from signalbook.sources.documents import (
    STANDARD_INPUT,
    YAML_SUFFIXES,
    Document,
    UnreadableDocument,
    document_files,
    every_file,
    file_bytes,
    parse_value,
)
from signalbook.spec.dialects import DIALECTS, Dialect
from signalbook.spec.versions import DEFAULT

__all__ = ["Raw", "in_canonical", "read_each", "read_every", "read_raw", "recognise"]


@dataclass(frozen=True, slots=True)
class Raw:
    """One document in whatever dialect it is: where it was read from, and its value."""

    source: str
    value: Any


def read_raw(location: str, stdin: Callable[[], IO[bytes]] | None = None) -> Iterator[Raw]:
    """Each document at `location`: a file, a folder (read in order of names), or `-` for standard input."""
    if location == STANDARD_INPUT:
        stream = stdin() if stdin else sys.stdin.buffer
        yield Raw("standard input", parse_value(stream.read(), "standard input", yaml_allowed=True))
        return
    for file in document_files(Path(location)):
        yield _read_file(file)


def read_every(location: str) -> Iterator[tuple[Raw | UnreadableDocument, bool]]:
    """The same, with what a load of a folder passes over, for it is not named as a catalog; that is marked with False.

    In place of a document that is passed over and cannot be read is what is wrong.
    """
    path = Path(location)
    if location == STANDARD_INPUT or not path.is_dir():
        yield from ((raw, True) for raw in read_raw(location))
        return
    meant = frozenset(document_files(path))
    for file in every_file(path):
        try:
            yield _read_file(file), file in meant
        except UsageError as error:
            if file in meant:
                raise
            yield UnreadableDocument(str(file), str(error)), False


def read_each(location: str) -> Iterator[Raw | UnreadableDocument]:
    """Each document that a load reads, with what is wrong in place of one that cannot be read."""
    path = Path(location)
    if location == STANDARD_INPUT:
        sources: list[tuple[str, Callable[[], Raw]]] = [("standard input", lambda: next(read_raw(location)))]
    elif not path.exists():
        raise UsageError(f"there is no file or folder '{path}'")
    else:
        sources = [(str(file), partial(_read_file, file)) for file in document_files(path)]
    for source, read_one in sources:
        try:
            yield read_one()
        except UsageError as error:
            yield UnreadableDocument(source, str(error))


def _read_file(file: Path) -> Raw:
    return Raw(str(file), parse_value(file_bytes(file), str(file), yaml_allowed=file.suffix in YAML_SUFFIXES))


def recognise(raw: Raw, *, any_model: bool = False) -> Detection:
    """How a document was recognised; raises `UsageError` where it is none of a catalog, or not of one dialect.

    With `any_model` one that nothing tells of passes for one of today: it may be of a model of its own.
    """
    try:
        return detect(raw.value)
    except ForeignDocument as error:
        if any_model and not error.known:
            return Detection(DIALECTS[DEFAULT.name], "", "")
        raise ForeignDocument(f"{raw.source} {error}", known=error.known) from None
    except UsageError as error:
        raise UsageError(f"{raw.source}: {error}") from None


def in_canonical(
    raw: Raw, dialect: Dialect | None = None, *, group: str = ""
) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """The documents that a registry takes one after the other for what was read, and the notes of reading it."""
    chosen = dialect or recognise(raw).dialect
    try:
        documents, notes = whole(raw.value, chosen, group)
    except UsageError as error:
        raise UsageError(f"{raw.source} {error}") from None
    return tuple(Document(raw.source, one) for one in documents), notes
