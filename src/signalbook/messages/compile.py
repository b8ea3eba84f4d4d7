"""Definitions made ready to be tested: what the envelope, the options of the protocol and the data say of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES, is_absolute_uri
from signalbook.dialects.forms import has_inferred_schema, holds_more
from signalbook.errors import Problem
from signalbook.messages.answer import UNCHECKED_PAYLOAD, Candidate
from signalbook.messages.constraint import ContentType, Context, Named, PayloadCheck, PropertyConstraint, Read
from signalbook.messages.definition import Definition
from signalbook.messages.observe import MessageKind, Observed
from signalbook.messages.schema_library import SchemaLibrary
from signalbook.model.protocol_rules import binding_faults
from signalbook.protocols.message import PROTOCOLS, exclusion_faults, find_protocol, stated_protocol
from signalbook.protocols.protocol import Fields, Option, Protocol, pointer
from signalbook.protocols.values import (
    CONTENT_TYPE,
    EVENT_FORMAT,
    EVENT_MODE,
    Property,
    PropertyPlace,
    PropertySection,
    ValueForm,
    attribute_place,
    canonical,
    fault,
    name_fault,
    named_members,
    section_fault,
    unique_fault,
)
from signalbook.schemas import Checked
from signalbook.schemas.framing import FrameOnly
from signalbook.template import Template

__all__ = [
    "CLOUDEVENTS",
    "TYPE",
    "Compiled",
    "EndpointLimits",
    "Judged",
    "MatchPlan",
    "compile_definition",
    "constants",
    "data_constraints",
    "envelope_constraints",
    "envelope_key",
    "judge",
    "key_holds",
    "may_hold",
    "mode_constraint",
    "payload_check",
    "protocol_constraints",
    "transport_constraints",
]

# The CloudEvents envelope: what `envelopemetadata` and `envelopeoptions` say about an event.
#
# Rule 1: the attributes that CloudEvents defines are strings in every transport, so a type that is declared for one is
# judged as text; an extension is judged in the form in which its transport carries it.
# Rule 2: what is inferred (`datacontenttype`, `dataschema`) constrains nothing.


CLOUDEVENTS = "CloudEvents/1.0"
TYPE = "/envelopemetadata/type"

# It is the same in every event, so nobody routes by it.
_SAME_FOR_ALL = "/envelopemetadata/specversion"


def envelope_constraints(document: Mapping[str, Any]) -> Iterator[PropertyConstraint]:
    """What `envelopemetadata` says about an event, in the order in which it stands there."""
    stated = document.get("envelopemetadata")
    for name, given in stated.items() if isinstance(stated, Mapping) else ():
        if given is None:
            continue
        stated_property, place = Property.of(given), attribute_place(name, given, document)
        if name == "dataschema":
            yield _of_attribute(name, stated_property, place, _schema_named(stated_property.value))
        elif stated_property.value.__class__ in _PLAIN and stated_property.type.__class__ in _PLAIN:
            yield _of_same_attribute(name, stated_property)
        else:
            yield _of_attribute(name, stated_property, place, _attribute(name))


def _of_attribute(name: str, given: Property, place: PropertyPlace, read: Read) -> PropertyConstraint:
    form = ValueForm.TEXT if name in ATTRIBUTE_TYPES else None
    return PropertyConstraint.of(pointer("/envelopemetadata", name), read, given, place, form, attribute=name)


# What can be a key, and is the same only where it is of the same type.
_PLAIN = frozenset({str, type(None)})


@lru_cache(4096)
def _of_same_attribute(name: str, given: Property) -> PropertyConstraint:
    """The constraint of an attribute other than `dataschema`; definitions that say the same share it."""
    return _of_attribute(name, given, attribute_place(name, None, {}), _attribute(name))


def envelope_key(constraints: Sequence[PropertyConstraint]) -> tuple[PropertyConstraint, ...]:
    """The key that `type` is, where it is declared with a value that has text in it."""
    return tuple(one for one in constraints if one.path == TYPE and one.is_key)


def constants(constraints: Sequence[PropertyConstraint]) -> tuple[PropertyConstraint, ...]:
    """All constants among the metadata: together they are the key of a definition that has no other."""
    return tuple(one for one in constraints if one.is_constant and one.path != _SAME_FOR_ALL)


def data_constraints(document: Mapping[str, Any]) -> Iterator[PropertyConstraint]:
    """What `datacontenttype` says about the data of a message."""
    stated = document.get("datacontenttype")
    if stated is not None and not _is_of_event(stated):
        yield _content_type("/datacontenttype", _data_content_type, stated)


def transport_constraints(document: Mapping[str, Any]) -> Iterator[PropertyConstraint]:
    """What `datacontenttype` and `envelopeoptions.format` say about the content type at the message itself."""
    stated = document.get("datacontenttype")
    if _is_of_event(stated):
        yield _content_type("/datacontenttype", _transport_content_type, stated)
    options = document.get("envelopeoptions")
    named = options.get("format") if isinstance(options, Mapping) else None
    if named is not None:
        yield _content_type("/envelopeoptions/format", _structured_content_type, named, EVENT_FORMAT)


def _is_of_event(stated: Any) -> bool:
    parsed = ContentType.parse(stated) if isinstance(stated, str) else None
    return parsed is not None and parsed.is_event


def mode_constraint(mode: Any) -> PropertyConstraint | None:
    """What `envelopeoptions.mode` says about how an event is carried."""
    if mode is None:
        return None
    wrong = fault(EVENT_MODE, Property.plain(mode))
    return PropertyConstraint(
        "/envelopeoptions/mode", _mode, constant=canonical(mode).lower(), code="mode", fault=wrong
    )


def _attribute(name: str) -> Read:
    def read(observed: Observed) -> Sequence[Any]:
        value = observed.attributes.get(name)
        return () if value is None else (value,)

    return read


def _schema_named(stated: Any) -> Read:
    """The event's `dataschema`, which is absolute; where a definition has a relative one, also as that."""
    read = _attribute("dataschema")
    if not isinstance(stated, str) or is_absolute_uri(stated):
        return read
    ending = stated if stated.startswith("/") else f"/{stated}"

    def read_both(observed: Observed) -> Sequence[Any]:
        found = read(observed)
        return (*found, stated) if any(isinstance(one, str) and one.endswith(ending) for one in found) else found

    return read_both


def _content_type(path: str, read: Read, stated: Any, place: PropertyPlace = CONTENT_TYPE) -> PropertyConstraint:
    return PropertyConstraint.of(path, read, Property.plain(stated), place, ValueForm.TEXT)


def _in_tuple(text: str | None) -> Sequence[str]:
    return () if text is None else (text,)


def _transport_content_type(observed: Observed) -> Sequence[str]:
    return _in_tuple(observed.transport_content_type())


def _data_content_type(observed: Observed) -> Sequence[str]:
    return _in_tuple(observed.data_content_type())


def _mode(observed: Observed) -> Sequence[str]:
    return _in_tuple(None if observed.mode is None else observed.mode.value)


def _structured_content_type(observed: Observed) -> Sequence[str]:
    """The content type of a structured event; in binary mode it is that of the data, and no format of an event."""
    return _in_tuple(observed.transport_content_type() if observed.mode not in (None, "binary") else None)


# The options of a protocol: what `protocoloptions` says about its messages.
#
# Rule 1: an option is a plain value; a section holds named properties. How either is read, which of them is the key
# that a consumer would route by, and which belong to that key, is said by the protocol's module.
# Rule 2: names compare with case, but where a protocol says otherwise.
# Rule 3: what a definition states besides the options of its protocol says nothing about a message.


_OPTIONS = "/protocoloptions"
_Faults = Mapping[tuple[str, str | int], str]
_NO_FAULTS: _Faults = MappingProxyType({})


def protocol_constraints(
    protocol: str, stated: Any, *, held: bool = False, wrong: _Faults = _NO_FAULTS
) -> Iterator[PropertyConstraint]:
    """What `protocoloptions` says about a message of a protocol, in the order in which it stands there.

    With `held` a property definition may stand where 1.0 has a plain value, see `dialects.held`. What is `wrong` with
    named properties is given by their field and their key there.
    """
    row = PROTOCOLS.get(protocol)
    if row is None or not isinstance(stated, Mapping):
        return
    excluded = exclusion_faults(protocol, stated)
    for name, value in stated.items():
        place = row.options.get(name)
        if isinstance(place, PropertyPlace):
            constraint = _option(row, name, place, _stated_property(value, held))
            if constraint is not None:
                yield _faulty(constraint, excluded.get(name))
        elif place is not None:
            for key, made in _members(protocol, name, place, value, held):
                yield _faulty(made, wrong.get((name, key)))


def _members(
    protocol: str, field_name: str, section: PropertySection, value: Any, held: bool
) -> Iterator[tuple[str | int, PropertyConstraint]]:
    path = f"{_OPTIONS}/{field_name}"
    wrong = section_fault(value)
    if wrong is not None:
        yield "", PropertyConstraint(path, _field(field_name), fault=wrong)
    taken: set[str] = set()
    for key, name, member in named_members(value):
        given = _stated_property(member, held) if section.plain else Property.of(member)
        read = _member(field_name, name, _READERS[protocol, field_name])
        made = PropertyConstraint.of(pointer(path, name), read, given, section.place(name), section.form)
        wrong = None if section.plain else name_fault(section, name) or unique_fault(section, name, taken)
        taken.add(name)
        yield key, _faulty(made, wrong)


def _faulty(made: PropertyConstraint, wrong: str | None) -> PropertyConstraint:
    """The constraint, which nothing satisfies where something is wrong with it."""
    return made if wrong is None else replace(made, fault=made.fault or wrong)


def _stated_property(value: Any, held: bool) -> Property:
    return Property.of(value) if held and isinstance(value, Mapping) else Property.plain(value)


def _fields(observed: Observed) -> Fields:
    assert observed.message is not None, "protocol constraints are tested on messages only"
    return observed.message.fields


def _option(row: Protocol, name: str, place: PropertyPlace, given: Property) -> PropertyConstraint | None:
    if given.value is None and not given.required:
        return None
    option = row.special.get(name)
    read = _field(name) if option is None else _special(option, place.kind(given.type, given.value))
    made = PropertyConstraint.of(f"{_OPTIONS}/{name}", read, given, place, ValueForm.JSON)
    needed = row.needed.get(name)
    return made if needed is None else replace(made, needed=lambda observed: needed(_fields(observed)))


def _field(name: str) -> Read:
    def read(observed: Observed) -> Sequence[Any]:
        value = _fields(observed).get(name)
        return () if value is None else (value,)

    return read


def _special(option: Option, kind: str) -> Read:
    def read(observed: Observed) -> Sequence[Any]:
        value = _fields(observed).get(option.field, option.default)
        return () if value is None else option.read(kind, value)

    return read


def _member(field_name: str, name: str, read_named: Callable[[Any, str], Sequence[Any]]) -> Read:
    return lambda observed: read_named(_fields(observed).get(field_name, ()), name)


def _read_map(members: Any, name: str) -> Sequence[Any]:
    value = members.get(name) if members else None
    return () if value is None else (value,)


# One reader for each section of each protocol: what it keeps of a message's pairs serves all definitions.
_READERS: Mapping[tuple[str, str], Callable[[Any, str], Sequence[Any]]] = {
    (row.name, name): _read_map if section.is_map else Named(section.read, str.lower if section.any_case else None)
    for row in PROTOCOLS.values()
    for name, section in row.options.items()
    if isinstance(section, PropertySection)
}


# `Compiled`: one definition made ready to be tested, and its `MatchPlan` for each kind of message.
#
# Rule 1: a plan says which constraints apply to a kind of message, which of them are the key, and what can never fit.
# Rule 2: a message of another protocol than the definition's is not tested on it, and its key does not hold.


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """What an endpoint says where its messages say nothing."""

    protocol: str | None = None
    mode: str | None = None
    envelope: str | None = None

    @classmethod
    def of(cls, endpoint: Mapping[str, Any]) -> EndpointLimits:
        """The limits of an endpoint's attributes."""
        options = endpoint.get("envelopeoptions")
        mode = options.get("mode") if isinstance(options, Mapping) else None
        envelope = endpoint.get("envelope")
        return cls(
            _protocol(endpoint.get("protocol")),
            mode if isinstance(mode, str) else None,
            envelope if isinstance(envelope, str) and envelope else None,
        )


_NO_LIMITS = EndpointLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A definition's constraints by what they are about."""

    definition: Definition
    envelope: str | None
    protocol: str | None
    on_envelope: tuple[PropertyConstraint, ...]
    on_protocol: tuple[PropertyConstraint, ...]
    on_data: tuple[PropertyConstraint, ...]
    on_transport: tuple[PropertyConstraint, ...]
    mode: PropertyConstraint | None
    payload: PayloadCheck

    def plan(
        self, kind: MessageKind, protocol: str | None, limits: EndpointLimits | None = None, place: str = ""
    ) -> MatchPlan:
        """How messages of a kind that come over a protocol are tested; `place` is its own in an index."""
        limits, place = limits or _NO_LIMITS, place or self.definition.identity
        envelope, bound = self.envelope or limits.envelope, self.protocol or limits.protocol
        if kind is MessageKind.BARE:
            return self._bare(envelope, bound, place)
        on_protocol = self.on_protocol if self.protocol == protocol else ()
        misfit: Problem | None = None
        if bound is not None and bound != protocol:
            misfit = Problem("/protocol", "protocol", f'the message came over "{protocol}", not over "{bound}"')
        elif kind is MessageKind.EVENT and envelope not in (None, CLOUDEVENTS):
            misfit = _envelope_misfit(envelope)
        elif kind is MessageKind.NATIVE and envelope is not None and not on_protocol:
            # What is not an event is known by what the protocol says of it, and by nothing else.
            misfit = Problem("/envelope", "envelope", f'the message has no envelope, "{envelope}" is wanted')
        is_event = kind is MessageKind.EVENT and envelope == CLOUDEVENTS
        on_envelope = self.on_envelope if is_event else ()
        mode = self.mode or mode_constraint(limits.mode)
        tests = (
            *on_envelope,
            *on_protocol,
            *self.on_data,
            *self.on_transport,
            *((mode,) if is_event and mode is not None else ()),
        )
        key: tuple[PropertyConstraint, ...] = ()
        if misfit is None or misfit.code != "protocol":
            key = envelope_key(on_envelope) or self._protocol_key(on_protocol)
            key = key or constants((*on_envelope, *on_protocol))
        return MatchPlan(self, kind, tests, key, misfit, bound is not None, place)

    def _bare(self, envelope: str | None, bound: str | None, place: str) -> MatchPlan:
        misfit = None if envelope == CLOUDEVENTS else _envelope_misfit(envelope)
        on_envelope = () if misfit else self.on_envelope
        key = envelope_key(on_envelope) or constants(on_envelope)
        # Where there is no transport, nothing is said about its content type.
        tests = (*on_envelope, *self.on_data)
        return MatchPlan(self, MessageKind.BARE, tests, key, misfit, bound is not None, place)

    def _protocol_key(self, on_protocol: tuple[PropertyConstraint, ...]) -> tuple[PropertyConstraint, ...]:
        row = PROTOCOLS.get(self.protocol or "")
        if row is None:
            return ()
        found = {one.path: one for one in on_protocol if one.is_key}
        for option, name in row.keys:
            path = pointer(f"{_OPTIONS}/{option}", name) if name else f"{_OPTIONS}/{option}"
            if path in found:
                beside = (f"{_OPTIONS}/{one}" for one in row.beside_key)
                return (found[path], *(found[one] for one in beside if one in found))
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class MatchPlan:
    """How messages of one kind are tested: every constraint, those of them that are the key, and what never fits.

    `is_bound` says that the definition has a protocol, its own or that of the endpoint in scope; `place` is where it
    stands among the plans of an index, whose order is that of their places.
    """

    compiled: Compiled
    kind: MessageKind
    tests: tuple[PropertyConstraint, ...]
    key: tuple[PropertyConstraint, ...]
    misfit: Problem | None = None
    is_bound: bool = False
    place: str = ""

    @property
    def is_single(self) -> bool:
        """Whether its key is one constant."""
        return len(self.key) == 1 and self.key[0].constant is not None

    @property
    def is_at_home(self) -> bool:
        """Whether it is bound to what carried the message: to its protocol, or to none where it is a bare event."""
        return self.is_bound is not (self.kind is MessageKind.BARE)

    @property
    def derives_from(self) -> tuple[str, ...]:
        """The definitions it derives from."""
        return self.compiled.definition.derives_from


def payload_check(definition: Definition) -> PayloadCheck:
    """How the payloads of a definition are judged."""
    document = definition.document
    framing = document.get("dataschemaframing")
    return PayloadCheck(
        document,
        _payload_type(document.get("datacontenttype")),
        framing=framing.lower() if isinstance(framing, str) else None,
        is_all=definition.envelope is None and _protocol(document.get("protocol")) is None,
        is_inferred=has_inferred_schema(document),
    )


# What a definition says to its readers, and not of its messages.
_PROSE = frozenset({"name", "description", "documentation", "icon", "labels"})


def _say_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two definitions have the same constraints."""
    if holds_more(one) or holds_more(other):
        return False
    said = one.keys() - _PROSE
    return said == other.keys() - _PROSE and all(one[name] == other[name] for name in said)


def compile_definition(definition: Definition, before: Compiled | None = None) -> Compiled:
    """The definition, ready to be tested; what a state before it has in common with it is shared."""
    document = definition.document
    if before is not None and _say_the_same(before.definition.document, document):
        return replace(before, definition=definition, payload=payload_check(definition))
    protocol = _protocol(document.get("protocol"))
    options = document.get("envelopeoptions")
    return Compiled(
        definition=definition,
        envelope=definition.envelope,
        protocol=protocol,
        on_envelope=tuple(envelope_constraints(document)),
        on_protocol=tuple(
            protocol_constraints(
                protocol or "",
                document.get("protocoloptions"),
                held=holds_more(document),
                wrong=binding_faults(document),
            )
        ),
        on_data=tuple(data_constraints(document)),
        on_transport=tuple(transport_constraints(document)),
        mode=mode_constraint(options.get("mode") if isinstance(options, Mapping) else None),
        payload=payload_check(definition),
    )


def _protocol(value: Any) -> str | None:
    """A protocol's name as messages have it; one that nobody knows as it stands."""
    stated = stated_protocol(value)
    return (find_protocol(stated) or stated) if stated else None


def _payload_type(stated: Any) -> str | None:
    """The content type that a definition states for payloads; that of an envelope, or a template, does not count."""
    parsed = ContentType.parse(stated) if isinstance(stated, str) and Template.parse(stated).literal else None
    return None if parsed is None or parsed.is_event else str(stated)


def _envelope_misfit(wanted: str | None) -> Problem:
    words = f'the message is a CloudEvent, "{wanted}" is wanted' if wanted else "the definition has no envelope"
    return Problem("/envelope", "envelope", words)


# `Judged`: what one definition says about one message.


# So few parts of a key are compared one by one.
_FEW = 8


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A plan, what the message captured by it, what is wrong, and what the payload schema made of the payload.

    `is_unchecked` says that the payload was left unchecked.
    """

    plan: MatchPlan
    context: Context
    problems: tuple[Problem, ...]
    checked: Checked | None
    is_unchecked: bool = False

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def confirmed(self) -> bool:
        """Whether a payload schema was applied and holds."""
        return self.checked is not None and not self.checked.problems and not isinstance(self.checked, FrameOnly)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What of the message was not checked."""
        return UNCHECKED_PAYLOAD if self.is_unchecked else ()

    @property
    def xid(self) -> str:
        """The definition's name."""
        return self.plan.compiled.definition.xid

    @property
    def identity(self) -> str:
        """The name of the definition that it is, where it is an alias."""
        return self.plan.compiled.definition.identity

    def candidate(self) -> Candidate:
        """The definition and what is wrong, as answers list it."""
        return Candidate(self.xid, self.problems)


def key_holds(plan: MatchPlan, observed: Observed) -> bool:
    """Whether the plan has a key, and the message has what it says."""
    if not plan.key:
        return False
    context: Context = {}
    return all(part.holds(observed, context, present=True) for part in plan.key)


def may_hold(plan: MatchPlan, observed: Observed) -> bool:
    """Whether the metadata is as the definition says; the payload may still be wrong."""
    context: Context = {}
    return plan.misfit is None and all(test.holds(observed, context) for test in plan.tests)


def judge(plan: MatchPlan, observed: Observed, library: SchemaLibrary) -> Judged:
    """Everything that the definition says about the message; the library has its payload schema."""
    context: Context = {}
    problems = [] if plan.misfit is None else [plan.misfit]
    key = plan.key if len(plan.key) < _FEW else frozenset(plan.key)
    for test in plan.tests:
        found = test.problem(observed, context, present=test in key)
        if found is not None:
            problems.append(found)
    payload = plan.compiled.payload.judge(observed, library)
    return Judged(plan, context, (*problems, *payload.problems), payload.checked, payload.unchecked)
