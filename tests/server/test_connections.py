import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from signalbook.errors import RegistryError
from signalbook.server.connections import ClientConnection, ClientLost, Connections, Pace, Place, Places
from signalbook.server.http import Request

pytestmark = pytest.mark.skipif(not Connections(1).can_see, reason="this system has no list of open files in /proc")


class Port:
    """A port of this process, and clients of it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.number: int = self.listener.getsockname()[1]
        self.open: list[socket.socket] = []

    def client(self, address: str = "127.0.0.1") -> tuple[socket.socket, socket.socket, str]:
        """A client, the server's end of its connection, and its address."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        client.bind((address, 0))
        client.connect(("127.0.0.1", self.number))
        served, peer = self.listener.accept()
        served.setblocking(False)
        self.open += [client, served]
        return client, served, f"{peer[0]}:{peer[1]}"


@pytest.fixture
def port() -> Iterator[Port]:
    """A port where nobody reads."""
    made = Port()
    yield made
    for one in (made.listener, *made.open):
        one.close()


def fill(served: socket.socket) -> int:
    """Write until the client's end takes no more; return how much that was."""
    size = 0
    try:
        while True:
            size += served.send(b"x" * 65536)
    except BlockingIOError:
        return size


def is_cut(client: socket.socket) -> bool:
    """Whether the server has ended the connection."""
    client.settimeout(0.01)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except TimeoutError:
        return False


def test_a_connection_is_found_by_its_client(port: Port) -> None:
    """Its figures are the kernel's, and nothing stays open after a look."""
    client, served, peer = port.client()
    port.client()
    connections = Connections(port.number)
    found = connections.find(peer)
    assert found is not None
    assert None is connections.find("127.0.0.1:1")
    before = found.given()
    served.send(b"x" * 1000)
    assert 1000 == found.given() - before
    served.close()
    client.close()
    with pytest.raises(ClientLost):
        found.traffic()


def test_a_number_that_became_another_file_is_not_touched(port: Port) -> None:
    """A connection is compared with its client before anything is done with it."""
    client, served, _ = port.client()
    stale = ClientConnection(served.fileno(), "127.0.0.1:1")
    stale.cut()
    assert not is_cut(client)
    with pytest.raises(ClientLost):
        stale.given()


def test_looking_leaves_no_file_open(port: Port) -> None:
    """However often one looks, the same files are open."""
    port.client()
    connections = Connections(port.number)
    probe = socket.socket()
    first = probe.fileno()
    probe.close()
    for _ in range(10):
        assert 1 == len(connections.look())
    again = socket.socket()
    assert first == again.fileno()
    again.close()


def test_whoever_leaves_an_answer_unread_is_cut(port: Port) -> None:
    """After the timeout and a second for every 16 KiB taken; who has nothing to read stays, and who reads."""
    unread, served, _ = port.client()
    reads, other, _ = port.client()
    idle, _, _ = port.client()
    fill(served)
    other.send(b"x" * 1000)
    connections = Connections(port.number, timeout=30)
    assert 0 == connections.tend(now=1000)
    assert 0 == connections.tend(now=1030)
    reads.recv(1000)
    assert 1 == connections.tend(now=1031)
    assert [False, False] == [is_cut(reads), is_cut(idle)]
    with pytest.raises(BrokenPipeError):
        served.send(b"x")
    assert unread.fileno() > 0


def test_who_reads_slowly_has_more_time(port: Port) -> None:
    """One more second for every 16 KiB."""
    client, served, peer = port.client()
    fill(served)
    connections = Connections(port.number, timeout=30)
    connections.tend(now=1000)
    found = connections.find(peer)
    assert found is not None
    start, taken = found.traffic().taken, 0
    client.settimeout(5)
    while taken < 64 * 1024:
        client.recv(65536)
        taken = found.traffic().taken - start
    assert found.traffic().waiting > 0
    assert 0 == connections.tend(now=1031)
    assert 1 == connections.tend(now=1031 + taken / 16384 + 1)


def test_an_address_with_too_many_connections_loses_some(port: Port) -> None:
    """Others keep theirs."""
    many = [port.client()[0] for _ in range(8)]
    other = port.client("127.0.0.2")[0]
    connections = Connections(port.number, most=5)
    assert 3 == connections.tend(now=0)
    assert 3 == sum(is_cut(client) for client in many)
    assert not is_cut(other)
    unlimited = Connections(port.number, most=0)
    assert 0 == unlimited.tend(now=0)


def test_an_answer_is_held_back_until_its_client_takes_it(port: Port) -> None:
    """No more than a bound is on the way; a client that has left ends it."""
    client, served, peer = port.client()
    connection = Connections(port.number).find(peer)
    assert connection is not None

    async def play() -> list[str]:
        pace = Pace(connection)
        await pace.sent(100_000)  # below the bound: nobody has to take it
        waiting = asyncio.ensure_future(pace.sent(400_000))
        await asyncio.sleep(0.05)
        told = [f"done {waiting.done()}"]
        served.setblocking(True)
        await asyncio.to_thread(lambda: (served.sendall(b"x" * 300_000), None) if read_all(client, 300_000) else None)
        await waiting
        lost = asyncio.ensure_future(pace.sent(1_000_000))
        served.close()
        try:
            await lost
        except ClientLost:
            told.append("lost")
        return told

    assert ["done False", "lost"] == asyncio.run(play())


def read_all(client: socket.socket, size: int) -> bool:
    """Read in another thread."""

    def read() -> None:
        left = size
        while left:
            left -= len(client.recv(65536))

    threading.Thread(target=read, daemon=True).start()
    return True


def asked(client: str = "10.0.0.1:5", **headers: str) -> Request:
    """A request of a client."""
    return Request(
        "GET", "/changes", headers={name.replace("_", "-"): value for name, value in headers.items()}, client=client
    )


def take(places: Places, request: Request) -> Place:
    """The place of a request, taken."""
    place = places.of(request)
    place.take()
    return place


def test_places_of_one_client_are_bounded() -> None:
    """By address, whatever port, and token; a place that is given back can be taken again."""
    places = Places(2)
    first = take(places, asked("10.0.0.1:5"))
    take(places, asked("10.0.0.1:6"))
    with pytest.raises(RegistryError):
        take(places, asked("10.0.0.1:7"))
    take(places, asked("10.0.0.2:5"))
    take(places, asked("10.0.0.1:7", authorization="Bearer a"))
    assert 4 == places.taken
    first.give_back()
    first.give_back()
    assert 3 == places.taken
    take(places, asked("10.0.0.1:7"))


def test_an_ipv6_customer_is_one_client() -> None:
    """It has a network of 64 bits to choose addresses from."""
    places = Places(1)
    take(places, asked("[2001:db8::1]:5"))
    with pytest.raises(RegistryError):
        take(places, asked("[2001:db8::2]:5"))
    take(places, asked("[2001:db8:0:1::1]:5"))
    take(places, asked("[::ffff:10.0.0.1]:5"))
    take(places, asked("[::ffff:10.0.0.2]:5"))


def test_behind_a_trusted_proxy_the_client_is_whom_it_names() -> None:
    """The last address is the proxy's own word; without trust the header says nothing."""
    places = Places(1, trust_proxy=True)
    take(places, asked(x_forwarded_for="6.6.6.6, 10.0.0.1"))
    with pytest.raises(RegistryError):
        take(places, asked(x_forwarded_for="7.7.7.7, 10.0.0.1"))
    take(places, asked(x_forwarded_for="10.0.0.2"))
    plain = Places(1)
    take(plain, asked(x_forwarded_for="10.0.0.1"))
    with pytest.raises(RegistryError):
        take(plain, asked(x_forwarded_for="10.0.0.2"))
