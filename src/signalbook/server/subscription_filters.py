"""Filters of the CloudEvents Subscriptions API: which events a subscriber wants.

Rule 1: a filter is an object with one member, its dialect; a dialect is a row of `_DIALECTS`. One that is not there
refuses the subscription (subscriptions/spec.md 3.2.1, `filters`).
Rule 2: attributes are compared as their canonical strings, with regard to case. An attribute that an event does not
have satisfies neither `exact` nor `prefix` nor `suffix`, and so satisfies their `not`.
Rule 3: what a client sends is bounded: in depth, in the number of filters, in the length of names and values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from signalbook.errors import RegistryError

__all__ = ["Filter", "read_filters"]

Filter = Callable[[Mapping[str, str]], bool]

_MOST_DEPTH = 16
_MOST_FILTERS = 256
_MOST_TEXT = 2048


def read_filters(filters: list[Any], subject: str) -> Filter:
    """The filter that holds where all of these hold; `bad_filter` where one of them is none."""
    reader = _Reader(subject)
    return _all([reader.read(one, 1) for one in filters])


class _Reader:
    """Reads the filters of one subscription."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._left = _MOST_FILTERS

    def read(self, value: Any, depth: int) -> Filter:
        """The filter that an object states."""
        self._left -= 1
        if depth > _MOST_DEPTH or self._left < 0:
            raise self.wrong(value, f"at most {_MOST_FILTERS} filters, {_MOST_DEPTH} deep, are read")
        if not isinstance(value, dict) or len(value) != 1:
            raise self.wrong(value, "a filter is an object with one member, its dialect")
        ((name, content),) = value.items()
        dialect = _DIALECTS.get(name)
        if dialect is None:
            known = ", ".join(sorted(_DIALECTS))
            why = "the dialect sql is not supported" if name == "sql" else f"the dialect {name!r} is unknown"
            raise self.wrong(value, f"{why}; there are {known}")
        return dialect(self, content, depth)

    def wrong(self, value: Any, detail: str) -> RegistryError:
        """The error for a filter that is none."""
        return RegistryError("bad_filter", self._subject, value=repr(value)[:100], error_detail=detail)


def _all(filters: list[Filter]) -> Filter:
    return lambda event: all(one(event) for one in filters)


def _any(filters: list[Filter]) -> Filter:
    return lambda event: any(one(event) for one in filters)


def _compared(holds: Callable[[str, str], bool]) -> Callable[[_Reader, Any, int], Filter]:
    """A dialect that compares attributes with texts: every one that is named has to fit."""

    def dialect(reader: _Reader, content: Any, depth: int) -> Filter:
        if not isinstance(content, dict) or not content:
            raise reader.wrong(content, "it has to be an object of attributes with their values, and not empty")
        for name, text in content.items():
            if not name or not isinstance(text, str) or not 0 < len(text) <= _MOST_TEXT or len(name) > _MOST_TEXT:
                detail = f"names and values are texts of 1 to {_MOST_TEXT} characters"
                raise reader.wrong(content, detail)
        wanted = tuple(content.items())
        return lambda event: all(name in event and holds(event[name], text) for name, text in wanted)

    return dialect


def _combined(combine: Callable[[list[Filter]], Filter]) -> Callable[[_Reader, Any, int], Filter]:
    """A dialect that combines filters."""

    def dialect(reader: _Reader, content: Any, depth: int) -> Filter:
        if not isinstance(content, list) or not content:
            raise reader.wrong(content, "it has to be an array of filters, and not empty")
        return combine([reader.read(one, depth + 1) for one in content])

    return dialect


def _not(reader: _Reader, content: Any, depth: int) -> Filter:
    inner = reader.read(content, depth + 1)
    return lambda event: not inner(event)


_DIALECTS: Mapping[str, Callable[[_Reader, Any, int], Filter]] = {
    "exact": _compared(str.__eq__),
    "prefix": _compared(str.startswith),
    "suffix": _compared(str.endswith),
    "all": _combined(_all),
    "any": _combined(_any),
    "not": _not,
}
