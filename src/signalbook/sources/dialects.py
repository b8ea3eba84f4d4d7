"""Catalog documents of any dialect as documents that a registry takes.

Rule 1: a document of today's specification goes in as it stands; any other is read into the canonical form.
Rule 2: a lone definition needs a group to go into; who loads it names one.
Rule 3: a definition of 0.1 with older versions becomes several documents, the oldest first, so that a registry that
takes them one after the other has their history.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from signalbook.document.dialects import Reading, detect, level_of, read
from signalbook.errors import Problem, UsageError
from signalbook.sources.documents import (
    STANDARD_INPUT,
    YAML_SUFFIXES,
    Document,
    UnreadableDocument,
    document_files,
    file_bytes,
    parse_value,
)
from signalbook.spec.dialects import Dialect
from signalbook.spec.dialects.dialect import CANONICAL

__all__ = ["Raw", "in_canonical", "read_each", "read_raw"]

_PLURALS = {level: plural for plural, (level, _) in CANONICAL.items()}


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


def read_each(location: str) -> Iterator[Raw | UnreadableDocument]:
    """The same, with what is wrong in place of a document that cannot be read."""
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


def in_canonical(
    raw: Raw, dialect: Dialect | None = None, *, group: str = ""
) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """The documents that a registry takes one after the other for what was read, and the notes of reading it."""
    chosen = dialect or detect(raw.value).dialect
    if not isinstance(raw.value, dict) and not (isinstance(raw.value, list) and chosen.form == "catalog"):
        raise UsageError(f"{raw.source} holds no JSON object; a catalog document is one")
    if isinstance(raw.value, dict) and chosen.spec is not None and level_of(raw.value) == "registry":
        return (Document(raw.source, raw.value),), ()
    reading = read(raw.value, chosen)
    content = _whole(reading, raw.source, group)
    return tuple(Document(raw.source, one) for one in _rounds(content)), reading.notes


def _whole(reading: Reading, source: str, group: str) -> dict[str, Any]:
    """A registry document with what was read in its place."""
    content = reading.content
    if reading.level == "registry":
        return content
    plural = _PLURALS.get(reading.level)
    if plural is not None:
        return {plural: {_id(content, reading.level, source): content}}
    if not group:
        raise UsageError(f"{source} holds one definition and no group; name its group with --group")
    selectors = {name: content[name] for name in ("envelope", "protocol") if name in content}
    messages = {_id(content, "message", source): content}
    return {"messagegroups": {group: {**selectors, "messages": messages}}}


def _id(content: dict[str, Any], level: str, source: str) -> str:
    found = content.get(f"{level}id")
    if not isinstance(found, str) or not found:
        raise UsageError(f"{source} holds a {level} without an id, so there is no place for it")
    return found


def _rounds(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document once for each version that a message of it has, the newest last."""
    groups = content.get("messagegroups") or {}
    most = max((len(_line(message)) for group in groups.values() for message in _messages(group)), default=1)
    for number in range(most):
        rest = content if number == most - 1 else {}
        turned = {key: _turn(group, number - most) for key, group in groups.items()}
        yield {**rest, **({"messagegroups": turned} if groups else {})}


def _messages(group: dict[str, Any]) -> list[dict[str, Any]]:
    return list((group.get("messages") or {}).values())


def _line(message: dict[str, Any]) -> list[dict[str, Any]]:
    versions = message.get("versions")
    return list(versions.values()) if isinstance(versions, dict) and len(versions) > 1 else [message]


def _turn(group: dict[str, Any], place: int) -> dict[str, Any]:
    """A group with that version of each message, counted from the newest; those that have none so old stay out."""
    messages = {
        key: {name: value for name, value in _line(message)[place].items() if name not in ("versionid", "versions")}
        for key, message in (group.get("messages") or {}).items()
        if -place <= len(_line(message))
    }
    return {**group, "messages": messages}
