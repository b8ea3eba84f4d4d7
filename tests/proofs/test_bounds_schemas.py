"""Checks of schemas cost in proportion to the schemas: counted at one size and at eight times it, never timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import jsonschema_rs
import orjson
import pytest

from signalbook import schemas
from signalbook.budget import Budget, within
from signalbook.schemas import SchemaError
from signalbook.schemas.avro import compare as avro_compare
from signalbook.schemas.avro import payload as avro
from signalbook.schemas.avro.schema import Node
from signalbook.schemas.json_schema import containment, places
from signalbook.schemas.json_schema import schema as json_schema
from signalbook.schemas.protobuf import compare as protobuf_compare
from signalbook.schemas.protobuf import values as protobuf_values
from signalbook.schemas.references import MOST_DOCUMENTS
from signalbook.schemas.xsd import read as xsd_read
from signalbook.settings import Settings
from tests.registry.conftest import Api
from tests.schemas.shapes import REFUSED, SHAPES, Shape

SIZES = (40, 8 * 40)
# A little more than in proportion, for what grows with the logarithm, and something that any schema costs.
SLACK, EACH = 1.5, 400


def named(shapes: dict[str, dict[str, Shape]]) -> list[Any]:
    """Each shape of each format, with its name."""
    return [
        pytest.param(name, shape, id=f"{name}-{words}".replace(" ", "-"))
        for name, several in shapes.items()
        for words, shape in several.items()
    ]


def calls(work: Callable[[], Any]) -> tuple[int, Any]:
    """How many functions were called, of Python and of C, and what the work returned."""
    count = 0

    def counting(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        result = work()
    finally:
        sys.setprofile(before)
    return count, result


def steps(work: Callable[[Budget], Any]) -> tuple[int, Any]:
    """How many steps were spent within a budget that has no end."""
    budget = Budget(10**12)
    with within(budget):
        result = work(budget)
    return budget.spent, result


def in_proportion(small: int, large: int) -> bool:
    """Whether eight times the size costs about eight times the work, or less."""
    return large <= SLACK * 8 * small + EACH


@pytest.mark.parametrize(("name", "shape"), named(SHAPES))
def test_reading_is_in_proportion(name: str, shape: Shape) -> None:
    """The work of reading a schema, and the steps that are spent for it, grow as its document does."""
    schemas.read(name, shape(2, 0))  # what is imported with the first one is not counted
    counts = [calls(lambda: schemas.read(name, shape(size, 0)))[0] for size in SIZES]
    assert in_proportion(*counts), counts
    spent = [steps(lambda _: schemas.read(name, shape(size, 0)))[0] for size in SIZES]
    assert 0 < spent[0]
    assert in_proportion(*spent), spent


@pytest.mark.parametrize(("name", "shape"), named(REFUSED))
def test_refusing_is_in_proportion(name: str, shape: Shape) -> None:
    """The work of finding what is wrong grows as the document does, and no more is said than can be read."""

    def refused(size: int) -> SchemaError:
        with pytest.raises(SchemaError) as caught:
            schemas.read(name, shape(size, 0), lambda uri: None)
        return caught.value

    refused(2)
    counts = [calls(lambda: refused(size))[0] for size in SIZES]
    assert in_proportion(*counts), counts
    assert 1 <= len(refused(SIZES[1]).problems) <= 100


@pytest.mark.parametrize(("name", "shape"), named(SHAPES))
def test_comparing_is_in_proportion(name: str, shape: Shape) -> None:
    """The work of comparing two schemas, and the steps that are spent for it, grow as their documents do."""
    row = schemas.find(name)
    assert row is not None

    def compare(size: int) -> tuple[int, int, int]:
        pair = [schemas.read(name, shape(size, variant)) for variant in (0, 1)]
        count, (spent, found) = calls(lambda: steps(lambda budget: list(row.compare(*pair, budget))))
        return count, spent, len(found)

    compare(2)
    (few, fewer, _), (many, more, found) = (compare(size) for size in SIZES)
    assert in_proportion(few, many), (few, many)
    assert 0 < fewer
    assert in_proportion(fewer, more), (fewer, more)
    assert found <= 3 * SIZES[1]


@pytest.mark.parametrize(("name", "shape"), named(SHAPES))
def test_samples_columns_and_checks_are_in_proportion(name: str, shape: Shape) -> None:
    """A sample of a schema, the check of it, and the columns of it grow as the document does."""

    def use(size: int) -> dict[str, int]:
        schema = schemas.read(name, shape(size, 0))
        found = {}
        found["sample"], payload = calls(lambda: schemas.sample(schema))
        found["columns"], _ = calls(schema.columns)
        if payload is not None:
            found["check"], checked = calls(lambda: schema.check(payload))
            found["row"], _ = calls(lambda: schema.convert(checked.value))
        return found

    use(2)
    few, many = (use(size) for size in SIZES)
    wrong = {what: (few[what], many[what]) for what in few if not in_proportion(few[what], many.get(what, 0))}
    assert not wrong


# The examples, each counted where its work was done ------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_the_places_of_references_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The place of each dangling reference is found in one walk over the document."""
    walked = 0
    nodes = places.Index._nodes

    def counting(self: Any) -> Iterator[Any]:
        nonlocal walked
        for node in nodes(self):
            walked += 1
            yield node

    monkeypatch.setattr(places.Index, "_nodes", counting)
    with pytest.raises(SchemaError) as caught:
        schemas.read("JsonSchema/draft-07", {"properties": {f"p{i}": {"$ref": f"x{i}"} for i in range(size)}})
    assert all(problem.path.startswith("/properties/p") for problem in caught.value.problems)
    assert walked <= 2 * size + 10


def test_how_many_others_a_schema_asks_for() -> None:
    """A catalog is asked for so many others and not more, whether it has them or not."""
    for document in ({}, None):
        asked: list[str] = []

        def find(uri: str, asked: list[str] = asked, document: Any = document) -> Any:
            asked.append(uri)
            return document

        body = {"properties": {f"p{i}": {"$ref": f"x{i}"} for i in range(MOST_DOCUMENTS + 200)}}
        with pytest.raises(SchemaError) as caught:
            schemas.read("JsonSchema/draft-07", body, find)
        assert MOST_DOCUMENTS == len(asked)
        assert len(caught.value.problems) <= 100
    assert f"more than {MOST_DOCUMENTS:,} others" in _words("JsonSchema/draft-07", body, lambda uri: {})


def _words(name: str, body: Any, find: Any) -> str:
    with pytest.raises(SchemaError) as caught:
        schemas.read(name, body, find)
    return str(caught.value)


class CountedText(str):
    """A text that counts how often it is looked up."""

    __slots__ = ()
    hashed: ClassVar[int] = 0

    def __hash__(self) -> int:
        CountedText.hashed += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


@pytest.mark.parametrize("size", SIZES)
def test_the_symbols_of_an_enum(size: int) -> None:
    """Each symbol of an Avro enum is looked up a few times, not once for each other symbol."""
    symbols = tuple(CountedText(f"S{number}") for number in range(size))
    pair = [avro.AvroSchema(Node("enum", name="E", symbols=symbols), {}) for _ in range(2)]
    CountedText.hashed = 0
    assert [] == list(avro_compare.compare(*pair))
    assert CountedText.hashed <= 20 * size


@pytest.mark.parametrize("size", SIZES)
def test_the_values_of_a_json_enum(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """No value of an enum is given to the engine together with the whole list of another."""
    listed = 0
    plain = containment.Side._validator

    def counting(self: Any, place: Any) -> jsonschema_rs.Validator:
        nonlocal listed
        listed += len(place.schema.get("enum", ())) if "enum" in containment._PLAIN else 0
        return plain(self, place)

    monkeypatch.setattr(containment.Side, "_validator", counting)
    pair = [
        schemas.read("JsonSchema/draft-07", {"enum": [number + more for number in range(size)]}) for more in (0, 0.5)
    ]
    assert list(schemas.compatible(pair, "full"))
    assert listed <= 2 * size


@pytest.mark.parametrize("size", SIZES)
def test_what_protobuf_messages_reserve(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What a message reserves is read once, not for each field that comes or goes."""
    copied = 0
    proto = protobuf_compare._proto

    def counting(message: Any) -> Any:
        nonlocal copied
        copied += 1
        return proto(message)

    monkeypatch.setattr(protobuf_compare, "_proto", counting)
    shape = SHAPES["Protobuf/3"]["renamed fields"]
    pair = [schemas.read("Protobuf/3", shape(size, variant)) for variant in (0, 1)]
    assert 2 * size == len(list(protobuf_compare.compare(*pair)))
    assert copied <= 2


def test_too_many_elements_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would cost libxml2 and lxml a path through all siblings for each fault is refused before they see it."""
    compiled = 0

    def counting(documents: Any) -> Any:
        nonlocal compiled
        compiled += 1
        raise AssertionError

    monkeypatch.setattr("signalbook.schemas.xsd.schema.compile_schema", counting)
    shape = REFUSED["XSD/1.0"]["types"]
    with pytest.raises(SchemaError, match=r"more than 10,000 elements in one"):
        schemas.read("XSD/1.0", shape(xsd_read.MOST_SIBLINGS + 1, 0))
    assert 0 == compiled


@pytest.mark.parametrize("is_restricted", [False, True], ids=["unions", "restrictions-of-unions"])
def test_unions_of_unions(monkeypatch: pytest.MonkeyPatch, is_restricted: bool) -> None:
    """libxml2 writes a union out to its last member: unions of which each names three others are not given to it."""
    compiled = 0

    def counting(root: Any) -> Any:
        nonlocal compiled
        compiled += 1
        raise AssertionError

    levels = range(30)
    text = "".join(
        f'<xs:simpleType name="t{i}"><xs:union memberTypes="m{i} m{i} m{i}"/></xs:simpleType>'
        f'<xs:simpleType name="m{i}"><xs:restriction base="t{i + 1}"/></xs:simpleType>'
        for i in levels
    )
    if not is_restricted:
        text = "".join(
            f'<xs:simpleType name="t{i}"><xs:union memberTypes="{" ".join([f"t{i + 1}"] * 3)}"/></xs:simpleType>'
            for i in levels
        )
    text += f'<xs:simpleType name="t{len(levels)}"><xs:restriction base="xs:int"/></xs:simpleType>'
    monkeypatch.setattr(xsd_read.etree, "XMLSchema", counting)
    with pytest.raises(SchemaError, match="the members of the unions before and of this one"):
        schemas.read("XSD/1.0", f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{text}</xs:schema>')
    assert 0 == compiled


@pytest.mark.parametrize("kind", ["a chain", "one of many, often"])
def test_elements_that_stand_for_others(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """libxml2 puts each element of a substitution group where its head is named: too many are not given to it."""
    compiled = 0

    def counting(root: Any) -> Any:
        nonlocal compiled
        compiled += 1
        raise AssertionError

    is_chain = kind == "a chain"
    text = '<xs:element name="e0" type="xs:string"/>' + "".join(
        f'<xs:element name="e{i + 1}" substitutionGroup="e{i if is_chain else 0}"/>' for i in range(1000)
    )
    text += '<xs:element name="r"><xs:complexType><xs:sequence>'
    text += '<xs:element ref="e0"/>' * (1 if is_chain else 300) + "</xs:sequence></xs:complexType></xs:element>"
    monkeypatch.setattr(xsd_read.etree, "XMLSchema", counting)
    with pytest.raises(SchemaError, match=r"the elements that may stand for|the content holds 300,300 elements"):
        schemas.read("XSD/1.0", f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{text}</xs:schema>')
    assert 0 == compiled


# What multiplies is ended by the budget, in words that name it -------------------------------------------------------


def structure_of_bases(size: int) -> dict[str, Any]:
    """Types that each inherit all members of one base."""
    return {
        "$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://x.example/a", "name": "A",
        "type": "object",
        "properties": {f"p{i}": {"type": {"$ref": f"#/definitions/d{i}"}} for i in range(size)},
        "definitions": {
            "b": {"name": "b", "abstract": True, "type": "object",
                  "properties": {f"q{i}": {"type": "int32"} for i in range(size)}},
            **{f"d{i}": {"name": f"d{i}", "type": "object", "$extends": "#/definitions/b"} for i in range(size)},
        },
    }  # fmt: skip


def avro_of_defaults(size: int) -> dict[str, Any]:
    """Fields that each have all defaults of one record for their own."""
    fields = [{"name": f"g{i}", "type": "int", "default": 0} for i in range(size)]
    record = {"type": "record", "name": "T", "fields": fields}
    return {"type": "record", "name": "R", "fields": [
        {"name": f"f{i}", "type": "T" if i else record, "default": {}} for i in range(size)
    ]}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "document", "words"),
    [
        (
            "JsonStructure/draft-04",
            structure_of_bases(200),
            "Reading this schema takes more than 20,000 steps of work",
        ),
        ("Avro/1.12.0", avro_of_defaults(1500), "all defaults together hold more than 100,000 values"),
    ],
)
def test_what_multiplies_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch, name: str, document: Any, words: str
) -> None:
    """A document of which each part means all others is refused once its budget is spent."""
    if name.startswith("JsonStructure"):
        monkeypatch.setattr(schemas, "MOST_READING", 20_000)
    spent, found = steps(lambda _: _words(name, document, lambda uri: None))
    assert words in found
    assert spent <= 2 * schemas.MOST_READING


def _matrix(variant: int, size: int = 400) -> dict[str, Any]:
    properties = {f"q{variant}{number}": {"type": "string"} for number in range(size)}
    return {"properties": properties, "patternProperties": {f"^x{number}": {} for number in range(size)}}


def _aliased(variant: int, size: int = 300) -> list[Any]:
    fields = [{"name": f"a{variant}", "type": "int"}]
    others = [f"R{number}" for number in range(size)]
    return [{"type": "record", "name": f"R{n}", "fields": fields, "aliases": others} for n in range(size)]


def _free_order(variant: int, size: int = 300) -> str:
    kind = "all" if variant else "choice"
    occurs = "" if variant else ' maxOccurs="unbounded"'
    return SHAPES["XSD/1.0"]["fields in any order"](size, 0).decode().replace("xs:all>", f"xs:{kind}>").replace(
        f"<xs:{kind}>", f"<xs:{kind}{occurs}>"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make"),
    [("JsonSchema/draft-07", _matrix), ("Avro/1.12.0", _aliased), ("XSD/1.0", _free_order)],
    ids=["names-and-patterns", "aliases", "any-order"],
)
def test_what_multiplies_while_it_is_compared(name: str, make: Callable[[int], Any]) -> None:
    """A comparison of all with all ends once its budget is spent, and says so."""
    texts = [text if isinstance(text, str) else orjson.dumps(text) for text in map(make, (0, 1))]
    pair = [schemas.read(name, text) for text in texts]
    budget = Budget(10**9)
    found = list(schemas.compatible(pair, "full", budget=budget))
    assert {"too_large", "content_unknown"} & {one.kind for one in found}
    assert budget.spent <= 2 * schemas.MOST_STEPS


def test_the_texts_of_protobuf_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a file are made once, however many texts its messages hold."""
    asked = 0
    original = protobuf_values.is_proto2

    def counting(file: Any) -> bool:
        nonlocal asked
        asked += 1
        return original(file)

    monkeypatch.setattr(protobuf_values, "is_proto2", counting)
    fields = "".join(f"map<string, string> a{n} = {n + 1}; string b{n} = {n + 301};" for n in range(300))
    schemas.read("Protobuf/3", f'syntax = "proto3"; message M {{ {fields} }}')
    assert 1 == asked


def test_messages_that_lie_deep_in_one_another() -> None:
    """A chain of messages that no class can be made of is refused in words."""
    text = 'syntax = "proto3";' + "".join(f"message T{n} {{ T{n + 1} a = 1; }}" for n in range(1000))
    with pytest.raises(SchemaError, match="more than 150 deep"):
        schemas.read("Protobuf/3", text + "message T1000 {}")


def _documents(draft: str, size: int, keyword: str = "") -> dict[str, Any]:
    """Parts with an `$id` that each refer to all others, by references or by dynamic ones."""
    where = "definitions" if draft == "JsonSchema/draft-07" else "$defs"
    anchor = {"$dynamicRef": {"$dynamicAnchor": "n"}, "$recursiveRef": {"$recursiveAnchor": True}}.get(keyword, {})
    back = {keyword: "#n" if keyword == "$dynamicRef" else "#"}
    parts = {
        f"d{i}": {
            "$id": f"https://x.example/{i}",
            **anchor,
            "properties": {"n": {"const": i}, "back": back}
            if keyword
            else {"n": {"const": i}, **{f"p{k}": {"$ref": f"https://x.example/{k}"} for k in range(size)}},
        }
        for i in range(size)
    }
    several = [{"$ref": f"https://x.example/{i}"} for i in range(size if keyword else 1)]
    return {**anchor, where: parts, "allOf": several}


@pytest.mark.parametrize("draft", ["JsonSchema/draft-07", "JsonSchema/draft/2019-09", "JsonSchema/draft/2020-12"])
def test_documents_that_refer_to_one_another(monkeypatch: pytest.MonkeyPatch, draft: str) -> None:
    """The engine compiles a part for each chain of documents that leads there: it is given one document instead."""
    given: list[Any] = []
    original = json_schema._compile

    def noting(draft: Any, document: Any, retriever: Any, **options: Any) -> Any:
        given.append(document)
        return original(draft, document, retriever, **options)

    monkeypatch.setattr(json_schema, "_compile", noting)
    text = orjson.dumps(_documents(draft, 7))
    schema = schemas.read(draft, text)
    assert 1 == len(given)
    assert b'"$id"' not in orjson.dumps(given[0])
    assert len(orjson.dumps(given[0])) <= 2 * len(text)
    good, bad = b'{"n": 0, "p3": {"n": 3, "p0": {"n": 0}}}', b'{"n": 0, "p3": {"n": 3, "p0": {"n": 1}}}'
    assert [] == list(schema.check(good).problems)
    assert ["/p3/p0/n"] == [problem.path for problem in schema.check(bad).problems]
    part = schema.at("/definitions/d2" if draft == "JsonSchema/draft-07" else "/$defs/d2")
    assert [] == list(part.check(b'{"n": 2, "p0": {"n": 0}}').problems)
    assert ["/p0/n"] == [problem.path for problem in part.check(b'{"n": 2, "p0": {"n": 1}}').problems]


@pytest.mark.parametrize(
    ("draft", "keyword", "size"),
    [("JsonSchema/draft/2020-12", "$dynamicRef", 300), ("JsonSchema/draft/2019-09", "$recursiveRef", 12)],
)
def test_dynamic_references_of_many_documents(
    monkeypatch: pytest.MonkeyPatch, draft: str, keyword: str, size: int
) -> None:
    """Chains of documents with dynamic references are counted to a bound; beyond it the engine is not asked."""
    monkeypatch.setattr(json_schema, "_compile", pytest.fail)
    document = _documents(draft, size, keyword)
    spent, found = steps(lambda _: _words(draft, document, lambda uri: None))
    assert "its references from document to document multiply" in found
    assert spent <= 2 * places.MOST_COMPILED + 100 * size


# Versions ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """A new registry."""
    made = Api(Settings(store=store_url))
    yield made
    made.service.close()


@pytest.mark.parametrize("compatibility", ["backward", "backward_transitive"])
def test_one_more_of_many_versions(api: Api, compatibility: str) -> None:
    """What a version costs that comes after many is in proportion to how many there are."""
    body = {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}

    def add(size: int) -> int:
        path = f"/schemagroups/g/schemas/s{size}"
        versions = {f"v{number:03}": body for number in range(size)}
        whole = {"versions": versions, "meta": {"compatibility": compatibility}}
        assert 201 == api("PUT", f"{path}$details", whole).status
        count, reply = calls(lambda: api("PUT", f"{path}/versions/x$details", body))
        assert (201, True) == (reply.status, reply.json["compatibilityvalidated"])
        return count

    add(2)
    counts = [add(size) for size in (10, 80)]
    assert in_proportion(*counts), counts
