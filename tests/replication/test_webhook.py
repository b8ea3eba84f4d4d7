"""A source that calls when it changes: subscriptions and deliveries over real sockets."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from signalbook.client import Call, Client, HttpTransport, RegistryReply, RemoteError
from signalbook.errors import UsageError
from signalbook.replication import webhook as webhooks
from signalbook.replication.replicate import Replication
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.target import ReplicationReport
from signalbook.replication.webhook import Webhook, WebhookListener
from tests.conftest import StartServer
from tests.patience import LONG, until
from tests.replication.peers import ApiPeer

MESSAGE = "/messagegroups/g/messages/m"
HERE = "127.0.0.1:0"


class Source(Client):
    """A server; the paths that it was asked for are kept."""

    def __init__(self, address: str) -> None:
        super().__init__(HttpTransport(address))
        self.asked: list[str] = []

    def send(self, call: Call) -> RegistryReply:
        """The reply to one call."""
        self.asked.append(f"{call.method} {call.path}")
        return super().send(call)

    def subscriptions(self) -> list[dict[str, Any]]:
        """What it was asked to send where."""
        found: list[dict[str, Any]] = httpx.get(f"{self.address}/subscriptions", timeout=LONG).json()
        return found


@pytest.fixture
def source(start_server: StartServer) -> Iterator[Source]:
    """A server that may call this machine."""
    peer = Source(start_server("--no-log", "--allow-sink", "127.0.0.1"))
    yield peer
    peer.close()


@pytest.fixture
def webhook(source: Source) -> Iterator[Webhook]:
    """A webhook that the source may call."""
    made = Webhook(source, HERE)
    yield made
    made.close()


class Following:
    """A replication that follows in a thread until the test ends."""

    def __init__(self, source: Client, target: ApiPeer, webhook: Webhook, every: float = 10 * LONG) -> None:
        self.reports: list[ReplicationReport] = []
        self._ended = threading.Event()
        self._reports = Replication(source, target, ReplicationScope()).follow(every, webhook=webhook, wait=1)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for report in self._reports:
            self.reports.append(report)
            if self._ended.is_set():
                return

    def end(self, wake: Callable[[], object]) -> None:
        """Let it end with its next report, for which `wake` sees."""
        self._ended.set()
        wake()
        self._thread.join(LONG)
        assert not self._thread.is_alive()


def put(source: Client, xid: str) -> None:
    """Write at the source."""
    httpx.put(source.address + xid, json={}, timeout=LONG).raise_for_status()


def test_a_change_rings(source: Source, webhook: Webhook, b: ApiPeer) -> None:
    """The source is subscribed to, then caught up with; each change is at the target at once, and nothing polls."""
    put(source, MESSAGE)
    following = Following(source, b, webhook)
    assert until(lambda: len(following.reports) > 1)
    asked = len(source.asked)
    time.sleep(0.5)
    assert asked == len(source.asked)
    for number in range(5):
        put(source, f"{MESSAGE}{number}")
        assert until(lambda: b.api("GET", f"{MESSAGE}{number}").status == 200)
    assert [] == [path for path in source.asked if "wait=" in path]
    (one,) = source.subscriptions()
    assert ("active", {"credentialtype": "ACCESSTOKEN", "accesstokentype": "bearer"}) == (
        one["status"]["state"],
        one["sinkcredential"],
    )
    following.end(lambda: put(source, f"{MESSAGE}-last"))
    webhook.close()
    assert [] == source.subscriptions()


def test_a_source_that_cannot_call(start_server: StartServer, b: ApiPeer) -> None:
    """Where the source refuses the sink, it is told once, and the feed is waited at."""
    source = Source(start_server("--no-log"))
    webhook = Webhook(source, HERE)
    following = Following(source, b, webhook)
    for number in range(3):
        put(source, f"{MESSAGE}{number}")
        assert until(lambda: b.api("GET", f"{MESSAGE}{number}").status == 200)
    failures = [report.failure for report in following.reports if report.failure]
    assert 1 == len(failures)
    assert "--allow-sink" in failures[0]
    assert any("wait=" in path for path in source.asked)
    following.end(lambda: put(source, f"{MESSAGE}-last"))
    webhook.close()
    source.close()


def test_what_an_earlier_run_left_is_taken_up(source: Source) -> None:
    """A run that was killed leaves its subscription; the next at the same place renews it and has its own secret."""
    first = Webhook(source, HERE)
    assert first.wait(0)
    place = urlsplit(first._listener.address).netloc
    first._listener.close()
    (before,) = source.subscriptions()
    second = Webhook(source, place)
    assert second.wait(0)
    assert [before["id"]] == [one["id"] for one in source.subscriptions()]
    put(source, MESSAGE)
    assert second._called.wait(LONG)
    second.close()


def test_a_subscription_that_was_deleted_is_made_again(source: Source, webhook: Webhook) -> None:
    """When nothing rings for a while, the subscription is looked after."""
    assert webhook.wait(0)
    (before,) = source.subscriptions()
    httpx.delete(f"{source.address}/subscriptions/{before['id']}", timeout=LONG).raise_for_status()
    assert webhook.wait(0.05)
    (after,) = source.subscriptions()
    assert before["id"] != after["id"]
    put(source, MESSAGE)
    assert webhook._called.wait(LONG)


def test_a_bell_that_cannot_be_reached_any_more(source: Source, webhook: Webhook) -> None:
    """Deliveries that fail are seen, and the source is not waited for; after a while it is asked again."""
    assert webhook.wait(0)
    webhook._listener.close()
    put(source, MESSAGE)
    assert until(lambda: bool(source.subscriptions()[0]["status"].get("failures")))
    assert not webhook.wait(0.05)
    assert "nothing answers" in webhook.refusal
    assert not webhook.wait(0.05)


class Moody:
    """A source that does at first not answer, then refuses, then agrees."""

    address = name = "http://moody.test"

    def __init__(self) -> None:
        errors = [RemoteError("nothing answers"), RemoteError("busy", status=503), RemoteError("its token", status=403)]
        self.answers = [*errors, None]

    def answer(self, call: Call) -> RegistryReply:
        """The next answer; what lists and what makes count as one."""
        error = self.answers[0] if call.method == "GET" else self.answers.pop(0)
        if error is not None:
            self.answers = self.answers[1:] if call.method == "GET" else self.answers
            raise error
        return RegistryReply(self.name, 200, {}, b"[]" if call.method == "GET" else b'{"id": "1"}')

    def close(self) -> None:
        """There is nothing to close."""


def test_a_source_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is the follower's to deal with, and it is asked again at once; after a refusal only in a while."""
    webhook = Webhook(Client(Moody()), HERE)
    for words in ("nothing answers", "busy"):
        with pytest.raises(RemoteError, match=words):
            webhook.wait(0)
    assert (False, "its token") == (webhook.wait(0), webhook.refusal)
    assert not webhook.wait(0)
    monkeypatch.setattr(webhook, "_next", 0.0)
    assert webhook.wait(0)
    webhook._id = ""  # there is nothing to delete
    webhook.close()


def call(
    listener: WebhookListener, method: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, dict[str, str]]:
    """What a listener answers."""
    connection = http.client.HTTPConnection(urlsplit(listener.address).netloc, timeout=LONG)
    connection.putrequest(method, "/")
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.headers.items()}


def test_who_is_heard() -> None:
    """Only a caller with the secret rings, and only it is agreed with; what is too large is refused unread."""
    calls: list[None] = []
    listener = WebhookListener(HERE, lambda: calls.append(None))
    known = {"Authorization": f"Bearer {listener.secret}"}
    try:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": listener.secret}):
            assert 401 == call(listener, "POST", headers)[0]
            status, answered = call(listener, "OPTIONS", {**headers, "WebHook-Request-Origin": "a.example"})
            assert (401, None) == (status, answered.get("webhook-allowed-origin"))
        assert 413 == call(listener, "POST", {**known, "Content-Length": "99999999999"})[0]
        assert 413 == call(listener, "POST", {**known, "Transfer-Encoding": "chunked"})[0]
        assert 501 == call(listener, "GET", known)[0]
        assert [] == calls
        assert 204 == call(listener, "POST", known, b"x" * 1000)[0]
        assert [None] == calls
        status, answered = call(listener, "OPTIONS", {**known, "WebHook-Request-Origin": "a.example"})
        assert (200, "a.example") == (status, answered["webhook-allowed-origin"])
    finally:
        listener.close()


@contextmanager
def held_by_others() -> Iterator[Callable[[], bool]]:
    """A listener whose connections are all held by callers who say nothing; whether it answers one more."""
    listener = WebhookListener(HERE, lambda: None)
    known = {"Authorization": f"Bearer {listener.secret}"}

    def is_answered() -> bool:
        try:
            return 204 == call(listener, "POST", known)[0]
        except (ConnectionError, http.client.HTTPException):
            return False

    with ExitStack() as stack:
        stack.callback(listener.close)
        place = urlsplit(listener.address)
        for _ in range(webhooks._MOST_CONNECTIONS):
            connection = http.client.HTTPConnection(place.netloc, timeout=LONG)
            stack.callback(connection.close)
            connection.connect()
        yield is_answered


def test_connections_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers that hold their connections keep no more than a few of them, for no longer than a while."""
    monkeypatch.setattr(webhooks, "_SECONDS", LONG)
    with held_by_others() as is_answered:
        assert until(lambda: not is_answered())
    monkeypatch.setattr(webhooks, "_SECONDS", 0.1)
    with held_by_others() as is_answered:
        assert until(is_answered)


@pytest.mark.parametrize("place", ["", "x", "127.0.0.1", ":80", "127.0.0.1:x", "127.0.0.1:99999", "a@b:1", "h:1/x"])
def test_places_that_are_none(place: str) -> None:
    """What nothing can listen at is wrong usage."""
    with pytest.raises(UsageError, match="listen"):
        WebhookListener(place, lambda: None)


def test_a_place_that_is_taken() -> None:
    """So is a place where somebody listens already; one of IPv6 is written in brackets."""
    listener = WebhookListener(HERE, lambda: None)
    with pytest.raises(UsageError, match="nothing can listen"):
        WebhookListener(urlsplit(listener.address).netloc, lambda: None)
    listener.close()
