"""Besiege a server: honest clients beside every attack that is known, and a kill -9 now and then.

    python -m scripts.siege [--seconds 600] [--kill-every 60] [--messages 20000] [--postgres URL] [--seed 1]

Readers, writers, matchers and subscribers (long polls of /changes, and sinks) do their work while attackers send what
once held the server up. Only this machine is spoken to, every attack is bounded in size and number, and the siege ends
by itself.

Rule 1: every honest request is answered. One that a kill has cut is sent again; nothing else may cut one. One that a
server puts off within a minute of its start (503 with `Retry-After`) is sent again, too: until the first catalog is
compiled, a match waits for it a bounded time.
Rule 2: what was acknowledged is there at the end, and every subscriber has every event.
Rule 3: no process of the server ever holds more memory than `MOST_MEMORY`.
Rule 4: how long answers took is printed; it is held to `MOST_SECONDS` only with --quiet-machine.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import random
import resource
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scripts.crash import Server, Wrong, _free_port
from signalbook.protocols import Message

MOST_MEMORY = 500_000_000
MOST_SECONDS = 2.0
# How long one honest request is sent again while a kill cuts it, and how long the last events may take.
_PATIENCE = 120.0
# So long after its start a server may ask to send a request again.
_YOUNG = 60.0
_BATCH = {"content-type": "application/cloudevents-batch+json"}
_JSON = {"content-type": "application/json"}
_XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="r"><xs:complexType><xs:sequence>
<xs:element name="a" type="xs:int" minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>
</xs:schema>"""


@dataclass
class Figures:
    """What came of it."""

    answered: Counter[str] = field(default_factory=Counter)  # honest requests, by kind
    latencies: dict[str, list[float]] = field(default_factory=dict)  # of those that no kill falls into
    cut: Counter[str] = field(default_factory=Counter)  # honest requests that a kill has cut, by kind
    later: Counter[str] = field(default_factory=Counter)  # those that a young server asked to send again, by kind
    attacks: Counter[str] = field(default_factory=Counter)  # requests of attackers, by name and outcome
    memory: int = 0
    kills: int = 0
    writes: int = 0
    events: int = 0
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The figures as text."""
        for kind, found in sorted(self.latencies.items()):
            found = sorted(found) or [0.0]
            shown = [found[min(len(found) - 1, int(len(found) * part))] * 1000 for part in (0.5, 0.99)]
            yield (
                f"{kind:8} {self.answered[kind]:7} answered, half within {shown[0]:.0f} ms, "
                f"99 % within {shown[1]:.0f} ms, all within {found[-1] * 1000:.0f} ms, "
                f"{self.cut[kind]} cut by a kill and sent again"
                + (f", {self.later[kind]} put off by a server that had just started" if self.later[kind] else "")
            )
        yield f"{self.kills} kills; {self.writes} acknowledged writes there; {self.events} events at every subscriber"
        yield f"the largest process held {self.memory / 1e6:.0f} MB"
        for name, count in sorted(self.attacks.items()):
            yield f"attack: {name}: {count}"


class Siege:
    """One server under siege."""

    def __init__(self, store: str, folder: Path, *, messages: int, workers: int, scale: int, seed: int) -> None:
        self.figures = Figures()
        self.over = threading.Event()  # for attackers
        self.done = threading.Event()  # for honest clients
        self._lock = threading.Lock()
        self._store, self._folder, self._workers = store, folder, workers
        self.messages, self.scale, self.seed = messages, scale, seed
        self.port = _free_port()
        self._down: list[tuple[float, float]] = []  # from each kill to a second after the server is back
        self._started = 0.0
        self._server = self._start()
        self._threads: list[threading.Thread] = []

    # ---- the server

    def _start(self) -> Server:
        options = ("--allow-sink", "127.0.0.0/8")
        self._started = time.monotonic()
        return Server(self._store, self._folder, self._workers, model="builtin", options=options, port=self.port)

    def kill(self) -> None:
        """Kill the server and start it again."""
        with self._lock:
            began = time.monotonic()
            self._down.append((began, float("inf")))
        self._server.kill()
        self._server = self._start()
        self.figures.kills += 1
        with self._lock:
            self._down[-1] = (began, time.monotonic() + 1)

    def close(self) -> None:
        """End everything."""
        self.over.set()
        self.done.set()
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._server.kill()

    def is_young(self) -> bool:
        """Whether the server was started a short time ago."""
        return time.monotonic() - self._started < _YOUNG

    def was_down(self, began: float, ended: float) -> bool:
        """Whether a kill falls into this time."""
        with self._lock:
            return any(low <= ended and began <= high for low, high in self._down)

    def watch(self) -> None:
        """Note the largest process until the end."""
        while not self.done.wait(0.5):
            self.figures.memory = max(self.figures.memory, *_sizes(self._server.process.pid), 0)

    # ---- honest clients

    def run(self, name: str, job: Callable[..., None], *given: Any) -> None:
        """Run a client in a thread; what it raises is wrong."""

        def guarded() -> None:
            try:
                job(*given)
            except Exception as error:
                self.wrong(f"{name}: {type(error).__name__}: {error}")

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def wrong(self, what: str) -> None:
        """Note what must not be."""
        with self._lock:
            self.figures.wrong.append(what)

    def client(self, kind: str) -> Client:
        """A client that keeps its connection."""
        return Client(self, kind)

    def note(self, kind: str, began: float, ended: float) -> None:
        """Note an answer."""
        down = self.was_down(began, ended)
        with self._lock:
            self.figures.answered[kind] += 1
            found = self.figures.latencies.setdefault(kind, [])
            if not down:
                found.append(ended - began)


class Client:
    """An honest client: it sends again what a kill has cut, and nothing else."""

    def __init__(self, siege: Siege, kind: str) -> None:
        self._siege = siege
        self._kind = kind
        self._connection: http.client.HTTPConnection | None = None
        self._is_kept = False
        self._used = 0.0  # when the connection was last good

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """The value of an answer that is a success."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        until = time.monotonic() + _PATIENCE
        while True:
            began = time.monotonic()
            try:
                status, text, pause = self._once(method, path, content, headers or {})
            except (OSError, http.client.HTTPException) as error:
                kept = self._forget()
                ended = time.monotonic()
                if kept and began - self._used > 1:
                    continue  # a connection that was kept may be closed while nobody uses it
                if not self._siege.was_down(self._used if kept else began, ended):
                    raise Wrong(f"{method} {path} was cut after {ended - began:.1f} s: {error!r}") from None
                self._siege.figures.cut[self._kind] += 1
                if ended > until:
                    raise Wrong(f"{method} {path} was not answered for {_PATIENCE:g} s") from None
                time.sleep(0.05)
                continue
            self._used = time.monotonic()
            if status == 503 and pause and self._siege.is_young():
                self._siege.figures.later[self._kind] += 1
                time.sleep(float(pause))
                continue
            self._siege.note(self._kind, began, self._used)
            if status >= 300:
                raise Wrong(f"{method} {path}: {status} {text[:300]!r}")
            return json.loads(text) if text else None

    def _once(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> tuple[int, bytes, str]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._siege.port, timeout=_PATIENCE)
            self._is_kept = False
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        self._is_kept = True
        if answer.will_close:
            self._forget()
        return answer.status, text, answer.getheader("retry-after", "")

    def _forget(self) -> bool:
        """Close the connection; tell whether it was one that had answered before."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        is_kept, self._is_kept = self._is_kept, False
        return is_kept


def _definition(type_: str) -> dict[str, Any]:
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": type_}}}


def _event(type_: str, **more: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "1", "source": "/siege", "type": type_, **more}


def load(siege: Siege) -> None:
    """Write the catalog that is besieged."""
    client, size = siege.client("load"), 500
    for low in range(0, siege.messages, size):
        numbers = range(low, min(low + size, siege.messages))
        messages = {f"m{number}": _definition(f"siege.t{number}") for number in numbers}
        client.ask("POST", "/messagegroups", {f"g{low // size}": {"messages": messages}}, _JSON)
    xml = {**_definition("siege.xml"), "dataschemaformat": "XSD/1.0", "dataschema": _XSD}
    client.ask("PUT", "/messagegroups/attack/messages/xml", {**xml, "datacontenttype": "application/xml"}, _JSON)


def read(siege: Siege, number: int) -> None:
    """Read one entity, a page, what a filter finds."""
    client, chance = siege.client("read"), random.Random(siege.seed + number)
    while not siege.done.wait(0.02):
        at = chance.randrange(siege.messages)
        path = f"/messagegroups/g{at // 500}/messages"
        if chance.random() < 0.8:
            found = client.ask("GET", f"{path}/m{at}")
            if found["messageid"] != f"m{at}":
                raise Wrong(f"{path}/m{at} is {found}")
        elif chance.random() < 0.5:
            client.ask("GET", f"{path}?limit=20")
        else:
            found = client.ask("GET", f"{path}?filter=messageid=m{at}")
            if list(found) != [f"m{at}"]:
                raise Wrong(f"the filter finds {list(found)}, not m{at}")


def write(siege: Siege, number: int, told: dict[str, str]) -> None:
    """Write messages of one's own, and remember what was acknowledged."""
    client, count = siege.client("write"), 0
    while not siege.done.wait(0.05):
        count += 1
        path = f"/messagegroups/w{number}/messages/m{count % 40}"
        client.ask("PUT", path, {**_definition(f"siege.w{number}.{count % 40}"), "name": f"n{count}"}, _JSON)
        told[path] = f"n{count}"
        siege.figures.writes += 1


def match(siege: Siege, number: int) -> None:
    """Ask which definition an event has."""
    client, chance = siege.client("match"), random.Random(siege.seed - number)
    while not siege.done.wait(0.05):
        at = chance.randrange(siege.messages)
        answer = client.ask("POST", "/match", _event(f"siege.t{at}"), _JSON)
        if answer["outcome"] != "matched" or not answer["definition"].endswith(f"/messages/m{at}"):
            raise Wrong(f"siege.t{at}: {answer}")


def follow(siege: Siege, cursor: str, seen: list[str]) -> None:
    """Follow /changes by long polls."""
    client = siege.client("follow")
    while not siege.done.is_set():
        cursor = _page(client, cursor, seen, "&wait=1")


def _page(client: Client, cursor: str, seen: list[str], more: str = "") -> str:
    found = client.ask("GET", f"/changes?since={quote(cursor)}&limit=1000{more}")
    seen += [event["id"] for event in found]
    return str(found[-1]["id"]) if found else cursor


class Sink(ThreadingHTTPServer):
    """A sink that agrees to deliveries; a silent one never answers them."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *, silent: bool = False) -> None:
        self.seen: dict[str, None] = {}
        self.silent = silent
        self.end = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def close(self) -> None:
        """Stop."""
        self.end.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A server that was killed is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Sink

    def do_OPTIONS(self) -> None:
        """Agree."""
        self.send_response(200)
        self.send_header("WebHook-Allowed-Origin", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Take an event."""
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.silent:
            self.server.end.wait(_PATIENCE)
        self.server.seen[event["id"]] = None
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


# Attacks: each is one round, given the siege and its number; it says what it is, and gives what came of it. -----------

_ATTACKS: dict[str, Callable[[Siege, int], object]] = {}


def _attack(name: str) -> Callable[[Callable[[Siege, int], object]], Callable[[Siege, int], object]]:
    def add(round_: Callable[[Siege, int], object]) -> Callable[[Siege, int], object]:
        _ATTACKS[name] = round_
        return round_

    return add


def _send(siege: Siege, method: str, path: str, body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", siege.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@_attack("a batch of malformed events")
def _malformed(siege: Siege, number: int) -> object:
    bad = (b'{"type":"t"}', b"{}", b"[1]", b'{"type":"\xff"}')[number % 4]
    return _send(siege, "POST", "/match", b"[" + b",".join([bad] * 2000) + b"]", _BATCH)


@_attack("a compressed inner batch")
def _compressed(siege: Siege, number: int) -> object:
    payload = gzip.compress(b"[" + b",".join([json.dumps(_event("siege.t1")).encode()] * 150_000) + b"]", 1)
    headers = (("content-type", "application/cloudevents-batch+json"), ("content-encoding", "gzip"))
    body = Message("HTTP", {"headers": headers}, payload).to_bytes()
    return _send(siege, "POST", "/match", body, _JSON)


@_attack("invalid XML siblings")
def _siblings(siege: Siege, number: int) -> object:
    data = "<r>" + "<a>x</a>" * 32_000 + "</r>"
    event = _event("siege.xml", datacontenttype="application/xml", data=data)
    return _send(siege, "POST", ("/match", "/validate")[number % 2], json.dumps(event).encode(), _JSON)


def _schema(siege: Siege, number: int, name: str, format_: str, schema: object) -> object:
    body = {"format": format_, "schema": schema, "versionid": str(number)}
    path = f"/schemagroups/attack/schemas/{name}{number % 3}/versions/{number}$details"
    with suppress(OSError, http.client.HTTPException):
        meta = {"compatibility": "backward"}
        _send(siege, "PATCH", f"/schemagroups/attack/schemas/{name}{number % 3}/meta", json.dumps(meta).encode(), _JSON)
    return _send(siege, "PUT", path, json.dumps(body).encode(), _JSON)


@_attack("dangling $refs")
def _dangling(siege: Siege, number: int) -> object:
    properties = {f"p{one}": {"$ref": f"#/definitions/d{one}"} for one in range(1500)}
    return _schema(siege, number, "refs", "JsonSchema/draft-07", {"type": "object", "properties": properties})


@_attack("a big enum")
def _enum(siege: Siege, number: int) -> object:
    symbols = [f"S{one}" for one in range(16_000 + number % 2)]
    return _schema(siege, number, "enum", "Avro/1.9.0", {"type": "enum", "name": "E", "symbols": symbols})


@_attack("a big record")
def _record(siege: Siege, number: int) -> object:
    fields = [{"name": f"f{one}", "type": "string", "default": ""} for one in range(10_000 + number % 2)]
    return _schema(siege, number, "record", "Avro/1.9.0", {"type": "record", "name": "R", "fields": fields})


def _hold(siege: Siege, count: int, begin: bytes, drip: bytes = b"") -> object:
    """Open connections, send a beginning, and hold them for some seconds."""
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            with suppress(OSError):
                one = socket.create_connection(("127.0.0.1", siege.port), timeout=5)
                held.append(one)
                one.sendall(begin)
        for _ in range(8):
            if siege.over.wait(1):
                break
            for one in held if drip else ():
                with suppress(OSError):
                    one.sendall(drip)
        return "held"
    finally:
        for one in held:
            one.close()


@_attack("idle connections")
def _idle(siege: Siege, number: int) -> object:
    return _hold(siege, siege.scale, b"")


@_attack("half-sent heads")
def _half_head(siege: Siege, number: int) -> object:
    return _hold(siege, siege.scale // 3, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b", b"c")


@_attack("half-sent bodies")
def _half_body(siege: Siege, number: int) -> object:
    begin = (
        b"POST /match HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    )
    return _hold(siege, siege.scale // 3, begin, b" ")


@_attack("unread exports")
def _unread(siege: Siege, number: int) -> object:
    return _hold(siege, max(4, siege.scale // 15), b"GET /export HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")


@_attack("handshakes of a sink that is silent")
def _handshakes(siege: Siege, number: int) -> object:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        body = json.dumps({"protocol": "HTTP", "sink": url}).encode()
        begin = (
            b"POST /subscriptions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        return _hold(siege, 50, begin)


def _besiege(siege: Siege, name: str, pause: float) -> None:
    """Repeat one attack; whatever comes of it is counted."""
    number = 0
    while not siege.over.wait(pause):
        number += 1
        try:
            outcome = _ATTACKS[name](siege, number)
        except (OSError, http.client.HTTPException) as error:
            outcome = type(error).__name__
        siege.figures.attacks[f"{name}: {outcome}"] += 1


# The siege ------------------------------------------------------------------------------------------------------------


def _sizes(group: int) -> Iterator[int]:
    """The memory of each process of a process group."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            if int(status.read_text().rpartition(")")[2].split()[2]) == group:
                yield int(status.with_name("statm").read_text().split()[1]) * resource.getpagesize()


def besiege(
    store: str, folder: Path, *, seconds: float, kill_every: float, messages: int, workers: int = 2, scale: int = 300,
    seed: int = 1, attacks: tuple[str, ...] = (),
) -> Figures:  # fmt: skip
    """Besiege a server on a store for so long; what must not be is in `wrong`."""
    siege = Siege(store, folder, messages=messages, workers=workers, scale=scale, seed=seed)
    sinks, silent = [Sink(), Sink()], Sink(silent=True)
    told: list[dict[str, str]] = [{}, {}]
    followed: list[list[str]] = [[], []]
    try:
        load(siege)
        client = siege.client("other")
        for sink in sinks:
            client.ask("POST", "/subscriptions", {"protocol": "HTTP", "sink": sink.url}, _JSON)
        for _ in range(20):
            client.ask("POST", "/subscriptions", {"protocol": "HTTP", "sink": silent.url}, _JSON)
        start: list[str] = []
        cursor = "0"
        while (after := _page(client, cursor, start)) != cursor:
            cursor = after
        siege.run("watch", siege.watch)
        for number in (0, 1):
            siege.run("read", read, siege, number)
            siege.run("write", write, siege, number, told[number])
            siege.run("match", match, siege, number)
            siege.run("follow", follow, siege, cursor, followed[number])
        for name in attacks or _ATTACKS:
            siege.run(f"attack {name}", _besiege, siege, name, 1.0)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not siege.figures.wrong:
            time.sleep(min(left, kill_every))
            if until - time.monotonic() > 1:
                siege.kill()
        siege.over.set()
        _finish(siege, client, told, followed, cursor, sinks)
    except Exception as error:
        siege.wrong(f"{type(error).__name__}: {error}")
    finally:
        siege.close()
        for sink in (*sinks, silent):
            sink.close()
    if siege.figures.memory > MOST_MEMORY:
        siege.wrong(f"a process held {siege.figures.memory / 1e6:.0f} MB, more than {MOST_MEMORY / 1e6:.0f}")
    return siege.figures


def _finish(
    siege: Siege, client: Client, told: list[dict[str, str]], followed: list[list[str]], cursor: str, sinks: list[Sink]
) -> None:
    """Compare what is there with what was acknowledged."""
    time.sleep(2)  # whoever was cut last is answered now
    siege.done.set()
    for thread in siege._threads:
        if thread.name in ("read", "write", "match", "follow"):
            thread.join(_PATIENCE)
            if thread.is_alive():
                siege.wrong(f"a client ({thread.name}) was not answered for {_PATIENCE:g} s")
    for path, name in (pair for one in told for pair in one.items()):
        found = client.ask("GET", path).get("name")
        if found != name:
            siege.wrong(f"{path} was acknowledged with {name!r}, and is there with {found!r}")
    _check_subscribers(siege, client, followed, cursor, sinks)


def _check_subscribers(siege: Siege, client: Client, followed: list[list[str]], cursor: str, sinks: list[Sink]) -> None:
    """Let them catch up, and compare what they have with what there is."""
    expected: list[str] = []
    at = cursor
    while (after := _page(client, at, expected)) != at:
        at = after
    siege.figures.events = len(expected)
    for seen in followed:
        last = seen[-1] if seen else cursor
        while (after := _page(client, last, seen)) != last:
            last = after
        if seen != expected:
            siege.wrong(f"a follower of /changes has {len(seen)} events of {len(expected)}, or another order")
    until = time.monotonic() + _PATIENCE
    for sink in sinks:
        while missing := set(expected) - sink.seen.keys():
            if time.monotonic() > until:
                siege.wrong(f"a sink lacks {len(missing)} events of {len(expected)}")
                break
            time.sleep(0.2)


@contextmanager
def _schema_of(url: str) -> Iterator[str]:
    """A schema of its own in a PostgreSQL, removed afterwards."""
    import psycopg

    name = f"siege_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("SET client_min_messages = warning")
        server.execute(f"CREATE SCHEMA {name}")
        try:
            yield f"{url}{'&' if '?' in url else '?'}options={quote(f'-csearch_path={name}', safe='')}"
        finally:
            server.execute(f"DROP SCHEMA {name} CASCADE")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--kill-every", type=float, default=60)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scale", type=int, default=300, help="connections that one attack holds")
    parser.add_argument("--postgres", default="", metavar="URL", help="besiege on this PostgreSQL instead of SQLite")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--attack", action="append", default=[], choices=sorted(_ATTACKS), help="only this one")
    parser.add_argument("--quiet-machine", action="store_true", help=f"hold 99 %% of answers to {MOST_SECONDS:g} s")
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(store: str) -> Figures:
            return besiege(
                store, folder, seconds=given.seconds, kill_every=given.kill_every, messages=given.messages,
                workers=given.workers, scale=given.scale, seed=given.seed, attacks=tuple(given.attack),
            )  # fmt: skip

        print(
            f"siege: {'PostgreSQL' if given.postgres else 'SQLite'}, {given.seconds:g} s, seed {given.seed}", flush=True
        )
        if given.postgres:
            with _schema_of(given.postgres) as store:
                figures = run(store)
        else:
            figures = run(str(folder / "signalbook.db"))
        for line in figures.lines():
            print(f"siege: {line}")
        if given.quiet_machine:
            for kind, found in figures.latencies.items():
                if found and kind not in ("load", "other", "follow"):
                    late = sorted(found)[min(len(found) - 1, int(len(found) * 0.99))]
                    if late > MOST_SECONDS:
                        figures.wrong.append(f"99 % of {kind} took up to {late:.1f} s, more than {MOST_SECONDS:g}")
        for line in figures.wrong:
            print(f"siege: WRONG: {line}")
        if figures.wrong:
            print((folder / "server.log").read_text(errors="replace")[-3000:], file=sys.stderr)
            sys.exit(1)


if __name__ == "__main__":
    main()
