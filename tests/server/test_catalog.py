"""The catalog of a registry follows its writes: what it says is what one compiled anew says."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook import Registry, RegistryError
from signalbook.app import RegistryCatalog, catalog_of
from signalbook.registry import changes as record
from signalbook.server import catalog as server_catalog
from tests.messages.test_catalog_changes import ENDPOINT, GROUP, MESSAGES, OTHER, SCHEMAS, answers, changes
from tests.patience import LONG
from tests.server.test_messages import DEFINITION, MOVED, XID, Client

deletes = st.sampled_from([*MESSAGES, *SCHEMAS, GROUP, OTHER, ENDPOINT, "/schemagroups/s"])
writes = st.one_of(
    st.tuples(st.just("put"), changes), st.tuples(st.just("patch"), changes), st.tuples(st.just("delete"), deletes)
)


def write(registry: Registry, method: str, what: Any) -> None:
    """One write, which the registry may refuse."""
    for xid, entity in [(what, None)] if method == "delete" else what.items():
        path = f"{xid}$details" if "/schemas/" in xid else xid
        stated = {"usage": ["consumer"], **entity} if entity is not None and xid == ENDPOINT else entity
        with contextlib.suppress(RegistryError):
            if stated is None:
                registry.delete(xid)
            elif "meta" in stated:
                registry.put(f"{xid}/meta", stated["meta"])
            else:
                getattr(registry, "patch" if method == "patch" else "put")(path, stated)


@settings(max_examples=25)
@given(st.lists(writes, min_size=1, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_catalog_follows_the_writes(steps: list[tuple[str, Any]], asked: list[bool]) -> None:
    """After any writes a catalog that was asked on the way is the one that is compiled anew, and never was itself."""
    with Registry.open("memory:") as registry, pytest.MonkeyPatch.context() as patch:
        registry.put(XID, DEFINITION)
        kept = RegistryCatalog(registry.store)
        kept.current()
        patch.setattr(kept, "_anew", None)
        for (method, what), is_asked in zip(steps, asked, strict=False):
            write(registry, method, what)
            if is_asked:
                answers(kept.current())
        assert answers(catalog_of(registry)) == answers(kept.current())


def test_many_changes_and_another_model_are_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more has changed than is read one by one, or the model has, all is read."""
    monkeypatch.setattr(server_catalog, "_MOST_CHANGED", 3)
    with Registry.open("memory:") as registry:
        registry.put(XID, DEFINITION)
        kept = RegistryCatalog(registry.store)
        anew = 0
        original = RegistryCatalog._anew

        def counted(*args: Any) -> Any:
            nonlocal anew
            anew += 1
            return original(*args)

        monkeypatch.setattr(RegistryCatalog, "_anew", counted)
        kept.current()
        registry.post(f"{GROUP}/messages", {f"m{n}": DEFINITION for n in range(3)})
        assert (4, 1) == (len(kept.current().definitions), anew)
        registry.post(f"{GROUP}/messages", {f"n{n}": DEFINITION for n in range(4)})
        assert (8, 2) == (len(kept.current().definitions), anew)
        for number in range(5):
            registry.put(XID, {**DEFINITION, "description": str(number)})
        assert ("4", 3) == (kept.current().definition(XID).document["description"], anew)
        registry.put("/modelsource", registry.get("/modelsource"))
        registry.put(XID, DEFINITION)
        assert (8, 4) == (len(kept.current().definitions), anew)


def test_changes_that_are_not_recorded_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the record of changes was trimmed beyond the catalog's state, all is read."""
    with Registry.open("memory:") as registry:
        registry.put(XID, DEFINITION)
        kept = RegistryCatalog(registry.store)
        kept.current()
        for number in range(3):
            registry.put(f"{GROUP}/messages/m{number}", DEFINITION)
        assert 0 < record.trim(registry.store, "9999", lambda events: events)
        assert 4 == len(kept.current().definitions)


def test_a_write_tells_its_number() -> None:
    """Every write says the number of its change, or the newest where it changed nothing; an answer says its own."""
    client = Client()
    written = [client.send("PUT", XID, DEFINITION), client.send("PUT", XID, {**DEFINITION, "name": "x"})]
    written += [client.send("DELETE", XID), client.send("PUT", XID, DEFINITION)]
    numbers = [int(answer.headers["signalbook-sequence"]) for answer in written]
    assert sorted(set(numbers)) == numbers
    same = client.send("PUT", f"{GROUP}/messages", {})
    assert same.status_code >= 400
    assert "signalbook-sequence" not in same.headers
    for path, body in (("/match", MOVED), ("/validate", MOVED), (f"/build?definition={XID}", {})):
        assert str(numbers[-1]) == client.send("POST", path, body).headers["signalbook-sequence"]
    added = client.send("PUT", "/messagecatalog/z", {"specversion": "0.1", "format": "CloudEvents/1.0"})
    assert numbers[-1] < int(added.headers["signalbook-sequence"])
    client.close()


def test_the_first_catalog_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no catalog yet, a request waits for it, and is refused in words where it does not come in time."""
    go = threading.Event()
    original = RegistryCatalog._anew

    def held(*args: Any) -> Any:
        assert go.wait(LONG)
        return original(*args)

    monkeypatch.setattr(RegistryCatalog, "_anew", held)
    monkeypatch.setattr(server_catalog, "LONGEST", 0.1)
    client = Client()
    client.send("PUT", XID, DEFINITION)
    refused = client.send("POST", "/match", MOVED)
    assert (503, "1") == (refused.status_code, refused.headers["retry-after"])
    assert "The catalog is being compiled. Try again in a moment." == refused.json()["detail"]
    monkeypatch.setattr(server_catalog, "LONGEST", LONG)
    go.set()
    assert "matched" == client.send("POST", "/match", MOVED).json()["outcome"]
    client.close()
