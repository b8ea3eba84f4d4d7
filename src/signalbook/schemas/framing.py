"""Confluent's framing of a payload: which schema it was written with.

Rule 1: a frame is a zero byte and the schema's id in four bytes before the payload. The newer form stands in a header
of Kafka's record: a byte 1 and the schema's guid; the payload is bare. For Protobuf the message indexes follow either.
Rule 2: whether a payload is framed is declared (`dataschemaframing`). Where it is not, a header or the content type may
say so, or the id may be one that is known for the schema; else it is the one reading, framed or raw, that takes the
whole payload. Where both do, that is a problem and never a guess.
Rule 3: a payload is read by the schema that wrote it, where the caller has that (`KnownWriters`), and resolved to the
one that it is judged by. A schema that cannot do so reads it by itself.
Rule 4: what a frame says is kept: `Framed` is a `Checked` that knows it, and `FrameOnly` one of a payload without a
schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from signalbook.errors import Problem
from signalbook.schemas.format import Checked, Schema

__all__ = [
    "CONFLUENT", "FRAME", "FRAMINGS", "HEADER", "UNFRAMED", "VALUE_HEADER", "FrameOnly", "Framed", "KnownWriters",
    "Mark", "Reader", "Records", "check", "check_frame", "frame", "frame_id", "framing_header", "header_mark",
    "is_framed", "message_indexes", "reader_of", "written_indexes",
]  # fmt: skip

FRAME = 5
# What `dataschemaframing` may say: before the payload (or in a header), in a header, nowhere.
CONFLUENT: Final = "confluent"
HEADER: Final = "confluent-header"
UNFRAMED: Final = "none"
FRAMINGS: Final = frozenset({CONFLUENT, HEADER})
# The header of Kafka's records that says which schema the value was written with.
VALUE_HEADER: Final = "__value_schema_id"
_GUID = 17
_NOT_FRAMED = "the payload does not begin with Confluent's frame, a zero byte and a schema id of four bytes"
_NO_HEADER = f"the record has no header {VALUE_HEADER}, in which Confluent's frame has to be"
_BAD_HEADER = f"the header {VALUE_HEADER} does not hold a byte 1 and the guid of a schema, or a byte 0 and an id"
# A media type that names the framing, as application/vnd.confluent.avro does.
_says_frame = re.compile(r"[^;]*[/.+-]confluent(?:[.+-]|\s*(?:;|$))", re.IGNORECASE).match


class Mark(NamedTuple):
    """What a frame says of the schema that a payload was written with, and where that ends in the frame."""

    schemaid: int | None
    guid: str | None
    ends: int

    def __str__(self) -> str:
        return f"the id {self.schemaid}" if self.guid is None else f"the guid {self.guid}"


# What reads a payload that another schema wrote, by the message indexes of its frame (none but for Protobuf), the bytes
# and the content type.
Reader = Callable[[tuple[int, ...], bytes, str], Checked]


class KnownWriters(Protocol):
    """What a caller knows of the schemas that payloads were written with."""

    def knows(self, schemaid: int) -> bool:
        """Whether an id is one of the schema's own."""
        ...

    def reader(self, mark: Mark) -> Reader | Problem | None:
        """What reads a payload with this mark; None where nothing is known of such schemas, or need be."""
        ...


class Records(list[Any]):
    """The value of a payload that holds many: the records of an Avro object container file."""


class Framed(Checked):
    """What `Checked` says, and the id or the guid of the schema that the payload came with."""

    schemaid: int | None
    guid: str | None

    @classmethod
    def of(cls, checked: Checked, mark: Mark) -> Framed:
        """The same answer, with what its frame says."""
        found = cls(checked.problems, checked.value)
        found.schemaid = mark.schemaid
        found.guid = mark.guid
        return found


class FrameOnly(Framed):
    """The id of a frame whose payload no schema has judged."""


@lru_cache(256)
def is_framed(framing: str | None, contenttype: str) -> bool:
    """Whether payloads have to be framed: it is declared, or the content type says so where nothing is declared.

    >>> is_framed(None, "application/vnd.confluent.avro"), is_framed("none", "application/vnd.confluent.avro")
    (True, False)
    """
    return framing in FRAMINGS or (framing is None and _says_frame(contenttype) is not None)


def frame_id(payload: bytes) -> int | None:
    """The schema id of a framed payload; None where the payload cannot be a framed one."""
    if len(payload) < FRAME or payload[0] != 0:
        return None
    return int.from_bytes(payload[1:FRAME], "big")


def header_mark(value: bytes) -> Mark | None:
    """What the header of a record says; None where it cannot be a frame.

    >>> header_mark(bytes([1]) + bytes(15) + bytes([7])).guid
    '00000000-0000-0000-0000-000000000007'
    """
    if value[:1] == b"\1" and len(value) >= _GUID:
        return Mark(None, str(UUID(bytes=bytes(value[1:_GUID]))), _GUID)
    schemaid = frame_id(value)
    return None if schemaid is None else Mark(schemaid, None, FRAME)


class _KnowsNothing:
    """Nothing is known of the schemas that payloads were written with."""

    def knows(self, schemaid: int) -> bool:
        return False

    def reader(self, mark: Mark) -> Reader | Problem | None:
        return None


_KNOWS_NOTHING = _KnowsNothing()


def check(
    schema: Schema,
    payload: bytes,
    contenttype: str = "",
    framing: str | None = None,
    writers: KnownWriters = _KNOWS_NOTHING,
    header: bytes | None = None,
) -> Checked:
    """What a schema says about a payload, with its frame off where it has one.

    `framing` is what was declared, `header` what the record's header for a frame holds.
    """
    must = is_framed(framing, contenttype)
    if header is not None and framing != UNFRAMED:
        mark = header_mark(header)
        if mark is not None:
            return _check_marked(schema, mark, header, payload, contenttype, writers, in_header=True)
        if must:
            return Checked((Problem("", "payload", _BAD_HEADER),), None)
    if framing == HEADER:
        return Checked((Problem("", "payload", _NO_HEADER),), None)
    schemaid = frame_id(payload)
    if must:
        return _check_framed(schema, payload, contenttype, writers)
    if framing is not None or schemaid is None:
        return schema.check(payload, contenttype)
    if writers.knows(schemaid):
        return _check_framed(schema, payload, contenttype, writers)
    framed = _check_framed(schema, payload, contenttype, _KNOWS_NOTHING)
    raw = schema.check(payload, contenttype)
    if raw.problems:
        if not framed.problems:
            # It is a frame, so its id is asked for.
            return _check_framed(schema, payload, contenttype, writers)
        # Only Avro's binary encoding may begin with a zero byte: for the others what is wrong is behind the frame.
        return raw if schema.format.startswith("Avro/") else framed
    if framed.problems:
        return raw
    words = (
        f"the payload can be read both with Confluent's frame (schema id {schemaid}) and without one; declare which it "
        'is with "dataschemaframing": "confluent" or "none" on the message or its group'
    )
    return Checked((Problem("", "payload", words),), None)


def check_frame(payload: bytes, framing: str | None = None, header: bytes | None = None) -> Checked:
    """What there is to say about a payload that has to be framed, without its schema."""
    if header is not None or framing == HEADER:
        mark = None if header is None else header_mark(header)
        wrong = _NO_HEADER if header is None else _BAD_HEADER
        return (
            Checked((Problem("", "payload", wrong),), None) if mark is None else FrameOnly.of(Checked((), None), mark)
        )
    schemaid = frame_id(payload)
    if schemaid is None:
        return Checked((Problem("", "payload", _NOT_FRAMED),), None)
    return FrameOnly.of(Checked((), None), Mark(schemaid, None, FRAME))


def frame(schema: Schema | None, schemaid: int, payload: bytes) -> bytes:
    """The payload of a schema, or of none, with a frame around it."""
    return b"\0" + schemaid.to_bytes(4, "big") + _indexes_of(schema) + payload


def framing_header(schema: Schema | None, guid: str) -> bytes:
    """What the header of a record holds whose payload a schema, or one that is not at hand, has written."""
    return b"\1" + UUID(guid).bytes + _indexes_of(schema)


def _indexes_of(schema: Schema | None) -> bytes:
    indexes: Callable[[], bytes] | None = getattr(schema, "frame_indexes", None)
    return b"" if indexes is None else indexes()


def reader_of(schema: Schema, writer: Schema) -> Reader | Problem | None:
    """What reads as one schema sees it what another wrote; None where the schema reads everything by itself."""
    family, other = (one.format.partition("/")[0].lower() for one in (schema, writer))
    if family != other:
        words = f"it was written with a schema of the format {writer.format}, and this one is of {schema.format}"
        return Problem("", "payload", words)
    make: Callable[[Schema], Reader | Problem] | None = getattr(schema, "written_by", None)
    return None if make is None else make(writer)


def _check_framed(schema: Schema, payload: bytes, contenttype: str, writers: KnownWriters) -> Checked:
    schemaid = frame_id(payload)
    if schemaid is None:
        return Checked((Problem("", "payload", _NOT_FRAMED),), None)
    return _check_marked(schema, Mark(schemaid, None, FRAME), payload, payload, contenttype, writers, in_header=False)


def _check_marked(
    schema: Schema,
    mark: Mark,
    frame: bytes,
    payload: bytes,
    contenttype: str,
    writers: KnownWriters,
    *,
    in_header: bool,
) -> Checked:
    """What a schema says about a payload whose frame, before it or in a header, has been found."""
    own_message: Callable[[tuple[int, ...]], Problem | None] | None = getattr(schema, "own_message", None)
    indexes: tuple[int, ...] = ()
    ends = mark.ends
    if own_message is not None:
        found = message_indexes(frame, ends)
        if isinstance(found, Problem):
            return Framed.of(Checked((found,), None), mark)
        indexes, ends = found
    if in_header and ends != len(frame):
        return Framed.of(Checked((Problem("", "payload", _BAD_HEADER),), None), mark)
    body = payload if in_header else payload[ends:]
    read = writers.reader(mark)
    if isinstance(read, Problem):
        return Framed.of(Checked((read,), None), mark)
    if read is not None:
        return Framed.of(read(indexes, body, contenttype), mark)
    wrong = None if own_message is None else own_message(indexes)
    if wrong is not None:
        return Framed.of(Checked((wrong,), None), mark)
    return Framed.of(schema.check(body, contenttype), mark)


def message_indexes(payload: bytes, begins: int = FRAME) -> tuple[tuple[int, ...], int] | Problem:
    """The indexes that say which message of a Protobuf file follows, and where they end.

    A count and that many indexes, as zigzag integers; a count of zero stands for the first message.
    """
    count, at = _zigzag(payload, begins)
    if count == 0:
        return (0,), at
    if count < 0:
        return Problem("", "payload", "the payload ends before the message indexes of Confluent's frame do")
    if count > 32:
        return Problem("", "payload", f"the frame announces {count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(payload, at)
        if index < 0:
            return Problem("", "payload", "a message index of Confluent's frame is not a whole number from 0")
        indexes.append(index)
    return tuple(indexes), at


def _zigzag(payload: bytes, at: int) -> tuple[int, int]:
    """The next integer and where it ends; -1 where there is none."""
    found = 0
    for shift in range(0, 35, 7):
        if at >= len(payload):
            break
        byte = payload[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    return -1, at


def written_indexes(indexes: tuple[int, ...]) -> bytes:
    """Message indexes as a frame has them."""
    if indexes == (0,):
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
