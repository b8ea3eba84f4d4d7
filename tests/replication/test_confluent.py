"""A registry that speaks Confluent's API, copied to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import orjson
import pytest

from signalbook.client import Call, RegistryReply, RemoteError
from signalbook.replication.confluent import ConfluentCopy, ConfluentPeer
from signalbook.replication.target import ReplicationReport
from tests.conftest import FreshStore
from tests.replication.confluent_peers import FakeRegistry, Served, segment


def record(name: str, *needs: str) -> dict[str, Any]:
    """An Avro record that may need others."""
    return {"type": "record", "name": name, "fields": [{"name": f"f{one}", "type": one} for one in needs]}


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    """A reference by its name."""
    return {"name": name, "subject": subject, "version": version}


MakeServed = Callable[[str], Served]


@pytest.fixture
def make_served(fresh_store: FreshStore) -> Iterator[MakeServed]:
    """Make registries, each with a store of its own."""
    made: list[Served] = []

    def make(name: str) -> Served:
        made.append(Served(fresh_store(), name))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def old(make_served: MakeServed) -> Served:
    """The registry that a team has."""
    return make_served("old")


@pytest.fixture
def new(make_served: MakeServed) -> Served:
    """The one that it moves to."""
    return make_served("new")


def copied(source: Served, target: Served, **more: Any) -> ReplicationReport:
    """Copy once; there is nothing to complain about."""
    report = ConfluentCopy(source.peer, target.peer, **more).run()
    assert {} == report.problems
    return report


def fill(registry: Served) -> None:
    """All that a registry can have."""
    registry("PUT", "/config", {"compatibility": "NONE"})
    registry.register("yard/part.proto", 'syntax = "proto3"; message Part { string id = 1; }', schemaType="PROTOBUF")
    registry.register(
        "Größe ✓-value",
        'syntax = "proto3"; import "yard/part.proto"; message Crane { Part part = 1; }',
        schemaType="PROTOBUF",
        references=[reference("yard/part.proto", "yard/part.proto")],
    )
    for name in ("A", "B", "C", "D"):
        registry.register("a", record(name), metadata={"properties": {"team": name}})
    registry("DELETE", "/subjects/a/versions/2")
    registry("DELETE", "/subjects/a/versions/3")
    registry("DELETE", "/subjects/a/versions/3?permanent=true")
    rules = {"domainRules": [{"name": "small", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    registry.register("A", record("A"), ruleSet=rules)
    registry.register(":.dock:a", record("Z"))
    registry.register(":.dock:b", record("Y", "A"), references=[reference("A", ":.:a")])
    registry.register("gone", {"type": "object"}, schemaType="JSON")
    registry("DELETE", "/subjects/gone")
    registry("PUT", "/config/a", {"compatibility": "FULL", "normalize": True})
    registry("PUT", "/config/:.dock:", {"compatibility": "FORWARD_TRANSITIVE"})
    registry("PUT", "/mode/A", {"mode": "READONLY"})
    registry("PUT", "/mode/:.dock:", {"mode": "READONLY_OVERRIDE"})


def test_all_of_a_registry(old: Served, new: Served) -> None:
    """Names, ids, numbers with gaps, deleted versions, references, metadata, rules, levels and modes come over."""
    fill(old)
    report = copied(old, new)
    assert old.state() == new.state()
    assert (9, 2) == (report.outcomes["written"], report.outcomes["deleted"])
    ids = {(one.context, one.id) for one in old.state().versions.values()}
    assert len(ids) == report.outcomes["verified"]
    assert [-2, 1, 4] == sorted(new("GET", "/subjects/a/versions?deletedAsNegative=true"))


def test_deleted_versions_that_refer_to_deleted_ones(old: Served, new: Served) -> None:
    """They come over too: all are written before any is hidden, and those that refer are hidden before the others."""
    old.register("a", record("A"))
    old.register("b", record("B", "A"), references=[reference("A", "a")])
    old("DELETE", "/subjects/b")
    old("DELETE", "/subjects/a")
    copied(old, new)
    assert old.state() == new.state()


def test_again_writes_nothing(old: Served, new: Served) -> None:
    """A copy that is complete is not written again, and its ids are compared again."""
    fill(old)
    first = copied(old, new)
    new.calls.clear()
    second = copied(old, new)
    assert [] == new.writes()
    assert {"verified": first.outcomes["verified"]} == dict(second.outcomes)


def test_back_again(old: Served, new: Served, make_served: MakeServed) -> None:
    """What was imported is exported to a third registry as it was."""
    fill(old)
    copied(old, new)
    third = make_served("third")
    copied(new, third)
    assert old.state() == third.state()


def test_the_next_id_is_above_the_imported_ones(old: Served, new: Served) -> None:
    """A new schema gets an id that no imported one has, and the next number of its subject."""
    for name in ("A", "B", "C"):
        old("PUT", "/config", {"compatibility": "NONE"})
        old.register("a", record(name))
    copied(old, new)
    found = new.register("a", record("D"))
    assert (4, 4) == (found["id"], found["version"])


def test_metadata_are_not_taken_over(old: Served, new: Served) -> None:
    """A version without metadata stays without, though the one before has some and the settings add some."""
    old("PUT", "/mode?force=true", {"mode": "IMPORT"})
    old.register("a", record("A"), id=5, version=1, metadata={"properties": {"x": "1"}})
    old.register("a", record("A"), id=6, version=2)
    old("PUT", "/config/a", {"defaultMetadata": {"properties": {"y": "2"}}})
    old("PUT", "/mode", {"mode": "READWRITE"})
    copied(old, new)
    assert "metadata" not in new("GET", "/subjects/a/versions/2")
    copied(old, new)
    old("PUT", "/mode/a?force=true", {"mode": "IMPORT"})
    old.register("a", record("B"), id=7, version=3)
    copied(old, new)
    assert "metadata" not in new("GET", "/subjects/a/versions/3")


def test_the_modes_are_set_back(old: Served, new: Served) -> None:
    """No subject stays in mode IMPORT, so producers can go on."""
    fill(old)
    copied(old, new)
    modes = [new("GET", f"/mode/{segment(name)}").get("mode", "") for name in new("GET", "/subjects?deleted=true")]
    assert "IMPORT" not in modes
    assert {"mode": "READWRITE"} == new("GET", "/mode")


def failure_of(copy: ConfluentCopy) -> str:
    """Why a run broke off; empty where it did not."""
    try:
        copy.run()
    except RemoteError as error:
        return str(error)
    return ""


def vanish_after(registry: Served, requests: int) -> None:
    """Let a registry answer so many requests and then no more."""
    left = [requests]

    def before(call: Call) -> RegistryReply | None:
        left[0] -= 1
        if left[0] < 0:
            raise RemoteError(f"nothing answers at {registry.name}")
        return None

    registry.before = before


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_registry_that_vanishes(side: str, old: Served, new: Served) -> None:
    """Wherever a side vanishes, it is said, what is there is right, and the next run goes on; no write comes twice."""
    fill(old)
    gone = old if side == "source" else new
    limit, ended = 3, False
    while not ended:
        vanish_after(gone, limit)
        said = failure_of(ConfluentCopy(old.peer, new.peer))
        ended = not said
        assert ended or (f"nothing answers at {gone.name}; " in said and "run it again to go on" in said)
        gone.before = lambda call: None
        whole = old.state().versions
        for key, one in new.state().versions.items():
            assert one.is_like(whole[key])
        limit += 7
    assert old.state() == new.state()
    added = [one for one in new.writes() if one.startswith("POST /confluent/subjects/")]
    assert 9 <= len(added) <= 9 + (limit // 7 if side == "target" else 0)


def test_modes_are_set_back_where_the_source_refuses(old: Served, new: Served) -> None:
    """A run that breaks off at the target's end of the work leaves no subject in mode IMPORT."""
    old.register("a", record("A"))
    old.register("b", record("B"))
    seen: list[str] = []

    def before(call: Call) -> RegistryReply | None:
        if call.method == "POST":
            seen.append(call.path)
            if len(seen) == 2:
                raise RemoteError("the line broke")
        return None

    new.before = before
    with pytest.raises(RemoteError, match="the line broke; versions written in this run: 1; "):
        ConfluentCopy(old.peer, new.peer).run()
    new.before = lambda call: None
    assert [40409, 40409] == [new("GET", f"/mode/{name}")["error_code"] for name in ("a", "b")]


def test_a_conflict_is_kept_and_said(old: Served, new: Served) -> None:
    """What the target has otherwise stays; the rest is copied, and what refers to it is not."""
    old.register("a", record("A"))
    old.register("b", record("B"))
    new.register("z", record("Z"))  # has the id 1 now
    new.register("b", record("Q"))
    report = ConfluentCopy(old.peer, new.peer).run()
    problems = {one.path: one.code for one in report.problems.values()}
    assert {"/subjects/a/versions/1": "refused", "/subjects/b/versions/1": "conflict"} == problems
    words = {one.path: one.message for one in report.problems.values()}
    assert "id 1 is not permitted" in words["/subjects/a/versions/1"]
    assert "the target has another schema under its id and number" == words["/subjects/b/versions/1"]
    assert '"Q"' in new("GET", "/subjects/b/versions/1")["schema"]


def test_a_mirror(old: Served, new: Served) -> None:
    """A mirror loses what the source does not have and replaces what it has otherwise, those that refer to it first."""
    old("PUT", "/config", {"compatibility": "NONE"})
    for name in ("A", "B"):
        old.register("a", record(name))
    copied(old, new)
    new("PUT", "/config", {"compatibility": "NONE"})
    new.register("a", record("Extra"))
    new.register("own", record("Own", "Extra"), references=[reference("Extra", "a", 3)])
    new("DELETE", "/subjects/a/versions/1")
    kept = ConfluentCopy(old.peer, new.peer).run()
    assert ["/subjects/a/versions/1"] == [one.path for one in kept.problems.values()]
    assert ["a", "own"] == new("GET", "/subjects")
    report = copied(old, new, mirror=True)
    assert 3 == report.outcomes["removed"]
    assert old.state() == new.state()


def test_a_mirror_asks_before_it_removes(old: Served, new: Served) -> None:
    """A subject that the source lists no more but has is not removed."""
    old.register("a", record("A"))
    old.register("b", record("B"))
    copied(old, new)

    def before(call: Call) -> RegistryReply | None:
        listed = call.path == "/confluent/subjects?deleted=true"
        return RegistryReply("old", 200, {}, b'["a"]') if listed else None

    old.before = before
    ConfluentCopy(old.peer, new.peer, mirror=True).run()
    assert ["a", "b"] == new("GET", "/subjects")


def test_following(old: Served, new: Served) -> None:
    """A copy follows what is registered, deleted and set; it is READONLY meanwhile, and reads little."""
    fill(old)
    steps: list[Callable[[], object]] = [
        lambda: old.register("later", record("Later")),
        lambda: old("DELETE", "/subjects/later"),
        lambda: old("PUT", "/config/later", {"compatibility": "FULL"}),
        lambda: None,
        lambda: old("DELETE", "/subjects/later?permanent=true"),
    ]
    todo = iter(steps)
    seen: list[dict[str, int]] = []
    reads: list[int] = []

    def pause(seconds: float) -> None:
        old.calls.clear()
        next(todo)()

    def keep(report: ReplicationReport) -> None:
        assert ({}, "") == (report.problems, report.failure)
        seen.append({name: count for name, count in report.outcomes.items() if name != "verified"})
        reads.append(len([path for method, path in old.calls if "/versions/" in path]))

    copy = ConfluentCopy(old.peer, new.peer, mirror=True, guarded=True)
    for report in islice(copy.follow(7.0, pause), 1 + len(steps)):
        keep(report)
    assert [{"written": 1}, {"deleted": 1}, {"configured": 1}, {}, {"removed": 1}] == seen[1:]
    assert old.state().versions == new.state().versions
    assert {"mode": "READONLY"} == new("GET", "/mode")
    refused = new("POST", "/subjects/x/versions", {"schema": '"int"'})
    assert 42205 == refused["error_code"]
    subjects = len(old("GET", "/subjects?deleted=true"))
    assert reads[4] <= subjects + 1  # the newest version of each, and not every version


def test_following_goes_on_after_a_failure(old: Served, new: Served) -> None:
    """A source that does not answer is told and asked again; one that refuses the first run is not."""
    old.register("a", record("A"))
    rounds = [0]

    def before(call: Call) -> RegistryReply | None:
        if rounds[0] == 1:
            raise RemoteError("nothing answers")
        return None

    def pause(seconds: float) -> None:
        rounds[0] += 1

    old.before = before
    reports = islice(ConfluentCopy(old.peer, new.peer, guarded=True).follow(1.0, pause), 3)
    assert ["", "nothing answers", ""] == [report.failure.partition(";")[0] for report in reports]

    class Refusing(FakeRegistry):
        def answer(self, call: Call) -> RegistryReply:
            return RegistryReply(self.name, 401, {}, b'{"error_code":401,"message":"who?"}')

    refusing = Refusing({})
    with pytest.raises(RemoteError, match="who\\? \\(401\\); give its credentials"):
        next(ConfluentCopy(ConfluentPeer(refusing), new.peer).follow(1.0, pause))


def test_the_switch(old: Served, new: Served) -> None:
    """After following, a run without it takes over the modes, and producers register."""
    old.register("a", record("A"))
    copied(old, new, guarded=True)
    assert 42205 == new("POST", "/subjects/b/versions", {"schema": '"int"'})["error_code"]
    copied(old, new)
    assert 2 == new.register("b", '"int"')["id"]


def test_what_is_in_force_in_a_context(old: Served, new: Served) -> None:
    """Where a context inherits another level at the target, it is set there."""
    old.register(":.dock:a", record("A"))

    def before(call: Call) -> RegistryReply | None:
        wide = call.path == f"/confluent/config/{segment(':.dock:')}?defaultToGlobal=true"
        return RegistryReply("old", 200, {}, b'{"compatibilityLevel":"FULL"}') if wide else None

    old.before = before
    ConfluentCopy(old.peer, new.peer).run()
    assert {"compatibilityLevel": "FULL"} == new("GET", f"/config/{segment(':.dock:')}")


# ---- a source that is not a friend


def answers_of(*versions: dict[str, Any]) -> dict[str, Any]:
    """What a registry with these versions answers."""
    made: dict[str, Any] = {"GET /subjects?deleted=true": sorted({one["subject"] for one in versions})}
    for one in versions:
        path = f"GET /subjects/{segment(one['subject'])}/versions"
        made.setdefault(path, []).append(one["version"])
        made.setdefault(f"{path}?deleted=true", []).append(one["version"])
        made[f"{path}/{one['version']}?deleted=true"] = one
    return made


def version(subject: str, name: str, number: int = 1, id_: int = 1, **more: Any) -> dict[str, Any]:
    """A version as a registry answers it."""
    schema = orjson.dumps(record(name)).decode()
    return {"subject": subject, "version": number, "id": id_, "schema": schema, **more}


def problems_of(answers: dict[str, Any], target: Served) -> dict[str, str]:
    """What a copy from a registry with these answers complains about."""
    report = ConfluentCopy(ConfluentPeer(FakeRegistry(answers)), target.peer).run()
    return {one.path: one.message for one in report.problems.values()}


def test_references_in_a_circle(new: Served) -> None:
    """They are refused in words that name the circle; what stands beside them comes over."""
    found = problems_of(
        answers_of(
            version("a", "A", references=[reference("B", "b")]),
            version("b", "B", id_=2, references=[reference("A", "a")]),
            version("c", "C", id_=3, references=[reference("A", "a")]),
            version("d", "D", id_=4),
        ),
        new,
    )
    assert {"/subjects/a/versions/1", "/subjects/b/versions/1", "/subjects/c/versions/1"} == found.keys()
    said = found["/subjects/a/versions/1"]
    assert "it refers to a circle, which cannot be read, or is in it: version 1 of '" in said
    assert said.endswith(("'a' → version 1 of 'b' → version 1 of 'a'", "'b' → version 1 of 'a' → version 1 of 'b'"))
    assert ["d"] == new("GET", "/subjects")


def test_a_reference_that_leads_nowhere(new: Served) -> None:
    """It is refused, and so is what refers to the version that has it."""
    found = problems_of(
        answers_of(
            version("a", "A", references=[reference("B", "b", 7)]),
            version("c", "C", id_=3, references=[reference("A", "a")]),
        ),
        new,
    )
    assert "it refers to version 7 of 'b', which http://fake.test does not have" == found["/subjects/a/versions/1"]
    assert "it refers to version 1 of 'a', which was not copied" == found["/subjects/c/versions/1"]


def test_two_types_under_one_subject(new: Served) -> None:
    """A version of another type is refused by the target with its reason; the others come over."""
    other = {"subject": "a", "version": 2, "id": 2, "schema": "{}", "schemaType": "JSON"}
    found = problems_of(answers_of(version("a", "A"), other), new)
    assert "one schemaType" in found["/subjects/a/versions/2"]
    assert [1] == new("GET", "/subjects/a/versions")


def test_what_is_listed_and_not_there(new: Served) -> None:
    """A version that is listed and not answered is said, and so is a whole subject."""
    answers = answers_of(version("a", "A"))
    answers["GET /subjects/a/versions?deleted=true"] = [1, 2]
    answers["GET /subjects?deleted=true"] = ["a", "b"]
    found = problems_of(answers, new)
    assert {"/subjects/a/versions/2", "/subjects/b/versions/0"} == found.keys()


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("GET /subjects?deleted=true", {"a": 1}, "something other than a list"),
        ("GET /subjects?deleted=true", [1], "something other than a list"),
        ("GET /subjects?deleted=true", b"<html>", "other than JSON"),
        ("GET /subjects?deleted=true", b"[" * 900 + b"]" * 900, "nested deeper"),
        ("GET /subjects/a/versions?deleted=true", ["x"], "something other than a list"),
        ("GET /subjects/a/versions?deleted=true", [True], "something other than a list"),
        ("GET /subjects/a/versions/1?deleted=true", {"subject": "a"}, "without 'version'"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", 2), "with version 2"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", id_=0), "with the id 0"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", id_=2**31), "with the id 2147483648"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", schemaType="XSD"), "not of a known form"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", metadata=[1]), "not of a known form"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", references=[{"name": "x"}]), "without 'subject'"),
        ("GET /subjects/a/versions/1?deleted=true", version("a", "A", references={"a": 1}), "without 'name'"),
        ("GET /config", [1], "something other than an object"),
    ],
)  # fmt: skip
def test_answers_that_are_none(path: str, answer: Any, words: str, new: Served) -> None:
    """An answer of another form ends the run with a sentence, and nothing is written."""
    answers = {**answers_of(version("a", "A")), path: answer}
    with pytest.raises(RemoteError, match=words):
        problems_of(answers, new)
    assert [] == new("GET", "/subjects?deleted=true")


def test_a_list_without_end(new: Served) -> None:
    """A registry whose list goes on and on is left."""

    class Endless(FakeRegistry):
        def answer(self, call: Call) -> RegistryReply:
            _, _, offset = call.path.partition("offset=")
            names = [f"s{int(offset or 0) + one}" for one in range(100_001)]
            return RegistryReply(self.name, 200, {}, orjson.dumps(names))

    with pytest.raises(RemoteError, match="lists more than 1,000,000 entries"):
        ConfluentPeer(Endless({})).subjects()


def test_a_server_that_gives_lists_in_parts_or_not(new: Served) -> None:
    """A list in parts is read whole, and a server that does not know parts is not asked for ever."""
    names = [f"s{one:03}" for one in range(250)]

    class Parts(FakeRegistry):
        def answer(self, call: Call) -> RegistryReply:
            start = int(call.path.partition("offset=")[2] or 0)
            return RegistryReply(self.name, 200, {}, orjson.dumps(names[start : start + 100]))

    class Whole(FakeRegistry):
        def answer(self, call: Call) -> RegistryReply:
            return RegistryReply(self.name, 200, {}, orjson.dumps(names))

    assert names == ConfluentPeer(Parts({})).subjects()
    assert names == ConfluentPeer(Whole({})).subjects()


def test_a_text_in_another_spelling(new: Served) -> None:
    """A source that keeps its texts as they were sent is copied; the same schema in our spelling is the same."""
    spelled = '{ "name": "A",  "type": "record", "fields": [ ] }'
    one = {"subject": "a", "version": 1, "id": 9, "schema": spelled}
    assert {} == problems_of(answers_of(one), new)
    assert {} == problems_of(answers_of(one), new)
    assert 9 == new("GET", "/subjects/a/versions/1")["id"]


def test_an_older_server(new: Served) -> None:
    """A server without contexts and modes, whose answers do not say what is deleted, is copied."""
    answers = answers_of(version("a", "A"), version("a", "B", 2, 2))
    answers["GET /subjects/a/versions"] = [2]
    assert {} == problems_of(answers, new)
    assert [2] == new("GET", "/subjects/a/versions")
    assert [1, 2] == new("GET", "/subjects/a/versions?deleted=true")


def test_another_guid_is_noted(new: Served) -> None:
    """A guid that differs is worth a note: payloads may be framed by it."""
    answers = answers_of(version("a", "A", guid="00000000-0000-0000-0000-000000000000"))
    report = ConfluentCopy(ConfluentPeer(FakeRegistry(answers)), new.peer).run()
    assert ({}, 1) == (report.problems, len(report.notes))
    assert "payloads that are framed by guid do not find it" in report.notes[0][1]


def test_an_id_that_is_another_at_the_end(old: Served, new: Served) -> None:
    """The comparison at the end is not fooled by what was answered on the way."""
    old.register("a", record("A"))

    def before(call: Call) -> RegistryReply | None:
        by_id = call.path == "/confluent/schemas/ids/1"
        return RegistryReply("new", 200, {}, b'{"schema": "\\"int\\""}') if by_id else None

    new.before = before
    report = ConfluentCopy(old.peer, new.peer).run()
    assert ["the id 1 stands for another schema at new"] == [one.message for one in report.problems.values()]


@pytest.mark.parametrize(
    ("credentials", "header"), [("me:secret", "Basic bWU6c2VjcmV0"), ("token", "Bearer token"), ("", None)]
)
def test_credentials(credentials: str, header: str | None) -> None:
    """A user with a password and a token are sent as each is."""
    sent = []

    class Listening(FakeRegistry):
        def answer(self, call: Call) -> RegistryReply:
            sent.append(call.headers.get("authorization"))
            return super().answer(call)

    ConfluentPeer(Listening({}), credentials=credentials).subjects()
    assert [header] == sent
