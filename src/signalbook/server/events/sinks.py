"""Sending to a sink that a client named: nowhere but where the operator allows, and no further.

Rule 1: a sink's name is resolved by us, every address it has is checked, and the connection goes to the address that
was checked; so a name that means another address a moment later gains nothing. This is done anew for each connection.
Rule 2: only addresses of the public internet are allowed, and those of the networks that the operator names.
Rule 3: a redirect is an answer like any other and is not followed; of an answer's body no more than a little is read.
Rule 4: a request has one deadline for all of it: the look-up of the name, the connection, the answer. It waits on an
event loop and holds no thread; so however many sinks are slow, the others go on.
Rule 5: a look-up cannot be ended. Each has a thread of its own, one a host, and those of hosts that were slow or were
never asked leave room for the others.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore

from signalbook.errors import SignalbookError

__all__ = ["Lookups", "Network", "Reply", "SinkConnection", "SinkError", "Sinks", "parse_networks", "split_sink"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Places = list[tuple[str, int]]

_MOST_READ = 64 * 1024
# Look-ups at once: of hosts whose last one took less than a second, and of all others.
MOST_QUICK_LOOKUPS = 64
MOST_OTHER_LOOKUPS = 64
_QUICK = 1.0
_MOST_HOSTS = 10_000


class SinkError(SignalbookError):
    """A sink that cannot be reached, or must not be."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a sink answered."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """The networks that texts such as `10.0.0.0/8` name; `ValueError` where one names none."""
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def split_sink(sink: str) -> SplitResult:
    """Return the parts of a sink's address; raise `SinkError` where nothing can be delivered to it."""
    try:
        parts = urlsplit(sink)
        port = parts.port
    except ValueError as error:
        raise SinkError(f"it is not an address ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise SinkError("it must begin with https:// or http://")
    if parts.username is not None or parts.fragment:
        raise SinkError("it must hold neither user nor fragment; use sinkcredential")
    if not sink.isascii() or any(character <= " " or character == "\x7f" for character in sink) or len(sink) > 2000:
        raise SinkError("it holds characters that an address cannot have")
    return parts


class Lookups:
    """Finds the addresses of hosts; at most as many threads wait for the system at once as the two bounds say."""

    def __init__(
        self, quick: int = MOST_QUICK_LOOKUPS, others: int = MOST_OTHER_LOOKUPS, clock: Callable[[], float] = monotonic
    ) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._room = {True: quick, False: others}
        self._waiting: dict[bool, deque[tuple[str, int]]] = {True: deque(), False: deque()}
        self._under_way: dict[tuple[str, int], Future[_Places]] = {}
        self._quick: dict[str, None] = {}  # hosts whose last look-up was quick

    async def find(self, host: str, port: int) -> _Places:
        """The addresses of a host; who gives up waiting leaves the look-up to the others who wait for it."""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return await asyncio.shield(asyncio.wrap_future(self._ask(host, port)))
        return [(host, port)]

    def _ask(self, host: str, port: int) -> Future[_Places]:
        with self._lock:
            found = self._under_way.get((host, port))
            if found is None:
                found = self._under_way[host, port] = Future()
                lane = host in self._quick
                self._waiting[lane].append((host, port))
                self._start(lane)
        return found

    def _start(self, lane: bool) -> None:
        """Begin the look-ups of a lane that there is room for."""
        while self._room[lane] and self._waiting[lane]:
            self._room[lane] -= 1
            wanted = (*self._waiting[lane].popleft(), lane)
            threading.Thread(target=self._look_up, args=wanted, name="signalbook-lookup", daemon=True).start()

    def _look_up(self, host: str, port: int, lane: bool) -> None:
        began = self._clock()
        found: _Places = []
        failure: BaseException | None = None
        try:
            found = [(str(one[4][0]), port) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as error:
            failure = SinkError(f"{host} is not known ({error})")
        with self._lock:
            future = self._under_way.pop((host, port))
            self._quick.pop(host, None)
            if self._clock() - began < _QUICK and failure is None:
                self._quick[host] = None
                if len(self._quick) > _MOST_HOSTS:
                    del self._quick[next(iter(self._quick))]
            self._room[lane] += 1
            self._start(lane)
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(found)


class Sinks:
    """What may be sent to, and the way there; `allowed` are networks beside the public internet."""

    def __init__(self, allowed: tuple[Network, ...] = (), lookups: Lookups | None = None) -> None:
        self._allowed = allowed
        self._lookups = lookups or Lookups()
        self._context: ssl.SSLContext | None = None

    def open(self, sink: str) -> SinkConnection:
        """A connection for requests to one sink; it is made with the first, and made anew when it was lost."""
        parts = split_sink(sink)
        if parts.scheme == "https":
            self._context = self._context or ssl.create_default_context()
        return SinkConnection(self, sink, self._context)

    async def find(self, host: str, port: int) -> _Places:
        """The addresses of a host, all of which are allowed."""
        places = await self._lookups.find(host, port)
        for address, _ in places:
            self.check(host, address)
        return places

    def check(self, host: str, address: str) -> None:
        """Refuse an address that is neither public nor allowed."""
        place = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(place, ipaddress.IPv6Address):
            place = _embedded(place) or place
        if place.is_global and not place.is_multicast and not any(place in network for network in _NOT_PUBLIC):
            return
        if not any(place in network for network in self._allowed if network.version == place.version):
            raise SinkError(f"{host} is at {place}, which is not public; the operator can allow it with --allow-sink")


# Ranges that lead into somebody's own network, whatever a version of `ipaddress` says of them: NAT64 with a prefix of
# one's own (RFC 8215), IPv4-compatible and site-local addresses (RFC 4291), Teredo (RFC 4380).
_NOT_PUBLIC = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "::/96", "fec0::/10", "2001::/32")))
# Addresses whose last 32 bits are those of an IPv4 address: NAT64 (RFC 6052), IPv4-translated (RFC 2765).
_LAST_BITS = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96")))


def _embedded(place: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to, where it is made from one."""
    if any(place in network for network in _LAST_BITS):
        return ipaddress.IPv4Address(int(place) & 0xFFFFFFFF)
    return place.ipv4_mapped or place.sixtofour


class _Way(httpcore.AsyncNetworkBackend):
    """Connects to the addresses of a host that `Sinks.find` gives, and to no others."""

    def __init__(self, sinks: Sinks) -> None:
        self._sinks = sinks
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that answers."""
        last: Exception | None = None
        for address, _ in await self._sinks.find(host, port):
            try:
                return await self._plain.connect_tcp(address, port, timeout, None, socket_options)
            except (OSError, httpcore.NetworkError, httpcore.TimeoutException) as error:
                last = error
        raise SinkError(f"nothing answers at {host} port {port} ({last})")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._plain.sleep(seconds)


class SinkConnection:
    """Requests to one sink, one after the other, on one connection."""

    def __init__(self, sinks: Sinks, sink: str, context: ssl.SSLContext | None) -> None:
        self.sink = sink
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context, max_connections=1, keepalive_expiry=60.0, network_backend=_Way(sinks)
        )

    async def send(self, method: str, headers: Mapping[str, str], body: bytes, seconds: float) -> Reply:
        """One request, which takes no longer than this; whatever goes wrong on the way is a `SinkError`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._request(method, headers, body)
        except TimeoutError:
            raise SinkError(f"it did not answer within {seconds:g} s") from None
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ValueError) as error:
            raise SinkError(f"it does not answer ({error or type(error).__name__})") from None

    async def _request(self, method: str, headers: Mapping[str, str], body: bytes) -> Reply:
        parts = split_sink(self.sink)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        url = httpcore.URL(
            scheme=parts.scheme.encode(), host=(parts.hostname or "").encode(), port=parts.port, target=path.encode()
        )
        lines = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        async with self._pool.stream(method, url, headers=lines, content=body or None) as answer:
            size = 0
            async with aclosing(_pieces(answer)) as pieces:
                async for piece in pieces:
                    size += len(piece)
                    if size > _MOST_READ:
                        break  # the rest goes with the connection
            return Reply(
                answer.status, {one.decode("latin-1").lower(): text.decode("latin-1") for one, text in answer.headers}
            )

    async def close(self) -> None:
        """Close the connection; another request makes a new one."""
        await self._pool.aclose()


async def _pieces(answer: httpcore.Response) -> Any:
    async for piece in answer.aiter_stream():
        yield piece
