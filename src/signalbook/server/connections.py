"""The connections of this process, which the HTTP server holds and does not show: what they have taken, who has many.

Rule 1: granian gives no handle to a connection, and its streams take whatever they are given. So the sockets are found
among the open files of this process (Linux: `/proc/self/fd`), by the address of the client; each look works on a copy
of the descriptor that is compared with that address first, so a number that was given to another file does no harm.
Rule 2: only the kernel's figures are read, and a connection is only ever cut (`shutdown`), never written to.
Rule 3: a client that leaves an answer unread is cut after `timeout` seconds and one more for every 16 KiB that it did
take; one address that has more connections than `most` loses those that were silent longest.
Rule 4: where there is no such list of files, nobody is cut and nothing is paced; docs/explanation/limits.md says so.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import stat
import struct
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from signalbook.errors import RegistryError
from signalbook.server.http import Request

__all__ = ["ClientConnection", "ClientLost", "Connections", "Pace", "Places"]

_FILES = Path("/proc/self/fd")
_RATE = 16 * 1024
_PAUSE = 1.0
# In `struct tcp_info` of Linux: milliseconds since data were last sent and received, bytes that the peer has confirmed.
_LAST_SENT, _LAST_RECEIVED, _ACKNOWLEDGED, _LENGTH = 44, 52, 120, 128


class ClientLost(Exception):
    """The connection is not there any more."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the kernel says about a connection: bytes that the client has confirmed, and those that wait for it."""

    taken: int
    waiting: int
    silent: float


def _name(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """Return an address as granian writes it."""
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


def _host(peer: str) -> str:
    """Return whom an address belongs to: of IPv6 the network of 64 bits, which is one customer's."""
    host = peer.rpartition(":")[0]
    if not host.startswith("["):
        return host
    packed = socket.inet_pton(socket.AF_INET6, host[1:-1].partition("%")[0])
    return host if packed[:12] == bytes(10) + b"\xff\xff" else packed[:8].hex()


def _socket_at(file: int) -> socket.socket:
    """Return a socket of its own for an open file that is one; raises OSError for any other."""
    if not stat.S_ISSOCK(os.fstat(file).st_mode):
        raise OSError("not a socket")
    copy = os.dup(file)
    try:
        return socket.socket(fileno=copy)
    except BaseException:
        os.close(copy)
        raise


class ClientConnection:
    """One connection of a client, as long as it is there."""

    __slots__ = ("_file", "peer")

    def __init__(self, file: int, peer: str) -> None:
        self._file = file
        self.peer = peer

    @contextmanager
    def _opened(self) -> Iterator[socket.socket]:
        try:
            with _socket_at(self._file) as found:
                if _name(found.getpeername()) != self.peer:
                    raise ClientLost
                yield found
        except OSError as error:
            raise ClientLost from error

    def traffic(self) -> Traffic:
        """Return its figures; raises `ClientLost`."""
        with self._opened() as found:
            info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
            waiting = struct.unpack("i", fcntl.ioctl(found, termios.TIOCOUTQ, b"\0" * 4))[0]
        sent, received = struct.unpack_from("I", info, _LAST_SENT)[0], struct.unpack_from("I", info, _LAST_RECEIVED)[0]
        return Traffic(struct.unpack_from("Q", info, _ACKNOWLEDGED)[0], waiting, min(sent, received) / 1000)

    def given(self) -> int:
        """Return how many bytes the kernel has been given for the client since the connection began."""
        now = self.traffic()
        return now.taken + now.waiting

    def cut(self) -> None:
        """End it; whoever still writes to it gets an error, and what the client has not taken is thrown away."""
        with suppress(ClientLost), self._opened() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            found.shutdown(socket.SHUT_RDWR)


# How far an answer may run ahead of its client, and how often to look at one that is waited for.
_AHEAD = 256 * 1024
_SHORT, _LONG = 0.001, 0.1


class Pace:
    """Holds an answer back until its client has taken what it was sent; without a connection nothing is held back."""

    def __init__(self, connection: ClientConnection | None) -> None:
        self._connection = connection
        self._start = connection.given() if connection is not None else 0
        self._sent = 0

    async def sent(self, size: int, ahead: int = _AHEAD) -> None:
        """Wait until no more than `ahead` of what was sent is in this process; raises `ClientLost`.

        The kernel counts what encryption adds too, a few bytes in a thousand, so a little more may be here.
        """
        self._sent += size
        if self._connection is None:
            await asyncio.sleep(0)
            return
        pause, before = _SHORT, -1
        while (given := self._connection.given() - self._start) + ahead < self._sent:
            pause = _SHORT if given > before else min(2 * pause, _LONG)
            before = given
            await asyncio.sleep(pause)


class Connections:
    """The connections to one port of this process."""

    def __init__(self, port: int, *, timeout: float = 30.0, most: int = 0) -> None:
        self._port = port
        self._timeout = timeout
        self._most = most
        self._known: dict[str, int] = {}
        self._unread: dict[str, tuple[float, int]] = {}
        self._stopped = threading.Event()
        self.can_see = _FILES.is_dir() and hasattr(socket, "TCP_INFO")

    def start(self) -> None:
        """Begin to look after them, in a thread of its own."""
        if self.can_see:
            threading.Thread(target=self._keep, name="signalbook-connections", daemon=True).start()

    def stop(self) -> None:
        """End that."""
        self._stopped.set()

    def find(self, peer: str) -> ClientConnection | None:
        """Return the connection of a client."""
        if not self.can_see:
            return None
        for _ in range(2):
            file = self._known.get(peer)
            if file is not None:
                found = ClientConnection(file, peer)
                with suppress(ClientLost):
                    found.traffic()
                    return found
            self.look()
        return None

    def look(self) -> list[ClientConnection]:
        """Return all connections that clients have now."""
        known: dict[str, int] = {}
        for name in os.listdir(_FILES):  # noqa: PTH208  # numbers, not paths
            with suppress(OSError), _socket_at(int(name)) as found:
                if found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == self._port:
                    known[_name(found.getpeername())] = int(name)
        self._known = known
        return [ClientConnection(file, peer) for peer, file in known.items()]

    def tend(self, now: float) -> int:
        """Cut whoever leaves answers unread or has too many connections; return how many were cut."""
        cut = 0
        unread: dict[str, tuple[float, int]] = {}
        by_host: dict[str, list[tuple[float, ClientConnection]]] = {}
        for connection in self.look():
            try:
                traffic = connection.traffic()
            except ClientLost:
                continue
            if traffic.waiting:
                since, taken = self._unread.get(connection.peer, (now, traffic.taken))
                if now > since + self._timeout + (traffic.taken - taken) / _RATE:
                    connection.cut()
                    cut += 1
                    continue
                unread[connection.peer] = (since, taken)
            by_host.setdefault(_host(connection.peer), []).append((traffic.silent, connection))
        self._unread = unread
        for found in by_host.values() if self._most else ():
            found.sort(key=lambda one: -one[0])
            for _, connection in found[: max(0, len(found) - self._most)]:
                connection.cut()
                cut += 1
        return cut

    def _keep(self) -> None:
        while not self._stopped.wait(_PAUSE):
            with suppress(OSError):  # no descriptor is left for the list: the next look may find some
                self.tend(time.monotonic())


# Places where requests of one client wait: long polls and streams.
#
# Rule: a client is an address and the token that it sends; behind a proxy that is trusted, the address that it names.


class Places:
    """How many requests of each client wait; one more than `most` is refused."""

    def __init__(self, most: int = 100, *, trust_proxy: bool = False) -> None:
        self._most = most
        self._trust_proxy = trust_proxy
        self._taken: dict[tuple[str, str], int] = {}

    @property
    def taken(self) -> int:
        """How many of them are taken, by all clients together."""
        return sum(self._taken.values())

    def of(self, request: Request) -> Place:
        """Return the place that a request would take."""
        host = _host(request.client) if request.client else ""
        if self._trust_proxy:  # the last is the one that the proxy itself has seen
            host = (request.headers.get("x-forwarded-for") or "").rpartition(",")[2].strip() or host
        return Place(self, (host, request.headers.get("authorization") or ""), request.path)

    def take(self, client: tuple[str, str], path: str) -> None:
        """Take one; on the event loop alone, as all that is here."""
        taken = self._taken.get(client, 0)
        if taken >= self._most:
            raise RegistryError("server_busy", path)
        self._taken[client] = taken + 1

    def give_back(self, client: tuple[str, str]) -> None:
        """Give one back."""
        left = self._taken.get(client, 0) - 1
        if left > 0:
            self._taken[client] = left
        else:
            self._taken.pop(client, None)


class Place:
    """The place of one request."""

    __slots__ = ("_client", "_path", "_places", "_taken")

    def __init__(self, places: Places, client: tuple[str, str], path: str) -> None:
        self._places = places
        self._client = client
        self._path = path
        self._taken = False

    def take(self) -> None:
        """Take it, or raise `server_busy`."""
        self._places.take(self._client, self._path)
        self._taken = True

    def give_back(self) -> None:
        """Give it back, if it was taken; a second time does nothing."""
        if self._taken:
            self._taken = False
            self._places.give_back(self._client)
