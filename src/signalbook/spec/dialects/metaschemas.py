"""The metaschemas of 0.1, section 3: the sections of a `definition` by format, and the fields of each.

Rule: a section with names has these fields and no others; one with a pattern has any field whose name matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from signalbook.spec.dialects.dialect import AMQP_PROPERTIES

__all__ = ["METASCHEMAS", "Field", "Metaschema", "Section"]

Field = Literal[
    "template", "boolean", "integer", "ubyte", "uint", "timestamp", "binary", "uri", "media", "topic",
    "subject", "count", "dataschema", "choice",
]  # fmt: skip

# CloudEvents 1.0 "Naming Conventions"; AMQP 1.0 section 1.6.18 `symbol`: ASCII; MQTT 5.0 section 1.5.4: any UTF-8.
_CLOUDEVENTS_NAME = r"(?!data$)[a-z0-9]+"
_CLOUDEVENTS_KINDS: Mapping[str, Field] = {
    "source": "uri", "time": "timestamp", "datacontenttype": "media", "dataschema": "dataschema",
}  # fmt: skip
_SYMBOL = r"[\x21-\x7e]+"
_ANY = r"[^\x00]+"


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its fields by name, or the pattern of their names, some of which have a kind of their own.

    `choices` limits the value of some. A field is a template, or of the kind `choice` one of its choices itself. Where
    the text gives fields their types and does not ask for templates (3.4.1, 3.5.1), a field `may_be_text` as well.
    """

    fields: Mapping[str, Field] | None = None
    pattern: str = ""
    choices: Mapping[str, tuple[str, ...]] | None = None
    kinds: Mapping[str, Field] | None = None
    may_be_text: bool = False


@dataclass(frozen=True, slots=True)
class Metaschema:
    """The sections of a format, and where its `relatedvia` may point: fixed places, or any field of some sections.

    Where `via_attribute` is set, it is the bare name of a field of that section. `modern` are the fields that only the
    newer of two protocol versions has.
    """

    sections: Mapping[str, Section]
    via: tuple[str, ...] = ()
    via_sections: tuple[str, ...] = ()
    via_attribute: str = ""
    modern: frozenset[str] = frozenset()


_AMQP_KINDS: Mapping[str, Field] = {
    "content-type": "media", "user-id": "binary",
    "absolute-expiry-time": "timestamp", "creation-time": "timestamp", "group-sequence": "count",
}  # fmt: skip
_PAYLOAD = Section({"dataschema": "dataschema"})
_MODERN = ("payloadformat", "expiryinterval", "responsetopic", "correlationdata", "contenttype")

METASCHEMAS: Mapping[str, Metaschema] = {
    "CloudEvents": Metaschema(
        {
            "attributes": Section(
                pattern=_CLOUDEVENTS_NAME, kinds=_CLOUDEVENTS_KINDS, choices={"specversion": ("1.0",)}
            ),
        },
        via_attribute="attributes",
    ),
    "AMQP": Metaschema(
        {
            "header": Section({"durable": "boolean", "priority": "ubyte", "ttl": "uint"}),
            "deliveryannotations": Section(pattern=_SYMBOL),
            "messageannotations": Section(pattern=_SYMBOL),
            "properties": Section(
                {name.replace("-", ""): _AMQP_KINDS.get(name, "template") for name in AMQP_PROPERTIES}
            ),
            "applicationproperties": Section(pattern=_SYMBOL),
            "applicationdata": Section(
                {"dataschema": "dataschema", "amqpencoding": "choice"},
                choices={"amqpencoding": ("Data", "Value", "Sequence")},
            ),
            "footer": Section(pattern=_SYMBOL),
        },
        via=("properties.correlationid", "properties.groupid"),
        via_sections=("applicationproperties",),
    ),
    "MQTT": Metaschema(
        {
            "publish": Section(
                {
                    "mqttversion": "choice",
                    "qos": "integer",
                    "retain": "boolean",
                    "topicname": "topic",
                    "payloadformat": "integer",
                    "expiryinterval": "uint",
                    "responsetopic": "topic",
                    "correlationdata": "binary",
                    "contenttype": "media",
                },
                choices={"mqttversion": ("3.1.1", "5.0"), "qos": ("0", "1", "2"), "payloadformat": ("0", "1")},
                may_be_text=True,
            ),
            "userproperty": Section(pattern=_ANY),
            "payload": _PAYLOAD,
        },
        via=("publish.correlationdata",),
        via_sections=("userproperty",),
        modern=frozenset(_MODERN),
    ),
    "NATS": Metaschema(
        {"pub": Section({"subject": "subject", "replyto": "subject"}, may_be_text=True), "payload": _PAYLOAD}
    ),
}
