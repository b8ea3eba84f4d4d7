"""The log of what message definitions have said."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook.registry import snapshots
from signalbook.registry.registry import Registry
from tests.conftest import FreshStore

XID = "/messagegroups/g/messages/m"


def log(registry: Registry, xid: str = XID) -> list[tuple[int, str | None]]:
    """The numbers and descriptions in a log."""
    found = snapshots.listing(registry.store.reader(), xid, 0, 100)
    return [(one.number, one.attrs.get("description")) for one in found]


def test_a_change_is_recorded_once(store_url: str) -> None:
    """A write that changes attributes appends a snapshot; one that does not, and one that is refused, appends none."""
    with Registry.open(store_url) as registry:
        registry.put(XID, {"description": "a"})
        registry.put(XID, {"description": "a"})
        registry.patch(XID, {"description": "b"})
        registry.patch(f"{XID}/meta", {"deprecated": {}})
        assert [(1, "a"), (2, "b")] == log(registry)
        latest = snapshots.latest(registry.store.reader(), XID)
        assert latest is not None
        assert 2 == latest.number
        assert snapshots.find(registry.store.reader(), XID, 3) is None


def test_numbers_are_never_given_again(store_url: str) -> None:
    """A definition that is deleted and made again goes on counting, be it deleted alone or with its group."""
    with Registry.open(store_url) as registry:
        for text in "ab":
            registry.put(XID, {"description": text})
        registry.delete(XID)
        assert [] == log(registry)
        registry.put(XID, {"description": "c"})
        registry.delete("/messagegroups/g")
        assert [] == log(registry)
        registry.put(XID, {"description": "d"})
        registry.delete("/messagegroups")
        registry.put(XID, {"description": "e"})
        assert [(5, "e")] == log(registry)


def test_only_recorded_types_have_a_log(store_url: str) -> None:
    """Schemas have versions of their own, and no log."""
    with Registry.open(store_url) as registry:
        registry.put("/schemagroups/g/schemas/s", {"format": "Avro/1.11.0", "schema": {"type": "string"}})
        assert [] == log(registry, "/schemagroups/g/schemas/s")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(actions=st.lists(st.sampled_from(["a", "b", "delete", "drop"]), max_size=12))
def test_the_log_agrees_with_a_simple_one(actions: list[str], fresh_store: FreshStore) -> None:
    """After any writes and deletes the log is what a list with a counter would hold."""
    number, wanted = 0, []
    with Registry.open(fresh_store()) as registry:
        registry.put("/messagegroups/g", {})
        for action in actions:
            if action in "ab":
                registry.put(XID, {"description": action})
                if not wanted or wanted[-1][1] != action:
                    number += 1
                    wanted.append((number, action))
            elif wanted:
                registry.delete(XID if action == "delete" else "/messagegroups/g")
                wanted = []
        assert wanted == log(registry)
