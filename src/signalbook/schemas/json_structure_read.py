"""JSON Structure documents: read from untrusted text, with what they import, and judged by the json-structure package.

Rule 1: the package judges documents only; what it would fetch or open is given to it beforehand, from the catalog.
Rule 2: where the package refuses what the specification allows (`_excused`), the specification decides.
Rule 3: `Document.effective` is a type with its references followed and what it extends merged in, base types first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

from json_structure import SchemaValidator

from signalbook.errors import Problem
from signalbook.schemas.format import LARGEST, REFERENCE, References, SchemaError, Text, base_of, unreachable, unusable
from signalbook.schemas.json_schema_bounds import too_deep
from signalbook.schemas.references import read_json

__all__ = ["ANNOTATIONS", "Document", "read_document"]

MOST_IMPORTS = 100
MOST_TYPES = 100_000
_DEEPEST = 64
_IMPORTS = ("$import", "$importdefs")
# What may have a unit: the package does not know that a nullable number, a small one and a named one are numbers too.
_UNITS = frozenset({"unit", "ucumUnit"})
_NUMERIC = frozenset(
    {"number", "integer", "float", "double", "decimal", "float8"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64, 128)}
)
# What says nothing about values.
ANNOTATIONS = frozenset(
    {"name", "description", "examples", "default", "abstract", "altnames", "altenums", "descriptions", "unit", "symbol"}
    | {"symbols", "currency", "$id", "$schema", "definitions", "$uses", "$offers", "$root", "contentMediaType"}
    | {"contentEncoding", "contentCompression", "identity", "relations", "targettype", "cardinality", "deprecated"}
)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One document, and the type that it, or a deep link into it, is about."""

    root: dict[str, Any]
    start: dict[str, Any]

    @property
    def extensions(self) -> frozenset[str]:
        """The extensions that are in force."""
        uses = self.root.get("$uses", ())
        found = {one for one in uses if isinstance(one, str)} if isinstance(uses, list) else set()
        if "/validation/" in str(self.root.get("$schema", "")):
            found |= {"JSONStructureConditionalComposition", "JSONStructureValidation"}
        return frozenset(found)

    def lookup(self, pointer: str) -> dict[str, Any] | None:
        """The type at a JSON Pointer, with or without the `#`."""
        found: Any = self.root
        for step in unquote(pointer.removeprefix("#")).split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None

    def effective(self, schema: dict[str, Any], seen: tuple[int, ...] = ()) -> dict[str, Any]:
        """A type with its references followed and its base types merged in."""
        if id(schema) in seen or len(seen) > _DEEPEST:
            raise unusable("types refer to one another in a circle")
        seen = (*seen, id(schema))
        reference = schema.get("$ref")
        kind = schema.get("type")
        if reference is None and isinstance(kind, dict):
            reference = kind.get("$ref")
        if isinstance(reference, str):
            own = {name: value for name, value in schema.items() if name not in ("$ref", "type")}
            return _merged(self.effective(self.referred(reference), seen), own)
        bases = schema.get("$extends", [])
        if not bases or kind == "choice":
            return schema
        found: dict[str, Any] = {}
        for base in [bases] if isinstance(bases, str) else bases:
            found = _merged(self.effective(self.referred(base), seen), found)
        found.pop("abstract", None)
        return _merged(found, {name: value for name, value in schema.items() if name != "$extends"})

    def referred(self, reference: str) -> dict[str, Any]:
        """The type that a reference leads to."""
        found = self.lookup(reference)
        if found is None:
            raise unusable(f"{reference} leads to no type")
        return found


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    found = {**base, **own}
    if "properties" in base and "properties" in own:
        found["properties"] = {**base["properties"], **own["properties"]}
    if "required" in base and "required" in own and _is_flat(base["required"]) and _is_flat(own["required"]):
        found["required"] = list(dict.fromkeys([*base["required"], *own["required"]]))
    return found


def _is_flat(required: Any) -> bool:
    return isinstance(required, list) and all(isinstance(one, str) for one in required)


def read_document(text: Text, references: References | None) -> Document:
    """The document that a text holds; `SchemaError` with every problem where it cannot be used."""
    root = _value(text, "")
    imports = _gather(root, references)
    judge = SchemaValidator(allow_dollar=True, allow_import=True, extended=True, external_schemas=imports)
    try:
        found = judge.validate(root)
    except RecursionError:
        raise unusable("the document is nested too deeply") from None
    except (AttributeError, TypeError, KeyError, ValueError, re.error) as error:
        # The package trusts some values to be what they should; what it stumbles over is wrong all the same.
        raise unusable(f"the document is not a JSON Structure: {error}") from None
    found = [error for error in found if not _excused(error, root)]
    if found:
        raise SchemaError([_problem(error, alone=not imports) for error in found[:100]])
    start = root
    if "$root" in root and "type" not in root:
        document = Document(root, root)
        start = document.lookup(str(root["$root"])) or {}
        if not start:
            raise unusable(f"{root['$root']} leads to no type", "/$root")
    return Document(root, start)


def _value(text: Text, where: str) -> dict[str, Any]:
    value, _ = read_json(text)
    if not isinstance(value, dict):
        raise unusable(f"{where}a JSON Structure document is a JSON object")
    if too_deep(value):
        raise unusable(f"{where}the document is nested too deeply")
    if sum(1 for _ in _objects(value)) > MOST_TYPES:
        raise unusable(f"{where}the document has more than {MOST_TYPES:,} objects")
    return value


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            yield one
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)


def _gather(root: dict[str, Any], references: References | None) -> list[dict[str, Any]]:
    """The documents that are imported, at once or through others, each known by the URI it is imported by."""
    found: dict[str, dict[str, Any]] = {}
    waiting, room = [root], LARGEST
    while waiting:
        for one in _objects(waiting.pop()):
            for uri in (one[name] for name in _IMPORTS if isinstance(one.get(name), str)):
                if uri in found:
                    continue
                text = references(urljoin(base_of(references), uri)) if references is not None else None
                if text is None:
                    raise unreachable(f"the catalog has no schema {uri}, and nothing outside it is asked")
                room -= len(text) if isinstance(text, str | bytes) else 0
                if len(found) >= MOST_IMPORTS or room < 0:
                    raise unreachable(f"the schema imports more than {MOST_IMPORTS} others, or too much")
                try:
                    found[uri] = {**_value(text, f"{uri}: "), "$id": uri}
                except SchemaError as error:
                    raise unreachable(str(error)) from None
                waiting.append(found[uri])
    return list(found.values())


def _excused(error: Any, root: dict[str, Any]) -> bool:
    """Whether the specification allows what the package refuses: a unit of anything numeric, null aside."""
    place, _, keyword = _path(error).rpartition("/")
    if keyword not in _UNITS or "numeric schemas" not in str(error.message):
        return False
    document = Document(root, root)
    schema = document.lookup(place)
    return schema is not None and _is_numeric(schema, document)


def _is_numeric(schema: dict[str, Any], document: Document) -> bool:
    """Whether each type of a schema is numeric, null aside, and there is one."""
    try:
        kinds = document.effective(schema).get("type")
        union = kinds if isinstance(kinds, list) else [kinds]
        own = [one for one in union if one != "null"]
        return bool(own) and all(
            _is_numeric({"type": one}, document) if isinstance(one, dict) else one in _NUMERIC for one in own
        )
    except (SchemaError, RecursionError):  # it is told that a reference leads nowhere, or in a circle
        return False


def _path(error: Any) -> str:
    return re.sub(r"\[(\d+)\]", r"/\1", str(error.path or "").removeprefix("#"))


def _problem(error: Any, *, alone: bool) -> Problem:
    path = _path(error)
    message = str(error.message)
    # A reference that leads nowhere may lead to what an imported document no longer defines.
    by_others = not alone and ("$ref" in message or "$extends" in message or "import" in message.lower())
    return Problem(path if path.startswith("/") else "", REFERENCE if by_others else "schema", message)
