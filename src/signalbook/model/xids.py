"""The names of things: ids, attribute names, map keys, and the xid that addresses one entity.

Rule 1: a pattern is matched whole (`fullmatch`), so a trailing newline is never part of a name.
Rule 2: an xid is syntax only; whether its types exist is asked of a model, whether the entity exists of a registry.

    /[GROUPS/GID[/RESOURCES/RID[/meta | /versions/VID]]]          core/spec.md 1.0-rc4, `xid` Attribute
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from signalbook.cloudevents.attributes import is_uri_reference
from signalbook.errors import RegistryError

__all__ = [
    "ATTRIBUTE_NAME",
    "ID",
    "MAP_KEY",
    "NAME_PATTERNS",
    "TARGET",
    "TYPE_NAME",
    "Types",
    "Xid",
    "check_id",
    "is_authority",
    "kept_id",
    "kept_of",
    "known_xid",
    "known_xidtype",
    "must_match",
    "of_target",
    "parse_xid",
    "parse_xidtype",
]

# core/spec.md 1.0-rc4, `<SINGULAR>id` Attribute: unreserved characters, ":" or "@"; 1 to 128 of them.
ID = re.compile(r"^[a-zA-Z0-9_][a-zA-Z0-9_.\-~:@]{0,127}$")
# core/spec.md 1.0-rc4, Attributes: 1 to 63 of [a-z0-9_], no digit first.
ATTRIBUTE_NAME = re.compile(r"^[a-z_][a-z_0-9]{0,62}$")
# core/spec.md 1.0-rc4, Data Types, `map`: 1 to 63 of [a-z0-9:_.-], a letter or digit first.
MAP_KEY = re.compile(r"^[a-z0-9][a-z0-9_.:\-]{0,62}$")
# core/model.md 1.0-rc4, `groups.<STRING>.plural`: an attribute name of at most 57 characters.
TYPE_NAME = re.compile(r"^[a-z_][a-z_0-9]{0,56}$")

# Which names an object may have, by `namecharset`.
NAME_PATTERNS: Mapping[str, re.Pattern[str]] = {"": ATTRIBUTE_NAME, "strict": ATTRIBUTE_NAME, "extended": MAP_KEY}

# core/model.md 1.0-rc4, `attributes.<STRING>.target`; "[/versions]" is literal text.
TARGET = re.compile(r"/([a-z_0-9]+)(?:/([a-z_0-9]+)(/versions|\[/versions\])?)?")

# ID-6: the words that flags and `ancestorid` use in place of a version's id.
RESERVED_VERSION_IDS = frozenset({"null", "request"})


# What an id ends with where a copy is kept beside another entity of its name: see `kept_id`.
_KEPT = re.compile(r"(.+)~[0-9a-f]{8}", re.DOTALL)


def is_authority(text: str) -> bool:
    """Whether a text is a URI; without a scheme it is a name like `cloudevents.io` (seed 004, the example of 2.2.4)."""
    scheme, colon, rest = text.partition(":")
    if not is_uri_reference(text) or (colon and not rest):
        return False
    return scheme.lower() not in ("http", "https") or bool(re.match(r"//[^/?#:]|//[^/?#@]*@[^/?#:]", rest))


def kept_id(id_: str, authority: str) -> str:
    """The id of a copy whose own is taken: with `~` and eight hex digits of its authority's hash (SHA-256)."""
    return f"{id_}~{hashlib.sha256(authority.encode()).hexdigest()[:8]}"


def kept_of(id_: str) -> str | None:
    """The id that a kept copy has at its owner; None where an id is not of a kept copy's form."""
    found = _KEPT.fullmatch(id_)
    return found[1] if found is not None else None


def must_match(pattern: re.Pattern[str]) -> str:
    """The words of an error about a name that does not match `pattern`."""
    return f"must match: {pattern.pattern}"


def check_id(id_: object, subject: str, *, version: bool = False) -> str:
    """`id_` as given, or a `malformed_id` error about `subject`."""
    if not isinstance(id_, str):
        raise RegistryError("malformed_id", subject, id=id_, error_detail="must be a string")
    if not ID.fullmatch(id_):
        raise RegistryError("malformed_id", subject, id=id_, error_detail=must_match(ID))
    if version and id_ in RESERVED_VERSION_IDS:
        raise RegistryError("malformed_id", subject, id=id_, error_detail=f'"{id_}" is reserved')
    return id_


@dataclass(frozen=True, slots=True)
class Xid:
    """The address of one entity; empty parts are those below it.

    >>> xid = Xid.parse("/schemagroups/g1/schemas/s1/versions/v1")
    >>> xid.kind, xid.vid, str(xid.parent)
    ('version', 'v1', '/schemagroups/g1/schemas/s1')
    """

    groups: str = ""
    gid: str = ""
    resources: str = ""
    rid: str = ""
    part: str = ""
    vid: str = ""

    @classmethod
    def parse(cls, text: str) -> Xid:
        """The xid that `text` spells, or a ValueError that says what is wrong with it."""
        parts = _split(text)
        if len(parts) not in (0, 2, 4, 5, 6):
            raise ValueError(f'"{text}" does not end with an id' if len(parts) < 6 else f'"{text}" is too long')
        for name in parts[0:4:2]:
            if not TYPE_NAME.fullmatch(name):
                raise ValueError(f'"{text}" has a bad type name "{name}"')
        for id_ in parts[1:4:2] + parts[5:]:
            if not ID.fullmatch(id_):
                raise ValueError(f'"{text}" has a bad id "{id_}", it {must_match(ID)}')
        if len(parts) > 4 and parts[4] != ("versions" if len(parts) == 6 else "meta"):
            raise ValueError(f'"{text}" must go on with "/meta" or "/versions/VID" after "{parts[3]}"')
        return cls(*parts)

    @property
    def kind(self) -> str:
        """One of registry, group, resource, meta, version."""
        if not self.resources:
            return "group" if self.groups else "registry"
        return {"": "resource", "meta": "meta", "versions": "version"}[self.part]

    @property
    def parent(self) -> Xid:
        """The owning entity; the Registry is its own."""
        if self.part:
            return Xid(self.groups, self.gid, self.resources, self.rid)
        return Xid(self.groups, self.gid) if self.resources else Xid()

    @property
    def type(self) -> str:
        """The xidtype of this entity: `/`, `/GROUPS`, `/GROUPS/RESOURCES` or that with `/versions` or `/meta`."""
        return "/" + "/".join(part for part in (self.groups, self.resources, self.part) if part)

    def __str__(self) -> str:
        parts = (self.groups, self.gid, self.resources, self.rid, self.part, self.vid)
        return "/" + "/".join(part for part in parts if part)


def parse_xid(text: str, subject: str) -> Xid:
    """The xid that `text` spells, or a `malformed_xid` error about `subject`."""
    try:
        return Xid.parse(text)
    except ValueError as problem:
        raise RegistryError("malformed_xid", subject, xid=text, error_detail=problem) from None


def parse_xidtype(text: str) -> tuple[str, str, bool]:
    """The Group type, Resource type and whether Versions are meant, or a ValueError (TYPE-7)."""
    parts = _split(text)
    if len(parts) > 3 or parts[2:] not in ([], ["versions"]):
        raise ValueError(f'"{text}" must be of the form: /[GROUPS[/RESOURCES[/versions]]]')
    groups, resources, versions = [*parts, "", "", ""][:3]
    return groups, resources, bool(versions)


def _split(text: str) -> list[str]:
    if not text.startswith("/"):
        raise ValueError(f'"{text}" must start with /' if text else "can't be an empty string")
    if text == "/":
        return []
    parts = text[1:].split("/")
    if "" in parts:
        raise ValueError(f'"{text}" has an empty part at position {parts.index("") + 1}')
    return parts


# The plural names of the Group types, each with those of its Resource types.
Types = Mapping[str, Collection[str]]


def known_xid(read: Callable[[Any], Any], types: Types) -> Callable[[Any], Any]:
    """A reader of xids that also refuses those of types which a model does not have."""

    def known(value: Any) -> Any:
        xid = Xid.parse(read(value))
        if xid.groups and xid.groups not in types:
            raise ValueError(f'value ({value}) references an unknown Group type "{xid.groups}"')
        if xid.resources and xid.resources not in types[xid.groups]:
            raise ValueError(f'value ({value}) references an unknown Resource type "{xid.resources}"')
        return value

    return known


def known_xidtype(read: Callable[[Any], Any], types: Types) -> Callable[[Any], Any]:
    """A reader of xidtypes that also refuses those which a model does not have."""

    def known(value: Any) -> Any:
        groups, resources, _ = parse_xidtype(read(value))
        if groups and groups not in types:
            raise ValueError(f'value ({value}) references an unknown Group type "{groups}"')
        if resources and resources not in types[groups]:
            raise ValueError(f'value ({value}) references an unknown Resource type "{resources}"')
        return value

    return known


def of_target(read: Callable[[Any], Any], target: str) -> Callable[[Any], Any]:
    """MODEL-10: an xid, or a uri or url that begins with "/", must be of the target's type."""
    found = TARGET.fullmatch(target)
    assert found is not None
    type_ = f"/{found[1]}" + (f"/{found[2]}" if found[2] else "")
    versions = f"{type_}/versions"
    wanted = {None: {type_}, "/versions": {versions}, "[/versions]": {type_, versions}}[found[3]]

    def matching(value: Any) -> Any:
        value = read(value)
        if value.startswith("/"):
            try:
                matches = Xid.parse(value).type in wanted
            except ValueError:
                matches = False
            if not matches:
                raise ValueError(f'must match "{target}" target')
        return value

    return matching
