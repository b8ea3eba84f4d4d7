"""`KafkaFastPath`: the fast path for records of Kafka: events, structured or in binary mode, and what is not an event.

Rule 1: there is one fast path of events for each content type, and for each topic where definitions look at topics. So
what a definition says about a record beside its event holds for every record of that path.
Rule 2: it is taken where that is certain. Definitions that look at keys, partitions or headers, records with a content
encoding, and all that a plain event would not have are left to the general path.
Rule 3: an event in binary mode is read as the head of a JSON event with the same attributes in the same order. A header
whose value has a quote is left to the general path, so that the head has those attributes and no others.
Rule 4: records that are not events are known by topic and content type (`PlainRecords`). That is certain where the key
of every definition looks at topics alone, one definition has the topic, and all that it says of a record is its topic
and a JSON Schema: then only the payload is left to be validated. A definition that makes an event of a record, or
captures something of it, is left to the general path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from signalbook.jsontext import is_json_text
from signalbook.messages.answer import Answer, Outcome
from signalbook.messages.compile import CLOUDEVENTS, Compiled, MatchPlan
from signalbook.messages.fast import FastPath, MatchScope, longest
from signalbook.messages.observe import MessageKind, Observed
from signalbook.pipeline.columns.events import BINARY, STRUCTURED, EventCarrier, Parts
from signalbook.pipeline.read.records import KafkaRow
from signalbook.protocols import BINDINGS, Mode
from signalbook.schemas.framing import FRAMINGS, VALUE_HEADER

__all__ = ["KAFKA", "KafkaFastPath", "PlainRecords", "PlainShape", "fast_path_of", "keys_look_at_topics", "says_topics"]

KAFKA = "KAFKA"
_OPTIONS, _TOPIC = "/protocoloptions/", "/protocoloptions/topic"
# Topics with their content types that are remembered; what is beyond takes the general path.
_MOST = 1024


@dataclass(frozen=True, slots=True, eq=False)
class PlainShape:
    """The records of one definition: they have no attributes, and their value is their data."""

    xid: str
    accepts: Callable[[Any], bool]
    schema: Any
    longest: int
    attributes: tuple[tuple[str, str | int], ...] = ()
    names: tuple[tuple[str, int], ...] = ()
    has_data: bool = True


class PlainRecords:
    """The definitions of records that are not events, by topic and content type."""

    __slots__ = ("_bases", "_index", "_is_open", "_library", "_shapes")

    def __init__(self, scope: MatchScope) -> None:
        self._index = scope.index(MessageKind.NATIVE, KAFKA)
        self._library = scope.library
        self._is_open = keys_look_at_topics(scope, MessageKind.NATIVE)
        self._bases = {base for plan in self._index.keyless_derived for base in plan.derives_from}
        self._shapes: dict[tuple[str | None, bytes | None], PlainShape | None] = {}

    def shape(self, topic: str | None, content_type: bytes | None) -> PlainShape | None:
        """What a record that is not an event is, if its payload holds; None where that is not certain."""
        return self._shapes.get((topic, content_type))

    def learn(self, topic: str | None, content_type: bytes | None, observed: Observed, answer: Answer) -> None:
        """Remember what a record was that is not an event."""
        place = (topic, content_type)
        if answer.outcome is not Outcome.MATCHED or place in self._shapes or len(self._shapes) >= _MOST:
            return
        plans = [plan for same in self._index.find(observed) for plan in same.plans] if self._is_open else []
        # What came in a frame may have to: its value alone does not say.
        is_known = len(plans) == 1 and answer.schemaid is None
        self._shapes[place] = self._shape(plans[0]) if is_known else None

    def _shape(self, plan: MatchPlan) -> PlainShape | None:
        compiled = plan.compiled
        schema = compiled.payload.schema(self._library)
        accepts = getattr(schema, "accepts", None)
        if compiled.envelope == CLOUDEVENTS or compiled.definition.identity in self._bases or not says_topics(compiled):
            return None
        if compiled.payload.framing in FRAMINGS:
            return None
        return None if accepts is None else PlainShape(compiled.definition.xid, accepts, schema, longest(schema))


def keys_look_at_topics(scope: MatchScope, kind: MessageKind) -> bool:
    """Whether no key of a scope's definitions looks at another of Kafka's own fields than the topic."""
    entries = [one for one in scope.entries if one.compiled.protocol == KAFKA and one.compiled.on_protocol]
    keys = (part.path for one in entries for part in one.compiled.plan(kind, KAFKA, one.limits).key)
    return all(path == _TOPIC for path in keys if path.startswith(_OPTIONS))


def says_topics(compiled: Compiled) -> bool:
    """Whether all that a definition says about Kafka's own fields is the same for all records of a topic."""
    stated = compiled.on_protocol if compiled.protocol == KAFKA else ()
    return all(one.path == _TOPIC and one.template is None for one in stated)


_PREFIX, _CONTENT_TYPE, _ENCODING = "ce_", "content-type", "content-encoding"
# Headers of which one makes a record without content type an event.
_MARKS = frozenset(_PREFIX + name for name in BINDINGS[KAFKA].marks)
_DATA, _NO_DATA = b',"data":', b"}"
_is_name = re.compile(r"[a-z0-9]+").fullmatch
# Content types and topics, and sets of headers, that are remembered; what is beyond takes the general path.
_MOST_PATHS, _MOST_SETS = 32, 1024
# Events of one definition that one path learns from.
_MOST_LESSONS = 8


class _Headers(NamedTuple):
    """What the names of a record's headers say.

    Where its content type is, whether it claims to be an event, and how a head is made of which values.
    """

    content_type: int | None
    is_marked: bool
    head: bytes = b""
    values: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None
    quotes: int = 0

    @classmethod
    def of(cls, names: tuple[str, ...]) -> _Headers | None:
        """What they say; None where the general path has to look at the values too."""
        if names.count(_CONTENT_TYPE) > 1 or VALUE_HEADER in names:
            return None
        if any(name.lower() == _ENCODING for name in names):
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


class _EventPath(NamedTuple):
    """The fast path of the events of one content type."""

    events: FastPath
    is_binary: bool
    lessons: dict[str, int]


class KafkaFastPath:
    """What is known of one scope's records of Kafka: the shapes of events, and what is not an event."""

    __slots__ = ("_by_topic", "_headers", "_index", "_is_open", "_library", "_paths", "_plain_records")

    def __init__(self, scope: MatchScope) -> None:
        self._index = scope.index(MessageKind.EVENT, KAFKA)
        self._library = scope.library
        self._is_open = keys_look_at_topics(scope, MessageKind.EVENT)
        self._by_topic = any(one.compiled.on_protocol for one in scope.entries if one.compiled.protocol == KAFKA)
        self._plain_records = PlainRecords(scope)
        self._paths: dict[tuple[str | None, bytes | None], _EventPath] = {}
        self._headers: dict[tuple[str, ...], _Headers | None] = {}

    def parts(self, row: KafkaRow) -> tuple[Parts, EventCarrier] | None:
        """The parts of a record that matches if its data holds, and how it was carried; None where in doubt."""
        headers = self._headers.get(row.names)
        if headers is None:
            return None
        at = headers.content_type
        content_type = None if at is None else row.values[at]
        value = row.value
        path = self._paths.get((row.topic if self._by_topic else None, content_type))
        if path is not None and not path.is_binary:
            parts: Parts | None = None if value is None else path.events.parts(value)
            return None if parts is None else (parts, STRUCTURED)
        if value == b"" or not (value is None or value.isascii() or _is_text(value)):
            return None
        if not headers.is_marked:
            shape = None if value is None else self._plain_records.shape(row.topic, content_type)
            return None if shape is None or len(value or b"") > shape.longest else ((shape, (), 0), BINARY)
        head = None if path is None else headers.head_of(row.values)
        if path is None or head is None:
            return None
        parts = path.events.parts(head + (_NO_DATA if value is None else b',"data":0}'))
        # Without a schema, it is for the content type to say that the data is JSON.
        if (
            parts is None
            or len(value or b"") > parts[0].longest
            or (value is not None and parts[0].schema is None and not is_json_text(value))
        ):
            return None
        return parts, BINARY

    def learn(self, row: KafkaRow, observed: Observed, answer: Answer) -> None:
        """Remember of a record that was matched what holds for others like it."""
        if answer.outcome is not Outcome.MATCHED:
            return
        headers = self._of_names(row.names)
        if headers is None:
            return
        content_type = None if headers.content_type is None else row.values[headers.content_type]
        if headers.content_type is not None and content_type is None:
            return
        if observed.event is None:
            self._plain_records.learn(row.topic, content_type, observed, answer)
            return
        path = self._path(row.topic, content_type, observed.mode is Mode.BINARY)
        xid = answer.definition or ""
        if path is None or path.lessons.get(xid, 0) >= _MOST_LESSONS:
            return
        path.lessons[xid] = path.lessons.get(xid, 0) + 1
        plans = [plan for same in self._index.find(observed) for plan in same.plans]
        document = _document(headers, row) if path.is_binary else row.value
        if document is not None and len(plans) == 1 and says_topics(plans[0].compiled):
            path.events.learn(document, [answer])

    def _path(self, topic: str | None, content_type: bytes | None, is_binary: bool) -> _EventPath | None:
        """The path that is known, or a new one; None where there can be none."""
        key = (topic if self._by_topic else None, content_type)
        found = self._paths.get(key)
        if found is None and self._is_open and len(self._paths) < _MOST_PATHS:
            found = self._paths[key] = _EventPath(FastPath(self._index, self._library), is_binary, {})
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
def fast_path_of(scope: MatchScope) -> KafkaFastPath:
    """The fast path of a scope; what is learned by one task serves the next."""
    return KafkaFastPath(scope)


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
