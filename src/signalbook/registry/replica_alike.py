"""Whether two entities are the same, as far as a copy can be: what is compared, and what a copy adds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from signalbook.document.model import ResourceType

__all__ = ["digest", "is_alike", "timeless", "with_authority"]

Json = dict[str, Any]


def with_authority(kind: ResourceType, body: Json, authority: str) -> Json:
    """Return a resource whose versions name their authority, where its type has that attribute (seed 004, 2.2.4)."""
    if "authority" not in kind.attributes or "versions" not in body or not authority:
        return body
    versions = {
        vid: version if version.get("authority") else {**version, "authority": authority}
        for vid, version in body["versions"].items()
        if isinstance(version, dict)
    }
    return {**body, "versions": versions}


def timeless(version: Mapping[str, Any]) -> Json:
    """Return a version without the time that a write may move."""
    return {name: value for name, value in version.items() if name != "modifiedat"}


def digest(body: Json) -> str:
    """Return a name for what an entity is, whatever the order of its members."""
    return _name(dict(_parts(body, ("modifiedat",))))


def is_alike(here: Json | None, other: Json) -> bool:
    """Whether two entities that were made apart say the same, whenever that was."""
    if here is None:
        return False
    first, second = ({**dict(_parts(one, ("createdat", "modifiedat"))), "createdat": None} for one in (here, other))
    return _name(first) == _name(second)


def _parts(body: Json, left: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        if name == "versions" and isinstance(value, dict):
            yield (
                name,
                {
                    vid: {name: value for name, value in one.items() if name not in left}
                    for vid, one in value.items()
                    if isinstance(one, dict)
                },
            )
        else:
            yield name, value


def _name(value: Json) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
