"""Confluent's framing of a payload: a zero byte, the schema's id in four bytes, and for Protobuf the message indexes.

Rule 1: whether a payload is framed is declared (`dataschemaframing`). Where it is not, the content type may say so, or
the id may be one that is known for the schema; else it is the one reading, framed or raw, that takes the whole payload.
Where both do, that is a problem and never a guess.
Rule 2: a frame's id is kept: `Framed` is a `Checked` that knows it, and `FrameOnly` one of a payload without a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from signalbook.errors import Problem
from signalbook.schemas.format import Checked, Schema

__all__ = [
    "CONFLUENT", "FRAME", "UNFRAMED", "FrameOnly", "Framed", "Records", "check", "check_frame", "frame", "frame_id",
    "is_framed", "message_indexes", "written_indexes",
]  # fmt: skip

FRAME = 5
# What `dataschemaframing` may say.
CONFLUENT: Final = "confluent"
UNFRAMED: Final = "none"
# A media type that names the framing, as application/vnd.confluent.avro does.
_NOT_FRAMED = "the payload does not begin with Confluent's frame, a zero byte and a schema id of four bytes"
_says_frame = re.compile(r"[^;]*[/.+-]confluent(?:[.+-]|\s*(?:;|$))", re.IGNORECASE).match


class Records(list[Any]):
    """The value of a payload that holds many: the records of an Avro object container file."""


class Framed(Checked):
    """What `Checked` says, and the id of the schema that the payload came with."""

    schemaid: int

    @classmethod
    def of(cls, checked: Checked, schemaid: int) -> Framed:
        """The same answer, with an id."""
        found = cls(checked.problems, checked.value)
        found.schemaid = schemaid
        return found


class FrameOnly(Framed):
    """The id of a frame whose payload no schema has judged."""


@lru_cache(256)
def is_framed(framing: str | None, contenttype: str) -> bool:
    """Whether payloads have to be framed: it is declared, or the content type says so where nothing is declared.

    >>> is_framed(None, "application/vnd.confluent.avro"), is_framed("none", "application/vnd.confluent.avro")
    (True, False)
    """
    return framing == CONFLUENT or (framing is None and _says_frame(contenttype) is not None)


def frame_id(payload: bytes) -> int | None:
    """The schema id of a framed payload; None where the payload cannot be a framed one."""
    if len(payload) < FRAME or payload[0] != 0:
        return None
    return int.from_bytes(payload[1:FRAME], "big")


def check(
    schema: Schema,
    payload: bytes,
    contenttype: str = "",
    framing: str | None = None,
    knows: Callable[[int], bool] = lambda schemaid: False,
) -> Checked:
    """What a schema says about a payload, with its frame off where it has one.

    `framing` is what was declared, `knows` tells whether an id is one of the schema's.
    """
    schemaid = frame_id(payload)
    if is_framed(framing, contenttype):
        return _check_framed(schema, payload, contenttype)
    if framing is not None or schemaid is None:
        return schema.check(payload, contenttype)
    framed = _check_framed(schema, payload, contenttype)
    if knows(schemaid):
        return framed
    raw = schema.check(payload, contenttype)
    if raw.problems:
        # Only Avro's binary encoding may begin with a zero byte: for the others what is wrong is behind the frame.
        return raw if framed.problems and schema.format.startswith("Avro/") else framed
    if framed.problems:
        return raw
    words = (
        f"the payload can be read both with Confluent's frame (schema id {schemaid}) and without one; declare which it "
        'is with "dataschemaframing": "confluent" or "none" on the message or its group'
    )
    return Checked((Problem("", "payload", words),), None)


def check_frame(payload: bytes) -> Checked:
    """What there is to say about a payload that has to be framed, without its schema."""
    schemaid = frame_id(payload)
    if schemaid is None:
        return Checked((Problem("", "payload", _NOT_FRAMED),), None)
    return FrameOnly.of(Checked((), None), schemaid)


def frame(schema: Schema | None, schemaid: int, payload: bytes) -> bytes:
    """The payload of a schema, or of none, with a frame around it."""
    indexes: Callable[[], bytes] | None = getattr(schema, "frame_indexes", None)
    return b"\0" + schemaid.to_bytes(4, "big") + (b"" if indexes is None else indexes()) + payload


def _check_framed(schema: Schema, payload: bytes, contenttype: str) -> Checked:
    schemaid = frame_id(payload)
    if schemaid is None:
        return Checked((Problem("", "payload", _NOT_FRAMED),), None)
    after_indexes: Callable[[bytes], int | Problem] | None = getattr(schema, "after_indexes", None)
    begins = FRAME if after_indexes is None else after_indexes(payload)
    if isinstance(begins, Problem):
        return Checked((begins,), None)
    return Framed.of(schema.check(payload[begins:], contenttype), schemaid)


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], int] | Problem:
    """The indexes that say which message of a Protobuf file follows, and where it begins.

    A count and that many indexes, as zigzag integers; a count of zero stands for the first message.
    """
    count, at = _zigzag(payload, FRAME)
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
