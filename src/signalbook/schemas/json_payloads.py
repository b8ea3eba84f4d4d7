"""JSON payloads of JSON Schema and JSON Structure: written, and made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from signalbook.schemas.bad_value import BadValue
from signalbook.schemas.json_exact import encode as encode_json
from signalbook.schemas.json_schema import JsonSchema, read_draft_2020_12
from signalbook.schemas.json_schema_sample import values
from signalbook.schemas.json_structure import JsonStructureSchema
from signalbook.schemas.json_structure_translate import Translation
from signalbook.schemas.text_sample import FORMATS

__all__ = ["encode", "samples"]


def encode(schema: JsonSchema | JsonStructureSchema, value: Any, contenttype: str) -> bytes:
    """The value as JSON text."""
    try:
        return encode_json(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"is no JSON value: {error}") from None


def samples(schema: JsonSchema | JsonStructureSchema, contenttype: str) -> Iterator[bytes]:
    """JSON texts to try."""
    if isinstance(schema, JsonSchema):
        found = values(schema)
    else:
        translation = Translation(schema.document)
        found = values(read_draft_2020_12(translation.schema), _formats(translation.formats))
    return (encode_json(value).encode() for value in found)


_GUESSES = ("1", "0", "12:30:00", "2024-05-17", "", "1.5", "0.01", "-1", "100")


def _formats(own: dict[str, Callable[[str], bool]]) -> Callable[[str], str | None]:
    """What gives a text of a format: one of JSON Schema's, or of those a JSON Structure makes for its own types."""

    def find(name: str) -> str | None:
        check = own.get(name)
        if check is None:
            return FORMATS.get(name)
        return next((guess for guess in (*_GUESSES, *name.split()) if check(guess)), None)

    return find
