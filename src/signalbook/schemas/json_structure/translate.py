"""A JSON Structure as a JSON Schema of draft 2020-12, so that the fast and safe engine judges payloads.

Rule 1: a reference becomes a `$ref` to a translation of its target, made once; so types may contain themselves.
Rule 2: numbers that JSON Structure writes as strings (`int64`, `decimal`, …) are formats of our own, one for each set
of bounds; `Translation.formats` has their checks.
Rule 3: what an extension adds is translated where the document uses it, as json-structure does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from urllib.parse import unquote, urljoin

from json_structure import SchemaValidator

from signalbook.budget import spend
from signalbook.errors import Problem
from signalbook.protocols.values import is_base64
from signalbook.schemas.format import LARGEST, REFERENCE, References, SchemaError, Text, base_of, unreachable, unusable
from signalbook.schemas.json_schema.schema import too_deep
from signalbook.schemas.references import read_json

__all__ = ["ANNOTATIONS", "INTEGERS", "STRING_INTEGERS", "StructureDocument", "Translation", "read_document"]

# JSON Structure documents: read from untrusted text, with what they import, and judged by the json-structure package.
#
# Rule 1: the package judges documents only; what it would fetch or open is given to it beforehand, from the catalog.
# Rule 2: where the package refuses what the specification allows (`_excused`), the specification decides.
# Rule 3: `Document.effective` is a type with its references followed and what it extends merged in, base types first.


MOST_IMPORTS = 100
_EACH_TYPE, _MEMBERS_A_STEP = 5, 4
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
class StructureDocument:
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
            raise unusable(f"{reference} does not lead to a type")
        return found


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    spend(1 + (len(base.get("properties", ())) + len(base.get("required", ()))) // _MEMBERS_A_STEP)
    found = {**base, **own}
    if "properties" in base and "properties" in own:
        found["properties"] = {**base["properties"], **own["properties"]}
    if "required" in base and "required" in own and _is_flat(base["required"]) and _is_flat(own["required"]):
        found["required"] = list(dict.fromkeys([*base["required"], *own["required"]]))
    return found


def _is_flat(required: Any) -> bool:
    return isinstance(required, list) and all(isinstance(one, str) for one in required)


def read_document(text: Text, references: References | None) -> StructureDocument:
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
        document = StructureDocument(root, root)
        start = document.lookup(str(root["$root"])) or {}
        if not start:
            raise unusable(f"{root['$root']} does not lead to a type", "/$root")
    return StructureDocument(root, start)


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
                    raise unreachable(f"the catalog has no schema {uri}, and schemas outside it are not fetched")
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
    document = StructureDocument(root, root)
    schema = document.lookup(place)
    return schema is not None and _is_numeric(schema, document)


def _is_numeric(schema: dict[str, Any], document: StructureDocument) -> bool:
    """Whether each type of a schema is numeric, null aside, and there is one."""
    try:
        kinds = document.effective(schema).get("type")
        union = kinds if isinstance(kinds, list) else [kinds]
        own = [one for one in union if one != "null"]
        return bool(own) and all(
            _is_numeric({"type": one}, document) if isinstance(one, dict) else one in _NUMERIC for one in own
        )
    except (SchemaError, RecursionError):  # the reference leads nowhere, or in a circle
        return False


def _path(error: Any) -> str:
    return re.sub(r"\[(\d+)\]", r"/\1", str(error.path or "").removeprefix("#"))


def _problem(error: Any, *, alone: bool) -> Problem:
    path = _path(error)
    message = str(error.message)
    # A reference that leads nowhere may lead to what an imported document no longer defines.
    by_others = not alone and ("$ref" in message or "$extends" in message or "import" in message.lower())
    return Problem(path if path.startswith("/") else "", REFERENCE if by_others else "schema", message)


INTEGERS: dict[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
    "integer": (-(2**31), 2**31 - 1),
}
STRING_INTEGERS: dict[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (64, 128)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (64, 128)},
}
_NUMBERS = frozenset({"number", "float", "double", "float8"})
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,39})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,999})(\.[0-9]{1,1000})?")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,30})?")
# Enough digits for the remainder of any two numbers that are taken.
_EXACT = Context(prec=4096)
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRINGS = ("minLength", "maxLength", "pattern", "format")
_ARRAYS = ("minItems", "maxItems", "uniqueItems", "minContains", "maxContains")
_OBJECTS = ("minProperties", "maxProperties", "dependentRequired")
# What is said of values of one kind, and may stand at a union that has it.
_OF_VALUES = (*_BOUNDS, *_STRINGS, "precision", "scale")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_FORMATS = frozenset({"email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "iri", "iri-reference", "uri",
                      "uri-template", "relative-json-pointer", "regex"})  # fmt: skip


class Translation:
    """The JSON Schema of a document, and the formats that it needs."""

    def __init__(self, document: StructureDocument) -> None:
        self._document = document
        self._extensions = document.extensions
        self._targets: dict[str, dict[str, Any]] = {}
        self._waiting: list[tuple[str, dict[str, Any], str]] = []
        self.formats: dict[str, Callable[[str], bool]] = {
            "js-binary": is_base64,
            "js-time": lambda text: bool(_TIME.fullmatch(text)),
            "js-date": _is_date,
            "js-jsonpointer": lambda text: bool(re.fullmatch(r"#?(/([^~/]|~[01])*)*", text)),
        }
        start = self._type(document.start, is_root=True)
        while self._waiting:
            key, schema, selector = self._waiting.pop()
            self._targets[key] = self._expanded(schema, selector=selector)
        names = {reference: str(number) for number, reference in enumerate(self._targets)}
        self.schema = {**start, "$defs": {names[reference]: one for reference, one in self._targets.items()}}
        _rename(self.schema, names)

    def _reference(self, key: str, schema: dict[str, Any], selector: str = "") -> dict[str, Any]:
        """A reference to a type that is translated once, by itself."""
        if key not in self._targets:
            self._targets[key] = {}
            self._waiting.append((key, schema, selector))
        return {"$ref": "\0" + key}

    def _type(self, schema: Any, *, is_root: bool = False, selector: str = "") -> Any:
        """The translation of one type; `selector` is a member that is there besides its own."""
        spend(_EACH_TYPE)
        if not isinstance(schema, dict):
            raise unusable("a type is a JSON object")
        reference = schema.get("$ref")
        if reference is None and isinstance(schema.get("type"), dict):
            reference = schema["type"].get("$ref")
        if is_root or (reference is None and "$extends" not in schema and not selector):
            return self._expanded(schema, is_root=is_root)
        if reference is not None and not selector and not _says_more(schema):
            return self._reference(str(reference), self._document.referred(str(reference)))
        # What merges other types into itself may contain itself: it, too, is translated once.
        return self._reference(f"{id(schema)} {selector}", schema, selector)

    def _expanded(self, schema: dict[str, Any], *, is_root: bool = False, selector: str = "") -> Any:
        found = self._document.effective(schema)
        if found.get("abstract") is True:
            return False
        kind = found.get("type")
        result: dict[str, Any]
        if isinstance(kind, list):
            result = {"anyOf": [self._member(one, found) for one in kind]}
        elif kind is None:
            result = {}
        else:
            result = self._kind(str(kind), found, is_root=is_root, selector=selector)
        return self._more(found, result)

    def _member(self, one: Any, union: dict[str, Any]) -> Any:
        """One type of a union, with what the union says of values of that kind: a nullable number keeps its bounds."""
        named = self._document.effective({"type": one})
        kind = named.get("type")
        if not isinstance(kind, str) or kind in _COMPOUND:
            return self._type({"type": one})
        said = {name: union[name] for name in _OF_VALUES if name in union}
        return self._more(named, self._kind(kind, {**named, **said}, is_root=False, selector=""))

    def _kind(self, kind: str, found: dict[str, Any], *, is_root: bool, selector: str) -> dict[str, Any]:
        if kind in _COMPOUND:
            if kind == "object":
                return self._object(found, is_root=is_root, selector=selector)
            return _COMPOUND[kind](self, found)
        bounds = self._bounds(found)
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            return {"type": "integer", "allOf": [{"minimum": low, "maximum": high}], **_numeric(bounds)}
        if kind in _NUMBERS:
            return {"type": "number", **_numeric(bounds)}
        if kind in STRING_INTEGERS:
            return self._string(kind, _integer_check(*STRING_INTEGERS[kind], bounds), bounds)
        if kind == "decimal":
            digits = {name: found[name] for name in ("precision", "scale") if isinstance(found.get(name), int)}
            return self._string(kind, _decimal_check(digits.get("precision"), digits.get("scale"), bounds),
                                {**bounds, **digits})  # fmt: skip
        if kind == "string":
            return {"type": "string", **self._only(found, _STRINGS)}
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        raise unusable(f"the type {kind} is not one of JSON Structure")

    def _bounds(self, found: dict[str, Any]) -> dict[str, Any]:
        """The bounds of a number; one that is wider than a JSON number has them as texts."""
        bounds = self._only(found, _BOUNDS)
        for name, value in bounds.items():
            if isinstance(value, str) and not _DECIMAL.fullmatch(value):
                raise unusable(f'{name} is "{value}", which is not a number')
        return bounds

    def _string(self, kind: str, check: Callable[[str], bool], said: dict[str, Any]) -> dict[str, Any]:
        name = f"js-{kind}" + "".join(f" {key} {said[key]}" for key in sorted(said))
        self.formats[name] = check
        return {"type": "string", "format": name}

    @property
    def _validates(self) -> bool:
        return "JSONStructureValidation" in self._extensions

    def _only(self, found: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        if not self._validates:
            return {}
        return {name: found[name] for name in names
                if name in found and (name != "format" or found[name] in _FORMATS)}  # fmt: skip

    def _more(self, found: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """What a type says besides its kind."""
        for name in ("enum", "const"):
            if name in found:
                result[name] = found[name]
        if "JSONStructureConditionalComposition" in self._extensions:
            parts: list[Any] = []
            for name in _LISTS:
                if isinstance(found.get(name), list):
                    parts.append({name: [self._type(one) for one in found[name]]})
            single = {name: self._type(found[name]) for name in _SINGLE if isinstance(found.get(name), dict)}
            if single:
                parts.append(single)
            if parts:
                result["allOf"] = [*result.get("allOf", ()), *parts]
        return result

    # ---- compound types

    def _object(self, found: dict[str, Any], *, is_root: bool, selector: str) -> dict[str, Any]:
        properties = {name: self._type(one) for name, one in found.get("properties", {}).items()}
        result: dict[str, Any] = {"type": "object", "properties": properties, **self._only(found, _OBJECTS)}
        required = found.get("required", [])
        if required and all(isinstance(one, list) for one in required):
            result["anyOf"] = [{"required": one} for one in required]
        elif required:
            result["required"] = [one for one in required if isinstance(one, str) and one != selector]
        others = found.get("additionalProperties", True)
        if isinstance(others, dict):
            result["additionalProperties"] = self._type(others)
        elif others is False:
            result["additionalProperties"] = False
        if selector:
            properties.setdefault(selector, True)
        if is_root:
            for addin in ({"$schema": True, "$uses": True}, *self._addins()):
                for name, one in addin.items():
                    properties.setdefault(name, one)
        result.update(self._names(found))
        return result

    def _names(self, found: dict[str, Any]) -> dict[str, Any]:
        """What is said of members by their names."""
        result: dict[str, Any] = {}
        if self._validates and isinstance(found.get("patternProperties"), dict):
            result["patternProperties"] = {name: self._type(one) for name, one in found["patternProperties"].items()}
        if self._validates and isinstance(found.get("propertyNames"), dict):
            result["propertyNames"] = self._type(found["propertyNames"])
        return result

    def _addins(self) -> list[dict[str, Any]]:
        """The members of each add-in type that a payload may use."""
        offers = self._document.root.get("$offers", {})
        found = []
        for given in offers.values() if isinstance(offers, dict) else ():
            for one in given if isinstance(given, list) else [given]:
                reference = one.get("$ref") if isinstance(one, dict) else one
                target = self._document.lookup(reference) if isinstance(reference, str) else one
                if isinstance(target, dict):
                    properties = self._document.effective(target).get("properties", {})
                    found.append({name: self._type(kind) for name, kind in properties.items()})
        return found

    def _array(self, found: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "array", **self._only(found, _ARRAYS)}
        if "items" in found:
            result["items"] = self._type(found["items"])
        if found.get("type") == "set":
            result["uniqueItems"] = True
        if self._validates and isinstance(found.get("contains"), dict):
            result["contains"] = self._type(found["contains"])
        return result

    def _map(self, found: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "object"}
        if "values" in found:
            result["additionalProperties"] = self._type(found["values"])
        if self._validates:
            for name, other in (("minEntries", "minProperties"), ("maxEntries", "maxProperties")):
                if name in found:
                    result[other] = found[name]
            if isinstance(found.get("keyNames"), dict):
                result["propertyNames"] = self._type(found["keyNames"])
            if isinstance(found.get("patternKeys"), dict):
                keys = {name: self._type(one) for name, one in found["patternKeys"].items()}
                result["allOf"] = [{"patternProperties": keys}]
        return result

    def _tuple(self, found: dict[str, Any]) -> dict[str, Any]:
        properties, order = found.get("properties", {}), found.get("tuple", [])
        items = [self._type(properties[name]) for name in order if name in properties]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(order)}

    def _choice(self, found: dict[str, Any]) -> dict[str, Any]:
        choices = found.get("choices", {})
        selector = found.get("selector")
        if "$extends" not in found or not isinstance(selector, str):
            properties = {name: self._type(one) for name, one in choices.items()}
            return {"type": "object", "properties": properties, "additionalProperties": False,
                    "minProperties": 1, "maxProperties": 1}  # fmt: skip
        variants = [
            {"if": {"properties": {selector: {"const": name}}}, "then": self._type(one, selector=selector)}
            for name, one in choices.items()
        ]
        return {"type": "object", "required": [selector], "properties": {selector: {"enum": list(choices)}},
                "allOf": variants}  # fmt: skip

    def _any(self, found: dict[str, Any]) -> dict[str, Any]:
        return {}


_COMPOUND: dict[str, Callable[[Translation, dict[str, Any]], dict[str, Any]]] = {
    "object": lambda one, found: one._object(found, is_root=False, selector=""),
    "array": Translation._array,
    "set": Translation._array,
    "map": Translation._map,
    "tuple": Translation._tuple,
    "choice": Translation._choice,
    "any": Translation._any,
}
_PLAIN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "date": {"type": "string", "format": "js-date"},
    "datetime": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "js-time"},
    "duration": {"type": "string", "format": "duration"},
    "uuid": {"type": "string", "format": "uuid"},
    "uri": {"type": "string", "format": "uri"},
    "binary": {"type": "string", "format": "js-binary"},
    "jsonpointer": {"type": "string", "format": "js-jsonpointer"},
}


def _says_more(schema: dict[str, Any]) -> bool:
    return any(name not in ANNOTATIONS and name not in ("$ref", "type") for name in schema)


def _rename(value: Any, names: dict[str, str]) -> None:
    """Give the references their places among the definitions."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if isinstance(one.get("$ref"), str) and one["$ref"].startswith("\0"):
                one["$ref"] = "#/$defs/" + names[one["$ref"][1:]]
            stack.extend(inner for name, inner in one.items() if name not in ("enum", "const"))
        elif isinstance(one, list):
            stack.extend(one)


def _plain_bounds(bounds: dict[str, Any]) -> dict[str, Any]:
    """Bounds as the later drafts have them: an exclusive one is a number, not a mark on another."""
    found = dict(bounds)
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(found.get(exclusive), bool) and found.pop(exclusive) and plain in found:
            found[exclusive] = found.pop(plain)
    return found


def _numeric(bounds: dict[str, Any]) -> dict[str, Any]:
    """Bounds of JSON numbers; a union with a wider type has them as texts."""
    return {name: json.loads(one) if isinstance(one, str) else one for name, one in _plain_bounds(bounds).items()}


def _within(value: Decimal, bounds: dict[str, Any]) -> bool:
    limits = {name: Decimal(str(one)) for name, one in _plain_bounds(bounds).items()}
    return not (
        ("minimum" in limits and value < limits["minimum"])
        or ("maximum" in limits and value > limits["maximum"])
        or ("exclusiveMinimum" in limits and value <= limits["exclusiveMinimum"])
        or ("exclusiveMaximum" in limits and value >= limits["exclusiveMaximum"])
        or (limits.get("multipleOf") and not _is_multiple(value, limits["multipleOf"]))
    )


def _is_multiple(value: Decimal, of: Decimal) -> bool:
    try:
        return _EXACT.remainder(value, of) == 0
    except InvalidOperation:  # the two are too many digits apart
        return False


def _integer_check(low: int, high: int, bounds: dict[str, Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            return False
        return not bounds or _within(Decimal(text), bounds)

    return check


def _decimal_check(precision: int | None, scale: int | None, bounds: dict[str, Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if not _DECIMAL.fullmatch(text):
            return False
        whole, _, fraction = text.removeprefix("-").partition(".")
        whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
        if scale is not None and len(fraction) > scale:
            return False
        if precision is not None and len(whole) + (len(fraction) if scale is None else scale) > precision:
            return False
        return not bounds or _within(Decimal(text), bounds)

    return check


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10 and text[4] == "-"
