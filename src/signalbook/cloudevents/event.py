"""`CloudEvent`: one event, valid by every rule of CloudEvents 1.0.2, and nothing but what was said.

Rule 1: an event that exists is valid; making or reading one that is not raises `CloudEventError` with all problems.
Rule 2: equality is by meaning: attributes by their canonical strings (an Integer 5 and a header's "5" are two
presentations of one value), `time` by the moment, JSON data by its value, a missing content type of JSON data as the
application/json it implies.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from signalbook.cloudevents.attributes import (
    ATTRIBUTE_TYPES,
    JSON,
    AttributeValue,
    CloudEventError,
    MediaType,
    attribute_type,
    check_attributes,
    meaning,
    plain,
    read_media_type,
)
from signalbook.errors import Problem
from signalbook.jsontext import is_json_text, read_json, same_json, write_json

__all__ = ["ABSENT", "CloudEvent", "Data", "Kind", "data_problem"]

# The data of an event: JSON, text or bytes, kept as they came until someone asks for the value.
#
# Rule 1: no data is None in place of a `Data`; JSON null is a `Data`; empty text and zero bytes are too.
# Rule 2: `content` is the JSON text, the text in UTF-8, or the bytes themselves; nothing is reformatted.
# Rule 3: JSON that came as the body of a message is not read until asked for: `value` raises then where it is not JSON.


class Kind(enum.StrEnum):
    """What the data is made of."""

    JSON = "json"
    TEXT = "text"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Data:
    """The data of one event; `checked` is false while JSON text has not been read yet."""

    kind: Kind
    content: bytes
    checked: bool = True

    @classmethod
    def json(cls, value: Any) -> Data:
        """The value as JSON data; raises `CloudEventError` where it has no JSON form."""
        try:
            return cls(Kind.JSON, write_json(value))
        except ValueError as error:
            raise CloudEventError(Problem("/data", "R34", f"data {error}")) from None

    @classmethod
    def json_text(cls, text: bytes) -> Data:
        """JSON data from its text, which stays as it is."""
        if not is_json_text(text):
            raise CloudEventError(Problem("/data", "R34", "data is not JSON in UTF-8"))
        return cls(Kind.JSON, bytes(text))

    @classmethod
    def text(cls, text: str) -> Data:
        """Text, for a content type that is not JSON."""
        try:
            return cls(Kind.TEXT, text.encode())
        except UnicodeEncodeError:
            raise CloudEventError(Problem("/data", "R34", "data holds an unpaired surrogate")) from None

    @classmethod
    def binary(cls, content: bytes | bytearray | memoryview) -> Data:
        """Bytes of any content type."""
        return cls(Kind.BINARY, bytes(content))

    @classmethod
    def of(cls, value: Any, media: MediaType | None) -> Data:
        """The value as a writer must take it (json 3.1.1): bytes, else JSON for a JSON type or none, else text."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            return cls.binary(value)
        if media is None or media.is_json:
            return cls.json(value)
        if isinstance(value, str):
            return cls.text(value)
        words = f"data is a {value.__class__.__name__} and cannot be written as {media.name}; give text or bytes"
        raise CloudEventError(Problem("/data", "R31", words))

    def value(self) -> Any:
        """The JSON value, the text or the bytes, read anew each time; raises `CloudEventError` where it is not JSON."""
        if self.kind is Kind.BINARY:
            return self.content
        if self.kind is Kind.TEXT:
            return self.content.decode()
        try:
            return read_json(self.content)
        except ValueError as error:
            rule = "R32" if self.is_readable() else "R41"
            raise CloudEventError(Problem("/data", rule, f"data is not JSON that can be read: {error}")) from None

    def is_readable(self) -> bool:
        """Whether JSON data is JSON; other data always is what it is."""
        return self.checked or self.kind is not Kind.JSON or is_json_text(self.content)


class _Absent:
    """The value of data that is not there, where None is JSON null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


# Not a dataclass: `decode` makes events from what it has judged already and must not pay for it twice; the data is kept
# as the parts of a `Data`, since most events pass through without anyone looking at it.
class CloudEvent:
    """An event: context attributes and data. Immutable."""

    __slots__ = ("_attributes", "_data")
    _attributes: dict[str, AttributeValue]
    _data: tuple[Kind, bytes, bool] | None

    def __init__(self, attributes: Mapping[str, Any], data: Data | None = None) -> None:
        accepted = check_attributes(_plainly(attributes))
        if data is not None:
            problem = data_problem(data.kind, accepted.get("datacontenttype"))
            if problem is not None:
                raise CloudEventError(problem)
        _set_attributes(self, accepted)
        _set_data(self, None if data is None else (data.kind, data.content, data.checked))

    @classmethod
    def create(cls, attributes: Mapping[str, Any], value: Any = ABSENT) -> CloudEvent:
        """The event with this value as its data: bytes, what has a JSON form (None is null), or text."""
        accepted = check_attributes(_plainly(attributes))
        if value is ABSENT:
            return made(accepted, None)
        named = accepted.get("datacontenttype")
        data = Data.of(value, None if named is None else read_media_type(named))  # type: ignore[arg-type]
        return made(accepted, (data.kind, data.content, data.checked))

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """All context attributes that are set, in the order they came."""
        return MappingProxyType(self._attributes)

    @property
    def data(self) -> Data | None:
        """The data; None where the event has none."""
        return None if self._data is None else Data(*self._data)

    @property
    def extensions(self) -> Mapping[str, AttributeValue]:
        """The attributes that the specification does not define."""
        return {name: value for name, value in self._attributes.items() if name not in ATTRIBUTE_TYPES}

    @property
    def id(self) -> str:
        """The attribute `id`."""
        return self._attributes["id"]  # type: ignore[return-value]

    @property
    def source(self) -> str:
        """The attribute `source`."""
        return self._attributes["source"]  # type: ignore[return-value]

    @property
    def type(self) -> str:
        """The attribute `type`."""
        return self._attributes["type"]  # type: ignore[return-value]

    @property
    def media_type(self) -> MediaType | None:
        """What `datacontenttype` says; None where it is not there."""
        named = self._attributes.get("datacontenttype")
        return None if named is None else read_media_type(named)  # type: ignore[arg-type]

    @property
    def content_type(self) -> str | None:
        """`datacontenttype`, or the application/json that JSON data without one implies (json 3.1.2)."""
        named: Any = self._attributes.get("datacontenttype")
        return JSON if named is None and self._data is not None and self._data[0] is Kind.JSON else named

    def __getitem__(self, name: str) -> AttributeValue:
        return self._attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute's value, or the default where it is not set."""
        return self._attributes.get(name, default)

    def attribute_type(self, name: str) -> str:
        """The type of an attribute that is set, in the words of the specification: `String`, `Timestamp`."""
        return attribute_type(name, self._attributes[name])

    def value(self) -> Any:
        """The data's value, read anew each time; `ABSENT` where there is no data."""
        return ABSENT if self._data is None else Data(*self._data).value()

    def payload(self) -> bytes | None:
        """The data as the bytes that its content type says: the body of a message in binary mode."""
        if self._data is None:
            return None
        kind, content, _ = self._data
        media = self.media_type if kind is Kind.TEXT else None
        if media is None or media.charset is None:
            return content
        try:
            return content.decode().encode(media.charset)
        except (LookupError, UnicodeError):
            words = f"data cannot be written in the charset {media.charset}"
            raise CloudEventError(Problem("/data", "R31", words)) from None

    def with_attributes(self, **changes: Any) -> CloudEvent:
        """The event with some attributes set anew, or taken away by None."""
        return CloudEvent({**self._attributes, **changes}, self.data)

    def with_data(self, data: Data | None) -> CloudEvent:
        """The event with other data."""
        return CloudEvent(self._attributes, data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CloudEvent):
            return NotImplemented
        return self._meaning() == other._meaning() and _same_data(self, other)

    def __hash__(self) -> int:
        return hash((self.source, self.id, self.type))

    def __repr__(self) -> str:
        return f"CloudEvent({self._attributes!r}, {self.data!r})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a CloudEvent does not change; with_attributes or with_data give another {name}")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self._attributes, self._data)

    def _meaning(self) -> dict[str, Any]:
        attributes = {name: meaning(name, value) for name, value in self._attributes.items()}
        attributes["datacontenttype"] = self.content_type
        return attributes


_new = object.__new__
# How the slots are set, once, past the `__setattr__` that raises.
_set_attributes: Callable[[CloudEvent, Any], None] = CloudEvent.__dict__["_attributes"].__set__
_set_data: Callable[[CloudEvent, Any], None] = CloudEvent.__dict__["_data"].__set__


def made(accepted: dict[str, AttributeValue], data: tuple[Kind, bytes, bool] | None) -> CloudEvent:
    """An event of attributes that were accepted and of data that goes with them; nothing is checked again."""
    event: CloudEvent = _new(CloudEvent)
    _set_attributes(event, accepted)
    _set_data(event, data)
    return event


_AS_THEY_ARE = frozenset((str, bool, int, bytes, type(None)))


def _plainly(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {n: value if value.__class__ in _AS_THEY_ARE else plain(value) for n, value in attributes.items()}


def data_problem(kind: Kind, content_type: Any) -> Problem | None:
    """Why data of this kind cannot have this content type (json 3.1): None where it can."""
    if kind is Kind.BINARY:
        return None
    media = None if content_type is None else read_media_type(content_type)
    if kind is Kind.JSON and media is not None and not media.is_json:
        return Problem("/data", "R31", f"data is JSON, which {media.name} is not; give text or bytes")
    if kind is Kind.TEXT and (media is None or media.is_json):
        return Problem("/data", "R31", "data is text, but its content type says JSON; give a JSON value")
    return None


def _same_data(one: CloudEvent, other: CloudEvent) -> bool:
    if one._data is None or other._data is None:
        return one._data is other._data
    (kind, left, _), (other_kind, right, _) = one._data, other._data
    if kind is other_kind and left == right:
        return True
    # The content types are equal here. Bytes under a JSON type are that JSON, where they are any.
    media = read_media_type(one.content_type) if one.content_type is not None else None
    if media is not None and media.is_json:
        return left == right or (is_json_text(left) and is_json_text(right) and same_json(left, right))
    try:
        return one.payload() == other.payload()
    except CloudEventError:
        return False
