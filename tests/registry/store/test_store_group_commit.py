"""The grouping alone, on a session that only writes down what it is told."""

from __future__ import annotations

import gc
import random
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from signalbook.errors import StoreError
from signalbook.registry.store import store as group_commit
from signalbook.registry.store.connection import Connection, ResultRow, StoreBusy
from signalbook.registry.store.store import WriteGroups
from tests.patience import LONG, until


class Diary:
    """A session that keeps a diary; `broken` names the words that fail, with what they raise."""

    def __init__(self, **broken: Exception) -> None:
        self.words: list[str] = []
        self.broken = broken

    def __getattr__(self, word: str) -> Callable[[], None]:
        def say() -> None:
            if word != "check_transaction":
                self.words.append(word)
            if word in self.broken:
                raise self.broken[word]

        return say

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[ResultRow]:
        self.words.append(sql)
        return []

    def one(self, sql: str, params: Sequence[Any] = (), /) -> ResultRow | None:
        return None

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None: ...


def groups_on(diary: Diary) -> WriteGroups:
    """Groups whose words can be read in `diary`."""
    return WriteGroups(diary)  # type: ignore[arg-type]


def say(word: str) -> Callable[[Connection], str]:
    """A job that says and returns `word`."""

    def job(connection: Connection) -> str:
        connection.execute(word)
        return word

    return job


def fail(connection: Connection) -> None:
    """A job that raises."""
    connection.execute("fail")
    raise LookupError("fail")


class Crowd:
    """A leader held up inside its job while `jobs` queue up behind it, in order."""

    def __init__(self, groups: WriteGroups, jobs: Sequence[Callable[[Connection], Any]]) -> None:
        self.groups = groups
        self.jobs = jobs

    def run(self, leads: Callable[[Connection], Any] = lambda connection: None) -> list[Future[Any]]:
        inside, go_on = threading.Event(), threading.Event()

        def first(connection: Connection) -> Any:
            inside.set()
            assert go_on.wait(LONG)
            return leads(connection)

        with ThreadPoolExecutor(len(self.jobs) + 1) as pool:
            futures: list[Future[Any]] = [pool.submit(self.groups.run, first)]
            assert inside.wait(LONG)
            for number, job in enumerate(self.jobs, 1):
                futures.append(pool.submit(self.groups.run, job))
                _until(lambda number=number: len(self.groups._waiting) == number)
            go_on.set()
        return futures


def _until(true: Callable[[], bool]) -> None:
    assert until(true)


def test_a_lone_job_needs_no_savepoint() -> None:
    """A lone writer is one transaction and nothing else."""
    diary = Diary()
    assert groups_on(diary).run(say("job")) == "job"
    assert diary.words == ["begin_write", "job", "commit"]


def test_a_lone_job_that_fails_is_rolled_back() -> None:
    """A lone job that raises is undone with its transaction."""
    diary = Diary()
    with pytest.raises(LookupError):
        groups_on(diary).run(fail)
    assert diary.words == ["begin_write", "fail", "rollback"]


def test_those_who_wait_share_one_commit() -> None:
    """Jobs queued behind a leader run in order, each in a savepoint, and one commit serves them all."""
    diary = Diary()
    futures = Crowd(groups_on(diary), [say("a"), say("b")]).run(say("leader"))
    assert [future.result() for future in futures] == ["leader", "a", "b"]
    assert diary.words == [
        "begin_write", "leader", "savepoint", "a", "release", "savepoint", "b", "release", "commit",
    ]  # fmt: skip


def test_a_job_that_fails_is_undone_alone() -> None:
    """One failing job of a group is undone, its own caller hears of it, the others are committed."""
    diary = Diary()
    first, failed, last = Crowd(groups_on(diary), [fail, say("b")]).run(say("leader"))
    assert (first.result(), last.result()) == ("leader", "b")
    assert isinstance(failed.exception(), LookupError)
    assert diary.words == [
        "begin_write", "leader", "savepoint", "fail", "undo", "savepoint", "b", "release", "commit",
    ]  # fmt: skip


def test_after_a_first_job_that_fails_the_next_is_first() -> None:
    """A first job that raises takes its transaction along, and the next one begins another."""
    diary = Diary()
    failed, second, third = Crowd(groups_on(diary), [say("a"), say("b")]).run(fail)
    assert isinstance(failed.exception(), LookupError)
    assert (second.result(), third.result()) == ("a", "b")
    assert diary.words == [
        "begin_write", "fail", "rollback", "begin_write", "a", "savepoint", "b", "release", "commit",
    ]  # fmt: skip


def test_a_commit_that_fails_fails_them_all() -> None:
    """If the commit fails every job of the group has failed, each caller with an exception of its own."""
    diary = Diary(commit=StoreError("disk full"))
    groups = groups_on(diary)
    futures = Crowd(groups, [say("a"), fail, say("b")]).run(say("leader"))
    errors = [future.exception() for future in futures]
    assert [str(error) for error in errors] == ["disk full", "disk full", "fail", "disk full"]
    assert len({id(error) for error in errors}) == 4
    assert diary.words[-1] == "rollback"
    diary.broken.clear()
    assert groups.run(say("next")) == "next"


def test_an_undo_that_fails_fails_those_before() -> None:
    """If one job cannot be undone alone, what ran before it in the group is gone too, and is not acknowledged."""
    diary = Diary(undo=StoreError("no such savepoint"), rollback=StoreError("no transaction"))
    first, second, failed, last = Crowd(groups_on(diary), [say("a"), fail, say("b")]).run(say("leader"))
    assert [str(first.exception()), str(second.exception())] == ["no such savepoint", "no such savepoint"]
    assert isinstance(failed.exception(), LookupError)
    assert last.result() == "b"


def test_who_waits_for_a_busy_store_waits_once() -> None:
    """When the write lock cannot be had, all who wait for it hear so at once, not one time-out after the other."""
    diary = Diary()
    groups = groups_on(diary)

    def first(connection: Connection) -> None:
        diary.broken["begin_write"] = StoreBusy("locked")
        raise LookupError

    futures = Crowd(groups, [say("a"), say("b"), say("c")]).run(first)
    assert [type(future.exception()) for future in futures] == [LookupError, StoreBusy, StoreBusy, StoreBusy]
    assert diary.words == ["begin_write", "rollback", "begin_write", "rollback"]


def test_a_group_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group takes no more than its number of jobs; the rest is led by one of them."""
    monkeypatch.setattr(group_commit, "MOST_JOBS", 3)
    diary = Diary()
    futures = Crowd(groups_on(diary), [say(str(number)) for number in range(6)]).run()
    assert [future.result() for future in futures[1:]] == [str(number) for number in range(6)]
    assert [word for word in diary.words if word in ("begin_write", "commit")] == ["begin_write", "commit"] * 3


def test_a_group_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that is old takes nobody in."""
    monkeypatch.setattr(group_commit, "MOST_SECONDS", 0.0)
    diary = Diary()
    for future in Crowd(groups_on(diary), [say("a"), say("b")]).run():
        future.result()
    assert diary.words.count("commit") == 3


def test_an_interrupted_leader_leaves_the_lead() -> None:
    """An exception that is no job's own, such as a keyboard interrupt, undoes the group and is not swallowed."""
    diary = Diary()

    def interrupted(connection: Connection) -> None:
        raise KeyboardInterrupt

    groups = groups_on(diary)
    with pytest.raises(KeyboardInterrupt):
        groups.run(interrupted)
    leader, second, third = Crowd(groups, [interrupted, say("b")]).run(say("leader"))
    assert isinstance(leader.exception(), KeyboardInterrupt)
    assert "KeyboardInterrupt" in str(second.exception())
    assert third.result() == "b"
    assert groups.run(say("next")) == "next"


@pytest.mark.parametrize("moment", ["queued", "running"])
def test_an_interrupted_waiter_leaves_the_queue(moment: str) -> None:
    """A signal that ends a waiting thread's patience neither stops the others nor keeps them waiting."""
    diary = Diary()
    groups = groups_on(diary)
    inside, go_on, mine, gone = (threading.Event() for _ in range(4))
    main = threading.main_thread().ident
    assert main

    def first(connection: Connection) -> str:
        inside.set()
        assert go_on.wait(LONG)
        return "first"

    def own(connection: Connection) -> str:
        mine.set()
        assert gone.wait(LONG)
        return "own"

    def director() -> None:
        _until(lambda: len(groups._waiting) == 1)
        later.append(pool.submit(groups.run, say("later")))
        _until(lambda: len(groups._waiting) == 2)
        if moment == "running":
            go_on.set()
            assert mine.wait(LONG)
        signal.pthread_kill(main, signal.SIGINT)

    later: list[Future[str]] = []
    with ThreadPoolExecutor(4) as pool:
        leader = pool.submit(groups.run, first)
        assert inside.wait(LONG)
        directing = pool.submit(director)
        with pytest.raises(KeyboardInterrupt):
            groups.run(own)
        gone.set()
        go_on.set()
        directing.result(LONG)
        assert leader.result(LONG) == "first"
        assert later[0].result(LONG) == "later"
    assert mine.is_set() == (moment == "running")
    assert groups.run(say("next")) == "next"


def test_an_interrupted_heir_passes_the_lead_on() -> None:
    """A waiter that is interrupted just as the lead was handed to it hands it on; so with the relay of waking."""
    groups = groups_on(Diary())

    class Interrupted:
        """A gate at which the signal arrives after it was opened."""

        def __init__(self, before: Callable[[], None]) -> None:
            self.before = before

        def acquire(self) -> None:
            self.before()
            raise KeyboardInterrupt

        def release(self) -> None: ...

    heir, follower = group_commit._QueuedJob(say("heir"), 1), group_commit._QueuedJob(say("follower"), 2)
    follower.gate = threading.Lock()
    follower.gate.acquire()
    groups._waiting.extend([heir, follower])
    with pytest.raises(KeyboardInterrupt):
        groups._wait(heir, Interrupted(groups._hand_over))  # type: ignore[arg-type]
    assert follower.leads
    assert follower.gate.acquire(timeout=LONG)

    woken, gone, last = (group_commit._QueuedJob(say("woken"), number) for number in range(3))
    woken.after, gone.after = gone, last
    gone.gone = True
    last.gate = threading.Lock()
    last.gate.acquire()
    with pytest.raises(KeyboardInterrupt):
        groups._wait(woken, Interrupted(lambda: groups._wake(woken)))  # type: ignore[arg-type]
    assert last.gate.acquire(timeout=LONG)


def test_a_failure_leaves_no_garbage() -> None:
    """An exception that went through a group is freed with its last reference."""
    groups = groups_on(Diary())
    gone: list[weakref.ref[StoreError]] = []

    def job(connection: Connection) -> None:
        error = StoreError()
        gone.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.disable()
    try:
        with suppress(StoreError):
            groups.run(job)
        assert gone[0]() is None
    finally:
        gc.enable()


def test_every_caller_gets_its_own_answer() -> None:
    """With many threads and jobs that fail at random, results and exceptions reach the thread they belong to."""
    groups = groups_on(Diary())

    def loop(worker: int) -> int:
        chance = random.Random(worker)
        for number in range(300):
            expected = (worker, number)

            def job(
                connection: Connection, expected: tuple[int, int] = expected, fails: bool = chance.random() < 0.2
            ) -> object:
                if chance.random() < 0.05:
                    time.sleep(0.0001)
                if fails:
                    raise LookupError(expected)
                return expected

            try:
                answer = groups.run(job)
            except LookupError as error:
                (answer,) = error.args
            assert answer == expected
        return worker

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(loop, range(16))) == list(range(16))
    assert groups._leader is None
    assert not groups._waiting
