"""A write costs the catalog what it changed, once for all who ask; who asks meanwhile, or watches, does not wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import orjson
import pytest

from signalbook import Registry
from signalbook.app import RegistryCatalog
from signalbook.messages import catalog as catalog_module
from signalbook.messages import fast
from signalbook.messages.catalog import Catalog
from signalbook.messages.compile import Compiled
from signalbook.messages.index import KeyIndex
from signalbook.messages.observe import MessageKind
from signalbook.registry.requests import Requests
from signalbook.server import catalog as server_catalog
from signalbook.server.flow import AsgiApp, Flow
from tests.patience import LONG
from tests.server.fake_service import FakeService
from tests.server.test_messages import Client

SIZES = (60, 8 * 60)
GROUP = "/messagegroups/g"
BASE = "/messagegroups/h/messages/base"
SCHEMA = "/schemagroups/s/schemas/s"


def definition(name: str, **more: Any) -> dict[str, Any]:
    """A definition of the events of a type."""
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}}, **more}


def event(name: str, **more: Any) -> bytes:
    """An event of a type."""
    return orjson.dumps({"specversion": "1.0", "id": "1", "source": "/s", "type": name, **more})


def record(name: str) -> dict[str, Any]:
    """A definition of the records of a topic that all share, which a header tells apart."""
    headers = [{"name": "kind", "value": name, "required": True}]
    return {"protocol": "KAFKA", "protocoloptions": {"topic": "all", "headers": headers}}


class Filled:
    """A registry with so many messages, of events and of records, and its catalog, which has been asked."""

    def __init__(self, size: int) -> None:
        self.registry = Registry.open("memory:")
        messages: dict[str, Any] = {f"m{n}": definition(f"type{n}.a") for n in range(size)}
        messages |= {f"r{n}": record(f"kind{n}") for n in range(size)}
        self.registry.put(GROUP, {"messages": messages})
        self.registry.put("/messagegroups/h", {"messages": {"base": {"envelope": "CloudEvents/1.0"}}})
        derived = {f"d{n}": definition(f"derived{n}", basemessage=BASE) for n in range(3)}
        aliases = {"alias": {"meta": {"xref": BASE}}}
        self.registry.put("/messagegroups/i", {"messages": {**derived, **aliases}})
        self.registry.put("/endpoints/e", {"usage": ["consumer"], "messagegroups": [GROUP]})
        self.registry.put(SCHEMA, {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}})
        self.kept = RegistryCatalog(self.registry.store)
        self.ask()

    def ask(self) -> list[str]:
        """The outcomes of some messages, which take every kind of index."""
        asked = self.kept.asked("http://localhost").catalog
        topic = orjson.dumps({"protocol": "KAFKA", "topic": "all", "headers": [["kind", "kind7"]]})
        lost = topic.replace(b"kind7", b"kind.7")
        given: list[tuple[bytes, tuple[str, ...]]] = [
            *((event(name), ()) for name in ("type1.a", "type1.a", "new.a", "type1.b")),
            *((event("type1.a"), (scope,)) for scope in (GROUP, "/endpoints/e")),
            *((topic, ()), (lost, ())),
        ]
        return [str(asked.match(message, within).outcome) for message, within in given]

    def close(self) -> None:
        """Close the store."""
        self.registry.close()


class Work:
    """Counts calls."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.count: dict[str, int] = {}

    def of(self, name: str, owner: Any, attribute: str) -> None:
        """Count the calls of one function."""
        original = getattr(owner, attribute)
        self.count[name] = 0

        def counted(*args: Any, **options: Any) -> Any:
            self.count[name] += 1
            return original(*args, **options)

        self._patch.setattr(owner, attribute, counted)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """What an up-to-date catalog costs: definitions compiled, plans and indexes made, entities read."""
    found = Work(monkeypatch)
    found.of("compiled", catalog_module, "compile_definition")
    found.of("plans", Compiled, "plan")
    found.of("indexes", fast, "KeyIndex")
    found.of("read", Requests, "read_in")
    found.of("anew", Catalog, "__init__")
    return found


WRITES: dict[str, tuple[Callable[[Registry], object], int]] = {
    "one definition": (
        lambda registry: registry.put(f"{GROUP}/messages/m1", definition("type1.a", description="x")),
        1,
    ),
    "one that is new": (lambda registry: registry.put(f"{GROUP}/messages/new", definition("new.a")), 1),
    "one that goes": (lambda registry: registry.delete(f"{GROUP}/messages/m2"), 0),
    "one of a shared topic": (lambda registry: registry.put(f"{GROUP}/messages/r1", record("other")), 1),
    "a base": (lambda registry: registry.patch(BASE, {"envelopemetadata": {"subject": {"value": "s"}}}), 5),
    "a group": (lambda registry: registry.patch("/messagegroups/i", {"protocol": "HTTP"}), 4),
    "what a group says of itself": (lambda registry: registry.patch(GROUP, {"description": "x"}), 0),
    "a schema": (lambda registry: registry.patch(f"{SCHEMA}$details", {"description": "x"}), 0),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_costs_what_it_changed(work: Work, write: str) -> None:
    """Only what was written and what derives from it is compiled and indexed, in a small catalog and a large one."""
    change, compiled = WRITES[write]
    found = []
    for size in SIZES:
        filled = Filled(size)
        change(filled.registry)
        work.count.update(dict.fromkeys(work.count, 0))
        outcomes = filled.ask()
        found.append((outcomes, dict(work.count)))
        filled.close()
    assert found[0] == found[1]
    counted = found[0][1]
    assert (compiled, 0, 0) == (counted["compiled"], counted["indexes"], counted["anew"])
    assert counted["read"] <= 1
    assert counted["plans"] <= 12 * max(compiled, 1)


def test_a_form_of_the_catalog_is_not_compiled_again(work: Work) -> None:
    """Where documents name an address of the server, a write costs what it changed for that form too."""
    filled = Filled(SIZES[0])
    address = "http://registry.example"
    named = {"dataschemaformat": "JsonSchema/draft-07", "dataschemauri": f"{address}{SCHEMA}"}
    filled.registry.put(f"{GROUP}/messages/own", definition("own", **named))
    assert "nonconformant" == filled.kept.asked(address).catalog.match(event("own", data="x")).outcome
    filled.registry.put(f"{GROUP}/messages/own", definition("owned", **named))
    work.count.update(dict.fromkeys(work.count, 0))
    assert "nonconformant" == filled.kept.asked(address).catalog.match(event("owned", data="x")).outcome
    assert (2, 0) == (work.count["compiled"], work.count["anew"])
    filled.close()


def together(jobs: int, job: Callable[[], Any]) -> list[Any]:
    """What a job gives in so many threads that begin together."""
    gate = threading.Barrier(jobs)

    def begin(_: int) -> Any:
        gate.wait(LONG)
        return job()

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(begin, range(jobs)))


def test_many_matches_after_a_write_compile_once(work: Work) -> None:
    """45 requests that come after a write are all answered by it, and it is compiled once."""
    filled = Filled(SIZES[0])
    work.of("changed", Catalog, "changed")
    filled.registry.put(f"{GROUP}/messages/m1", definition("other.a"))
    work.count.update(dict.fromkeys(work.count, 0))
    outcomes = together(45, lambda: filled.kept.asked("").catalog.match(event("other.a")).outcome)
    assert ["matched"] * 45 == outcomes
    assert (1, 1, 0) == (work.count["changed"], work.count["compiled"], work.count["indexes"])
    filled.close()


def test_an_index_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many that ask for the index of a scope at once, one makes it and the others wait for it."""
    messages = {f"m{n}": definition(f"type{n}.a") for n in range(100)}
    catalog = Catalog.from_canonical({"messagegroups": {"g": {"messages": messages}}}, lock=threading.RLock)
    made: list[str] = []
    original, asking, all_ask = KeyIndex.__init__, threading.Semaphore(0), threading.Event()

    def slow(*args: Any) -> None:
        made.append("index")
        assert all_ask.wait(LONG)
        original(*args)

    def ask() -> list[Any]:
        asking.release()
        scope = catalog.scope((GROUP,))
        return [scope, scope.index(MessageKind.BARE, None), scope.fast]

    monkeypatch.setattr(KeyIndex, "__init__", slow)
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask) for _ in range(20)]
        for _ in range(20):
            assert asking.acquire(timeout=LONG)
        all_ask.set()
        found = [one.result(LONG) for one in asked]
    assert ["index"] == made
    assert all(row[place] is found[0][place] for row in found for place in range(3))


# While a compile takes long -----------------------------------------------------------------------------------------


class Held:
    """A server whose compiles wait until they are let go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.client = Client()
        self.go = threading.Event()
        self.go.set()
        changed = Catalog.changed

        def held(catalog: Catalog, changes: Any) -> Catalog:
            assert self.go.wait(LONG)
            return changed(catalog, changes)

        patch.setattr(Catalog, "changed", held)
        patch.setattr(server_catalog, "PATIENCE", 0.05)
        patch.setattr(server_catalog, "_FEW", -1)  # no change is so small that a request compiles it itself

    def put(self, name: str) -> int:
        """The number of the change that a definition is."""
        answer = self.client.send("PUT", f"{GROUP}/messages/m", definition(name))
        return int(answer.headers["signalbook-sequence"])

    def match(self, name: str, query: str = "") -> tuple[int, str, int]:
        """The status, what an answer says, and the change that it was made by."""
        answer = self.client.send("POST", f"/match{query}", event(name))
        said = answer.json()
        words = said["outcome"] if "outcome" in said else f"{said['title']} {said.get('detail', '')}"
        return answer.status_code, words, int(answer.headers.get("signalbook-sequence", 0))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Such a server with one definition, of the type `old`, whose catalog is compiled."""
    made = Held(monkeypatch)
    made.put("old")
    assert "matched" == made.match("old")[1]
    yield made
    made.go.set()
    made.client.close()


def test_the_old_catalog_answers_while_the_new_one_is_compiled(held: Held) -> None:
    """An answer says by which change it was made: the one before, until the write is compiled."""
    before = held.match("old")[2]
    held.go.clear()
    written = held.put("new")
    assert written > before
    assert (200, "matched", before) == held.match("old")
    assert (200, "unexpected", before) == held.match("new")
    assert (200, "matched", before) == held.match("old", f"?since={before}")
    held.go.set()
    assert (200, "matched", written) == held.match("new", f"?since={written}")
    assert (200, "unexpected", written) == held.match("old", f"?since={written}")


def test_a_change_that_is_demanded_is_waited_for(held: Held) -> None:
    """With ?since= a request waits for that change, longer than it would for any."""
    held.go.clear()
    written = held.put("new")
    threading.Timer(4 * server_catalog.PATIENCE, held.go.set).start()
    assert (200, "matched", written) == held.match("new", f"?since={written}")


def test_a_change_that_does_not_come_in_time_is_refused(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not compiled within the bound the answer is 503, in words and with `Retry-After`."""
    monkeypatch.setattr(server_catalog, "LONGEST", 0.2)
    before = held.match("old")[2]
    held.go.clear()
    written = held.put("new")
    answer = held.client.send("POST", f"/match?since={written}", event("new"))
    assert (503, "1") == (answer.status_code, answer.headers["retry-after"])
    words = f"The catalog is being compiled; it is at change {before}, and ?since={written} demands a later one."
    assert answer.json()["detail"].startswith(words)
    assert (200, "matched", before) == held.match("old")


@pytest.mark.parametrize("since", ["", "x", "-1", "1,2", "9" * 19])
def test_what_is_not_a_number_is_refused(held: Held, since: str) -> None:
    """?since= is one number."""
    assert 400 == held.match("old", f"?since={since}")[0]


def test_a_change_that_there_is_not_is_refused(held: Held) -> None:
    """A number above the newest is of another registry, and nobody waits for it."""
    written = held.put("new")
    status, words, _ = held.match("new", f"?since={written + 1}")
    assert 400 == status
    assert f"this registry does not have; its newest is {written}" in words


def test_a_compile_that_fails_is_told_and_tried_again(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a compile that fails is told so; the next request compiles again."""
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "changed", lambda *_: 1 / 0)
        held.put("new")
        assert 500 == held.match("new")[0]
    assert "matched" == held.match("new")[1]


# Watching -----------------------------------------------------------------------------------------------------------


def test_watching_does_not_wait_for_the_pool() -> None:
    """While every thread of the pool is held, /healthz and /metrics are answered."""
    held, begun = threading.Event(), threading.Semaphore(0)

    class Holding(FakeService):
        def answer(self, request: Any) -> Any:
            begun.release()
            assert held.wait(LONG)
            return super().answer(request)

    async def run() -> None:
        app = AsgiApp(Flow(Holding(), threads=2))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://registry.example") as client:
            waiting = [asyncio.create_task(client.get("/echo")) for _ in range(6)]
            for _ in range(2):
                assert await asyncio.to_thread(begun.acquire, timeout=LONG)
            for path in ("/healthz", "/metrics", "/healthz"):
                assert 200 == (await asyncio.wait_for(client.get(path), LONG)).status_code
            assert not any(task.done() for task in waiting)
            held.set()
            assert [200] * 6 == [(await task).status_code for task in waiting]
        app.close()

    asyncio.run(run())
