"""The log of what message definitions have said."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook.dialects.catalog01_documents import in_line
from signalbook.errors import RegistryError
from signalbook.registry import changes
from signalbook.registry.registry import Registry
from tests.conftest import FreshStore

XID = "/messagegroups/g/messages/m"


def log(registry: Registry, xid: str = XID) -> list[tuple[int, str | None]]:
    """The numbers and descriptions in a log."""
    found = changes.listing(registry.store.reader(), xid, 0, 100)
    return [(one.number, one.attrs.get("description")) for one in found]


def test_a_change_is_recorded_once(store_url: str) -> None:
    """A write that changes attributes appends a snapshot; one that does not, and one that is refused, appends none."""
    with Registry.open(store_url) as registry:
        registry.put(XID, {"description": "a"})
        registry.put(XID, {"description": "a"})
        registry.patch(XID, {"description": "b"})
        registry.patch(f"{XID}/meta", {"deprecated": {}})
        assert [(1, "a"), (2, "b")] == log(registry)
        latest = changes.latest_snapshot(registry.store.reader(), XID)
        assert latest is not None
        assert 2 == latest.number
        assert changes.find(registry.store.reader(), XID, 3) is None


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


def history(texts: str) -> dict[str, Any]:
    """A message whose versions say this, the oldest first."""
    return in_line([{"description": text} for text in texts])


def test_a_history_is_recorded_in_one_request(store_url: str) -> None:
    """Versions that come together and follow each other are all recorded; the registry keeps the newest."""
    with Registry.open(store_url) as registry:
        registry.put(XID, history("abcdefghijkl"))
        assert list(enumerate("abcdefghijkl", 1)) == log(registry)
        shown = registry.get(f"{XID}?inline=versions")
        assert ("l", ["12"]) == (shown["description"], list(shown["versions"]))


def test_a_refused_history_leaves_nothing(store_url: str) -> None:
    """Where one version is refused, none is recorded, and what there was stays."""
    with Registry.open(store_url) as registry:
        registry.put(XID, {"description": "x"})
        wrong = in_line([{"description": "a"}, {"description": 7}, {"description": "c"}])
        with pytest.raises(RegistryError):
            registry.put(XID, wrong)
        assert [(1, "x")] == log(registry)
        assert "x" == registry.get(XID)["description"]


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (["ab", "ab"], "ab"),
        (["ab", "abc"], "abc"),
        (["abc", "ab"], "abcb"),
        (["b", "ab"], "bab"),
        (["x", "ab", "ab"], "xab"),
        (["aba", "aba"], "aba"),
        (["aab"], "ab"),
        (["abc", "cba", "cba"], "abcba"),
        (["ab", "cd", "ab"], "abcdb"),
    ],
)
def test_what_is_there_is_not_written_again(writes: list[str], expected: str, store_url: str) -> None:
    """A history adds what the log does not have in its order; the last of it is always the newest."""
    with Registry.open(store_url) as registry:
        for texts in writes:
            registry.put(XID, history(texts))
        assert expected == "".join(str(text) for _, text in log(registry))
        assert writes[-1][-1] == registry.get(XID)["description"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(writes=st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=4))
def test_a_history_twice_is_one(writes: list[str], fresh_store: FreshStore) -> None:
    """Whatever was written before, the log has each history in its order, and the same again adds nothing."""
    with Registry.open(fresh_store()) as registry:
        for texts in writes:
            registry.put(XID, history(texts))
            once = log(registry)
            registry.put(XID, history(texts))
            assert once == log(registry)
            said = iter(text for _, text in once)
            assert all(text in said for text in "".join(key for key, _ in groupby(texts)))
            assert texts[-1] == once[-1][1] == registry.get(XID)["description"]


def test_a_snapshot_is_told(store_url: str) -> None:
    """What came into a log and what was taken out of it is recorded, with the change that did it or as one."""
    with Registry.open(store_url) as registry:
        registry.put(XID, history("ab"))
        registry.put(XID, {"description": "b"})
        registry.store.write(lambda db: changes.remove(db, XID, 1, "2026-01-01T00:00:00Z", "c"))
        found = registry.store.reader().execute("SELECT events FROM changes ORDER BY seq")
        told = [[event for event in orjson.loads(text) if event[0].startswith("snapshot.")] for (text,) in found]
        created = [["snapshot.created", f"{XID}/snapshots/{number}", None] for number in (1, 2)]
        assert [created, [], [["snapshot.deleted", f"{XID}/snapshots/1", None]]] == told
        assert [(2, "b")] == log(registry)


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
