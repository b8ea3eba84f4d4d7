"""Every request and every judged message has a budget of work: it is spent, it ends with a clear problem, and it stops.

Work is counted in the steps of the budgets themselves, at one size and at eight times it, never timed.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signalbook import Catalog, budget, schemas
from signalbook.app import flow as made_flow
from signalbook.budget import Budget, TooMuch, within
from signalbook.messages import constraint, fast
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.protocols import BINDINGS, Message, Mode
from signalbook.registry.store import open_store
from signalbook.registry.write import checks as checks_of_writes
from signalbook.server import flow
from signalbook.server.flow import AsgiApp
from signalbook.settings import Settings
from tests.patience import LONG
from tests.pipeline.lakes import event, packed
from tests.pipeline.test_worker import land
from tests.server.test_messages import DEFINITION, MOVED, XID, Client

SIZES = (50, 8 * 50)
BATCH_TYPE = ("content-type", "application/cloudevents-batch+json")
EVENT = {"specversion": "1.0", "id": "1", "source": "/s/a", "type": "t", "data": {"n": 1}}


def definitions(count: int = 1, **attributes: Any) -> Catalog:
    """A catalog with some definitions of one key."""
    found = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}}} | attributes
    messages = {f"m{number}": found for number in range(count)}
    return Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})


def steps(work: Callable[[], object]) -> int:
    """The steps that some work takes."""
    with within(Budget(1 << 60)) as spent:
        work()
    return spent.spent


# The law: work is in proportion to what is asked -------------------------------------------------------------------

EVENTS = {
    "good": EVENT,
    "bad": {"specversion": "1.0", "type": "t"},
    "unexpected": EVENT | {"type": "u"},
    "wrong": EVENT | {"data": {"n": "x"}},
    "large": EVENT | {"data": {"n": 1, "text": "x" * 5000}},
}


def batch(size: int, one: Any) -> bytes:
    """A batch of the JSON format."""
    return b"[" + b",".join([json.dumps(one).encode()] * size) + b"]"


def coded(size: int, one: Any) -> Message:
    """A batch that HTTP carries in gzip."""
    headers = (BATCH_TYPE, ("content-encoding", "gzip"))
    return Message("HTTP", {"headers": headers}, gzip.compress(batch(size, one)))


FORMS: dict[str, Callable[[int, Any], Any]] = {
    "JSON": batch,
    "iterable": lambda size, one: [json.dumps(one)] * size,
    "values": lambda size, one: [one] * size,
    "gzip": coded,
    "on paper": lambda size, one: coded(size, one).to_bytes(),
    "HTTP": lambda size, one: Message("HTTP", {"headers": (BATCH_TYPE,)}, batch(size, one)),
}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 5])
def test_every_form_of_a_batch_is_linear(form: str, kind: str, count: int) -> None:
    """Eight times the events take eight times the steps, and each takes at least one."""
    catalog = definitions(count, dataschemaformat="JsonSchema/2020-12", dataschema=SCHEMA)
    given = [FORMS[form](size, EVENTS[kind]) for size in SIZES]
    few, many = (steps(partial(catalog.match_all, one)) for one in given)
    assert few >= SIZES[0]
    assert many <= 8 * few + 100
    by_one = [steps(partial(catalog.validate_all, one, "/messagegroups/g/messages/m0")) for one in given]
    assert by_one[0] >= SIZES[0]
    assert by_one[1] <= 8 * by_one[0] + 100


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_read_takes_more(form: str) -> None:
    """An event that is malformed takes twice the steps of a good one, and one more for each thing that is wrong."""
    catalog, size = definitions(), SIZES[0]
    good, bad, worse = (
        steps(partial(catalog.match_all, FORMS[form](size, one)))
        for one in (EVENT, EVENT | {"id": 1}, EVENT | {"id": 1, "source": 1})
    )
    assert good + 10 * size <= bad
    assert worse == bad + size


def test_every_binding_with_batches_is_tried() -> None:
    """The forms above have each protocol that carries batches."""
    assert {"HTTP"} == {name for name, row in BINDINGS.items() if Mode.BATCH in row.modes}


TEMPLATES: dict[str, Callable[[int], tuple[str, str]]] = {
    "long values": lambda size: ("/s/{a}", "/s/" + "x" * size),
    "placeholders": lambda size: ("/s" + "/{a}" * size, "/s" + "/x" * size),
    "names": lambda size: ("/s" + "".join(f"/{{a{one}}}" for one in range(size)), "/s" + "/x" * size),
    "reserved": lambda size: ("/s" + "/x{+a}" * size, "/s" + "/xy" * size),
    "misses": lambda size: ("/s" + "/{a}" * size + "/end", "/s" + "/x" * size),
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_templates_are_linear(kind: str) -> None:
    """Many placeholders, repeated names and long values take steps in proportion to their length."""
    taken = []
    for size in (2000, 8 * 2000):
        text, source = TEMPLATES[kind](size)
        catalog = definitions(
            envelopemetadata={"type": {"value": "t"}, "source": {"type": "uritemplate", "value": text}}
        )
        taken.append(steps(partial(catalog.match_all, [EVENT | {"source": source}])))
    assert taken[1] <= 8 * taken[0] + 100
    assert taken[1] > 16_000 // budget.BYTES


def test_definitions_of_one_key_are_linear() -> None:
    """Asking eight times as many definitions of one key takes eight times the steps."""
    few, many = (steps(partial(definitions(size).match_all, [EVENT])) for size in SIZES)
    assert SIZES[0] <= few
    assert many <= 8 * few + 100


# A message ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the payloads that schemas were asked about."""
    asked: list[int] = []
    plain: Callable[..., Any] = getattr(constraint, "check")  # noqa: B009  # it is not exported

    def counting(schema: Any, payload: bytes, *given: Any) -> Any:
        asked.append(len(payload))
        return plain(schema, payload, *given)

    monkeypatch.setattr(constraint, "check", counting)
    return asked


def test_a_message_that_takes_too_much(checks: list[int]) -> None:
    """A large payload and very many definitions of its key: the message is not judged to the end, and says so."""
    size = 1 << 20
    count = 2 * constraint.MOST_STEPS * budget.BYTES // size
    catalog = definitions(count, dataschemaformat="JsonSchema/2020-12", dataschema=SCHEMA)
    large = EVENT | {"data": {"n": "x", "text": "x" * size}}
    found = catalog.match_all([large, EVENT | {"type": "u"}])
    assert ["nonconformant", "unexpected"] == [one.outcome.value for one in found]
    assert (None, "too_much", "") == (found[0].definition, found[0].problems[0].code, found[0].problems[0].path)
    assert "Judging the message takes more than 500,000 steps of work" in found[0].problems[0].message
    assert sum(checks) <= constraint.MOST_STEPS * budget.BYTES
    assert len(checks) < count


def test_the_nearest_definitions_of_a_large_message(monkeypatch: pytest.MonkeyPatch, checks: list[int]) -> None:
    """Where no definition is meant, the nearest are looked for only as far as the budget goes."""
    monkeypatch.setattr(constraint, "MOST_STEPS", 1000)
    catalog = definitions(50, dataschemaformat="JsonSchema/2020-12", dataschema=SCHEMA)
    found = catalog.match(EVENT | {"type": "u", "data": {"n": 1, "text": "x" * 300_000}})
    assert ("unexpected", ()) == (found.outcome.value, found.problems)
    assert 1 <= len(found.candidates)
    assert sum(checks) <= 1000 * budget.BYTES


def test_a_message_judged_by_one_definition(monkeypatch: pytest.MonkeyPatch, checks: list[int]) -> None:
    """To `validate`, too, a message that takes too much is not a valid one."""
    monkeypatch.setattr(constraint, "MOST_STEPS", 100)
    monkeypatch.setattr(constraint, "_UNCOUNTED", 100_000)
    catalog = definitions(dataschemaformat="JsonSchema/2020-12", dataschema=SCHEMA)
    xid = "/messagegroups/g/messages/m0"
    found = catalog.validate(EVENT | {"data": {"n": 1, "text": "x" * 200_000}}, xid)
    assert ("nonconformant", xid) == (found.outcome.value, found.definition)
    assert ["too_much"] == [one.code for one in found.problems]
    assert [] == checks
    assert "matched" == catalog.validate(EVENT, xid).outcome.value


def test_the_whole_ends_before_its_part() -> None:
    """Where the request is what is spent, it ends, and no answer about the message is made up."""
    catalog = definitions()
    with within(Budget(3)), pytest.raises(TooMuch):
        catalog.match_all([EVENT] * 5)


def test_landing_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that takes too much is a dead letter with that reason; those before and after it are landed."""
    monkeypatch.setattr(constraint, "MOST_STEPS", 100)
    monkeypatch.setattr(constraint, "_UNCOUNTED", 100_000)
    large = event(2, data={"km": "far", "text": "x" * 200_000})
    lines = [event(1), large, event(3), event(4), large]
    report, tables = land(tmp_path, packed(), lines)
    assert (5, 3, 2) == (report["input"], report["landed"], report["dead"])
    assert [("nonconformant", ["too_much"])] * 2 == [
        (one["outcome"], [problem["code"] for problem in one["problems"]]) for one in tables[DEAD_LETTERS]
    ]
    assert large == tables[DEAD_LETTERS][0]["record"]


def test_a_long_document_takes_the_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path takes nothing that could be more than a message may take."""
    catalog = definitions()
    text = json.dumps(EVENT | {"data": {"text": "x" * 1000}}).encode()
    learned = [catalog.match(text) for _ in range(3)]
    assert {"matched"} == {one.outcome.value for one in learned}
    assert catalog.scope().fast.parts(text) is not None
    monkeypatch.setattr(fast, "_LONGEST", 1000)
    other = definitions()
    assert {"matched"} == {other.match(text).outcome.value for _ in range(3)}
    assert other.scope().fast.parts(text) is None
    assert 16 << 20 == constraint._UNCOUNTED


# Schemas whose alternatives multiply -------------------------------------------------------------------------------


def tree(levels: int) -> dict[str, Any]:
    """A value of some levels with something wrong at its end."""
    value: dict[str, Any] = {"x": 1}
    for _ in range(levels):
        value = {"x": value}
    return value


BACK: dict[str, Any] = {"properties": {"x": {"$ref": "#/$defs/a"}}}
MULTIPLYING: dict[str, dict[str, Any]] = {
    "anyOf": {"anyOf": [BACK, BACK | {"minProperties": 1}]},
    "oneOf": {"oneOf": [BACK | {"maxProperties": 1}, BACK | {"minProperties": 2}]},
    "allOf": {"allOf": [BACK, BACK]},
    "dependent": BACK | {"dependentSchemas": {"x": BACK}},
    "patterns": {"patternProperties": {"x": {"$ref": "#/$defs/a"}, "^x": {"$ref": "#/$defs/a"}}},
}


@pytest.mark.parametrize("kind", MULTIPLYING)
def test_what_is_wrong_is_not_listed_where_it_multiplies(kind: str) -> None:
    """A hundred bytes and a small schema could keep the engine busy for years; it is asked for a yes or no alone."""
    whole = {"type": "object"} | MULTIPLYING[kind]
    schema = schemas.read("JsonSchema/2020-12", json.dumps({"$ref": "#/$defs/a", "$defs": {"a": whole}}))
    (found,) = schema.check(json.dumps(tree(100)).encode()).problems
    assert "whose alternatives multiply" in found.message
    good = tree(100)
    at: Any = good
    while isinstance(at["x"], dict):
        at = at["x"]
    at["x"] = {}
    assert () == schema.check(json.dumps(good).encode()).problems
    assert "multiply" not in schema.check(b'{"x":1}').problems[0].message


def test_a_plain_tree_is_listed() -> None:
    """A schema that refers to itself once for each member tells what is wrong, however deep."""
    node = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}}}
    schema = schemas.read("JsonSchema/2020-12", json.dumps(node))
    value: dict[str, Any] = {"n": "x"}
    for _ in range(30):
        value = {"left": value, "right": {"n": 1}}
    (found,) = schema.check(json.dumps(value).encode()).problems
    assert ("/left" * 30 + "/n", True) == (found.path, "integer" in found.message)


@pytest.mark.parametrize("length", [100, 100_000])
@pytest.mark.parametrize("pattern", ["(?=x?)a*a*a*b", r"(a)\1*b", "(?<!x)a*b"])
def test_patterns_that_look_around(monkeypatch: pytest.MonkeyPatch, length: int, pattern: str) -> None:
    """What goes through a text from each of its characters is not asked about long texts; others are linear."""
    text = json.dumps("a" * length).encode()
    for format_, document_ in (
        ("JsonSchema/2020-12", {"pattern": pattern}),
        ("JsonStructure/draft-04", {"$id": "https://e.example/r", "name": "R", "type": "string", "pattern": pattern,
                                    "$schema": "https://json-structure.org/meta/extended/v0/#",
                                    "$uses": ["JSONStructureValidation"]}),
    ):  # fmt: skip
        (found,) = schemas.read(format_, json.dumps(document_)).check(text).problems
        assert (length > 10_000) == ("patterns that look around" in found.message)
    (found,) = schemas.read("JsonSchema/2020-12", b'{"pattern":"a*a*a*b"}').check(text).problems
    assert "look around" not in found.message
    assert jsonschema_rs.Draft202012Validator({"pattern": "a*a*a*b"}).is_valid("ab")


# A request ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Client]:
    """A server whose requests may take few steps, with some definitions."""
    made = Client(max_steps=2000)
    assert 201 == made.send("PUT", XID, DEFINITION).status_code
    for number in range(20):
        assert 201 == made.send("PUT", f"/messagegroups/g/messages/m{number}", DEFINITION).status_code
    yield made
    made.close()


ASKED: dict[str, tuple[str, str, Any]] = {
    "match": ("POST", "/match", [MOVED] * 1000),
    "match lines": ("POST", "/match", "\n".join([json.dumps(MOVED)] * 1000)),
    "match one message": ("POST", "/match", Message("HTTP", {"headers": (BATCH_TYPE,)}, batch(1000, MOVED)).to_bytes()),
    "validate": ("POST", f"/validate?definition={XID}", [MOVED] * 1000),
    "build": ("POST", f"/build?definition={XID}", "\n".join(['{"context":{"vin":"A1"}}'] * 1000)),
    "write": ("PATCH", "/messagegroups/h", {"messages": {f"m{one}": DEFINITION for one in range(100)}}),
    "body": ("PATCH", "/messagegroups/h", {"description": "x" * 3_000_000}),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_request_that_takes_too_much(client: Client, kind: str) -> None:
    """It is refused with what to do, nothing of it is written, and what takes less is answered."""
    before = client.send("GET", "/export").text
    response = client.send(*ASKED[kind])
    assert (400, "bad_request") == (response.status_code, response.json()["type"].rpartition("#")[2])
    assert "this request takes more than 2,000 steps of work; ask for less at once" in response.json()["title"]
    assert before == client.send("GET", "/export").text
    assert 200 == client.send("POST", "/match", MOVED).status_code
    assert 201 == client.send("PUT", "/messagegroups/h/messages/one", DEFINITION).status_code


READS = [
    "/export",
    "/?inline=*",
    "/messagegroups?inline=*",
    "/messagegroups/g/messages?sort=name",
    "/messagegroups/g/messages?filter=name!=x",
    "/messagegroups?filter=messages.name!=x",
]


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[Budget]:
    """The budgets of the requests to servers."""
    made: list[Budget] = []

    def remembering(*given: Any) -> Budget:
        made.append(Budget(*given))
        return made[-1]

    monkeypatch.setattr(flow, "Budget", remembering)
    return made


@pytest.mark.parametrize("path", READS)
def test_reads_are_linear(spent: list[Budget], path: str) -> None:
    """Eight times the entities take at most eight times the steps to read, and each takes one."""
    client, taken = Client(), []
    for first, last in ((0, 40), (40, 320)):
        messages = {f"m{one}": DEFINITION | {"name": "n"} for one in range(first, last)}
        assert client.send("PATCH", "/messagegroups/g", {"messages": messages}).status_code in (200, 201)
        assert 200 == client.send("GET", path).status_code
        taken.append(spent[-1].spent)
    client.close()
    assert taken[0] >= 40
    assert taken[1] <= 8 * taken[0] + 100


@pytest.mark.parametrize("kind", EVENTS)
def test_lines_are_linear(spent: list[Budget], kind: str) -> None:
    """Eight times the lines of a request take eight times the steps, and each takes at least one."""
    client, taken = Client(), []
    assert 201 == client.send("PUT", XID, DEFINITION).status_code
    for size in SIZES:
        lines = "\n".join([json.dumps(MOVED if kind == "good" else EVENTS[kind])] * size)
        assert 200 == client.send("POST", "/match", lines).status_code
        taken.append(spent[-1].spent)
    client.close()
    assert taken[0] >= SIZES[0]
    assert taken[1] <= 8 * taken[0] + 100


def test_writes_are_linear(spent: list[Budget]) -> None:
    """Eight times the entities take at most eight times the steps to write."""
    client, taken = Client(), []
    for group, size in (("g", 40), ("h", 320)):
        body = {"messages": {f"m{one}": DEFINITION for one in range(size)}}
        assert 201 == client.send("PUT", f"/messagegroups/{group}", body).status_code
        taken.append(spent[-1].spent)
    client.close()
    assert taken[0] >= 40 * 20
    assert taken[1] <= 8 * taken[0] + 100


def test_what_is_inherited_is_counted(spent: list[Budget]) -> None:
    """Each definition that derives from a large one takes steps for all that it has from it, also when that changes."""
    client, taken = Client(), []
    base = {"basemessage": "/messagegroups/g/messages/base"}
    for kind, size, text in (("few", 40, "x"), ("many", 8 * 40, "x"), ("long", 40, "x" * 8000)):
        metadata = {f"a{one}": {"value": text} for one in range(size)}
        large = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
        assert client.send("PUT", "/messagegroups/g/messages/base", large).status_code in (200, 201)
        before = spent[-1].spent
        body = {"messages": {f"{kind}{one}": base for one in range(10)}}
        assert client.send("PATCH", "/messagegroups/g", body).status_code in (200, 201)
        taken.append((before, spent[-1].spent))
    client.close()
    (_, few), (changed, many), (changed_to_long, long) = taken
    assert few + 10 * 7 * 40 <= many <= 8 * few
    assert few + 10 * 40 * 7 <= long
    assert 10 * 8 * 40 <= changed
    assert 20 * 40 * 7 <= changed_to_long


def test_definitions_that_inherit_too_much(tmp_path: Path) -> None:
    """A write of many of them is refused with what to do, and nothing of it is written."""
    client = Client(store=str(tmp_path / "store.db"), max_steps=20_000)
    metadata = {f"a{one}": {"value": "x"} for one in range(400)}
    base = {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
    assert 201 == client.send("PUT", "/messagegroups/g/messages/base", base).status_code
    for size, status in ((100, 400), (20, 200)):
        derived = {f"m{one}": {"basemessage": "/messagegroups/g/messages/base"} for one in range(size)}
        response = client.send("PATCH", "/messagegroups/g", {"messages": derived})
        assert status == response.status_code
        assert (status == 400) == ("takes more than 20,000 steps" in response.text)
        assert (1 if status == 400 else 1 + size) == client.send("GET", "/messagegroups/g").json()["messagescount"]
    client.close()


def test_wildcards_of_a_filter_take_what_they_look_at(spent: list[Budget]) -> None:
    """Each value that a wildcard leads to is counted: eight times the values take eight times the steps."""
    client, taken = Client(), []
    for size in (400, 8 * 400):
        labels = {f"l{one}": "a" for one in range(size)}
        assert client.send("PUT", "/messagegroups/g", {"labels": labels}).status_code in (200, 201)
        assert 200 == client.send("GET", "/messagegroups?filter=labels.*=b,labels.*=b").status_code
        taken.append(spent[-1].spent)
    client.close()
    assert taken[0] >= 400 / 4
    assert 4 * taken[0] <= taken[1] <= 8 * taken[0] + 100


@pytest.mark.parametrize("path", READS)
def test_a_read_that_takes_too_much(tmp_path: Path, path: str) -> None:
    """It is refused with what to do, and a smaller one is answered."""
    store = str(tmp_path / "s.db")
    writer = Client(store=store)
    messages: dict[str, Any] = {f"m{one}": {} for one in range(400)}
    assert 201 == writer.send("PUT", "/messagegroups/g", {"messages": messages}).status_code
    writer.close()
    client = Client(store=store, max_steps=500)
    response = client.send("GET", path)
    smaller = client.send("GET", "/messagegroups/g/messages?limit=5")
    client.close()
    assert (400, 200) == (response.status_code, smaller.status_code)
    assert "this request takes more than 500 steps of work" in response.json()["title"]


# A client that leaves ------------------------------------------------------------------------------------------------


class Leaving:
    """A client of an ASGI application that leaves once its request is being worked on."""

    def __init__(self, method: str, path: str, body: bytes) -> None:
        self.scope = {"type": "http", "method": method, "path": path, "query_string": b"", "scheme": "http"}
        self.scope |= {"headers": [(b"content-length", str(len(body)).encode())], "server": ("localhost", 80)}
        self._body = body
        self._is_sent = False
        self.may_leave = asyncio.Event()
        self.status = 0

    async def receive(self) -> dict[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.may_leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)


def test_the_work_for_a_client_that_left_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its write is undone and its turn is given back, although it would have gone on for ever."""
    monkeypatch.setattr(flow, "_WATCHED_AFTER", 0.0)
    begun, rounds = threading.Event(), 0
    plain = checks_of_writes._check_versions

    def endless(*given: Any) -> None:
        nonlocal rounds
        plain(*given)
        begun.set()
        while True:
            budget.spend()
            rounds += 1

    app = AsgiApp(made_flow(Settings(store="memory:", max_steps=1 << 60)))

    async def run() -> tuple[int, int]:
        first = Leaving("PUT", "/messagegroups/g/messages/m", json.dumps(DEFINITION).encode())
        monkeypatch.setattr(checks_of_writes, "_check_versions", endless)
        answering = asyncio.create_task(app(first.scope, first.receive, first.send))
        assert await asyncio.to_thread(begun.wait, LONG)
        first.may_leave.set()
        await asyncio.wait_for(answering, LONG)
        monkeypatch.setattr(checks_of_writes, "_check_versions", plain)
        second = Leaving("PUT", "/messagegroups/g/messages/n", json.dumps(DEFINITION).encode())
        await asyncio.wait_for(app(second.scope, second.receive, second.send), LONG)
        third = Leaving("GET", "/messagegroups/g/messages/m", b"")
        await asyncio.wait_for(app(third.scope, third.receive, third.send), LONG)
        assert 201 == second.status
        return first.status, third.status

    try:
        assert (400, 404) == asyncio.run(run())
    finally:
        app.close()
    assert rounds > 0


def test_each_write_of_a_group_spends_its_own(tmp_path: Path) -> None:
    """Whoever leads runs the jobs of others, each within the budget of the thread that waits for it."""
    with open_store(str(tmp_path / "s.db")) as store:
        leads, queued = threading.Event(), threading.Event()
        found: dict[str, Any] = {}

        def lead(db: Any) -> None:
            leads.set()
            assert queued.wait(LONG)
            while not store._writes._waiting:
                threading.Event().wait(0.001)

        def follow() -> None:
            with within(Budget(3, "This request")):
                queued.set()
                try:
                    store.write(lambda db: db.execute("INSERT INTO settings (name, value) VALUES ('x', 'y')"))
                except TooMuch as error:
                    found["error"] = str(error)

        leader = threading.Thread(target=lambda: found.setdefault("led", store.write(lead)))
        follower = threading.Thread(target=follow)
        leader.start()
        assert leads.wait(LONG)
        follower.start()
        leader.join(LONG)
        follower.join(LONG)
        assert {"led": None, "error": "This request takes more than 3 steps of work"} == found
        assert store.reader().one("SELECT 1 FROM settings WHERE name = 'x'") is None
