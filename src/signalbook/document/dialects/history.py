"""The versions of a 0.1 definition as one message: each follows the one before, and the newest is what holds.

Rule: a catalog gives versions their numbers and their times itself (0.1 section 2.2.5); what a document says there is
told and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from signalbook.errors import Problem

__all__ = ["assigned", "in_line"]

Json = dict[str, Any]

_GIVEN = frozenset({"ancestorid", "createdat", "modifiedat", "versionid", "versions"})
_COMMON = frozenset({"messageid", "meta"})


def in_line(versions: Sequence[Json]) -> Json:
    """The message that these versions make, the oldest first, so that a registry takes them in one request."""
    plain = [{name: value for name, value in version.items() if name not in _GIVEN} for version in versions]
    if len(plain) == 1:
        return plain[0]
    line = {
        str(number): {
            **{name: value for name, value in version.items() if name not in _COMMON},
            "ancestorid": str(max(number - 1, 1)),
        }
        for number, version in enumerate(plain, 1)
    }
    return {**plain[-1], "versions": line}


def assigned(document: Any) -> Iterator[Problem]:
    """A note for each definition of a 0.1 document whose numbers or times a catalog gives anew."""
    groups = document if isinstance(document, list) else [document]
    for place, group in enumerate(groups):
        at = f"/{place}" if isinstance(document, list) else ""
        listed = group.get("definitions")
        if not isinstance(listed, list):
            yield from _assigned(group, at)
            continue
        for number, definition in enumerate(listed):
            yield from _assigned(definition, f"{at}/definitions/{number}")


def _assigned(definition: Json, at: str) -> Iterator[Problem]:
    versions = definition.get("versions")
    versions = versions if isinstance(versions, list) else [definition]
    names = [
        name
        for name, differs in (
            ("version", sorted(one.get("version", place) for place, one in enumerate(versions, 1)) != _count(versions)),
            ("createdtimeutc", "createdtimeutc" in definition or any("createdtimeutc" in one for one in versions)),
        )
        if differs
    ]
    if names:
        yield Problem(at, "assigned", f"left out, for the catalog gives it anew: {', '.join(names)}")


def _count(versions: Sequence[Any]) -> list[int]:
    return list(range(1, len(versions) + 1))
