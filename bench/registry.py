"""Measure the registry against anchors in the same run: `make bench`, or `make bench ARGS=--quick`.

Every line is a ratio with its limit, or a figure without one. nginx and wrk are taken from the system (Debian:
nginx-light, wrk, strace); what needs them is named as skipped where they are missing. `--quick` uses fewer messages and
shorter runs.

What a write costs beside its sync, and what grouping saves, depend on how long the disk takes to sync. Machines whose
disks only promise do it in 0.1 ms; so `disk` takes the figures of the writes again with 3 ms more for every sync.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson

sys.path.insert(0, str(Path(__file__).parent))
from figures import Figure, cpu_seconds, free_port, median_seconds, memory_mib, serving, show, wait_for

from signalbook import Registry
from signalbook.registry.read.reads import Limits

GROUP = "/messagegroups/bench"
Json = dict[str, Any]


def message(number: int) -> Json:
    """Return a message of ordinary size, about 800 bytes of JSON."""
    return {
        "name": f"Reading {number}",
        "description": "A device reports one reading of one of its sensors, with the unit that it was taken in.",
        "labels": {"team": f"team{number % 1000}", "stage": "prod"},
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "type": {"type": "string", "value": f"com.example.reading.{number}", "required": True},
            "source": {"type": "uritemplate", "value": "/devices/{deviceid}"},
            "subject": {"type": "uritemplate", "value": "{deviceid}/readings", "required": True},
            "time": {"type": "timestamp", "required": True},
        },
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": f"https://example.com/schemas/s{number}",
        "datacontenttype": "application/json",
    }


def fill(path: Path, count: int, make: Callable[[int], Json] = message) -> None:
    """Fill a store through the registry itself, 2,000 messages a transaction."""
    with Registry.open(path) as registry:
        registry.put(GROUP, {"envelope": "CloudEvents/1.0"})
        for start in range(0, count, 2000):
            part = {f"m{number}": make(number) for number in range(start, min(start + 2000, count))}
            registry.post(f"{GROUP}/messages", part)
            print(f"\r  {start + len(part):,} of {count:,} messages", end="", flush=True)
    print()


# ---- reading


def reads(folder: Path, seconds: int) -> list[Figure]:
    """CPU for a point read against nginx serving the same bytes, and reads a second with two workers."""
    missing = [name for name in ("nginx", "wrk") if shutil.which(name) is None]
    if missing:
        print(f"  SKIPPED point reads against nginx: {', '.join(missing)} not installed")
        return []
    store = folder / "reads.db"
    fill(store, 1000)
    figures = []
    ours, theirs, rates = [], [], []
    with serving(str(store)) as (address, pid, _):
        body = httpx.get(f"{address}{GROUP}/messages/m500").content
        with _nginx(folder, body) as (other_address, other_pid):
            for _ in range(ROUNDS):
                spent, rate = _wrk(f"{address}{GROUP}/messages/m500", pid, seconds)
                ours.append(spent)
                rates.append(rate)
                theirs.append(_wrk(f"{other_address}/m500", other_pid, seconds)[0])
    one, other = min(ours), min(theirs)
    note = f"{one * 1e6:.1f} µs against {other * 1e6:.1f} µs of CPU; {max(rates):,.0f} reads/s with one worker"
    figures.append(Figure("CPU of a point read", one / other, 4, "nginx, the same bytes as a file", note=note))
    with serving(str(store), "--workers", "2") as (address, pid, _):
        _, rate = _wrk(f"{address}{GROUP}/messages/m500", pid, seconds)
    figures.append(Figure("point reads a second, 2 workers", rate, None, "wrk on the same cores"))
    return figures


def _wrk(url: str, pid: int, seconds: int) -> tuple[float, float]:
    """Return CPU seconds a request and requests a second."""
    command = ["wrk", "-t1", "-c32", f"-d{seconds}s", url]
    subprocess.run([*command[:3], "-d1s", url], check=True, capture_output=True)
    before = cpu_seconds(pid)
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    spent = cpu_seconds(pid) - before
    words = out.split()
    count = int(words[words.index("requests") - 1])
    if "Non-2xx" in out:
        raise SystemExit(out)
    return spent / count, float(words[words.index("Requests/sec:") + 1])


class _nginx:
    def __init__(self, folder: Path, body: bytes) -> None:
        self.root = folder / "www"
        self.root.mkdir(exist_ok=True)
        (self.root / "m500").write_bytes(body)
        self.port = free_port()
        self.config = folder / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        self.config.write_text(
            f"{user} worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log /dev/null;"
            "events { worker_connections 256; }"
            f"http {{ access_log off; default_type application/json; sendfile on; keepalive_requests 1000000;"
            f"open_file_cache max=100; server {{ listen 127.0.0.1:{self.port}; root {self.root}; }} }}"
        )

    def __enter__(self) -> tuple[str, int]:
        self.process = subprocess.Popen(["nginx", "-c", str(self.config)], stderr=subprocess.DEVNULL)
        wait_for(self.port, self.process)
        return f"http://127.0.0.1:{self.port}", self.process.pid

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)


# ---- writing


# The rows of a write beside the message and its history, as they are in `changes` and in `recent`.
CHANGE_BYTES, INDEX_BYTES = 390, 109
ROUNDS = 5  # the rows of a comparison take turns, and the best round of each counts: other load only makes it worse


def writes(folder: Path, times: int) -> list[Figure]:
    """Durable writes one by one against a bare transaction, and with 32 writers, through `Registry` and over HTTP."""
    return [*own_writes(folder, times), *http_writes(folder, times)]


def disk(folder: Path) -> list[Figure]:
    """The writes through `Registry` again, as on a disk that takes its time to sync."""
    if shutil.which("strace") is None:
        print("  SKIPPED writes on a slow disk: strace not installed")
        return []
    slower = ["strace", "-f", "--seccomp-bpf", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_exit=3000"]
    again = [sys.executable, __file__, "--quick", "--only", "own-writes"]
    print("  every sync takes 3 ms more:", flush=True)
    found = subprocess.run([*slower, "-o", "/dev/null", *again], cwd=folder, stdout=subprocess.PIPE, text=True)
    for line in found.stdout.splitlines()[1:]:
        print(f"  {line}" if line else "")
    return []


def own_writes(folder: Path, times: int) -> list[Figure]:
    """Durable writes through `Registry`."""
    bare_times, row_times, own_times, alone, together = [], [], [], [], []
    bare = _bare_transaction(folder / "bare.db", times)
    row = _bare_transaction(folder / "row.db", times, rows=1)
    with Registry.open(folder / "writes.db") as registry:
        registry.put(GROUP, {"envelope": "CloudEvents/1.0"})
        registry.post(f"{GROUP}/messages", {f"m{number}": message(number) for number in range(times)})

        def change(number: int, shift: int) -> None:
            registry.put(f"{GROUP}/messages/m{number}", message(number + shift))

        for turn in range(ROUNDS):
            bare_times.append(median_seconds(lambda number: bare(number, turn + 1), times))  # noqa: B023
            row_times.append(median_seconds(lambda number: row(number, turn + 1), times))  # noqa: B023
            own_times.append(median_seconds(lambda number: change(number, turn + 1), times))  # noqa: B023

            def put(name: str) -> None:
                registry.put(f"{GROUP}/messages/t{turn}-{name}", message(1))  # noqa: B023

            alone.append(_rate(put, 1, times))
            together.append(_rate(put, 32, 4 * times))
    one, other = min(own_times), min(bare_times)
    figures = [
        Figure(
            "a durable write", one / other, 4, "a bare SQLite transaction of the same size",
            note=f"{one * 1e6:.0f} µs against {other * 1e6:.0f} µs, both with synchronous=FULL",
        ),
        Figure("the same against its first row alone", one / min(row_times), None, "a bare transaction of one row"),
        Figure(
            "32 writers through Registry", max(together) / max(alone), 3, "one writer", at_least=True,
            note=f"{max(together):,.0f} against {max(alone):,.0f} writes/s",
        ),
    ]  # fmt: skip
    syncs = _sync_seconds(folder)
    return [*figures, Figure("µs for a sync of the log", syncs * 1e6, None, "4 KiB over what is there, fdatasync")]


def _sync_seconds(folder: Path) -> float:
    """How long the disk takes for what SQLite asks of it at a commit."""
    page = os.urandom(4096)
    with (folder / "sync").open("wb", buffering=0) as file:
        file.write(page * 256)
        os.fsync(file.fileno())

        def write(turn: int) -> None:
            os.pwrite(file.fileno(), page, turn % 256 * 4096)
            os.fdatasync(file.fileno())

        return median_seconds(write, 200)


def http_writes(folder: Path, times: int) -> list[Figure]:
    """Durable writes over HTTP."""
    alone, together = [], []
    with serving(str(folder / "http.db")) as (address, _, _):
        httpx.put(f"{address}{GROUP}", json={"envelope": "CloudEvents/1.0"}).raise_for_status()
        for turn in range(ROUNDS):
            clients = threading.local()

            def send(name: str) -> None:
                if not hasattr(clients, "http"):  # noqa: B023
                    clients.http = RawClient(address)  # noqa: B023
                clients.http.put(f"{GROUP}/messages/t{turn}-{name}", BODY)  # noqa: B023

            alone.append(_rate(send, 1, times))
            together.append(_rate(send, 32, 4 * times))
    note = f"{max(together):,.0f} against {max(alone):,.0f} writes/s"
    return [Figure("32 writers over HTTP", max(together) / max(alone), 1.5, "one writer", at_least=True, note=note)]


BODY = orjson.dumps(message(1))


class RawClient:
    """A connection that costs next to nothing, so that the clients do not outweigh the server on the same cores."""

    def __init__(self, address: str) -> None:
        import socket

        url = urllib.parse.urlsplit(address)
        self.host = url.netloc
        self.socket = socket.create_connection((url.hostname, url.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def put(self, path: str, body: bytes) -> None:
        """Send one PUT and read the whole answer."""
        head = f"PUT {path} HTTP/1.1\r\nhost: {self.host}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)
        data = self.socket.recv(65536)
        while b"\r\n\r\n" not in data:
            data += self.socket.recv(65536)
        head_bytes, _, rest = data.partition(b"\r\n\r\n")
        if not head_bytes.startswith(b"HTTP/1.1 20"):
            raise SystemExit(data.decode())
        size = int(head_bytes.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(rest) < size:
            rest += self.socket.recv(65536)


def _bare_transaction(path: Path, times: int, rows: int = 4) -> Callable[[int, int], None]:
    """Return a bare transaction of the size of a write, or of its first rows, on tables that hold as many messages.

    A write's rows are the message, its history, the change that others are told, and what changes in
    the index.
    """
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE t (key TEXT PRIMARY KEY, doc TEXT)")
    for name in ("history", "changes", "noted")[: rows - 1]:
        database.execute(f"CREATE TABLE {name} (seq INTEGER PRIMARY KEY, doc TEXT)")
    upsert = "INSERT INTO t VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET doc = excluded.doc"
    texts = [orjson.dumps(message(number)).decode() for number in range(times + ROUNDS + 1)]
    change = "x" * CHANGE_BYTES
    noted = "x" * INDEX_BYTES

    def work(number: int, shift: int) -> None:
        text = texts[number + shift]
        database.execute("BEGIN IMMEDIATE")
        database.execute(upsert, (f"m{number}", text))  # SQLite does not write what is there already
        for name, more in (("history", text), ("changes", change), ("noted", noted))[: rows - 1]:
            database.execute(f"INSERT INTO {name} (doc) VALUES (?)", (more,))
        database.execute("COMMIT")

    for number in range(times):
        work(number, 0)
    return work


def _rate(put: Any, writers: int, total: int) -> float:
    each = total // writers

    def work(writer: int) -> None:
        for number in range(each):
            put(f"w{writers}-{writer}-{number}")

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(writers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return each * writers / (time.perf_counter() - began)


# ---- size


def size(folder: Path, large: int, filtered: int) -> list[Figure]:
    """Filters against scans, point reads at a large and a small number of messages, start-up."""
    small_path, large_path, filter_path = folder / "small.db", folder / "large.db", folder / "filter.db"
    fill(small_path, 1000)
    fill(filter_path, filtered)
    if large == filtered:
        large_path = filter_path
    else:
        fill(large_path, large)
    # A scan may take longer than a server would let it.
    with Registry.open(filter_path, limits=Limits(seconds=600)) as registry:
        path = f"{GROUP}/messages"
        found = median_seconds(lambda turn: list(registry.find(path, f"labels.team=team{turn % 1000}")), 20)
        began = time.perf_counter()
        scanned = len(list(registry.find(path, "labels.team=*m7")))
        scan = time.perf_counter() - began
    ratio = scan / found
    figures = [
        Figure(
            f"a filter on a label over {filtered:,} messages", ratio, 100, "times faster than a scan", at_least=True,
            note=f"{found * 1e3:.2f} ms for {filtered // 1000} hits against {scan:.2f} s for {scanned}",
        )
    ]  # fmt: skip
    with Registry.open(small_path) as small, Registry.open(large_path) as big:
        few = median_seconds(lambda turn: small.get(f"{GROUP}/messages/m{turn * 7 % 1000}"), 5000)
        many = median_seconds(lambda turn: big.get(f"{GROUP}/messages/m{turn * 7919 % large}"), 5000)
    figures.append(
        Figure(
            f"a point read at {large:,} messages", many / few, 1.5, "at 1,000 messages",
            note=f"{many * 1e6:.1f} µs against {few * 1e6:.1f} µs",
        )
    )  # fmt: skip
    with serving(str(filter_path)) as (address, pid, seconds):
        httpx.get(f"{address}{GROUP}/messages/m1").raise_for_status()
        figures.append(Figure(f"seconds to start at {filtered:,} messages", seconds, None, ""))
        figures.append(Figure(f"MiB of memory at {filtered:,} messages", memory_mib(pid), None, ""))
    return figures


def matches(folder: Path, count: int) -> list[Figure]:
    """CPU of the server for a match that follows a write, against one that follows a match; its memory after many."""
    store = folder / "matches.db"
    fill(store, count, lambda number: {k: v for k, v in message(number).items() if not k.startswith("dataschema")})
    turns, spent = 300, {"match": 0.0, "write": 0.0, "write and match": 0.0}
    with serving(str(store)) as (address, pid, _), httpx.Client(base_url=address, timeout=600) as client:

        def match(number: int) -> None:
            """Ask about an event of one of the messages."""
            event = {"specversion": "1.0", "id": str(number), "source": "/devices/1", "subject": "1/readings"}
            event |= {"type": f"com.example.reading.{number % count}", "time": "2026-01-01T00:00:00Z"}
            while (answer := client.post("/match", json=event)).status_code == 503:
                time.sleep(float(answer.headers["retry-after"]))
            assert answer.json()["outcome"] == "matched", answer.text

        def write(number: int) -> None:
            """Change one of the messages."""
            path = f"{GROUP}/messages/m{number * 31 % count}"
            client.patch(path, json={"labels": {"turn": str(time.time_ns())}}).raise_for_status()

        began = time.perf_counter()
        match(0)
        first = time.perf_counter() - began
        held = memory_mib(pid)
        for turn in range(3):
            for way in spent:
                match(0)  # it pays for what the way before it wrote
                before = cpu_seconds(pid)
                for number in range(turns):
                    if "write" in way:
                        write(turn * turns + number)
                    if "match" in way:
                        match(turn * turns + number)
                spent[way] += cpu_seconds(pid) - before
        after = memory_mib(pid)
    one, other = spent["match"], spent["write and match"] - spent["write"]
    note = f"{other / turns / 3 * 1e3:.2f} ms against {one / turns / 3 * 1e3:.2f} ms of CPU"
    words = f"a match after a write at {count:,} messages"
    return [
        Figure(words, other / one, 3, "one after a match", note=note),
        Figure(f"seconds to the first match at {count:,} messages", first, None, ""),
        Figure("memory after 1,800 writes", after / held, 1.5, "after the first match", note=f"{after:.0f} MiB"),
    ]


def load(folder: Path) -> list[Figure]:
    """The reference server's own benchmark: 10 groups of 150 resources of 5 versions, and a query of three clauses."""
    with serving(str(folder / "load.db"), "--model", "empty", "--specversion", "1.0-rc4") as (address, _, _):
        client = httpx.Client(base_url=address, timeout=300)
        source = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
        client.put("/modelsource", json=source).raise_for_status()
        raw = RawClient(address)
        began = time.perf_counter()
        for group in range(10):
            for resource in range(150):
                for version in range(5):
                    path = f"/dirs/d{group}/files/f{resource}/versions/v{version}$details"
                    raw.put(path, orjson.dumps({"name": f"v{version}", "labels": {"n": str(resource)}}))
        loaded = time.perf_counter() - began
        query = "dirs.files.versions.name=v3,dirs.files.versions.labels.n=7,dirs.files.versions.epoch=1"
        began = time.perf_counter()
        answer = client.get(f"/?inline&filter={query}")
        asked = time.perf_counter() - began
        if answer.status_code != 200 or answer.json()["dirscount"] != 10:
            raise SystemExit(f"the query found something else: {answer.text[:300]}")
    return [
        Figure("10 × 150 × 5 versions, one request each: times faster", 141 / loaded, 1, "the reference: 141 s", True,
               f"{loaded:.1f} s"),
        Figure("a filter of three clauses over them: times faster", 43 / asked, 1, "the reference: 43 s", True,
               f"{asked * 1e3:.0f} ms"),
    ]  # fmt: skip


def main() -> int:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer messages, shorter runs")
    parser.add_argument(
        "--only", choices=["reads", "writes", "own-writes", "disk", "size", "matches", "load"], help="one part alone"
    )
    options = parser.parse_args()
    parts = {
        "reads": lambda folder: reads(folder, 3 if options.quick else 8),
        "writes": lambda folder: writes(folder, 300 if options.quick else 1000),
        "own-writes": lambda folder: own_writes(folder, 100 if options.quick else 1000),
        "disk": disk,
        "size": lambda folder: size(
            folder, 20_000 if options.quick else 1_000_000, 20_000 if options.quick else 100_000
        ),
        "matches": lambda folder: matches(folder, 20_000 if options.quick else 100_000),
        "load": load,
    }
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="signalbook-bench-", dir=Path.cwd()) as name:
        for part, run in parts.items():
            if options.only == part or (options.only is None and part != "own-writes"):
                print(f"{part} …")
                found = run(Path(name))
                show(found)
                figures += found
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
