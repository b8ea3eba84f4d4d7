"""The recorded cases for the JSON format, read from the folder beside the checkout where it is there.

A case is answered by decoding, encoding or both; what a case calls ambiguous is answered as decision record 20 says,
and `OTHERWISE` names the ones where that is not what the case would choose.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from signalbook.cloudevents import ABSENT, CloudEvent, CloudEventError, Data, Kind, decode, decode_batch, encode
from signalbook.cloudevents.attributes import EVENT
from signalbook.cloudevents.json_format import encode_batch
from signalbook.jsontext import same_json
from signalbook.protocols import Message, from_http, to_http

FILE = Path(__file__).resolve().parents[2].parent / "shared" / "conformance" / "cloudevents-json.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()] if FILE.exists() else []
# Ambiguous cases that decision record 20 answers the other way.
OTHERWISE = {"enc-bom", "specver-rc"}


def untagged(value: Any) -> Any:
    """A value of a case, with what JSON cannot hold in its tagged form."""
    if isinstance(value, dict) and len(value) == 1:
        (tag, inner), *_ = value.items()
        if tag == "$binary":
            return base64.b64decode(inner)
        if tag == "$timestamp":
            return datetime.fromisoformat(inner)
        if tag == "$utf16":
            return bytes.fromhex(inner).decode("utf-16-be", "surrogatepass")
        if tag == "$double":
            return float(inner)
    if isinstance(value, dict):
        return {name: untagged(item) for name, item in value.items()}
    return [untagged(item) for item in value] if isinstance(value, list) else value


def made(given: dict[str, Any]) -> CloudEvent:
    """The event that a case gives in parts."""
    attributes = {name: untagged(value) for name, value in given["attributes"].items()}
    kind = given.get("data_kind", "absent")
    if kind == "absent":
        return CloudEvent(attributes)
    if kind == "binary":
        return CloudEvent(attributes, Data.binary(base64.b64decode(given["data"])))
    make = Data.text if kind == "text" else Data.json
    return CloudEvent(attributes, make(untagged(given["data"])))


def shown(event: CloudEvent) -> dict[str, Any]:
    """An event in the words of a case's expectation."""
    found: dict[str, Any] = {"attributes": dict(event.attributes), "data_kind": "absent"}
    if event.data is not None:
        value = event.value()
        kept = base64.b64encode(value).decode() if event.data.kind is Kind.BINARY else value
        found |= {"data_kind": str(event.data.kind), "data": kept}
    return found


def document(given: dict[str, Any]) -> bytes:
    """The bytes that a case gives."""
    return (
        base64.b64decode(given["bytes_b64"]) if "bytes_b64" in given else given["text"].encode("utf-8", "surrogatepass")
    )


def message(given: dict[str, Any]) -> Message:
    """The HTTP message that a case gives."""
    body = given.get("body_text", "").encode() if "body_b64" not in given else base64.b64decode(given["body_b64"])
    return Message("HTTP", {"headers": tuple(map(tuple, given["headers"]))}, body)


def answer(case: dict[str, Any]) -> Any:
    """What the codec says to a case."""
    given, direction = case["input"], case["direction"]
    operation = given.get("op", direction)
    if direction == "batch":
        if operation == "decode":
            return [shown(event) for event in decode_batch(document(given))]
        return encode_batch(map(made, given["events"]))
    if direction == "http_binary":
        if operation in ("decode", "receive"):
            return shown(from_http(message(given)))
        return to_http(made(given) if operation == "encode" else decode(document(given)))
    if operation == "decode":
        return shown(decode(document(given)))
    return encode(made(given) if operation == "encode" else decode(document(given)))


def agrees(expect: dict[str, Any], found: Any) -> None:
    """Compare an answer with what a case expects, in whichever terms it does."""
    if "attributes" in expect:
        assert {name: value for name, value in expect.items() if name in ("attributes", "data_kind", "data")} == found
    if "events" in expect:
        wanted = [{"data_kind": "absent", **event} for event in expect["events"]]
        assert wanted == [{name: event[name] for name in want} for want, event in zip(wanted, found, strict=True)]
    if "json" in expect:
        assert same_json(json.dumps(expect["json"]).encode(), found)
    if "media_type" in expect:
        assert EVENT == expect["media_type"]
    if "data_raw" in expect:
        data = decode(found).data
        assert data is not None
        assert same_json(expect["data_raw"].encode(), data.content)
    if "headers" in expect:
        headers = dict(found.get("headers"))
        assert expect["headers"].items() <= headers.items()
        assert set(expect.get("headers_absent", ())).isdisjoint(headers)
    if "body" in expect:
        (form, content), *_ = expect["body"].items()
        body = found.payload or b""
        if form == "json":
            assert same_json(json.dumps(content).encode(), body)
        else:
            assert (base64.b64decode(content) if form == "b64" else content.encode()) == body


@pytest.mark.skipif(not CASES, reason="the recorded cases are not beside this checkout")
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any]) -> None:
    """Each recorded case is answered as it says, or as the decision record says where it leaves the choice."""
    expected = case["expect"]["ok"]
    if case["id"] in OTHERWISE:
        assert case.get("ambiguous")
        expected = not expected
    if not expected:
        with pytest.raises(CloudEventError) as rejected:
            answer(case)
        assert case["expect"].get("error_contains", "") in str(rejected.value)
        return
    agrees(case["expect"], answer(case))


def test_absent_is_not_null() -> None:
    """The value of no data is a value of its own."""
    event = decode(b'{"specversion":"1.0","id":"1","source":"/","type":"t"}')
    assert event.value() is ABSENT
    assert repr(event.value()) == "ABSENT"
