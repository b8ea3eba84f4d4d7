"""Reading catalog documents: where they are, and JSON or YAML made into plain values.

Rule 1: a document is one JSON object; YAML is read as JSON's types only (no dates, no `yes` for true), so that the
same catalog means the same in both.
Rule 2: whatever is wrong with a source is a `UsageError` that names the file and, where known, the line.
Rule 3: what a registry could not keep as it stands is wrong here already (`document.json_text`): a name given twice,
an integer beyond 64 bits, a fraction with more digits than a double has. Only what a server answers is taken as it is.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import orjson
import yaml

from signalbook.document.attribute import model_error
from signalbook.document.json_text import find_flaw, keeps_integer, keeps_number, parse_json
from signalbook.errors import RegistryError, UsageError

__all__ = [
    "SUFFIXES",
    "YAML_SUFFIXES",
    "Document",
    "UnreadableDocument",
    "choose_model",
    "document_files",
    "every_file",
    "file_bytes",
    "include_loader",
    "parse_document",
    "parse_value",
    "read_document",
    "read_documents",
    "read_model",
]

YAML_SUFFIXES = (".yaml", ".yml")
SUFFIXES = (".json", *YAML_SUFFIXES)
# In a folder that has files named so, only these are catalogs; other JSON files there are schemas or examples.
CATALOG_SUFFIXES = tuple(f".xreg{suffix}" for suffix in SUFFIXES)
STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Document:
    """One catalog document: where it was read from, and what it says."""

    source: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """A place that should hold a catalog document and does not: where, and why in words."""

    source: str
    reason: str


_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_INTEGER = 21  # the digits of 64 bits and a sign


class _JsonTypesLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """YAML with the types of JSON: the core schema of YAML 1.2, every name of a mapping a text and there once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for name_node, value_node in node.value:
            name = self._name(name_node)
            if name in mapping:
                raise _flaw(f'the name "{name}" appears more than once in one object', name_node)
            mapping[name] = self.construct_object(value_node, deep=deep)
        return mapping

    def _name(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _flaw("a name must be a text", node)
        name = self.construct_object(node)
        return name if isinstance(name, str) else orjson.dumps(name).decode()

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if not _INTEGER.fullmatch(node.value):
            raise _flaw("not an integer as JSON has them", node)
        if len(node.value) > _LONGEST_INTEGER or not keeps_integer(number := int(node.value)):
            raise _flaw("an integer beyond 64 bits", node)
        return number

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        if not _FRACTION.fullmatch(node.value):
            raise _flaw("not a number as JSON has them", node)
        if not keeps_number(node.value):
            raise _flaw("a number with more digits or a larger exponent than a double keeps", node)
        return float(node.value)


def _flaw(words: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=words, problem_mark=node.start_mark)


for _type in ("int", "float"):
    _JsonTypesLoader.add_constructor(f"tag:yaml.org,2002:{_type}", getattr(_JsonTypesLoader, f"construct_yaml_{_type}"))

_JsonTypesLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", _INTEGER.pattern, "-+0123456789"),
    ("float", _FRACTION.pattern, "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _JsonTypesLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def read_documents(location: str, stdin: Callable[[], IO[bytes]] | None = None) -> Iterator[Document]:
    """Each catalog document at `location`: a file, a folder (read in order of names), or `-` for standard input."""
    path = Path(location)
    if location == STANDARD_INPUT:
        stream = stdin() if stdin else sys.stdin.buffer
        yield Document("standard input", parse_document(stream.read(), "standard input", yaml_allowed=True))
    else:
        for file in document_files(path):
            yield read_document(file)


def document_files(path: Path) -> list[Path]:
    """The files that hold the catalog at a path: itself, or those of a folder in order of their names."""
    files = every_file(path)
    return [file for file in files if file.name.endswith(CATALOG_SUFFIXES)] or files if path.is_dir() else files


def every_file(path: Path) -> list[Path]:
    """The files at a path that may hold a catalog: itself, or all of a folder, those that a load passes over too."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and _visible(file, path))
    if not files:
        raise UsageError(f"the folder '{path}' holds no .json, .yaml or .yml file")
    return files


def read_document(path: Path) -> Document:
    """The document in one file."""
    return Document(str(path), parse_document(file_bytes(path), str(path), yaml_allowed=path.suffix in YAML_SUFFIXES))


def choose_model(choice: str) -> str | dict[str, Any]:
    """What `--model` means: the name `builtin` or `empty` as it is, or the model source in the file it names."""
    return choice if choice in ("builtin", "empty") else read_model(Path(choice))


def read_model(path: Path) -> dict[str, Any]:
    """The model source in a file, with its `$include`s resolved from files beside it and below."""
    from signalbook.document import include

    source = read_document(path).content
    root = path.resolve().parent

    def load(address: str) -> Any:
        if not address.startswith("file:"):
            raise UsageError(f"'{path}' includes '{address}'; only files beside it can be included, nothing is fetched")
        target = Path(unquote(urlsplit(address).path)).resolve()
        if not target.is_relative_to(root):
            raise UsageError(f"'{path}' includes '{target}', which lies outside its folder '{root}'")
        return read_document(target).content

    resolved = include.resolve(source, load, path.resolve().as_uri())
    # A whole registry document may be given: then its model is meant.
    model = resolved.get("modelsource") or resolved.get("model") or resolved
    if not isinstance(model, dict):
        raise UsageError(f"'{path}' holds no model; a model is an object with 'groups'")
    return model


def include_loader(folder: Path) -> Callable[[str], Any]:
    """What `$include` in a model that a client sends may load: documents of one folder, by relative names."""
    root = folder.resolve()

    def load(address: str) -> Any:
        target = (root / unquote(address)).resolve()
        if urlsplit(address).scheme or not target.is_relative_to(root) or not target.is_file():
            raise model_error(f'"{address}" is not a document that can be included here')
        try:
            return read_document(target).content
        except UsageError:
            raise model_error(f'"{address}" is not a document that can be included here') from None

    return load


def _visible(file: Path, folder: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)


def file_bytes(path: Path) -> bytes:
    """What a file holds."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file or folder '{path}'") from None
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}") from None


def parse_document(content: bytes, source: str, *, yaml_allowed: bool, answered: bool = False) -> dict[str, Any]:
    """The document in a text that came from `source`; `answered` where that is a server, which may inline anything."""
    value = parse_value(content, source, yaml_allowed=yaml_allowed, answered=answered)
    if not isinstance(value, dict):
        raise UsageError(f"{source} holds {_kind(value)}; a catalog document is one JSON object")
    return value


def parse_value(content: bytes, source: str, *, yaml_allowed: bool, answered: bool = False) -> Any:
    """The JSON or YAML value in a text that came from `source`."""
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        if yaml_allowed and not content.lstrip().startswith(b"{"):
            return _yaml(content)
        return orjson.loads(content) if answered else parse_json(content, source)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{source} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RegistryError as error:
        raise UsageError(f"{source} is not JSON: {_located(content, error)}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{source} is not YAML: {getattr(error, 'problem', None) or error}{place}") from None
    except TypeError as error:
        raise UsageError(f"{source} holds a value that JSON cannot hold: {error}") from None
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply to be read") from None


def _located(content: bytes, error: RegistryError) -> str:
    """Why a text was refused, with the line where it is."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return error.args_["error_detail"]
    found = find_flaw(text)
    if found is None:
        return error.args_["error_detail"]
    words, at = found
    return f"{words} at line {text.count(NEWLINE, 0, at) + 1}, column {at - text.rfind(NEWLINE, 0, at)}"


NEWLINE = "\n"


def _yaml(content: bytes) -> Any:
    value = yaml.load(content, _JsonTypesLoader)
    _bound(value)
    # Once through JSON: what JSON cannot hold is refused here and not half way in.
    return orjson.loads(orjson.dumps(value))


MAX_VALUES = 5_000_000


def _bound(value: Any) -> None:
    """Refuse a document that a few aliases blow up to more values than a catalog has."""
    sizes: dict[int, int] = {}

    def size(part: Any) -> int:
        if not isinstance(part, dict | list):
            return 1
        if id(part) not in sizes:
            sizes[id(part)] = MAX_VALUES  # what an alias inside itself counts for
            members = part.values() if isinstance(part, dict) else part
            sizes[id(part)] = 1 + sum(size(member) for member in members)
        return sizes[id(part)]

    if size(value) > MAX_VALUES:
        raise yaml.YAMLError(f"its aliases make more than {MAX_VALUES:,} values of it")


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")
