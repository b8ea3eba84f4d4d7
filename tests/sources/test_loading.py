"""Loading documents into a registry: what is asked of it, and what did not stay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook import Registry, RegistryError
from signalbook.registry import resources
from signalbook.sources.dialects import Raw
from signalbook.sources.documents import Document
from signalbook.sources.loading import Loadable, Loading, load_good, loadable
from signalbook.spec.dialects import DIALECTS

Json = dict[str, Any]


class Told:
    """A registry that notes what is asked of it."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.asked: list[str] = []
        self.readable = True

    def get(self, path: str) -> Any:
        self.asked.append(f"GET {path}")
        if not self.readable:
            raise RegistryError("unauthorized", path)
        return self.registry.get(path)

    def send(self, method: str, path: str, body: Any = None, *, load: str = "") -> str:
        self.asked.append(f"{method} {path}")
        return self.registry.write_text(method, path, body, load=load)

    def load_part(self, path: str, body: Any, load: str) -> tuple[int, int] | None:
        self.asked.append(f"POST {path}")
        return self.registry.load_part(path, body, load)


@pytest.fixture
def told() -> Iterator[Told]:
    """A registry in memory."""
    with Registry.open() as registry:
        yield Told(registry)


def message(**versions: Any) -> Loadable:
    """A catalog with one message."""
    content = {"messagegroups": {"g": {"messages": {"m": {"versions": versions}}}}}
    return Loadable(Document("a.json", content))


def test_the_model_is_asked_for_once(told: Told) -> None:
    """However many documents there are, the model is read once, unless one of them changes it; the same is not sent."""
    loading = Loading(told)
    for _ in range(3):
        loading.load(message(v1={}))
    loading.finish()
    assert ["GET /model", *["POST /?ignore=epoch"] * 3] == told.asked
    told.asked.clear()
    loading = Loading(told, with_model=True)
    source = told.registry.get("/modelsource")
    for description in (source["description"], "another", "another"):
        loading.load(Loadable(Document("b.json", {"modelsource": {**source, "description": description}})))
    expected = ["GET /modelsource", "GET /model", "GET /modelsource", "PUT /modelsource", "GET /model"]
    assert [*expected, "GET /modelsource"] == told.asked


def test_versions_that_did_not_stay(told: Told) -> None:
    """Documents that together give more versions than are kept are told; which went is the registry's word."""
    loading = Loading(told)
    loading.load(message(v1={}))
    loading.finish()
    assert [] == loading.unkept()
    loading.load(message(v2={}, v3={}))
    (one,) = loading.unkept()
    place = "/messagegroups/g/messages/m"
    assert (place, "a.json", ("v1", "v2", "v3"), 1, 2) == (one.xid, one.source, one.given, one.most, one.count)
    assert [f"{place}/versions/v1", f"{place}/versions/v2"] == loading.gone(one)
    told.readable = False
    assert [] == loading.gone(one)


def test_a_history_is_kept(told: Told) -> None:
    """The older versions of a 0.1 definition are its history, which the registry keeps."""
    versions = [{"version": number, "definition": {"attributes": {"type": {"value": "m"}}}} for number in (1, 2)]
    given = loadable(Raw("a.json", {"id": "m", "format": "CloudEvents", "versions": versions}), "g")
    assert given.logged
    loading = Loading(told)
    loading.load(given)
    loading.finish()
    assert [] == loading.unkept()


def changes(registry: Registry) -> int:
    """How many requests have changed something."""
    return int(registry.store.reader().one("SELECT COUNT(*) FROM changes")[0])  # type: ignore[index]


PLACE = "/schemagroups/g/schemas"
CATALOG: dict[str, Any] = {
    "messagegroups": {
        "g": {"name": "G", "messages": {f"m{number}": {"name": f"M{number}"} for number in range(7)}},
        "h": {"messages": {"one": {"envelope": "CloudEvents/1.0", "deprecated": {}}}},
    },
    "schemagroups": {
        "g": {
            "schemas": {
                "line": {
                    "versions": {
                        "1": {"format": "JsonSchema/draft-07", "schema": {"type": "string"}, "ancestorid": "1"},
                        "2": {"format": "JsonSchema/draft-07", "schema": {"type": "string"}, "ancestorid": "1"},
                    },
                    "meta": {"compatibility": "backward", "defaultversionid": "1", "defaultversionsticky": True},
                },
                "text": {"contenttype": "text/plain", "schema": "hello"},
                "away": {"schemaurl": "https://example.com/schema"},
                "alias": {"meta": {"xref": "/schemagroups/g/schemas/line"}},
            }
        }
    },
    "endpoints": {"e": {"usage": ["producer"], "messages": {"m": {"description": "one of its own"}}}},
}


def loaded(registry: Registry, content: dict[str, Any], chunk: int = 500) -> None:
    """Load one document as the command does."""
    loading = Loading(Told(registry), chunk=chunk)
    loading.load(Loadable(Document("a.json", content)))
    loading.finish()


@pytest.mark.parametrize("chunk", [0, 1, 2, 500])
def test_loading_the_same_again_changes_nothing(store_url: str, chunk: int) -> None:
    """A second load of the same document, or of the registry's own export, writes nothing: no epoch, time or event."""
    with Registry.open(store_url) as registry:
        loaded(registry, CATALOG)
        before, told = registry.export(), changes(registry)
        loaded(registry, CATALOG, chunk)
        loaded(registry, before, chunk)
        assert before == registry.export()
        assert told == changes(registry)


def test_only_what_is_new_is_written(store_url: str) -> None:
    """Of a document that was changed in one place only that entity, and what it is counted in, is written."""
    with Registry.open(store_url) as registry:
        loaded(registry, CATALOG)
        before = registry.export()
        again = deepcopy(CATALOG)
        again["messagegroups"]["g"]["messages"]["m3"]["name"] = "other"
        again["messagegroups"]["g"]["messages"]["new"] = {}
        again["schemagroups"]["g"]["schemas"]["text"]["schema"] = "bye"
        loaded(registry, again, 2)
        after = registry.export()
        found = {xid for xid, epoch in epochs(after).items() if epochs(before).get(xid) != epoch}
        assert {
            "/messagegroups/g", "/messagegroups/g/messages/m3/versions/1", "/messagegroups/g/messages/new/meta",
            "/messagegroups/g/messages/new/versions/1", "/schemagroups/g/schemas/text/versions/1",
        } == found  # fmt: skip


def test_an_alias_is_written_once() -> None:
    """A resource that shows another counts as written when it is new, and as unchanged when it is there."""
    messages = {"m": {"protocol": "NATS"}, "x": {"meta": {"xref": "/messagegroups/g/messages/m"}}}
    body = {"messagegroups": {"g": {"messages": messages}}}
    with Registry.open() as registry:
        assert [(1, 2), (0, 0)] == [registry.load_part("/", body, name) for name in ("a", "b")]


def test_true_is_another_value_than_one() -> None:
    """A load tells values apart that only Python takes for the same."""
    with Registry.open() as registry:
        for value in (1, True):
            loaded(registry, {"messagegroups": {"g": {"messages": {"m": {"envelopemetadata": {"x": {"any": value}}}}}}})
        assert registry.get("/messagegroups/g/messages/m")["envelopemetadata"]["x"]["any"] is True


def epochs(value: Any) -> dict[str, int]:
    """The epoch of each entity of an export, by xid."""
    found: dict[str, int] = {}
    if isinstance(value, dict):
        if "xid" in value and "epoch" in value:
            found[value["xid"]] = value["epoch"]
        for member in value.values():
            found |= epochs(member)
    return found


def times(value: Any) -> dict[str, tuple[str, str]]:
    """The times of each entity of an export, by xid."""
    found: dict[str, tuple[str, str]] = {}
    if isinstance(value, dict):
        if "xid" in value and "createdat" in value:
            found[value["xid"]] = (value["createdat"], value["modifiedat"])
        for member in value.values():
            found |= times(member)
    return found


@pytest.mark.parametrize("chunk", [1, 2, 3, 500])
def test_a_load_in_parts_gives_the_same_as_one_request(chunk: int) -> None:
    """However a load is cut, epochs, times and the subjects of events are those of one request."""
    with Registry.open() as registry:
        loaded(registry, CATALOG)
        registry.patch("/messagegroups/g", {"name": "G2"})
        exported = registry.export()
    whole, cut = Registry.open(), Registry.open()
    with whole, cut:
        for content in (CATALOG, exported):
            loaded(whole, content, 0)
            loaded(cut, content, chunk)
            assert epochs(whole.export()) == epochs(cut.export())
        after = times(cut.export())
        given = times(exported)
        expected = {xid: time for xid, time in given.items() if xid != "/"}
        assert expected == {xid: time for xid, time in after.items() if xid != "/"}
        assert subjects(whole) == subjects(cut)


def test_a_load_has_one_instant() -> None:
    """Everything that a load makes has the same times, as in one request (TIME-4)."""
    with Registry.open() as registry:
        loaded(registry, CATALOG, 1)
        made = {time for xid, pair in times(registry.export()).items() for time in pair if xid != "/"}
        assert 1 == len(made)


def subjects(registry: Registry) -> list[tuple[str, str]]:
    """The type and subject of each event, sorted."""
    rows = registry.store.reader().execute("SELECT events FROM changes")
    return sorted((event[0], event[1]) for (text,) in rows for event in orjson.loads(text))


def test_documents_that_are_good_are_loaded(told: Told) -> None:
    """Of several documents those that the registry takes are loaded, whatever they wait for; the others are told."""
    schema = {"format": "JsonSchema/draft-07"}
    source = told.registry.get("/modelsource")
    source["groups"]["schemagroups"]["resources"]["schemas"]["strictvalidation"] = True
    told.registry.put("/modelsource", source)

    def document(name: str, **schemas: Any) -> Loadable:
        full = {key: {**schema, "schema": value} for key, value in schemas.items()}
        return Loadable(Document(name, {"schemagroups": {"g": {"schemas": full}}}))

    refused: dict[str, str] = {}
    documents = [
        document("early", early={"$ref": f"{PLACE}/late"}),
        document("broken", broken={"type": 5}),
        document("circle", one={"$ref": f"{PLACE}/two"}),
        document("back", two={"$ref": f"{PLACE}/one"}),
        document("dangling", dangling={"$ref": f"{PLACE}/nowhere"}),
        document("needs-broken", needy={"$ref": f"{PLACE}/broken"}),
        Loadable(Document("unknown", {"things": {"t": {}}})),
        document("late", late={"type": "string"}),
        Loadable(Document("half", {"messagegroups": {"g": {"messages": {"a": {}, "b": {"name": 5}}}}})),
    ]
    done = load_good(
        lambda name: Loading(told, chunk=0, name=name),
        documents,
        lambda one, error: refused.setdefault(one.document.source, getattr(error, "name", "usage")),
    )
    there = told.registry.get(PLACE)
    assert {"early", "late", "one", "two"} == set(there)
    assert {
        "broken": "format_violation", "dangling": "format_violation", "needs-broken": "format_violation",
        "unknown": "usage", "half": "invalid_attribute",
    } == refused  # fmt: skip
    assert 0 < len(done)
    with pytest.raises(RegistryError):
        told.registry.get("/messagegroups/g")


def test_what_is_stored_is_what_was_read(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that would store something else than its documents say is refused, and stores nothing of it."""
    spelled = resources.read_request

    def losing(kind: Any, attrs: Any, subject: str, *, patch: bool) -> Any:
        found = spelled(kind, attrs, subject, patch=patch)
        return {name: value for name, value in found.items() if name != "description"}

    monkeypatch.setattr(resources, "read_request", losing)
    for sent in ({"description": "d"}, {"versions": {"v1": {"description": "d"}}}):
        loading = Loading(told)
        with pytest.raises(RegistryError, match="description"):
            loading.load(Loadable(Document("a.json", {"messagegroups": {"g": {"messages": {"m": sent}}}})))
    assert {} == told.registry.get("/messagegroups")


# Every name that a dialect has for an attribute, and some that only look like one.
NAMES = sorted(
    {
        place.partition("/")[0]
        for dialect in DIALECTS.values()
        for table in dialect.tables.values()
        for row in table.rows
        for place in (row.there, row.here)
    }
    | {"attributes", "definition", "definitions", "versions", "tags", "relatedto", "schematype", "channel", "options"}
    | {
        "messagegroups",
        "schemagroups",
        "endpoints",
        "ancestor",
        "ancestorid",
        "basemessageuri",
        "schemaobject",
        "specversion",
    }
)
PROPERTIES = {"type": {"value": "t", "type": "urireference"}, "attributes": {"subject": {"value": "s"}}}
VALUES = st.sampled_from(
    ["x", "1.0", "#/a/b", 5, True, {}, {"a": 1}, PROPERTIES, ["x"], [{"name": "a"}], {"value": "v"}]
)
ENTITIES: Json = {
    "/messagegroups/g": {"protocol": "NATS"},
    "/messagegroups/g/messages/m": {"protocol": "NATS", "protocoloptions": {"subject": "s", "reply": "r"}},
    "/messagegroups/g/messages/other": {"protocoloptions": {"reply-to": "r"}},
    "/messagegroups/e/messages/event": {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "event"}},
        "basemessage": "/messagegroups/g/messages/m",
    },
    "/schemagroups/s": {},
    "/schemagroups/s/schemas/t/versions/v1": {"format": "JsonSchema/draft-07", "schema": {"type": "object"}},
    "/endpoints/p": {
        "usage": ["producer"],
        "protocol": "KAFKA",
        "protocoloptions": {"endpoints": [{"uri": "tcp://a"}]},
    },
    "/messagegroups/e/messages/bunny": {"protocol": "BunnyMQ/1", "protocoloptions": {"reply-to": "r"}},
}


@settings(max_examples=30)
@given(
    extensions=st.dictionaries(
        st.tuples(st.sampled_from(sorted(ENTITIES)), st.sampled_from(NAMES)), VALUES, min_size=1, max_size=6
    ),
    specversion=st.sampled_from(["1.0-rc2", "1.0-rc4"]),
)
def test_an_export_is_loaded_as_it_is(extensions: dict[tuple[str, str], Any], specversion: str) -> None:
    """Export, load, export: the same, whatever names of whatever dialect extension attributes have."""
    with Registry.open() as first, Registry.open() as second:
        for path, attributes in ENTITIES.items():
            first.put(path, attributes)
        for (path, name), value in extensions.items():
            with contextlib.suppress(RegistryError):  # a name that has a meaning there, and another type
                first.patch(path, {name: value})
        exported = first.export(specversion)
        loading = Loading(Told(second))
        loading.load(loadable(Raw("export.json", exported)))
        loading.finish()
        assert _timeless(exported) == _timeless(second.export(specversion))


def _timeless(value: Any) -> Any:
    """A document without what tells when it was written."""
    if isinstance(value, list):
        return [_timeless(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {k: _timeless(v) for k, v in value.items() if k not in ("epoch", "createdat", "modifiedat")}
