"""The commands schema check, diff, validate and columns: what a schema is, takes, breaks, and looks like as a table.

Rule 1: findings go to standard output, one a line, or with --json one object a line; exit code 1 says there are any.
Rule 2: nothing is read besides the files that are named; what a schema refers to is named with --reference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson

from signalbook import schemas
from signalbook.cli.output import Exit, print_json, print_words, say
from signalbook.errors import Problem, UsageError
from signalbook.schemas import COMPATIBILITIES, Difference, References, Schema, SchemaError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["guess_format", "schema"]

Command = TypeVar("Command", bound=Callable[..., Any])

_FORMAT = click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="The schema format, such as JsonSchema/draft-07; by default found from the file's suffix and content.",
)
_AT = click.option("--at", "fragment", metavar="FRAGMENT", help="A deep link to the part of the schema that is meant.")
_REFERENCE = click.option(
    "--reference",
    "references",
    metavar="NAME=FILE",
    multiple=True,
    help="A document that the schema refers to by this name; may be repeated.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a finding and line.")


@dataclass(frozen=True, slots=True)
class _SchemaOptions:
    """What the options say about how schemas are read."""

    format: str | None
    references: tuple[str, ...]
    fragment: str | None = None


def _reading(command: Command) -> Command:
    """Give a command the options that say how a schema is read."""
    return _FORMAT(_REFERENCE(command))


@click.group(short_help="Check, compare and use schemas.", epilog="Example: signalbook schema diff old.avsc new.avsc")
def schema() -> None:
    """Check and compare schemas, check payloads by them, and show their columns, without a registry.

    A schema is a file of any format that the registry knows; - is standard input.
    """


@schema.command(
    short_help="Check a schema document.",
    epilog="Example: signalbook schema check order.avsc\n\nExample: signalbook schema check --json order.proto",
)
@click.argument("file", metavar="FILE")
@_reading
@_AT
@_JSON
def check(file: str, format_: str | None, references: tuple[str, ...], fragment: str | None, as_json: bool) -> int:
    """Check that a file holds a schema of its format, and name what is wrong with it."""
    asked = _SchemaOptions(format_, references, fragment)
    try:
        read = _read_schema(file, asked)
    except SchemaError as error:
        return _print_problems(file, error.problems, as_json)
    say(f"{file}: a schema of the format {read.format}")
    return Exit.OK


@schema.command(
    short_help="Compare two versions of a schema.",
    epilog="Example: signalbook schema diff old.avsc new.avsc\n\n"
    "Example: signalbook schema diff --compatibility full --json old.xsd new.xsd",
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--compatibility",
    type=click.Choice([name for name in COMPATIBILITIES if "_" not in name]),
    default="backward",
    show_default=True,
    help="The required compatibility: new readers read old data, old readers read new data, or both.",
)
@click.option("--trust-unknown", is_flag=True, help="Accept changes that cannot be decided.")
@_reading
@_JSON
def diff(
    old: str,
    new: str,
    compatibility: str,
    trust_unknown: bool,
    format_: str | None,
    references: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare two versions of a schema and name each change that breaks a promise.

    The exit code is 1 where a change breaks the promise that --compatibility names; those that break only the other
    one are shown as well.
    """
    asked = _SchemaOptions(format_, references)
    both: list[Schema] = []
    for file in (old, new):
        try:
            both.append(_read_schema(file, asked))
        except SchemaError as error:
            return _print_problems(file, error.problems, as_json)
    directions = {"backward", "forward"} if compatibility == "full" else {compatibility}
    kept = {"backward": True, "forward": True}
    for found in schemas.compatible(both, "full"):
        trusted = trust_unknown and not found.certain
        breaking = not trusted and not directions.isdisjoint(found.breaks)
        if as_json:
            print_json({**_difference_to_json(found), "breaking": breaking}, compact=True)
        else:
            print_words(_difference_in_words(found))
        for direction in found.breaks if not trusted else ():
            kept[direction] = False
    if not as_json:
        say(", ".join(f"{name} compatible: {'yes' if holds else 'no'}" for name, holds in kept.items()))
    return Exit.OK if all(kept[direction] for direction in directions) else Exit.REFUSED


@schema.command(
    short_help="Check payloads by a schema.",
    epilog="Example: signalbook schema validate order.json payload1.json payload2.json\n\n"
    "Example: signalbook schema validate --at :Order orders.proto payload.bin",
)
@click.argument("file", metavar="SCHEMA")
@click.argument("payloads", metavar="PAYLOAD...", nargs=-1, required=True)
@_reading
@_AT
@click.option("--contenttype", default="", metavar="TYPE", help="The media type of the payloads.")
@_JSON
def validate(
    file: str,
    payloads: tuple[str, ...],
    format_: str | None,
    references: tuple[str, ...],
    fragment: str | None,
    contenttype: str,
    as_json: bool,
) -> int:
    """Check payloads by a schema and name what is wrong, with its place in the payload."""
    if (file, *payloads).count("-") > 1:
        raise UsageError("standard input can be read only once; give - for one file only")
    try:
        read = _read_schema(file, _SchemaOptions(format_, references, fragment))
    except SchemaError as error:
        return _print_problems(file, error.problems, as_json)
    wrong = 0
    for payload in payloads:
        problems = read.check(_file_bytes(payload), contenttype).problems
        wrong += bool(problems)
        _print_problems(payload, problems, as_json)
    if not as_json:
        say(f"{len(payloads)} payload(s) checked: {wrong} invalid")
    return Exit.REFUSED if wrong else Exit.OK


@schema.command(
    short_help="Show the columns of a schema.", epilog="Example: signalbook schema columns --json order.avsc"
)
@click.argument("file", metavar="FILE")
@_reading
@_AT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a column and line.")
def columns(file: str, format_: str | None, references: tuple[str, ...], fragment: str | None, as_json: bool) -> int:
    """Show the columns, with their Arrow types, of a table that holds such payloads."""
    try:
        struct: Any = _read_schema(file, _SchemaOptions(format_, references, fragment)).columns()
    except SchemaError as error:
        return _print_problems(file, error.problems, as_json)
    for field in struct:
        if as_json:
            print_json({"name": field.name, "type": str(field.type), "nullable": field.nullable}, compact=True)
        else:
            for line in _column(field, ""):
                print_words(line)
    return Exit.OK


def _column(field: pyarrow.Field[Any], indent: str) -> Iterator[str]:
    """A line for a column, and one for each that lies in it."""
    kind: Any = field.type
    inner = _struct_in(kind)
    name = str(kind) if inner is None else str(kind).replace(str(inner), "struct")
    yield f"{indent}{field.name}: {name}{'' if field.nullable else ' not null'}"
    for part in inner if inner is not None else ():
        yield from _column(part, indent + "  ")


def _struct_in(kind: Any) -> Any:
    """The struct that a type is, or is a list or map of; None where there is none."""
    for name in ("value_type", "item_type"):
        while hasattr(kind, name):
            kind = getattr(kind, name)
    return kind if str(kind).startswith("struct<") else None


# Reading -------------------------------------------------------------------------------------------------------------


def _read_schema(file: str, asked: _SchemaOptions) -> Schema:
    text = _file_bytes(file)
    name = asked.format or guess_format(file, text)
    if schemas.find(name) is None:
        known = ", ".join(row.name for row in schemas.FORMATS)
        raise UsageError(f'"{name}" is not one of the formats {known}')
    read = schemas.read(name, text, _references(asked.references))
    return read.at(asked.fragment) if asked.fragment else read


def _references(given: tuple[str, ...]) -> References:
    files: dict[str, str] = {}
    for one in given:
        name, equals, file = one.partition("=")
        if not equals or not name or not file:
            raise UsageError(f"--reference {one!r} is not NAME=FILE")
        files[name] = file
    return lambda uri: _file_bytes(files[uri]) if uri in files else None


def _file_bytes(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


# What a suffix says by itself.
_SUFFIXES = {".avsc": "Avro/*", ".xsd": "XSD/1.0"}
_SYNTAX = re.compile(rb"""^\s*(?:syntax\s*=\s*["'](proto[23])["']|(?:package|import|message|enum|option)\b)""", re.M)


def guess_format(file: str, text: bytes) -> str:
    """The format that a file's suffix, its `$schema` or its content tells; `UsageError` where none of them does.

    >>> guess_format("order.avsc", b"{}"), guess_format("-", b'{"$schema": "https://json-schema.org/draft-07/schema"}')
    ('Avro/*', 'JsonSchema')
    """
    suffix = PurePath(file).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    start = text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<":
        return "XSD/1.0"
    if start in (b"{", b"[", b'"'):
        return _guess_json(text)
    found = _SYNTAX.search(text)
    if suffix == ".proto" or found:
        return "Protobuf/2" if found is None or found[1] != b"proto3" else "Protobuf/3"
    raise UsageError(f"the format of '{file}' cannot be recognised; name it with --format")


def _guess_json(text: bytes) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return "JsonSchema"  # whose reader says what is wrong with the text
    if not isinstance(value, dict):
        return "Avro/*"
    if "json-structure" in str(value.get("$schema", "")):
        return "JsonStructure/draft-04"
    is_avro = value.get("type") in ("record", "enum", "fixed") and "name" in value and "$schema" not in value
    return "Avro/*" if is_avro else "JsonSchema"


# Showing -------------------------------------------------------------------------------------------------------------


def _print_problems(file: str, problems: tuple[Problem, ...], as_json: bool) -> int:
    for problem in problems:
        if as_json:
            print_json({"file": file, "path": problem.path, "message": problem.message}, compact=True)
        else:
            print_words(f"{file}: {problem.path + ': ' if problem.path else ''}{problem.message}")
    return Exit.REFUSED if problems else Exit.OK


def _difference_to_json(found: Difference) -> dict[str, Any]:
    return {
        "path": found.path,
        "kind": found.kind,
        "message": found.message,
        "breaks": sorted(found.breaks),
        "certain": found.certain,
    }


def _difference_in_words(found: Difference) -> str:
    breaks = " and ".join(sorted(found.breaks))
    how = "breaks" if found.certain else "cannot be decided; may break"
    return f"{found.path or '/'}: {found.message} [{found.kind}]: {how} {breaks}"
