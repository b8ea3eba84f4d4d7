"""`Compiled`: one definition made ready to be tested, and its `Plan` for each kind of message.

Rule 1: a plan says which constraints apply to a kind of message, which of them are the key, and what can never fit.
Rule 2: a message of another protocol than the definition's is not tested on it, and its key does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from signalbook.document.dialects.held import has_inferred_schema, holds_more
from signalbook.errors import Problem
from signalbook.messages.constraint import Constraint
from signalbook.messages.content_type import ContentType
from signalbook.messages.definition import Definition
from signalbook.messages.envelope import (
    CLOUDEVENTS,
    constants,
    data_constraints,
    envelope_constraints,
    envelope_key,
    mode_constraint,
    transport_constraints,
)
from signalbook.messages.observed import Kind
from signalbook.messages.payload import PayloadCheck
from signalbook.messages.protocols import PROTOCOLS, Protocol, protocol_constraints
from signalbook.messages.schema_library import SchemaLibrary
from signalbook.spec.protocols import stated_protocol
from signalbook.template import Template
from signalbook.wire import find_protocol

__all__ = ["Compiled", "Limits", "Plan", "compile_definition"]

_NO_PROTOCOL = Protocol({})


@dataclass(frozen=True, slots=True)
class Limits:
    """What an endpoint says where its messages say nothing."""

    protocol: str | None = None
    mode: str | None = None
    envelope: str | None = None

    @classmethod
    def of(cls, endpoint: Mapping[str, Any]) -> Limits:
        """The limits of an endpoint's attributes."""
        options = endpoint.get("envelopeoptions")
        mode = options.get("mode") if isinstance(options, Mapping) else None
        envelope = endpoint.get("envelope")
        return cls(
            _protocol(endpoint.get("protocol")),
            mode if isinstance(mode, str) else None,
            envelope if isinstance(envelope, str) and envelope else None,
        )


_NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A definition's constraints by what they are about."""

    definition: Definition
    envelope: str | None
    protocol: str | None
    on_envelope: tuple[Constraint, ...]
    on_protocol: tuple[Constraint, ...]
    on_data: tuple[Constraint, ...]
    on_transport: tuple[Constraint, ...]
    mode: Constraint | None
    payload: PayloadCheck

    @property
    def row(self) -> Protocol:
        """The protocol's row; an empty one where nobody knows the protocol."""
        return PROTOCOLS.get(self.protocol or "", _NO_PROTOCOL)

    def plan(self, kind: Kind, protocol: str | None, limits: Limits | None = None) -> Plan:
        """How messages of a kind that come over a protocol are tested."""
        limits = limits or _NO_LIMITS
        envelope, bound = self.envelope or limits.envelope, self.protocol or limits.protocol
        if kind is Kind.BARE:
            return self._bare(envelope, bound)
        on_protocol = self.on_protocol if self.protocol == protocol else ()
        misfit: Problem | None = None
        if bound is not None and bound != protocol:
            misfit = Problem("/protocol", "protocol", f'the message came over "{protocol}", not over "{bound}"')
        elif kind is Kind.EVENT and envelope not in (None, CLOUDEVENTS):
            misfit = _envelope_misfit(envelope)
        elif kind is Kind.NATIVE and envelope is not None and not on_protocol:
            # What is no event is known by what the protocol says of it, and by nothing else.
            misfit = Problem("/envelope", "envelope", f'the message has no envelope, "{envelope}" is wanted')
        is_event = kind is Kind.EVENT and envelope == CLOUDEVENTS
        on_envelope = self.on_envelope if is_event else ()
        mode = self.mode or mode_constraint(limits.mode)
        tests = (
            *on_envelope,
            *on_protocol,
            *self.on_data,
            *self.on_transport,
            *((mode,) if is_event and mode is not None else ()),
        )
        key: tuple[Constraint, ...] = ()
        if misfit is None or misfit.code != "protocol":
            key = envelope_key(on_envelope) or self._protocol_key(on_protocol)
            key = key or constants((*on_envelope, *on_protocol))
        return Plan(self, kind, tests, key, misfit, bound is not None)

    def _bare(self, envelope: str | None, bound: str | None) -> Plan:
        misfit = None if envelope == CLOUDEVENTS else _envelope_misfit(envelope)
        on_envelope = () if misfit else self.on_envelope
        key = envelope_key(on_envelope) or constants(on_envelope)
        # Where there is no transport, nothing is said about its content type.
        return Plan(self, Kind.BARE, (*on_envelope, *self.on_data), key, misfit, bound is not None)

    def _protocol_key(self, on_protocol: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
        row = self.row
        found = {one.path: one for one in on_protocol if one.is_key}
        for path in row.keys:
            if path in found:
                return (found[path], *(found[beside] for beside in row.beside_key if beside in found))
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How messages of one kind are tested: every constraint, those of them that are the key, and what never fits.

    `is_bound` says that the definition has a protocol, its own or that of the endpoint in scope.
    """

    compiled: Compiled
    kind: Kind
    tests: tuple[Constraint, ...]
    key: tuple[Constraint, ...]
    misfit: Problem | None = None
    is_bound: bool = False

    @property
    def is_single(self) -> bool:
        """Whether its key is one constant."""
        return len(self.key) == 1 and self.key[0].constant is not None

    @property
    def is_at_home(self) -> bool:
        """Whether it is bound to what carried the message: to its protocol, or to none where it is a bare event."""
        return self.is_bound is not (self.kind is Kind.BARE)

    @property
    def derives_from(self) -> tuple[str, ...]:
        """The definitions it derives from."""
        return self.compiled.definition.derives_from


def compile_definition(definition: Definition, library: SchemaLibrary, before: Compiled | None = None) -> Compiled:
    """The definition, ready to be tested; where it is the same as `before`, only its schema is looked up again."""
    document = definition.document
    protocol = _protocol(document.get("protocol"))
    options = document.get("envelopeoptions")
    framing = document.get("dataschemaframing")
    payload = PayloadCheck(
        library.source(document),
        library,
        _payload_type(document.get("datacontenttype")),
        references=library.references(document),
        framing=framing.lower() if isinstance(framing, str) else None,
        is_all=definition.envelope is None and protocol is None,
        is_inferred=has_inferred_schema(document),
    )
    if before is not None and before.definition == definition:
        return replace(before, payload=payload)
    return Compiled(
        definition=definition,
        envelope=definition.envelope,
        protocol=protocol,
        on_envelope=tuple(envelope_constraints(document.get("envelopemetadata"))),
        on_protocol=tuple(
            protocol_constraints(protocol or "", document.get("protocoloptions"), held=holds_more(document))
        ),
        on_data=tuple(data_constraints(document)),
        on_transport=tuple(transport_constraints(document)),
        mode=mode_constraint(options.get("mode") if isinstance(options, Mapping) else None),
        payload=payload,
    )


def _protocol(value: Any) -> str | None:
    """A protocol's name as messages have it; one that nobody knows as it stands."""
    stated = stated_protocol(value)
    return (find_protocol(stated) or stated) if stated else None


def _payload_type(stated: Any) -> str | None:
    """The content type that a definition states for payloads; that of an envelope, or a template, is none."""
    parsed = ContentType.parse(stated) if isinstance(stated, str) and Template.parse(stated).literal else None
    return None if parsed is None or parsed.is_event else str(stated)


def _envelope_misfit(wanted: str | None) -> Problem:
    words = f'the message is a CloudEvent, "{wanted}" is wanted' if wanted else "the definition has no envelope"
    return Problem("/envelope", "envelope", words)
