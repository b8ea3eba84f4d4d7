"""What a definition of an older dialect demands, and 1.0 has no place for, where messages are judged and built.

Rule 1: a label keeps it, as `rows` and `properties` say; here it becomes part of `protocoloptions` again, as a property
definition where 1.0 has a plain value: `required`, a type, a template where 1.0 has a number or a flag.
Rule 2: it counts where the message at hand has such a field: Kafka's timestamp, the section of an AMQP body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signalbook.document.dialects.rows import parsed
from signalbook.spec.dialects.v05 import V05

__all__ = ["has_inferred_schema", "holds_more", "with_held"]

Attributes = Mapping[str, Any]

_OPTIONS = "protocoloptions"
# Options that are numbers or flags in 1.0, and can be templates in 0.1: what is there is any value that fits.
_PLAIN = frozenset(
    {
        *("qos", "retain", "payload_format_indicator", "message_expiry_interval", "partition"),
        *("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    }
)
_LABELS = ("0.5.properties", "0.1.properties", "0.5.timestamp", "0.1.amqpencoding")
_SAYS = ("value", "required", "type")


def with_held(message: Attributes) -> Attributes:
    """A message with what its labels hold of its options."""
    labels = message.get("labels")
    if not isinstance(labels, Mapping):
        return message
    options = message.get(_OPTIONS)
    found: dict[str, Any] = dict(options) if isinstance(options, Mapping) else {}
    count = 0
    for path, rest in _held(labels, message.get("protocol")):
        _put(found, path, rest)
        count += 1
    return {**message, _OPTIONS: found} if count else message


def holds_more(message: Attributes) -> bool:
    """Whether a definition, or a base of it, has labels with what 1.0 has no place for."""
    labels = message.get("labels")
    return isinstance(labels, Mapping) and not labels.keys().isdisjoint(_LABELS)


def has_inferred_schema(message: Attributes) -> bool:
    """Whether a definition of 0.1 did not say what its schema is (section 3.1.2), so that it was inferred."""
    labels = message.get("labels")
    return isinstance(labels, Mapping) and labels.get("0.1.schematype") == "inferred"


def _held(labels: Attributes, protocol: Any) -> Iterator[tuple[list[str], dict[str, Any]]]:
    for label in _LABELS[:2]:
        kept = parsed(labels.get(label))
        for place, rest in kept.items() if isinstance(kept, dict) else ():
            section, *path = str(place).split("/")
            # A null is not listed, and the empty text is any: seed 004, 3.1.1. 0.5 keeps no value that is a text.
            if section == _OPTIONS and path and isinstance(rest, dict) and rest.get("value", "") is not None:
                yield path, {name: value for name, value in rest.items() if (name, value) != ("value", "")}
    if protocol == "KAFKA" and "0.5.timestamp" in labels:
        stamp = parsed(labels["0.5.timestamp"])
        rest = dict(stamp) if isinstance(stamp, dict) else {"value": stamp}
        # Seed 003, "Kafka" binding: 0 leaves it to the producer.
        yield ["timestamp"], {name: value for name, value in rest.items() if (name, value) != ("value", 0)}
    if protocol == "AMQP/1.0" and isinstance(labels.get("0.1.amqpencoding"), str):
        yield ["body"], {"value": labels["0.1.amqpencoding"].lower(), "required": True}


def _put(options: dict[str, Any], path: list[str], rest: Mapping[str, Any]) -> None:
    """Join a property at a path with what is held of it."""
    *above, name = path
    for step in above:
        inner = options.get(step)
        options[step] = options = dict(inner) if isinstance(inner, Mapping) else {}
    says = {key: rest[key] for key in _SAYS if key in rest}
    kind = says.get("type")
    if isinstance(kind, str):
        says["type"] = V05.types.get(kind, kind)
    elif name in _PLAIN and isinstance(says.get("value"), str):
        says["type"] = "any"
    if says:
        known = options.get(name)
        own = dict(known) if isinstance(known, Mapping) else {} if known is None else {"value": known}
        options[name] = {**own, **says}
