"""What reading and writing CloudEvents costs: against the official SDK, and against bare JSON readers as the limit.

Run: python bench/cloudevents.py [--quick]. The SDK is the package `cloudevents` of PyPI, version 2 or newer; it reads
and writes through `cloudevents.core`. All of our rules are on. Every figure is the least of many short runs taken in
turn, so that what else the machine does falls on all alike. The events differ in id, time, subject and data; types and
sources come again as they do in traffic.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import msgspec
import orjson

# This file has the SDK's name: make sure that `import cloudevents` finds the SDK.
HERE = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(HERE)]
from cloudevents.core.formats.json import JSONFormat  # noqa: E402
from cloudevents.core.v1.event import CloudEvent as SdkEvent  # noqa: E402

sys.path.insert(0, HERE)
from figures import Figure, each, race, show  # noqa: E402

from signalbook.cloudevents import CloudEvent, decode, decode_batch, encode, encode_batch  # noqa: E402

EVENTS = 200
BATCH = 1000


def make(number: int, size: int) -> dict[str, Any]:
    """An event of about so many bytes."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": str(uuid.UUID(int=number * 7919 + 2**100)),
        "source": f"https://shop.example.com/orders/{number % 20}",
        "type": "com.example.shop.order.placed.v1",
        "subject": f"order/{number}",
        "time": f"2026-03-{number % 31 + 1:02}T{number % 24:02}:{number % 60:02}:00.{number:06}Z",
        "datacontenttype": "application/json",
        "traceparent": f"00-{number + 2**100:032x}-{number + 2**50:016x}-01",
    }
    data: dict[str, Any] = {"order": number, "total": 12.5 + number, "lines": []}
    event["data"] = data
    while len(orjson.dumps(event)) < size - 20:
        line = {"sku": f"A-{len(data['lines']):05}", "quantity": 2, "price": 6.25}
        data["lines"].append(line)
    return event


def single(size: int, turns: int) -> list[Figure]:
    """Events one by one."""
    values = [make(number, size) for number in range(EVENTS)]
    documents = [orjson.dumps(value) for value in values]
    spaced = [json.dumps(value).encode() for value in values]
    parts = [({n: v for n, v in value.items() if n != "data"}, value["data"]) for value in values]
    sdk = JSONFormat()
    ours, theirs = list(map(decode, documents)), [sdk.read(SdkEvent, document) for document in documents]
    assert [event.value() for event in ours] == [event.get_data() for event in theirs]
    raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    plain = msgspec.json.Decoder().decode
    took = race(
        {
            "decode": each(decode, documents),
            "decode, spaced": each(decode, spaced),
            "decode and value": each(lambda document: decode(document).value(), documents),
            "SDK decode": each(lambda document: sdk.read(SdkEvent, document), documents),
            "encode": each(encode, ours),
            "SDK encode": each(sdk.write, theirs),
            "make and encode": each(lambda part: encode(CloudEvent.create(part[0], part[1])), parts),
            "SDK make and encode": each(
                lambda event: sdk.write(SdkEvent(event.get_attributes(), event.get_data())), theirs
            ),
            "orjson.loads": each(orjson.loads, documents),
            "msgspec, raw members": each(raw, documents),
            "msgspec": each(plain, documents),
            "orjson.dumps": each(orjson.dumps, values),
        },
        turns,
    )
    took = {name: seconds / EVENTS for name, seconds in took.items()}
    length = sum(map(len, documents)) // EVENTS
    print(f"\nevents of {length:,} bytes, µs each: " + "; ".join(f"{n} {s * 1e6:.2f}" for n, s in took.items()))
    name = f"{length:,} bytes: "

    def faster(what: str, limit: float | None = None, sdk_way: str = "") -> Figure:
        gain = took[sdk_way or f"SDK {what}"] / took[what]
        return Figure(f"{name}{what}, times faster", gain, limit, "the SDK", at_least=True)

    def cost(what: str, anchor: str) -> Figure:
        return Figure(f"{name}{what}, times the cost", took[what] / took[anchor], None, anchor)

    return [
        faster("decode", 4),
        faster("decode, spaced", None, "SDK decode"),
        faster("decode and value", None, "SDK decode"),
        faster("encode", 8),
        faster("make and encode"),
        cost("decode", "orjson.loads"),
        cost("decode", "msgspec, raw members"),
        cost("decode and value", "msgspec"),
        cost("encode", "orjson.dumps"),
    ]


def batch(size: int, turns: int) -> list[Figure]:
    """A thousand events at once; the SDK has no batches, so it reads and writes them one by one."""
    values = [make(number, size) for number in range(BATCH)]
    document = orjson.dumps(values)
    sdk = JSONFormat()
    documents = [orjson.dumps(value) for value in values]
    ours, theirs = decode_batch(document), [sdk.read(SdkEvent, text) for text in documents]
    took = race(
        {
            "decode": lambda: decode_batch(document),
            "SDK decode": each(lambda text: sdk.read(SdkEvent, text), documents),
            "encode": lambda: encode_batch(ours),
            "SDK encode": each(sdk.write, theirs),
            "orjson.loads": lambda: orjson.loads(document),
        },
        turns,
    )
    print(
        f"\nbatch of {BATCH:,}, {len(document):,} bytes, ms: "
        + "; ".join(f"{n} {s * 1e3:.2f}" for n, s in took.items())
    )
    name = f"batch of {BATCH:,}, {len(document) // BATCH:,} bytes each: "
    return [
        Figure(name + "decode, times faster", took["SDK decode"] / took["decode"], None, "the SDK, one by one"),
        Figure(name + "encode, times faster", took["SDK encode"] / took["encode"], None, "the SDK, one by one"),
        Figure(name + "decode, times the cost", took["decode"] / took["orjson.loads"], None, "orjson.loads"),
    ]


def main() -> int:
    """Print the figures; the exit code says whether the limits are kept."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="fewer runs; for a look, not for a record")
    turns = 5 if options.parse_args().quick else 60
    figures = [*single(500, turns), *single(5000, turns), *batch(500, turns // 5), *batch(5000, turns // 5)]
    return 0 if show(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
