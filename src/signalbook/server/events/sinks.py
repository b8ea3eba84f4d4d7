"""Sending to a sink that a client named: nowhere but where the operator allows, and no further.

Rule 1: a sink's name is resolved by us, every address it has is checked, and the connection goes to the address that
was checked; so a name that means another address a moment later gains nothing. This is done anew for each connection.
Rule 2: only addresses of the public internet are allowed, and those of the networks that the operator names.
Rule 3: a redirect is an answer like any other and is not followed; of an answer's body no more than a little is read.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from signalbook.errors import SignalbookError

__all__ = ["Network", "Reply", "SinkError", "Sinks", "parse_networks", "send", "split_sink"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SECONDS = 10.0
_MOST_READ = 64 * 1024


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


class Sinks:
    """What may be sent to, and the way there; `allowed` are networks beside the public internet."""

    def __init__(self, allowed: tuple[Network, ...] = ()) -> None:
        self._allowed = allowed
        self._context: ssl.SSLContext | None = None

    def open(self, sink: str) -> http.client.HTTPConnection:
        """A connection for requests to one sink; it is made with the first, and made anew when it was lost."""
        parts = split_sink(sink)
        assert parts.hostname is not None
        if parts.scheme == "https":
            self._context = self._context or ssl.create_default_context()
            return _Secure(self, parts.hostname, parts.port or 443, self._context)
        return _Plain(self, parts.hostname, parts.port or 80)

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to an address of a host that is allowed."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise SinkError(f"{host} is not known ({error})") from None
        places = [(family, place) for family, _, _, _, place in found]
        for _, place in places:
            self.check(host, str(place[0]))
        last: OSError | None = None
        for family, place in places:
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(SECONDS)
                connection.connect(place)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as error:
                connection.close()
                last = error
        raise SinkError(f"nothing answers at {host} port {port} ({last})")

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


class _Plain(http.client.HTTPConnection):
    """A connection that reaches its host only through `Sinks.connect`."""

    def __init__(self, sinks: Sinks, host: str, port: int) -> None:
        super().__init__(host, port, timeout=SECONDS)
        self._sinks = sinks

    def connect(self) -> None:
        self.sock = self._sinks.connect(self.host, self.port)


class _Secure(_Plain):
    """The same over TLS, with the name checked that the client gave."""

    default_port = 443

    def __init__(self, sinks: Sinks, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(sinks, host, port)
        self._tls = context

    def connect(self) -> None:
        plain = self._sinks.connect(self.host, self.port)
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
        except (OSError, ssl.CertificateError) as error:
            plain.close()
            raise SinkError(f"{self.host} does not accept a secure connection ({error})") from None


def send(
    connection: http.client.HTTPConnection, method: str, sink: str, headers: Mapping[str, str], body: bytes = b""
) -> Reply:
    """One request; whatever goes wrong on the way is a `SinkError`, and the next request connects anew."""
    parts = split_sink(sink)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body or None, dict(headers))
        answer = connection.getresponse()
        rest = answer.read(_MOST_READ)
        if len(rest) == _MOST_READ or answer.will_close:
            connection.close()
    except SinkError:
        connection.close()
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        connection.close()
        raise SinkError(f"it does not answer ({error or type(error).__name__})") from None
    return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()})
