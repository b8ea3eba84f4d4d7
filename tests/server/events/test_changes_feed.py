"""`GET /changes` through the server: batches, cursors, waiting, streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import orjson
import pytest

from signalbook.cloudevents import decode_batch
from signalbook.server.events.changes import CURSOR, MOST_EVENTS
from tests.cases import Case, cases
from tests.conformance.test_events import started
from tests.conftest import StartServer
from tests.patience import LONG, in_flight, until
from tests.registry.conftest import BASE, Api, MakeApi, api, make_api

__all__ = ["api", "make_api"]
XREGISTRY = "io.xregistry."


def rows(events: list[Any]) -> list[list[Any]]:
    """Events as the cases write them."""
    ours = [event for event in events if event["type"].startswith(XREGISTRY)]
    return [[e["type"].removeprefix(XREGISTRY), e["subject"], e.get("data", {}).get("changed")] for e in ours]


@cases("registry/events")
def test_interactions(case: Case, make_api: MakeApi) -> None:
    """Each interaction of core/events.md yields exactly the events it lists, all with the response's correlation id."""
    api = started(make_api, case.given)
    before = api("GET", "/changes?since=latest").headers[CURSOR]
    method, path, body = case.given["request"]
    reply = api(method, path, body)
    events = api("GET", f"/changes?since={before}&limit={MOST_EVENTS}").json
    assert sorted(case.expect, key=str) == sorted(rows(events), key=str)
    assert {reply.headers["xregistry-xregcorrelationid"]} == {event["xregcorrelationid"] for event in events}
    assert 1 == len({event["time"] for event in events})
    assert {BASE} == {event["source"] for event in events}


def test_a_batch_of_cloudevents(api: Api) -> None:
    """The answer is a batch in the JSON format; each event's id is unique and the cursor is the last one's."""
    api("PUT", "/messagegroups/g/messages/m", {})
    reply = api("GET", "/changes")
    assert "application/cloudevents-batch+json" == reply.headers["content-type"]
    ids = [event.id for event in decode_batch(reply.body)]
    assert 7 == len(set(ids))
    assert ids[-1] == reply.headers[CURSOR]
    assert f"<{BASE}/changes?since={ids[-1]}&limit=100>;rel=next" == reply.headers["link"]


def test_pages(api: Api) -> None:
    """Following the links with any limit gives every event once."""
    for number in range(5):
        api("PUT", f"/messagegroups/g/messages/m{number}", {})
    whole = api("GET", "/changes").json
    found: list[Any] = []
    path = "/changes?limit=3"
    while page := api("GET", path).json:
        found += page
        path = f"/changes?limit=3&since={page[-1]['id']}"
    assert whole == found


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/changes?since=nonsense", 400, "unknown_cursor"),
        ("/changes?since=99.1.ab", 400, "unknown_cursor"),
        ("/changes?limit=0", 400, "bad_request"),
        ("/changes?limit=1001", 400, "bad_request"),
        ("/changes?wait=61", 400, "bad_request"),
        ("/changes?wait=-1", 400, "bad_request"),
        ("/changes?other=1", 400, "bad_flag"),
        ("/changes/x", 404, "api_not_found"),
    ],
)
def test_refused(api: Api, path: str, status: int, error: str) -> None:
    """A wrong request is refused by name."""
    reply = api("GET", path)
    assert (status, error) == (reply.status, reply.error)


def test_methods(api: Api) -> None:
    """There is nothing to write, and OPTIONS says so."""
    assert "GET, OPTIONS" == api("OPTIONS", "/changes").headers["allow"]
    assert 405 == api("POST", "/changes", {}).status


def test_trimmed(api: Api) -> None:
    """A cursor before what is kept is 410; the newest is always there."""
    from signalbook.registry.changes import trim
    from signalbook.server.events.changes import expand

    api("PUT", "/messagegroups/g", {})
    first = api("GET", "/changes").headers[CURSOR]
    api("PUT", "/messagegroups/h", {})
    api("PUT", "/messagegroups/i", {})
    trim(api.service.store, "9999-01-01T00:00:00Z", expand)
    reply = api("GET", f"/changes?since={first}")
    assert (410, "feed_trimmed") == (reply.status, reply.error)
    assert [] == api("GET", "/changes?since=latest").json


@pytest.fixture
def address(start_server: StartServer) -> str:
    """A server that is really started."""
    return start_server("--no-log")


def put_later(address: str, path: str, seconds: float) -> threading.Thread:
    """Write something in a while."""

    def put() -> None:
        time.sleep(seconds)
        httpx.put(address + path, json={}, timeout=LONG).raise_for_status()

    thread = threading.Thread(target=put)
    thread.start()
    return thread


def test_waiting(address: str) -> None:
    """A request that waits is answered when something changes, and without anything when its time is over."""
    assert [] == httpx.get(f"{address}/changes?wait=1", timeout=LONG).json()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(httpx.get, f"{address}/changes?wait=60", timeout=LONG)
        assert until(lambda: in_flight(address) == 1)
        httpx.put(f"{address}/messagegroups/g", json={}, timeout=LONG).raise_for_status()
        found = waiting.result().json()
    assert ["registry.updated", "group.created"] == [row[0] for row in rows(found)]


def test_many_wait_without_holding_threads(address: str) -> None:
    """More clients wait than there are threads, and others are still answered at once."""
    with httpx.Client(limits=httpx.Limits(max_connections=None), timeout=LONG) as client:
        results: list[int] = []
        threads = [
            threading.Thread(target=lambda: results.append(len(client.get(f"{address}/changes?wait=60").json())))
            for _ in range(60)
        ]
        for thread in threads:
            thread.start()
        assert until(lambda: in_flight(address) == len(threads))
        assert 200 == client.get(f"{address}/messagegroups").status_code
        assert [] == results
        client.put(f"{address}/messagegroups/g", json={}).raise_for_status()
        for thread in threads:
            thread.join()
    assert [3] * 60 == results


def messages(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    """So many events of a stream."""
    found: list[dict[str, Any]] = []
    for line in lines:
        if line.startswith("data: "):
            found.append(orjson.loads(line[6:]))
            if len(found) == count:
                break
    return found


def test_a_stream(address: str) -> None:
    """Server-sent events are the same events, and go on behind `Last-Event-ID`."""
    headers = {"accept": "text/event-stream"}
    thread = put_later(address, "/messagegroups/g/messages/m", 0.2)
    with httpx.stream("GET", f"{address}/changes", headers=headers, timeout=LONG) as stream:
        assert "text/event-stream" == stream.headers["content-type"]
        found = messages(stream.iter_lines(), 7)
    thread.join()
    assert httpx.get(f"{address}/changes", timeout=LONG).json() == found
    headers["last-event-id"] = found[3]["id"]
    with httpx.stream("GET", f"{address}/changes", headers=headers, timeout=LONG) as stream:
        assert found[4:] == messages(stream.iter_lines(), 3)
    assert b"" == httpx.head(f"{address}/changes", headers=headers, timeout=LONG).content


def test_a_token_is_needed(start_server: StartServer) -> None:
    """Who may not read may not follow either."""
    address = start_server("--no-log", "--read-token", "t")
    assert 401 == httpx.get(f"{address}/changes", timeout=LONG).status_code
    assert 200 == httpx.get(f"{address}/changes", headers={"authorization": "Bearer t"}, timeout=LONG).status_code


def test_writers_of_two_processes(start_server: StartServer, shared_store_url: str) -> None:
    """While clients write through two servers on one store, a follower sees every write once, in order."""
    servers = [start_server("--no-log", store=shared_store_url) for _ in range(2)]
    each, writers = 40, 4

    def write(number: int) -> None:
        with httpx.Client(timeout=LONG) as client:
            for turn in range(each):
                path = f"{servers[number % 2]}/messagegroups/g{number}/messages/m{turn}"
                client.put(path, json={}).raise_for_status()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    found: list[str] = []
    cursor = "0"
    while len(found) < each * writers:
        answer = httpx.get(f"{servers[0]}/changes?since={cursor}&limit=7&wait=5", timeout=LONG)
        cursor = answer.headers[CURSOR]
        found += [event["subject"] for event in answer.json() if event["type"].endswith("resource.created")]
    for thread in threads:
        thread.join()
    assert sorted(f"/messagegroups/g{n}/messages/m{t}" for n in range(writers) for t in range(each)) == sorted(found)
    for number in range(writers):
        own = [subject for subject in found if f"/g{number}/" in subject]
        assert [f"/messagegroups/g{number}/messages/m{turn}" for turn in range(each)] == own
