"""What a build is given, checked before it is used: the values of placeholders and properties, and the data.

Rule: nothing is dropped or bent on the way: a name that nothing asks for, a value that is no scalar, and a number or a
name that JSON has not are said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from signalbook.document.property_types import canonical
from signalbook.errors import Problem
from signalbook.messages.build_data import as_text
from signalbook.messages.likeness import edits
from signalbook.messages.slots import Slot
from signalbook.schemas.json_exact import quick
from signalbook.wire.fields import pointer

__all__ = ["STAND_IN", "bent", "context_texts", "json_flaws", "own_values", "scalar_flaw", "unknown_name"]

# What takes the place of a value that is missing or wrong, so that everything else can be judged.
STAND_IN = "x"
_SEVERAL = (Mapping, list, tuple, set, frozenset)
_MOST_FLAWS = 20
_surrogate = re.compile("[\ud800-\udfff]").search


def context_texts(context: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    """The values of placeholders as the texts that templates hold; None is no value."""
    found: dict[str, str] = {}
    for name, value in context.items():
        if value is None:
            continue
        flaw = scalar_flaw(value) if isinstance(value, str | int | float | Decimal) else _NO_SCALAR
        if flaw is None:
            found[name] = canonical(value)
        else:
            problems.append(Problem(pointer("", str(name)), "type", f"{name} {flaw}"))
            found[name] = STAND_IN
    return found


_NO_SCALAR = "must be a text, a number or a boolean"


def scalar_flaw(value: Any) -> str | None:
    """What is wrong with the value of a property or a placeholder."""
    if isinstance(value, _SEVERAL):
        return _NO_SCALAR
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return f"is {value}, which is not a number"
    if isinstance(value, str) and not value.isascii() and _surrogate(value):
        return "must be a text without unpaired surrogates"
    return None


def unknown_name(name: str, kind: str, known: Collection[str]) -> Problem:
    """That a definition has nothing of a name, with the one that may have been meant."""
    words = f'the definition has no {kind} "{name}"'
    likest = min(known, key=lambda one: (edits(one.lower(), name.lower()), one), default=None)
    if likest is not None and edits(likest.lower(), name.lower()) <= max(1, len(name) // 3):
        words += f'; it has "{likest}"'
    return Problem(pointer("", name), "value", words)


def bent(data: Any, text: bytes) -> list[tuple[str, str]]:
    """The places in a value whose JSON text may be another value's, and in words what JSON does not have there."""
    try:
        if quick(text) == data:
            return []
    except (ValueError, RecursionError):
        pass  # a number that a quick reader does not take; a closer look is always right
    return list(json_flaws(data))


def json_flaws(data: Any) -> Iterator[tuple[str, str]]:
    """The places in a value, and in words what JSON does not have there though Python has."""
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", data)]
    found = 0
    while left and found < _MOST_FLAWS:
        path, value = left.pop()
        if isinstance(value, Mapping | list | tuple):
            if id(value) in seen:
                continue
            seen.add(id(value))
        if isinstance(value, Mapping):
            named = [(name, one) for name, one in value.items() if isinstance(name, str)]
            left += [(pointer(path, name), one) for name, one in reversed(named)]
            for name in (name for name in value if not isinstance(name, str)):
                found += 1
                yield path, f"has the name {name!r}, which is not a text"
        elif isinstance(value, list | tuple):
            left += [(f"{path}/{at}", one) for at, one in reversed(list(enumerate(value)))]
        elif isinstance(value, float | Decimal) and not math.isfinite(value):
            found += 1
            yield path, f"is {value}, which is not a number of JSON"


def own_values(own: Mapping[str, Any], fields: list[Slot]) -> dict[str, Any]:
    """The single values among a message's own fields that the definition says something about, too."""
    found: dict[str, Any] = {}
    for slot in fields:
        value = own.get("key" if slot.field == "key_base64" else slot.field)
        if slot.name:
            value = value.get(slot.name) if isinstance(value, Mapping) else None
        if isinstance(value, bytes) and slot.field != "key_base64":
            value = as_text(value)
        if isinstance(value, str | int | float | bytes):
            found[slot.label] = value
    return found
