"""Files of messages as records: lines, and the elements of JSON batches, each with the place where it begins.

Rule 1: a record is exactly the bytes that are there. Lines end at a newline; white space alone is not a record.
Rule 2: what cannot be read is a record too, with the reason: a line beyond 64 MiB, a file that is gone, the line at
which a compressed file was cut or damaged, and the rest of that file as it is. So there are as many records as inputs.
Rule 3: a file that begins with `[` is batches: each element is one record. Only brackets, commas and strings are looked
at to find the elements; whether one is JSON is decided by its reader.
Rule 4: one UTF-8 byte order mark at the beginning is passed over.
Rule 5: a record that holds several events is taken apart before it is counted (`expand`). An event of a batch that a
protocol message carried becomes that message in structured mode with this one event, so it is matched by the same
metadata, and can be matched again from a dead letter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from signalbook.messages.observe import is_batch
from signalbook.pipeline.files import Folder
from signalbook.pipeline.read.decompress import CODECS, Codec, Damaged, decompressed
from signalbook.pipeline.read.records import LARGEST, Record
from signalbook.protocols import Message, WireError

__all__ = ["Elements", "Split", "codec_of", "expand", "read_split"]

# A whole string, a mark outside of strings, or the quote of a string whose end has not come.
_tokens = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},"]', re.DOTALL).finditer
_WHITE = b" \t\r\n"


class Elements:
    """The elements of JSON arrays with their positions, out of chunks of bytes.

    Arrays may follow one another. What is left when the bytes end, or follows an array and is not one, is the rest.
    """

    def __init__(self, largest: int, begin: int = 0) -> None:
        self._rest = b""
        self._scanned = 0
        self._depth = 0
        self._longest = 2 * largest
        self._fault: str | None = None
        self.position = begin

    def take(self, chunk: bytes) -> Iterator[tuple[bytes, int]]:
        """The elements that end in this chunk."""
        if self._is_faulty():
            return
        text = self._rest + chunk
        start, scanned = 0, len(text)
        for token in _tokens(text, self._scanned):
            mark, at = token[0], token.start()
            if mark == b'"':
                scanned = at
                break
            if len(mark) > 1:
                continue
            ends = self._step(mark, text[start:at])
            if self._is_faulty():
                break
            if ends is not None:
                element = text[start:at].strip(_WHITE)
                if ends and (element or mark == b","):
                    yield element, self.position + start
                start = token.end()
        self._rest, self._scanned = text[start:], scanned - start
        self.position += start
        if len(self._rest) > self._longest and not self._is_faulty():
            self._fault = f"an element is longer than {self._longest:,} bytes"

    def _is_faulty(self) -> bool:
        return self._fault is not None

    def finish(self) -> tuple[bytes, int, str] | None:
        """The bytes that belong to no element, where they begin and why; None where all were read."""
        rest = self._rest.strip(_WHITE)
        if self._fault is None and self._depth == 0 and not rest:
            return None
        return rest, self.position, self._fault or "the batch ends too early"

    def _step(self, mark: bytes, before: bytes) -> bool | None:
        """What a mark ends: an element (true), the text before an array (false), or nothing (None)."""
        if mark in b"[{":
            self._depth += 1
            if self._depth > 1:
                return None
            if mark != b"[" or before.strip(_WHITE):
                self._fault = "something outside of the batches is not a batch"
            return False
        if mark == b",":
            if self._depth == 0:
                self._fault = "something outside of the batches is not a batch"
            return True if self._depth == 1 else None
        self._depth -= 1
        if self._depth < 0 or (self._depth == 0 and mark != b"]"):
            self._fault = "the brackets of the batch do not fit"
        return True if self._depth == 0 else None


_CHUNK = 1 << 20
# The bytes that the longest symbol of a compressed file has: RFC 1951, 3.2.5 to 3.2.7, 48 bits.
_SYMBOL = 6
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file: the lines that begin at `start` or later and before `end` (None: up to the end)."""

    path: str
    start: int = 0
    end: int | None = None


def codec_of(path: str) -> Codec | None:
    """How a file of that name is compressed; None where it is not."""
    return next((codec for ending, codec in CODECS.items() if path.lower().endswith(ending)), None)


def read_split(split: Split, largest: int = LARGEST) -> Iterator[Record]:
    """The records of a part of a file."""
    place, _, name = split.path.rpartition("/")
    try:
        file = Folder(place or "/").open(name)
    except FileNotFoundError:
        yield Record(None, split.path, 0, "the file is gone")
        return
    with file:
        codec = codec_of(split.path)
        chunks: Iterator[bytes] = _chunks(file, split)
        if codec is not None:
            chunks = decompressed(chunks, codec)
        yield from _records(chunks, split, largest)


def _chunks(file: Any, split: Split) -> Iterator[bytes]:
    """The bytes from one before the start on: that byte shows whether a line begins at the start."""
    file.seek(max(split.start - 1, 0))
    while chunk := bytes(file.read(_CHUNK)):
        yield chunk


def _records(chunks: Iterator[bytes], split: Split, largest: int) -> Iterator[Record]:
    first = b""
    try:
        while not _begins(first, split):
            first += next(chunks)
    except StopIteration:
        pass
    except Damaged as error:
        # Too short to be anything but white space, or the beginning of a mark.
        yield _rest_of_file(error, split, len(first), largest)
        return
    begin = len(_MARK) if split.start == 0 and first.startswith(_MARK) else 0
    first = first[begin:]
    if split.start == 0 and split.end is None and first.lstrip(_WHITE)[:1] == b"[":
        yield from _elements(first, chunks, split, largest, begin)
    else:
        yield from _lines(first, chunks, split, largest, begin)


def _begins(first: bytes, split: Split) -> bool:
    """Whether what was read of a file shows what it begins with."""
    return bool(first.removeprefix(_MARK).strip(_WHITE)) and (split.start > 0 or len(first) >= len(_MARK))


def _rest_of_file(error: Damaged, split: Split, position: int, largest: int) -> Record:
    """What was not read of a damaged file, as it is; by length and hash alone where it is too long."""
    kept: list[bytes] | None = []
    length, digest = 0, hashlib.sha256()
    for part in error.rest:
        length += len(part)
        digest.update(part)
        if length > largest:
            kept = None
        elif kept is not None:
            kept.append(part)
    data = None if kept is None else b"".join(kept)
    return Record(data or None, split.path, position, str(error), length, digest.hexdigest() if length else None)


def _with_rest(last: list[Record], rest: Record) -> list[Record]:
    """The last records of a damaged file with its rest; a few bytes, which are no more than a symbol, go into words."""
    cut = next((record for record in last if record.reason is not None), None)
    if cut is None or rest.length > _SYMBOL:
        return [*last, rest]
    if rest.data:
        cut.reason = f"{cut.reason}; the rest of it is the bytes {rest.data.hex(' ')}"
    return last


def _lines(first: bytes, chunks: Iterator[bytes], split: Split, largest: int, begin: int) -> Iterator[Record]:
    lines = _Lines(split, largest, begin)
    yield from lines.take(first)
    try:
        for chunk in chunks:
            if lines.past_end:
                return
            yield from lines.take(chunk)
    except Damaged as error:
        last = list(lines.finish(str(error)))
        yield from _with_rest(last, _rest_of_file(error, split, lines.position, largest))
        return
    if not lines.past_end:
        yield from lines.finish()


def _is_whole(data: bytes) -> bool:
    """Whether the last line before damage is whole all the same: an object that was cut is not JSON."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return data.lstrip(_WHITE)[:1] == b"{"


class _Lines:
    """Lines out of chunks; a line that grows beyond the largest is hashed and dropped."""

    def __init__(self, split: Split, largest: int, begin: int) -> None:
        self._split = split
        self._largest = largest
        self._end = float("inf") if split.end is None else split.end
        self._parts: list[bytes] = []
        self._length = 0
        self._hash: Any = None
        self._position = max(split.start - 1, begin)
        # What is before the first newline belongs to the part before, except at the beginning of the file.
        self._skipping = split.start > 0
        self.past_end = False

    def take(self, chunk: bytes) -> Iterator[Record]:
        first, *whole = chunk.split(b"\n")
        self._keep(first)
        if not whole:
            return
        yield from self._line()
        rest = whole.pop()
        path, position, end = self._split.path, self._position, self._end
        for line in whole:
            if position >= end:
                break
            if line.strip(_WHITE):
                yield Record(line, path, position)
            position += len(line) + 1
        self._position = position
        self.past_end = position >= end
        self._keep(rest)

    @property
    def position(self) -> int:
        """Where what was taken ends."""
        return self._position + self._length

    def finish(self, damage: str | None = None) -> Iterator[Record]:
        """What stood after the last newline; where damage cut it, it says so."""
        if self._skipping:
            return
        data = b"".join(self._parts)
        if damage is None or (self._hash is None and _is_whole(data)):
            if self._length:
                yield from self._line()
        elif self._hash is not None:
            yield Record(None, self._split.path, self._position, damage, self._length, self._hash.hexdigest())
        elif data.strip(_WHITE):
            yield Record(data, self._split.path, self._position, damage, self._length)

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._hash is not None:
            self._hash.update(part)
        elif self._length > self._largest:
            self._hash = hashlib.sha256(b"".join(self._parts))
            self._hash.update(part)
            self._parts = []
        elif part:
            self._parts.append(part)

    def _line(self) -> Iterator[Record]:
        """The line of the parts that were kept."""
        position, length = self._position, self._length
        data = b"".join(self._parts)
        kept, self._parts, self._length, self._hash = self._hash, [], 0, None
        self._position = position + length + 1
        if self._skipping:
            self._skipping = False
        elif kept is not None:
            words = f"the line is longer than {self._largest:,} bytes"
            yield Record(None, self._split.path, position, words, length, kept.hexdigest())
        elif data.strip(_WHITE):
            yield Record(data, self._split.path, position)
        self.past_end = self._position >= self._end


def _elements(first: bytes, chunks: Iterator[bytes], split: Split, largest: int, begin: int) -> Iterator[Record]:
    elements = Elements(largest, begin)
    damaged = None
    try:
        for data, position in elements.take(first):
            yield _element(data, position, split, largest)
        for chunk in chunks:
            for data, position in elements.take(chunk):
                yield _element(data, position, split, largest)
    except Damaged as error:
        damaged = error
    left = elements.finish()
    end, last = elements.position, list[Record]()
    if left is not None:
        data, position, words = left
        end = position + len(data)
        if data or damaged is None:
            kept = data if 0 < len(data) <= largest else None
            last = [Record(kept, split.path, position, words if damaged is None else str(damaged), len(data))]
    yield from last if damaged is None else _with_rest(last, _rest_of_file(damaged, split, end, largest))


def _element(data: bytes, position: int, split: Split, largest: int) -> Record:
    if len(data) <= largest:
        return Record(data, split.path, position)
    words = f"the element is longer than {largest:,} bytes"
    return Record(None, split.path, position, words, len(data), hashlib.sha256(data).hexdigest())


# Batches of events within one record.


_BATCH_MARK = b"cloudevents-batch"
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


def expand(records: Iterable[Record]) -> Iterator[Record]:
    """The records, with an event of a batch in the place of the batch."""
    for record in records:
        data = record.data
        if record.message is not None:
            yield from _of_message(record, record.message)
        elif data is None or record.reason is not None:
            yield record
        elif data[:1] == b"[" or data.lstrip(_WHITE)[:1] == b"[":
            yield from _of_array(record, data)
        elif _BATCH_MARK in data:
            yield from _of_paper(record, data)
        else:
            yield record


def _of_array(record: Record, data: bytes) -> Iterator[Record]:
    elements = Elements(LARGEST)
    for element, position in elements.take(data):
        yield replace(record, data=element, position=record.position + position)
    left = elements.finish()
    if left is not None:
        rest, position, words = left
        yield Record(rest or data, record.origin, record.position + position, words, len(rest))


def _of_paper(record: Record, data: bytes) -> Iterator[Record]:
    try:
        message = Message.from_json(data)
    except WireError:
        yield record
        return
    yield from _of_message(record, message)


def _of_message(record: Record, message: Message) -> Iterator[Record]:
    try:
        events = _split(message.payload or b"") if is_batch(message) else []
    except (msgspec.DecodeError, RecursionError):
        events = []
    if not events:
        yield record
        return
    fields = _structured(message.fields)
    for event in events:
        yield replace(record, data=Message(message.protocol, fields, bytes(event)).to_bytes(), message=None)


def _structured(value: Any) -> Any:
    """The fields with the content type of a single event wherever that of a batch stood."""
    if isinstance(value, Mapping):
        return {name: _structured(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_structured(member) for member in value)
    if isinstance(value, bytes):
        return value.replace(_BATCH_MARK, b"cloudevents") if _BATCH_MARK in value else value
    return value.replace(_BATCH_MARK.decode(), "cloudevents") if isinstance(value, str) else value
