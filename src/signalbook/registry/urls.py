"""What the URL of a request asks for: its path a target, its query the flags.

Rule 1: a path is read against the model, left to right; the first part that cannot be is the subject of the error.
Rule 2: only flags that the registry has switched on are read; every other parameter is ignored (FLAGS-10).
Rule 3: flags know neither the model nor the entity: paths, filters and versions stay text until the module that owns
them reads them.
Rule 4: most requests have no query, and cost nothing: they share `Flags.EMPTY`.

core/spec.md 1.0-rc4 "Request Flags" and core/http.md "Request Flags / Query Parameters".
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias
from urllib.parse import unquote_plus

from signalbook.errors import RegistryError
from signalbook.model.model import GroupType, Model, ResourceType

__all__ = [
    "BOOLEANS", "COLLECTIONS", "CONFIGURATION", "DETAILS", "DOCUMENTS", "FLAGS", "IGNORES", "MAX_PATHS", "MAX_STEPS",
    "MAX_TEXT", "META", "PAGING", "Flags", "InlineSet", "InlineShape", "Path", "PathError", "RequestTarget", "Step",
    "TargetKind", "Wild", "array_at", "epoch_value", "find_target", "format_path", "group_shape", "join_name",
    "parse_flags", "parse_inline", "parse_path", "registry_shape", "resource_shape", "values_at", "version_shape",
]  # fmt: skip

# What a path addresses: the registry, a collection, an entity, or one of the registry's own documents.


TargetKind = Literal[
    "registry", "groups", "group", "resources", "resource", "meta", "versions", "version",
    "capabilities", "capabilitiesoffered", "export", "model", "modelsource",
]  # fmt: skip
DETAILS = "$details"
DOCUMENTS: frozenset[TargetKind] = frozenset({"capabilities", "capabilitiesoffered", "export", "model", "modelsource"})
COLLECTIONS: frozenset[TargetKind] = frozenset({"groups", "resources", "versions"})


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """An address, resolved against the model; `path` is what the client asked for, `xid` what it is."""

    kind: TargetKind
    path: str
    xid: str
    group: GroupType | None = None
    gid: str = ""
    resource: ResourceType | None = None
    rid: str = ""
    vid: str = ""
    details: bool = False

    @property
    def group_type(self) -> GroupType:
        """The group type, which every address below the registry has."""
        assert self.group is not None
        return self.group

    @property
    def resource_type(self) -> ResourceType:
        """The resource type, which every address below a group has."""
        assert self.resource is not None
        return self.resource

    @property
    def group_xid(self) -> str:
        """The xid of the group that is addressed or owns what is."""
        return f"/{self.group_type.plural}/{self.gid}"

    @property
    def resource_xid(self) -> str:
        """The xid of the resource that is addressed or owns what is."""
        return f"{self.group_xid}/{self.resource_type.plural}/{self.rid}"

    @property
    def document(self) -> bool:
        """True where the bytes of a document are meant, not the metadata: DOC-1."""
        return self.kind in ("resource", "version") and self.resource_type.hasdocument and not self.details


def find_target(model: Model, path: str) -> RequestTarget:
    """Return what a path addresses, or the error that says why it addresses nothing."""
    details = path.endswith(DETAILS)
    bare = path[: -len(DETAILS)] if details else path
    if len(bare) > 1 and bare.endswith("/") and not details:
        bare = path = bare[:-1]
    parts = bare.split("/")[1:] if bare != "/" else []
    if not parts or parts == [""]:
        if details:
            raise RegistryError("bad_details", path)
        return RequestTarget("registry", path, "/")
    if parts[0] in DOCUMENTS:
        if details or len(parts) > 1:
            raise RegistryError("bad_details" if details and len(parts) == 1 else "api_not_found", path)
        return RequestTarget(parts[0], path, bare)
    return _in_groups(model, path, parts, details)


def _in_groups(model: Model, path: str, parts: list[str], details: bool) -> RequestTarget:
    group = model.groups.get(parts[0])
    if group is None:
        raise RegistryError("not_found", f"/{parts[0]}", detail=f"There is no group type {parts[0]!r} in the model.")
    if len(parts) == 1:
        _refuse_details(details, path)
        return RequestTarget("groups", path, f"/{parts[0]}", group)
    gid = _id_at(parts, 1, group.singular, path, details)
    if len(parts) == 2:
        _refuse_details(details, path)
        return RequestTarget("group", path, f"/{parts[0]}/{gid}", group, gid)
    if not parts[2]:
        if details and len(parts) == 3:
            raise RegistryError("bad_details", path)
        raise RegistryError(
            "bad_request", "/" + "/".join(parts[:2]) + "/",
            error_detail="Resource type in URL cannot be an empty string",
        )  # fmt: skip
    resource = group.resources.get(parts[2])
    if resource is None:
        raise RegistryError(
            "not_found", "/" + "/".join(parts[:3]), detail=f"There is no resource type {parts[2]!r} in {parts[0]!r}."
        )
    if len(parts) == 3:
        _refuse_details(details, path)
        return RequestTarget("resources", path, "/" + "/".join(parts), group, gid, resource)
    return _in_resource(path, parts, details, group, gid, resource)


def _in_resource(
    path: str, parts: list[str], details: bool, group: GroupType, gid: str, resource: ResourceType
) -> RequestTarget:
    rid = _id_at(parts, 3, resource.singular, path, details)
    xid = "/" + "/".join(parts)
    if len(parts) == 4:
        return RequestTarget("resource", path, xid, group, gid, resource, rid, details=details)
    if parts[4] == "meta" and len(parts) == 5:
        _refuse_details(details, path)
        return RequestTarget("meta", path, xid, group, gid, resource, rid)
    if parts[4] == "versions" and len(parts) == 5:
        _refuse_details(details, path)
        return RequestTarget("versions", path, xid, group, gid, resource, rid)
    if parts[4] == "versions" and len(parts) == 6:
        vid = _id_at(parts, 5, "version", path, details)
        return RequestTarget("version", path, xid, group, gid, resource, rid, vid, details)
    raise RegistryError("not_found", path)


def _refuse_details(details: bool, path: str) -> None:
    if details:
        raise RegistryError("bad_details", path)


def _id_at(parts: list[str], index: int, singular: str, path: str, details: bool) -> str:
    if not parts[index]:
        subject = path if details and len(parts) == index + 1 else "/" + "/".join(parts[:index]) + "/"
        raise RegistryError(
            "bad_request", subject, error_detail=f'"{singular}id" value in URL cannot be an empty string'
        )
    return parts[index]


# Dot notation: the paths that `filter`, `inline` and `sort` use to name attributes.
#
# Rule 1: a path is a tuple of steps and nothing else: a name, the index of an array, or one of the two wildcards.
# Rule 2: a path that cannot be read raises `PathError`, whose text says which character, in what, and where.
# Rule 3: null is absent; `values_at` never yields it.
#
# core/spec.md 1.0-rc4, "xRegistry Dot (.) Notation": `.NAME`, `['NAME']`, `["NAME"]`, `[INTEGER]`, and in filters
# `.*` and `[*]`. A path starts with a name, without the dot.


MAX_TEXT = 8192
MAX_STEPS = 64


class Wild(Enum):
    """The wildcards: every member of a map or object, every item of an array."""

    MEMBERS = ".*"
    ITEMS = "[*]"


Step: TypeAlias = str | int | Wild
Path: TypeAlias = tuple[Step, ...]


class PathError(ValueError):
    """A path that cannot be read; its text is the `error_detail` of the flag's error."""


# A map key may also hold `.`, which is written in quotes; `*` is matched here to be refused by name below.
_NAME = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_:*\-]*")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:\-]*")
_BRACKET = re.compile(r"""\[(?:(?P<index>[0-9]{1,9})|(?P<wild>\*)|'(?P<single>[^']+)'|"(?P<double>[^"]+)")]""")
# As much of a bracket as can be read, to say where it stops making sense.
_BRACKET_BEGUN = re.compile(r"""\[(?:[0-9]{1,9}|\*|'(?:[^']+'?)?|"(?:[^"]+"?)?)?""")


def parse_path(text: str) -> Path:
    """The steps of `text`.

    >>> parse_path("labels['a.b'].stack[3].*")
    ('labels', 'a.b', 'stack', 3, <Wild.MEMBERS: '.*'>)
    """
    if _PLAIN_NAME.fullmatch(text) and len(text) <= MAX_TEXT:  # by far the most frequent path is one name
        return (text,)
    if not text:
        raise PathError("missing attribute name")
    if len(text) > MAX_TEXT:
        raise PathError(f"longer than {MAX_TEXT} characters")
    steps: list[Step] = []
    step, position = (_read_bracket if text[0] == "[" else _read_name)(text, 0)
    steps.append(step)
    while position < len(text):
        if len(steps) == MAX_STEPS:
            raise PathError(f"more than {MAX_STEPS} steps")
        if text[position] == ".":
            step, position = _read_name(text, position + 1)
        elif text[position] == "[":
            step, position = _read_bracket(text, position)
        else:
            raise _unexpected(text, position)
        steps.append(step)
    return tuple(steps)


def _read_name(text: str, position: int) -> tuple[Step, int]:
    found = _NAME.match(text, position)
    if found is None:
        raise _unexpected(text, position)
    name = found[0]
    if name == "*":
        return Wild.MEMBERS, found.end()
    if "*" in name:
        raise PathError(f'Unexpected "*" in "{name}"')
    return name, found.end()


def _read_bracket(text: str, position: int) -> tuple[Step, int]:
    found = _BRACKET.match(text, position)
    if found is None:
        begun = _BRACKET_BEGUN.match(text, position)
        raise _unexpected(text, begun.end() if begun else position)
    if found["index"]:
        return int(found["index"]), found.end()
    if found["wild"]:
        return Wild.ITEMS, found.end()
    return found["single"] or found["double"], found.end()


def _unexpected(text: str, position: int) -> PathError:
    if position >= len(text):
        return PathError(f'Unexpected end of "{text}"')
    character = text[position]
    quote = "'" if character == '"' else '"'
    return PathError(f'Unexpected {quote}{character}{quote} in "{text}" at pos {position + 1}')


def format_path(path: Path) -> str:
    """The text that `parse` reads back as `path`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text = join_name(text, step)
        elif step is Wild.MEMBERS:
            text += ".*" if text else "*"
        else:
            text += "[*]" if step is Wild.ITEMS else f"[{step}]"
    return text


def join_name(text: str, name: str) -> str:
    """The text of a path with one more name at its end, quoted where it must be."""
    if _PLAIN_NAME.fullmatch(name):
        return f"{text}.{name}" if text else name
    return f'{text}["{name}"]' if "'" in name else f"{text}['{name}']"


def values_at(path: Path, attrs: Any) -> Iterator[Any]:
    """Every value that `path` leads to within one entity; without wildcards there is one at most."""
    value = attrs
    for index, step in enumerate(path):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, (dict, Mapping)) else None
        elif isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            for child in _children(step, value):
                yield from values_at(path[index + 1 :], child)
            return
        if value is None:
            return
    if value is not None:
        yield value


def _children(wild: Wild, value: Any) -> Iterator[Any]:
    if wild is Wild.MEMBERS and isinstance(value, Mapping):
        yield from value.values()
    elif wild is Wild.ITEMS and isinstance(value, list):
        yield from value


def array_at(path: Path, attrs: Any, whole: bool) -> int | None:
    """How many steps of `path` lead to an array that it then takes for an object or, where `whole` is, for a value.

    So is a map or an object that it takes for a value.

    None where it does so nowhere, or behind a wildcard not everywhere.
    """
    value = attrs
    for index, step in enumerate(path):
        if isinstance(value, list) and (isinstance(step, str) or step is Wild.MEMBERS):
            return index
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, (dict, Mapping)) else None
        elif isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            places = [
                array_at(path[index + 1 :], child, whole) for child in _children(step, value) if child is not None
            ]
            found = [place for place in places if place is not None]
            return index + 1 + found[0] if found and len(found) == len(places) else None
    return len(path) if whole and isinstance(value, (list, dict, Mapping)) else None


# The `inline` flag: which nested collections and large attributes a response shows.
#
# Rule 1: what may be inlined is a tree that the model decides (`InlineShape`), one for a collection and its members.
# Rule 2: what is asked for is a tree of the same form (`InlineSet`) that a walk through the response follows downwards:
# `child(name)` is None where `name` stays a URL.
# Rule 3: `*` stands for everything below except the registry's `model`, `modelsource` and `capabilities` (INLINE-3).


CONFIGURATION: frozenset[str] = frozenset({"capabilities", "model", "modelsource"})
MAX_PATHS = 256


@dataclass(frozen=True, slots=True)
class InlineShape:
    """What may be inlined below one place; `wild` where `*` may follow, `explicit` what `*` leaves out."""

    children: Mapping[str, InlineShape] = field(default_factory=dict)
    wild: bool = True
    explicit: frozenset[str] = frozenset()


_LEAF = InlineShape(wild=False)
META = _LEAF  # nothing within a meta entity can be inlined


def registry_shape(model: Model) -> InlineShape:
    """What a request for the registry may inline."""
    groups = {plural: group_shape(group) for plural, group in model.groups.items()}
    return InlineShape({**dict.fromkeys(CONFIGURATION, _LEAF), **groups}, explicit=CONFIGURATION)


def group_shape(group: GroupType) -> InlineShape:
    """What a request for a group, or for its collection of groups, may inline."""
    return InlineShape({plural: resource_shape(resource) for plural, resource in group.resources.items()})


def resource_shape(resource: ResourceType) -> InlineShape:
    """What a request for a resource, or for its collection of resources, may inline."""
    version = version_shape(resource)
    return InlineShape({**version.children, "meta": _LEAF, "versions": version})


def version_shape(resource: ResourceType) -> InlineShape:
    """What a request for a version, or for a collection of versions, may inline."""
    return InlineShape({resource.singular: _LEAF} if resource.hasdocument else {})


@dataclass(frozen=True, slots=True)
class InlineSet:
    """What is to be inlined below one place of the response."""

    NOTHING: ClassVar[InlineSet]
    EVERYTHING: ClassVar[InlineSet]

    children: Mapping[str, InlineSet] = field(default_factory=dict)
    all: bool = False
    explicit: frozenset[str] = frozenset()

    def child(self, name: str) -> InlineSet | None:
        """What to inline within `name`, or None where `name` itself is not inlined."""
        if self.all and name not in self.explicit:
            return InlineSet.EVERYTHING
        return self.children.get(name)

    def __bool__(self) -> bool:
        return self.all or bool(self.children)


InlineSet.NOTHING = InlineSet(MappingProxyType({}))
InlineSet.EVERYTHING = InlineSet(MappingProxyType({}), all=True)


def parse_inline(values: Sequence[str], shape: InlineShape, subject: str) -> InlineSet:
    """What the request's `inline` values ask for at a place of this shape; an empty value means `*` (INLINE-1)."""
    if not values:
        return InlineSet.NOTHING
    if sum(map(len, values)) > MAX_TEXT:
        raise _bad(subject, values[0][:60] + "...", f"longer than {MAX_TEXT} characters")
    paths = [path for value in values for path in (value or "*").split(",") if path]
    if len(paths) > MAX_PATHS:
        raise _bad(subject, paths[MAX_PATHS], f"more than {MAX_PATHS} paths")
    return _set([_names(path, shape, subject) for path in paths], shape.explicit)


def _names(text: str, shape: InlineShape, subject: str) -> tuple[str, ...]:
    """The names along the path `text`, checked; a final `*` is kept."""
    if text == "*":
        return ("*",)
    try:
        steps = parse_path(text)
    except PathError as error:
        raise _bad(subject, text, str(error)) from None
    names: list[str] = []
    for step in steps:
        if step is Wild.MEMBERS and shape.wild and len(names) == len(steps) - 1:
            names.append("*")
        elif step is Wild.MEMBERS and len(names) < len(steps) - 1:
            raise _bad(subject, text, f'Unexpected "*" in "{text}"')
        elif isinstance(step, str) and step in shape.children:
            names.append(step)
            shape = shape.children[step]
        else:
            raise RegistryError("inline_noninlineable", subject, name=text)
    return tuple(names)


def _set(paths: Sequence[tuple[str, ...]], explicit: frozenset[str] = frozenset()) -> InlineSet:
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in (path for path in paths if path):
        below.setdefault(first, []).append(tuple(rest))
    everything = below.pop("*", None) is not None
    return InlineSet({name: _set(rest) for name, rest in below.items()}, everything, explicit)


def _bad(subject: str, value: str, detail: str) -> RegistryError:
    return RegistryError("bad_inline", subject, value=value, error_detail=detail)


_BOOLEAN_FLAGS = frozenset({"binary", "collections", "doc"})
_LIST_FLAGS = frozenset({"filter", "ignore", "inline"})
FLAGS: frozenset[str] = _BOOLEAN_FLAGS | _LIST_FLAGS | {"epoch", "setdefaultversionid", "sort", "specversion"}
PAGING: frozenset[str] = frozenset({"limit", "page"})
IGNORES: frozenset[str] = frozenset(
    {"capabilities", "defaultversionid", "defaultversionsticky", "epoch", "id", "modelsource", "readonly"}
)
BOOLEANS: Mapping[str, bool] = {"": True, "true": True, "false": False}

_MAX_UINT64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Flags:
    """What a request asks for beside its path; `inline`, `filters` and `sort` are still text."""

    EMPTY: ClassVar[Flags]

    inline: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    sort: str | None = None
    doc: bool = False
    collections: bool = False
    binary: bool = False
    epoch: str | None = None
    ignore: frozenset[str] = field(default_factory=frozenset)
    setdefaultversionid: str | None = None
    specversion: str | None = None
    limit: int | None = None
    page: str | None = None
    raw: str = ""

    def as_export(self, available: Container[str]) -> Flags:
        """The flags of `GET /export`: document view with everything inlined, unless `inline` says what (FLAGS-9)."""
        everything = ("*", *(name for name in ("capabilities", "modelsource") if name in available))
        return replace(self, doc=True, inline=self.inline or everything)


Flags.EMPTY = Flags()


def parse_flags(
    query: str, enabled: frozenset[str] = FLAGS | PAGING, *, path: str = "/", ignores: frozenset[str] = IGNORES
) -> Flags:
    """The flags in `query` that are among `enabled`; `path` and `query` make the subject of an error."""
    if not query:
        return Flags.EMPTY
    given: dict[str, list[str]] = {}
    for part in query.split("&"):
        name, _, text = part.partition("=")
        if name in enabled:
            given.setdefault(name, []).append(_decoded(text))
    fields: dict[str, Any] = {"raw": query}
    for name, values in given.items():
        if name in _LIST_FLAGS:
            fields["filters" if name == "filter" else name] = tuple(values)
        elif name in _BOOLEAN_FLAGS:
            fields[name] = _boolean(name, values, path)
        elif len(values) > 1:
            raise RegistryError("bad_flag", path, flag=name)
        else:
            fields[name] = values[0]
    return Flags(**_checked(fields, path, f"{path}?{query}", ignores))


def _decoded(text: str) -> str:
    return unquote_plus(text) if "%" in text or "+" in text else text


def _boolean(name: str, values: list[str], path: str) -> bool:
    on = {BOOLEANS.get(value) for value in values}
    if len(on) != 1 or None in on:
        raise RegistryError("bad_flag", path, flag=name)
    return True in on


def _checked(fields: dict[str, Any], path: str, address: str, ignores: frozenset[str]) -> dict[str, Any]:
    """`fields` with the values that need no model read and checked."""
    if "ignore" in fields:
        fields["ignore"] = _ignored(fields["ignore"], address, ignores)
    if fields.get("setdefaultversionid") == "":
        raise RegistryError("bad_defaultversionid", address, value='""', error_detail="value must not be empty")
    if "limit" in fields:
        fields["limit"] = _limit(fields["limit"], path)
    if fields.get("collections"):  # "MUST implicitly turn on inlining with a value of `*`"
        fields["inline"] = (*fields.get("inline", ()), "*")
    return fields


def _ignored(values: tuple[str, ...], address: str, ignores: frozenset[str]) -> frozenset[str]:
    """What to ignore: no value, an empty one and `*` mean everything the registry lets a client ignore (FLAGS-6)."""
    names: set[str] = set()
    for value in values:
        for part in value.split(","):
            name = part.strip().lower()
            if name == "*" or not value:
                names |= ignores
            elif name and name not in ignores:
                allowed = ", ".join(sorted(ignores)) or "none"
                raise RegistryError(
                    "bad_ignore", address, value=part.strip(), error_detail=f"not one of the allowed values: {allowed}"
                )
            elif name:
                names.add(name)
    return frozenset(names)


def _limit(text: str, path: str) -> int:
    """The page size: an unsigned 64-bit integer above zero (PAGE-2)."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
    if not 0 < number <= _MAX_UINT64:
        detail = f'value ({text[:40]}) of "limit" must be an integer above zero'
        raise RegistryError("bad_request", path, error_detail=detail)
    return number


def epoch_value(text: str, subject: str) -> int:
    """The number that the `epoch` flag holds; `subject` is the entity whose epoch it is."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise RegistryError(
            "invalid_attribute", subject, name="epoch", error_detail=f"value ({text}) must be a uinteger"
        )
    return int(text)
