import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import httpx
import pytest

from signalbook import app
from signalbook.cli.serve import size
from signalbook.settings import Settings
from tests.cli.conftest import CATALOG, Run
from tests.conftest import StartServer
from tests.patience import LONG, answers, until


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that `serve` was called with; nothing is started."""
    seen: list[Settings] = []
    monkeypatch.setattr(app, "serve", seen.append)
    return seen


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), Settings()),
        (("--port", "9000", "--registry-id", "r", "--store", "memory:", "--model", "empty", "--specversion", "1.0-rc4"),
         Settings(port=9000, registryid="r", store="memory:", model="empty", specversion="1.0-rc4")),
        (("--host", "0.0.0.0", "--open"), Settings(host="0.0.0.0", open=True)),
        (("--host", "::", "--read-token", "r", "--write-token-file", "token"),
         Settings(host="::", read_token="r", write_token="from-file")),
        (("--read-only", "--no-log", "--workers", "2", "--max-body", "1m", "--base-url", "https://x/", "--trust-proxy"),
         Settings(read_only=True, log=False, workers=2, max_body=1024 * 1024, base_url="https://x/", trust_proxy=True)),
        (("--cert", "token", "--key", "token"), Settings(cert=Path("token"), key=Path("token"))),
    ],
)  # fmt: skip
def test_options_become_settings(
    run: Run, served: list[Settings], tmp_path: Path, args: tuple[str, ...], expected: Settings
) -> None:
    """Each option sets what it says."""
    (tmp_path / "token").write_text("from-file\nsecond line\n")
    result = run("serve", *args)
    assert (0, [expected]) == (result.code, served), result.err


def test_tokens_come_from_the_environment(
    run: Run, served: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SIGNALBOOK_READ_TOKEN and SIGNALBOOK_WRITE_TOKEN_FILE are read where no option is given."""
    (tmp_path / "token").write_text("w\n")
    monkeypatch.setenv("SIGNALBOOK_READ_TOKEN", "r")
    monkeypatch.setenv("SIGNALBOOK_WRITE_TOKEN_FILE", "token")
    run("serve")
    assert [Settings(read_token="r", write_token="w")] == served


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--host", "0.0.0.0"), "say --open"),
        (("--port", "70000"), "--port"),
        (("--body-timeout", "0"), "--body-timeout"),
        (("--max-body", "much"), "'much' is not a size"),
        (("--specversion", "9"), "is not one of"),
        (("--cert", "x"), "belong together"),
    ],
)
def test_what_cannot_work_is_refused(run: Run, served: list[Settings], args: tuple[str, ...], words: str) -> None:
    """Options that cannot work end with 2 before anything is opened."""
    result = run("serve", *args)
    assert (2, []) == (result.code, served)
    assert words in result.err


@pytest.mark.parametrize(
    ("args", "environment", "words"),
    [
        (("--read-token", ""), {}, "--read-token is given but empty"),
        (("--write-token", ""), {}, "--write-token is given but empty"),
        (("--read-token", " ,"), {}, "--read-token is given but empty"),
        (("--read-token", "", "--read-token-file", "token"), {}, "--read-token is given but empty"),
        (("--read-token-file", "empty"), {}, "'empty' is empty"),
        (("--read-token-file", "commas"), {}, "--read-token is given but empty"),
        ((), {"READ_TOKEN": ""}, "SIGNALBOOK_READ_TOKEN is set but empty"),
        ((), {"READ_TOKEN": " "}, "--read-token is given but empty"),
        ((), {"WRITE_TOKEN": ""}, "SIGNALBOOK_WRITE_TOKEN is set but empty"),
        (("--read-token", "r"), {"WRITE_TOKEN_FILE": ""}, "SIGNALBOOK_WRITE_TOKEN_FILE is set but empty"),
    ],
)
def test_an_empty_token_is_refused(
    run: Run, served: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    args: tuple[str, ...], environment: dict[str, str], words: str,
) -> None:  # fmt: skip
    """A variable that was not set does not open the server."""
    for name, text in (("empty", "\n"), ("commas", ",,\n"), ("token", "t\n")):
        (tmp_path / name).write_text(text)
    for name, text in environment.items():
        monkeypatch.setenv(f"SIGNALBOOK_{name}", text)
    result = run("serve", *args)
    assert (2, []) == (result.code, served)
    assert words in result.err


def test_an_option_takes_the_place_of_an_empty_variable(
    run: Run, served: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said on the command line counts."""
    monkeypatch.setenv("SIGNALBOOK_READ_TOKEN", "")
    run("serve", "--read-token", "r", "--write-token", "w")
    assert [Settings(read_token="r", write_token="w")] == served


def test_a_server_with_a_read_token_alone_takes_no_writes(run: Run, start_server: StartServer) -> None:
    """A token for reading does not write, also where there is none for writing."""
    server = start_server("--read-token", "r")
    assert 0 == run("get", "/", "--server", server, "--token", "r").code
    for token in ("r", "x"):
        refused = run("put", "/messagegroups/g", "--data", "{}", "--server", server, "--token", token)
        assert (1, token == "r") == (refused.code, "start it with --write-token" in refused.err)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("16m", 16 << 20), ("2K", 2048), ("1g", 1 << 30), ("3MiB", 3 << 20), ("5mb", 5 << 20)],
)
def test_sizes(text: str, expected: int) -> None:
    """A size is bytes, or a number with k, m or g."""
    assert expected == size(click.Context(click.Command("x")), click.Option(["--x"]), text)


def test_tokens_are_sent_by_the_commands(run: Run, start_server: StartServer) -> None:
    """A server with tokens refuses a command without one and takes it with the right one."""
    server = start_server("--read-token", "r", "--write-token", "w")
    refused = run("get", "/", "--server", server)
    assert 1 == refused.code
    assert "[unauthorized]; give the token with --token" in refused.err
    assert 0 == run("get", "/", "--server", server, "--token", "r").code
    forbidden = run("put", "/messagegroups/g", "--data", "{}", "--server", server, "--token", "r")
    assert 1 == forbidden.code
    assert "[forbidden]" in forbidden.err
    assert 0 == run("put", "/messagegroups/g", "--data", "{}", "--server", server, "--token", "w").code


def test_what_is_no_registry_is_told_so(run: Run, tmp_path: Path, free_port: int) -> None:
    """A server that is no xRegistry is named as such."""
    process = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(free_port), "--bind", "127.0.0.1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{free_port}"
        assert until(lambda: answers(free_port))
        for args in (("get", "/"), ("get", "/nothing"), ("put", "/x", "--data", "{}")):
            result = run(*args, "--server", address)
            assert 3 == result.code
            assert "is it an xRegistry server?" in result.err
    finally:
        process.terminate()
        process.wait()


def test_a_port_in_use_is_one_sentence(start_server: StartServer, tmp_path: Path) -> None:
    """A port that is taken is named, without a traceback."""
    port = start_server().rpartition(":")[2]
    second: Any = subprocess.run(
        [sys.executable, "-m", "signalbook", "serve", "--port", port, "--store", "memory:"],
        capture_output=True,
        text=True,
        timeout=LONG,
        cwd=tmp_path,
    )
    assert second.returncode not in (0, -signal.SIGTERM)
    assert "Traceback" not in second.stderr
    assert port in second.stderr


def serve_once(*args: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """What a server that cannot start leaves behind."""
    command = [sys.executable, "-m", "signalbook", "serve", "--port", "0", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG, cwd=cwd)


def test_a_store_that_cannot_be_opened_ends_with_3(tmp_path: Path) -> None:
    """It is one sentence, said by the command itself and not by a worker."""
    failed = serve_once("--store", "absent/x.db", cwd=tmp_path)
    assert (3, "") == (failed.returncode, failed.stdout)
    assert 1 == failed.stderr.count("\n")
    assert "cannot be opened" in failed.stderr


def test_a_store_keeps_its_id(run: Run, tmp_path: Path) -> None:
    """Another --registry-id than the store's is named, not silently ignored."""
    assert 0 == run("put", "/messagegroups/g", "--data", "{}").code
    command = [sys.executable, "-m", "signalbook", "serve", "--port", "0", "--registry-id", "other"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "serving" in process.stdout.readline()
        process.terminate()
        assert "the store holds the registry 'signalbook', which keeps its id" in process.stderr.read()


def test_a_stop_at_the_start_ends_at_once(tmp_path: Path) -> None:
    """SIGTERM while the workers are coming up ends them; none has to be killed after a wait."""
    command = [sys.executable, "-m", "signalbook", "serve", "--port", "0", "--no-log"]
    for delay in (0.3, 0.5, 0.8):
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=tmp_path) as process:
            time.sleep(delay)
            process.terminate()
            assert b"Killing" not in process.communicate(timeout=LONG)[1]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_that_nobody_knows(
    run: Run, start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named as the reason, and a file of one's own authority mends it."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names], check=True, capture_output=True)
    server = start_server("--cert", cert, "--key", key)
    (tmp_path / "catalog.json").write_text(json.dumps(CATALOG))
    moved = '{"protocol": "NATS", "subject": "x"}'
    commands = (
        ("load", "catalog.json", "--server", server),
        ("get", "/", "--server", server),
        ("put", "/messagegroups/g", "--data", "{}", "--server", server),
        ("export", "--server", server),
        ("delete", "/messagegroups/g", "--server", server),
        ("sample", "--catalog", server),
        ("match", "--catalog", server),
        ("replicate", "pull", "--from", server, "--to", "copy.db"),
        ("replicate", "push", "--from", "copy.db", "--to", server),
    )
    for args in commands:
        refused = run(*args, stdin=moved)
        assert refused.code in (1, 3), args
        assert "is not trusted here; name the file of its authority (PEM) with --ca" in refused.err, args
        with_ca = run(*args, "--ca", cert, stdin=moved)
        assert "not trusted" not in with_ca.err, args
        assert with_ca.code == 0 or args[0] == "match", (args, with_ca)
    assert 2 == run("get", "/", "--server", server, "--ca", key).code
    monkeypatch.setenv("SIGNALBOOK_CA", cert)
    assert 0 == run("get", "/", "--server", server).code


def test_outcomes_are_counted(run: Run, start_server: StartServer) -> None:
    """`/metrics` counts what became of the messages that `/match` and `/validate` were asked about."""
    server = start_server()
    messages = {"m": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "a.b"}}}}
    httpx.put(f"{server}/messagegroups/g", json={"messages": messages}, timeout=LONG).raise_for_status()
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "a.b"}
    for body in (event, {**event, "type": "other"}, {"specversion": "1.0"}):
        assert 200 == httpx.post(f"{server}/match", json=body, timeout=LONG).status_code
    xid = "/messagegroups/g/messages/m"
    assert 200 == httpx.post(f"{server}/validate", params={"definition": xid}, json=event, timeout=LONG).status_code
    text = httpx.get(f"{server}/metrics", timeout=LONG).text
    found = {name: f'signalbook_messages_total{{outcome="{name}"}} {number}' in text.splitlines()
             for name, number in {"matched": 2, "unexpected": 1, "malformed": 1, "ambiguous": 0}.items()}  # fmt: skip
    assert all(found.values()), text
