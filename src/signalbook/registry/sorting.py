"""The `sort` flag: the order of a collection's entities.

Rule 1: every order is total and repeatable: entities with the same value follow their ids in the same direction
(SORT-3, SORT-5).
Rule 2: an entity without a value comes lowest; values of different types come in the order boolean, number, text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from signalbook.errors import RegistryError
from signalbook.registry.folding import collated
from signalbook.registry.paths import Path, PathError, Wild, values_at
from signalbook.registry.paths import parse as parse_path

__all__ = ["MAX_TEXT", "Key", "Sort", "parse"]

MAX_TEXT = 1024
Key: TypeAlias = tuple[int, Any]
Attrs = TypeVar("Attrs", bound=Mapping[str, Any])

_DIRECTIONS: Mapping[str, bool] = {"": False, "asc": False, "desc": True}
_MISSING: Key = (0, 0)


@dataclass(frozen=True, slots=True)
class Sort:
    """An attribute to sort on, and the direction."""

    path: Path
    descending: bool = False

    def key(self, id_: str, attrs: Mapping[str, Any]) -> tuple[Key, tuple[str, str], str]:
        """What to compare one entity by, lowest first."""
        return _rank(next(values_at(self.path, attrs), None)), collated(id_), id_

    def sorted(self, items: Iterable[tuple[str, Attrs]]) -> list[tuple[str, Attrs]]:
        """The (id, attributes) pairs in order, whatever order they came in."""
        return sorted(items, key=lambda item: self.key(*item), reverse=self.descending)


def _rank(value: Any) -> Key:
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    return (3, collated(value)) if isinstance(value, str) else _MISSING


def parse(text: str, subject: str, collections: Container[str] = ()) -> Sort:
    """The order that `text` (`ATTRIBUTE[=asc|desc]`) asks for; `collections` are names it must not lead into."""
    name, sign, direction = text.partition("=")
    if len(text) > MAX_TEXT:
        raise _bad(subject, text[:60] + "...", f"longer than {MAX_TEXT} characters")
    if direction not in _DIRECTIONS or (sign and not direction):
        raise _bad(subject, text, f'the order is "asc" or "desc", not "{direction}"')
    try:
        path = parse_path(name)
    except PathError as error:
        raise _bad(subject, text, str(error)) from None
    if any(isinstance(step, Wild) for step in path):
        raise _bad(subject, text, "a wildcard leads to more than one value")
    if path[0] in collections:
        raise _bad(subject, text, f'"{path[0]}" is a collection, not an attribute')
    return Sort(path, _DIRECTIONS[direction])


def _bad(subject: str, value: str, detail: str) -> RegistryError:
    return RegistryError("bad_sort", subject, value=value, error_detail=detail)
