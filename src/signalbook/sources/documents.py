"""Reading catalog documents: where they are, and JSON or YAML made into plain values.

Rule 1: a document is one JSON object; YAML is read as JSON's types only (no dates, no `yes` for true), so that the
same catalog means the same in both.
Rule 2: whatever is wrong with a source is a `UsageError` that names the file and, where known, the line.
Rule 3: what a registry could not keep as it stands is wrong here already (`jsontext`): a name given twice,
an integer beyond 64 bits, a fraction with more digits than a double has. Only what a server answers is taken as it is.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import orjson
import yaml

from signalbook.client import DEEPEST_REPLY
from signalbook.dialects.catalog01_documents import in_line
from signalbook.dialects.convert import Detection, ForeignDocument, detect, whole
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.jsontext import MAX_DEPTH, find_flaw, is_deeper, keeps_integer, keeps_number, parse_json
from signalbook.model.attributes import model_error
from signalbook.spec.dialects import DIALECTS, Dialect
from signalbook.spec.versions import DEFAULT

__all__ = [
    "SUFFIXES",
    "YAML_SUFFIXES",
    "Document",
    "Entry",
    "Part",
    "Raw",
    "UnreadableDocument",
    "choose_model",
    "document_files",
    "every_file",
    "file_bytes",
    "in_canonical",
    "include_loader",
    "metadata",
    "parse_document",
    "parse_value",
    "parts",
    "read_document",
    "read_documents",
    "read_each",
    "read_every",
    "read_model",
    "read_raw",
    "recognise",
    "with_history",
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


def _flaw(words: str, where: Any) -> yaml.MarkedYAMLError:
    """An error at a node or an event."""
    return yaml.MarkedYAMLError(problem=words, problem_mark=where.start_mark)


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
    from signalbook.model import model as include

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
        return _read_answer(content) if answered else parse_json(content, source)
    except orjson.JSONDecodeError as error:
        if "depth" in error.msg:
            raise UsageError(f"{source} is nested too deeply to be read") from None
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


def _read_answer(content: bytes) -> Any:
    """What a registry answered: it may hold what could not be stored here, within bounds."""
    value = orjson.loads(content)
    if is_deeper(value, DEEPEST_REPLY):
        raise RecursionError
    return value


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
    words = words.removeprefix("path '.': ")  # the whole document: the line says where
    return f"{words} at line {text.count(NEWLINE, 0, at) + 1}, column {at - text.rfind(NEWLINE, 0, at)}"


NEWLINE = "\n"


def _yaml(content: bytes) -> Any:
    _refuse_deep(content)
    value = yaml.load(content, _JsonTypesLoader)
    _bound(value)
    # Once through JSON: what JSON cannot hold is refused here and not half way in.
    return orjson.loads(orjson.dumps(value))


MAX_VALUES = 5_000_000


_DEEP = f"nested deeper than {MAX_DEPTH} levels"


def _refuse_deep(content: bytes) -> None:
    """Refuse a text that is nested deeper than JSON may be, before libyaml composes it by recursion in C."""
    depth = 0
    for event in yaml.parse(content, _JsonTypesLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _flaw(_DEEP, event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _bound(value: Any) -> None:
    """Refuse a document that a few aliases blow up to more values, or more levels, than a catalog has."""
    sizes: dict[int, int] = {}
    heights: dict[int, int] = {}

    def measure(part: Any, depth: int) -> tuple[int, int]:
        if not isinstance(part, dict | list):
            return 1, 0
        if id(part) not in sizes:
            if depth > MAX_DEPTH:
                raise yaml.YAMLError(_DEEP)
            sizes[id(part)], heights[id(part)] = MAX_VALUES, 0  # what an alias inside itself counts for
            members = part.values() if isinstance(part, dict) else part
            measured = [measure(member, depth + 1) for member in members]
            sizes[id(part)] = 1 + sum(size for size, _ in measured)
            heights[id(part)] = 1 + max((height for _, height in measured), default=0)
        return sizes[id(part)], heights[id(part)]

    size, height = measure(value, 1)
    if size > MAX_VALUES:
        raise yaml.YAMLError(f"its aliases make more than {MAX_VALUES:,} values of it")
    if height > MAX_DEPTH:
        raise yaml.YAMLError(_DEEP)


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")


# Cutting a catalog document into requests that a registry takes one by one.
#
# Rule 1: a document's groups go in as they stand; the registry's own read-only members stay behind.
# Rule 2: a part is bounded in entries and in bytes. A group's first part writes the group; what does not fit follows in
# parts that only add to it, so no part undoes what an earlier one wrote.


MAX_ENTRIES = 500
MAX_BYTES = 4 * 1024 * 1024

# core/spec.md "Registry Entity": what a registry says about itself and a client cannot set.
READ_ONLY = frozenset(
    {"$schema", "specversion", "registryid", "self", "shortself", "xid", "epoch", "createdat", "modifiedat"}
)
DEFINING = frozenset({"capabilities", "model", "modelsource"})
DESCRIPTIVE = frozenset({"name", "description", "documentation", "icon", "labels"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource of a part, and where it goes; `group` is its group without resources."""

    plural: str
    groupid: str
    group: Mapping[str, Any]
    collection: str
    resourceid: str
    resource: Any


@dataclass(slots=True)
class Part:
    """One request: POST `body` at `path`; it writes so many groups and resources."""

    path: str = "/"
    body: dict[str, Any] = field(default_factory=dict)
    groups: int = 0
    resources: int = 0
    entries: list[Entry] = field(default_factory=list, compare=False, repr=False)


def metadata(document: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """What the document says about the registry itself and a client may set: its name, its labels, its extensions."""
    types: Mapping[str, Any] = model.get("groups") or {}
    views = _views(document, types)
    others = READ_ONLY | DEFINING | types.keys() | views
    return {name: value for name, value in document.items() if name not in others}


def parts(
    document: Mapping[str, Any],
    model: Mapping[str, Any],
    *,
    source: str = "the document",
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> Iterator[Part]:
    """The requests that write every group of `document` into a registry with this `model`; 0 means no bound."""
    part, size = Part(), 0
    for plural, group_type, groups in _collections(document, model, source):
        for groupid, group in groups.items():
            if not isinstance(group, Mapping):
                raise UsageError(f'{source}: "{plural}/{groupid}" is not an object, so it is not a group')
            lone, entries = _without_resources(group, group_type)
            cost = len(orjson.dumps(lone))
            if _full(part, size, cost, max_entries, max_bytes):
                yield part
                part, size = Part(), 0
            part.body.setdefault(plural, {})[groupid] = dict(lone)
            part.groups += 1
            size += cost
            for resources, resourceid, resource in entries:
                cost = len(orjson.dumps(resource))
                if _full(part, size, cost, max_entries, max_bytes):
                    yield part
                    part, size = Part(path=f"/{plural}/{groupid}"), 0
                place = part.body if part.path != "/" else part.body[plural][groupid]
                place.setdefault(resources, {})[resourceid] = resource
                part.entries.append(Entry(plural, groupid, lone, resources, resourceid, resource))
                part.resources += 1
                size += cost
            if part.path != "/" and part.body:
                yield part
                part, size = Part(), 0
    if part.body:
        yield part


def _full(part: Part, size: int, cost: int, max_entries: int, max_bytes: int) -> bool:
    entries = part.groups + part.resources
    return bool(entries) and (0 < max_entries <= entries or 0 < max_bytes < size + cost)


def _collections(
    document: Mapping[str, Any], model: Mapping[str, Any], source: str
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Each group collection of the document with its type; raises where a member is nothing the model knows."""
    types: Mapping[str, Any] = model.get("groups") or {}
    declared: Mapping[str, Any] = model.get("attributes") or {}
    own = READ_ONLY | DESCRIPTIVE | DEFINING | _views(document, types) | declared.keys()
    for name, value in document.items():
        if name in types:
            if not isinstance(value, Mapping):
                raise UsageError(f"{source}: '{name}' is not an object of groups")
            yield name, types[name], value
        elif name not in own and "*" not in declared:
            known = ", ".join(sorted(types)) or "none"
            raise UsageError(
                f"{source}: '{name}' is not a group type of the registry's model (it has: {known}); "
                "correct the name, or load the document's own model with --with-model"
            )


def _views(document: Mapping[str, Any], types: Mapping[str, Any]) -> set[str]:
    """The members that tell the address and the size of a collection, be it of a type that the model does not have."""
    pairs = {name.removesuffix("url") for name in document if f"{name.removesuffix('url')}count" in document}
    return {f"{plural}{suffix}" for plural in {*types, *pairs} for suffix in ("url", "count")}


def _without_resources(
    group: Mapping[str, Any], group_type: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
    """A group without its resources, and these as (collection, id, resource)."""
    names = [name for name in _resource_types(group_type) if isinstance(group.get(name), Mapping)]
    lone = {name: value for name, value in group.items() if name not in names}
    return lone, [(name, resourceid, resource) for name in names for resourceid, resource in group[name].items()]


def _resource_types(group_type: Mapping[str, Any]) -> list[str]:
    imported = [str(xid).rpartition("/")[2] for xid in group_type.get("ximportresources") or ()]
    return [*(group_type.get("resources") or {}), *imported]


# The documents that an older dialect is read into, as one that a registry takes whole.
#
# Rule: a definition with older versions is one resource of one request, so its history is there as a whole or not at
# all,
# and what of it is there already is not written again.


def with_history(documents: Sequence[Document], *, anew: bool = False) -> Document:
    """The last of these documents, each message of it with the versions that the ones before have of it.

    `anew` leaves the times of messages to the registry also where there is one document.
    """
    last = documents[-1]
    if (len(documents) == 1 and not anew) or "messagegroups" not in last.content:
        return last
    groups = {
        groupid: {**group, "messages": {key: in_line(_versions(documents, groupid, key)) for key in group["messages"]}}
        for groupid, group in last.content["messagegroups"].items()
    }
    return Document(last.source, {**last.content, "messagegroups": groups})


def _versions(documents: Sequence[Document], groupid: str, messageid: str) -> list[dict[str, Any]]:
    found = []
    for document in documents:
        messages: Mapping[str, Any] = document.content["messagegroups"][groupid]["messages"]
        if messageid in messages:
            found.append(messages[messageid])
    return found


# Catalog documents of any dialect as documents that a registry takes.
#
# Rule: what becomes of a document is `dialects.convert.whole`; here its source is named in whatever is wrong with it.


@dataclass(frozen=True, slots=True)
class Raw:
    """One document in whatever dialect it is: where it was read from, and its value."""

    source: str
    value: Any


def read_raw(location: str, stdin: Callable[[], IO[bytes]] | None = None) -> Iterator[Raw]:
    """Each document at `location`: a file, a folder (read in order of names), or `-` for standard input."""
    if location == STANDARD_INPUT:
        stream = stdin() if stdin else sys.stdin.buffer
        yield Raw("standard input", parse_value(stream.read(), "standard input", yaml_allowed=True))
        return
    for file in document_files(Path(location)):
        yield _read_file(file)


def read_every(location: str) -> Iterator[tuple[Raw | UnreadableDocument, bool]]:
    """The same, with what a load of a folder passes over, for it is not named as a catalog; that is marked with False.

    In place of a document that is passed over and cannot be read is what is wrong.
    """
    path = Path(location)
    if location == STANDARD_INPUT or not path.is_dir():
        yield from ((raw, True) for raw in read_raw(location))
        return
    meant = frozenset(document_files(path))
    for file in every_file(path):
        try:
            yield _read_file(file), file in meant
        except UsageError as error:
            if file in meant:
                raise
            yield UnreadableDocument(str(file), str(error)), False


def read_each(location: str) -> Iterator[Raw | UnreadableDocument]:
    """Each document that a load reads, with what is wrong in place of one that cannot be read."""
    path = Path(location)
    if location == STANDARD_INPUT:
        sources: list[tuple[str, Callable[[], Raw]]] = [("standard input", lambda: next(read_raw(location)))]
    elif not path.exists():
        raise UsageError(f"there is no file or folder '{path}'")
    else:
        sources = [(str(file), partial(_read_file, file)) for file in document_files(path)]
    for source, read_one in sources:
        try:
            yield read_one()
        except UsageError as error:
            yield UnreadableDocument(source, str(error))


def _read_file(file: Path) -> Raw:
    return Raw(str(file), parse_value(file_bytes(file), str(file), yaml_allowed=file.suffix in YAML_SUFFIXES))


def recognise(raw: Raw, *, any_model: bool = False) -> Detection:
    """How a document was recognised; raises `UsageError` where it is none of a catalog, or not of one dialect.

    With `any_model` one that nothing tells of passes for one of today: it may be of a model of its own.
    """
    try:
        return detect(raw.value)
    except ForeignDocument as error:
        if any_model and not error.known:
            return Detection(DIALECTS[DEFAULT.name], "", "")
        raise ForeignDocument(f"{raw.source} {error}", known=error.known) from None
    except UsageError as error:
        raise UsageError(f"{raw.source}: {error}") from None


def in_canonical(
    raw: Raw, dialect: Dialect | None = None, *, group: str = ""
) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """The documents that a registry takes one after the other for what was read, and the notes of reading it."""
    chosen = dialect or recognise(raw).dialect
    try:
        documents, notes = whole(raw.value, chosen, group)
    except UsageError as error:
        raise UsageError(f"{raw.source} {error}") from None
    return tuple(Document(raw.source, one) for one in documents), notes
