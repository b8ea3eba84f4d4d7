"""Where messages come from: `events:PATH`, `messages:PATH`, `spool:PATH`, `parquet:PATH`, `kafka:BOOTSTRAP/TOPICS`.

Rule 1: the scheme says how the input is laid out; what each record is, the record says itself.
Rule 2: a source is its place without links on the way to it, so that two ways to one folder are one source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbook.errors import UsageError
from signalbook.pipeline.files import FileEntry, Folder, PipelineError, real_place
from signalbook.pipeline.read.lines import Split, codec_of

__all__ = [
    "FILES",
    "SCHEMES",
    "InputFile",
    "InputSource",
    "list_files",
    "list_with_hidden",
    "parse_source",
    "share_out",
    "stat_of",
]

SCHEMES: Mapping[str, str] = {
    "events": "CloudEvents in JSON, one a line or in batch files; .gz and .zst too",
    "messages": "messages in their JSON form, one a line; .gz and .zst too",
    "spool": "what signalbook spool wrote",
    "parquet": "Parquet files with a column value, or with the columns of Kafka",
    "kafka": "topics of a Kafka broker: kafka:HOST:PORT/TOPIC,TOPIC",
}
# Those whose files we read ourselves, line by line.
FILES = frozenset({"events", "messages", "spool"})
# The size of a task's part: so small that a few processors have something to do, so large that files are. A task writes
# a file for each table, and each costs a few milliseconds whatever is in it.
_SMALLEST_PART, _LARGEST_PART, _PARTS = 16 << 20, 128 << 20, 8
_WHITE = b" \t\r\n"
_MARK = b"\xef\xbb\xbf"  # of UTF-8; it says nothing


@dataclass(frozen=True, slots=True)
class InputSource:
    """One source: its scheme and its place."""

    scheme: str
    place: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.place}"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of a source: its full path, size and time."""

    path: str
    size: int
    changed: int

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON value."""
        return {"path": self.path, "size": self.size, "changed": self.changed}


def parse_source(text: str) -> InputSource:
    """The source that a text names; raises `UsageError`.

    >>> parse_source("kafka:localhost:9092/orders")
    InputSource(scheme='kafka', place='localhost:9092/orders')
    """
    scheme, mark, place = text.partition(":")
    if not mark or scheme not in SCHEMES or not place:
        known = "; ".join(f"{name}:… ({words})" for name, words in SCHEMES.items())
        raise UsageError(f"'{text}' does not name a source; it must begin with one of {known}")
    if scheme == "kafka":
        if "/" not in place:
            raise UsageError(f"'{text}' does not name a topic; write kafka:HOST:PORT/TOPIC")
        return InputSource(scheme, place)
    return InputSource(scheme, real_place(Folder.at(place).uri))


def list_files(source: InputSource) -> list[InputFile]:
    """The files of a source now; hidden ones, and those being written, are none."""
    return list_with_hidden(source)[0]


def list_with_hidden(source: InputSource) -> tuple[list[InputFile], int]:
    """The files of a source now, and how many others are hidden there or being written."""
    folder = Folder(source.place)
    file = stat_of(source.place)
    if file is not None:
        return [InputFile(source.place, file.size, file.changed)], 0
    if not folder.is_folder():
        raise PipelineError(f"'{source.place}' is neither a file nor a folder")
    entries = list(folder.files(recursive=True))
    found = [InputFile(folder.place(one.path), one.size, one.changed) for one in entries if _is_input(one)]
    return found, len(entries) - len(found)


def stat_of(place: str) -> FileEntry | None:
    """The file at a full path as it is now, or None."""
    above, _, name = place.rpartition("/")
    return Folder(above or "/").stat(name)


def share_out(files: Sequence[InputFile], part: int | None = None) -> list[list[Split]]:
    """The files in parts of about equal size, one for each task; a large file of lines is cut."""
    part = part or min(max(sum(file.size for file in files) // _PARTS, _SMALLEST_PART), _LARGEST_PART)
    tasks: list[list[Split]] = []
    current: list[Split] = []
    filled = 0
    for file in files:
        for split in _cut(file, part):
            size = (split.end if split.end is not None else file.size) - split.start
            if current and filled + size > part + part // 8:
                tasks.append(current)
                current, filled = [], 0
            current.append(split)
            filled += size
    return [*tasks, current] if current else tasks


def _cut(file: InputFile, part: int) -> list[Split]:
    if file.size <= part or codec_of(file.path) is not None or _is_batch(file.path):
        return [Split(file.path)]
    starts = range(0, file.size, part)
    return [Split(file.path, start, None if start + part >= file.size else start + part) for start in starts]


def _is_batch(path: str) -> bool:
    """Whether a file's first byte says that it is a JSON batch, which is read from its beginning."""
    above, _, name = path.rpartition("/")
    try:
        with Folder(above or "/").open(name) as file:
            return bytes(file.read(4096)).removeprefix(_MARK).lstrip(_WHITE)[:1] in (b"[", b"")
    except FileNotFoundError:
        return True


def _is_input(entry: FileEntry) -> bool:
    return not any(part.startswith((".", "_")) for part in entry.path.split("/"))
