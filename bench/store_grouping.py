"""What grouped commits give: durable writes of small jobs by one thread and by many, on a file of this machine.

Run: python bench/store_grouping.py [--store PATH-or-URL] [--seconds 2] [--rounds 3]
The rows are interleaved and the best round of each counts: another load on the machine only makes a round worse.
"""

from __future__ import annotations

import argparse
import itertools
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from signalbook.registry.store import Connection, Store, open_store

THREADS = (1, 2, 8, 32)

# Tables of its own, of the shape of the registry's, so that the numbers stay comparable when those change.
TABLES = (
    "CREATE TABLE IF NOT EXISTS bench_entities (key TEXT PRIMARY KEY, epoch BIGINT, modifiedat TEXT, doc TEXT)",
    "CREATE TABLE IF NOT EXISTS bench_attrs (term BIGINT, key TEXT, PRIMARY KEY (term, key))",
    "CREATE TABLE IF NOT EXISTS bench_changes (seq BIGINT PRIMARY KEY, at TEXT, subject TEXT, changed TEXT)",
)
UPSERT = (
    "INSERT INTO bench_entities VALUES (?, 1, ?, ?) ON CONFLICT (key) DO UPDATE "
    "SET epoch = bench_entities.epoch + 1, modifiedat = excluded.modifiedat, doc = excluded.doc"
)
TERM = "INSERT INTO bench_attrs VALUES (?, ?) ON CONFLICT DO NOTHING"
CHANGE = "INSERT INTO bench_changes VALUES (?, ?, ?, ?)"
NOW = "2026-01-01T00:00:00.000000Z"
DOC = '{"name": "%d", "labels": {"team": "a"}, "description": "' + "x" * 400 + '"}'

counter = itertools.count(time.time_ns())


def create(connection: Connection) -> None:
    """The tables of this measurement."""
    for table in TABLES:
        connection.execute(table)


def job(connection: Connection) -> int:
    """A small write as the registry does it: read the old row, write the new one, two terms, and the change."""
    number = next(counter)
    key = f"c/dirs/d{number % 7}/files/f{number % 5000}"
    connection.one("SELECT epoch, doc FROM bench_entities WHERE key = ?", (key,))
    connection.execute(UPSERT, (key, NOW, DOC % number))
    connection.executemany(TERM, [(number % 50, key), (number % 900, key)])
    connection.execute(CHANGE, (number, NOW, key, "name"))
    return number


def rate(write: Callable[[], object], threads: int, seconds: float) -> float:
    """Writes a second of `threads` threads that each write in a loop."""
    done = [0] * threads
    end = time.monotonic() + seconds

    def loop(place: int) -> None:
        while time.monotonic() < end:
            write()
            done[place] += 1

    started = time.monotonic()
    crew = [threading.Thread(target=loop, args=(place,)) for place in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return sum(done) / (time.monotonic() - started)


def cost_of_job(store: Store, jobs: int = 2000) -> float:
    """Seconds of one job inside a transaction, without its commit."""

    def many(connection: Connection) -> float:
        started = time.perf_counter()
        for _ in range(jobs):
            job(connection)
        return (time.perf_counter() - started) / jobs

    return store.write(many)


def bare_writer(path: Path) -> Callable[[], None]:
    """The same job between BEGIN IMMEDIATE and COMMIT on a plain sqlite3 connection, without our code around it."""
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    cursor = database.cursor()
    for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 8000", "mmap_size = 2147418112"):
        cursor.execute(f"PRAGMA {setting}").fetchall()

    class Bare:
        def execute(self, sql: str, params: object = ()) -> object:
            return cursor.execute(sql, params).fetchall()

        def one(self, sql: str, params: object = ()) -> object:
            return cursor.execute(sql, params).fetchone()

        def executemany(self, sql: str, rows: object) -> None:
            cursor.executemany(sql, rows)

    bare = Bare()

    def write() -> None:
        cursor.execute("BEGIN IMMEDIATE")
        job(bare)
        cursor.execute("COMMIT")

    return write


def overhead(store: Store, jobs: int = 20000) -> float:
    """Seconds that a lone writer pays beyond the transaction itself: an empty job in memory, against the bare words."""
    cursor = sqlite3.connect(store.url.removeprefix("sqlite:"), isolation_level=None).cursor()
    best = [9.0, 9.0]
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(jobs):
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("COMMIT")
        best[0] = min(best[0], time.perf_counter() - started)
        started = time.perf_counter()
        for _ in range(jobs):
            store.write(lambda connection: None)
        best[1] = min(best[1], time.perf_counter() - started)
    return (best[1] - best[0]) / jobs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        open_store(options.store or f"{folder}/store.db") as store,
        open_store(f"{folder}/bare.db") as empty,
    ):
        store.write(create)
        empty.write(create)
        embedded = store.url.startswith("sqlite:")
        rows: dict[str, tuple[Callable[[], object], int]] = {}
        if embedded:
            rows["bare sqlite3, 1 thread"] = (bare_writer(Path(folder) / "bare.db"), 1)
        for threads in THREADS:
            rows[f"Store.write, {threads} thread{'s' if threads > 1 else ''}"] = (lambda: store.write(job), threads)
        best = dict.fromkeys(rows, 0.0)
        for _ in range(options.rounds):
            for name, (write, threads) in rows.items():
                best[name] = max(best[name], rate(write, threads, options.seconds))
        single = best["Store.write, 1 thread"]
        print(f"{'one job without its commit':30} {cost_of_job(store) * 1e6:8.0f} µs")
        if embedded:
            print(f"{'lone writer, beyond the words':30} {overhead(store) * 1e6:8.1f} µs")
        for name, found in best.items():
            print(f"{name:30} {found:8.0f} /s {1e6 / found:8.0f} µs {found / single:6.2f} x")


if __name__ == "__main__":
    main()
