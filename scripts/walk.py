"""Print which modules of signalbook one request, one match or one Kafka record passes, in the order of first entry.

    python -m scripts.walk            every walk
    python -m scripts.walk write      one of them

Rule 1: everything is in this process: the server without a socket, a task of the pipeline without Spark.
Rule 2: each walk is done once before it is traced, with another id, so that caches are filled and nothing is compiled.
Rule 3: a file counts where one of its functions is called; what is inlined by the interpreter or generated is not seen.
Rule 4: over a socket `server/run.py` does what `AsgiApp` in `server/flow.py` does here.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import orjson

import signalbook
from signalbook import app
from signalbook.messages.catalog import Catalog
from signalbook.pipeline.read.records import inputs_of
from signalbook.pipeline.worker import PackedCatalog, run
from signalbook.server.flow import AsgiApp
from signalbook.settings import Settings
from tests.pipeline.kafka_batches import batch, event_of, over_kafka, structured
from tests.pipeline.lakes import job

__all__ = ["WALKS", "Trace", "main", "walk"]

ROOT = Path(signalbook.__file__).parent
# Code objects that are part of the function around them.
_INNER = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>"})
KILOMETRES = {"type": "object", "properties": {"km": {"type": "integer"}}, "required": ["km"]}
PAYLOAD = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": KILOMETRES}
MOVED = event_of("moved", {"source": {"value": "/cars/{vin}"}}, **PAYLOAD)


class Trace:
    """The files of signalbook that were entered while it was on, and how often."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self._names: dict[str, str | None] = {}
        self._is_on = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """See this thread, and those that are started in the block."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Write down the calls of the block."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if self._is_on and event == "call" and frame.f_code.co_name not in _INNER:
            name = self._name(frame.f_code.co_filename)
            if name is not None:
                self.calls[name] = self.calls.get(name, 0) + 1

    def _name(self, file: str) -> str | None:
        """The file below the package; None for one that is not in it."""
        if file not in self._names:
            path = Path(file)
            self._names[file] = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else None
        return self._names[file]


class Server:
    """A server with an empty catalog in memory, asked without a socket."""

    def __init__(self) -> None:
        self._app = AsgiApp(app.flow(Settings(store="memory:", log=False, deliver=False)))
        self._runner = asyncio.Runner()

    def ask(self, method: str, path: str, body: Any = None) -> None:
        """Send one request; an answer that is an error ends the program."""
        path, _, query = path.partition("?")
        content = b"" if body is None else orjson.dumps(body)
        headers = [(b"host", b"localhost:8080"), (b"content-length", str(len(content)).encode())]
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers}
        answered: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content}

        async def send(message: Any) -> None:
            answered.append(message)

        self._runner.run(self._app(scope, receive, send))
        if answered[0]["status"] >= 400:
            raise SystemExit(f"{method} {path}: {answered}")

    def close(self) -> None:
        """End the threads."""
        self._app.close()
        self._runner.close()


def _requests(trace: Trace, *requests: tuple[Any, ...]) -> None:
    """Send requests to a server with two messages, and trace the last."""
    server = Server()
    try:
        server.ask("PUT", "/messagegroups/fleet", {"messages": {"moved": MOVED, "parked": MOVED}})
        for request in requests[:-1]:
            server.ask(*request)
        with trace.on():
            server.ask(*requests[-1])
    finally:
        server.close()


def read(trace: Trace) -> None:
    """GET of one message, which is not in the cache of answers."""
    _requests(trace, ("GET", "/messagegroups/fleet/messages/parked"), ("GET", "/messagegroups/fleet/messages/moved"))


def query(trace: Trace) -> None:
    """GET of a collection with a filter."""
    path = "/messagegroups/fleet/messages?filter=name="
    _requests(trace, ("GET", path + "a"), ("GET", path + "null"))


def write(trace: Trace) -> None:
    """PUT of a message that exists, with an embedded schema."""
    path = "/messagegroups/fleet/messages/moved"
    _requests(trace, ("PUT", path, {**MOVED, "name": "first"}), ("PUT", path, {**MOVED, "name": "second"}))


def match(trace: Trace) -> None:
    """A message over HTTP in binary mode, matched and validated by a catalog in this process, on the general path."""
    catalog = Catalog.from_documents({"messagegroups": {"fleet": {"messages": {"moved": MOVED}}}})

    def message(number: int) -> dict[str, Any]:
        attributes = {"specversion": "1.0", "id": str(number), "type": "moved", "source": "/cars/A1"}
        headers = [["content-type", "application/json"], *([f"ce-{name}", text] for name, text in attributes.items())]
        return {"protocol": "HTTP", "headers": headers, "payload_json": {"km": number}}

    assert catalog.match(message(1)).matched
    with trace.on():
        answer = catalog.match(message(2))
    assert answer.matched


def _land(trace: Trace, definition: dict[str, Any]) -> None:
    """Run a task of one structured event that Kafka carries, then another, which is traced from reading to files."""
    catalog = PackedCatalog.of({"messagegroups": {"fleet": {"messages": {"moved": definition}}}})

    def task(folder: str, number: int) -> dict[str, Any]:
        event = {"specversion": "1.0", "id": f"e{number}", "type": "moved", "source": "/cars/A1"}
        record = structured({**event, "data": {"km": number}}, key=b"A1")
        told = job(Path(folder), catalog)
        inputs = inputs_of([batch([record])], "walk")
        with trace.on() if number == 2 else nullcontext():
            return orjson.loads(run(told, inputs))

    with tempfile.TemporaryDirectory() as folder:
        landed = [task(folder, number)["landed"] for number in (1, 2)]
    assert landed == [1, 1]


def land(trace: Trace) -> None:
    """A Kafka record whose definition looks at the record's key: the general path."""
    _land(trace, {**MOVED, **over_kafka(topic="cars", key="{vin}")})


def land_fast(trace: Trace) -> None:
    """A Kafka record like one that was landed before: the fast path."""
    _land(trace, MOVED)


WALKS: dict[str, Callable[[Trace], None]] = {
    "read": read,
    "query": query,
    "write": write,
    "match": match,
    "land": land,
    "land-fast": land_fast,
}


def walk(name: str) -> dict[str, int]:
    """The files that a walk passes in the order of first entry, each with the number of calls."""
    trace = Trace()
    with trace.installed():
        WALKS[name](trace)
    return trace.calls


def main() -> None:
    """Print the walks that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("walks", nargs="*", metavar="WALK", help=f"{', '.join(WALKS)}; all of them if none is named")
    names = parser.parse_args().walks or list(WALKS)
    for unknown in [name for name in names if name not in WALKS]:
        parser.error(f"'{unknown}' is not one of {', '.join(WALKS)}")
    for name in names:
        calls = walk(name)
        print(f"{name}: {len(calls)} modules. {WALKS[name].__doc__}")
        for file, count in calls.items():
            print(f"  {count:5}  {file}")


if __name__ == "__main__":
    main()
