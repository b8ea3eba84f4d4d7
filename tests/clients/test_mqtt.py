from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from signalbook.clients import mqtt
from signalbook.cloudevents import CloudEvent
from signalbook.protocols import Message, Mode, WireError
from tests.cases import Case, cases
from tests.clients.round_trips import arrives, modes, rejects
from tests.cloudevents.strategies import events

# paho does not read U+FEFF, which MQTT 5.0 allows (section 1.5.4).
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff"))
TOPICS = TEXTS.filter(lambda text: text and not set("+#") & set(text))
PUBLISH = {"topic_name": TOPICS, "qos": st.integers(0, 2), "retain": st.booleans()}
PROPERTIES = {
    "payload_format_indicator": st.just(0),
    "message_expiry_interval": st.integers(0, 2**32 - 1),
    "response_topic": TOPICS,
    "correlation_data": st.binary(),
    "content_type": TEXTS,
    "user_properties": st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4).map(tuple),
}
PAYLOADS = st.none() | st.binary(min_size=1)
MESSAGES = st.builds(
    Message, st.just("MQTT/5.0"), st.fixed_dictionaries(PUBLISH, optional=PROPERTIES), PAYLOADS
) | st.builds(Message, st.just("MQTT/3.1.1"), st.fixed_dictionaries(PUBLISH), PAYLOADS)


def through_client(message: Message) -> Message:
    """What `on_message` is shown: the properties go through their bytes."""
    args = mqtt.publish_args(message)
    shown = MQTTMessage(topic=args["topic"].encode())
    shown.payload, shown.qos, shown.retain = args["payload"] or b"", args["qos"], args["retain"]
    if "properties" in args:
        shown.properties = Properties(PacketTypes.PUBLISH)
        shown.properties.unpack(args["properties"].pack())
    return mqtt.to_paper(shown)


@given(MESSAGES)
def test_a_message_comes_back(message: Message) -> None:
    """Every property, user properties in their order and with repeats, is the same after the client had it."""
    assert message == through_client(message)


@modes("MQTT/5.0")
@given(event=events())
def test_an_event_comes_back(mode: Mode, event: CloudEvent) -> None:
    """An event is the same after the client had it."""
    if not any("\ufeff" in str(value) for value in event.attributes.values()):
        arrives(event, "MQTT/5.0", mode, through_client, topic_name="t")


@given(events())
def test_an_event_comes_back_over_the_older_version(event: CloudEvent) -> None:
    """An event over 3.1.1 is its JSON, and nothing beside it."""
    arrives(event, "MQTT/3.1.1", Mode.STRUCTURED, through_client, topic_name="t")


def test_properties_say_the_version() -> None:
    """A message without properties came over 3.1.1, one with empty ones over 5.0; zero bytes are no payload."""
    shown = MQTTMessage(topic="é".encode())
    fields = {"topic_name": "é", "qos": 0, "retain": False}
    assert Message("MQTT/3.1.1", fields) == mqtt.to_paper(shown)
    shown.properties = Properties(PacketTypes.PUBLISH)
    assert Message("MQTT/5.0", fields) == mqtt.to_paper(shown)


@cases("clients/mqtt_refused")
def test_refused(case: Case) -> None:
    """What is not a string of MQTT is rejected before it is sent, with its place."""
    rejects(mqtt.publish_args, case.given, case.expect)


@pytest.mark.parametrize(
    ("field", "value"),
    [("qos", 3), ("qos", "1"), ("qos", True), ("retain", 1), ("message_expiry_interval", -1), ("payload_format", 7)],
)
def test_fields_of_another_type(field: str, value: object) -> None:
    """A field that is not of its type is rejected as such, in an older spelling too."""
    with pytest.raises(WireError, match=f"/{field}"):
        mqtt.publish_args(Message("MQTT/5.0", {"topic_name": "t", field: value}))


def test_text_is_said_to_be_text() -> None:
    """A payload that is UTF-8 may be said to be."""
    message = Message("MQTT/5.0", {"topic_name": "t", "payload_format_indicator": 1}, "é".encode())
    assert 1 == through_client(message).get("payload_format_indicator")
