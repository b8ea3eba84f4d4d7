"""What a definition demands of one property of a message (`PropertyConstraint`) and of its payload (`PayloadCheck`).

Rule 1: a property that is absent is fine unless it is needed; of several values of one name, one has to satisfy. Of
more than `_MOST_TRIED` it has to be the constant itself, or among the first that differ.
Rule 2: a placeholder means the same in all properties: what one captured, the next has to agree with.
Rule 3: `holds` and `problem` say the same; `problem` has the words.
Rule 4: a value that a write would reject (`protocols.values.fault`) is never satisfied.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from signalbook.budget import Budget, current
from signalbook.errors import Problem
from signalbook.jsontext import is_json_text
from signalbook.messages.observe import Observed
from signalbook.messages.schema_library import SchemaLibrary, SchemaSource, UncheckedSchema, references_of
from signalbook.protocols import PROTOCOLS, Mode
from signalbook.protocols.values import (
    NOW,
    TEXTS,
    Property,
    PropertyPlace,
    ValueForm,
    canonical,
    fault,
    is_of,
    same,
    value_template,
)
from signalbook.schemas import Checked, Schema
from signalbook.schemas.framing import (
    FRAME,
    UNFRAMED,
    VALUE_HEADER,
    Mark,
    Reader,
    check,
    check_frame,
    is_framed,
    reader_of,
)
from signalbook.template import Template

__all__ = [
    "JUDGING",
    "MOST_STEPS",
    "NOW",
    "SPELLED",
    "ContentType",
    "Context",
    "JudgedPayload",
    "Named",
    "PayloadCheck",
    "PropertyConstraint",
    "Several",
    "is_json",
    "satisfies",
    "texts_of",
]

# The values that a message has under one name, where it may have the name many times.
#
# Rule 1: the names of a message are sorted once, however many definitions ask for one of them.
# Rule 2: whether one of many values is a certain text is one question, however many there are.


# So few pairs are gone through as fast as they are sorted.
_FEW_PAIRS = 16
_Pairs = Sequence[tuple[str, Any]]


class Several(list[Any]):
    """All values of one name, and their texts."""

    __slots__ = ("_texts",)

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self._texts: dict[str, Any] | None = None

    @property
    def texts(self) -> dict[str, Any]:
        """Each text that is among the values, in their order, with a value that it is the text of."""
        if self._texts is None:
            self._texts = {}
            for value in self:
                text = canonical(value)
                if value.__class__ is str or text not in self._texts:
                    self._texts[text] = value
        return self._texts


def texts_of(values: Sequence[Any]) -> Collection[str]:
    """The texts of values, each once."""
    return values.texts if isinstance(values, Several) else dict.fromkeys(map(canonical, values))


class Named:
    """Reads the values of a name from pairs; what the pairs of one message hold is kept until another's are read."""

    __slots__ = ("_fold", "_last", "_value")

    def __init__(self, value: Callable[[Any], Any] | None = None, fold: Callable[[str], str] | None = None) -> None:
        self._value = value
        self._fold = fold
        # One tuple, so that what another thread reads at the same time is of one message.
        self._last: tuple[_Pairs, dict[str, Several]] = ((), {})

    def __call__(self, pairs: _Pairs, name: str) -> Sequence[Any]:
        """Every value that the pairs have under the name, in their order."""
        fold = self._fold
        if fold is not None:
            name = fold(name)
        if len(pairs) > _FEW_PAIRS:
            return self._sorted(pairs).get(name, ())
        if fold is None:
            found = [value for own, value in pairs if own == name]
        else:
            found = [value for own, value in pairs if fold(own) == name]
        return found if self._value is None else [self._value(value) for value in found]

    def _sorted(self, pairs: _Pairs) -> dict[str, Several]:
        last, names = self._last
        if last is pairs:
            return names
        names = {}
        for own, value in pairs:
            name = own if self._fold is None else self._fold(own)
            names.setdefault(name, Several()).append(value if self._value is None else self._value(value))
        if isinstance(pairs, tuple):  # what cannot change is worth keeping
            self._last = (pairs, names)
        return names


# Content types as constraints: what a definition states, and whether a message's satisfies it.
#
# Rule: type, subtype and parameter names compare without case, `charset` values too; order and white space of
# parameters do not matter, quoted equals unquoted. Every parameter of the definition must be there, more are allowed
# (RFC 2045 section 5.1; message/spec.md, `datacontenttype`).


_TOKEN = r"[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+"
_head = re.compile(rf"[ \t]*({_TOKEN}/{_TOKEN})[ \t]*").match
_parameter = re.compile(rf'[ \t]*;[ \t]*(?:({_TOKEN})[ \t]*=[ \t]*({_TOKEN}|"(?:[^"\\]|\\.)*")[ \t]*)?').match
_LONGEST_KEPT = 200


@dataclass(frozen=True, slots=True)
class ContentType:
    """A content type: its name in lower case, and its parameters."""

    name: str
    parameters: frozenset[tuple[str, str]]

    @classmethod
    def parse(cls, text: str) -> ContentType | None:
        """The content type that a text states; None where it is not a content type."""
        return _parse_cached(text) if len(text) <= _LONGEST_KEPT else _parse(text)

    @property
    def is_event(self) -> bool:
        """Whether it is one of an event or a batch of events."""
        return self.name.startswith("application/cloudevents")

    @property
    def is_json(self) -> bool:
        """Whether it is JSON or made of JSON."""
        return self.name.endswith(("/json", "+json"))


def satisfies(found: str, expected: str) -> bool:
    """Whether a message's content type is what a definition wants."""
    if found == expected:
        return True
    one, other = ContentType.parse(found), ContentType.parse(expected)
    return one is not None and other is not None and one.name == other.name and other.parameters <= one.parameters


def is_json(text: str) -> bool:
    """Whether a text is a content type of JSON."""
    parsed = ContentType.parse(text)
    return parsed is not None and parsed.is_json


def _parse(text: str) -> ContentType | None:
    head = _head(text)
    if head is None:
        return None
    parameters = set()
    at = head.end()
    while at < len(text):
        found = _parameter(text, at)
        if found is None:
            return None
        if found[1] is not None:
            name, value = found[1].lower(), found[2]
            if value[0] == '"':
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            parameters.add((name, value.lower() if name == "charset" else value))
        at = found.end()
    return ContentType(head[1].lower(), frozenset(parameters))


_parse_cached = lru_cache(4096)(_parse)


Context = dict[str, str]
Read = Callable[[Observed], Sequence[Any]]

_LONGEST_SHOWN = 100
_MOST_TRIED = 32
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NOT_QUOTED = frozenset({"boolean", "integer", "number", "ulong"})
_ANY_STRING = frozenset({"any", "string", "uritemplate"})
# The types of which one value has several spellings.
SPELLED = frozenset({"number", "binary", "timestamp", "uuid"})


@dataclass(frozen=True, slots=True, eq=False)
class PropertyConstraint:
    """One property's constraint.

    `read` gives every value that a message has for it; `form` is how its transport carries them (None: as the event's
    attributes are carried). At most one of `constant` and `template` is set; `fault` says why no message can have
    either. `code` is that of a value which is another; `needed` says of a message whether the property must be there
    although it is not `required`.
    """

    path: str
    read: Read
    form: ValueForm | None = ValueForm.TEXT
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
        cls,
        path: str,
        read: Read,
        given: Property,
        place: PropertyPlace,
        form: ValueForm | None,
        *,
        attribute: str = "",
    ) -> PropertyConstraint:
        """The constraint of a property at its place; `attribute` is its name where it is one of an event."""
        value = given.value
        wrong = fault(place, given)
        kind = place.kind(given.type, value)
        constant, template = None, None
        if kind == "timestamp" and value == NOW:
            value = None
        # A number or a flag of an older dialect may be a template, see `dialects.forms.with_held`.
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
        """Whether a message has one value for it that a consumer could route by; a content type is not one."""
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
                return Problem(self.path, "missing", f"{self._property_name} is missing")
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

    def _judge(self, value: Any, form: ValueForm, context: Context) -> Problem | None:
        if self.fault is not None:
            return Problem(
                self.path, "value", f"{self._property_name} cannot be what the definition says: it {self.fault}"
            )
        # Most values are strings of properties that take any.
        if not (value.__class__ is str and self.type in _ANY_STRING) and not is_of(self.type, form, value):
            return Problem(
                self.path, "type", f"{self._property_name} is {_shown(value)}, which is not a valid {self.type}"
            )
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
                words = f"{self._property_name} says {_shown(text)} for {{{name}}}, which is {_shown(known)} elsewhere"
                return Problem(self.path, "placeholder_conflict", words)
            added[name] = text
        context.update(added)
        return None

    def _wanted(self, value: Any) -> str:
        """The constant in an error's words: as JSON has it where the value is one of JSON, too."""
        constant = self.constant or ""
        is_number = value.__class__ in (int, float) and _NUMBER.fullmatch(constant) is not None
        is_json = is_number or (not isinstance(value, str) and self.type in _NOT_QUOTED)
        return _cut(constant) if is_json else _shown(constant)

    def _differs(self, value: Any, expected: str, code: str | None = None) -> Problem:
        return Problem(self.path, code or self.code, f"{self._property_name} {expected}, not {_shown(value)}")

    @property
    def _property_name(self) -> str:
        return self.path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _shown(value: Any) -> str:
    """A value in an error's words: on one line, and cut where it is long; a text in quotes, a number without."""
    if value.__class__ in (bool, int, float):
        return _cut(canonical(value))
    cut = _cut(value if isinstance(value, str) else canonical(value))
    return f'"{cut}"' if cut.isprintable() else repr(cut)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


# `PayloadCheck`: a payload judged by the schema of a definition, or by what its content type says.
#
# Rule 1: no payload (zero bytes, a tombstone, an event without data) is judged by no schema; JSON null is a payload.
# Rule 2: a schema that lies elsewhere or is not supported, and a content encoding that nobody knows, leave the payload
# unchecked: the metadata decide, unless the definition has nothing else to decide by, or every schema is required.
# Where neither a schema nor a frame nor JSON is asked for, there is nothing to check.
# Rule 3: Confluent's frame is taken off as `schemas.framing` says; its id stays with the answer. A frame that is
# declared has to be there, whatever becomes of the schema. What its id names in the catalog reads the payload, which is
# then judged by the definition's schema; formats that need no writer's schema do without.
# Rule 4: problems stand below `/data`.


class JudgedPayload(NamedTuple):
    """What is wrong with a payload, and what its schema made of it (None: it was not applied).

    `unchecked` says that there is a schema, or a content encoding, that could not be applied.
    """

    problems: tuple[Problem, ...] = ()
    checked: Checked | None = None
    unchecked: bool = False


# The steps that judging one message may take. Up to so many bytes, times the ways in which a schema judges each value,
# a payload is judged without being counted; of more, so many are a step.
MOST_STEPS = 500_000
JUDGING = "Judging the message"
_UNCOUNTED = 16 << 20
_A_STEP = 2048


def judging() -> Budget:
    """The steps that judging one message, or one payload, may take."""
    return current().part(MOST_STEPS, JUDGING)


_NOTHING_WRONG = JudgedPayload()
_UNCHECKED = JudgedPayload(unchecked=True)
_AVRO_JSON = "as JSON it would need the content type application/avro+json"


class _PayloadSchema(NamedTuple):
    """What one state of a library says of a definition's schema; `readers` are by what frames say of writers."""

    state: object
    source: SchemaSource | None
    schema: Schema | Problem | None
    readers: dict[int | str | None, Reader | Problem | None]


class _Writers(NamedTuple):
    """What a library knows of the schemas that a definition's payloads were written with."""

    known: _PayloadSchema
    library: SchemaLibrary

    def knows(self, schemaid: int) -> bool:
        """Whether an id of Confluent's framing is known to be one of the definition's schema."""
        return self.library.knows(schemaid, self.known.source)

    def reader(self, mark: Mark) -> Reader | Problem | None:
        """What reads a payload by the schema that it was written with; None where the definition's own does."""
        key = mark.guid if mark.schemaid is None else mark.schemaid
        _, source, schema, readers = self.known
        if key in readers:
            return readers[key]
        known = self.library.written(mark, source)
        if known is None or schema is None or isinstance(schema, Problem):
            return None
        if isinstance(known, Problem):  # which is not kept: anybody can make up ids
            return known if hasattr(schema, "written_by") else None
        writer = self.library.writer(known, "")
        found = writer if isinstance(writer, Problem) else reader_of(schema, writer)
        readers[key] = found
        return found


class PayloadCheck:
    """How the payloads of one definition are judged, by the schemas that a library has.

    Its schema is read with the first payload, and looked up again where another library is asked. `references` name it;
    `framing` is what the definition says about Confluent's frame; `is_all` says that there is nothing but the payload
    to know a message by.
    """

    __slots__ = ("_document", "_is_inferred", "_known", "content_type", "framing", "is_all", "references")

    def __init__(
        self,
        document: Mapping[str, Any],
        content_type: str | None,
        *,
        framing: str | None = None,
        is_all: bool = False,
        is_inferred: bool = False,
    ) -> None:
        self._document = document
        self._is_inferred = is_inferred
        self.content_type = content_type
        self.references = references_of(document)
        self.framing = framing
        self.is_all = is_all
        # What the library that was asked last says of the schema.
        self._known: _PayloadSchema | None = None

    def schema(self, library: SchemaLibrary) -> Schema | Problem | None:
        """The schema, or why it is not available; None where the definition does not name one."""
        return self._looked_up(library).schema

    def _looked_up(self, library: SchemaLibrary) -> _PayloadSchema:
        known = self._known
        if known is None or known.state is not library.state:
            found = library.source(self._document)
            source = found if isinstance(found, SchemaSource) else None
            schema = library.schema(source) if source is not None else found
            assert not isinstance(schema, SchemaSource)
            known = self._known = _PayloadSchema(library.state, source, schema, {})
        return known

    def may_be_unchecked(self, library: SchemaLibrary) -> bool:
        """Whether a payload need not be judged where its schema cannot be applied."""
        return not (self.is_all or library.policy.required)

    def is_named_by(self, dataschema: str, library: SchemaLibrary) -> bool:
        """Whether an event's `dataschema` is the definition's schema, or a version of it."""
        return any(library.are_same(one, dataschema) for one in self.references)

    def knows(self, schemaid: int, library: SchemaLibrary) -> bool:
        """Whether an id of Confluent's framing is known to be one of the definition's schema."""
        return library.knows(schemaid, self._looked_up(library).source)

    def has_ids(self, library: SchemaLibrary) -> bool:
        """Whether the catalog has ids of Confluent's among which the schema's would be."""
        return library.has_ids(self._looked_up(library).source)

    def own_mark(self, library: SchemaLibrary) -> Mark:
        """The id and the guid that the catalog has for the definition's schema.

        A part of an Avro document has none: what is written with an id is of the whole.
        """
        known = self._looked_up(library)
        source, schema = known.source, known.schema
        if source is None or schema is None or isinstance(schema, Problem):
            return Mark(None, None, 0)
        if source.link and not hasattr(schema, "frame_indexes"):
            whole = library.schema(replace(source, link=""))
            if isinstance(whole, Problem) or not getattr(schema, "is_same", lambda other: False)(whole):
                return Mark(None, None, 0)
        stated = next((one for one in library.policy.ids if library.knows(one, source)), None)
        return Mark(source.schemaid if stated is None else stated, source.guid, 0)

    def judge(self, observed: Observed, library: SchemaLibrary) -> JudgedPayload:
        """What is wrong with the message's payload; a schema whose format is a guess never makes one fail."""
        found = self._judge(observed, library)
        if not (self._is_inferred and found.problems):
            return found
        return _UNCHECKED if observed.payload() is not None else _NOTHING_WRONG

    def _judge(self, observed: Observed, library: SchemaLibrary) -> JudgedPayload:
        schema = self._looked_up(library)[2]
        unavailable = schema if isinstance(schema, Problem) else None
        may_be_unchecked = self.may_be_unchecked(library)
        if unavailable is not None and not (isinstance(unavailable, UncheckedSchema) and may_be_unchecked):
            return JudgedPayload((unavailable,))
        payload = observed.payload()
        if payload is None:
            return _NOTHING_WRONG
        content_type = observed.data_content_type() or self.content_type or ""
        framed = is_framed(self.framing, content_type)
        if schema is None and not framed and not is_json(content_type):
            return _NOTHING_WRONG
        if observed.unknown_encoding is not None and (schema is None or may_be_unchecked):
            return _UNCHECKED
        unreadable = observed.unreadable_payload or observed.unknown_encoding
        if schema is None or isinstance(schema, Problem):
            if framed:
                return self._by_frame(schema, unreadable, payload, content_type, _header_of(observed))
            return _UNCHECKED if schema is not None else self._by_content_type(observed, payload, content_type)
        if unreadable is not None:
            return JudgedPayload((Problem("/data", "payload", unreadable),))
        return self._by_schema(schema, payload, content_type, _header_of(observed), library)

    def _by_frame(
        self,
        schema: Problem | None,
        unreadable: str | None,
        payload: bytes,
        content_type: str,
        header: bytes | None,
    ) -> JudgedPayload:
        """Without a schema that can be applied, what has to be framed has to begin with a frame."""
        if unreadable is not None:
            return JudgedPayload((Problem("/data", "payload", unreadable),))
        checked = check_frame(payload, self.framing, header)
        if checked.problems:
            return JudgedPayload(tuple(map(_below_data, checked.problems)))
        body = payload if header is not None else payload[FRAME:]
        if schema is None and is_json(content_type) and not is_json_text(body):
            return JudgedPayload((_not_json(content_type),), checked)
        return JudgedPayload((), checked, unchecked=schema is not None)

    def _by_schema(
        self, schema: Schema, payload: bytes, content_type: str, header: bytes | None, library: SchemaLibrary
    ) -> JudgedPayload:
        ways: int = getattr(schema, "work", 1)
        if len(payload) * ways > _UNCOUNTED:
            judging().spend(len(payload) * ways // _A_STEP)
        checked = check(
            schema, payload, content_type, self.framing, _Writers(self._looked_up(library), library), header
        )
        if not checked.problems:
            return JudgedPayload((), checked)
        problems = [_below_data(one) for one in checked.problems]
        if schema.format.startswith("Avro/") and "avro+json" not in content_type and is_json_text(payload):
            problems = [replace(one, message=f"{one.message}; {_AVRO_JSON}") for one in problems]
        return JudgedPayload(tuple(problems), checked)

    def _by_content_type(self, observed: Observed, payload: bytes, content_type: str) -> JudgedPayload:
        """Without a schema, what is declared to be JSON has to be JSON; an undeclared frame may be around it."""
        if observed.is_json() or observed.unreadable_payload is not None or is_json_text(payload):
            return _NOTHING_WRONG
        if self.framing != UNFRAMED and payload[:1] == b"\0" and is_json_text(payload[FRAME:]):
            return _NOTHING_WRONG
        return JudgedPayload((_not_json(content_type),))


def _header_of(observed: Observed) -> bytes | None:
    """What the record's header for Confluent's frame holds, where the record's value is the payload."""
    message = observed.message
    if message is None or observed.mode in (Mode.STRUCTURED, Mode.BATCH):
        return None
    if not PROTOCOLS[message.protocol].frame_in_header:
        return None
    for name, value in message.fields.get("headers") or ():
        if name == VALUE_HEADER and isinstance(value, bytes):
            return value
    return None


def _not_json(content_type: str) -> Problem:
    return Problem("/data", "payload", f'the payload is not the JSON that "{content_type}" says')


def _below_data(problem: Problem) -> Problem:
    code = problem.code if problem.code == "schema_unavailable" else "payload"
    return Problem(f"/data{problem.path}", code, problem.message)
