"""A real server process: what only a socket can show."""

import asyncio
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from signalbook.errors import UsageError
from signalbook.server.http import Stream
from signalbook.server.run import _send, _shown, serve
from signalbook.settings import Settings
from tests.patience import LONG, in_flight, until
from tests.server.fake_service import DOCUMENT, make

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"signalbook \S+ serving (\S+) \(store memory:, specversion \S+\)")


class Running:
    """A server process and its address, once it accepts."""

    def __init__(self, log_file: Path, **options: Any) -> None:
        options = {"port": 0, "store": "memory:", "max_body": 100_000, **options}
        self.log_file = log_file
        with log_file.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "tests/server/fake_service.py"), json.dumps(options)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = READY.search(line)
        assert found, (line, log_file.read_text())
        self.url = found[1]
        self.port = int(self.url.rpartition(":")[2])

    def talk(self, said: bytes) -> bytes:
        """Everything the server says to these bytes until it closes, as it does where they ask for it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LONG) as connection:
            connection.sendall(said)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while more := connection.recv(65536):
                    answer += more
            return answer

    def workers(self) -> list[int]:
        """The process ids of the workers."""
        return [
            int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """The exit code."""
        self.process.send_signal(sign)
        return self.ended()

    def ended(self) -> int:
        """The exit code, once it has ended."""
        code = self.process.wait(timeout=LONG)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def lives(pid: int) -> bool:
    """Whether a process is there and has not ended; one that ended waits for its parent as a `Z`."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers and stops those that a test left running."""
    running: list[Running] = []

    def begin(**options: Any) -> Running:
        running.append(Running(tmp_path / f"log-{len(running)}", **options))
        return running[-1]

    yield begin
    for server in running:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all tests that leave it as it is."""
    running = Running(tmp_path_factory.mktemp("run") / "log")
    yield running
    running.stop()


CLOSE = "connection: close"


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """A request's bytes."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *headers, "", ""]).encode("latin-1") + body


def test_it_answers(server: Running) -> None:
    """Both roads work, and what is written arrives whole."""
    with httpx.Client(base_url=server.url, timeout=LONG) as client:
        assert {"base": server.url, "method": "GET"} == client.get("/quick").json()
        assert DOCUMENT == client.get("/document").content
        for size in (0, 3, 70_000, 100_000):
            assert size == client.put("/echo", content=b"x" * size).json()["size"]
        assert 80_000 == client.put("/echo", content=iter([b"x" * 40_000] * 2)).json()["size"]


def test_head(server: Running) -> None:
    """HEAD has the length and no body, on a connection that goes on."""
    answer = server.talk(request("HEAD", "/document") + request("HEAD", "/echo") + request("GET", "/quick", CLOSE))
    assert 3 == answer.count(b"HTTP/1.1 200 OK")
    assert f"content-length: {len(DOCUMENT)}".encode() in answer
    assert b"worth coding" not in answer


def test_pipelining(server: Running) -> None:
    """Several requests at once on one connection are answered in order."""
    answer = server.talk(
        request("GET", "/sleep/0.2")
        + request("PUT", "/echo", "content-length: 2", body=b"{}")
        + request("GET", "/quick", CLOSE)
    )
    bodies = re.findall(rb'"(?:method|base)": "([^"]+)"', answer)
    assert [b"GET", b"PUT", b"http://localhost", b"GET"] == bodies


def test_too_much_is_refused_unread(server: Running) -> None:
    """A body that announces too much is refused without waiting for it, and the connection ends."""
    answer = server.talk(request("PUT", "/echo", "content-length: 99999999999", body=b"x" * 1000))
    assert b"HTTP/1.1 413" in answer
    assert b"request_too_large" in answer


def test_too_much_unannounced(server: Running) -> None:
    """A chunked body is cut at the limit."""
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    answer = server.talk(request("PUT", "/echo", "transfer-encoding: chunked", body=chunk * 4 + b"0\r\n\r\n"))
    assert b"HTTP/1.1 413" in answer


@pytest.mark.parametrize(
    ("head", "body"),
    [("content-length: 100", b"abc"), ("content-length: 90000", b"abc"), ("transfer-encoding: chunked", b"5\r\nabc"),
     ("transfer-encoding: chunked", b"3\r\nabc\r\n"), ("transfer-encoding: chunked", b"3\r\nabc\r\nzz\r\n")],
)  # fmt: skip
def test_half_a_body_is_no_body(server: Running, head: str, body: bytes) -> None:
    """A body that breaks off is never taken for a whole one, however it was announced."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LONG) as connection:
        connection.sendall(request("PUT", "/echo", head, body=body))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answer += more
    assert b"HTTP/1.1 200" not in answer
    assert httpx.get(f"{server.url}/quick", timeout=LONG).status_code == 200


def test_a_body_that_is_whole(server: Running) -> None:
    """A chunked body that ends as it should is taken."""
    answer = server.talk(request("PUT", "/echo", "transfer-encoding: chunked", CLOSE, body=b"3\r\nabc\r\n0\r\n\r\n"))
    assert b'"size": 3' in answer


@pytest.mark.parametrize(
    "garbage",
    [b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
     b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n", request("GET", "/", "x: " + "a" * 200_000),
     request("PUT", "/echo", "content-length: 3", "content-length: 4", body=b"abcd"),
     request("PUT", "/echo", "content-length: x", body=b"abcd")],
)  # fmt: skip
def test_what_is_no_request(server: Running, garbage: bytes) -> None:
    """Bytes that are no request, or too much of one, get an error or nothing, and the server lives on."""
    answer = server.talk(garbage)
    assert answer == b"" or re.match(rb"HTTP/1\.1 4\d\d", answer), answer[:100]
    assert httpx.get(f"{server.url}/quick", timeout=LONG).status_code == 200


def test_hostile_paths_and_headers(server: Running) -> None:
    """Odd bytes in a path or a value reach the service as text that no id or attribute may hold."""
    assert b"HTTP/1.1 200" in server.talk(request("GET", "/%FF%00/../%2e%2e/%0d%0aset-cookie:x", CLOSE))
    answer = server.talk(request("PUT", "/echo", "xregistry-name: caf\xe9", "content-length: 0", CLOSE))
    assert b'"xregistry-name": "\\ufffd"' in answer
    answer = server.talk(b'GET /quick HTTP/1.1\r\nconnection: close\r\nhost: a"b\r\n\r\n')
    assert b"HTTP/1.1 400" in answer
    assert b"header_error" in answer
    assert b"set-cookie" not in server.talk(request("GET", "/quick", "host: x%0d%0aset-cookie: y", CLOSE)).lower()


def test_slow_clients_hold_nobody_up(server: Running) -> None:
    """Fifty clients that send half a head and fifty that send half a body leave the others undisturbed."""
    with contextlib.ExitStack() as stack:
        for number in range(100):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            whole = request("PUT", "/echo", "content-length: 1000", body=b"x")
            connection.sendall(whole[:20] if number % 2 else whole)
        for path in ("quick", "echo") * 10:
            assert httpx.get(f"{server.url}/{path}", timeout=LONG).status_code == 200


def test_many_at_once(server: Running, tmp_path: Path) -> None:
    """Slow answers do not stand in the way of others: these come while all of those are still to come."""
    given = tmp_path / "given"
    with httpx.Client(base_url=server.url, timeout=LONG) as client, ThreadPoolExecutor(20) as pool:
        slow = [pool.submit(httpx.get, f"{server.url}/until{given}", timeout=LONG) for _ in range(20)]
        assert until(lambda: in_flight(server.url) == len(slow))
        assert [200, 200] == [client.get(path).status_code for path in ("/quick", "/echo")]
        assert not any(one.done() for one in slow)
        given.touch()
        assert {200} == {one.result().status_code for one in slow}


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once(start: Start, sign: signal.Signals) -> None:
    """With nothing to do but an open connection, a signal ends it with exit code 0, and nothing has to be killed."""
    server = start()
    with httpx.Client(base_url=server.url, timeout=LONG) as client:
        client.get("/quick")
        assert 0 == server.stop(sign)
    assert "illing" not in server.log_file.read_text()


def test_what_was_begun_is_finished(start: Start, tmp_path: Path) -> None:
    """A signal lets a request that has begun come to its end, and its line into the log."""
    server = start()
    given = tmp_path / "given"
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(httpx.get, f"{server.url}/until{given}", timeout=LONG)
        assert until(lambda: in_flight(server.url) == 1)
        server.process.send_signal(signal.SIGTERM)
        assert until(lambda: not accepts(server))
        assert not begun.done()
        given.touch()
        assert 200 == begun.result().status_code
    assert 0 == server.ended()
    assert f"GET /until{given} 200" in server.log_file.read_text()


def accepts(server: Running) -> bool:
    """Whether the server takes connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads the list of processes from /proc")
def test_a_killed_server_is_gone(start: Start) -> None:
    """When the first process is killed, the workers end too and the port is free."""
    server = start(workers=2)
    assert until(lambda: len(server.workers()) >= 2)  # the first one answers before the second is there
    workers = server.workers()
    server.stop(signal.SIGKILL)
    assert until(lambda: not any(map(lives, workers)))
    start(port=server.port)


def figure(server: Running, name: str) -> int:
    """A figure of `/metrics`; 0 where it is not there, -1 where nobody answers."""
    try:
        text = httpx.get(f"{server.url}/metrics", timeout=LONG).text
    except httpx.HTTPError:
        return -1
    found = re.findall(rf"^{re.escape(name)} (\d+)$", text, re.MULTILINE)
    return int(found[0]) if found else 0


def test_the_figures_of_all_workers(start: Start) -> None:
    """Whichever worker is asked, `/metrics` has the figures of all, and those of one that was killed stay."""
    server = start(workers=2)
    assert until(lambda: figure(server, "signalbook_workers") == 2)
    name = 'signalbook_requests_total{method="GET",status="404"}'
    assert 0 == figure(server, name)
    for _ in range(40):  # a connection each, so that both workers get some
        httpx.get(f"{server.url}/missing", timeout=LONG)
    assert until(lambda: figure(server, name) == 40)  # the last is counted once it is sent
    assert [40] * 10 == [figure(server, name) for _ in range(10)]
    first, second = server.workers()
    os.kill(first, signal.SIGKILL)
    assert until(lambda: len({*server.workers()} - {first, second}) == 1)
    assert until(lambda: figure(server, "signalbook_workers") == 2)
    assert 40 == figure(server, name)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads the list of processes from /proc")
def test_a_single_worker_is_started_again(start: Start) -> None:
    """A worker that dies is followed by another, also where it is the only one, and the figures go on."""
    server = start()
    name = 'signalbook_requests_total{method="GET",status="404"}'
    httpx.get(f"{server.url}/missing", timeout=LONG)
    assert until(lambda: figure(server, name) == 1)  # a request is counted once its answer is sent
    (worker,) = server.workers()
    os.kill(worker, signal.SIGKILL)
    assert until(lambda: worker not in server.workers() and figure(server, name) == 1)
    httpx.get(f"{server.url}/missing", timeout=LONG)
    assert until(lambda: figure(server, name) == 2)
    assert "its store in memory with it" in server.log_file.read_text()


def test_it_starts_quickly(start: Start) -> None:
    """From the command to the first accepted connection it takes little work, whatever else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert 0 == start().stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 6


def test_a_port_in_use(server: Running) -> None:
    """A port that is taken is refused in words."""
    with pytest.raises(UsageError, match=f"cannot listen at 127.0.0.1 port {server.port}"):
        serve(make, Settings(port=server.port, store="memory:"))


def test_an_address_that_is_none() -> None:
    """So is an address this machine does not have."""
    with pytest.raises(UsageError, match=r"cannot listen at 203\.0\.113\.1"):
        serve(make, Settings(host="203.0.113.1", open=True))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls(start: Start, tmp_path: Path) -> None:
    """With a certificate it speaks HTTPS, and says so in every link."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "1"]
    subprocess.run([*command, "-subj", "/CN=localhost"], check=True, capture_output=True)
    server = start(cert=cert, key=key)
    context = ssl._create_unverified_context()
    answer = httpx.get(f"{server.url}/quick", verify=context, timeout=LONG)
    assert {"base": server.url, "method": "GET"} == answer.json()
    assert server.url.startswith("https://")


def test_a_password_is_not_shown() -> None:
    """The line that announces a server names its store without a password."""
    assert "postgresql://…@db.example/x" == _shown("postgresql://me:secret@db.example/x")
    assert "signalbook.db" == _shown("signalbook.db")


class LeavingProtocol:
    """A client of a stream that leaves after its first piece."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.left = asyncio.Event()

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> Any:
        """The place where pieces go."""
        return self

    async def send_bytes(self, piece: bytes) -> None:
        """Take a piece, and leave."""
        self.taken.append(piece)
        self.left.set()

    async def client_disconnect(self) -> None:
        """Wait until the client has left."""
        await self.left.wait()


def test_a_stream_ends_when_its_client_leaves() -> None:
    """What it holds is given back at once, also where nothing more is ever sent that could fail."""
    told: list[str] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            told.append("ended")

    client = LeavingProtocol()
    stream = Stream(200, [], pieces(), close=lambda: told.append("closed"))
    asyncio.run(_send(cast("Any", client), stream, "GET"))
    assert ([b"first"], ["ended", "closed"]) == (client.taken, told)


def test_a_stream_that_is_not_begun_is_closed() -> None:
    """`HEAD` asks for none of it."""
    told: list[str] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"never"

    class Heads:
        def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None:
            told.append(f"head {status}")

    asyncio.run(_send(cast("Any", Heads()), Stream(200, [], pieces(), close=lambda: told.append("closed")), "HEAD"))
    assert ["head 200", "closed"] == told
