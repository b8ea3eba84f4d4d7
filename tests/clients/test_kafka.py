from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.clients import kafka
from signalbook.cloudevents import CloudEvent
from signalbook.protocols import Message, Mode, WireError
from tests.cases import Case, cases
from tests.clients.round_trips import arrives, modes, rejects
from tests.cloudevents.strategies import events

TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
TOPICS = st.from_regex(r"[0-9A-Za-z._-]{1,9}", fullmatch=True).filter(lambda text: text not in (".", ".."))
MESSAGES = st.builds(
    Message,
    st.just("KAFKA"),
    st.fixed_dictionaries(
        {"topic": TOPICS},
        optional={
            "partition": st.integers(0, 2**31 - 1),
            "timestamp": st.integers(1, 2**53),
            "key": st.binary(),
            "headers": st.lists(st.tuples(TEXTS, st.none() | st.binary()), min_size=1, max_size=4).map(tuple),
        },
    ),
    st.none() | st.binary(),
)


def through_client(message: Message) -> Message:
    """What a consumer is shown of what a producer was given."""
    args = kafka.publish_args(message)
    moment = args.pop("timestamp", None)
    stamped = {} if moment is None else {"timestamp": (confluent_kafka.TIMESTAMP_CREATE_TIME, moment)}
    return kafka.to_paper(confluent_kafka.Message(**args, **stamped))


@given(MESSAGES)
def test_a_record_comes_back(message: Message) -> None:
    """Keys, null values, null headers and repeated headers are the same on paper after the client had them."""
    assert message == through_client(message)


@modes("KAFKA")
@given(event=events())
def test_an_event_comes_back(mode: Mode, event: CloudEvent) -> None:
    """An event is the same after the client had it."""
    arrives(event, "KAFKA", mode, through_client, topic="t")


def test_what_a_consumer_shows() -> None:
    """Topic, partition, offset, time, key, headers in their order, and a null value as no payload."""
    record = confluent_kafka.Message(
        topic="t",
        partition=3,
        offset=7,
        key=b"\xff",
        headers=[("a", b"1"), ("a", None)],
        timestamp=(confluent_kafka.TIMESTAMP_LOG_APPEND_TIME, 5),
    )
    fields = {
        "topic": "t", "partition": 3, "offset": 7, "timestamp": 5, "key": b"\xff", "headers": (("a", b"1"), ("a", None))
    }  # fmt: skip
    assert Message("KAFKA", fields) == kafka.to_paper(record)


def test_texts_of_a_deserializing_consumer() -> None:
    """A consumer that has made text of keys and values is understood."""
    shown: Any = confluent_kafka.Message(topic="t", partition=0, offset=0)
    shown.set_key("k")
    shown.set_value("é")
    message = kafka.to_paper(shown)
    assert (b"k", "é".encode()) == (message.get("key"), message.payload)


def test_an_event_of_the_client_is_no_record() -> None:
    """What a poll gives at the end of a partition is rejected."""
    error = confluent_kafka.KafkaError(confluent_kafka.KafkaError._PARTITION_EOF)
    with pytest.raises(WireError, match="is not a record"):
        kafka.to_paper(confluent_kafka.Message(topic="t", error=error))


@pytest.mark.parametrize(
    ("moment", "milliseconds"),
    [(5, 5), ("1970-01-01T00:00:01.2345Z", 1234), ("2018-04-05t19:31:00+02:00", 1522949460000)],
)
def test_moments(moment: int | str, milliseconds: int) -> None:
    """A time on paper may be a text, and goes out in milliseconds."""
    assert milliseconds == kafka.publish_args(Message("KAFKA", {"topic": "t", "timestamp": moment}))["timestamp"]


@cases("clients/kafka_refused")
def test_refused(case: Case) -> None:
    """What the client would not send as it is on paper is rejected before, with its place."""
    rejects(kafka.publish_args, case.given, case.expect)


@pytest.mark.parametrize(("field", "value"), [("key", 5), ("partition", "1"), ("headers", [("a", 1)]), ("nope", 1)])
def test_fields_of_another_type(field: str, value: object) -> None:
    """A field that is not of its type, or that Kafka has not, is rejected as such."""
    with pytest.raises(WireError, match=f"/{field}"):
        kafka.publish_args(Message("KAFKA", {"topic": "t", field: value}))
