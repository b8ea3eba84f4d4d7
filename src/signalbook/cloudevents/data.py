"""The data of an event: JSON, text or bytes, kept as they came until someone asks for the value.

Rule 1: no data is None in place of a `Data`; JSON null is a `Data`; empty text and zero bytes are too.
Rule 2: `content` is the JSON text, the text in UTF-8, or the bytes themselves; nothing is reformatted.
Rule 3: JSON that came as the body of a message is not read until asked for: `value` says then that it is none.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.json_value import is_json_text, read_json, write_json
from signalbook.cloudevents.media_type import MediaType
from signalbook.cloudevents.rules import CloudEventError
from signalbook.errors import Problem

__all__ = ["Data", "Kind"]


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
        """The JSON value, the text or the bytes, read anew each time; raises `CloudEventError` where JSON is none."""
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
