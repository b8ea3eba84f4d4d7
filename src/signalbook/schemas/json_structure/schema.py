"""JSON Structure (draft-04 of its core): one schema, the JSON it takes, and its deep links.

Rule 1: documents are judged by the json-structure package, payloads by the engine that judges JSON Schema: the package
keeps no bound on patterns, and is slower by far. Where the two differ, the specification decides: a boolean is not a
number, a decimal keeps its precision and scale, a binary is base64.
Rule 2: a payload's value is its JSON value with every number kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from signalbook.errors import Problem
from signalbook.jsontext import JsonError, decode_json, encode_json
from signalbook.schemas.format import Checked, References, SchemaError, Text, pointer, unusable
from signalbook.schemas.json_schema.places import PATTERNS
from signalbook.schemas.json_schema.samples import FORMAT_TEXTS, values
from signalbook.schemas.json_schema.schema import UNLISTED, JsonSchema, read_draft_2020_12
from signalbook.schemas.json_structure.translate import StructureDocument, Translation, read_document

if TYPE_CHECKING:
    import pyarrow

    from signalbook.schemas.json_structure.columns import StructureCell

__all__ = ["JsonStructureSchema", "read", "samples"]

MOST_PROBLEMS = 100
_LONGEST_MESSAGE = 500


def read(text: Text, references: References | None = None) -> JsonStructureSchema:
    """The schema that a document holds; what it imports is asked of `references` by its URI."""
    return JsonStructureSchema(read_document(text, references))


class JsonStructureSchema:
    """One JSON Structure; it never changes once made."""

    __slots__ = ("_accepts", "_judged", "_table", "_validator", "document")

    format = "JsonStructure/draft-04"

    def __init__(self, document: StructureDocument) -> None:
        self.document = document
        self._validator, self._judged = _compile(Translation(document))
        self._accepts = self._judged.bounded(self._validator.is_valid)
        self._table: StructureCell | None = None

    @property
    def work(self) -> int:
        """The most evaluations that one value can cause, as a JSON Schema has it."""
        return self._judged.work

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a JSON text, and the value it holds."""
        try:
            value = decode_json(payload)
        except JsonError as error:
            return Checked((Problem("", "payload", f"the payload is not JSON: {error}"),), None)
        try:
            if self._accepts(value):
                return Checked((), value)
            if self._judged.multiplies(value):
                return Checked((Problem("", "payload", UNLISTED),), value)
            errors = islice(self._validator.iter_errors(value), MOST_PROBLEMS)
            problems = tuple(Problem(pointer(one.instance_path), "payload", _shortened(one.message)) for one in errors)
        except ValueError as error:  # the engine gave up: nested too deep for it, or a pattern took too long
            problems = (Problem("", "payload", f"the payload cannot be checked: {_shortened(str(error))}"),)
        return Checked(problems or (Problem("", "payload", "the payload does not match its schema"),), value)

    def at(self, fragment: str) -> JsonStructureSchema:
        """The type at a JSON Pointer into the document."""
        link = fragment.removeprefix("#")
        if link in ("", "/"):
            return self
        found = self.document.lookup(link) if link.startswith("/") else None
        if found is None or not ({"type", "$ref"} & found.keys()):
            raise unusable(f"{link} does not lead to a type", link if link.startswith("/") else "")
        return JsonStructureSchema(StructureDocument(self.document.root, found))

    def columns(self) -> pyarrow.DataType:
        """The Arrow struct of a payload; one that is not an object has a single column `value`."""
        return self._cell().type

    def convert(self, value: Any) -> Any:
        """A checked value as the struct holds it."""
        return self._cell().convert(value)

    def _cell(self) -> StructureCell:
        if self._table is None:
            from signalbook.schemas.json_structure.columns import table  # pyarrow is loaded where tables are

            self._table = table(self.document)
        return self._table


def _fetch_nothing(uri: str) -> Any:
    raise LookupError(f"nothing is fetched: {uri}")


def _compile(translation: Translation) -> tuple[jsonschema_rs.Validator, JsonSchema]:
    """What judges payloads, and the same as a JSON Schema, whose bounds hold for the translation."""
    try:
        judged = read_draft_2020_12(translation.schema)
    except SchemaError as error:
        words = f"the document asks for too much, or is not a JSON Structure: {_shortened(str(error))}"
        raise unusable(words) from None
    try:
        validator = jsonschema_rs.Draft202012Validator(
            translation.schema, validate_formats=True, formats=translation.formats, retriever=_fetch_nothing,
            pattern_options=PATTERNS,
        )  # fmt: skip
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise unusable(f"the document is not a JSON Structure: {_shortened(str(error))}") from None
    return validator, judged


def _shortened(message: str) -> str:
    message = message.replace('"js-', '"')
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


_GUESSES = ("1", "0", "12:30:00", "2024-05-17", "", "1.5", "0.01", "-1", "100")


def samples(schema: JsonStructureSchema, contenttype: str) -> Iterator[bytes]:
    """JSON texts to try."""
    translation = Translation(schema.document)
    found = values(read_draft_2020_12(translation.schema), _format_texts(translation.formats))
    return (encode_json(value).encode() for value in found)


def _format_texts(own: dict[str, Callable[[str], bool]]) -> Callable[[str], str | None]:
    """What gives a text of a format: one of JSON Schema's, or of those a JSON Structure makes for its own types."""

    def find(name: str) -> str | None:
        check = own.get(name)
        if check is None:
            return FORMAT_TEXTS.get(name)
        return next((guess for guess in (*_GUESSES, *name.split()) if check(guess)), None)

    return find
