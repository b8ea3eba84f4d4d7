"""The properties that a message declares by name: their definitions, and the keys that names have in a map.

Rule 1: a key is in lower case (ID-9) and a name need not be: where a name cannot be its key, the key is derived from it
(`_stem`), and the member `name` holds the name. A second name with the same derived key gets `-2` after it, a third
`-3`.
Rule 2: nothing is changed in place, and what needs no change is returned as the same object.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from signalbook.spec.protocols import find_protocol

__all__ = ["KEYED", "PROPERTY", "aligned", "keyed", "listed", "properties"]

# The options of a message that are maps of named properties, by protocol.
KEYED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "AMQP/1.0": ("application-properties", "message-annotations", "delivery-annotations", "footer"),
        "KAFKA": ("headers",),
    }
)
# The text of September 2025 has `urireference`; in that of May 2026 `uri` takes absolute and relative ones.
_OLD_TYPES = {"urireference": "uri", "uri-reference": "uri"}
PROPERTY = frozenset({"description", "name", "required", "specurl", "type", "value"})
_KEY = re.compile(r"[a-z0-9][a-z0-9:_.\-]{0,62}")


def properties(value: Any) -> Any:
    """An object or array of property definitions, each with today's name of its type."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        if _has_old_type(member):
            break
    else:
        return value
    if isinstance(value, dict):
        return {name: _retyped(member) for name, member in value.items()}
    return [_retyped(member) for member in value]


def _has_old_type(member: Any) -> bool:
    return isinstance(member, dict) and isinstance(member.get("type"), str) and member["type"] in _OLD_TYPES


def _retyped(member: Any) -> Any:
    return {**member, "type": _OLD_TYPES[member["type"]]} if _has_old_type(member) else member


def _defined(value: Any) -> dict[str, Any]:
    """A property definition, also of a bare value."""
    return value if isinstance(value, dict) else {"value": value}


def listed(value: Any) -> Any:
    """Named properties as an array; a map of them names each by its key."""
    if isinstance(value, dict):
        value = [{"name": name, **_defined(member)} for name, member in value.items() if member is not None]
    return properties(value)


def keyed(value: Any) -> Any:
    """Named properties as a map; a name that cannot be a key (ID-9) becomes the member `name` of a key like it."""
    if isinstance(value, list) and all(isinstance(m, dict) and isinstance(m.get("name"), str) for m in value):
        pairs: Any = [(member["name"], member) for member in value]
    elif isinstance(value, dict):
        if all(isinstance(member, dict) and _KEY.fullmatch(name) for name, member in value.items()):
            return properties(value)
        pairs = value.items()
    else:
        return value
    return properties(dict(_keys(pairs)))


def _keys(pairs: Collection[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    taken: set[str] = {name for name, _ in pairs if _KEY.fullmatch(name)}
    used: set[str] = set()
    for name, member in pairs:
        key = name
        if not _KEY.fullmatch(name) or name in used:
            if member is None:
                continue
            key = _free(_stem(name), taken | used)
            member = {"name": name, **_defined(member)}
        elif not isinstance(member, dict):
            member = member if member is None else {"value": member}
        elif member.get("name") == name:
            member = {part: value for part, value in member.items() if part != "name"}
        used.add(key)
        yield key, member


def _stem(name: str) -> str:
    """The key that a name has by itself: in lower case, with `_` for what a key cannot have."""
    return (re.sub(r"[^a-z0-9:_.\-]", "_", name.lower()).lstrip(":_.-") or "name")[:56]


def _free(stem: str, taken: Collection[str]) -> str:
    """The stem, or the first of `stem-2`, `stem-3` and so on that is not taken."""
    key, count = stem, 1
    while key in taken:
        count += 1
        key = f"{stem}-{count}"
    return key


def aligned(base: Mapping[str, Any], nearer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message `nearer` with keys of named properties that fit those of its `base`.

    Names that differ by case alone can have one key, each in its own definition; merged they are two properties.
    """
    protocol = find_protocol(nearer.get("protocol") or base.get("protocol"))
    ours, theirs = nearer.get("protocoloptions"), base.get("protocoloptions")
    if protocol is None or not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
        return nearer
    changed = {
        name: _rekeyed(theirs[name], ours[name])
        for name in KEYED.get(protocol, ())
        if isinstance(ours.get(name), Mapping) and isinstance(theirs.get(name), Mapping)
    }
    return {**nearer, "protocoloptions": {**ours, **changed}} if changed else nearer


def _rekeyed(base: Mapping[str, Any], nearer: Mapping[str, Any]) -> dict[str, Any]:
    keys = {_name(key, member): key for key, member in base.items()}
    found: dict[str, Any] = {}
    second: list[tuple[str, Any]] = []
    for key, member in nearer.items():
        name = _name(key, member)
        other = _name(key, base[key]) if key in base else name
        if name in keys:
            found[keys[name]] = member
        elif name != other and _stem(name) == _stem(other) == key:
            second.append((name, member))
        else:
            found[key] = member
    for name, member in second:
        if member is not None:  # it would take away what is not there
            found[_free(_stem(name), base.keys() | found.keys())] = {"name": name, **_defined(member)}
    return found


def _name(key: str, member: Any) -> str:
    name = member.get("name") if isinstance(member, Mapping) else None
    return name if isinstance(name, str) else key
