"""Recorded changes as CloudEvents."""

from __future__ import annotations

import orjson

from signalbook.cloudevents import decode
from signalbook.registry.changes import Change, Position
from signalbook.server.events.changes import event_of, expand
from tests.cases import Case, cases


@cases("server/change_events")
def test_the_catalog_s_own_words(case: Case) -> None:
    """Changes of message groups and messages are told once more as those of the 0.1 catalog, each subject once."""
    recorded = [[type_, subject, None] for type_, subject in case.given]
    told = [event for event in recorded if not event[0].startswith("snapshot.")]
    assert [*told, *([*event, None] for event in case.expect)] == expand(recorded)


def test_an_event_is_a_cloudevent() -> None:
    """EVENTS-1 to EVENTS-6: type, absolute source, xid as subject, UTC time, correlation, the names that changed."""
    change = Change(Position(7, 2, "abc"), "2026-01-02T03:04:05.000006Z", "abc", "group.updated", "/dirs/d1", ["name"])
    event = decode(orjson.dumps(event_of(change, "https://example.com")))
    assert {
        "specversion": "1.0",
        "type": "io.xregistry.group.updated",
        "source": "https://example.com",
        "subject": "/dirs/d1",
        "id": "7.2.abc",
        "time": "2026-01-02T03:04:05.000006Z",
        "xregcorrelationid": "abc",
    } == dict(event.attributes)
    assert {"changed": ["name"]} == event.value()


def test_a_catalog_event_has_no_data() -> None:
    """Seed 004 section 5.5: the event data MUST be empty."""
    type_ = "io.cloudevents.messagecatalog.deleted.v1"
    change = Change(Position(7, 2, "abc"), "2026-01-02T03:04:05Z", "abc", type_, "/messagecatalog/g", None)
    assert {"specversion", "type", "source", "subject", "id", "time"} == event_of(change, "http://a").keys()
