"""`Natives`: what is known beforehand of records of Kafka that are no events: all of a topic and a content type alike.

Rule 1: it is taken where the key of every definition looks at topics alone, one of them is found by the topic, and all
that it says about a record is that topic and a JSON Schema: then only the payload is left to be judged.
Rule 2: a definition that makes an event of a record, or captures something of it, is left to the patient road.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from signalbook.messages.answer import Answer, Outcome
from signalbook.messages.compiled import Compiled, Plan
from signalbook.messages.envelope import CLOUDEVENTS
from signalbook.messages.observed import Kind, Observed
from signalbook.messages.scope import Scope
from signalbook.schemas.framing import CONFLUENT

__all__ = ["KAFKA", "NativeShape", "Natives", "keys_look_at_topics", "says_topics"]

KAFKA = "KAFKA"
_OPTIONS, _TOPIC = "/protocoloptions/", "/protocoloptions/topic"
# Topics with their content types that are remembered; what is beyond takes the patient road.
_MOST = 1024


@dataclass(frozen=True, slots=True, eq=False)
class NativeShape:
    """The records of one definition: they have no attributes, and their value is their data."""

    xid: str
    accepts: Callable[[Any], bool]
    schema: Any
    attributes: tuple[tuple[str, str | int], ...] = ()
    names: tuple[tuple[str, int], ...] = ()
    has_data: bool = True


class Natives:
    """The definitions of one scope's native records that are known by topic and content type."""

    __slots__ = ("_bases", "_index", "_is_open", "_shapes")

    def __init__(self, scope: Scope) -> None:
        self._index = scope.index(Kind.NATIVE, KAFKA)
        self._is_open = keys_look_at_topics(scope, Kind.NATIVE)
        self._bases = {base for plan in self._index.keyless_derived for base in plan.derives_from}
        self._shapes: dict[tuple[str | None, bytes | None], NativeShape | None] = {}

    def shape(self, topic: str | None, content_type: bytes | None) -> NativeShape | None:
        """What a record that is no event is, if its payload holds; None where that is not certain."""
        return self._shapes.get((topic, content_type))

    def learn(self, topic: str | None, content_type: bytes | None, observed: Observed, answer: Answer) -> None:
        """Remember what a record was that is no event."""
        place = (topic, content_type)
        if answer.outcome is not Outcome.MATCHED or place in self._shapes or len(self._shapes) >= _MOST:
            return
        plans = [plan for same in self._index.find(observed) for plan in same.plans] if self._is_open else []
        # What came in a frame may have to: its value alone does not tell.
        is_known = len(plans) == 1 and answer.schemaid is None
        self._shapes[place] = self._shape(plans[0]) if is_known else None

    def _shape(self, plan: Plan) -> NativeShape | None:
        compiled = plan.compiled
        schema = compiled.payload.schema
        accepts = getattr(schema, "accepts", None)
        if compiled.envelope == CLOUDEVENTS or compiled.definition.identity in self._bases or not says_topics(compiled):
            return None
        if compiled.payload.framing == CONFLUENT:
            return None
        return None if accepts is None else NativeShape(compiled.definition.xid, accepts, schema)


def keys_look_at_topics(scope: Scope, kind: Kind) -> bool:
    """Whether no key of a scope's definitions looks at another of Kafka's own fields than the topic."""
    entries = [one for one in scope.entries if one.compiled.protocol == KAFKA and one.compiled.on_protocol]
    keys = (part.path for one in entries for part in one.compiled.plan(kind, KAFKA, one.limits).key)
    return all(path == _TOPIC for path in keys if path.startswith(_OPTIONS))


def says_topics(compiled: Compiled) -> bool:
    """Whether all that a definition says about Kafka's own fields is the same for all records of a topic."""
    stated = compiled.on_protocol if compiled.protocol == KAFKA else ()
    return all(one.path == _TOPIC and one.template is None for one in stated)
