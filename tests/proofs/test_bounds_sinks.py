"""A slow sink delays nobody: requests hold no threads, look-ups leave room, one deadline covers all of a request."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpcore
import httpx
import pytest

from signalbook import Registry, app
from signalbook.server.events import delivery, sinks, subscriptions
from signalbook.server.events.delivery import Courier
from signalbook.server.events.sinks import Lookups, SinkError, Sinks, parse_networks
from signalbook.server.events.subscriptions import Subscription, read_subscription, save
from signalbook.server.flow import AsgiApp
from signalbook.settings import Settings
from tests.patience import LONG, until
from tests.server.sink import Sink

BASE = "http://registry.example"
LOOPBACK = parse_networks(["127.0.0.0/8"])


class Silent:
    """A sink that takes connections and requests and answers none."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def close(self) -> None:
        """Drop everything."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for one in self.taken:
            one.close()

    def _accept(self) -> None:
        try:
            while True:
                self.taken.append(self._listener.accept()[0])
        except OSError:
            return


@pytest.fixture
def silent() -> Iterator[Silent]:
    """A sink that never answers."""
    made = Silent()
    yield made
    made.close()


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A sink that takes everything."""
    made = Sink().start()
    yield made
    made.stop()


def subscribe(registry: Registry, number: int, url: str) -> None:
    """Write a subscription as if its sink had agreed."""
    body, secret = read_subscription({"protocol": "HTTP", "sink": url}, BASE, "/subscriptions")
    registry.store.write(lambda db: save(db, Subscription(f"{number:04}", BASE, body, secret)))


# Deliveries ----------------------------------------------------------------------------------------------------------


def test_slow_sinks_delay_nobody(store_url: str, silent: Silent, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 100 requests that are not answered under way, another sink has each event, and no thread was added."""
    monkeypatch.setattr(delivery, "_REQUEST", LONG)
    with Registry.open(store_url) as registry:
        for number in range(100):
            subscribe(registry, number, silent.url)
        subscribe(registry, 100, sink.url)
        registry.put("/messagegroups/g", {})
        courier = Courier(registry.store, Sinks(LOOPBACK))
        courier.start()
        try:
            assert until(lambda: len(silent.taken) == 100)
            for number in range(5):
                registry.put(f"/messagegroups/g{number}", {})
            assert until(lambda: {f"/messagegroups/g{number}" for number in range(5)} <= subjects(sink))
            assert 100 == len(silent.taken)
            names = [one.name for one in threading.enumerate() if one.name.startswith("signalbook-delivery")]
            assert len(names) <= delivery._THREADS
        finally:
            courier.stop()


def subjects(sink: Sink) -> set[str]:
    """What the events that came are about."""
    return {str(event["subject"]) for event in sink.received}


def test_a_subscription_has_one_request_under_way(
    store_url: str, silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many events wait for it, a sink is asked once at a time, in the order of the changes."""
    monkeypatch.setattr(delivery, "_REQUEST", LONG)
    ticks = 0
    tick = Courier._find_waiting

    def counting(courier: Courier) -> Any:
        nonlocal ticks
        ticks += 1
        return tick(courier)

    monkeypatch.setattr(Courier, "_find_waiting", counting)
    with Registry.open(store_url) as registry:
        subscribe(registry, 1, silent.url)
        for number in range(50):
            registry.put(f"/messagegroups/g{number}", {})
        courier = Courier(registry.store, Sinks(LOOPBACK))
        courier.start()
        try:
            assert until(lambda: silent.taken)
            before = ticks
            assert until(lambda: ticks > before + 5)
            assert 1 == len(silent.taken)
        finally:
            courier.stop()


# Handshakes ----------------------------------------------------------------------------------------------------------


def test_handshakes_hold_no_thread(store_url: str, silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many handshakes under way as may be, a server with two threads answers, and refuses one more."""
    monkeypatch.setattr(subscriptions, "HANDSHAKE_SECONDS", LONG)
    flow = app.flow(Settings(store=store_url, log=False, deliver=False, allow_sinks=("127.0.0.0/8",)))
    flow._threads = 2
    application = AsgiApp(flow)
    wish = {"protocol": "HTTP", "sink": silent.url}

    async def run() -> tuple[int, int, list[int]]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=BASE, timeout=LONG) as client:
            most = subscriptions.MOST_HANDSHAKES
            asked = [asyncio.create_task(client.post("/subscriptions", json=wish)) for _ in range(most)]
            while len(silent.taken) < most:
                await asyncio.sleep(0.01)
            read = await client.get("/messagegroups?limit=1")
            more = await client.post("/subscriptions", json=wish)
            for one in silent.taken:
                one.sendall(b"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\nContent-Length: 0\r\n\r\n")
            return read.status_code, more.status_code, [(await one).status_code for one in asked]

    try:
        assert (200, 503, [201] * subscriptions.MOST_HANDSHAKES) == asyncio.run(run())
    finally:
        application.close()


# The deadline --------------------------------------------------------------------------------------------------------


def ask(sinks_: Sinks, url: str) -> str:
    """Why a request with a short deadline failed."""

    async def run() -> str:
        connection = sinks_.open(url)
        try:
            with pytest.raises(SinkError) as caught:
                await connection.send("POST", {}, b"{}", 0.05)
        finally:
            await connection.close()
        return str(caught.value)

    return asyncio.run(run())


def test_the_deadline_covers_the_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is not found in time fails the request, while its look-up goes on."""
    gate = threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        assert gate.wait(LONG)
        raise OSError("too late")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    lookups = Lookups()
    assert "it did not answer within 0.05 s" == ask(Sinks(LOOPBACK, lookups), "http://slow.test/")
    assert [("slow.test", 80)] == list(lookups._under_way)
    gate.set()
    assert until(lambda: not lookups._under_way)


def test_the_deadline_covers_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does a connection that is not made in time, for all addresses of the host together."""
    tried: list[str] = []

    async def connect(_: Any, host: str, *__: Any) -> Any:
        tried.append(host)
        await asyncio.Event().wait()

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    places = [(2, 1, 6, "", (f"127.0.0.{number}", 80)) for number in range(1, 9)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
    assert "it did not answer within 0.05 s" == ask(Sinks(LOOPBACK), "http://many.test/")
    assert ["127.0.0.1"] == tried


def test_the_deadline_covers_the_answer(silent: Silent) -> None:
    """And an answer that does not come."""
    assert "it did not answer within 0.05 s" == ask(Sinks(LOOPBACK), silent.url)
    assert 1 == len(silent.taken)


# Look-ups ------------------------------------------------------------------------------------------------------------


class Names:
    """A system that finds names when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = self.most = 0
        self.gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def __call__(self, host: str, port: int, **_: Any) -> Any:
        with self._lock:
            self.asked.append(host)
            self.now += 1
            self.most = max(self.most, self.now)
        gate = self.gates.get(host)
        assert gate is None or gate.wait(LONG)
        with self._lock:
            self.now -= 1
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Names under control, instead of the system's."""
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    return made


def test_hanging_names_leave_room(names: Names) -> None:
    """Names that hang wait in line for their own threads; one that was quick before is found past all of them."""
    lookups = Lookups(quick=1, others=2)
    names.gates = {f"slow{number}.test": threading.Event() for number in range(20)}

    async def run() -> None:
        assert [("127.0.0.1", 80)] == await lookups.find("good.test", 80)
        hanging = [asyncio.create_task(lookups.find(host, 80)) for host in names.gates]
        while names.now < 2:
            await asyncio.sleep(0.001)
        for _ in range(3):
            assert [("127.0.0.1", 80)] == await lookups.find("good.test", 80)
        assert ["slow0.test", "slow1.test"] == [host for host in names.asked if host != "good.test"]
        for gate in names.gates.values():
            gate.set()
        await asyncio.gather(*hanging)

    asyncio.run(run())
    assert names.most <= 3
    assert [f"slow{number}.test" for number in range(20)] == sorted(
        (host for host in names.asked if host != "good.test"), key=lambda host: int(host[4:-5])
    )


def test_a_host_is_looked_up_once_at_a_time(names: Names) -> None:
    """Many subscriptions of one host share its look-up, and who gives up leaves it to the others."""
    lookups = Lookups()
    names.gates = {"one.test": threading.Event()}

    async def run() -> None:
        waiting = [asyncio.create_task(lookups.find("one.test", 80)) for _ in range(50)]
        while not names.now:
            await asyncio.sleep(0.001)
        waiting[0].cancel()
        await asyncio.sleep(0)
        names.gates["one.test"].set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [[("127.0.0.1", 80)]] * 49 == found[1:]

    asyncio.run(run())
    assert ["one.test"] == names.asked


def test_a_host_that_became_slow_loses_its_place(names: Names) -> None:
    """By its own clock: a look-up of more than a second puts a host among the others until it is quick again."""
    moments = iter([0.0, 0.9, 10.0, 11.0, 20.0, 20.5])
    lookups = Lookups(clock=lambda: next(moments))

    async def run() -> list[bool]:
        found = []
        for _ in range(3):
            await lookups.find("host.test", 80)
            found.append("host.test" in lookups._quick)
        return found

    assert [True, False, True] == asyncio.run(run())


def test_an_address_needs_no_look_up(names: Names) -> None:
    """A sink that is named by its address asks nobody."""
    assert [("127.0.0.1", 1)] == asyncio.run(Lookups(quick=0, others=0).find("127.0.0.1", 1))
    assert [] == names.asked


def test_hosts_that_are_remembered_are_bounded(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of the hosts that were quick is forgotten."""
    monkeypatch.setattr(sinks, "_MOST_HOSTS", 3)
    lookups = Lookups(clock=lambda: 0.0)

    async def run() -> None:
        for number in range(10):
            await lookups.find(f"h{number}.test", 80)

    asyncio.run(run())
    assert ["h7.test", "h8.test", "h9.test"] == list(lookups._quick)
