"""`Constraint`: what a definition says about one property of a message, ready to be tested.

Rule 1: a property that is absent is fine unless it is needed; of several values of one name, one has to satisfy. Of
more than `_MOST_TRIED` it has to be the constant itself, or among the first that differ.
Rule 2: a placeholder means the same in all properties: what one captured, the next has to agree with.
Rule 3: `holds` and `problem` say the same; `problem` has the words, and is asked when something is wrong.
Rule 4: a value that a write would refuse (`document.property_places`) is never satisfied.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from signalbook.document.property_places import NOW, Place, Property, fault
from signalbook.document.property_types import TEXTS, Form, canonical, is_of, same, value_template
from signalbook.errors import Problem
from signalbook.messages.content_type import ContentType, satisfies
from signalbook.messages.header_values import Several
from signalbook.messages.observed import Observed
from signalbook.template import Template

__all__ = ["NOW", "SPELLED", "Constraint", "Context"]

Context = dict[str, str]
Read = Callable[[Observed], Sequence[Any]]

_LONGEST_SHOWN = 100
_MOST_TRIED = 32
_NOT_QUOTED = frozenset({"boolean", "integer", "number", "ulong"})
_ANY_STRING = frozenset({"any", "string", "uritemplate"})
# The types of which one value has several spellings.
SPELLED = frozenset({"number", "binary", "timestamp", "uuid"})


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """One property's constraint.

    `read` gives every value that a message has for it; `form` is how its transport carries them (None: as the event's
    attributes are carried). At most one of `constant` and `template` is set; `fault` says why no message can have
    either. `code` is that of a value which is another; `needed` says of a message whether the property must be there
    although it is not `required`.
    """

    path: str
    read: Read
    form: Form | None = Form.TEXT
    type: str = "any"
    required: bool = False
    constant: str | None = None
    template: Template | None = None
    code: str = "value"
    needed: Callable[[Observed], bool] | None = None
    fault: str | None = None
    _names: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if self.template is not None:
            object.__setattr__(self, "_names", tuple(one.name for one in self.template.placeholders))

    @classmethod
    def of(
        cls, path: str, read: Read, given: Property, place: Place, form: Form | None, *, attribute: str = ""
    ) -> Constraint:
        """The constraint of a property at its place; `attribute` is its name where it is one of an event."""
        value = given.value
        wrong = fault(place, given)
        kind = place.kind(given.type)
        constant, template = None, None
        if kind == "timestamp" and value == NOW:
            value = None
        # A number or a flag of an older dialect may be a template, see `dialects.held`.
        if isinstance(value, str) and (kind in TEXTS or (given.type == "any" and place.type not in TEXTS)):
            parsed = value_template(value, kind, attribute, is_content_type=place.is_content_type)
            constant, template = (value, None) if parsed.literal else (None, parsed)
        elif value is not None:
            constant = canonical(value)
            if kind == "binary" and wrong is None:  # in its usual spelling, which a transport's bytes are shown in
                constant = canonical(base64.b64decode(constant))
        if place.is_content_type or (place.several and given.type is None):
            kind = "any"
        code = "content_type" if place.is_content_type else "value"
        return cls(path, read, form, kind, given.required, constant, template, code, fault=wrong)

    @property
    def is_constant(self) -> bool:
        """Whether a message has one value for it that a consumer could route by; a content type is none."""
        return self.constant is not None and self.code == "value"

    @property
    def is_key(self) -> bool:
        """Whether it can be a key by itself: a constant, or a template with text in it."""
        return self.is_constant or (
            self.code == "value" and self.template is not None and self.template.has_literal_text
        )

    def holds(self, observed: Observed, context: Context, present: bool = False) -> bool:
        """Whether the message satisfies it; captured names go into the context."""
        return self.problem(observed, context, present) is None

    def problem(self, observed: Observed, context: Context, present: bool = False) -> Problem | None:
        """What is wrong with the property in the message; with `present` it must be there."""
        values = self.read(observed)
        if not values:
            if present or self.required or (self.needed is not None and self.needed(observed)):
                return Problem(self.path, "missing", f"{self._said} is missing")
            return None
        form = self.form or observed.form
        first: Problem | None = None
        for value in values if len(values) <= _MOST_TRIED else self._likely(values):
            found = self._judge(value, form, context)
            if found is None:
                return None
            if first is None or found.code == "placeholder_conflict":
                first = found
        return first

    def _likely(self, values: Sequence[Any]) -> Sequence[Any]:
        """Of many values those to try: the one that is the constant, else some of them, each once."""
        texts = values.texts if isinstance(values, Several) else Several(values).texts
        if self.constant is not None and self.constant in texts:
            return (texts[self.constant],)
        if self.is_constant and self.type not in SPELLED:
            return values[:1]
        return tuple(islice(texts.values(), _MOST_TRIED))

    def _judge(self, value: Any, form: Form, context: Context) -> Problem | None:
        if self.fault is not None:
            return Problem(self.path, "value", f"{self._said} cannot be what the definition says: it {self.fault}")
        # Most values are strings of properties that take any.
        if not (value.__class__ is str and self.type in _ANY_STRING) and not is_of(self.type, form, value):
            return Problem(self.path, "type", f"{self._said} is {_shown(value)}, which is not a valid {self.type}")
        if self.constant is not None:
            return None if self._equals(value) else self._differs(value, f"must be {self._wanted(value)}")
        return None if self.template is None else self._captures(self.template, value, context)

    def _equals(self, value: Any) -> bool:
        text, constant = canonical(value), self.constant or ""
        if text == constant:
            return True
        if self.code == "content_type":
            return satisfies(text, constant)
        return same(self.type, text, constant)

    def _captures(self, template: Template, value: Any, context: Context) -> Problem | None:
        found = template.captures(canonical(value))
        if found is None or (self.code == "content_type" and ContentType.parse(canonical(value)) is None):
            code = "template" if self.code == "value" else self.code
            return self._differs(value, f"must be like {_shown(template.text)}", code)
        added: Context = {}
        for name, text in zip(self._names, found, strict=True):
            known = context.get(name, added.get(name))
            if known is not None and known != text:
                words = f"{self._said} says {_shown(text)} for {{{name}}}, which is {_shown(known)} elsewhere"
                return Problem(self.path, "placeholder_conflict", words)
            added[name] = text
        context.update(added)
        return None

    def _wanted(self, value: Any) -> str:
        """The constant in an error's words: as JSON has it where the value is one of JSON, too."""
        constant = self.constant or ""
        return _cut(constant) if not isinstance(value, str) and self.type in _NOT_QUOTED else _shown(constant)

    def _differs(self, value: Any, expected: str, code: str | None = None) -> Problem:
        return Problem(self.path, code or self.code, f"{self._said} {expected}, not {_shown(value)}")

    @property
    def _said(self) -> str:
        return self.path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _shown(value: Any) -> str:
    """A value in an error's words: on one line, and cut where it is long; a text in quotes, a number without."""
    if value.__class__ in (bool, int, float):
        return _cut(canonical(value))
    cut = _cut(value if isinstance(value, str) else canonical(value))
    return f'"{cut}"' if cut.isprintable() else repr(cut)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
