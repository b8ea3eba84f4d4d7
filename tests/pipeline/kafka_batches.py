"""Batches as Spark's Kafka connector gives them, and catalogs for what is in them, for tests of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

Header = tuple[str, bytes | None]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
CONNECTOR = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", HEADERS),
    ]
)
STRUCTURED: Header = ("content-type", b"application/cloudevents+json")
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def row(value: bytes | None, headers: Sequence[Header] | None = (), **fields: Any) -> dict[str, Any]:
    """One row; its offset is given to it by its batch."""
    held = None if headers is None else [{"key": name, "value": content} for name, content in headers]
    return {"key": None, "value": value, "topic": "cars", "partition": 1, "headers": held, **fields}


def structured(event: dict[str, Any], *beside: Header, **fields: Any) -> dict[str, Any]:
    """An event in structured mode, with other headers beside its content type."""
    return row(json.dumps(event, separators=(",", ":")).encode(), [STRUCTURED, *beside], **fields)


def binary(event: dict[str, Any], *beside: Header, **fields: Any) -> dict[str, Any]:
    """An event in binary mode, its content type first."""
    attributes = {name: value for name, value in event.items() if name not in ("data", "datacontenttype")}
    stated = [("content-type", event["datacontenttype"].encode())] if "datacontenttype" in event else []
    carried = [(f"ce_{name}", str(value).encode()) for name, value in attributes.items()]
    data = json.dumps(event["data"]).encode() if "data" in event else None
    return row(data, [*stated, *carried, *beside], **fields)


def batch(rows: Iterable[dict[str, Any]], start: int = 0) -> pa.RecordBatch:
    """The rows in the connector's columns, at offsets from the first on."""
    moments = [
        {"offset": start + at, "timestamp": _FIRST + timedelta(milliseconds=at), **one} for at, one in enumerate(rows)
    ]
    return pa.RecordBatch.from_pylist(moments, schema=CONNECTOR)


KILOMETRES = {
    "dataschemaformat": "JsonSchema/draft-07",
    "dataschema": {"type": "object", "properties": {"km": {"type": "integer"}}, "required": ["km"]},
}


def event_of(name: str, metadata: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The definition of an event of that type."""
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}, **(metadata or {})}, **more}


def over_kafka(**options: Any) -> dict[str, Any]:
    """What a definition says about a record's own fields."""
    return {"protocol": "KAFKA", "protocoloptions": options}


EVENTS = {
    "seen": event_of(
        "seen",
        {
            "source": {"value": "/cars/{vin}"},
            "subject": {"value": "{place}-{lane}"},
            "label": {"type": "string"},
            "level": {"type": "integer"},
        },
        **KILOMETRES,
    ),
    "free": event_of("free"),
    "laid": event_of("laid", envelopeoptions={"mode": "structured", "format": "application/cloudevents+json"}),
    "split": event_of("split", envelopeoptions={"mode": "binary"}, datacontenttype="application/json"),
    "queued": event_of("queued", protocol="AMQP/1.0"),
    "kafkas": event_of("kafkas", protocol="KAFKA"),
    "fed": event_of("fed", {"source": {"value": "{feed}"}, "subject": {"value": "{about}"}}),
    "far": event_of("far", dataschemaformat="JsonSchema/draft-07", dataschemauri="https://example.com/far.json"),
    "twice": event_of("twice"),
    "twicebound": event_of("twice", protocol="KAFKA"),
    "framed": event_of("framed", dataschemaframing="confluent", **KILOMETRES),
}
# What definitions say of records beside their events: nothing, their topics, or what no fast path can know beforehand.
BESIDE = {
    "nothing": {},
    "topics": {
        "bound": event_of("bound", **over_kafka(topic="cars")),
        "named": event_of("named", **over_kafka(topic="{place}")),
        "keyed": event_of("keyed", **over_kafka(key="{vin}")),
        "tenants": event_of("tenants", **over_kafka(headers=[{"name": "tenant", "value": "{tenant}"}])),
        "plain": {**over_kafka(topic="plain"), **KILOMETRES},
        "trains": {"envelope": "CloudEvents/1.0", **over_kafka(topic="trains")},
        "mapped": event_of("mapped", {"source": {"value": "/maps"}}, **over_kafka(topic="maps"), **KILOMETRES),
        "boats": {**over_kafka(topic="boats"), "description": "whatever there is"},
    },
    "homes": {
        "any": {"envelope": "CloudEvents/1.0", **over_kafka(headers=[{"name": "tenant", "type": "integer"}])},
    },
    "frames": {"plain": {**over_kafka(topic="plain"), "dataschemaframing": "confluent", **KILOMETRES}},
    "keys": {
        "key": {**over_kafka(key="k1"), **KILOMETRES},
        "every": {"envelope": "CloudEvents/1.0", **over_kafka(key="k2")},
    },
    "headers": {
        "tenant": over_kafka(headers=[{"name": "tenant", "value": "t1"}]),
        "every": {"envelope": "CloudEvents/1.0", **over_kafka(headers=[{"name": "tenant", "value": "t3"}])},
    },
    "no keys": {"any": {**over_kafka(topic="{place}"), **KILOMETRES}},
}
