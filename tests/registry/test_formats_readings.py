"""Schemas are checked outside of the turn of their write, and what changed in between is checked again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from signalbook.registry import formats as readings
from signalbook.registry import requests
from signalbook.registry.registry import Registry, Transaction
from signalbook.registry.store import Connection
from tests.registry.conftest import Api, Reply

BASE, USE = "/schemagroups/g/schemas/base", "/schemagroups/g/schemas/use"
# A test that would wait for ever fails after this.
LONG = 60


def schema(document: Any) -> dict[str, Any]:
    """The body of a JSON Schema."""
    return {"format": "JsonSchema/draft-07", "schema": document}


def sent(call: Callable[[], Reply]) -> Reply:
    """What a request of another thread is answered."""
    answers: list[Reply] = []
    thread = threading.Thread(target=lambda: answers.append(call()), daemon=True)
    thread.start()
    thread.join(LONG)
    assert answers, "the request waits for the one that is being checked"
    return answers[0]


class Hook:
    """What runs, one for each, once documents that hold a text are read; `read` counts those readings."""

    def __init__(self) -> None:
        self.text = b"\0"
        self.actions: list[Callable[[], object]] = []
        self.read = 0


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A hook into the reading of schemas, none of which is read within a turn but the last."""
    found = Hook()
    reading = readings._reading

    def hooked(row: Any, document: bytes, questions: Any, base: str) -> Any:
        result = reading(row, document, questions, base)
        if found.text in document:
            found.read += 1
            if found.actions:
                found.actions.pop(0)()
        return result

    monkeypatch.setattr(readings, "_reading", hooked)
    monkeypatch.setattr(requests, "IN_TURN", 0)
    yield found
    assert not found.actions


def test_others_write_while_a_schema_is_checked(api: Api, hook: Hook) -> None:
    """A write whose schema is being read holds no other write up."""
    replies = []
    hook.text = b"slow"
    hook.actions = [lambda: replies.append(sent(lambda: api("PUT", "/messagegroups/g", {})))]
    assert 201 == api("PUT", f"{BASE}$details", schema({"title": "slow"})).status
    assert [201] == [reply.status for reply in replies]
    assert 1 == hook.read


def test_a_large_schema_is_not_read_in_the_turn(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes longer than a moment gives its turn back; what does not is checked at once."""
    turns = []
    begin = readings.Readings.begin

    def counting(self: Any, steps: int) -> None:
        turns.append(steps)
        begin(self, steps)

    monkeypatch.setattr(readings.Readings, "begin", counting)
    assert api("PUT", f"{BASE}$details", schema({"type": "integer"})).json["formatvalidated"]
    assert [readings.IN_TURN] == turns
    large = {"properties": {f"p{number}": {"type": "integer"} for number in range(1000)}}
    assert api("PUT", f"{USE}$details", schema(large)).json["formatvalidated"]
    assert [readings.IN_TURN] * 3 == turns


def test_a_version_that_comes_in_between(api: Api, hook: Hook) -> None:
    """A version is compared with the one that was added while it was being read."""
    api("PUT", f"{BASE}$details", {**schema({"type": "integer"}), "meta": {"compatibility": "backward"}})
    hook.text = b"mine"
    between = schema({"type": ["integer", "string"], "title": "theirs"})
    hook.actions = [lambda: sent(lambda: api("PUT", f"{BASE}/versions/2$details", between))]
    reply = api("PUT", f"{BASE}/versions/3$details", schema({"type": "number", "title": "mine"}))
    assert "compatibility_violation" == reply.error
    assert 404 == api("GET", f"{BASE}/versions/3$details").status
    assert api("GET", f"{BASE}/versions/2$details").json["compatibilityvalidated"] is True


def test_a_promise_that_comes_in_between(api: Api, hook: Hook) -> None:
    """What a version promises is what its resource states when it is written."""
    api("PUT", f"{BASE}$details", schema({"type": "integer"}))
    hook.text = b"mine"
    hook.actions = [lambda: sent(lambda: api("PATCH", f"{BASE}/meta", {"compatibility": "backward"}))]
    reply = api("PUT", f"{BASE}/versions/2$details", schema({"type": "string", "title": "mine"}))
    assert "compatibility_violation" == reply.error


def test_a_reference_that_changes_in_between(api: Api, hook: Hook) -> None:
    """A schema is read again where another that it refers to says something else."""
    api("PUT", f"{BASE}$details", schema({"definitions": {"n": {"type": "integer"}}}))
    hook.text = b"mine"
    # A small document is read twice, the first time without what it refers to.
    hook.actions = [lambda: None, lambda: sent(lambda: api("PUT", f"{BASE}$details", schema({"definitions": {}})))]
    reply = api("PUT", f"{USE}$details", schema({"title": "mine", "$ref": f"{BASE}#/definitions/n"}))
    assert (201, False) == (reply.status, reply.json["formatvalidated"])
    assert 2 < hook.read <= 2 * readings.TURNS


def test_a_reference_that_stays(api: Api, hook: Hook) -> None:
    """Other writes in between make nothing be read again."""
    api("PUT", f"{BASE}$details", schema({"definitions": {"n": {"type": "integer"}}}))
    hook.text = b"mine"
    hook.actions = [lambda: None, lambda: sent(lambda: api("PUT", "/schemagroups/g/schemas/other$details", schema({})))]
    reply = api("PUT", f"{USE}$details", schema({"title": "mine", "$ref": f"{BASE}#/definitions/n"}))
    assert reply.json["formatvalidated"] is True
    assert 2 == hook.read


def test_capabilities_that_change_in_between(api: Api, hook: Hook) -> None:
    """Which formats are checked is what the capabilities say when a version is written."""
    hook.text = b"mine"
    fewer = {"formats": ["Avro/*"], "compatibilities": {"Avro/*": []}}
    hook.actions = [lambda: sent(lambda: api("PATCH", "/capabilities", fewer))]
    reply = api("PUT", f"{BASE}$details", schema({"title": "mine"}))
    assert (201, "Unknown format") == (reply.status, reply.json.get("formatvalidatedreason")), reply.body


@pytest.mark.parametrize(("steps", "status"), [(readings.AT_WORST, 201), (0, 503)])
def test_references_that_never_stop_changing(
    api: Api, hook: Hook, monkeypatch: pytest.MonkeyPatch, steps: int, status: int
) -> None:
    """After some turns a schema is read within the last one, as far as that goes; then it has to be sent again."""
    monkeypatch.setattr(requests, "AT_WORST", steps)
    numbers = iter(range(100))

    def change() -> None:
        sent(lambda: api("PUT", f"{BASE}$details", schema({"definitions": {"n": {"title": str(next(numbers))}}})))

    change()
    hook.text = b"mine"
    hook.actions = [lambda: None, change] * (readings.TURNS - 1)
    body = schema({"title": "mine", "$ref": f"{BASE}#/definitions/n"})
    if steps == 0:
        hook.actions += [lambda: None, lambda: None]
    reply = api("PUT", f"{USE}$details", body)
    assert status == reply.status, reply.body
    assert 2 * readings.TURNS == hook.read


def test_several_writes_in_one_turn(store_url: str, hook: Hook) -> None:
    """A job that writes several times learns of all its schemas before they are read."""
    turns = []
    hook.text = b"mine"
    with Registry.open(store_url) as registry:
        by = registry._requests

        def job(db: Connection) -> None:
            turns.append(len(turns))
            transaction = Transaction(by, db, "", "c")
            for number in range(20):
                transaction.put(f"/schemagroups/g/schemas/s{number}$details", schema({"title": f"mine {number}"}))

        by.write(job, several=True)
        assert 20 == len(registry.get("/schemagroups/g/schemas"))
    assert [0, 1] == turns
    assert 20 == hook.read
