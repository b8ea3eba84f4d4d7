"""What it costs to ask is in proportion to what is asked: counted at one size and at eight times it, never timed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import orjson
import pytest
from lxml import etree

from signalbook import Catalog, RegistryError, jsontext, template
from signalbook.cloudevents import decode
from signalbook.jsontext import find_flaw, parse_json
from signalbook.messages import match, observe
from signalbook.messages.answer import Answer
from signalbook.model import model
from signalbook.protocols import Message
from signalbook.schemas.xsd.schema import MOST_PROBLEMS, read
from signalbook.server import messages
from signalbook.template import Template
from tests.server.test_messages import MOVED, Client

SIZES = (250, 8 * 250)
BATCH_TYPE = ("content-type", "application/cloudevents-batch+json")


@pytest.fixture
def client() -> Iterator[Client]:
    """A server without a definition."""
    made = Client()
    yield made
    made.close()


def catalog(**attributes: Any) -> Catalog:
    """A catalog with one definition of an event."""
    found = {"messageid": "m", "envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}}}
    group = {"messagegroupid": "g", "messages": {"m": found | attributes}}
    return Catalog.from_documents({"messagegroups": {"g": group}})


def carried(payload: bytes, *headers: tuple[str, str]) -> Message:
    """A message of HTTP that carries a batch."""
    return Message("HTTP", {"headers": (BATCH_TYPE, *headers)}, payload)


# Batches -------------------------------------------------------------------------------------------------------------

BAD = {"a type and no more": b'{"type":"t"}', "nothing": b"{}", "no object": b"[1]", "not UTF-8": b'{"type":"\xff"}'}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("is_carried", [False, True], ids=["bare", "carried"])
def test_bad_events_of_a_batch(monkeypatch: pytest.MonkeyPatch, size: int, bad: bytes, is_carried: bool) -> None:
    """The type of each bad event is read from that event, not from the whole batch."""
    read_bytes = 0

    def loads(text: bytes) -> Any:
        nonlocal read_bytes
        read_bytes += len(text)
        return orjson.loads(text)

    counting = SimpleNamespace(loads=loads, dumps=orjson.dumps, JSONDecodeError=orjson.JSONDecodeError)
    monkeypatch.setattr(observe, "orjson", counting)
    document = b"[" + b",".join([bad] * size) + b"]"
    found = catalog().match_all(carried(document) if is_carried else document)
    assert (size, {"malformed"}) == (len(found), {one.outcome.value for one in found})
    assert bad != BAD["a type and no more"] or all(one.candidates for one in found)
    assert read_bytes <= len(document)


def test_a_compressed_batch_is_counted(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are counted as they are made: no more are made than a request may have."""
    made = 0
    answer = match.answer

    def counting(*given: Any) -> Any:
        nonlocal made
        made += 1
        return answer(*given)

    monkeypatch.setattr(match, "answer", counting)
    monkeypatch.setattr(messages, "MOST_MESSAGES", 20)
    batch = carried(gzip.compress(json.dumps([MOVED] * 1000).encode()), ("content-encoding", "gzip")).to_bytes()
    for body in (batch, batch + b"\n" + batch):
        made = 0
        response = client.send("POST", "/match", body)
        assert (400, True) == (response.status_code, "more than 20 messages" in response.text)
        assert made <= 21


class CountedAnswer(bytes):
    """An answer as it was written; how many of them there are, and how many there were at most at one time."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, _: bytes) -> None:
        CountedAnswer.alive += 1
        CountedAnswer.most = max(CountedAnswer.most, CountedAnswer.alive)

    def __del__(self) -> None:
        CountedAnswer.alive -= 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", ["/match", "/validate"])
@pytest.mark.parametrize("form", ["carried", "array", "lines"])
def test_answers_are_not_kept_one_by_one(
    client: Client, monkeypatch: pytest.MonkeyPatch, size: int, path: str, form: str
) -> None:
    """Each answer is let go as soon as it is copied: what is written for one holds several times its size."""
    write = Answer.to_bytes
    monkeypatch.setattr(Answer, "to_bytes", lambda answer: CountedAnswer(write(answer)))
    monkeypatch.setattr(CountedAnswer, "alive", 0)
    monkeypatch.setattr(CountedAnswer, "most", 0)
    batch = b"[" + b",".join([b"{}"] * size) + b"]"
    message = carried(gzip.compress(batch), ("content-encoding", "gzip")).to_bytes()
    body = {"carried": message, "array": batch, "lines": b"\n".join([b"{}"] * size)}[form]
    response = client.send("POST", path, body)
    found = response.text.splitlines() if form == "lines" else response.json()
    assert (200, size) == (response.status_code, len(found))
    assert 0 == CountedAnswer.alive
    assert 1 <= CountedAnswer.most <= 5


def test_a_batch_of_too_many_events_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that carries more events than one may is one unreadable message, and none of them is read."""
    reads = 0

    def counting(text: bytes) -> Any:
        nonlocal reads
        reads += 1
        return decode(text)

    monkeypatch.setattr(observe, "decode", counting)
    monkeypatch.setattr(observe, "MOST_EVENTS", 20, raising=False)
    for element in (json.dumps(MOVED).encode(), b"0", b"[]", b"1" * 5000):
        payload = b"[" + b",".join([element] * 21) + b"]"
        (found,) = catalog().match_all(carried(gzip.compress(payload), ("content-encoding", "gzip")))
        assert ("malformed", 0) == (found.outcome.value, reads)
        assert "more than 20 events; send them in several messages" in found.problems[0].message
    assert 20 == len(catalog().match_all(carried(json.dumps([MOVED] * 20).encode())))
    assert 21 == len(catalog().match_all(json.dumps([MOVED] * 21).encode()))


def test_what_payloads_become_together_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many lines may become large; all together not."""
    monkeypatch.setattr(messages, "LARGEST_UNDONE", 100_000, raising=False)
    undone = 0
    one_more = observe.undo

    def counting(*given: Any) -> Any:
        nonlocal undone
        undone += 1
        return one_more(*given)

    monkeypatch.setattr(observe, "undo", counting)
    encoding = (("content-encoding", "gzip"),)
    line = Message("HTTP", {"headers": encoding}, gzip.compress(b" " * 40_000)).to_bytes()
    assert 200 == client.send("POST", "/match", b"\n".join([line] * 2)).status_code
    broken = Message("HTTP", {"headers": encoding}, gzip.compress(b" " * 40_000)[:-1]).to_bytes()
    for path, one, most in (("/match", line, 3), ("/match", broken, 1)):
        undone = 0
        response = client.send("POST", path, b"\n".join([one] * 50))
        assert (400, True) == (response.status_code, "send them in several requests" in response.text)
        assert undone == most


@pytest.mark.parametrize("size", SIZES)
def test_the_headers_of_a_batch(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The content type of a batch is looked for once, not among all headers for each event."""
    looked = 0
    binding = observe.BINDINGS["HTTP"]
    content_types = binding.content_types

    def counting(fields: Any) -> Any:
        nonlocal looked
        looked += len(fields["headers"])
        return content_types(fields)

    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    message = carried(json.dumps([event] * size).encode(), *((f"h{one}", "v") for one in range(size)))
    object.__setattr__(binding, "content_types", counting)
    try:
        found = catalog(envelopeoptions={"format": "application/cloudevents-batch+json"}).match_all(message)
    finally:
        object.__setattr__(binding, "content_types", content_types)
    assert {"matched"} == {one.outcome.value for one in found}
    assert looked <= 20 * len(message.fields["headers"])


# Content encodings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_members_of_a_gzip_file(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What follows a member is not copied for each."""
    given = 0

    class Counting:
        def __init__(self, window: int) -> None:
            self._reader = zlib.decompressobj(window)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reader, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal given
            given += len(data)
            return self._reader.decompress(data, most)

    counting = SimpleNamespace(decompressobj=Counting, error=zlib.error, MAX_WBITS=zlib.MAX_WBITS)
    monkeypatch.setattr(observe, "zlib", counting)
    payload = gzip.compress(b"ab") * size
    assert b"ab" * size == observe.undo("gzip", payload)
    assert given <= 256 * size + 2 * len(payload)
    # One member that is long is given whole, in few steps.
    given, text = 0, bytes(range(256)) * 100 * size
    assert text == observe.undo("gzip", gzip.compress(text))
    assert given <= 2 * len(gzip.compress(text))


# Texts ---------------------------------------------------------------------------------------------------------------


class CountedBytes(bytes):
    """Bytes that count how many of them are decoded."""

    decoded: ClassVar[int] = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return CountedBytes(found) if isinstance(found, bytes) else found

    def decode(self, *given: Any, **named: Any) -> str:
        CountedBytes.decoded += len(self)
        return super().decode(*given, **named)


@pytest.mark.parametrize("size", SIZES)
def test_escapes_that_are_not_text(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Each escaped byte is decoded a few times at most, whatever it is."""
    monkeypatch.setattr(template, "bytes", CountedBytes, raising=False)
    for one in ("%ff", "%Ff%C3%a4", "%e2%82", "%ED%A0%80a"):
        CountedBytes.decoded = 0
        found = template.decode(one * size)
        assert found == one.replace("%C3%a4", "ä") * size
        assert CountedBytes.decoded <= 2 * len(one * size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", ["a{+x}b", "a{+x}b{y}c", "{+x}b"])
def test_templates_of_many_placeholders(monkeypatch: pytest.MonkeyPatch, size: int, text: str) -> None:
    """No part of a value is looked through for each placeholder."""
    scanned = 0
    search = template._next_separator

    def counting(value: str, at: int) -> Any:
        nonlocal scanned
        found = search(value, at)
        scanned += (len(value) if found is None else found.end()) - at
        return found

    monkeypatch.setattr(template, "_next_separator", counting)
    value = text.replace("{+x}", "x").replace("{y}", "y") * size
    found = Template.parse(text * size).captures(value)
    assert found is not None
    assert {"x", "y"} >= set(found)
    assert scanned <= 4 * len(value)
    assert Template.parse(text * size).captures(value + "/") is None
    assert scanned <= 8 * len(value)


BROKEN: dict[str, tuple[str, Callable[[int], str]]] = {
    "65 bits": ("_unkeepable", lambda size: f'{{"{"a" * size}":[{"0," * size}{2**65}]}}'),
    "65 bits of objects": ("_unkeepable", lambda size: f'{{"{"a" * size}":[{"{}," * size}{2**65}]}}'),
    "a long fraction": ("_unkeepable", lambda size: f'{{"{"a" * size}":[{"0," * size}0.{"1" * 30}]}}'),
    "a NUL": ("_unkeepable", lambda size: f'{{"{"a" * size}":[{"0," * size}"\\u0000"]}}'),
    "syntax": ("_scan", lambda size: f'{{"{"a" * size}":[{"0," * size}x]}}'),
    "syntax of members": (
        "_scan",
        lambda size: json.dumps({"a" * size: dict.fromkeys(map(str, range(size)), 0)}).replace("}", ",}"),
    ),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("walk", "text"), BROKEN.values(), ids=list(BROKEN))
def test_a_long_name_around_many_values(
    monkeypatch: pytest.MonkeyPatch, size: int, walk: str, text: Callable[[int], str]
) -> None:
    """The place of a value is written where something is wrong, not for each value that is looked at."""
    written = 0
    plain: Callable[..., Any] = getattr(jsontext, walk)

    def counting(value: Any, *given: Any) -> Any:
        nonlocal written
        written += sum(len(one) for one in given if isinstance(one, str))
        return plain(value, *given)

    monkeypatch.setattr(jsontext, walk, counting)
    with pytest.raises(RegistryError) as caught:
        parse_json(text(size).encode(), "/x")
    assert f".{'a' * size}" in str(caught.value.args) + str(vars(caught.value))
    assert written <= 20 * size
    written = 0
    assert find_flaw(text(size)) is not None
    assert written <= 20 * size


# XML -----------------------------------------------------------------------------------------------------------------

ORDERS = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="r"><xs:complexType>
<xs:choice minOccurs="0" maxOccurs="unbounded"><xs:element name="a" type="xs:int"/>
<xs:element name="b"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence></xs:complexType>
</xs:element></xs:choice></xs:complexType></xs:element></xs:schema>"""
ITEMS = {
    "values": b"<a>x</a>",
    "children": b"<b><a>x</a></b>",
    "attributes": b"<a z=''>1</a>",
    "unknown": b"<a><c/></a>",
}


class CountedErrors(etree.XMLSchema):
    """A validator that counts its errors in trees: libxml2 looks for the path of each."""

    errors: ClassVar[int] = 0

    def validate(self, document: Any) -> bool:
        is_valid = super().validate(document)
        CountedErrors.errors += len(self.error_log)
        return is_valid


@pytest.mark.parametrize("size", [one * 8 for one in SIZES])
@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_invalid_siblings(monkeypatch: pytest.MonkeyPatch, size: int, item: bytes) -> None:
    """Paths are asked for of about as many errors as are listed, and they are those of the first ones."""
    monkeypatch.setattr(etree, "XMLSchema", CountedErrors)
    schema = read(ORDERS)
    few = schema.check(b"<r>" + item * 150 + b"</r>").problems
    CountedErrors.errors = 0
    found = schema.check(b"<r>" + item * size + b"</r>").problems
    assert MOST_PROBLEMS == len(found)
    assert found == few
    assert CountedErrors.errors <= 10 * MOST_PROBLEMS


@pytest.mark.parametrize("size", [one * 16 for one in SIZES])
@pytest.mark.parametrize("more", [b"", b"<b/>", b"<b/>" * 200], ids=["ids", "an error", "errors"])
def test_repeated_ids(monkeypatch: pytest.MonkeyPatch, size: int, more: bytes) -> None:
    """A value of type xs:ID that occurs often is wrong in about as many trees as problems are listed."""
    monkeypatch.setattr(etree, "XMLSchema", CountedErrors)
    schema = read(IDS)
    CountedErrors.errors = 0
    found = schema.check(b"<r>" + b'<a i="x"/>' * size + more + b"</r>").problems
    assert MOST_PROBLEMS == len(found)
    assert [f"/a/{place}" for place in range(1, MOST_PROBLEMS + 1)] == [problem.path for problem in found]
    assert CountedErrors.errors <= 10 * MOST_PROBLEMS
    distinct = b"".join(b'<a i="x%d"/>' % place for place in range(size))
    assert not schema.check(b"<r>" + distinct + b"</r>").problems
    (last,) = schema.check(b"<r>" + distinct + b'<a i="x1"/></r>').problems
    assert f"/a/{size}" == last.path


IDS = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="r"><xs:complexType><xs:sequence>
<xs:element name="a" maxOccurs="unbounded"><xs:complexType><xs:attribute name="i" type="xs:ID"/></xs:complexType>
</xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>"""


def test_a_large_document_with_few_errors() -> None:
    """One error among many elements has its place, wherever it is."""
    schema = read(ORDERS)
    many = b"<a>1</a>" * 3000
    assert not schema.check(b"<r>" + many + b"</r>").problems
    (found,) = schema.check(b"<r>" + many + b"<b/><a>x</a>" + many + b"</r>").problems[1:]
    assert "/a/3000" == found.path
    assert "xs:int" in found.message


# Models --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 40])
def test_nested_includes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What is included often is resolved once, and what it brings is counted each time."""
    joined = 0
    urljoin = model.urljoin

    def counting(base: str, reference: str) -> str:
        nonlocal joined
        joined += 1
        return urljoin(base, reference)

    monkeypatch.setattr(model, "urljoin", counting)
    source: dict[str, Any] = {f"x{one}": {"$include": f"#x{one + 1}"} for one in range(size)}
    source |= {f"x{size}": {"end": {}}, "all": {"$includes": ["#x0"] * size}}
    found = model.resolve(source)
    assert {"end": {}} == found["all"] == found["x0"]
    assert found["all"]["end"] is not found["x0"]["end"]
    assert joined <= 2 * size
    twice: dict[str, Any] = {f"x{one}": {"$includes": [f"#x{one + 1}"] * 2} for one in range(size)} | {f"x{size}": {}}
    joined = 0
    if size > 20:
        with pytest.raises(RegistryError):
            model.resolve(twice)
    else:
        assert {} == model.resolve(twice)["x0"]
    assert joined <= 2 * size
