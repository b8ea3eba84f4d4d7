"""`/subscriptions`: the CloudEvents Subscriptions API, and what is delivered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from signalbook.server.events import delivery
from signalbook.server.events.subscriptions import read_subscription
from tests.cases import Case, cases
from tests.conftest import StartServer
from tests.patience import LONG, until
from tests.registry.conftest import BASE, Api, MakeApi, make_api
from tests.server.sink import Sink

__all__ = ["make_api"]

LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A sink that takes everything."""
    sink = Sink().start()
    yield sink
    sink.stop()


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A registry that may send to this machine, with its deliveries running."""
    api = make_api(allow_sinks=LOOPBACK)
    api.service.start()
    return api


def wish(sink: Sink, **more: Any) -> dict[str, Any]:
    """A subscription to everything."""
    return {"protocol": "HTTP", "sink": sink.url, **more}


def subscribe(api: Api, body: dict[str, Any]) -> str:
    """Make a subscription and give its id."""
    reply = api("POST", "/subscriptions", body)
    assert 201 == reply.status, reply.body
    return str(reply.json["id"])


# ---- the API


def test_create_get_list_update_delete(api: Api, sink: Sink) -> None:
    """Each operation answers with the realised object."""
    reply = api("POST", "/subscriptions", wish(sink, id="mine", types=["io.xregistry.group.created"]))
    made = reply.json
    assert (201, f"{BASE}/subscriptions/{made['id']}") == (reply.status, reply.headers["location"])
    assert {
        "id": made["id"],
        "protocol": "HTTP",
        "sink": sink.url,
        "types": ["io.xregistry.group.created"],
        "config": {"mode": "structured"},
        "protocolsettings": {"method": "POST"},
        "status": {"state": "active", "delivered": 0, "cursor": "0"},
    } == made
    assert "mine" != made["id"]
    path = f"/subscriptions/{made['id']}"
    assert made == api("GET", path).json
    assert [made] == api("GET", "/subscriptions").json
    changed = api("PUT", path, wish(sink, config={"mode": "binary"})).json
    assert ({"mode": "binary"}, None) == (changed["config"], changed.get("types"))
    assert changed == api("DELETE", path).json
    assert (404, 404, 404) == tuple(api(m, path, wish(sink)).status for m in ("GET", "DELETE", "PUT"))
    assert [] == api("GET", "/subscriptions").json
    assert "GET, OPTIONS, POST" == api("OPTIONS", "/subscriptions").headers["allow"]
    assert "DELETE, GET, OPTIONS, PUT" == api("OPTIONS", path).headers["allow"]
    assert 405 == api("PATCH", path, {}).status


@cases("server/subscriptions_refused")
def test_refused(case: Case, api: Api) -> None:
    """What cannot be done is refused when it is asked for, with the reason."""
    reply = api("POST", "/subscriptions", case.given)
    assert 400 == reply.status
    assert case.expect in reply.body.decode()


def test_the_form_of_the_first_catalog() -> None:
    """Seed 004 section 5.5: `filter` and `HTTPS` are the same subscription."""
    body = {
        "source": "https://source.example.com",
        "protocol": "HTTPS",
        "sink": "https://target.example.com/notifications",
        "filter": {"prefix": {"subject": "/messagecatalog/5"}},
    }
    realised, secret = read_subscription(body, "https://source.example.com", "/subscriptions")
    assert {} == secret
    assert ("HTTP", [{"prefix": {"subject": "/messagecatalog/5"}}]) == (realised["protocol"], realised["filters"])


def test_secrets_are_never_shown(api: Api, sink: Sink) -> None:
    """A credential is sent to its sink and to nobody else, and stays where an update does not name it."""
    credential = {"credentialtype": "PLAIN", "identifier": "me", "secret": "s3cr3t"}
    id_ = subscribe(api, wish(sink, sinkcredential=credential))
    for reply in (api("GET", f"/subscriptions/{id_}"), api("GET", "/subscriptions")):
        assert b"s3cr3t" not in reply.body
    assert {"credentialtype": "PLAIN", "identifier": "me"} == api("GET", f"/subscriptions/{id_}").json["sinkcredential"]
    api("PUT", f"/subscriptions/{id_}", wish(sink))
    api("PUT", "/messagegroups/g", {})
    assert sink.wait(lambda: len(sink.received) == 3)
    assert {"Basic bWU6czNjcjN0"} == {headers.get("authorization") for _, headers, _ in sink.requests}
    other = Sink().start()
    api("PUT", f"/subscriptions/{id_}", wish(other))
    api("PUT", "/messagegroups/h", {})
    assert other.wait(lambda: len(other.received) == 3)
    assert {None} == {headers.get("authorization") for _, headers, _ in other.requests}
    other.stop()


# ---- the handshake


def test_the_values_of_headers_are_not_shown(api: Api, sink: Sink) -> None:
    """A subscriber's own headers may be keys: names are shown, values sent; masked ones stay as they are."""
    settings = {"headers": {"x-api-key": "SECRET2", "x-team": "a"}}
    path = f"/subscriptions/{subscribe(api, wish(sink, protocolsettings=settings))}"
    masked = {"method": "POST", "headers": dict.fromkeys(settings["headers"], "********")}
    shown = api("GET", path).json
    assert masked == shown["protocolsettings"]
    assert [masked] == [one["protocolsettings"] for one in api("GET", "/subscriptions").json]
    shown["protocolsettings"]["headers"]["x-team"] = "b"
    assert masked == api("PUT", path, shown).json["protocolsettings"]
    api("PUT", "/messagegroups/g", {})
    assert sink.wait(lambda: bool(sink.received))
    assert {("SECRET2", "b")} == {(headers["x-api-key"], headers["x-team"]) for _, headers, _ in sink.requests[1:]}
    other = Sink().start()
    refused = api("PUT", path, {**shown, "sink": other.url})
    other.stop()
    assert (400, []) == (refused.status, other.requests)
    new = {"headers": {"x-api-key": "********"}}
    assert 400 == api("POST", "/subscriptions", wish(sink, protocolsettings=new)).status
    assert masked == api("DELETE", path).json["protocolsettings"]


def test_a_sink_is_asked(api: Api, sink: Sink) -> None:
    """cloudevents/http-webhook.md 4: the sink is told the origin, and nothing is sent unless it agrees."""
    sink.allowed = "registry.test"
    subscribe(api, wish(sink))
    assert ("OPTIONS", "registry.test") == (sink.requests[0][0], sink.requests[0][1]["webhook-request-origin"])
    for sink.allowed in ("", "another.test"):
        reply = api("POST", "/subscriptions", wish(sink))
        assert (400, "sink_refused") == (reply.status, reply.error)


def test_a_private_sink(make_api: MakeApi, sink: Sink) -> None:
    """Without the operator's word a sink on this machine is refused and hears nothing."""
    reply = make_api()("POST", "/subscriptions", wish(sink))
    assert (400, "sink_refused") == (reply.status, reply.error)
    assert [] == sink.requests


# ---- deliveries


def test_everything_in_order(api: Api, sink: Sink) -> None:
    """A sink receives each event of the feed once and in its order, from the subscription on."""
    api("PUT", "/messagegroups/before", {})
    subscribe(api, wish(sink))
    cursor = api("GET", "/changes?since=latest").json or api("GET", "/changes").headers["signalbook-cursor"]
    for number in range(5):
        api("PUT", f"/messagegroups/g/messages/m{number}", {})
    expected = [event["id"] for event in api("GET", f"/changes?since={cursor}&limit=1000").json]
    assert sink.wait(lambda: len(sink.received) >= len(expected))
    assert expected == [event.id for event in sink.received]


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_both_modes(api: Api, sink: Sink, mode: str) -> None:
    """The event is the same in the body or in headers; the subscriber's own headers come along."""
    settings = {"headers": {"x-team": "a"}}
    subscribe(api, wish(sink, config={"mode": mode}, protocolsettings=settings))
    api("PUT", "/messagegroups/g", {})
    assert sink.wait(lambda: len(sink.received) == 3)
    event, (_, headers, body) = sink.received[0], sink.requests[1]
    assert ("io.xregistry.registry.updated", "/", BASE) == (event.type, event["subject"], event.source)
    assert {"changed": ["epoch", "messagegroups", "messagegroupscount", "modifiedat"]} == event.value()
    assert "a" == headers["x-team"]
    assert (mode == "binary") == ("ce-type" in headers) == (b"specversion" not in body)


def test_only_what_is_wanted(api: Api, sink: Sink) -> None:
    """Types and filters decide."""
    filters = [{"prefix": {"subject": "/messagegroups/a"}}, {"not": {"suffix": {"subject": "x"}}}]
    subscribe(api, wish(sink, types=["io.xregistry.group.created"], filters=filters))
    for name in ("a1", "ax", "b1", "a2"):
        api("PUT", f"/messagegroups/{name}", {})
    assert sink.wait(lambda: len(sink.received) == 2)
    assert ["/messagegroups/a1", "/messagegroups/a2"] == [event["subject"] for event in sink.received]


def test_a_failing_sink_is_tried_again(api: Api, sink: Sink) -> None:
    """A failure is shown, and the same event comes again until it is taken."""
    answers = iter([500, 503, 302])
    sink.answer = lambda: next(answers, 204)
    sink.headers = {"location": "http://169.254.169.254/latest"}
    id_ = subscribe(api, wish(sink, types=["io.xregistry.group.created"]))
    api("PUT", "/messagegroups/g", {})
    assert sink.wait(lambda: api("GET", f"/subscriptions/{id_}").json["status"].get("failures", 0) >= 3)
    assert "redirect" in api("GET", f"/subscriptions/{id_}").json["status"]["error"]
    assert sink.wait(lambda: len(sink.received) == 1)
    assert sink.wait(lambda: 1 == api("GET", f"/subscriptions/{id_}").json["status"]["delivered"])
    assert "failures" not in api("GET", f"/subscriptions/{id_}").json["status"]
    assert 4 == len([one for one in sink.requests if one[0] == "POST"])


def test_parked(api: Api, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that is gone, or has failed for too long, is parked and shown; writing it anew goes on where it ended."""
    sink.answer = lambda: 410
    id_ = subscribe(api, wish(sink, types=["io.xregistry.group.created"]))
    api("PUT", "/messagegroups/g", {})

    def state() -> Any:
        return api("GET", f"/subscriptions/{id_}").json["status"]

    assert sink.wait(lambda: "parked" == state()["state"])
    assert "410" in state()["error"]
    sink.answer = lambda: 204
    api("PUT", "/messagegroups/h", {})
    time.sleep(0.5)
    assert [] == sink.received
    assert "active" == api("PUT", f"/subscriptions/{id_}", wish(sink)).json["status"]["state"]
    assert sink.wait(lambda: "/messagegroups/h" in [event["subject"] for event in sink.received])
    assert "/messagegroups/g" in [event["subject"] for event in sink.received]
    monkeypatch.setattr(delivery, "PATIENCE", 0.3)
    sink.answer = lambda: 500
    api("PUT", "/messagegroups/i", {})
    assert sink.wait(lambda: "parked" == state()["state"])


def test_a_hanging_sink_holds_nobody(api: Api, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that does not answer is left after a while, and others are served meanwhile."""
    monkeypatch.setattr(delivery, "_REQUEST", 1.0)
    hanging = Sink().start()
    slow = subscribe(api, wish(hanging))
    hanging.answer = lambda: time.sleep(5) or 204  # type: ignore[func-returns-value]
    subscribe(api, wish(sink))
    api("PUT", "/messagegroups/g", {})
    assert sink.wait(lambda: len(sink.received) == 3)
    assert sink.wait(lambda: "error" in api("GET", f"/subscriptions/{slow}").json["status"])
    hanging.stop()


def test_the_rate_that_a_sink_allows(api: Api, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """`WebHook-Allowed-Rate` spaces deliveries: with one a minute, each minute of the clock brings at most one."""
    minutes = [0]
    monkeypatch.setattr(delivery, "_now", lambda: 1_000_000_000 + minutes[0] * 60_000)
    sink.rate = "1"
    subscribe(api, wish(sink))
    api("PUT", "/messagegroups/g", {})
    for number in (1, 2, 3):
        # A pause begins when a delivery is recorded, which may be after the sink has it; then it takes a minute more.
        while not until(lambda number=number: len(sink.received) >= number, seconds=0.5):  # type: ignore[misc]
            assert len(sink.received) <= minutes[0] + 1
            minutes[0] += 1
    assert len(sink.received) <= minutes[0] + 1


def test_one_of_several_processes_delivers(start_server: StartServer, shared_store_url: str, sink: Sink) -> None:
    """With several workers and servers on one store each event comes once."""
    options = ("--no-log", "--allow-sink", "127.0.0.0/8", "--workers", "2")
    first, second = (start_server(*options, store=shared_store_url) for _ in range(2))
    httpx.post(f"{first}/subscriptions", json=wish(sink), timeout=LONG).raise_for_status()
    for number in range(10):
        httpx.put(f"{second}/messagegroups/g{number}", json={}, timeout=LONG).raise_for_status()
    assert sink.wait(lambda: len(sink.received) >= 30)
    time.sleep(1)
    assert 30 == len(sink.received) == len(sink.ids())
