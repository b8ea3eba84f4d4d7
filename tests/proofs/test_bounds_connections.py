"""What clients hold is bounded: connections, places to wait, answers that they do not read; counted on real servers.

No timeout of a server ends in these tests unless the test is about it: what is served is served beside what is held.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from signalbook.server.connections import Connections
from tests.conftest import StartServer
from tests.patience import LONG, in_flight, until

MANY = 1100
FOREVER = ("--head-timeout", "3600", "--body-timeout", "3600", "--answer-timeout", "3600", "--no-log")
HALF = {
    "idle": b"",
    "half a head": b"GET /capabilities HTTP/1.1\r\nhost: localhost\r\nx-more: ",
    "half a body": b"PUT /capabilities HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{",
    "half a large body": b"PUT /capabilities HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n{",
    "half a chunk": b"PUT /capabilities HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
}
Connect = Callable[..., list[socket.socket]]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Open many connections of one address, and send the same on each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < MANY + 256:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, MANY + 256), hard))
    opened: list[socket.socket] = []

    def make(address: str, number: int, data: bytes = b"", *, receive: int = 0) -> list[socket.socket]:
        made = []
        for _ in range(number):
            one = socket.socket()
            opened.append(one)
            if receive:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            one.settimeout(LONG)
            one.connect(("127.0.0.1", httpx.URL(address).port))
            one.sendall(data)
            made.append(one)
        return made

    yield make
    for one in opened:
        one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_open(connection: socket.socket) -> bool:
    """Whether the server keeps a connection on which nothing was sent back."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def from_elsewhere(address: str) -> httpx.Client:
    """A client with another address."""
    return httpx.Client(base_url=address, transport=httpx.HTTPTransport(local_address="127.0.0.2"), timeout=LONG)


def read_to_end(connection: socket.socket) -> tuple[int, int]:
    """Return how long a response's body says it is, and how much of it came."""
    connection.settimeout(LONG)
    found, size, came = b"", 1, 0
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in found:
            found += connection.recv(65536)
        head, _, found = found.partition(b"\r\n\r\n")
        size = int(re.findall(rb"content-length: (\d+)", head)[0])
        came = len(found)
        while came < size and (piece := connection.recv(65536)):
            came += len(piece)
    return size, came


# Connections ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", HALF.values(), ids=list(HALF))
def test_many_connections_of_one_address_leave_others_served(
    start_server: StartServer, connect: Connect, data: bytes
) -> None:
    """1,100 that send nothing, or half of a request, and all of them held: somebody else is answered."""
    address = start_server(*FOREVER)
    held = connect(address, MANY, data)
    with from_elsewhere(address) as client:
        assert 200 == client.get("/capabilities").status_code
    assert MANY == sum(map(is_open, held))


@pytest.mark.parametrize("data", [HALF["idle"], HALF["half a head"]], ids=["idle", "half a head"])
def test_idle_connections_are_closed(start_server: StartServer, connect: Connect, data: bytes) -> None:
    """A connection that sends no whole head is given back, each of them."""
    address = start_server("--head-timeout", "0.5", "--no-log")
    held = connect(address, 50, data)
    assert until(lambda: not any(map(is_open, held)))


def test_a_connection_that_was_used_is_closed_when_idle(start_server: StartServer, connect: Connect) -> None:
    """Kept alive after an answer, it has as long as for its first request."""
    address = start_server("--head-timeout", "0.5", "--no-log")
    held = connect(address, 20, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    for one in held:
        assert b"HTTP/1.1 200 OK" in one.recv(4096)
    assert until(lambda: not any(map(is_open, held)))


@pytest.mark.parametrize("data", [HALF["half a body"], HALF["half a chunk"]], ids=["half a body", "half a chunk"])
def test_half_a_body_is_given_up(start_server: StartServer, connect: Connect, data: bytes) -> None:
    """It is answered, and its connection closed."""
    address = start_server("--body-timeout", "0.5", "--no-log")
    for one in connect(address, 20, data):
        found = b""
        while piece := one.recv(65536):
            found += piece
        assert found.startswith(b"HTTP/1.1 408 ")


@pytest.mark.skipif(not Connections(1).can_see, reason="this system has no list of open files in /proc")
def test_one_address_has_a_part_of_the_connections(start_server: StartServer, connect: Connect) -> None:
    """Beyond its part its connections are closed, and others get theirs where all were taken."""
    address = start_server(*FOREVER, "--max-connections", "40", "--max-client-connections", "30")
    held = connect(address, 60)
    with from_elsewhere(address) as client:
        assert 200 == client.get("/capabilities").status_code
    assert until(lambda: sum(map(is_open, held)) <= 30)


# Waiting -------------------------------------------------------------------------------------------------------------

POLL = b"GET /changes?since=latest&wait=60 HTTP/1.1\r\nhost: localhost\r\n\r\n"
STREAM = b"GET /changes?since=latest HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n"


def test_polls_of_one_client_that_wait_are_bounded(start_server: StartServer, connect: Connect) -> None:
    """One more than its places is refused; places of clients that left are free at once, others have their own."""
    address = start_server(*FOREVER, "--max-waiting", "3")
    held = connect(address, 3, POLL)
    assert until(lambda: in_flight(address) == 3)
    assert connect(address, 1, POLL)[0].recv(4096).startswith(b"HTTP/1.1 503 ")
    assert 200 == httpx.get(f"{address}/changes", timeout=LONG).status_code  # it does not wait
    with from_elsewhere(address) as client:
        assert 200 == client.get("/changes?wait=1").status_code
    for one in held:
        one.close()
    assert until(lambda: in_flight(address) == 0)
    connect(address, 3, POLL)
    assert until(lambda: in_flight(address) == 3)


def test_streams_of_clients_that_left_give_their_places_back(start_server: StartServer, connect: Connect) -> None:
    """Whoever comes after them is served, again and again."""
    address = start_server(*FOREVER, "--max-waiting", "2")

    def stream() -> socket.socket | None:
        (one,) = connect(address, 1, STREAM)
        if one.recv(4096).startswith(b"HTTP/1.1 200 "):
            return one
        one.close()
        return None

    held: list[socket.socket] = []

    def all_places() -> bool:
        if (one := stream()) is not None:
            held.append(one)
        return len(held) == 2

    for _ in range(10):
        assert until(all_places)
        assert None is stream()
        while held:
            held.pop().close()


# Answers -------------------------------------------------------------------------------------------------------------

EXPORT = b"GET /export HTTP/1.1\r\nhost: localhost\r\n\r\n"
GZIP = EXPORT.replace(b"\r\n\r\n", b"\r\naccept-encoding: gzip\r\n\r\n")


def fill(address: str, documents: int = 24) -> int:
    """Make a catalog whose export is about so many megabytes, which no coding makes small; return its size."""
    with httpx.Client(base_url=address, timeout=LONG) as client:
        for number in range(documents):
            reply = client.put(
                f"/schemagroups/g/schemas/s{number}", content=os.urandom(1 << 19).hex(), headers={"content-type": "a/b"}
            )
            assert 201 == reply.status_code
        return len(client.get("/export").content)


def memory_of(address: str) -> int:
    """Return the bytes that the largest process of a server has in memory."""
    port = str(httpx.URL(address).port).encode()
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"serve" in words and port in words:
                found.append(int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return max(found)


@pytest.mark.skipif(not Connections(1).can_see, reason="this system has no list of open files in /proc")
@pytest.mark.parametrize("ask", [EXPORT, pytest.param(GZIP, marks=pytest.mark.slow)], ids=["plain", "gzip"])
def test_sixty_exports_that_nobody_reads(
    start_server: StartServer, connect: Connect, tmp_path: Path, ask: bytes
) -> None:
    """Sixty times 25 MB: the worker stays below 300 MB and answers others, and what is read after all is whole."""
    address = start_server(*FOREVER, store=str(tmp_path / "big.db"))
    size = fill(address)
    assert size > 24_000_000
    held = connect(address, 60, ask, receive=65536)
    assert until(lambda: in_flight(address) == 0)  # every answer is made, and being sent
    assert 200 == httpx.get(f"{address}/capabilities", timeout=LONG).status_code
    assert memory_of(address) < 300_000_000
    for one in held[:3]:
        announced, came = read_to_end(one)
        assert announced == came
        assert came > 12_000_000


@pytest.mark.skipif(not Connections(1).can_see, reason="this system has no list of open files in /proc")
def test_who_does_not_read_is_dropped(start_server: StartServer, connect: Connect, tmp_path: Path) -> None:
    """After the timeout the connection is cut, and the client can tell that half of the answer is missing."""
    address = start_server("--answer-timeout", "0.5", "--no-log", store=str(tmp_path / "big.db"))
    fill(address, 12)
    held = connect(address, 10, EXPORT, receive=65536)
    assert until(lambda: all(_is_cut(one) for one in held))
    for one in held:
        size, came = read_to_end(one)
        assert came < size


def _is_cut(connection: socket.socket) -> bool:
    """Whether the other end has said that nothing more will come; on Linux the state of the connection tells."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1


def test_beyond_the_room_for_answers_the_server_is_busy(start_server: StartServer, tmp_path: Path) -> None:
    """An answer that does not fit is refused before its first byte, and the next small one is given."""
    address = start_server(*FOREVER, "--max-answers", "1m", store=str(tmp_path / "big.db"))
    with httpx.Client(base_url=address, timeout=LONG) as client:
        for number in range(2):
            client.put(f"/schemagroups/g/schemas/s{number}", content=b"x" * 700_000, headers={"content-type": "a/b"})
        assert 503 == client.get("/export").status_code
        assert 700_000 == len(client.get("/schemagroups/g/schemas/s0").content)
        assert 200 == client.get("/").status_code
