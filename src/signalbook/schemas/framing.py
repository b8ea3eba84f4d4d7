"""Confluent's framing of a payload: a zero byte, the schema's id in four bytes, and for Protobuf the message indexes.

Rule: a frame is taken off where it is recognised, and its id is kept: `Framed` is a `Checked` that knows it.
"""

from __future__ import annotations

from typing import Any

from signalbook.errors import Problem
from signalbook.schemas.format import Checked

__all__ = ["FRAME", "Framed", "Records", "frame_id", "message_indexes"]

FRAME = 5


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


def frame_id(payload: bytes) -> int | None:
    """The schema id of a framed payload; None where the payload cannot be a framed one."""
    if len(payload) < FRAME or payload[0] != 0:
        return None
    return int.from_bytes(payload[1:FRAME], "big")


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], int] | Problem:
    """The indexes that say which message of a Protobuf file follows, and where it begins.

    A count and that many indexes, as zigzag integers; a count of zero stands for the first message.
    """
    count, at = _zigzag(payload, FRAME)
    if count == 0:
        return (0,), at
    if not 0 < count <= 32:
        return Problem("", "payload", f"the frame announces {count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(payload, at)
        if index < 0:
            return Problem("", "payload", "the frame holds a wrong message index")
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
