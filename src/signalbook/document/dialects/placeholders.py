"""Names in templates: 0.1 has ones with hyphens in its own examples, which RFC 6570 and 1.0 do not allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["has_placeholder", "is_beyond_level_one", "is_same_in_both", "may_become", "names_in", "renamed"]

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"\+?[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_HYPHENATED = re.compile(r"(\+?)([A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)+)")


def names_in(value: Any) -> Iterator[str]:
    """Every name that a placeholder in a value, or in anything it holds, has and may keep."""
    if isinstance(value, str):
        yield from (found[1].lstrip("+") for found in _EXPRESSION.finditer(value) if _NAME.fullmatch(found[1]))
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from names_in(member)


def has_placeholder(text: str) -> bool:
    """Whether a text has an expression that 1.0 takes for one."""
    return any(_NAME.fullmatch(found[1]) for found in _EXPRESSION.finditer(text))


def is_beyond_level_one(text: str) -> bool:
    """Whether a text has an expression that RFC 6570 allows, and 1.0 takes for plain text."""
    return any(
        found[1] and not _NAME.fullmatch(found[1]) and not _HYPHENATED.fullmatch(found[1])
        for found in _EXPRESSION.finditer(text)
    )


def may_become(text: str, fits: Callable[[str], Any], samples: Iterable[str]) -> bool:
    """Whether a text fits with its placeholders filled by a part of a sample; where it has none, by itself."""
    literals = _EXPRESSION.split(text)[::2]
    parts = {
        sample[at:end] for sample in samples for at in range(len(sample)) for end in range(at + 1, len(sample) + 1)
    }
    return any(fits(part.join(literals)) for part in parts)


def is_same_in_both(text: str) -> bool:
    """Whether a text means in 0.1 what it means in 1.0: the empty one does not, nor a hyphen between braces."""
    return bool(text) and not any(_HYPHENATED.fullmatch(found[1]) for found in _EXPRESSION.finditer(text))


def renamed(text: str, names: dict[str, str], note: Callable[[str, str], None]) -> str:
    """The text with each hyphen in a name as an underscore; `names` says which name became which, and which stay."""

    def rename(found: re.Match[str]) -> str:
        hyphenated = _HYPHENATED.fullmatch(found[1])
        if hyphenated is None:
            return found[0]
        old = hyphenated[2]
        if old not in names:
            name, count = old.replace("-", "_"), 1
            while name in names.values():
                count += 1
                name = f"{old.replace('-', '_')}_{count}"
            names[old] = name
            note(old, name)
        return f"{{{hyphenated[1]}{names[old]}}}"

    return _EXPRESSION.sub(rename, text)
