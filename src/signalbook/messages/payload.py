"""Judging a payload by the schema of a definition, or by what its content type says.

Rule 1: no payload (zero bytes, a tombstone, an event without data) is judged by no schema; JSON null is a payload.
Rule 2: a schema that lies elsewhere or is not supported, and a content encoding that nobody knows, leave the payload
unchecked: the metadata decide, unless the definition has nothing else to decide by, or every schema is required. Where
neither a schema nor a frame nor JSON is asked for, there is nothing to check.
Rule 3: Confluent's frame is taken off as `schemas.framing` says; its id stays with the answer. A frame that is declared
has to be there, whatever becomes of the schema.
Rule 4: problems stand below `/data`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from signalbook.errors import Problem
from signalbook.jsontext import is_json_text
from signalbook.messages.constraint import is_json
from signalbook.messages.observe import Observed
from signalbook.messages.schema_library import SchemaLibrary, Source, UncheckedSchema
from signalbook.schemas import Checked, Schema
from signalbook.schemas.framing import FRAME, UNFRAMED, check, check_frame, is_framed

__all__ = ["JudgedPayload", "PayloadCheck"]


class JudgedPayload(NamedTuple):
    """What is wrong with a payload, and what its schema made of it (None: it was not applied).

    `unchecked` says that there is a schema, or a content encoding, that could not be applied.
    """

    problems: tuple[Problem, ...] = ()
    checked: Checked | None = None
    unchecked: bool = False


_FINE = JudgedPayload()
_UNCHECKED = JudgedPayload(unchecked=True)
_AVRO_JSON = "as JSON it would need the content type application/avro+json"


class PayloadCheck:
    """How the payloads of one definition are judged; its schema is read with the first one.

    `references` name its schema; `framing` is what the definition says about Confluent's frame; `is_all` says that
    there is nothing but the payload to know a message by.
    """

    __slots__ = ("_is_inferred", "_library", "_schema", "_source", "content_type", "framing", "is_all", "references")

    def __init__(
        self,
        source: Source | Problem | None,
        library: SchemaLibrary,
        content_type: str | None,
        *,
        references: tuple[str, ...] = (),
        framing: str | None = None,
        is_all: bool = False,
        is_inferred: bool = False,
    ) -> None:
        self._is_inferred = is_inferred
        self.content_type = content_type
        self.references = references
        self.framing = framing
        self.is_all = is_all
        self._library = library
        self._source = source if isinstance(source, Source) else None
        self._schema: Schema | Problem | None = source if isinstance(source, Problem) else None

    @property
    def schema(self) -> Schema | Problem | None:
        """The schema, or why there is none to be had; None where the definition names none."""
        if self._schema is None and self._source is not None:
            self._schema = self._library.schema(self._source)
        return self._schema

    @property
    def may_be_unchecked(self) -> bool:
        """Whether a payload need not be judged where its schema cannot be applied."""
        return not (self.is_all or self._library.policy.required)

    def is_named_by(self, dataschema: str) -> bool:
        """Whether an event's `dataschema` is the definition's schema, or a version of it."""
        return any(self._library.are_same(one, dataschema) for one in self.references)

    def knows(self, schemaid: int) -> bool:
        """Whether an id of Confluent's framing is known to be one of the definition's schema."""
        return self._library.knows(schemaid, self._source)

    def judge(self, observed: Observed) -> JudgedPayload:
        """What is wrong with the message's payload; a schema whose format is a guess never makes one fail."""
        found = self._judge(observed)
        if not (self._is_inferred and found.problems):
            return found
        return _UNCHECKED if observed.payload() is not None else _FINE

    def _judge(self, observed: Observed) -> JudgedPayload:
        schema = self.schema
        unavailable = schema if isinstance(schema, Problem) else None
        if unavailable is not None and not (isinstance(unavailable, UncheckedSchema) and self.may_be_unchecked):
            return JudgedPayload((unavailable,))
        payload = observed.payload()
        if payload is None:
            return _FINE
        content_type = observed.data_content_type() or self.content_type or ""
        framed = is_framed(self.framing, content_type)
        if schema is None and not framed and not is_json(content_type):
            return _FINE
        if observed.unknown_encoding is not None and (schema is None or self.may_be_unchecked):
            return _UNCHECKED
        unreadable = observed.unreadable_payload or observed.unknown_encoding
        if schema is None or isinstance(schema, Problem):
            if framed:
                return self._by_frame(unreadable, payload, content_type)
            return _UNCHECKED if schema is not None else self._by_content_type(observed, payload, content_type)
        if unreadable is not None:
            return JudgedPayload((Problem("/data", "payload", unreadable),))
        return self._by_schema(schema, payload, content_type)

    def _by_frame(self, unreadable: str | None, payload: bytes, content_type: str) -> JudgedPayload:
        """Without a schema that can be applied, what has to be framed has to begin with a frame."""
        if unreadable is not None:
            return JudgedPayload((Problem("/data", "payload", unreadable),))
        checked = check_frame(payload)
        if checked.problems:
            return JudgedPayload(tuple(map(_below_data, checked.problems)))
        if self.schema is None and is_json(content_type) and not is_json_text(payload[FRAME:]):
            return JudgedPayload((_not_json(content_type),), checked)
        return JudgedPayload((), checked, unchecked=self.schema is not None)

    def _by_schema(self, schema: Schema, payload: bytes, content_type: str) -> JudgedPayload:
        checked = check(schema, payload, content_type, self.framing, self.knows)
        if not checked.problems:
            return JudgedPayload((), checked)
        problems = [_below_data(one) for one in checked.problems]
        if schema.format.startswith("Avro/") and "avro+json" not in content_type and is_json_text(payload):
            problems = [replace(one, message=f"{one.message}; {_AVRO_JSON}") for one in problems]
        return JudgedPayload(tuple(problems), checked)

    def _by_content_type(self, observed: Observed, payload: bytes, content_type: str) -> JudgedPayload:
        """Without a schema, what is declared to be JSON has to be JSON; an undeclared frame may be around it."""
        if observed.is_json() or observed.unreadable_payload is not None or is_json_text(payload):
            return _FINE
        if self.framing != UNFRAMED and payload[:1] == b"\0" and is_json_text(payload[FRAME:]):
            return _FINE
        return JudgedPayload((_not_json(content_type),))


def _not_json(content_type: str) -> Problem:
    return Problem("/data", "payload", f'the payload is not the JSON that "{content_type}" says')


def _below_data(problem: Problem) -> Problem:
    code = problem.code if problem.code == "schema_unavailable" else "payload"
    return Problem(f"/data{problem.path}", code, problem.message)
