from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import Connection, Store, open_store
from tests.patience import LONG

CHANGE = "INSERT INTO changes(at, correlation, events) VALUES ('2026-01-01T00:00:00Z', 'c', '[]')"


def note(name: str, value: int = 0) -> Callable[[Connection], int]:
    """A job that writes one row and returns its value."""

    def job(connection: Connection) -> int:
        connection.execute("INSERT INTO notes VALUES (?, ?)", (name, value))
        return value

    return job


def names(store: Store) -> list[str]:
    """What the table holds now."""
    return [row[0] for row in store.reader().execute("SELECT name FROM notes ORDER BY name")]


def test_write_returns_and_is_seen(store: Store) -> None:
    """A write gives what its job returned, and every later read sees it, in this thread and in others."""
    assert names(store) == []
    assert store.write(note("a", 7)) == 7
    assert names(store) == ["a"]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(names, store).result() == ["a"]


def test_a_job_that_raises_leaves_nothing(store: Store) -> None:
    """What a job raised reaches its caller as it is, and nothing the job did is left."""
    failure = KeyError("x")

    def job(connection: Connection) -> None:
        note("a")(connection)
        raise failure

    with pytest.raises(KeyError) as caught:
        store.write(job)
    assert caught.value is failure
    assert names(store) == []
    store.write(note("a"))
    assert names(store) == ["a"]


def test_a_failure_the_job_kept_to_itself_is_no_success(store: Store) -> None:
    """A statement's error is a StoreError; a job that swallows it is undone or kept whole, never half."""
    store.write(note("a"))

    def job(connection: Connection) -> str:
        note("b")(connection)
        with pytest.raises(StoreError):
            note("a")(connection)
        return "fine"

    try:
        assert store.write(job) == "fine"
    except StoreError:
        assert names(store) == ["a"]
    else:
        assert names(store) == ["a", "b"]


def test_read_is_one_snapshot(store: Store) -> None:
    """All statements of a read see one state, while a single statement of a reader sees the latest commit."""
    store.write(note("a"))

    def job(connection: Connection) -> tuple[int, int, int]:
        count = "SELECT COUNT(*) FROM notes"
        before = connection.one(count)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.write, note("b")).result()
            elsewhere = pool.submit(lambda: store.reader().one(count)).result()
        after = connection.one(count)
        assert before
        assert after
        assert elsewhere
        return before[0], after[0], elsewhere[0]

    assert store.read(job) == (1, 1, 2)
    assert names(store) == ["a", "b"]


def test_a_read_within_a_read_sees_the_same_snapshot(store: Store) -> None:
    """A read inside a read joins it, and a failure inside ends both cleanly."""

    def outer(connection: Connection) -> object:
        connection.one("SELECT COUNT(*) FROM notes")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.write, note("a")).result()
        return store.read(lambda inner: inner.one("SELECT COUNT(*) FROM notes"))

    assert store.read(outer) == (0,)

    def failing(connection: Connection) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        store.read(lambda connection: store.read(failing))
    assert names(store) == ["a"]


def test_a_read_cannot_be_spoiled_by_an_error(store: Store) -> None:
    """After a statement that failed, the same thread reads on."""
    with pytest.raises(StoreError):
        store.reader().execute("SELECT nothing FROM nowhere")
    with pytest.raises(StoreError):
        store.read(lambda connection: connection.execute("SELECT nothing FROM nowhere"))
    assert names(store) == []


def test_write_inside_a_write_is_refused(store: Store) -> None:
    """A job that writes through the store instead of its connection is told so, and undone."""

    def job(connection: Connection) -> None:
        note("a")(connection)
        store.write(note("b"))

    with pytest.raises(StoreError, match="a write inside a write"):
        store.write(job)
    with pytest.raises(StoreError, match="cannot close its own store"):
        store.write(lambda connection: store.close())
    assert names(store) == []


def test_a_block_is_one_write(store: Store) -> None:
    """A `with` block lasts once it has ended, is seen by nobody before, and leaves nothing where it raises."""
    with store.writing() as connection:
        note("a")(connection)
        assert names(store) == []
        with pytest.raises(StoreError, match="a write inside a write"):
            store.write(note("b"))
    assert names(store) == ["a"]

    def broken() -> None:
        with store.writing() as connection:
            note("b")(connection)
            raise LookupError

    with pytest.raises(LookupError):
        broken()
    assert names(store) == ["a"]
    store.write(note("b"))
    assert names(store) == ["a", "b"]


def test_blocks_and_jobs_take_turns(store: Store) -> None:
    """Blocks and jobs of many threads wait for each other, and none is lost."""
    store.write(note("n", 0))

    def increment(connection: Connection) -> None:
        row = connection.one("SELECT value FROM notes")
        assert row
        connection.execute("UPDATE notes SET value = ?", (row[0] + 1,))

    def loop(worker: int) -> None:
        for _ in range(15):
            if worker % 2:
                store.write(increment)
            else:
                with store.writing() as connection:
                    increment(connection)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(loop, range(8)))
    assert store.reader().one("SELECT value FROM notes") == (120,)


def test_values_come_back_as_they_were(store: Store) -> None:
    """Text, bytes, 64-bit numbers, NULL and percent signs pass unchanged on both databases."""
    binary = "BYTEA" if store.url.startswith("postgres") else "BLOB"
    row = ("ü%s ? '", bytes(range(256)), -(2**63), None)

    def job(connection: Connection) -> None:
        connection.execute(f"CREATE TABLE kinds (t TEXT, b {binary}, n BIGINT, o TEXT)")
        connection.executemany("INSERT INTO kinds VALUES (?, ?, ?, ?)", [row, ("", b"", 2**63 - 1, "x")])
        connection.executemany("INSERT INTO kinds VALUES (?, ?, ?, ?)", [])

    store.write(job)
    reader = store.reader()
    assert reader.one("SELECT t, b, n, o FROM kinds WHERE t LIKE 'ü%' AND n < ?", (0,)) == row
    assert reader.one("SELECT t FROM kinds WHERE n = 1") is None
    assert len(reader.execute("SELECT b FROM kinds")) == 2


def test_executemany_says_what_failed(store: Store) -> None:
    """An error in one of many rows undoes them all."""
    with pytest.raises(StoreError):
        store.write(lambda connection: connection.executemany("INSERT INTO notes VALUES (?, ?)", [("a", 1), ("a", 2)]))
    assert names(store) == []


def test_sequence_counts_changes(store: Store) -> None:
    """The sequence is 0 at first, grows with every change, and never goes back."""
    assert store.sequence() == 0
    store.write(lambda connection: connection.execute(CHANGE))
    first = store.sequence()
    assert first > 0
    with pytest.raises(ZeroDivisionError):
        store.write(lambda connection: (connection.execute(CHANGE), 1 / 0))
    assert store.sequence() == first
    store.write(lambda connection: connection.execute(CHANGE))
    assert store.sequence() > first


def test_keys_sort_by_code_point(store: Store) -> None:
    """Keys sort by their bytes on both databases, so that one range of keys is one collection."""
    keys = [f"b/dirs{rest}" for rest in ("", "/", "/B", "/a", "/a-1", "/a.1", "/a/x", "/a_", "/ab", "0")]

    def job(connection: Connection) -> None:
        connection.executemany("INSERT INTO attrs(term, key) VALUES (?, ?)", [(1, key) for key in reversed(keys)])

    store.write(job)
    found = store.reader().execute("SELECT key FROM attrs WHERE term = 1 ORDER BY key")
    assert [row[0] for row in found] == sorted(keys)


def test_a_closed_store_refuses(store: Store) -> None:
    """After close nothing works but close itself, in any thread, and the words say why."""
    kept = store.reader()
    store.close()
    store.close()
    for use in (store.reader, store.sequence, lambda: store.write(note("a")), lambda: store.read(note("a"))):
        with pytest.raises(StoreError, match="the store is closed"):
            use()
    with pytest.raises(StoreError):
        kept.one("SELECT 1")


def test_close_finishes_what_was_begun(shared_url: str) -> None:
    """Writes that were queued when the store is closed are done, and their threads are told so."""
    store = open_store(shared_url)
    store.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value BIGINT)"))
    running, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        note("slow")(connection)
        running.set()
        go_on.wait(LONG)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(store.write, slow)
        running.wait(LONG)
        queued = pool.submit(store.write, note("queued", 5))
        while not store._writes._waiting:
            pass
        closing = pool.submit(store.close)
        go_on.set()
        assert first.result(LONG) is None
        assert queued.result(LONG) == 5
        closing.result(LONG)
    with open_store(shared_url) as again:
        assert names(again) == ["queued", "slow"]


def test_a_reader_goes_with_its_thread(store: Store) -> None:
    """The connection of a thread that has ended is closed."""
    names(store)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: names(store), range(20)))
    assert len(store._readers) == 1


def test_writers_of_many_threads_and_stores_take_turns(shared_url: str) -> None:
    """Read, decide and write in one job is safe: no increment is lost between threads or between stores."""
    with open_store(shared_url) as one, open_store(shared_url) as other:
        one.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value BIGINT)"))
        one.write(note("n", 0))

        def increment(connection: Connection) -> int:
            row = connection.one("SELECT value FROM notes WHERE name = 'n'")
            assert row
            connection.execute("UPDATE notes SET value = ? WHERE name = 'n'", (row[0] + 1,))
            return int(row[0]) + 1

        def loop(store: Store) -> list[int]:
            return [store.write(increment) for _ in range(25)]

        with ThreadPoolExecutor(12) as pool:
            found = [value for values in pool.map(loop, [one, other] * 6) for value in values]
        assert sorted(found) == list(range(1, 301))
        assert one.reader().one("SELECT value FROM notes") == (300,)


RACE = """
import sys
from signalbook.registry.store import open_store
with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    won = 0
    for number in range(100):
        def job(connection):
            epoch = connection.one("SELECT value FROM notes WHERE name = 'n'")[0]
            if epoch != number:
                return 0
            connection.execute("UPDATE notes SET value = value + 1 WHERE name = 'n'")
            return 1
        won += store.write(job)
        while store.reader().one("SELECT value FROM notes WHERE name = 'n'")[0] <= number:
            pass
    print(won)
"""


def test_of_two_processes_with_the_same_epoch_one_wins(shared_url: str) -> None:
    """Two processes that write the same row with the same epoch: exactly one wins, a hundred times over."""
    with open_store(shared_url) as store:
        store.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value BIGINT)"))
        store.write(note("n", 0))
        command = [sys.executable, "-c", RACE, shared_url]
        racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for racer in racers:
            assert racer.stdout
            assert racer.stdout.readline() == "ready\n"
        wins = []
        for racer in racers:
            assert racer.stdin
            racer.stdin.write("\n")
            racer.stdin.flush()
        for racer in racers:
            wins.append(int(racer.communicate(timeout=LONG)[0]))
        assert sum(wins) == 100
        assert store.reader().one("SELECT value FROM notes") == (100,)


FORK = """
import os, sys
from signalbook.errors import StoreError
from signalbook.registry.store import open_store
store = open_store(sys.argv[1])
store.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT, value BIGINT)"))
store.sequence()
child = os.fork()
if child == 0:
    refused = 0
    for use in (store.reader, store.sequence, lambda: store.write(lambda connection: None)):
        try:
            use()
        except StoreError as error:
            refused += "before this process was forked" in str(error)
    store.close()
    sys.exit(refused)
_, status = os.waitpid(child, 0)
store.write(lambda connection: connection.execute("INSERT INTO notes VALUES ('parent', 1)"))
print(os.waitstatus_to_exitcode(status), store.reader().one("SELECT name FROM notes")[0])
store.close()
"""


def test_a_forked_child_is_refused(url: str) -> None:
    """A store opened before a fork refuses in the child, and goes on working in the parent."""
    result = subprocess.run([sys.executable, "-c", FORK, url], capture_output=True, text=True, timeout=LONG)
    assert result.stdout == "3 parent\n", result.stderr


def test_an_abandoned_store_refuses(store: Store) -> None:
    """What a forked child does to its parent's store: every use is refused, and nothing is closed."""
    reader = store.reader()
    _, writes, readers, _ = store._abandon()
    for use in (store.reader, store.sequence, lambda: store.write(note("a")), lambda: store.read(note("a"))):
        with pytest.raises(StoreError, match="before this process was forked"):
            use()
    store.close()
    assert reader.execute("SELECT name FROM notes") == []
    assert writes.run(note("a", 1)) == 1
    writes.close()
    for session in readers:
        session.close()
    store._database.close()


CRASH = """
import sys, threading
from signalbook.registry.store import open_store
store = open_store(sys.argv[1])
mutex = threading.Lock()
def loop(worker):
    number = 0
    while True:
        number += 1
        name = f"{sys.argv[2]}-{worker}-{number}"
        def job(connection):
            connection.execute("INSERT INTO notes VALUES (?, 1)", (name,))
            connection.execute("INSERT INTO pairs VALUES (?)", (name,))
        store.write(job)
        with mutex:
            sys.stdout.write(name + "\\n")
            sys.stdout.flush()
for worker in range(8):
    threading.Thread(target=loop, args=(worker,)).start()
"""


def test_no_acknowledged_write_is_lost_to_a_kill(shared_url: str) -> None:
    """A process killed while many threads write: all it acknowledged is there, and no job is half there."""
    with open_store(shared_url) as store:
        store.write(lambda connection: connection.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value BIGINT)"))
        store.write(lambda connection: connection.execute("CREATE TABLE pairs (name TEXT PRIMARY KEY)"))
        for life in range(4):
            process = subprocess.Popen(
                [sys.executable, "-c", CRASH, shared_url, str(life)], stdout=subprocess.PIPE, env=os.environ
            )
            assert process.stdout
            acknowledged = [process.stdout.readline() for _ in range(150)]
            process.kill()
            rest = process.communicate()[0].splitlines(keepends=True)
            acknowledged += [line for line in rest if line.endswith(b"\n")]
            there = {row[0] for row in store.reader().execute("SELECT name FROM notes")}
            assert {line.decode().strip() for line in acknowledged} - there == set()
            assert there == {row[0] for row in store.reader().execute("SELECT name FROM pairs")}
            assert store.write(lambda connection: "it lives on") == "it lives on"
