"""Asking the named rules about an entity.

Rule 1: a rule belongs to types that state its domain in `modelcompatiblewith`, whoever wrote their model.
Rule 2: findings are values; the caller decides whether the first one refuses a write or all are shown.
Rule 3: a message definition is checked by the envelope and the protocol that it has in effect, be they its own, its
base's or its group's, and with all that it inherits.

The rules themselves are in `RULES`; docs/reference/rules.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial

from signalbook.errors import Problem
from signalbook.model import message_rules as message
from signalbook.model import protocol_rules as protocol
from signalbook.model.message_rules import NAME, NAME_AND_VERSION, Level, Rule, RuleSet, Severity, Subject
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA

__all__ = ["RULES", "Rule", "Subject", "check", "rereads", "rule_set", "rules_for"]

# The table of named rules: what the specification demands of messages, endpoints and schemas beyond a model.
#
# Rule 1: a rule is a row. Its name stands in every finding, in docs/reference/rules.md and in the cases that break it.
# Rule 2: an `error` refuses a write; a `warning` is for `signalbook lint`. What one of the texts or published models
# allows is never an error, so a document that is right in one version is accepted in all.
# Rule 3: the first finding of the first row is what a rejected write answers, so what explains others comes first.


_MQTT = ("MQTT/3.1.1", "MQTT/5.0")
_MQTT_WILDCARD = re.compile(r"[+#]")
_NATS_WILDCARD = re.compile(r"(^|\.)(\*|>)(\.|$)")
_FULL = "a name and a version, separated by a slash"
_SHORT = "a name, or a name and a version separated by a slash"

_messagegroup = partial(Rule, domain=MESSAGE, level="group")
_message = partial(Rule, domain=MESSAGE, level="version")
_event = partial(Rule, domain=MESSAGE, level="version", on="envelopemetadata")
_options = partial(Rule, domain=MESSAGE, level="version", on="protocoloptions")
_endpoint = partial(Rule, domain=ENDPOINT, level="group")
_network = partial(Rule, domain=ENDPOINT, level="group", on="protocoloptions")
_schemagroup = partial(Rule, domain=SCHEMA, level="group")
_schema = partial(Rule, domain=SCHEMA, level="version")

RULES: tuple[Rule, ...] = (
    _messagegroup(
        "messagegroup-envelope-name",
        "The `envelope` of a message group is a name and a version, such as `CloudEvents/1.0`.",
        message.named("envelope", NAME_AND_VERSION, _FULL),
        on="envelope",
    ),
    _messagegroup(
        "messagegroup-protocol-name",
        "The `protocol` of a message group is a name, or a name and a version, such as `MQTT/5.0`.",
        protocol.protocol_name,
        on="protocol",
    ),
    _messagegroup(
        "messagegroup-authority",
        "The `authority` of a message group is a URI, or a name such as `example.com`.",
        protocol.authority,
        on="authority",
    ),
    _message(
        "message-envelope-name",
        "The `envelope` of a message is a name and a version, such as `CloudEvents/1.0`.",
        message.named("envelope", NAME_AND_VERSION, _FULL),
        on="envelope",
    ),
    _message(
        "message-protocol-name",
        "The `protocol` of a message is a name, or a name and a version, such as `MQTT/5.0`.",
        protocol.protocol_name,
        on="protocol",
    ),
    _message(
        "message-authority",
        "The `authority` of a message is a URI, or a name such as `example.com`.",
        protocol.authority,
        on="authority",
    ),
    _message(
        "message-envelope-of-group",
        "A message has the `envelope` of its group, where the group states one.",
        message.of_group("envelope"),
        on="envelope",
        reads=("envelope",),
    ),
    _message(
        "message-protocol-of-group",
        "A message has the `protocol` of its group, where the group states one.",
        message.of_group("protocol"),
        on="protocol",
        reads=("protocol",),
    ),
    _message(
        "message-metadata-objects",
        "`envelopemetadata`, `envelopeoptions` and `protocoloptions` are objects, whatever envelope and protocol are.",
        message.metadata_objects,
    ),
    _message(
        "message-envelope-stated",
        "A message repeats the `envelope` of its group, since other groups may borrow it.",
        message.envelope_stated,
        severity="warning",
        reads=("envelope",),
    ),
    _message(
        "message-envelopemetadata-stated",
        "A message with an `envelope` has `envelopemetadata`, its own or those of its `basemessage`.",
        message.stated("envelopemetadata", "an envelope is set"),
        on="envelope",
        severity="warning",
    ),
    _message(
        "message-protocoloptions-stated",
        "A message with a `protocol` has `protocoloptions`, its own or those of its `basemessage`.",
        message.protocoloptions_stated,
        on="protocol",
        severity="warning",
    ),
    _message(
        "message-basemessage-reference",
        "`basemessage` is an absolute URI, or the xid of a message or of its version.",
        message.base_reference,
        on="basemessage",
    ),
    _message(
        "message-basemessage-chain",
        "Following `basemessage` never leads back to a message already seen, nor through more than 100.",
        message.base_chain,
        on="basemessage",
    ),
    _message(
        "message-one-dataschema",
        "`dataschema` and `dataschemauri` are not both present.",
        message.one_dataschema,
        on="dataschema",
    ),
    _message(
        "message-dataschemaformat-present",
        "A message with `dataschema` or `dataschemauri` has `dataschemaformat`, its own or that of its `basemessage`.",
        message.dataschema_has_format,
    ),
    _message(
        "message-dataschemaformat-name",
        "`dataschemaformat` is a name and a version, such as `JsonSchema/draft-07`.",
        message.named("dataschemaformat", NAME_AND_VERSION, _FULL),
        on="dataschemaformat",
    ),
    _message(
        "message-dataschemauri-reference",
        "`dataschemauri` is a URI or a relative reference.",
        message.uri_reference("dataschemauri"),
        on="dataschemauri",
    ),
    _message(
        "message-dataschemaxid-agrees",
        "Where both are present, `dataschemauri` is the `self` URL of what `dataschemaxid` names.",
        message.dataschemaxid_agrees,
        on="dataschemaxid",
    ),
    _message(
        "message-datacontenttype-syntax",
        "`datacontenttype` is a media type.",
        message.content_type_syntax,
        on="datacontenttype",
    ),
    _message(
        "message-datacontenttype-agrees",
        "The content type is the same wherever a definition states it; for a structured event it is the envelope's, for"
        " a binary one that of the data.",
        message.content_types_agree,
    ),
    _message(
        "message-property",
        "The value of a property is one that a message can have: of its `type`, or of the type that the text implies"
        " for it, in JSON or as a string, with placeholders as the text has them, and one that its protocol can send,"
        " which a wildcard is not; its `type` is one that the property can have, its `required` is true or false, its"
        " `description` is not empty, its `specurl` a URI reference. An option that is a number or a flag is one of"
        " JSON, and the `mode` of an event is `binary` or `structured`.",
        message.properties,
        reads=("envelope", "protocol"),
    ),
    _event(
        "cloudevents-required",
        "`id`, `source`, `specversion` and `type` are never `required: false`.",
        message.event_required,
    ),
    _event("cloudevents-specversion", "The value of `specversion` is `1.0`.", message.event_specversion),
    _event(
        "cloudevents-attribute-name",
        "CloudEvents attributes have names of lower-case letters and digits.",
        message.event_names,
    ),
    _event(
        "cloudevents-dataschema-agrees",
        "The value of the event's `dataschema` is that of `dataschemauri`, where both are present.",
        message.event_dataschema,
    ),
    _message(
        "cloudevents-options",
        "A message of which `envelopeoptions.mode` is `binary` has no `envelopeoptions.format`, which only a structured"
        " event has, and is not one of MQTT 3.1.1, which carries no others.",
        message.event_options,
        on="envelopeoptions",
        reads=("envelope", "protocol"),
    ),
    _options(
        "cloudevents-binding-agrees",
        "What a binary event has of an attribute in a property of its message (`ce-type` of HTTP and NATS, `ce_type` of"
        " Kafka, `cloudEvents:type` of AMQP, `type` of MQTT) is a value that the attribute can have, and the value that"
        " the envelope states of it, where both are stated.",
        protocol.binding_agrees,
        reads=("envelope", "protocol"),
    ),
    _event("cloudevents-id-value", "The event's `id` has no fixed value.", message.event_id, severity="warning"),
    _event(
        "cloudevents-time-value",
        "The event's `time` has no value but `0000-01-01T00:00:00Z`, which means now.",
        message.event_time,
        severity="warning",
    ),
    _event(
        "cloudevents-type-is-messageid",
        "The `messageid` is the value of the event's `type`.",
        message.event_type,
        severity="warning",
    ),
    _options(
        "http-status-or-method",
        "An HTTP message has a `status` or a `method`, not both.",
        protocol.exclusions,
        protocols=("HTTP",),
    ),
    _options(
        "http-header-name",
        "The headers of an HTTP message have valid names.",
        protocol.names("headers"),
        protocols=("HTTP",),
    ),
    _options(
        "http-query-name",
        "The query parameters of an HTTP message have names, which are percent-encoded.",
        protocol.names("query"),
        protocols=("HTTP",),
    ),
    _options(
        "message-property-name",
        "The headers of Kafka and NATS and the user properties of MQTT have names, which the protocol can send.",
        protocol.names("headers", "user_properties"),
        protocols=("KAFKA", "MQTT/5.0", "NATS"),
    ),
    _options(
        "kafka-one-key",
        "A Kafka record has a `key` or a `key_base64`, not both.",
        protocol.exclusions,
        protocols=("KAFKA",),
    ),
    _options(
        "amqp-property-name",
        "Application properties, annotations and footers of an AMQP message have names of ASCII characters.",
        protocol.names("application-properties", "message-annotations", "delivery-annotations", "footer"),
        protocols=("AMQP/1.0",),
    ),
    _options(
        "amqp-property-unique",
        "Application properties, annotations and footers of an AMQP message have names of their own, whatever the keys"
        " are under which a map has them.",
        protocol.unique_names,
        protocols=("AMQP/1.0",),
    ),
    _options(
        "amqp-message-id-value",
        "The `message-id` of an AMQP message has no fixed value; it may be a template.",
        protocol.amqp_message_id,
        protocols=("AMQP/1.0",),
        severity="warning",
    ),
    _endpoint(
        "endpoint-usage-values",
        "`usage` has at least one value, each of `subscriber`, `consumer`, `producer`.",
        protocol.usage_values,
        on="usage",
    ),
    _endpoint("endpoint-usage-stated", "An endpoint states its `usage`.", protocol.usage_stated, severity="warning"),
    _endpoint(
        "endpoint-usage-single",
        "`usage` has one value; `subscriber` and `consumer` go together, but not for HTTP and KAFKA.",
        protocol.usage_single,
        on="usage",
        severity="warning",
    ),
    _endpoint("endpoint-channel", "`channel` is not empty.", protocol.not_empty("channel"), on="channel"),
    _endpoint(
        "endpoint-envelope-name",
        "The `envelope` of an endpoint is a name, or a name and a version.",
        message.named("envelope", NAME, _SHORT),
        on="envelope",
    ),
    _endpoint(
        "endpoint-protocol-name",
        "The `protocol` of an endpoint is a name, or a name and a version.",
        protocol.protocol_name,
        on="protocol",
    ),
    _endpoint(
        "endpoint-envelope-format",
        "`envelopeoptions.format` is not present when `mode` is `binary`.",
        protocol.envelope_format,
        on="envelopeoptions",
    ),
    _endpoint(
        "endpoint-messagegroups-reference",
        "Each of `messagegroups` is an absolute URI or the xid of a message group.",
        protocol.messagegroup_references,
        on="messagegroups",
    ),
    _network(
        "endpoint-address-absolute",
        "The network addresses of an endpoint are absolute URIs.",
        protocol.address_absolute,
    ),
    _network(
        "endpoint-address-scheme",
        "The network addresses of an endpoint have a scheme of its protocol.",
        protocol.address_scheme,
        severity="warning",
    ),
    _network(
        "endpoint-authorization-values", "What `authorization` states is not empty.", protocol.authorization_values
    ),
    _network(
        "endpoint-authorization-type",
        "The `type` of an authorization is one that the specification names.",
        protocol.authorization_type,
        severity="warning",
    ),
    _network(
        "endpoint-sasl-mechanism",
        "An authorization has a `mechanism` only when its `type` is `SASL`.",
        protocol.sasl_mechanism,
    ),
    _network(
        "mqtt-topic-or-filter",
        "An MQTT endpoint has a `topic` or a `topicfilter`, not both.",
        protocol.either_option("topic", "topicfilter"),
        protocols=_MQTT,
    ),
    _network(
        "mqtt-endpoint-topic-wildcard",
        "The `topic` of an MQTT endpoint has no wildcards.",
        protocol.no_wildcards("topic", _MQTT_WILDCARD, "topic"),
        protocols=_MQTT,
        severity="warning",
    ),
    _network(
        "mqtt-shared-group-needs-filter",
        "An MQTT endpoint has a `sharedsubscriptiongroup` only together with a `topicfilter`.",
        protocol.needs_option("sharedsubscriptiongroup", "topicfilter"),
        protocols=("MQTT/5.0",),
    ),
    _network(
        "mqtt-shared-group-name",
        "The `sharedsubscriptiongroup` of an MQTT endpoint has no slash.",
        protocol.shared_group_name,
        protocols=("MQTT/5.0",),
    ),
    _network(
        "nats-subject-or-filter",
        "A NATS endpoint has a `subject` or a `subjectfilter`, not both.",
        protocol.either_option("subject", "subjectfilter"),
        protocols=("NATS",),
    ),
    _network(
        "nats-endpoint-subject-wildcard",
        "The `subject` of a NATS endpoint has no wildcards.",
        protocol.no_wildcards("subject", _NATS_WILDCARD, "subject"),
        protocols=("NATS",),
        severity="warning",
    ),
    _network(
        "nats-queuegroup-needs-filter",
        "A NATS endpoint has a `queuegroup` only together with a `subjectfilter`.",
        protocol.needs_option("queuegroup", "subjectfilter"),
        protocols=("NATS",),
    ),
    _network(
        "kafka-bootstrap-servers",
        "Where a Kafka endpoint lists `bootstrap.servers`, it names at least one, and none by an empty string.",
        protocol.bootstrap_servers,
        protocols=("KAFKA",),
    ),
    _network(
        "kafka-consumergroup",
        "A Kafka consumer names its `consumergroup`, a Kafka subscriber does not.",
        protocol.consumer_group,
        protocols=("KAFKA",),
        severity="warning",
    ),
    _network(
        "kafka-consumer-options",
        "`autooffsetreset` and `enableautocommit` are for Kafka consumers only.",
        protocol.consumer_options,
        protocols=("KAFKA",),
    ),
    _schemagroup(
        "schemagroup-format-name",
        "The `format` of a schema group is a name and a version, such as `Avro/1.11.0`.",
        message.named("format", NAME_AND_VERSION, _FULL),
        on="format",
        severity="warning",
    ),
    _schema(
        "schema-format-stated",
        "A schema states its `format`, without which its document is not validated.",
        protocol.schema_format_stated,
        severity="warning",
    ),
    _schema(
        "schema-format-name",
        "The `format` of a schema is a name and a version, such as `Avro/1.11.0`.",
        message.named("format", NAME_AND_VERSION, _FULL),
        on="format",
        severity="warning",
    ),
)


def check(domain: str, level: Level, subject: Subject, severity: Severity | None = None) -> Iterator[Problem]:
    """The findings of all rules of a domain and level about one entity, in the order of the table."""
    return rule_set(domain, level, severity).check(subject)


@lru_cache(maxsize=256)  # a domain is a text of a model, so of a client
def rule_set(domain: str, level: Level, severity: Severity | None = None) -> RuleSet:
    """The rules for entities of a type, ready to be asked."""
    inherits = domain == MESSAGE and level == "version"
    return RuleSet(rules_for(domain, level, severity), inherits, severity == "warning")


@lru_cache(maxsize=256)  # a domain is a text of a model, so of a client
def rules_for(domain: str, level: Level, severity: Severity | None = None) -> tuple[Rule, ...]:
    """The rules for entities of a type, of one severity or of both."""
    return tuple(
        rule for rule in RULES if (rule.domain, rule.level) == (domain, level) and severity in (None, rule.severity)
    )


@lru_cache(maxsize=256)
def rereads(domain: str) -> frozenset[str]:
    """The attributes of a group that rules about its resources look at: if one changes, they are checked again."""
    return frozenset(name for rule in RULES if rule.domain == domain and rule.level == "version" for name in rule.reads)
