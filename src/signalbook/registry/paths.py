"""Dot notation: the paths that `filter`, `inline` and `sort` use to name attributes.

Rule 1: a path is a tuple of steps and nothing else: a name, the index of an array, or one of the two wildcards.
Rule 2: a path that cannot be read raises `PathError`, whose text says which character, in what, and where.
Rule 3: null is absent; `values_at` never yields it.

core/spec.md 1.0-rc4, "xRegistry Dot (.) Notation": `.NAME`, `['NAME']`, `["NAME"]`, `[INTEGER]`, and in filters
`.*` and `[*]`. A path starts with a name, without the dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias

__all__ = [
    "MAX_STEPS",
    "MAX_TEXT",
    "Path",
    "PathError",
    "Step",
    "Wild",
    "array_at",
    "format_path",
    "join_name",
    "parse",
    "values_at",
]

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


def parse(text: str) -> Path:
    """The steps of `text`.

    >>> parse("labels['a.b'].stack[3].*")
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
    return len(path) if whole and isinstance(value, list) else None
