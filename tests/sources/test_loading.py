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
from signalbook.model.normalise import Normaliser
from signalbook.registry.write import resources
from signalbook.sources.documents import Document, Raw
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

    def write(self, method: str, path: str, body: Any = None, *, load: str = "") -> str:
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
    read_request = Normaliser.read_request

    def losing(self: Normaliser, attrs: Any, subject: str, *, patch: bool) -> Any:
        found = read_request(self, attrs, subject, patch=patch)
        return {name: value for name, value in found.items() if name != "description"}

    monkeypatch.setattr(Normaliser, "read_request", losing)
    for sent in ({"description": "d"}, {"versions": {"v1": {"description": "d"}}}):
        loading = Loading(told)
        with pytest.raises(RegistryError, match="description"):
            loading.load(Loadable(Document("a.json", {"messagegroups": {"g": {"messages": {"m": sent}}}})))
    assert {} == told.registry.get("/messagegroups")


def test_the_meta_and_the_document_that_are_stored_are_those_that_were_read(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for a meta, and for the document of a version."""
    arrange_versions, apply_document = resources.arrange_versions, resources.apply_document

    def losing_meta(work: Any, state: Any, *args: Any, **named: Any) -> None:
        arrange_versions(work, state, *args, **named)
        state.attrs = {}

    def losing_document(kind: Any, version: Any, *args: Any) -> None:
        apply_document(kind, version, *args)
        version.content = None

    deprecated = {"effective": "2030-01-01T00:00:00Z"}
    for name, losing, sent, lost in (
        ("arrange_versions", losing_meta, {"meta": {"deprecated": deprecated}}, "deprecated"),
        ("apply_document", losing_document, {"schema": {"type": "object"}}, "schema"),
        ("apply_document", losing_document, {"versions": {"v1": {"schemabase64": "e30="}}}, "schema"),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(resources, name, losing)
            content = {"schemagroups": {"g": {"schemas": {"s": sent}}}}
            with pytest.raises(RegistryError, match=rf'the attribute "{lost}"'):
                Loading(told).load(Loadable(Document("a.json", content)))
        assert {} == told.registry.get("/schemagroups")


@pytest.mark.parametrize("label", ["1.0-rc1", "1.0-rc2", "1.0-rc3", "1.0-rc4", "0.5-wip"])
def test_what_stands_in_versions_is_loaded(told: Told, label: str) -> None:
    """A message of any dialect may say everything in its versions, as exports do; nothing of that is lost."""
    older = label == "0.5-wip"
    group, key, envelope, metadata = (
        ("id", "id", "format", "metadata") if older else ("messagegroupid", "messageid", "envelope", "envelopemetadata")
    )
    version = {key: "m", "versionid": "v1", envelope: "CloudEvents/1.0", metadata: {"type": {"value": "t"}}}
    message = {key: "m", "versions": {"v1": version}}
    if not older:
        message["meta"] = {"deprecated": {"effective": "2030-01-01T00:00:00Z"}}
    document = {"specversion": label, "messagegroups": {"g": {group: "g", "messages": {"m": message}}}}
    loading = Loading(told)
    loading.load(loadable(Raw("a.json", document)))
    loading.finish()
    found = told.registry.get("/messagegroups/g/messages/m?inline=meta")
    assert ("v1", {"type": {"value": "t"}}) == (found["versionid"], found["envelopemetadata"])
    assert older is not ("deprecated" in found["meta"])


def test_what_a_registry_says_of_itself_is_loaded() -> None:
    """With the metadata come the registry's extension attributes, be they named like an address or a number."""
    extensions = {"owner": "me", "homeurl": "http://x", "headcount": 3, "teams": {"a": {"name": "A"}}}
    with Registry.open() as first, Registry.open() as second:
        model = first.get("/modelsource")
        first.put("/modelsource", {**model, "attributes": {"*": {"type": "any"}}})
        first.patch("/", extensions)
        loading = Loading(Told(second), with_model=True, with_metadata=True)
        loading.load(loadable(Raw("export.json", first.export())))
        loading.finish()
        found = second.get("/")
        assert extensions == {name: found.get(name) for name in extensions}


# Every name that a dialect has for an attribute, and some that only look like one; attributes have lower-case names.
NAMES = sorted(
    name
    for name in {
        place.partition("/")[0]
        for dialect in DIALECTS.values()
        for table in dialect.tables.values()
        for row in table.rows
        for place in (row.there, row.here)
    }
    | {sign.name for dialect in DIALECTS.values() for sign in dialect.signs}
    | {name for dialect in DIALECTS.values() for shape in dialect.shapes.values() for name in shape}
    | {"attributes", "definition", "definitions", "versions", "tags", "relatedto", "schematype", "channel", "options"}
    | {"messagegroups", "schemagroups", "endpoints", "messages", "schemas", "ancestor", "ancestorid", "basemessageuri"}
    | {"schemaobject", "specversion", "registryid", "asyncapi", "docs", "mode", "type", "value", "eventsurl", "count"}
    if name and name.islower()
)
PROPERTIES = {"type": {"value": "t", "type": "urireference"}, "attributes": {"subject": {"value": "s"}}}
TEXTS = ("x", "1.0", "0.5-wip", "#/a/b", "01-01-0000T00:00:00Z", "/messagegroups/g/messages/m")
# Values of every JSON kind; null is no value of an attribute.
VALUES: tuple[Any, ...] = (
    *TEXTS, 5, -0.5, True, False, {}, {"a": 1}, {"id": "x", "binding": "y"}, PROPERTIES, {"value": "v"}, [], ["x", 5],
    [{"name": "a"}],
)  # fmt: skip
ENTITIES: Json = {
    "/": {},
    "/messagegroups/g": {"protocol": "NATS"},
    "/messagegroups/g/messages/m": {"protocol": "NATS", "protocoloptions": {"subject": "s", "reply": "r"}},
    "/messagegroups/g/messages/m/meta": {},
    "/messagegroups/g/messages/m/versions/1": {},
    "/messagegroups/g/messages/other": {"protocoloptions": {"reply-to": "r"}, "envelopemetadata": PROPERTIES},
    "/messagegroups/e/messages/event": {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "event"}},
        "basemessage": "/messagegroups/g/messages/m",
    },
    "/messagegroups/e/messages/bunny": {"protocol": "BunnyMQ/1", "protocoloptions": {"reply-to": "r"}},
    "/schemagroups/s": {},
    "/schemagroups/s/schemas/t": {"versionid": "v1", "format": "JsonSchema/draft-07", "schema": {"type": "object"}},
    "/schemagroups/s/schemas/t/meta": {},
    "/schemagroups/s/schemas/t/versions/v1": {},
    "/endpoints/p": {
        "usage": ["producer"],
        "protocol": "KAFKA",
        "protocoloptions": {"endpoints": [{"uri": "tcp://a"}]},
    },
    "/endpoints/p/messages/own": {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}},
}


@contextlib.contextmanager
def extensible() -> Iterator[Registry]:
    """A registry with entities of every kind, each of which takes extension attributes of any name and value."""
    with Registry.open() as registry:
        model = registry.get("/modelsource")
        model["attributes"] = {"*": {"type": "any"}}
        for group in model["groups"].values():
            for kind in group.get("resources", {}).values():
                kind.setdefault("metaattributes", {})["*"] = {"type": "any"}
        registry.put("/modelsource", model)
        for path, attributes in ENTITIES.items():
            registry.patch(path, attributes)
        yield registry


def extend(registry: Registry, path: str, name: str, value: Any) -> bool:
    """Whether an entity takes an attribute: a name that has a meaning there may be of another type."""
    try:
        registry.patch(path, {name: value})
    except RegistryError:
        return False
    return True


def check_export_is_loaded_as_it_is(registry: Registry, specversion: str, chunk: int) -> None:
    """Assert that what is loaded from an export is exported the same."""
    exported = registry.export(specversion)
    with Registry.open() as second:
        loading = Loading(Told(second), chunk=chunk, with_model=True, with_metadata=True)
        loading.load(loadable(Raw("export.json", deepcopy(exported))))
        loading.finish()
        assert _timeless(exported) == _timeless(second.export(specversion))


@settings(max_examples=30)
@given(
    extensions=st.dictionaries(
        st.tuples(st.sampled_from(sorted(ENTITIES)), st.sampled_from(NAMES)),
        st.sampled_from(VALUES) | st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=3),
        min_size=1,
        max_size=8,
    ),
    specversion=st.sampled_from(["1.0-rc2", "1.0-rc4"]),
    chunk=st.sampled_from([0, 1, 500]),
)
def test_an_export_is_loaded_as_it_is(extensions: dict[tuple[str, str], Any], specversion: str, chunk: int) -> None:
    """Export, load, export: the same, whatever names of whatever dialect extension attributes have."""
    with extensible() as registry:
        for (path, name), value in extensions.items():
            extend(registry, path, name, value)
        check_export_is_loaded_as_it_is(registry, specversion, chunk)


@pytest.mark.parametrize("specversion", ["1.0-rc2", "1.0-rc4"])
@pytest.mark.parametrize("value", ["x", 5, -0.5, True, {"a": {"b": 1}}, ["x"]], ids=repr)
def test_every_entity_may_have_every_name(specversion: str, value: Any) -> None:
    """The same with all names at every entity at once, of each JSON kind."""
    with extensible() as registry:
        taken = {path: [name for name in NAMES if extend(registry, path, name, value)] for path in ENTITIES}
        for path, names in taken.items():
            assert {"binding", "config", "metadata", "origin"} <= set(names), path
        check_export_is_loaded_as_it_is(registry, specversion, 500)


def _timeless(value: Any) -> Any:
    """A document without what tells when it was written."""
    if isinstance(value, list):
        return [_timeless(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {k: _timeless(v) for k, v in value.items() if k not in ("epoch", "createdat", "modifiedat")}
