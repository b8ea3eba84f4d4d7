"""Malformed documents of every dialect: good ones in which something was changed, through all that reads documents."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook.app import store_client
from signalbook.dialects.convert import convert, detect
from signalbook.errors import SignalbookError
from signalbook.messages.catalog import Catalog
from signalbook.sources.documents import Raw, in_canonical, read_each
from signalbook.sources.lint import lint
from signalbook.sources.rehearsal import rehearse
from signalbook.spec.dialects import DIALECTS, WRITTEN

EVENT = {
    "type": {"value": "a.b"}, "source": {"value": "/s/{x}", "type": "uritemplate"}, "subject": {"required": True},
    "time": {"type": "timestamp"}, "dataschema": {"value": "http://x/y"}, "own": {"type": "integer", "value": 3},
}  # fmt: skip
OPTIONS: dict[str, Any] = {
    "HTTP": {
        "method": "POST", "path": "/{x}", "headers": [{"name": "a", "value": "b", "required": True}],
        "query": [{"name": "q", "value": "{x}"}],
    },
    "AMQP/1.0": {
        "properties": {"subject": {"value": "s"}, "group-sequence": {"value": 1}, "content-type": {"value": "a/b"}},
        "application-properties": {"mykey": {"name": "MyKey", "type": "string", "value": "{x}"}},
        "header": {"durable": True, "ttl": 5}, "message-annotations": {"x-a": {"type": "symbol", "value": "v"}},
        "footer": {"f": {"value": "v"}},
    },
    "MQTT/5.0": {
        "topic_name": "a/{x}", "qos": 1, "retain": False, "payload_format_indicator": 1, "content_type": "a/b",
        "user_properties": [{"name": "a", "value": "b"}], "message_expiry_interval": 5, "response_topic": "r",
    },
    "MQTT/3.1.1": {"topic_name": "a/{x}", "qos": 1, "retain": False},
    "KAFKA": {"topic": "t", "key": "{x}", "partition": 1, "headers": {"a": {"value": "b"}}},
    "NATS": {"subject": "a.{x}", "reply": "r", "headers": [{"name": "a", "value": "b"}]},
    "BunnyMQ/0.9.1": {"queue": {"name": "q"}},
}  # fmt: skip
SCHEMAS: dict[str, Any] = {
    "JsonSchema/draft-07": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    "JsonStructure/draft-02": {"$id": "http://x/s", "type": "object", "name": "A", "properties": {}},
    "Avro/1.9.0": {"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "int"], "default": None}]},
    "Protobuf/3": 'syntax = "proto3"; message A { string a = 1; }',
    "XSD/1.1": '<schema xmlns="http://www.w3.org/2001/XMLSchema"><element name="a" type="string"/></schema>',
}  # fmt: skip


def registry(members: dict[str, Any]) -> dict[str, Any]:
    """A registry document of 1.0."""
    return {"specversion": "1.0-rc2", "labels": {"a": "b"}, **members}


def good() -> Iterator[tuple[str, Any]]:
    """Small documents that nothing is wrong with, in every dialect that is written."""
    documents = {}
    for protocol, options in OPTIONS.items():
        message = {
            "messageid": "a.b", "envelope": "CloudEvents/1.0", "envelopemetadata": EVENT, "protocol": protocol,
            "protocoloptions": options, "dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "object"},
            "labels": {"a": "b"}, "deprecated": {"effective": "2030-01-01T00:00:00Z"},
        }  # fmt: skip
        derived = {"basemessage": "/messagegroups/g/messages/a.b", "description": "d"}
        group = {"messagegroupid": "g", "protocol": protocol, "envelope": "CloudEvents/1.0"}
        documents[protocol] = registry({"messagegroups": {"g": {**group, "messages": {"a.b": message, "n": derived}}}})
    for form, schema in SCHEMAS.items():
        versions = {"1": {"format": form, "schema": schema}, "2": {"format": form, "schema": schema, "ancestor": "1"}}
        meta = {"compatibility": "none", "defaultversionid": "2", "defaultversionsticky": True}
        schemas = {"s": {"schemaid": "s", "meta": meta, "versions": versions}}
        message = {
            "dataschemaformat": form,
            "dataschemauri": "/schemagroups/g/schemas/s",
            "envelope": "CloudEvents/1.0",
        }
        documents[form] = registry(
            {"schemagroups": {"g": {"schemas": schemas}}, "messagegroups": {"g": {"messages": {"m": message}}}}
        )
    endpoint = {
        "usage": ["producer"], "protocol": "KAFKA", "envelope": "CloudEvents/1.0",
        "protocoloptions": {"endpoints": [{"uri": "kafka://h"}], "options": {"topic": "t"}, "deployed": True},
        "messagegroups": ["/messagegroups/g"], "messages": {"m": {"protocol": "KAFKA"}},
        "deprecated": {"documentation": "http://x"},
    }  # fmt: skip
    documents["endpoint"] = registry({"endpoints": {"e": endpoint}, "messagegroups": {"g": {}}})
    for name, document in documents.items():
        for dialect in WRITTEN:
            yield f"{dialect} {name}", convert(document, DIALECTS[dialect]).content


GOOD = dict(good())
WORDS = """id format binding metadata message definition definitions versions attributes type value labels tags meta
xref messagegroups messages schemagroups schemas endpoints config options usage headers properties payload schema
envelope protocol envelopemetadata envelopeoptions protocoloptions specversion basemessage dataschemauri name required
messageid query key status dataschemaxid schemabase64 schemaurl defaultversionid ancestor relatedto authority version"""
REMOVED, RENAMED = object(), object()


def deep(count: int, inside: Callable[[Any], Any]) -> Any:
    """A value that many others hold, one in the other."""
    value: Any = 1
    for _ in range(count):
        value = inside(value)
    return value


VALUES: list[Any] = [
    REMOVED, RENAMED, None, True, 0, -1, 5, 1.5, 1e300, 10**30, "", "x", "a b", "{", "{x}", "~", "\u0000", "é", "/",
    "#/a", "/messagegroups/g/messages/a.b", "/schemagroups/g/schemas/s", "HTTP", "MQTT/", "CloudEvents/1.0",
    "2030-01-01T00:00:00Z",
    [], [None], [1], ["x"], [{}], [[]], [{"name": 1}], {}, {"": {}}, {"a": None}, {"a": 1}, {"a": []}, {"value": {}},
    {"name": "x"}, {"type": 1}, {"type": []}, deep(90, lambda inner: [inner]), deep(90, lambda inner: {"a": inner}),
]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each member of a document, as what holds it and its name or number there."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@st.composite
def malformed(draw: st.DrawFn) -> Any:
    """A good document in which one to three members are others, gone, or have another name."""
    document = copy.deepcopy(GOOD[draw(st.sampled_from(sorted(GOOD)))])
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(document))
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        value = draw(st.sampled_from(VALUES))
        if value is REMOVED:
            del holder[key]
        elif value is RENAMED and isinstance(holder, dict):
            holder[draw(st.sampled_from(WORDS.split()))] = holder.pop(key)
        else:
            holder[key] = None if value is RENAMED else copy.deepcopy(value)
    return document


def attempt(step: Callable[[], object]) -> None:
    """Do something that may be refused; any other failure is one of the program."""
    try:
        step()
    except SignalbookError:
        return


def through(raw: Raw, path: str) -> None:
    """Give a document to all that reads documents."""
    attempt(lambda: detect(raw.value))
    for target in WRITTEN:
        attempt(lambda target=target: convert(raw.value, DIALECTS[target]))  # type: ignore[misc]
    attempt(lambda: list(lint([path], group="g")))
    attempt(lambda: list(rehearse([raw], group="g", open_client=partial(store_client, "memory:"))))
    attempt(lambda: used(raw))


def used(raw: Raw) -> None:
    """Match and build by a catalog that is made of a document."""
    documents, _ = in_canonical(raw, group="g")
    catalog = Catalog.from_documents(*(document.content for document in documents))
    event = {"specversion": "1.0", "id": "1", "type": "a.b", "source": "/s/1", "subject": "s", "data": {"a": "b"}}
    attempt(lambda: catalog.match(event))
    attempt(lambda: catalog.problems)
    for xid in catalog.definitions:
        attempt(lambda xid=xid: catalog.message(xid).sample())  # type: ignore[misc]
        attempt(lambda xid=xid: catalog.validate(event, xid))  # type: ignore[misc]


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(malformed())
def test_no_malformed_document_ends_in_a_traceback(tmp_path: Path, document: Any) -> None:
    """Whatever is changed in a good document, it is taken or refused in words, by all that reads documents."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    for raw in read_each(str(path)):
        if isinstance(raw, Raw):
            through(raw, str(path))


@pytest.mark.parametrize("name", sorted(name for name in GOOD if name.startswith("1.0-rc2")))
def test_the_documents_are_good(tmp_path: Path, name: str) -> None:
    """What is changed by the law above is nothing that is refused anyway."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(GOOD[name]))
    assert [] == [one for one in lint([str(path)], group="g") if one.severity == "error"]
