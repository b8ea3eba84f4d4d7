"""Dead letters: the one table of messages that did not land, with all that is needed to judge them again.

Rule 1: `record` is the input as it came, byte for byte, up to 64 MiB; beyond that its place, length and hash are kept.
Rule 2: a letter says why: the outcome, the problems, the definition that was meant or those that come near.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from signalbook.cloudevents.bindings import BINDINGS, Mode, claims_event, mode_of
from signalbook.errors import Problem
from signalbook.messages.answer import Answer
from signalbook.pipeline.reading import Record
from signalbook.pipeline.tables import JUDGED
from signalbook.wire import Message, WireError

__all__ = ["COLUMN_PROBLEM", "SCHEMA", "TABLE_PROBLEM", "DeadLetters"]

# The codes of the reasons that are the pipeline's own; all others are those of matching.
COLUMN_PROBLEM = "column"
TABLE_PROBLEM = "table"

_PROBLEMS = pa.list_(pa.struct([("path", pa.string()), ("code", pa.string()), ("message", pa.string())]))
_CANDIDATES = pa.list_(pa.struct([("definition", pa.string()), ("problems", _PROBLEMS)]))
SCHEMA = pa.schema(
    [
        ("outcome", pa.string()),
        ("definition", pa.string()),
        ("problems", _PROBLEMS),
        ("candidates", _CANDIDATES),
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("record", pa.binary()),
        ("length", pa.int64()),
        ("sha256", pa.string()),
        ("judged", JUDGED),
    ]
)
_MOST_CANDIDATES = 20
_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The layout of the table of dead letters."""

    schema: pa.Schema = SCHEMA
    definition: str | None = None

    def row(self, answer: Answer, problems: tuple[Problem, ...], record: Record) -> tuple[Any, ...]:
        """The cells of a message that does not land."""
        event = answer.cloudevent
        named = _told(record) if event is None else (event.id, event.source, event.type)
        near = [
            {"definition": one.definition, "problems": _problems(one.problems)}
            for one in answer.candidates[:_MOST_CANDIDATES]
        ]
        kept = (record.kept(), record.size, record.sha256)
        return answer.outcome.value, answer.definition, _problems(problems), near, *named, *kept

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> tuple[list[pa.Array], Sequence[int]]:
        """The columns of all rows, without `judged`."""
        columns = zip(*(row[0] for row in rows), strict=True)
        types = [one.type for one in SCHEMA][:-1]
        return [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)], ()


def _told(record: Record) -> tuple[str | None, ...]:
    """The id, source and type of an event that is none, as far as they can be read."""
    try:
        found = _members(record)
    except (WireError, ValueError, RecursionError):
        found = {}
    values = (found.get(name) for name in ("id", "source", "type"))
    return tuple(_clean(value) if isinstance(value, str) else None for value in values)


def _members(record: Record) -> Mapping[str, Any]:
    """The members of a JSON event, bare or carried, or the attributes that a message carries beside its payload."""
    message = record.message
    if message is None:
        value = orjson.loads(record.data or b"")
        if not isinstance(value, dict) or "protocol" not in value:
            return value if isinstance(value, dict) else {}
        message = Message.from_json(record.data or b"")
    if not claims_event(message):
        return {}
    if mode_of(message) is not Mode.BINARY:
        value = orjson.loads(message.payload or b"")
        return value if isinstance(value, dict) else {}
    binding = BINDINGS[message.protocol]
    found = {}
    for name, value in binding.carried(message):
        plain = name.lower() if binding.any_case else name
        for prefix in binding.prefixes:
            if plain.startswith(prefix):
                with contextlib.suppress(ValueError):
                    found[plain.removeprefix(prefix)] = binding.read_value(value)
    return found


def _problems(problems: Iterable[Problem]) -> list[dict[str, str]]:
    return [
        {"path": _clean(one.path), "code": one.code, "message": _clean(one.message)}
        for one in list(problems)[:_MOST_PROBLEMS]
    ]


def _clean(text: str) -> str:
    """The text with what UTF-8 cannot write replaced: a problem may quote a lone surrogate."""
    return text.encode("utf-8", "replace").decode()
