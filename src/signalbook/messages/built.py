"""`Plan` and `Built`: what a build goes by, and what it gives, as a value and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.cloudevents import CloudEvent, encode
from signalbook.errors import Problem
from signalbook.messages.answer import Answer
from signalbook.schemas import Schema
from signalbook.wire import Message

__all__ = ["Built", "Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build goes by: the materialised definition, its schema or why there is none, and what judges the result.

    `absolute` gives a reference its absolute form, where the catalog has an address; `schemaid` is the id that is known
    for Confluent's frame, `asked` the one that was asked for.
    """

    document: Mapping[str, Any]
    schema: Schema | Problem | None = None
    judge: Callable[[CloudEvent | Message], Answer] | None = None
    absolute: Callable[[str], str | None] = lambda reference: reference if "://" in reference else None
    schemaid: int | None = None
    asked: int | None = None

    @property
    def usable_schema(self) -> Schema | None:
        """The schema, where payloads can be judged by it."""
        return None if isinstance(self.schema, Problem) else self.schema

    @property
    def schema_address(self) -> str | None:
        """The absolute address of the schema that the definition names by its URI, or by its xid (seed 000, L451)."""
        named = (self.document.get(name) for name in ("dataschemauri", "dataschemaxid"))
        found = (self.absolute(reference) for reference in named if isinstance(reference, str) and reference)
        return next((address for address in found if address is not None), None)


@dataclass(frozen=True, slots=True)
class Built:
    """What a build gives: the event and the message where all is well, else what is missing and what is wrong.

    `unchecked` says, as in an answer, that there is a payload schema which could not be applied; `carrier` is the
    protocol of an example whose definition names none, and would be met over any other as well.
    """

    cloudevent: CloudEvent | None = None
    message: Message | None = None
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[str, ...] = ()
    carrier: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is something to send."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON value."""
        return self._written(json.loads)

    def to_bytes(self, **beside: Any) -> bytes:
        """The result as one line of JSON, with members of the caller's own before it; numbers stay as they are."""
        return orjson.dumps({**beside, **self._written(orjson.Fragment)})

    def _written(self, event_of: Callable[[bytes], Any]) -> dict[str, Any]:
        written: dict[str, Any] = {"ok": self.ok}
        if self.cloudevent is not None:
            written["cloudevent"] = event_of(encode(self.cloudevent))
        if self.message is not None:
            written["message"] = self.message.to_json()
        if self.unchecked:
            written["unchecked"] = list(self.unchecked)
        if self.carrier:
            written["carrier"] = self.carrier
        if self.missing:
            written["missing"] = list(self.missing)
        if self.problems:
            written["problems"] = [
                {"path": one.path, "code": one.code, "message": one.message} for one in self.problems
            ]
        return written
