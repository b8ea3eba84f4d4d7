"""What of an entity or a document is spelled otherwise than it was given, for the reports of lint and convert.

Rule: both sides mean the same, so what differs is a spelling; each place is one of what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.document.spelling import from_canonical, to_canonical
from signalbook.errors import RegistryError
from signalbook.spec.versions import SpecVersion

__all__ = ["differences", "respelled"]

Attributes = Mapping[str, Any]


def respelled(domain: str, attrs: Attributes, spec: SpecVersion, *, group: bool = False) -> Iterator[tuple[str, str]]:
    """Each place of an entity that is stored in another spelling than it and `spec` have, with words about it."""
    try:
        canonical = to_canonical(domain, attrs, group=group)
    except RegistryError:  # a contradiction, which a check tells
        return
    yield from differences(attrs, from_canonical(domain, canonical, spec, group=group))


def differences(given: Any, shown: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Each place of `given` that `shown`, which means the same, has otherwise, with words that follow a verb."""
    if given is shown or given == shown:
        return
    if isinstance(given, list) and isinstance(shown, list) and len(given) == len(shown):
        for number, (member, other) in enumerate(zip(given, shown, strict=True)):
            yield from differences(member, other, f"{at}/{number}")
    elif isinstance(given, dict) and isinstance(shown, dict):
        added = {name: value for name, value in shown.items() if name not in given}
        for name, value in given.items():
            if name in shown:
                yield from differences(value, shown[name], f"{at}/{name}")
            elif value is not None:
                yield f"{at}/{name}", _where(value, added)
    else:
        plain = isinstance(given, str | int | float) and isinstance(shown, str | int | float)
        yield at, f'as "{shown}"' if plain else "in another form"


def _where(value: Any, added: Attributes) -> str:
    """Words about a member that has another name now, or stands elsewhere; `added` are the new ones beside it."""
    same = [name for name, other in added.items() if other == value]
    if same:
        return f'as "{same[0]}"'
    names = ", ".join(f'"{name}"' for name in added)
    return f"in another form, under {names}" if names else "in another place"
