"""What each interaction of core/events.md records: EVENTS-1 to EVENTS-15.

The records are read from the store, where they stand in the same transaction as the change; serving them is another
matter.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from signalbook.server.dispatch import RegistryService
from tests.cases import Case, cases
from tests.registry.conftest import Api, MakeApi

MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
ALLOWED = {
    "registry": {"updated"},
    "model": {"updated"},
    "modelsource": {"updated"},
    "capabilities": {"updated"},
    "group": {"created", "updated", "deprecation", "deleted"},
    "resource": {"created", "updated", "deprecation", "deleted"},
    "version": {"created", "updated", "deleted"},
}


def records(api: Api) -> list[tuple[str, str, Any]]:
    """The time, the correlation and the events of each change, oldest first."""
    service: RegistryService = api.service
    found = service._requests.store.reader().execute("SELECT at, correlation, events FROM changes ORDER BY seq")
    return [(at, correlation, orjson.loads(events)) for at, correlation, events in found]


def started(make_api: MakeApi, given: Any) -> Api:
    """A registry with the model of core/events.md after the requests that come before."""
    api = make_api(model="empty", specversion=given.get("specversion", "1.0-rc4"), registryid="reg")
    if given.get("model", True):
        api("PUT", "/modelsource", MODEL)
    for method, path, body in given.get("before", ()):
        reply = api(method, path, body)
        assert reply.status < 300, reply.body
    return api


@cases("registry/events")
def test_interaction(case: Case, make_api: MakeApi) -> None:
    """The interaction records these events, by type and subject, with these names changed, and no others."""
    api = started(make_api, case.given)
    method, path, body = case.given["request"]
    reply = api(method, path, body)
    assert reply.status < 300, reply.body
    assert sorted(case.expect, key=str) == sorted(records(api)[-1][2], key=str)


@cases("registry/events")
def test_every_event_is_one_of_the_list(case: Case, make_api: MakeApi) -> None:
    """Types are entity and action of the specification's list, subjects are xids, and no two are the same."""
    api = started(make_api, case.given)
    api(*case.given["request"])
    for _, _, events in records(api):
        for type_, subject, changed in events:
            entity, action = type_.split(".")
            assert action in ALLOWED[entity]
            assert subject.startswith("/")
            assert (changed is None) == (action in ("created", "deleted") or entity in ("model", "modelsource"))
        assert len(events) == len({(type_, subject) for type_, subject, _ in events})
        fates = [subject for type_, subject, _ in events if not type_.endswith("deprecation")]
        assert len(fates) == len(set(fates))


def test_one_time_and_one_name_for_an_interaction(make_api: MakeApi) -> None:
    """All events of a request carry its instant, which is its entities' `modifiedat`, and its correlation id."""
    api = started(make_api, {})
    reply = api("PUT", "/dirs/d1", {"files": {"f1": {}}})
    at, correlation, _ = records(api)[-1]
    assert reply.json["modifiedat"] == at
    assert re.fullmatch(r"[^ ]+Z", at)
    assert reply.headers["xregistry-xregcorrelationid"] == correlation


def test_names_are_unique(make_api: MakeApi) -> None:
    """No two interactions share a correlation id, in whatever case."""
    api = started(make_api, {})
    for number in range(50):
        api("PUT", f"/dirs/d{number}", {})
    names = [correlation.lower() for _, correlation, _ in records(api)]
    assert all(names)
    assert len(names) == len(set(names))


def test_a_refused_write_records_nothing(make_api: MakeApi) -> None:
    """What did not happen is not told."""
    api = started(make_api, {})
    before = records(api)
    assert 400 == api("PUT", "/dirs/d1", {"files": {"f1": {"nonsense": 1}}}).status
    assert before == records(api)
