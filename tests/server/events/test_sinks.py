"""Where events may be sent: SSRF rules."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from signalbook.server.events.sinks import SinkError, Sinks, parse_networks, split_sink
from tests.patience import LONG
from tests.server.sink import Sink

PRIVATE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
    "::1", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "::", "ff02::1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "64:ff9b:1::1", "64:ff9b:1:ffff::808:808", "::127.0.0.1", "::808:808", "fec0::1", "feff::1", "2001:0:4136:e378::1",
    "::ffff:0:7f00:1", "::ffff:10.0.0.1", "2002:a00:1::1", "64:ff9b::a9fe:a9fe",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses(address: str) -> None:
    """Loopback, private, link-local and other special addresses are refused, in whatever form."""
    with pytest.raises(SinkError, match="not public"):
        Sinks().check("host", address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    """The public internet is allowed."""
    Sinks().check("host", address)


def test_the_operator_allows() -> None:
    """A network that the operator names is allowed, its neighbour is not."""
    sinks = Sinks(parse_networks(["10.1.0.0/16"]))
    sinks.check("host", "10.1.2.3")
    with pytest.raises(SinkError, match="--allow-sink"):
        sinks.check("host", "10.2.0.1")


@pytest.mark.parametrize(
    "sink",
    [
        "",
        "ftp://a",
        "https://",
        "https://u:p@a/",
        "https://a/#f",
        "https://a/\r\nx: y",
        "https://a:0/",
        "https://ä/",
        "x",
    ],
)
def test_no_address(sink: str) -> None:
    """What is no address of a web server, or carries secrets, is refused."""
    with pytest.raises(SinkError):
        split_sink(sink)


def test_a_name_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that is connected to is the one that was checked: a name is resolved once a connection."""
    sink = Sink().start()
    asked: list[str] = []
    connected: list[Any] = []
    answers = iter([[("127.0.0.1", sink.port)], [("10.0.0.1", sink.port)]])

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in next(answers)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    original = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", lambda self, place: connected.append(place) or original(self, place))
    sinks = Sinks(parse_networks(["127.0.0.0/8"]))

    async def ask_twice() -> None:
        connection = sinks.open(f"http://rebind.test:{sink.port}/events")
        assert 200 == (await connection.send("OPTIONS", {}, b"", LONG)).status
        await connection.close()
        with pytest.raises(SinkError, match=r"10\.0\.0\.1"):
            await connection.send("OPTIONS", {}, b"", LONG)
        await connection.close()

    asyncio.run(ask_twice())
    assert ["rebind.test", "rebind.test"] == asked
    assert [("127.0.0.1", sink.port)] == connected
    sink.stop()


def test_one_bad_address_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a public and a private address is refused as a whole."""
    places = [("93.184.216.34", 80), ("127.0.0.1", 80)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, 1, 6, "", place) for place in places])
    with pytest.raises(SinkError, match="not public"):
        asyncio.run(Sinks().find("both.test", 80))
