"""A .proto text becomes descriptors: grpcio-tools' compiler on a private folder, and a pool of our own.

Rule 1: the compiler sees that folder and the well-known types, nothing else: an import is one of
`google/protobuf/*.proto`, or comes from `References` under the name the import gives.
Rule 2: descriptors live in a pool of their own, so that two schemas may define the same name.
Rule 3: problems carry line and column, and for imported texts the name of the import.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

# Not `grpc_tools.protoc`, the front door: it installs import hooks, adds to sys.path, and writes errors to stderr only.
from grpc_tools import _protoc_compiler

from signalbook.budget import spend
from signalbook.errors import Problem
from signalbook.schemas.format import LARGEST, REFERENCE, References, SchemaError, Text, unmarked, unsupported, unusable

__all__ = ["MOST_BLOCKS", "WELL_KNOWN", "Import", "Scan", "compile_text", "place", "scan", "tokens"]

# A first look at a .proto text, before the compiler sees it: what it imports, which language it is in, and its bounds.
#
# Rule 1: the compiler recurses without a bound and takes time that grows with the square of the number of blocks, of
# reserved numbers, and of numbers used twice; a text beyond these bounds is never compiled. No file that people write
# comes near them.
# Rule 2: places are counted from one, as line and column; what is wrong inside the bounds is the compiler's to say.


MOST_BLOCKS = 4_000
MOST_STATEMENTS = 20_000
MOST_RESERVED = 4_000
_TOKENS_A_STEP = 4
MOST_TOKENS = 500_000
DEEPEST = 64

_TOKEN = re.compile(
    r"""//[^\n]*|/\*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w.]*|\.?[0-9][\w.]*|\S""",
    re.ASCII,
)
_OPENS, _CLOSES = frozenset("{[(<"), frozenset("}])>")


@dataclass(frozen=True, slots=True)
class Import:
    """One import, and where its statement stands."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text says about itself; `language` is `proto2`, `proto3`, `edition …`, or empty where it says nothing."""

    language: str
    language_at: int
    imports: tuple[Import, ...]
    blocks: int


def place(text: str, at: int) -> str:
    """A position as line and column."""
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def scan(text: str) -> Scan:
    """Look through a text; `SchemaError` where it is beyond the bounds."""
    language, language_at = "", 0
    imports: list[Import] = []
    counts = _Counts()
    statement: list[str] = []
    begins = 0
    for token, at in tokens(text):
        if counts.tokens % _TOKENS_A_STEP == 0:
            spend()
        beyond = counts.beyond(token, statement[0] if statement else "")
        if beyond:
            raise _refused(text, at, f"too large to be compiled: {beyond}")
        if token in ("{", "}", ";"):
            if token == ";" and counts.depth == 0:
                if not language and (language := _language(statement)):
                    language_at = begins
                imports.extend(Import(name, begins) for name in _imported(statement))
            statement = []
        elif len(statement) < 4:
            if not statement:
                begins = at
            statement.append(token)
    return Scan(language, language_at, tuple(imports), counts.blocks)


class _Counts:
    """What a text has used up of its bounds."""

    __slots__ = ("blocks", "depth", "reserved", "statements", "tokens")

    def __init__(self) -> None:
        self.blocks = self.depth = self.reserved = self.statements = self.tokens = 0

    def beyond(self, token: str, first: str) -> str:
        """Count one word or sign of a statement that begins with `first`; the words for what is too much."""
        self.tokens += 1
        if token in _OPENS:
            self.depth += 1
            self.blocks += token == "{"
        elif token in _CLOSES:
            self.depth -= 1
        elif token in (",", ";"):
            self.statements += token == ";"
            self.reserved += first in ("reserved", "extensions")
        for used, most, what in (
            (self.depth, DEEPEST, "levels"),
            (self.blocks, MOST_BLOCKS, "blocks"),
            (self.statements, MOST_STATEMENTS, "statements"),
            (self.reserved, MOST_RESERVED, "reserved numbers"),
            (self.tokens, MOST_TOKENS, "words"),
        ):
            if used > most:
                return f"more than {most} {what}"
        return ""


def _language(statement: list[str]) -> str:
    if len(statement) < 3 or statement[0] not in ("syntax", "edition"):
        return ""
    said = statement[2][1:-1]
    return said if statement[0] == "syntax" else f"edition {said}"


def _imported(statement: list[str]) -> list[str]:
    if statement[:1] != ["import"] or statement[-1][:1] not in ("'", '"'):
        return []
    return [statement[-1][1:-1]]


def _refused(text: str, at: int, words: str) -> SchemaError:
    return SchemaError([Problem(place(text, at), "schema", words)])


def tokens(text: str) -> Iterator[tuple[str, int]]:
    """The words and signs of a text without its comments."""
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        token = found.group()
        if token == "/*":
            end = text.find("*/", at)
            # The compiler would report each of them.
            if end < 0 or text.find("/*", at, end) >= 0:
                raise _refused(text, found.start(), "a comment does not end, or holds the beginning of another")
            at = end + 2
        elif not token.startswith("//"):
            yield token, found.start()


WELL_KNOWN = frozenset(
    f"google/protobuf/{name}.proto"
    for name in (
        "any",
        "api",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    )
)
_INCLUDE = str(Path(grpc_tools.__file__).parent / "_proto")
_ROOT = "schema.proto"
_IMPORTS = 200
_PROBLEMS = 100
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_PROTO2 = 'syntax = "proto2";'
_DESCRIPTOR = "AddSerializedFile("

# The compiler warns through `warnings`, which one thread at a time may silence.
_turn = threading.Lock()


def _new_turn() -> None:
    global _turn  # a forked child gets a lock that nobody holds
    _turn = threading.Lock()


os.register_at_fork(after_in_child=_new_turn)


def compile_text(text: Text, references: References | None, language: str) -> FileDescriptor:
    """The descriptor of a text in `proto2` or `proto3`; `SchemaError` with what the compiler says."""
    source = _source(text, "")
    root = scan(source)
    _check_language(source, root, language)
    files = {_ROOT: source if root.language else _PROTO2 + source}
    _gather(source, root, references, files)
    found = _compiled(files, shift=0 if root.language else len(_PROTO2))
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for proto in found:
        parsed = FileDescriptorProto.FromString(proto)
        for name in parsed.dependency:
            _add_well_known(pool, name, known)
        try:
            pool.AddSerializedFile(proto)
        except TypeError as error:
            raise unusable(f"the compiled schema cannot be used: {error}") from None
    return pool.FindFileByName(_ROOT)


def _source(text: Text, where: str) -> str:
    if not isinstance(text, bytes | str):
        raise unusable("a Protobuf schema is text", where)
    if len(text) > LARGEST:
        raise unusable(f"the schema is larger than {LARGEST} bytes", where)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise unusable(f"not UTF-8: {error.reason} at byte {error.start}", where) from None
    if "\0" in text:
        raise unusable("a zero character in the text", place(text, text.index("\0")))
    return unmarked(text)


def _check_language(source: str, root: Scan, language: str) -> None:
    at = place(source, root.language_at)
    if root.language.startswith("edition"):
        raise unsupported(f"{root.language} is not supported; proto2 and proto3 are", at)
    said = root.language or "proto2"
    if said != language and said in ("proto2", "proto3"):
        hint = "" if root.language else ", which a text without a syntax statement is in"
        raise unusable(f"this format is {language}, the text is {said}{hint}", at)


def _gather(source: str, root: Scan, references: References | None, files: dict[str, str]) -> None:
    """Add every text that is imported, directly or not."""
    problems: list[Problem] = []
    waiting = [(source, "", root)]
    blocks = root.blocks
    while waiting:
        text, name, seen = waiting.pop()
        for one in seen.imports:
            if one.name in WELL_KNOWN or one.name in files:
                continue
            where = f"{name}:{place(text, one.at)}" if name else place(text, one.at)
            if one.name.startswith("google/protobuf/") or not _SAFE.fullmatch(one.name) or one.name == _ROOT:
                problems.append(Problem(where, "schema", f'"{one.name}" cannot be imported'))
                continue
            try:
                given = references(one.name) if references is not None and len(files) <= _IMPORTS else None
                given = _known_files().get(one.name) if given is None else given
                if given is None:
                    words = f'"{one.name}" is neither a well-known type nor in this catalog'
                    problems.append(Problem(where, REFERENCE, words))
                    continue
                imported = _source(given, one.name)
                inner = scan(imported)
            except SchemaError as error:
                problems.append(Problem(where, REFERENCE, f'"{one.name}" cannot be used: {error}'))
                continue
            files[one.name] = imported
            blocks += inner.blocks
            if inner.language.startswith("edition"):
                problems.append(Problem(one.name, REFERENCE, f"{inner.language} is not supported"))
            if not inner.language:
                files[one.name] = _PROTO2 + imported
            waiting.append((imported, one.name, inner))
    if blocks > MOST_BLOCKS:
        problems.append(Problem("", "schema", f"too large to be compiled: more than {MOST_BLOCKS} blocks with imports"))
    if problems:
        raise SchemaError(problems[:_PROBLEMS])


@cache
def _known_files() -> Mapping[str, str]:
    """Files that every registry of Confluent's knows beside the well-known types, by the names of their imports."""
    text = resources.files(__package__).joinpath("known_files.json").read_text("utf-8")
    found: Mapping[str, str] = json.loads(text)
    return found


def _compiled(files: dict[str, str], shift: int) -> list[bytes]:
    """The serialised descriptors of the texts, each after those it imports."""
    with tempfile.TemporaryDirectory(prefix="signalbook-proto-") as folder:
        try:
            for name, text in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode("utf-8", "surrogatepass"))
        except OSError:
            raise unusable(f"the names of the imports exclude each other: {', '.join(sorted(files))}") from None
        with _turn, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = _protoc_compiler.get_protos(_ROOT.encode(), [folder.encode(), _INCLUDE.encode()])
            except _protoc_compiler.ProtocErrors as errors:
                raise SchemaError(_problems(errors.args[0], shift, alone=len(files) == 1)) from None
    return [found for _, code in made if (found := _serialised(code)) is not None]


# What the compiler says of a name that an import should have brought, or of an import that has errors of its own.
_OF_IMPORTS = re.compile(r'.* is not defined\.|.* seems to be defined in .*|Import ".*" was not found or had errors\.')


def _problems(errors: list[Any], shift: int, *, alone: bool) -> list[Problem]:
    found = []
    for error in errors[:_PROBLEMS]:
        name, message = (
            os.fsdecode(part) if isinstance(part, bytes) else str(part) for part in (error.filename, error.message)
        )
        line, column = error.line, error.column
        if name == _ROOT and line == 0:
            column = max(0, column - shift)
        where = f"{line + 1}:{column + 1}" if line >= 0 else ""
        if name != _ROOT:
            where = f"{name}:{where}".rstrip(":")
        by_others = not alone and (name != _ROOT or _OF_IMPORTS.fullmatch(message))
        found.append(Problem(where, REFERENCE if by_others else "schema", message))
    return found


def _serialised(code: bytes) -> bytes | None:
    """The descriptor that the compiler wrote into its Python code; None for a well-known type."""
    for line in code.decode().splitlines():
        if line.startswith("DESCRIPTOR = ") and _DESCRIPTOR in line:
            found = ast.literal_eval(line[line.index(_DESCRIPTOR) + len(_DESCRIPTOR) : line.rindex(")")])
            assert isinstance(found, bytes)
            return None if FileDescriptorProto.FromString(found).name in WELL_KNOWN else found
    return None


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str, known: set[str]) -> None:
    if name not in WELL_KNOWN or name in known:
        return
    known.add(name)
    module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    for other in module.DESCRIPTOR.dependencies:
        _add_well_known(pool, other.name, known)
    pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
