"""The table of protocols, and the names that each is known by.

Rule 1: a new protocol is a module of its own and a row of `PROTOCOLS`.
Rule 2: a definition, a message on paper, an endpoint and a document of an older dialect mean the same by the same name;
a name that is not here belongs to a protocol that somebody else defines.
Rule 3: `OPTIONS` is the one table of what a definition can state: a write refuses by it, lint names by it, a match is
made by it, a build is typed by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from signalbook.protocols.amqp import AMQP
from signalbook.protocols.http import HTTP
from signalbook.protocols.kafka import KAFKA
from signalbook.protocols.mqtt import MQTT3, MQTT5
from signalbook.protocols.nats import NATS
from signalbook.protocols.protocol import Binding, PaperField, Protocol
from signalbook.protocols.values import (
    ENVELOPE,
    EVENT_FORMAT,
    EVENT_MODE,
    Place,
    Property,
    Section,
    named_members,
    section_fault,
)

__all__ = [
    "ALIASES",
    "BINDINGS",
    "FIELDS",
    "OPTIONS",
    "PROTOCOLS",
    "address_of",
    "exclusion_faults",
    "find_protocol",
    "stated_names",
    "stated_properties",
    "stated_protocol",
]

# message/spec.md and endpoint/spec.md, `protocol`, by the specification's own names.
PROTOCOLS: Mapping[str, Protocol] = MappingProxyType({row.name: row for row in (HTTP, AMQP, MQTT5, MQTT3, KAFKA, NATS)})
FIELDS: Mapping[str, Mapping[str, PaperField]] = {name: row.fields for name, row in PROTOCOLS.items()}
OPTIONS: Mapping[str, Mapping[str, Place | Section]] = {name: row.options for name, row in PROTOCOLS.items()}
BINDINGS: Mapping[str, Binding] = {name: row.binding for name, row in PROTOCOLS.items()}
# Every name of a protocol in lower case: any case is one name; "AMQP" and "MQTT" stand for AMQP/1.0 and MQTT/5.0.
ALIASES: Mapping[str, str] = MappingProxyType(
    {alias: name for name, row in PROTOCOLS.items() for alias in (name.lower(), *row.aliases)}
)
# What public catalogs write (clemensv/real-time-sources) where a message has no protocol.
_NO_PROTOCOL = frozenset({"", "none"})
# A protocol that has no version in its name stands for all its versions: HTTP/1.1, HTTP/3.0, Kafka/0.11, NATS/2.10.
_ANY_VERSION = "|".join(re.escape(name.lower()) for name, row in PROTOCOLS.items() if row.any_version)
_VERSIONED = re.compile(rf"({_ANY_VERSION})/[0-9]+(?:\.[0-9]+)*", re.ASCII)


def find_protocol(name: object) -> str | None:
    """The specification's name of a protocol, from any spelling of it; None where it is not one of those."""
    if not isinstance(name, str) or not name.isascii():
        return None
    lower = name.lower()
    if (found := ALIASES.get(lower)) is not None:
        return found
    versioned = _VERSIONED.fullmatch(lower)
    return ALIASES[versioned[1]] if versioned else None


def stated_protocol(value: object) -> str | None:
    """The protocol that a definition states; `None`, which public catalogs write, is a word for having none."""
    return None if value is None or str(value).lower() in _NO_PROTOCOL else str(value)


def address_of(protocol: str) -> str | None:
    """The field that says where a message goes, where it must be there.

    None where it need not: a client of HTTP and AMQP may have the address from its connection.
    """
    row = PROTOCOLS.get(protocol)
    return None if row is None else row.address


Path = tuple[str | int, ...]


def stated_properties(attrs: Mapping[str, Any], event: bool, protocol: str) -> Iterator[tuple[Path, Place, Property]]:
    """Every property that a canonical definition states: its path, its place, and what is stated.

    `event` says that its envelope is CloudEvents, `protocol` is the canonical name of its protocol.
    """
    if event:
        yield from _members(("envelopemetadata",), ENVELOPE, attrs.get("envelopemetadata"))
        stated = attrs.get("envelopeoptions")
        chosen: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {}
        for name, place in (("mode", EVENT_MODE), ("format", EVENT_FORMAT)):
            if name in chosen:
                yield ("envelopeoptions", name), place, Property.plain(chosen[name])
    options = attrs.get("protocoloptions")
    table = OPTIONS.get(protocol)
    if table is None or not isinstance(options, Mapping):
        return
    for name, value in options.items():
        found = table.get(name)
        if isinstance(found, Section):
            if (words := section_fault(value)) is not None:
                yield ("protocoloptions", name), found.other, Property(flaw=words)
            yield from _members(("protocoloptions", name), found, value)
        elif found is not None:
            yield ("protocoloptions", name), found, Property.plain(value)


def _members(path: Path, section: Section, value: Any) -> Iterator[tuple[Path, Place, Property]]:
    for key, name, member in named_members(value):
        given = Property.plain(member) if section.plain else Property.of(member)
        yield (*path, key), section.place(name), given


def exclusion_faults(protocol: str, options: Any) -> Mapping[str, str]:
    """The options of a canonical definition that stand beside one that excludes them, with words that follow them."""
    row = PROTOCOLS.get(protocol)
    if row is None or not row.exclusive or not isinstance(options, Mapping):
        return _NO_FAULTS
    return {
        option: f'must not be present together with "{other}"'
        for option, other in row.exclusive
        if options.get(option) is not None and options.get(other) is not None
    }


_NO_FAULTS: Mapping[str, str] = MappingProxyType({})


def stated_names(attrs: Mapping[str, Any], protocol: str) -> Iterator[tuple[Path, Section, str]]:
    """Every named property of a canonical definition's protocol: its path, its section and its name."""
    options = attrs.get("protocoloptions")
    if not isinstance(options, Mapping):
        return
    for field_name, section in OPTIONS.get(protocol, {}).items():
        if isinstance(section, Section) and not section.plain:
            for key, name, _ in named_members(options.get(field_name)):
                yield ("protocoloptions", field_name, key), section, name
