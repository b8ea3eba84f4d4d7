"""The CloudEvents envelope: what `envelopemetadata` and `envelopeoptions` say about an event.

Rule 1: the attributes that CloudEvents defines are strings in every transport, so a type that is declared for one is
judged as text; an extension is judged in the form in which its transport carries it.
Rule 2: what is inferred (`datacontenttype`, `dataschema`) constrains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES
from signalbook.cloudevents.uri import is_absolute_uri
from signalbook.document.property_places import CONTENT_TYPE, ENVELOPE, EVENT_FORMAT, EVENT_MODE, Place, Property, fault
from signalbook.document.property_types import Form, canonical
from signalbook.messages.constraint import Constraint, Read
from signalbook.messages.content_type import ContentType
from signalbook.messages.observed import Observed
from signalbook.wire.fields import pointer

__all__ = [
    "CLOUDEVENTS",
    "TYPE",
    "constants",
    "data_constraints",
    "envelope_constraints",
    "envelope_key",
    "mode_constraint",
    "transport_constraints",
]

CLOUDEVENTS = "CloudEvents/1.0"
TYPE = "/envelopemetadata/type"

# It is the same in every event, so nobody routes by it.
_SAME_FOR_ALL = "/envelopemetadata/specversion"


def envelope_constraints(stated: Any) -> Iterator[Constraint]:
    """What `envelopemetadata` says about an event, in the order in which it stands there."""
    for name, given in stated.items() if isinstance(stated, Mapping) else ():
        if given is not None:
            yield Constraint.of(
                pointer("/envelopemetadata", name),
                _attribute(name) if name != "dataschema" else _schema_named(Property.of(given).value),
                Property.of(given),
                ENVELOPE.place(name),
                Form.TEXT if name in ATTRIBUTE_TYPES else None,
                attribute=name,
            )


def envelope_key(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """The key that `type` is, where it is declared with a value that has text in it."""
    return tuple(one for one in constraints if one.path == TYPE and one.is_key)


def constants(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """All constants among the metadata: together they are the key of a definition that has no other."""
    return tuple(one for one in constraints if one.is_constant and one.path != _SAME_FOR_ALL)


def data_constraints(document: Mapping[str, Any]) -> Iterator[Constraint]:
    """What `datacontenttype` says about the data of a message."""
    stated = document.get("datacontenttype")
    if stated is not None and not _is_of_event(stated):
        yield _content_type("/datacontenttype", _data, stated)


def transport_constraints(document: Mapping[str, Any]) -> Iterator[Constraint]:
    """What `datacontenttype` and `envelopeoptions.format` say about the content type at the message itself."""
    stated = document.get("datacontenttype")
    if _is_of_event(stated):
        yield _content_type("/datacontenttype", _transport, stated)
    options = document.get("envelopeoptions")
    named = options.get("format") if isinstance(options, Mapping) else None
    if named is not None:
        yield _content_type("/envelopeoptions/format", _structured, named, EVENT_FORMAT)


def _is_of_event(stated: Any) -> bool:
    parsed = ContentType.parse(stated) if isinstance(stated, str) else None
    return parsed is not None and parsed.is_event


def mode_constraint(mode: Any) -> Constraint | None:
    """What `envelopeoptions.mode` says about how an event is carried."""
    if mode is None:
        return None
    wrong = fault(EVENT_MODE, Property.plain(mode))
    return Constraint("/envelopeoptions/mode", _mode, constant=canonical(mode).lower(), code="mode", fault=wrong)


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


def _content_type(path: str, read: Read, stated: Any, place: Place = CONTENT_TYPE) -> Constraint:
    return Constraint.of(path, read, Property.plain(stated), place, Form.TEXT)


def _one(text: str | None) -> Sequence[str]:
    return () if text is None else (text,)


def _transport(observed: Observed) -> Sequence[str]:
    return _one(observed.transport_content_type())


def _data(observed: Observed) -> Sequence[str]:
    return _one(observed.data_content_type())


def _mode(observed: Observed) -> Sequence[str]:
    return _one(None if observed.mode is None else observed.mode.value)


def _structured(observed: Observed) -> Sequence[str]:
    """The content type of a structured event; in binary mode it is that of the data, and no format of an event."""
    return _one(observed.transport_content_type() if observed.mode not in (None, "binary") else None)
