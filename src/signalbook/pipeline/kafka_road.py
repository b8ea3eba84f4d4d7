"""`KafkaRoad`: the swift road for records of Kafka: events, structured or in binary mode, and what is no event.

Rule 1: there is one `SwiftRoad` for each content type of records, and for each topic where definitions look at topics:
so what a definition says about a record beside its event says the same of all that a road takes.
Rule 2: it is taken where that is certain. Definitions that look at keys, partitions or headers, records with a content
encoding, and all that a plain event would not have are left to the patient road.
Rule 3: an event in binary mode is the head of a JSON event that has the same attributes in the same order; the value of
no header has a quote, so the head is read as those attributes and as no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from signalbook.cloudevents.bindings import BINDINGS, Mode
from signalbook.cloudevents.json_value import is_json_text
from signalbook.messages.answer import Answer, Outcome
from signalbook.messages.observed import Kind, Observed
from signalbook.messages.scope import Scope
from signalbook.messages.swift import SwiftRoad
from signalbook.pipeline.kafka_natives import KAFKA, Natives, keys_look_at_topics, says_topics
from signalbook.pipeline.kafka_rows import KafkaRow
from signalbook.pipeline.swift_columns import BINARY, STRUCTURED, Carriage, Parts

__all__ = ["KafkaRoad", "road_of"]

_PREFIX, _CONTENT_TYPE, _ENCODING = "ce_", "content-type", "content-encoding"
# Headers of which one makes a record without content type an event.
_MARKS = frozenset(_PREFIX + name for name in BINDINGS[KAFKA].marks)
_DATA, _NO_DATA = b',"data":', b"}"
_is_name = re.compile(r"[a-z0-9]+").fullmatch
# Content types and topics, and sets of headers, that are remembered; what is beyond takes the patient road.
_MOST_ROADS, _MOST_SETS = 32, 1024
# Events of one definition on one road that are looked at to learn from.
_MOST_LESSONS = 8


class _Headers(NamedTuple):
    """What the names of a record's headers say.

    Where its content type stands, whether it claims to be an event, and how a head is made of which values.
    """

    content_type: int | None
    is_marked: bool
    head: bytes = b""
    values: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None
    quotes: int = 0

    @classmethod
    def of(cls, names: tuple[str, ...]) -> _Headers | None:
        """What they say; None where the patient road has to look at the values too."""
        if names.count(_CONTENT_TYPE) > 1 or any(name.lower() == _ENCODING for name in names):
            return None
        at = names.index(_CONTENT_TYPE) if _CONTENT_TYPE in names else None
        is_marked = not _MARKS.isdisjoint(names)
        carried = [(name.removeprefix(_PREFIX), place) for place, name in enumerate(names) if name.startswith(_PREFIX)]
        if at is not None:
            carried.append(("datacontenttype", at))
        attributes = [name for name, _ in carried]
        if len(carried) < 2 or len(set(attributes)) < len(attributes) or not all(map(_is_name, attributes)):
            return cls(at, is_marked)
        head = b"{" + b",".join(b'"%b":"%%b"' % name.encode() for name in attributes)
        return cls(at, is_marked, head, itemgetter(*(place for _, place in carried)), head.count(b'"'))

    def head_of(self, values: Sequence[bytes | None]) -> bytes | None:
        """The attributes of an event in binary mode as the beginning of a JSON event; None where in doubt."""
        if self.values is None:
            return None
        try:
            head = self.head % self.values(values)
        except TypeError:  # a header without a value
            return None
        return head if head.count(b'"') == self.quotes else None


class _Road(NamedTuple):
    """The road of one content type."""

    swift: SwiftRoad
    is_binary: bool
    lessons: dict[str, int]


class KafkaRoad:
    """What is known of one scope's records of Kafka: the shapes of events, and what is no event."""

    __slots__ = ("_by_topic", "_headers", "_index", "_is_open", "_natives", "_roads")

    def __init__(self, scope: Scope) -> None:
        self._index = scope.index(Kind.EVENT, KAFKA)
        self._is_open = keys_look_at_topics(scope, Kind.EVENT)
        self._by_topic = any(one.compiled.on_protocol for one in scope.entries if one.compiled.protocol == KAFKA)
        self._natives = Natives(scope)
        self._roads: dict[tuple[str | None, bytes | None], _Road] = {}
        self._headers: dict[tuple[str, ...], _Headers | None] = {}

    def parts(self, row: KafkaRow) -> tuple[Parts, Carriage] | None:
        """The parts of a record that matches if its data holds, and how it was carried; None where in doubt."""
        headers = self._headers.get(row.names)
        if headers is None:
            return None
        at = headers.content_type
        content_type = None if at is None else row.values[at]
        value = row.value
        road = self._roads.get((row.topic if self._by_topic else None, content_type))
        if road is not None and not road.is_binary:
            parts: Parts | None = None if value is None else road.swift.parts(value)
            return None if parts is None else (parts, STRUCTURED)
        if value == b"" or not (value is None or value.isascii() or _is_text(value)):
            return None
        if not headers.is_marked:
            shape = None if value is None else self._natives.shape(row.topic, content_type)
            return None if shape is None else ((shape, (), 0), BINARY)
        head = None if road is None else headers.head_of(row.values)
        if road is None or head is None:
            return None
        parts = road.swift.parts(head + (_NO_DATA if value is None else b',"data":0}'))
        # Without a schema, it is for the content type to say that the data is JSON.
        if parts is None or (value is not None and parts[0].schema is None and not is_json_text(value)):
            return None
        return parts, BINARY

    def learn(self, row: KafkaRow, observed: Observed, answer: Answer) -> None:
        """Remember of a record that was matched what can be told of others like it."""
        if answer.outcome is not Outcome.MATCHED:
            return
        headers = self._of_names(row.names)
        if headers is None:
            return
        content_type = None if headers.content_type is None else row.values[headers.content_type]
        if headers.content_type is not None and content_type is None:
            return
        if observed.event is None:
            self._natives.learn(row.topic, content_type, observed, answer)
            return
        road = self._road(row.topic, content_type, observed.mode is Mode.BINARY)
        xid = answer.definition or ""
        if road is None or road.lessons.get(xid, 0) >= _MOST_LESSONS:
            return
        road.lessons[xid] = road.lessons.get(xid, 0) + 1
        plans = [plan for same in self._index.find(observed) for plan in same.plans]
        document = _document(headers, row) if road.is_binary else row.value
        if document is not None and len(plans) == 1 and says_topics(plans[0].compiled):
            road.swift.learn(document, [answer])

    def _road(self, topic: str | None, content_type: bytes | None, is_binary: bool) -> _Road | None:
        """The road that is known, or a new one; None where there is none."""
        key = (topic if self._by_topic else None, content_type)
        found = self._roads.get(key)
        if found is None and self._is_open and len(self._roads) < _MOST_ROADS:
            found = self._roads[key] = _Road(SwiftRoad(self._index), is_binary, {})
        return found

    def _of_names(self, names: tuple[str, ...]) -> _Headers | None:
        try:
            return self._headers[names]
        except KeyError:
            if len(self._headers) >= _MOST_SETS:
                return None
            found = self._headers[names] = _Headers.of(names)
            return found


@lru_cache(2)
def road_of(scope: Scope) -> KafkaRoad:
    """The road of a scope; what is learned by one task serves the next."""
    return KafkaRoad(scope)


def _document(headers: _Headers, row: KafkaRow) -> bytes | None:
    """An event in binary mode as JSON."""
    head, value = headers.head_of(row.values), row.value
    if head is None or value is None:
        return None if head is None else head + _NO_DATA
    return head + _DATA + value + b"}" if _is_text(value) else None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
