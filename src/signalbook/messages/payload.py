"""Judging a payload by the schema of a definition, or by what its content type says.

Rule 1: no payload (zero bytes, a tombstone, an event without data) is judged by no schema; JSON null is a payload.
Rule 2: Confluent's frame is taken off where the format's own check does not do so; its id stays with the answer.
Rule 3: problems stand below `/data`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from signalbook.cloudevents.json_value import is_json_text
from signalbook.errors import Problem
from signalbook.messages.content_type import is_json
from signalbook.messages.observed import Observed
from signalbook.messages.schema_library import SchemaLibrary, Source
from signalbook.schemas import Checked, Schema
from signalbook.schemas.framing import FRAME, Framed, frame_id

__all__ = ["JudgedPayload", "PayloadCheck"]


class JudgedPayload(NamedTuple):
    """What is wrong with a payload, and what its schema made of it (None: it was not applied)."""

    problems: tuple[Problem, ...] = ()
    checked: Checked | None = None


_FINE = JudgedPayload()
_AVRO_JSON = "as JSON it would need the content type application/avro+json"


class PayloadCheck:
    """How the payloads of one definition are judged; its schema is read with the first one."""

    __slots__ = ("_library", "_schema", "content_type", "source")

    def __init__(self, source: Source | Problem | None, library: SchemaLibrary, content_type: str | None) -> None:
        self.source = source
        self.content_type = content_type
        self._library = library
        self._schema: Schema | Problem | None = source if isinstance(source, Problem) else None

    @property
    def schema(self) -> Schema | Problem | None:
        """The schema, or why there is none to be had; None where the definition names none."""
        if self._schema is None and isinstance(self.source, Source):
            self._schema = self._library.schema(self.source)
        return self._schema

    def judge(self, observed: Observed) -> JudgedPayload:
        """What is wrong with the message's payload."""
        schema = self.schema
        if isinstance(schema, Problem):
            return JudgedPayload((schema,))
        payload = observed.payload()
        if payload is None:
            return _FINE
        content_type = observed.data_content_type() or self.content_type or ""
        if schema is None:
            return self._by_content_type(observed, payload, content_type)
        if observed.unreadable_payload is not None:
            return JudgedPayload((Problem("/data", "payload", observed.unreadable_payload),))
        checked = check(schema, payload, content_type)
        if not checked.problems:
            return JudgedPayload((), checked)
        problems = [_below_data(one) for one in checked.problems]
        if schema.format.startswith("Avro/") and "avro+json" not in content_type and is_json_text(payload):
            problems = [replace(one, message=f"{one.message}; {_AVRO_JSON}") for one in problems]
        return JudgedPayload(tuple(problems), checked)

    def _by_content_type(self, observed: Observed, payload: bytes, content_type: str) -> JudgedPayload:
        """Without a schema, what is declared to be JSON has to be JSON."""
        if observed.is_json() or observed.unreadable_payload is not None or not is_json(content_type):
            return _FINE
        if is_json_text(payload) or (payload[:1] == b"\0" and is_json_text(payload[FRAME:])):
            return _FINE
        return JudgedPayload((Problem("/data", "payload", f"the payload is not the JSON that {content_type} says"),))


def check(schema: Schema, payload: bytes, content_type: str) -> Checked:
    """What the schema says; the frame of a JSON text, which never begins with a zero byte, is taken off before."""
    if payload[0] == 0 and schema.format.startswith("Json"):
        schemaid = frame_id(payload)
        if schemaid is not None:
            return Framed.of(schema.check(payload[FRAME:], content_type), schemaid)
    return schema.check(payload, content_type)


def _below_data(problem: Problem) -> Problem:
    code = problem.code if problem.code == "schema_unavailable" else "payload"
    return Problem(f"/data{problem.path}", code, problem.message)
