"""A peer that is hostile: whatever it sends, a command ends with one clear line, and takes a bounded amount of it."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from signalbook import client, exchange
from signalbook.cli import options
from signalbook.client import Call, HttpTransport, RemoteError, ReplyBounds, connect
from signalbook.replication import source
from signalbook.sources import catalogs
from tests.cli.conftest import Run, run

__all__ = ["run"]

MEBIBYTE = 1 << 20
SMALL = MEBIBYTE
Talk = Callable[[socket.socket, str], object]


class Peer:
    """A server on this machine that answers each connection's request as `talk` does, and counts what it sent."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.heads: list[str] = []
        self.sent = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            # What waits in the kernel was not taken by the client, so little may wait there.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.heads.append(head.decode("latin-1"))
            self._talk(connection, self.heads[-1].split(" ")[1])

    def send_for_ever(self, connection: socket.socket, piece: bytes) -> None:
        """Send the same bytes until the other end has had enough, at most half a gigabyte."""
        while self.sent < 512 * MEBIBYTE:
            connection.sendall(piece)
            self.sent += len(piece)

    def close(self) -> None:
        self._listener.close()


MakePeer = Callable[[Talk], Peer]


@pytest.fixture
def make_peer() -> Iterator[MakePeer]:
    made: list[Peer] = []

    def make(talk: Talk) -> Peer:
        made.append(Peer(talk))
        return made[-1]

    yield make
    for one in made:
        one.close()


def answer(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> Talk:
    """One answer with these headers; its length is said as it is, or otherwise."""
    lines = [
        f"HTTP/1.1 {status}",
        *headers,
        "Connection: close",
        f"Content-Length: {len(body) if length is None else length}",
        "",
        "",
    ]
    whole = "\r\n".join(lines).encode("latin-1") + body
    return lambda connection, path: connection.sendall(whole)


JSON = "Content-Type: application/json"
BOMB = b"[" + b" " * (64 * MEBIBYTE) + b"]"


def in_gzip(body: bytes) -> Talk:
    return answer(gzip.compress(body, 9), JSON, "Content-Encoding: gzip")


def in_zstd(body: bytes) -> Talk:
    return answer(zstandard.compress(body, 3), JSON, "Content-Encoding: zstd")


HOSTILE: dict[str, tuple[Talk, str]] = {
    "a bomb of gzip": (in_gzip(BOMB), "sends more than 1 MiB in one answer"),
    "a bomb of zstd": (in_zstd(BOMB), "sends more than 1 MiB in one answer"),
    "a window of 128 MiB": (
        answer(b"\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", JSON, "Content-Encoding: zstd"),
        "sends a body that is not zstd, which it says it is",
    ),
    "a coding that was not asked for": (
        answer(b"x", JSON, "Content-Encoding: br"),
        "answers in the content coding 'br', which it was not asked for",
    ),
    "one coding in another": (
        answer(gzip.compress(gzip.compress(BOMB)), JSON, "Content-Encoding: gzip, gzip"),
        "answers in the content coding 'gzip, gzip', which it was not asked for",
    ),
    "half of a gzip": (
        answer(gzip.compress(b"{}" * 1000)[:-9], JSON, "Content-Encoding: gzip"),
        "sends a body that ends in the middle of its gzip",
    ),
    "half of a zstd": (
        answer(zstandard.compress(b"{}" * 1000)[:-5], JSON, "Content-Encoding: zstd"),
        "sends a body that ends in the middle of its zstd",
    ),
    "what is not gzip": (
        answer(b"{}", JSON, "Content-Encoding: gzip"),
        "sends a body that is not gzip, which it says it is",
    ),
    "a length beyond the body": (answer(b"{}", JSON, length=1000), "broke off its answer"),
    "a length that is not a number": (
        lambda connection, path: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}"),
        "does not speak HTTP as it should",
    ),
    "another protocol": (
        lambda connection, path: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        "does not speak HTTP as it should",
    ),
    "nothing at all": (lambda connection, path: None, "broke off its answer"),
    "a web page": (answer(b"<p>\x1b[31m", "Content-Type: text/html"), ""),
    "very deep JSON": (answer(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", JSON), "nested deeper than"),
    "deep JSON": (
        answer(b'{"messagegroups":{"g":{"labels":' + b"[" * 700 + b"]" * 700 + b"}}}", JSON),
        "nested deeper than",
    ),
    "an error that goes on and on": (
        answer(
            json.dumps({"type": "#not_found", "title": "x" * 500_000, "args": {"a": "y" * 100_000}}).encode(),
            JSON,
            status="400 Bad",
        ),
        "answered 400",
    ),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "match": ("match", "--catalog", "{}", "-"),
    "get": ("get", "/", "--server", "{}"),
    "export": ("export", "--server", "{}"),
    "replicate": ("replicate", "pull", "--from", "{}", "--to", "{}/target"),
}


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One mebibyte is the most that any command takes in one answer."""
    bounds = ReplyBounds(timeout=30.0, largest=SMALL)
    monkeypatch.setattr(options, "_BOUNDS", bounds)
    monkeypatch.setattr(client, "ReplyBounds", lambda *_: bounds)
    monkeypatch.setattr(catalogs, "ReplyBounds", lambda *_: bounds)


def arguments(command: str, address: str) -> list[str]:
    return [part.replace("{}", address) for part in COMMANDS[command]]


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_one_clear_line(name: str, command: str, make_peer: MakePeer, run: Run) -> None:
    """Every command that asks a server says in one line what is wrong with the answer, and ends with 3."""
    talk, words = HOSTILE[name]
    peer = make_peer(talk)
    done = run(*arguments(command, peer.address), stdin='{"specversion":"1.0","id":"1","source":"/","type":"t"}')
    if (name, command) == ("deep JSON", "get"):  # which shows the text as it is, and walks through nothing
        assert 0 == done.code
        return
    # What is not a catalog is another mistake than a server that does not answer as it should.
    is_other = command == "match" and name in ("a web page", "very deep JSON", "deep JSON")
    assert (2 if is_other else 3, "") == (done.code, done.out), done.err
    lines = done.err.splitlines()
    assert 1 == len(lines), done.err
    assert len(lines[0]) < 3000
    assert lines[0].isprintable()
    if command == "match":
        words = {"nested deeper than": "is nested too deeply to be read", "answered 400": "answered 400"}.get(
            words, words
        )
    if words != "answered 400":
        assert peer.address in lines[0]
        assert words in lines[0]


@pytest.mark.parametrize("body", [in_gzip(BOMB), in_zstd(BOMB)], ids=["gzip", "zstd"])
def test_a_bomb_is_not_unpacked(body: Talk, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 MiB in a few kilobytes no more is made than the bound and one step."""
    made: list[int] = []
    plain = exchange._decompressed

    def counted(pieces: Any, coding: str) -> Iterator[bytes]:
        for piece in plain(pieces, coding):
            made.append(len(piece))
            yield piece

    monkeypatch.setattr(exchange, "_decompressed", counted)
    transport = HttpTransport(make_peer(body).address, bounds=ReplyBounds(largest=SMALL))
    with pytest.raises(RemoteError, match="sends more than 1 MiB"):
        transport.answer(Call("GET", "/"))
    assert sum(made) <= SMALL + 8 * MEBIBYTE
    assert max(made) <= 8 * MEBIBYTE


def test_several_members_are_one_body(make_peer: MakePeer) -> None:
    """A body may be compressed in parts, and is read whole."""
    for coding, parts in (
        ("gzip", gzip.compress(b'{"a":') + gzip.compress(b"1}")),
        ("zstd", zstandard.compress(b'{"a":') + zstandard.compress(b"1}")),
    ):
        with connect(make_peer(answer(parts, JSON, f"Content-Encoding: {coding}")).address) as opened:
            assert {"a": 1} == opened.get("/")


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "a body in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b" " * 4096 + b"\r\n"),
    "a body without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b" " * 4096),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 4000 + b"\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nX-More: ", b"x" * 4096),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a stream of events": (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ", b"x" * 4096),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_left(name: str, make_peer: MakePeer) -> None:
    """Whatever a server sends for ever, a client takes no more than its bound and a head, and what waits in between."""
    begin, piece = ENDLESS[name]

    def talk(connection: socket.socket, path: str) -> None:
        connection.sendall(begin)
        peer.send_for_ever(connection, piece)

    peer = make_peer(talk)
    transport = HttpTransport(peer.address, bounds=ReplyBounds(largest=SMALL))
    with pytest.raises(RemoteError):
        transport.answer(Call("GET", "/"))
    transport.close()
    in_between = 8 * MEBIBYTE
    assert peer.sent <= SMALL + exchange.LARGEST_HEAD + in_between


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "]
)
def test_a_server_that_drips_has_one_deadline(
    begin: bytes, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then gains nothing: by a clock that goes on with every byte, ten silences are the end."""
    clock = [0.0]

    def turned() -> float:
        clock[0] += 0.05
        return clock[0]

    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=turned))

    def talk(connection: socket.socket, path: str) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(begin)
        peer.send_for_ever(connection, b"x")

    peer = make_peer(talk)
    transport = HttpTransport(peer.address, bounds=ReplyBounds(timeout=2.0))
    with pytest.raises(RemoteError, match="takes too long to send its answer"):
        transport.answer(Call("GET", "/"))
    assert clock[0] <= 21


def test_a_redirect_is_not_followed(make_peer: MakePeer, run: Run) -> None:
    """Nothing is asked at the place that a server names, and the token goes nowhere."""
    elsewhere = make_peer(answer(b"{}", JSON))
    peer = make_peer(answer(b"", f"Location: {elsewhere.address}/", status="302 Found"))
    for command in COMMANDS:
        done = run(*arguments(command, peer.address), stdin="{}")
        assert 3 == done.code
        assert "redirects" in done.err
    assert [] == elsewhere.heads


def test_pages_end(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that lead to themselves, or to ever new ones, are left after a number, and what they hold is bounded."""
    numbers = iter(range(1_000_000))

    def ever_new(connection: socket.socket, path: str) -> None:
        answer(b'{"a":{}}', JSON, f"Link: </things?page={next(numbers)}>;rel=next")(connection, path)

    monkeypatch.setattr(client, "MOST_PAGES", 20)
    peer = make_peer(ever_new)
    with connect(peer.address) as opened, pytest.raises(RemoteError, match="has more than 20 pages of /things"):
        opened.show("/things")
    assert 20 == len(peer.heads)
    monkeypatch.setattr(client, "LARGEST_SHOWN", 50)
    peer = make_peer(ever_new)
    with connect(peer.address) as opened, pytest.raises(RemoteError, match=r"/things at .* holds more than"):
        opened.show("/things")
    assert 7 == len(peer.heads)
    peer = make_peer(answer(b"{}", JSON, "Link: </things>;rel=next"))
    with connect(peer.address) as opened, pytest.raises(RemoteError, match="in a circle"):
        list(opened.pages("/things"))
    assert 1 == len(peer.heads)


def test_a_header_of_links_is_read_in_one_pass(make_peer: MakePeer) -> None:
    """A header with nothing but beginnings of links has none, and is not read again from each of them."""
    peer = make_peer(answer(b"{}", JSON, "Link: " + "<" * 90_000))
    with connect(peer.address) as opened:
        assert ("", "") == opened.request("GET", "/").find_link("next")
    assert 1 == client._LINK.pattern.count("[^<>]*")  # from one beginning no look goes past the next


FEED: dict[str, Any] = {
    "/replicas": {"catalog": "c", "cursor": "9", "base": "http://a.example", "fixed": True, "authority": "",
                  "link": {"name": "x", "cursor": "", "number": 0}, "problems": []},
    "/replicas/entities": {
        "entries": [{"xid": "/messagegroups/g", "origin": {"catalog": "c"}, "body": {}, "log": None}], "next": ""
    },
    "/changes": [{"type": "io.xregistry.group.created", "subject": "/messagegroups/g"}],
    "/replicas/marks": {},
}  # fmt: skip
MESSAGE: dict[str, Any] = {
    "messageid": "m", "versionid": "1", "epoch": 1, "meta": {"epoch": 1}, "versions": {"1": {"versionid": "1"}}
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "/": {"specversion": "1.0-rc2", "registryid": "r"},
    "/model": {
        "groups": {"messagegroups": {"singular": "messagegroup", "resources": {"messages": {"singular": "message"}}}}
    },
    "/messagegroups": {"g": {"messagegroupid": "g", "epoch": 1}},
    "/messagegroups/g/messages": {"m": MESSAGE},
    "/messagegroups/g/messages/m$details": MESSAGE,
}  # fmt: skip
DEFINITION: dict[str, Any] = {"id": "m", "version": 1, "type": "CloudEvents/1.0", "definition": {}}
CATALOG_01: dict[str, Any] = {
    "/messagecatalog": [{"id": "g", "format": "CloudEvents/1.0"}],
    "/messagecatalog/g/messagedefinitions": [DEFINITION],
    "/messagecatalog/g/messagedefinitions/m/versions": [1],
    "/messagecatalog/g/messagedefinitions/m/versions/1": DEFINITION,
}
PEERS = {"feed": FEED, "plain": PLAIN, "0.1": CATALOG_01}
ODD: tuple[Any, ...] = (None, 7, "x", [], [{}])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value within a value."""
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from places(inner, (*path, step))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """The same value with another at one place."""
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], other)
    return copy


@pytest.mark.parametrize(("kind", "where"), [(kind, where) for kind, peer in PEERS.items() for where in peer])
def test_an_answer_of_another_shape_is_an_error_of_the_peer(
    kind: str, where: str, tmp_path: Path, make_peer: MakePeer
) -> None:
    """Whatever stands where an answer of a catalog should be, replication says so and ends."""
    from signalbook.app import peer_client
    from signalbook.replication.replicate import Replication
    from signalbook.replication.scope import ReplicationScope

    usual = PEERS[kind]
    answers = dict(usual)

    def talk(connection: socket.socket, path: str) -> None:
        body = answers.get(path.partition("?")[0])
        status = "404 Not Found" if body is None and path.partition("?")[0] not in answers else "200 OK"
        text = json.dumps(body).encode()
        answer(text, JSON, "Signalbook-Cursor: 9", status=status)(connection, path)

    peer = make_peer(talk)
    tried = 0
    with peer_client(str(tmp_path / "a.db")) as other:
        for path in places(usual[where]):
            for odd in ODD:
                answers[where] = put(usual[where], path, odd)
                for origin, target in ((peer.address, None), (None, peer.address)):
                    with connect(origin or target or "") as opened, contextlib.suppress(RemoteError):
                        ends = (opened, other) if origin else (other, opened)
                        Replication(*ends, ReplicationScope.parse("/", ())).run()
                    tried += 1
    assert tried >= 10


def test_a_feed_that_never_ends_is_left(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source whose pages go on with ever new names is read to a bound, and that is an error, not the end of it."""
    numbers = iter(range(1_000_000))

    def talk(connection: socket.socket, path: str) -> None:
        number = f"{next(numbers):09}"
        body = [] if path.startswith("/changes") else {"entries": [], "next": number, "catalog": "c", "cursor": number}
        answer(json.dumps(body).encode(), JSON, f"Signalbook-Cursor: {number}")(connection, path)

    monkeypatch.setattr(source, "MOST_PAGES", 20)
    from signalbook.replication.scope import ReplicationScope

    peer = make_peer(talk)
    scope = ReplicationScope.parse("/", ())
    with connect(peer.address) as opened:
        feed = source.open_source(opened)
        assert isinstance(feed, source.FeedSource)
        asked = len(peer.heads)
        with pytest.raises(RemoteError, match="more than 20 pages"):
            list(feed.everything(scope))
        with pytest.raises(RemoteError, match="more than 20 pages"):
            feed.deleted(scope)
        assert asked + 40 == len(peer.heads)
