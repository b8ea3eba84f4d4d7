"""A property definition and the plain value that 1.0 has for some of them: what is left over is kept apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from signalbook.document.dialects.placeholders import is_beyond_level_one, is_same_in_both, renamed
from signalbook.document.dialects.rows import MISSING, Form, Step
from signalbook.spec.dialects.dialect import Row

__all__ = ["NOW", "PLAIN_FORMS", "PROPERTY", "template_text", "unwrapped", "wrapped"]

NOW = "0000-01-01T00:00:00Z"
PROPERTY = frozenset({"description", "name", "required", "specurl", "type", "value"})


def unwrapped(value: Any, step: Step, place: str) -> Any:
    """The plain value of a property definition; its other members are kept for the way back."""
    if "value" in step.rests.get(place, {}):
        return step.rests[place]["value"]
    if not isinstance(value, dict):
        return _filled(value, step, place)
    plain = _filled(value.get("value", MISSING), step, place)
    rest = {name: member for name, member in value.items() if name != "value" or plain is MISSING}
    if rest:
        step.kept[place] = rest
    return plain


def _filled(value: Any, step: Step, place: str) -> Any:
    """A template's text in names that 1.0 takes; the empty one of 0.1 stands for any content."""
    if step.dialect.formats and isinstance(value, str):
        return template_text(value, step, place) if value else MISSING
    return MISSING if value is None else value


def template_text(value: str, step: Step, place: str) -> str:
    """A template of 0.1 with names that 1.0 takes; what it takes for something else is noted."""
    if is_beyond_level_one(value):
        step.note("changed", place, f"'{value}' has an expression that 1.0 takes for plain text")

    def note(old: str, new: str) -> None:
        step.note("changed", place, f"the placeholder '{old}' is called '{new}'")

    return renamed(value, step.names, note)


def wrapped(value: Any, step: Step, place: str) -> Any:
    """The property definition of a plain value, with what was kept of it."""
    if step.dialect.formats and isinstance(value, str):
        if not is_same_in_both(value):
            step.kept[place] = {"value": value}
    elif step.dialect.formats:
        value = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return {**step.rests.get(place, {}), "value": value}


def _inward(read: Callable[[Any], Any]) -> Callable[[Any, Step, Row], Any]:
    def convert(value: Any, step: Step, row: Row) -> Any:
        plain = unwrapped(value, step, row.here)
        made = plain if plain is MISSING else read(plain)
        if made is MISSING and plain is not MISSING:  # a template where 1.0 has a number or a flag
            step.kept[row.here] = {**step.kept.get(row.here, {}), "value": plain}
        return made

    return convert


def _outward(value: Any, step: Step, row: Row) -> Any:
    return wrapped(value, step, row.here)


def _bare(value: Any, step: Step, row: Row) -> Any:
    return wrapped(value, step, row.here) if row.here in step.rests else value


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else MISSING
    return value


def _boolean(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.lower(), MISSING) if isinstance(value, str) else value


PLAIN_FORMS = {
    "plain": Form(_inward(lambda value: value), _outward),
    "bare": Form(_inward(lambda value: value), _bare),
    "integer": Form(_inward(_integer), _outward),
    "boolean": Form(_inward(_boolean), _outward),
}
