"""Traffic for the demo: messages of every outcome, over every protocol that the sample catalog knows.

Rule 1: the same number gives the same traffic. What is good is built from the definitions themselves.
Rule 2: the one who writes counts what was written, apart from all who read it.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from signalbook.cloudevents import encode
from signalbook.messages.catalog import Catalog

__all__ = ["CATALOG", "mended", "write_traffic"]

# What the demo adds to the samples: a definition that is too strict, and two that describe the same messages.
CATALOG: dict[str, Any] = {
    "messagegroups": {
        "com.example.desk": {
            "messages": {
                "note.taken": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {
                        "type": {"value": "com.example.desk.note"},
                        "source": {"value": "/desks/{desk}"},
                    },
                    "dataschemaformat": "JsonSchema/draft-07",
                    "dataschema": {
                        "type": "object",
                        "properties": {"text": {"type": "string", "maxLength": 12}, "pages": {"type": "integer"}},
                        "required": ["text"],
                    },
                },
                "bell.rung": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {"type": {"value": "com.example.desk.bell"}},
                },
                "bell.heard": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {"type": {"value": "com.example.desk.bell"}},
                },
            }
        }
    }
}
_FILES = 8


def mended() -> dict[str, Any]:
    """The same catalog once it says what the traffic means."""
    document: dict[str, Any] = json.loads(json.dumps(CATALOG))
    messages = document["messagegroups"]["com.example.desk"]["messages"]
    messages["note.taken"]["dataschema"]["properties"]["text"]["maxLength"] = 200
    del messages["bell.heard"]
    return document


def write_traffic(catalog: Catalog, folder: Path, count: int) -> int:
    """Write so many messages into files of several kinds; how many there are."""
    folder.mkdir()
    lines = _messages(catalog, random.Random(7), count)
    share = max(1, count // _FILES)
    written = 0
    for number in range(_FILES + 1):
        part = list(islice(lines, share if number < _FILES else None))
        if not part:
            continue
        written += len(part)
        _write(folder, number, part)
    return written


def _write(folder: Path, number: int, part: list[bytes]) -> None:
    if number == 0:
        # A batch file: what is not a JSON value cannot be in one, so its events are the good ones.
        events = [line for line in part if line.startswith(b'{"specversion"') and line.endswith(b"}")]
        others = [line for line in part if not (line.startswith(b'{"specversion"') and line.endswith(b"}"))]
        (folder / "batch.json").write_bytes(b"[" + b",\n".join(events) + b"]")
        (folder / "others.jsonl").write_bytes(b"\n".join(others) + b"\n")
    elif number == 1:
        with gzip.open(folder / "part-1.jsonl.gz", "wb", compresslevel=1) as file:
            file.write(b"\n".join(part) + b"\n")
    else:
        (folder / f"part-{number}.jsonl").write_bytes(b"\n".join(part) + b"\n")


def _messages(catalog: Catalog, chance: random.Random, count: int) -> Iterator[bytes]:
    good = list(_samples(catalog))
    kinds: list[tuple[Callable[[int], bytes], float]] = [
        (lambda number: _numbered(chance.choice(good), number), 90),
        (lambda number: _note(number, chance), 4),
        (_bell, 1),
        (_unheard_of, 2),
        (lambda number: _faulty(chance.choice(good), number), 2),
        (
            lambda number: chance.choice(
                [b"not JSON at all", b'{"specversion":"1.0","id":"x"}', b"\xff\xfe\x00garbage"]
            ),
            1,
        ),
    ]
    makers, weights = zip(*kinds, strict=True)
    for number, make in enumerate(chance.choices(makers, weights, k=count)):
        yield make(number)


def _samples(catalog: Catalog) -> Iterator[bytes]:
    """A message of each definition that can be shown by an example."""
    for xid in catalog.definitions:
        if xid.startswith("/messagegroups/com.example.desk/"):
            continue
        built = catalog.message(xid).sample()
        if built.message is not None:
            yield built.message.to_bytes()
        if built.cloudevent is not None:
            yield encode(built.cloudevent)


def _numbered(line: bytes, number: int) -> bytes:
    """The message with an id of its own, where it has one, and of one of fifty vehicles."""
    line = line.replace(b"vin1", b"VIN%02d" % (number % 50))
    head, mark, rest = line.partition(b'"id":"')
    return line if not mark else b'%b%bm%d"%b' % (head, mark, number, rest.partition(b'"')[2])


def _note(number: int, chance: random.Random) -> bytes:
    text = "short" if chance.random() < 0.5 else "a longer note than the catalog allows"
    return _event("com.example.desk.note", f"/desks/{number % 40}", number, {"text": text, "pages": number % 7})


def _bell(number: int) -> bytes:
    return _event("com.example.desk.bell", "/desks/1", number, None)


def _unheard_of(number: int) -> bytes:
    return _event(f"com.example.unknown.{number % 5}", "/elsewhere", number, {"n": number})


def _faulty(line: bytes, number: int) -> bytes:
    """A message whose payload is not what its definition says, or which is cut."""
    event = _numbered(line, number)
    head, mark, _ = event.partition(b',"data":')
    return head + b',"data":{"unexpected":true}}' if mark else event[: len(event) // 2]


def _event(type_: str, source: str, number: int, data: Any) -> bytes:
    event = {"specversion": "1.0", "id": f"d{number}", "type": type_, "source": source}
    return json.dumps(event if data is None else {**event, "data": data}, separators=(",", ":")).encode()
