"""The commands import confluent and export confluent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from signalbook.app import peer_transport
from signalbook.client import Call
from signalbook.replication.confluent import ConfluentCopy
from signalbook.replication.target import ReplicationReport
from tests.cli.conftest import Run
from tests.conftest import StartServer

PING = '{"type":"record","name":"Ping","fields":[]}'
PONG = '{"type":"record","name":"Pong","fields":[{"name":"of","type":"Ping"}]}'


def ask(store: str, method: str, path: str, body: Any = None) -> Any:
    """One request to Confluent's API of a store."""
    transport = peer_transport(store)
    try:
        content = None if body is None else json.dumps(body).encode()
        reply = transport.answer(Call(method, f"/confluent{path}", content))
        return json.loads(reply.content) if reply.content else None
    finally:
        transport.close()


@pytest.fixture
def filled(tmp_path: Path) -> str:
    """A store with two subjects, one of which refers to the other, and a deleted one."""
    store = str(tmp_path / "filled.db")
    ask(store, "PUT", "/config", {"compatibility": "FULL"})
    ask(store, "POST", "/subjects/yard%2Fping/versions", {"schema": PING})
    refers = [{"name": "Ping", "subject": "yard/ping", "version": 1}]
    ask(store, "POST", "/subjects/pong-value/versions", {"schema": PONG, "references": refers})
    ask(store, "POST", "/subjects/old/versions", {"schema": '"string"'})
    ask(store, "DELETE", "/subjects/old")
    return store


def test_import_from_a_server(run: Run, filled: str, target: tuple[str, str], start_server: StartServer) -> None:
    """A registry comes over whole, to a store and to a server; again there is nothing to do."""
    url = f"{start_server(store=filled)}/confluent"
    first = run("import", "confluent", url, *target, "--json")
    assert (0, {"configured": 1, "deleted": 1, "verified": 3, "written": 3}) == (first.code, first.json["outcomes"])
    second = run("import", "confluent", url, *target)
    assert (0, "", "signalbook: 3 verified\n") == (second.code, second.out, second.err)


def test_export_to_a_server(run: Run, filled: str, start_server: StartServer, tmp_path: Path) -> None:
    """The other way: a registry that speaks the API has the ids then."""
    other = str(tmp_path / "other.db")
    url = f"{start_server(store=other)}/confluent"
    done = run("export", "confluent", url, "--store", filled)
    assert (0, "signalbook: 1 configured, 1 deleted, 3 verified, 3 written\n") == (done.code, done.err)
    shown = [ask(store, "GET", "/subjects/pong-value/versions/1") for store in (filled, other)]
    assert [shown[0]["id"]] * 2 == [one["id"] for one in shown]


def test_export_by_itself(run: Run, filled: str) -> None:
    """The command still prints the registry; its options do not stand before a command of the group."""
    whole = run("export", "--store", filled, "--json")
    assert "schemagroups" in whole.json
    wrong = run("export", "--store", filled, "confluent", "http://127.0.0.1:1")
    assert (2, True) == (wrong.code, "put the options behind the whole command" in wrong.err)


def test_a_refusal_is_told(run: Run, filled: str, start_server: StartServer, tmp_path: Path) -> None:
    """What the target has otherwise is told by name, and by exit code 1."""
    target = str(tmp_path / "target.db")
    ask(target, "POST", "/subjects/mine/versions", {"schema": '"int"'})
    url = f"{start_server(store=filled)}/confluent"
    done = run("import", "confluent", url, "--store", target)
    assert 1 == done.code
    assert "refused: /subjects/yard/ping/versions/1: " in done.err
    assert "refused: /subjects/pong-value/versions/1: it refers to version 1 of 'yard/ping', which was not" in done.err


def test_credentials(run: Run, filled: str, start_server: StartServer, tmp_path: Path) -> None:
    """Without credentials it says so; they come as a user with a password, as a token, from a file."""
    secret = "a-token-of-some-length"
    url = (
        f"{start_server('--read-token', secret, '--write-token', 'another-one-of-some-length', store=filled)}/confluent"
    )
    refused = run("import", "confluent", url, "--store", "copy.db")
    assert (3, True) == (refused.code, "give its credentials" in refused.err)
    file = tmp_path / "secret"
    file.write_text(f"me:{secret}\n", encoding="utf-8")
    given = (["--credentials", f"me:{secret}"], ["--credentials", secret], ["--credentials-file", str(file)])
    assert [0, 0, 0] == [run("import", "confluent", url, "--store", "copy.db", *one).code for one in given]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["http://127.0.0.1:1"], 3, "nothing answers at http://127.0.0.1:1"),
        (["http://me:secret@127.0.0.1:1"], 2, "give them with --credentials"),
        (["http://127.0.0.1:1/?x=secret"], 2, "leave out what begins with"),
        (["http://127.0.0.1:1/#x"], 2, "leave out what begins with"),
        (["http://[::1"], 2, "is not a server address"),
        (["127.0.0.1:1"], 2, "is not a server address"),
        (["http://127.0.0.1:1", "--every", "0"], 2, "--every"),
    ],
)
def test_what_cannot_be_imported(arguments: list[str], code: int, words: str, run: Run) -> None:
    """Each failure is one sentence and an exit code."""
    done = run("import", "confluent", *arguments, "--store", "copy.db")
    assert (code, True) == (done.code, words in done.err)
    assert "secret" not in done.err


def test_a_store_that_is_not_there(run: Run) -> None:
    """It is not made by an export."""
    done = run("export", "confluent", "http://127.0.0.1:1", "--store", "nothing.db")
    assert (3, False) == (done.code, Path("nothing.db").exists())


def test_a_root_that_is_not_one(run: Run, start_server: StartServer) -> None:
    """The root of a catalog is not that of its registry, and the remedy is said."""
    done = run("import", "confluent", start_server(), "--store", "copy.db")
    assert (3, True) == (done.code, "That of a Signalbook ends in /confluent" in done.err)


Hostile = Callable[[Callable[[str], bytes]], str]


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """Start a server that sends what a test makes of the path, byte for byte."""
    running: list[ThreadingHTTPServer] = []

    def start(made: Callable[[str], bytes]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Send the bytes and leave."""
                self.wfile.write(made(self.path))
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Keep still."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "broke off its answer"),
        (HEAD + b'content-length: 100\r\n\r\n["a"', "broke off its answer"),
        (HEAD + b"content-length: 6\r\n\r\n<html>", "other than JSON"),
        (HEAD + b"content-length: 99999999999\r\n\r\n" + b" " * (65 << 20), "sends more than 64 MiB"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "is not followed"),
        (b"HTTP/1.1 500 no\r\ncontent-length: 0\r\n\r\n", "answered 500"),
    ],
)
def test_a_registry_that_is_not_a_friend(sent: bytes, words: str, hostile: Hostile, run: Run) -> None:
    """Whatever it sends ends in a sentence; nothing is written."""
    done = run("import", "confluent", hostile(lambda path: sent), "--store", "copy.db")
    assert (3, True) == (done.code, words in done.err), done.err
    assert [] == ask("copy.db", "GET", "/subjects?deleted=true")


def test_following_tells_what_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed is told, a problem once until it changes, and a look that found nothing is not."""

    def reports(self: ConfluentCopy, every: float) -> Iterator[ReplicationReport]:
        assert 5.0 == every
        for outcome in ("written", "", "failed", "failed", "refused", "refused", ""):
            report = ReplicationReport(failure="nothing answers" if outcome == "failed" else "")
            report.add([{"xid": "/subjects/a/versions/1", "outcome": outcome}] if outcome not in ("", "failed") else [])
            yield report

    monkeypatch.setattr(ConfluentCopy, "follow", reports)
    done = run("import", "confluent", "http://127.0.0.1:1", "--store", "copy.db", "--follow", "--every", "5")
    told = ["signalbook: 1 written", "signalbook: nothing answers", "refused: /subjects/a/versions/1: "]
    assert (0, [*told, "signalbook: 1 refused"]) == (done.code, done.err.splitlines())


def test_a_store_keeps_its_contexts(run: Run, filled: str, start_server: StartServer, tmp_path: Path) -> None:
    """A command on a store that is served with another default group leaves that as it is."""
    store = str(tmp_path / "target.db")
    start_server("--confluent-group", "kafka", store=store)
    url = f"{start_server(store=filled)}/confluent"
    assert 0 == run("import", "confluent", url, "--store", store).code
    shown = run("get", "/schemagroups", "--store", store, "--json")
    assert ["kafka"] == list(shown.json)
