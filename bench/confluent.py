"""Measure the API of Confluent's Schema Registry: `make bench BENCH=confluent`; `ARGS=--quick` sends fewer requests.

Every line is processor time of the server for one request, as a ratio with its limit. The clients are connections that
are kept open; what they cost does not count. Another registry that runs on this machine is measured in turn with this
one, where its name, address and process are given:

    bench/confluent.py --peer karapace http://127.0.0.1:8081 4711

Only the time of that process and its children counts, not that of a store it has elsewhere, so the peer is favoured.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

sys.path.insert(0, str(Path(__file__).parent))
from figures import Figure, cpu_seconds, serving, show

from registry import GROUP, fill

SCHEMAS = 200
CONNECTIONS = 8
ROUNDS = 5
AT_LEAST = 5  # times the requests of Karapace for the same processor time
MEDIA = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class Server:
    """A registry that is measured: where its API begins, and its process."""

    name: str
    address: str
    pid: int


class Connections:
    """Some connections to one server; each sends a request, then each reads its answer."""

    def __init__(self, server: Server) -> None:
        parts = urlsplit(server.address)
        self._where = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._prefix = parts.path.rstrip("/")
        self._open: list[socket.socket] = []

    def __enter__(self) -> Connections:
        self._open = [socket.create_connection(self._where) for _ in range(CONNECTIONS)]
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            one.close()

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """The bytes of a request."""
        text = orjson.dumps(body) if body is not None else b""
        kind = f"Content-Type: {MEDIA}\r\nContent-Length: {len(text)}\r\n" if text else ""
        host = f"{self._where[0]}:{self._where[1]}"
        return f"{method} {self._prefix}{path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n{kind}\r\n".encode() + text

    def send(self, requests: Sequence[bytes]) -> list[bytes]:
        """Send all of them, and return the bodies of their answers."""
        bodies = []
        for start in range(0, len(requests), CONNECTIONS):
            part = requests[start : start + CONNECTIONS]
            for one, request in zip(self._open, part, strict=False):
                one.sendall(request)
            bodies += [_answer(one) for one, _ in zip(self._open, part, strict=False)]
        return bodies


def _answer(one: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        found += _more(one)
    head, _, body = found.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    if status.split()[1] != "200":
        raise SystemExit(f"{status}: {body[:300].decode(errors='replace')}")
    (length,) = (int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length:"))
    while len(body) < length:
        body += _more(one)
    return body


def _more(one: socket.socket) -> bytes:
    found = one.recv(1 << 16)
    if not found:
        raise SystemExit("a server that is measured has closed its connection")
    return found


def schema(name: str) -> str:
    """An Avro record of ordinary size, about 900 bytes."""
    kinds = ["string", "long", "double", ["null", "string"], {"type": "array", "items": "string"}]
    fields = [{"name": f"field{number}", "type": kinds[number % len(kinds)], "doc": "A value."} for number in range(14)]
    return orjson.dumps({"type": "record", "name": name, "namespace": "com.example.bench", "fields": fields}).decode()


class Measured:
    """The kinds of requests to one server, and the least processor time that one of each has taken so far."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.seconds: dict[str, float] = {}
        self._run = uuid.uuid4().hex[:8]
        self._made = 0
        with Connections(server) as connections:
            bodies = connections.send([self._registration(connections, number) for number in range(SCHEMAS)])
        self._ids = [orjson.loads(body)["id"] for body in bodies]

    def _registration(self, connections: Connections, number: int) -> bytes:
        body = {"schema": schema(f"Record{self._run}n{number}"), "schemaType": "AVRO"}
        return connections.request("POST", f"/subjects/bench-{self._run}-{number}-value/versions", body)

    def round(self, looks: int, registers: int) -> None:
        """Send each kind once more."""
        with Connections(self.server) as connections:
            asked = [
                connections.request("GET", f"/schemas/ids/{id_}?subject=bench-{self._run}-{number}-value")
                for number, id_ in enumerate(self._ids)
            ]
            self._measure("look-up by id", connections, asked * (looks // SCHEMAS))
            again = [self._registration(connections, number) for number in range(SCHEMAS)]
            self._measure("registration of what is there", connections, again * max(1, registers // SCHEMAS))
            first = SCHEMAS + self._made
            self._made += registers
            new = [self._registration(connections, first + number) for number in range(registers)]
            self._measure("registration", connections, new)

    def _measure(self, name: str, connections: Connections, requests: list[bytes]) -> None:
        before = cpu_seconds(self.server.pid)
        connections.send(requests)
        spent = (cpu_seconds(self.server.pid) - before) / len(requests)
        self.seconds[name] = min(spent, self.seconds.get(name, spent))


def measure_point_read(server: Server, looks: int) -> float:
    """The processor time of a point read of the xRegistry API, of as many messages as there are schemas."""
    with Connections(server) as connections:
        asked = [connections.request("GET", f"{GROUP}/messages/m{number}") for number in range(SCHEMAS)]
        before = cpu_seconds(server.pid)
        connections.send(asked * (looks // SCHEMAS))
        return (cpu_seconds(server.pid) - before) / (looks // SCHEMAS * SCHEMAS)


def run(peers: Sequence[Server], *, quick: bool) -> list[Figure]:
    """All figures; the servers take turns, and the best round of each counts."""
    looks, registers = (4_000, 400) if quick else (20_000, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "confluent.db"
        fill(store, SCHEMAS)
        with serving(str(store)) as (address, pid, _):
            own = Measured(Server("Signalbook", f"{address}/confluent", pid))
            others = [Measured(peer) for peer in peers]
            reads = []
            for turn in range(ROUNDS):
                print(f"\r  round {turn + 1} of {ROUNDS}", end="", flush=True)
                reads.append(measure_point_read(Server("Signalbook", address, pid), looks))
                own.round(looks, registers)
                for other in others:
                    other.round(looks // 10, registers // 4)
            print()
    return _figures(own, others, min(reads))


def _figures(own: Measured, others: Sequence[Measured], read: float) -> list[Figure]:
    look = own.seconds["look-up by id"]
    note = f"{look * 1e6:.0f} µs against {read * 1e6:.0f} µs of CPU"
    figures = [Figure("CPU of a look-up by id", look / read, 1.5, "a point read of the xRegistry API", note=note)]
    for name, spent in own.seconds.items():
        if name != "look-up by id":
            figures.append(Figure(f"CPU of a {name}, µs", spent * 1e6, None, "1,000 bytes of Avro"))
        for other in others:
            theirs = other.seconds[name]
            limit = AT_LEAST if other.server.name.lower() == "karapace" and "there" not in name else None
            note = f"{spent * 1e6:.0f} µs against {theirs * 1e6:.0f} µs of CPU"
            figures.append(
                Figure(f"{name}: requests for one CPU second", theirs / spent, limit, other.server.name, True, note)
            )
    return figures


def main() -> int:
    """Measure and print; fail where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    parser.add_argument(
        "--peer", nargs=3, action="append", default=[], metavar=("NAME", "ADDRESS", "PID"),
        help="another registry that runs here; may be repeated",
    )  # fmt: skip
    given = parser.parse_args()
    peers = [Server(name, address, int(pid)) for name, address, pid in given.peer]
    if not peers:
        print("  SKIPPED other registries: none is given (--peer NAME ADDRESS PID)")
    return 0 if show(run(peers, quick=given.quick)) else 1


if __name__ == "__main__":
    sys.exit(main())
