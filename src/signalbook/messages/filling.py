"""Values for the properties of a definition: what was given, what the definition says, what can be made up.

Rule 1: a value that is given wins, unless it contradicts the definition; a given value that fits a template gives the
template's names their values, for all properties alike.
Rule 2: an optional template whose names have no value is left out; a required one is a gap. All gaps are kept.
Rule 3: each template is matched against what was made of it: what it gives back must be what was put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from signalbook.cloudevents.timestamp import format_timestamp
from signalbook.document.property_types import TEXTS, canonical, value_template
from signalbook.errors import Problem
from signalbook.messages.slots import Slot
from signalbook.template import Template

__all__ = ["NOTHING", "NOW", "Filling", "Origin", "template_of"]

NOW = "0000-01-01T00:00:00Z"
NOTHING: Any = object()


def _this_moment() -> datetime:
    return datetime.now(UTC)


def _random_id() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True)
class Origin:
    """Where times and ids come from."""

    clock: Callable[[], datetime] = _this_moment
    new_id: Callable[[], str] = _random_id


@dataclass(slots=True)
class Filling:
    """The values of one message while it is built, with all that is missing or wrong."""

    context: dict[str, str]
    origin: Origin
    missing: dict[str, Problem] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def learn(self, pairs: Iterable[tuple[Slot, Any]]) -> None:
        """Take the names' values from properties that are given whole."""
        for slot, given in pairs:
            template = template_of(slot)
            if template is None or template.literal or given is None:
                continue
            found = template.match(canonical(given))
            if found is None:
                self.wrong(slot, "template", f"value ({canonical(given)}) does not fit {template.text}")
                continue
            for name, text in found.items():
                known = self.context.setdefault(name, text)
                if known != text:
                    self.wrong(slot, "placeholder_conflict", f"{name} is {text} here and {known} elsewhere")

    def value(self, slot: Slot, given: Any = NOTHING) -> Any:
        """The value of a property, or `NOTHING` where it has none."""
        if slot.type == "timestamp" and slot.value == NOW:
            return self.now() if given is NOTHING else given
        template = template_of(slot)
        if given is not NOTHING:
            return self._given(slot, template, given)
        if template is not None and not template.literal:
            return self._expanded(slot, template)
        if slot.value is None and slot.required:
            self.lacks(slot, slot.label)
        return NOTHING if slot.value is None else slot.value

    def _given(self, slot: Slot, template: Template | None, given: Any) -> Any:
        constant = slot.value is not None and (template is None or template.literal)
        if constant and canonical(given) != canonical(slot.value):
            words = f"value ({canonical(given)}) contradicts the definition's ({canonical(slot.value)})"
            self.wrong(slot, "value", words)
        return given

    def _expanded(self, slot: Slot, template: Template) -> Any:
        absent = tuple(name for name in template.names if name not in self.context)
        if absent:
            self.left_out[slot.path] = absent
            if slot.required:
                for name in absent:
                    self.lacks(slot, name)
            return NOTHING
        text = template.expand(self.context)
        if template.match(text) != template.given_back(self.context):
            self.wrong(slot, "template", f"{text} would not give back what was put into {template.text}")
        return text

    def now(self) -> str:
        """This moment as a timestamp."""
        return format_timestamp(self.origin.clock())

    def lacks(self, slot: Slot, name: str) -> None:
        """Note a gap."""
        words = f"{name} needs a value" if name == slot.label else f"{slot.label} needs a value for {name}"
        self.missing.setdefault(name, Problem(slot.path, "missing", words))

    def wrong(self, slot: Slot, code: str, words: str) -> None:
        """Note what is wrong with a property."""
        self.problems.append(Problem(slot.path, code, words))


def template_of(slot: Slot) -> Template | None:
    """The template that a property's value is; None where it is open, or of a type that has none."""
    if isinstance(slot.value, str) and (slot.type in TEXTS or slot.is_plain):
        attribute = "" if slot.field else slot.name
        return value_template(slot.value, slot.type, attribute, is_content_type=slot.is_content_type)
    return None
