"""What matching and validating costs: at 10, 1,000 and 10,000 definitions, against a bare JSON reader and the SDK.

Run: python bench/match.py [--quick]. Each definition has a constant type, two templates and a JSON Schema of its own.
The messages are CloudEvents of about 500 bytes as JSON text, of ten types spread over the catalog: the same traffic at
every size. They are read, matched, captured from, and their data is validated. The anchor is `orjson.loads` of the same
bytes, which does none of that. The other way is what people write today: the official SDK's decode, a loop over the
definitions that compares the type, and jsonschema-rs. Every figure is the least of many short runs taken in turn.
Beside it, definitions that share their key, one Kafka topic, and are told apart by a header.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

# bench/cloudevents.py has the SDK's name: make sure that `import cloudevents` finds the SDK.
HERE = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(HERE)]
from cloudevents.core.formats.json import JSONFormat  # noqa: E402
from cloudevents.core.v1.event import CloudEvent as SdkEvent  # noqa: E402

sys.path.insert(0, HERE)
from figures import Figure, each, memory_mib, race, show  # noqa: E402

from signalbook.messages import Catalog  # noqa: E402
from signalbook.protocols import Message  # noqa: E402

SIZES = (10, 1_000, 10_000)
EVENTS = 200
TYPES = 10
GROUP = "/messagegroups/shop/messages"


def definition(number: int) -> dict[str, Any]:
    """One definition of the catalog."""
    return {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "type": {"value": type_name(number)},
            "source": {"type": "uritemplate", "value": "https://shop.example.com/orders/{shop}"},
            "subject": {"type": "uritemplate", "value": "order/{order}", "required": True},
            "time": {"required": True},
        },
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschema": {
            "type": "object",
            "required": ["order", "total", "lines"],
            "properties": {
                "order": {"type": "integer"},
                "total": {"type": "number"},
                "kind": {"const": number},
                "lines": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["sku", "quantity"],
                        "properties": {
                            "sku": {"type": "string"},
                            "quantity": {"type": "integer"},
                            "price": {"type": "number"},
                        },
                    },
                },
            },
        },
    }


def type_name(number: int) -> str:
    """The type of the events of one definition."""
    return f"com.example.shop.order.placed.v{number}"


def document(size: int) -> dict[str, Any]:
    """A catalog of so many definitions."""
    return {"messagegroups": {"shop": {"messages": {type_name(n): definition(n) for n in range(size)}}}}


def event(number: int, size: int) -> dict[str, Any]:
    """An event of about 500 bytes, of one of so many definitions."""
    return {
        "specversion": "1.0",
        "id": str(uuid.UUID(int=number * 7919 + 2**100)),
        "source": f"https://shop.example.com/orders/{number % 20}",
        "type": type_name(number % TYPES * (size // TYPES)),
        "subject": f"order/{number}",
        "time": f"2026-03-{number % 31 + 1:02}T{number % 24:02}:{number % 60:02}:00.{number:06}Z",
        "datacontenttype": "application/json",
        "data": {
            "order": number,
            "total": 12.5 + number,
            "lines": [{"sku": f"A-{line:05}", "quantity": 2, "price": 6.25} for line in range(5)],
        },
    }


def sdk_loop(definitions: dict[str, dict[str, Any]]) -> Callable[[bytes], str | None]:
    """The official SDK's decode, then the first definition whose type, templates and schema fit."""
    sdk = JSONFormat()
    rows = []
    for name, one in definitions.items():
        metadata = one["envelopemetadata"]
        source = re.compile(metadata["source"]["value"].replace("{shop}", "([^/?#]+)")).fullmatch
        subject = re.compile(metadata["subject"]["value"].replace("{order}", "([^/?#]+)")).fullmatch
        rows.append(
            (name, metadata["type"]["value"], source, subject, jsonschema_rs.Draft7Validator(one["dataschema"]))
        )

    def find(text: bytes) -> str | None:
        found = sdk.read(SdkEvent, text)
        for name, wanted, source, subject, schema in rows:
            if (
                found.get_type() == wanted
                and source(found.get_source())
                and subject(found.get_subject() or "")
                and schema.is_valid(found.get_data())
            ):
                return name
        return None

    return find


def measure(size: int, turns: int) -> dict[str, float]:
    """Seconds for each message, by the way."""
    catalog = Catalog.from_documents(document(size))
    texts = [orjson.dumps(event(number, size)) for number in range(EVENTS)]
    carried = [
        Message("KAFKA", {"topic": "t", "headers": (("content-type", b"application/cloudevents+json"),)}, text)
        for text in texts
    ]
    unknown = [text.replace(b".placed.v", b".lost.v") for text in texts]
    find = sdk_loop(document(size)["messagegroups"]["shop"]["messages"])
    assert {catalog.match(text).outcome for text in texts} == {"matched"}
    assert [catalog.match(text).definition for text in texts] == [f"{GROUP}/{find(text)}" for text in texts]
    assert {catalog.match(text).outcome for text in carried} == {"matched"}
    assert {catalog.match(text).outcome for text in unknown} == {"unexpected"}
    took = race(
        {
            "match": each(catalog.match, texts),
            "match, over Kafka": each(catalog.match, carried),
            "orjson.loads": each(orjson.loads, texts),
        },
        turns,
    )
    took |= race({"unexpected": each(catalog.match, unknown), "SDK and a loop": each(find, texts)}, max(2, turns // 20))
    took = {name: seconds / EVENTS for name, seconds in took.items()}
    length = sum(map(len, texts)) // EVENTS
    print(f"{size:,} definitions, {length} bytes, µs: " + "; ".join(f"{n} {s * 1e6:.2f}" for n, s in took.items()))
    return took


def told_by_a_header(turns: int) -> dict[int, float]:
    """By the size, seconds for each message of one Kafka topic with so many definitions that a header tells apart."""
    known, unknown = {}, {}
    for size in SIZES:
        names = [f"com.example.order{number}.placed" for number in range(size)]
        content = {name: of_one_topic(name) for name in names}
        catalog = Catalog.from_documents({"messagegroups": {"shop": {"messages": content}}})
        sent = [names[number * (size // TYPES)] for number in range(TYPES)]
        texts = [orjson.dumps({"protocol": "KAFKA", "topic": "orders", "headers": [["type", name]]}) for name in sent]
        lost = [text.replace(b".placed", b".lost") for text in texts]
        assert [catalog.match(text).definition for text in texts] == [f"{GROUP}/{name}" for name in sent]
        assert {catalog.match(text).outcome for text in lost} == {"nonconformant"}
        known[str(size)], unknown[str(size)] = each(catalog.match, texts), each(catalog.match, lost)
    for what, ways in (("none", unknown), ("one", known)):
        took = {int(size): seconds / TYPES for size, seconds in race(ways, turns).items()}
        words = "; ".join(f"{size:,} definitions {seconds * 1e6:.2f}" for size, seconds in took.items())
        print(f"one topic, a message of {what} of them, µs: {words}")
    return took


def of_one_topic(name: str) -> dict[str, Any]:
    """A definition that shares its topic with all others."""
    headers = [{"name": "type", "value": name, "required": True}]
    return {"protocol": "KAFKA", "protocoloptions": {"topic": "orders", "headers": headers}}


def compile_all(size: int) -> tuple[float, float, float]:
    """Seconds to compile a catalog, seconds to update it by one definition, and the MiB it holds; all schemas read."""
    content = document(size)
    before = memory_mib(os.getpid())
    began = time.perf_counter()
    catalog = Catalog.from_documents(content)
    for xid in catalog.definitions:
        catalog.schema(xid)
    catalog.match(orjson.dumps(event(1, size)))
    compiled = time.perf_counter() - began
    memory = memory_mib(os.getpid()) - before
    content["messagegroups"]["shop"]["messages"][type_name(1)] = definition(size)
    began = time.perf_counter()
    updated = catalog.updated(content)
    for xid in updated.definitions:
        updated.schema(xid)
    updated.match(orjson.dumps(event(1, size)))
    return compiled, time.perf_counter() - began, memory


def main() -> int:
    """Print the figures; the exit code says whether the limits are kept."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="fewer runs; for a look, not for a record")
    options.add_argument("--compile", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.compile:
        print(*compile_all(chosen.compile))
        return 0
    turns = 20 if chosen.quick else 200
    took = {size: measure(size, turns) for size in SIZES}
    by_header = told_by_a_header(turns).values()
    command = [sys.executable, __file__, "--compile", str(SIZES[-1])]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    compiled, updated, memory = map(float, told.split())
    print(f"compile {SIZES[-1]:,}: {compiled:.2f} s, {memory:.0f} MiB; update by one: {updated:.2f} s")
    least = min(took[size]["match"] for size in SIZES)
    figures = [
        *(
            Figure(f"{size:,} definitions: match and validate a second", 1 / took[size]["match"], None, "")
            for size in SIZES
        ),
        Figure("slowest to fastest size", max(took[size]["match"] for size in SIZES) / least, 1.3, "the fastest size"),
        *(
            Figure(
                f"{size:,} definitions: times the cost",
                took[size]["match"] / took[size]["orjson.loads"],
                4,
                "orjson.loads",
            )
            for size in SIZES
        ),
        *(
            Figure(
                f"{size:,} definitions: times faster",
                took[size]["SDK and a loop"] / took[size]["match"],
                None,
                "the SDK and a loop",
                at_least=True,
            )
            for size in SIZES
        ),
        Figure(
            "one topic, told apart by a header: slowest to fastest size",
            max(by_header) / min(by_header),
            1.3,
            "the fastest size",
        ),
        Figure(f"compile {SIZES[-1]:,} definitions, s", compiled, 10, "schemas included"),
        Figure("update by one, times the cost", updated / compiled, 0.5, "compiling all"),
        Figure(f"memory of {SIZES[-1]:,} definitions, MiB", memory, None, "schemas included"),
    ]
    return 0 if show(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
