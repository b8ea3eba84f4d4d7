"""The table of schema formats: one row each, for documents, payloads, compatibility, samples and columns.

Rule 1: a format is a row of `FORMATS`; its modules, and the libraries under them, are imported on first use.
Rule 2: a name is looked up without regard to case, by the canonical name and then by the spellings of real catalogs.
Rule 3: what cannot be decided is not compatible, unless the caller trusts the unknown.
Rule 4: a sample has passed the schema's own check; where nothing did, there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import islice
from typing import Any

from signalbook.budget import Cancelled, current, within
from signalbook.schemas.format import (
    BREAKS_BOTH,
    MOST_STEPS,
    SECOND,
    Checked,
    Difference,
    Direction,
    Format,
    References,
    Schema,
    SchemaError,
    StepBudget,
    Text,
    TooMuch,
    unsupported,
    unusable,
)

__all__ = [
    "COMPATIBILITIES",
    "FORMATS",
    "Checked",
    "Difference",
    "Format",
    "References",
    "Schema",
    "SchemaError",
    "StepBudget",
    "compatible",
    "find",
    "media_type",
    "payload_of",
    "read",
    "sample",
]

# FMT-8: the promises that a registry can be asked to hold, and the directions each one means.
_DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "backward": ("backward",),
    "forward": ("forward",),
    "full": ("backward", "forward"),
}
COMPATIBILITIES = tuple(f"{rule}{suffix}" for rule in _DIRECTIONS for suffix in ("", "_transitive"))

# The steps that any comparison takes.
_EACH = 20

_JSON = ("application/json", "text/json", "*/*+json")


# What reading one schema, with those that it refers to, may take.
MOST_READING = 10 * SECOND
# What making one sample may take.
MOST_SAMPLING = SECOND


@dataclass(frozen=True, slots=True)
class _Late:
    """A function of a module of this package, imported with its first call."""

    module: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        try:
            found = getattr(import_module(f"{__name__}.{self.module}"), self.name)
        except ModuleNotFoundError as error:
            raise unsupported(f"this format needs the Python package {error.name}, which is not installed") from error
        return found(*arguments)


class _LateReader(_Late):
    """What reads the documents of a format, within a budget."""

    def __call__(self, *arguments: Any) -> Any:
        with within(current().part(MOST_READING, "Reading this schema")) as budget:
            try:
                return _Late.__call__(self, *arguments)
            except TooMuch as error:
                if error.budget is not budget or isinstance(error, Cancelled):
                    raise
                raise unusable(str(error)) from None


FORMATS: tuple[Format, ...] = (
    Format(
        "JsonSchema/draft-07",
        ("jsonschema/draft7", "jsonschema/draft-7", "jsonschema/draft07", "jsonschema/draft/07", "jsonschema/draft/7"),
        _LateReader("json_schema.schema", "read_draft_07"),
        _Late("json_schema.compare", "compare"),
        _Late("json_schema.samples", "encode"),
        _Late("json_schema.samples", "samples"),
        _JSON,
    ),
    Format(
        "JsonSchema/draft/2019-09",
        # Draft 8 is what 2019-09 was called until it came out.
        (
            *("jsonschema/draft-2019-09", "jsonschema/2019-09", "jsonschema/draft2019-09", "jsonschema/draft201909"),
            *("jsonschema/draft-08", "jsonschema/draft-8", "jsonschema/draft8", "jsonschema/draft08"),
        ),
        _LateReader("json_schema.schema", "read_draft_2019_09"),
        _Late("json_schema.compare", "compare"),
        _Late("json_schema.samples", "encode"),
        _Late("json_schema.samples", "samples"),
        _JSON,
    ),
    Format(
        "JsonSchema/draft/2020-12",
        ("jsonschema/draft-2020-12", "jsonschema/2020-12", "jsonschema/draft2020-12", "jsonschema/draft202012"),
        _LateReader("json_schema.schema", "read_draft_2020_12"),
        _Late("json_schema.compare", "compare"),
        _Late("json_schema.samples", "encode"),
        _Late("json_schema.samples", "samples"),
        _JSON,
    ),
    # Without a draft in the name, `$schema` says which; the schema that is read then has that draft's format.
    Format(
        "JsonSchema",
        ("json", "json schema", "json-schema"),
        _LateReader("json_schema.schema", "read_any_draft"),
        _Late("json_schema.compare", "compare"),
        _Late("json_schema.samples", "encode"),
        _Late("json_schema.samples", "samples"),
        _JSON,
    ),
    Format(
        "Avro/*",
        ("avro",),
        _LateReader("avro.payload", "read"),
        _Late("avro.compare", "compare"),
        _Late("avro.encode", "encode"),
        _Late("avro.encode", "samples"),
        ("application/vnd.apache.avro", "application/avro", "avro/binary", "application/vnd.apache.avro+json"),
    ),
    Format(
        "Protobuf/2",
        ("protobuf/2.*", "proto2", "protobuf/proto2", "proto/2"),
        _LateReader("protobuf.schema", "read_proto2"),
        _Late("protobuf.compare", "compare"),
        _Late("protobuf.schema", "encode"),
        _Late("protobuf.schema", "samples"),
        ("application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf"),
    ),
    Format(
        "Protobuf/3",
        ("protobuf/3.*", "proto3", "protobuf/proto3", "protobuf", "proto/3"),
        _LateReader("protobuf.schema", "read_proto3"),
        _Late("protobuf.compare", "compare"),
        _Late("protobuf.schema", "encode"),
        _Late("protobuf.schema", "samples"),
        ("application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf"),
    ),
    Format(
        "XSD/1.0",
        ("xsd", "xmlschema", "xmlschema/1.0", "xml schema/1.0"),
        _LateReader("xsd.schema", "read"),
        _Late("xsd.compare", "compare"),
        _Late("xsd.schema", "encode"),
        _Late("xsd.schema", "samples"),
        ("application/xml", "text/xml", "*/*+xml"),
    ),
    Format(
        "JsonStructure/draft-04",
        (
            "jsonstructure",
            "jsonstructure/draft4",
            "jsonstructure/draft04",
            "jsonstructure/draft-4",
            "jsonstructure/draft-0[23]",
        ),
        _LateReader("json_structure.schema", "read"),
        _Late("json_structure.compare", "compare"),
        _Late("json_schema.samples", "encode"),
        _Late("json_structure.schema", "samples"),
        _JSON,
    ),
)

# The newest row of each family; all rows of a family write payloads alike.
_FAMILIES = {row.family: row for row in FORMATS}
# How many sample payloads are tried.
_ATTEMPTS = 32


def find(name: str) -> Format | None:
    """The row that a format's name belongs to, or None.

    >>> find("jsonschema/DRAFT-07").name, find("Avro/1.9.0").name, find("Numbers/1")
    ('JsonSchema/draft-07', 'Avro/*', None)
    """
    lowered = name.strip().lower()
    for row in FORMATS:
        if any(fnmatchcase(lowered, spelling) for spelling in (row.name.lower(), *row.aliases)):
            return row
    return None


def media_type(name: str) -> str | None:
    """The usual content type of a format's payloads; all its versions have the same, also those not supported.

    >>> media_type("Avro/1.9.0"), media_type("JsonSchema/draft-04"), media_type("Numbers/1")
    ('application/vnd.apache.avro', 'application/json', None)
    """
    family = name.partition("/")[0].strip().lower()
    row = find(name) or next((row for row in FORMATS if row.family == family), None)
    return None if row is None else row.media[0]


def read(format: str, text: Text, references: References | None = None) -> Schema:
    """The schema that a document holds; `SchemaError` where it holds none, or where the format is unknown."""
    row = find(format)
    if row is None:
        raise unsupported(f'the format "{format}" is not one of {", ".join(row.name for row in FORMATS)}')
    return row.read(text, references)


def compatible(
    older_to_newer: Sequence[Schema], rule: str, *, trust_unknown: bool = False, budget: StepBudget | None = None
) -> Iterator[Difference]:
    """Yield what breaks a promise between the newest schema of a lineage and those before it; nothing: it holds.

    A rule that ends in `_transitive` looks at all that went before, any other at the last one. What is not decided when
    the steps of the budget are spent is unknown; each comparison has a limit of its own besides.
    """
    name, _, transitive = rule.lower().partition("_")
    if name not in _DIRECTIONS or transitive not in ("", "transitive"):
        raise ValueError(f'"{rule}" is not one of {", ".join(COMPATIBILITIES)}')
    if len(older_to_newer) < 2:
        return
    directions = frozenset(_DIRECTIONS[name])
    newest = older_to_newer[-1]
    seen: set[Difference] = set()
    for older in older_to_newer[:-1] if transitive else older_to_newer[-2:-1]:
        part = StepBudget(MOST_STEPS) if budget is None else budget.part(MOST_STEPS)
        for difference in _compare(older, newest, part):
            broken = difference.breaks & directions
            if broken and (difference.certain or not trust_unknown):
                found = replace(difference, breaks=broken)
                if found not in seen:
                    seen.add(found)
                    yield found


def _compare(older: Schema, newer: Schema, budget: StepBudget) -> Iterator[Difference]:
    """The differences of two schemas; two formats have no common ground, but drafts and releases of one do."""
    first, second = find(older.format), find(newer.format)
    if first is None or second is None or first.family != second.family:
        message = f"the format changes from {older.format} to {newer.format}"
        yield Difference("", "format_changed", message, BREAKS_BOTH)
        return
    try:
        budget.spend(_EACH)
        found = second.compare(older, newer, budget)
        while (difference := _next(found, budget)) is not None:
            yield difference
    except TooMuch:
        words = f"not decided within {MOST_STEPS:,} steps, or those that are left for all comparisons together"
        yield Difference("", "too_large", words, BREAKS_BOTH, certain=False)


def _next(found: Iterator[Difference], budget: StepBudget) -> Difference | None:
    """One more difference, found within the budget, which whoever is given it is not within."""
    with within(budget):
        return next(found, None)


def payload_of(schema: Schema, value: Any, contenttype: str = "") -> bytes:
    """Return a value as a payload of the schema's format, without asking whether the schema takes it.

    Bytes are a payload already, and are never changed. A value that cannot be written raises `BadValue`.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _row(schema).encode(schema, value, contenttype)


def sample(schema: Schema, contenttype: str = "") -> bytes | None:
    """Return a payload that the schema takes, or None where none was found."""
    budget = current().part(MOST_SAMPLING, "Making a sample")
    try:
        with within(budget):
            for payload in islice(_row(schema).samples(schema, contenttype), _ATTEMPTS):
                if not schema.check(payload, contenttype).problems:
                    return payload
    except TooMuch as error:
        if error.budget is not budget:
            raise
        return None
    except (ValueError, ArithmeticError, RecursionError):  # a schema that asks for what no sample can be made of
        return None
    return None


def _row(schema: Schema) -> Format:
    return _FAMILIES[schema.format.partition("/")[0].lower()]
