"""Events that Kafka carries have the rows that they have without the fast path, and the catalog's own answers."""

import gzip
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.columns.kafka import KafkaFastPath
from signalbook.pipeline.read.records import inputs_of, records_of
from signalbook.pipeline.tables import DEAD_LETTERS, Layout
from signalbook.pipeline.worker import PackedCatalog, Task
from signalbook.pipeline.writers import Bounds
from tests.pipeline.kafka_batches import BESIDE, EVENTS, Header, batch, binary, row, structured
from tests.pipeline.lakes import job

NUMBERS = itertools.count()


def new_catalog(beside: str) -> PackedCatalog:
    """The catalog of these definitions, from which nobody has learned yet."""
    group = {"description": str(next(NUMBERS)), "messages": {**EVENTS, **BESIDE[beside]}}
    return PackedCatalog.of({"messagegroups": {"g": group}})


def land(
    folder: Path, packed: PackedCatalog, rows: list[dict[str, Any]], **more: Any
) -> tuple[dict[str, Any], dict[int, Any]]:
    """A task's counts, and the rows that it wrote by the offset of their record."""
    return landed(folder, packed, inputs_of([batch(rows)], "here"), **more)


def landed(
    folder: Path, packed: PackedCatalog, inputs: Iterable[Any], **more: Any
) -> tuple[dict[str, Any], dict[int, Any]]:
    """The same of records that were read already."""
    report = Task(job(folder, packed, **more)).run(inputs)
    found: dict[int, Any] = {}
    for problem in report["problems"]:
        del problem["samples"]  # a few of many, and not the same few
    report["problems"].sort(key=str)
    for file in report.pop("files"):
        for one in pq.ParquetFile(folder / file["table"] / file["path"]).read().to_pylist():
            assert one["judged"]["position"] not in found
            found[one["judged"]["position"]] = (file["table"], one)
    return report, found


TYPES = ["seen", "seen", "free", "laid", "split", "queued", "kafkas", "bound", "named", "keyed", "tenants", "unheard"]
TYPES += ["fed", "far", "twice", "framed"]
DATA = st.just({"km": 5}) | st.none() | st.dictionaries(st.sampled_from(["km", "x"]), st.integers(-(2**65), 2**65))
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "time": st.sampled_from(["2024-05-17T12:30:00Z", "2024-05-17T14:30:00+02:00", "soon", "0000-01-01T00:00:00Z"]),
    "subject": st.sampled_from(["a-b", 'a"b', "ä-ö", "a\\b-c", ""]),
    "label": st.sampled_from(["l", "", 'x","type":"free', "%b", "\x7f"]),
    "level": st.sampled_from([5, "5", "x"]),
    "protocol": st.just("KAFKA"),
    "data": DATA,
}
WHOLE = st.fixed_dictionaries(
    {
        "specversion": st.just("1.0"),
        "id": st.sampled_from([*["e1", "e2"] * 3, 'e","source":"/cars/B']),
        "type": st.sampled_from(TYPES),
        "source": st.sampled_from(
            [*["/cars/A1", "/cars/B2"] * 3, "/boats/C", "no reference %", "https://e.com/a?b%20c"]
        ),
        "datacontenttype": st.sampled_from([*["application/json"] * 4, "text/plain", 'application/json;a="b"']),
    },
    optional=MEMBERS,
)
BESIDES = st.lists(
    st.sampled_from(
        [
            *(("tenant", b"t1"), ("tenant", None), ("trace", b"\xff"), ("content-type", b"application/json")),
            *(("content-type", b"application/cloudevents+json"), ("content-type", None), ("ce_id", b"again")),
            *(("Content-Encoding", b"gzip"), ("content-encoding", b"identity"), ("ce_level", None), ("ce_", b"x")),
            *(("ce_datacontenttype", b"application/json"), ("ce_label", b"\xff"), ("Content-Type", b"text/plain")),
            *(("content-encoding", b"utf-8"), ("content-encoding", b"aes")),
            *(("ce_extra", b"more"), ('ce_a":"b', b"c"), ("ce_Upper", b"case")),
        ]
    ),
    max_size=1,
)
FIELDS = {
    "key": st.sampled_from([None, b"k1", b"\xff"]),
    "topic": st.sampled_from(["cars", "cars", "boats", "plain", None]),
    "partition": st.sampled_from([0, None]),
    "timestamp": st.none(),
}
CHANGED = st.sampled_from(
    [None, b"", b"\xff", b'{"km":1', b'\x00\x00\x00\x00\x07{"km":1}', b' {"km":1}\n', b'{"km":"\xff"}']
)

PLAIN: list[list[Header]] = [[], [("content-type", b"application/json")], [("content-type", b"text/plain")]]


@st.composite
def given_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row: an event in either mode, whole or broken, or a record that is none."""
    fields = {name: draw(held) for name, held in FIELDS.items() if draw(st.booleans())}
    beside = draw(BESIDES)
    way = draw(st.sampled_from([structured, binary, None]))
    if way is None:
        value = draw(st.sampled_from([b'{"km":1}', b'{"km": 2}', b'{"km":3,"x":"\xc3\xa4"}', b'{"km":1.0}']) | CHANGED)
        stated = draw(st.none() | st.just([*draw(st.sampled_from(PLAIN)), *beside]))
        return row(value, stated, **{"topic": "plain", **fields})
    made = way(draw(WHOLE), *beside, **fields)
    if draw(st.integers(0, 5)) == 0:
        made["value"] = draw(CHANGED)
    if draw(st.integers(0, 5)) == 0 and made["headers"]:
        del made["headers"][draw(st.integers(0, len(made["headers"]) - 1))]
    return made


ROWS = st.lists(given_rows(), max_size=6)
TIGHT = Bounds(rows=3, row_bytes=2000, column_bytes=4000, table_bytes=1000, open_files=1, file_bytes=5000)


@given(ROWS, st.sampled_from(sorted(BESIDE)), st.sampled_from([Bounds(), TIGHT]))
def test_the_rows_are_those_without_the_fast_path(
    tmp_path_factory: Any, rows: list[dict[str, Any]], beside: str, bounds: Bounds
) -> None:
    """Every table and the dead letters have the same rows, every count is the same, whichever path the records took."""
    packed = new_catalog(beside)
    # Twice, so that what is learned from the first is used for the second.
    rows = rows * 2
    messages = list(records_of([batch(rows)], "here"))
    expected = landed(tmp_path_factory.mktemp("general"), packed, messages, bounds=bounds)
    actual = land(tmp_path_factory.mktemp("fast"), packed, rows, bounds=bounds)
    assert expected == actual


@given(ROWS, st.sampled_from(sorted(BESIDE)))
def test_records_are_what_the_catalog_says(tmp_path_factory: Any, rows: list[dict[str, Any]], beside: str) -> None:
    """Row for row, a record's outcome, definition, context and problems are those of `catalog.match`."""
    packed = new_catalog(beside)
    rows = rows * 2
    _, found = land(tmp_path_factory.mktemp("lake"), packed, rows)
    messages = [record.message for record in records_of([batch(rows)], "here")]
    assert set(range(len(rows))) == found.keys()
    for number, message in enumerate(messages):
        assert message is not None
        answer, (table, one) = packed.catalog().match(message), found[number]
        if table == DEAD_LETTERS:
            assert (answer.outcome.value, answer.definition) == (one["outcome"], one["definition"])
            assert message.to_bytes() == one["record"]
            if not answer.matched:
                told = [{"path": each.path, "code": each.code, "message": each.message} for each in answer.problems]
                assert told == one["problems"]
        else:
            assert (True, answer.definition) == (answer.matched, one["judged"]["definition"])
            context = one.get("context") or {}
            assert dict(answer.context) == {name: value for name, value in context.items() if value is not None}


def numbered(count: int, **members: Any) -> list[dict[str, Any]]:
    """Good events that differ in their ids and data."""
    whole = {"specversion": "1.0", "type": "free", "source": "/x", "datacontenttype": "application/json", **members}
    return [{**whole, "id": str(number), "data": {"km": number}} for number in range(count)]


def count_general(folder: Path, packed: PackedCatalog, rows: list[dict[str, Any]]) -> int:
    """How many of the rows, all of which land, became cells one by one."""
    with mock.patch.object(Layout, "row", autospec=True, side_effect=Layout.row) as made:
        report, _ = land(folder, packed, rows)
        assert len(rows) == report["landed"]
        return made.call_count


@pytest.mark.parametrize("way", [structured, binary])
def test_events_of_a_shape_are_taken_together(tmp_path: Path, way: Any) -> None:
    """What follows the first event of a shape becomes columns without a row of its own, whatever its headers."""
    rows = [way(event, ("trace", event["id"].encode())) for event in numbered(5)]
    assert 1 == count_general(tmp_path, new_catalog("nothing"), rows)


@pytest.mark.parametrize(
    ("beside", "name", "general"),
    [
        ("nothing", "kafkas", 2),
        ("topics", "free", 4),
        ("topics", "bound", 2),
        ("topics", "named", 6),
        ("topics", "keyed", 6),
        ("keys", "free", 6),
        ("headers", "free", 6),
    ],
)
def test_who_looks_at_the_transport(tmp_path: Path, beside: str, name: str, general: int) -> None:
    """The fast path is taken where definitions look at no more than topics, and learns anew for each."""
    topics = ["cars", "vans"] if (beside, name) == ("topics", "free") else ["cars"]
    events = numbered(3, type=name)
    rows = [way(event, topic=topic) for topic in topics for way in (structured, binary) for event in events]
    assert general == count_general(tmp_path, new_catalog(beside), rows)


def test_a_topic_with_messages_of_its_own(tmp_path: Path) -> None:
    """Where a definition is found by the topic, its word counts too, and the fast path is not taken."""
    rows = [structured(event, topic="boats") for event in numbered(3)]
    assert 3 == count_general(tmp_path, new_catalog("topics"), rows)


@pytest.mark.parametrize(
    ("beside", "topic", "general"), [("topics", "plain", 3), ("keys", "cars", 9), ("topics", "boats", 9)]
)
def test_records_that_are_not_events(tmp_path: Path, beside: str, topic: str, general: int) -> None:
    """They are taken together by topic and content type, where a schema is all that is left to say."""
    rows = [row(b'{"km":%d}' % at, stated, topic=topic, key=b"k1") for stated in PLAIN for at in range(3)]
    assert general == count_general(tmp_path, new_catalog(beside), rows)


@given(ROWS)
def test_under_the_limits_of_an_endpoint(tmp_path_factory: Any, rows: list[dict[str, Any]]) -> None:
    """What an endpoint says about the mode counts on either path."""
    group = {"description": str(next(NUMBERS)), "messages": EVENTS}
    endpoint = {
        "usage": ["producer"],
        "protocol": "KAFKA",
        "envelopeoptions": {"mode": "structured"},
        "messagegroups": ["/messagegroups/g"],
    }
    packed = PackedCatalog.of({"messagegroups": {"g": group}, "endpoints": {"e": endpoint}})
    rows, within = rows * 2, ("/endpoints/e",)
    messages = list(records_of([batch(rows)], "here"))
    expected = landed(tmp_path_factory.mktemp("general"), packed, messages, within=within)
    assert expected == land(tmp_path_factory.mktemp("fast"), packed, rows, within=within)


def test_a_refused_table(tmp_path: Path) -> None:
    """Events whose table does not take them are dead letters, on either path."""
    rows = [structured(event) for event in numbered(2)]
    xid = "/messagegroups/g/messages/free"
    report, found = land(tmp_path, new_catalog("nothing"), rows, refused={xid: "other columns"})
    assert (0, 2) == (report["landed"], report["dead"])
    assert {"table"} == {one["problems"][0]["code"] for _, one in found.values()}


FREE, SEEN, BOUND, LAID, SPLIT, KEYED, NAMED, TENANTS = (
    numbered(1, type=name)[0] for name in ("free", "seen", "bound", "laid", "split", "keyed", "named", "tenants")
)
SEEN["source"] = "/cars/A1"
PLAIN_ROW = row(b'{"km":1}', PLAIN[1], topic="plain")
AGAIN: Header = ("content-type", None)
ZIPPED = ("content-encoding", b"gzip")
# A record, and one that is nearly like it.
NEIGHBOURS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "another topic": ("topics", structured(BOUND), structured(BOUND, topic="vans")),
    "another topic, binary": ("topics", binary(BOUND), binary(BOUND, topic="vans")),
    "a topic of its own": ("topics", structured(FREE), structured(FREE, topic="boats")),
    "a topic that is captured": ("topics", structured(NAMED), structured(NAMED, topic="vans")),
    "a key that is captured": ("topics", structured(KEYED, key=b"a"), structured(KEYED, key=b"b")),
    "a header that is captured": ("topics", binary(TENANTS, ("tenant", b"a")), binary(TENANTS, ("tenant", b"b"))),
    "a key that is known": ("keys", structured(FREE), structured(FREE, key=b"k1")),
    "a header that is known": ("headers", binary(FREE, ("tenant", b"t2")), binary(FREE, ("tenant", b"t1"))),
    "every event of a topic": ("topics", structured(FREE), structured(FREE, topic="trains")),
    "every event of a key": ("keys", structured(FREE), structured(FREE, key=b"k2")),
    "every event of a header": ("headers", binary(FREE, ("tenant", b"t2")), binary(FREE, ("tenant", b"t3"))),
    "a second content type": ("nothing", binary(SEEN, AGAIN), binary(SEEN, ("content-type", b"application/json"))),
    "another mode": ("nothing", structured(LAID), binary(LAID)),
    "the other mode": ("nothing", binary(SPLIT), structured(SPLIT)),
    "compressed": ("nothing", binary(FREE), binary(FREE, ZIPPED)),
    "compressed, with a header as before": (
        "nothing",
        *[{**structured(FREE, ZIPPED), "value": gzip.compress(structured(FREE)["value"])}] * 2,
    ),
    "white space": ("nothing", binary(SEEN), {**binary(SEEN), "value": b' {"km":1}\n'}),
    "white space in structured mode": (
        "nothing",
        structured(SEEN),
        {**structured(SEEN), "value": structured(SEEN)["value"][:-1] + b" \n}"},
    ),
    "no bytes": ("nothing", binary(SEEN), {**binary(SEEN), "value": b""}),
    "no value": ("nothing", binary(SEEN), {**binary(SEEN), "value": None}),
    "no value in structured mode": ("nothing", structured(SEEN), {**structured(SEEN), "value": None}),
    "no UTF-8": ("nothing", binary(SEEN), {**binary(SEEN), "value": b'{"km":1,"x":"\xff"}'}),
    "no JSON": ("nothing", binary(FREE), {**binary(FREE), "value": b"{"}),
    "nested deep": ("nothing", binary(FREE), {**binary(FREE), "value": b"[" * 1010 + b"]" * 1010}),
    "a frame": ("nothing", binary(SEEN), {**binary(SEEN), "value": b'\0\0\0\0\7{"km":1}'}),
    "a long number": ("nothing", binary(SEEN), {**binary(SEEN), "value": b'{"km":1.00000000000000000000}'}),
    "another content type": ("nothing", binary(SEEN), binary({**SEEN, "datacontenttype": "application/x+json"})),
    "no record's content type": ("nothing", binary(SEEN), binary(SEEN, ("content-type", b"application/json"))),
    "an attribute of no value": ("nothing", binary(SEEN, ("ce_x", b"y")), binary(SEEN, ("ce_x", None))),
    "an attribute that is not a text": ("nothing", binary(SEEN, ("ce_x", b"y")), binary(SEEN, ("ce_x", b"\xff"))),
    "an attribute again": ("nothing", binary(SEEN), binary(SEEN, ("ce_id", b"2"))),
    "no event: an attribute": ("topics", PLAIN_ROW, {**PLAIN_ROW, "headers": binary(SEEN)["headers"]}),
    "no event: a mark alone": ("topics", PLAIN_ROW, row(b'{"km":1}', [*PLAIN[1], ("ce_id", b"1")], topic="plain")),
    "no event: no UTF-8": ("topics", PLAIN_ROW, {**PLAIN_ROW, "value": b'{"km":1,"x":"\xff"}'}),
    "no event: a frame": ("topics", PLAIN_ROW, {**PLAIN_ROW, "value": b'\0\0\0\0\7{"km":1}'}),
    "no event: no bytes": ("topics", PLAIN_ROW, {**PLAIN_ROW, "value": b""}),
    "no event: no value": ("topics", PLAIN_ROW, {**PLAIN_ROW, "value": None}),
    "no event: another topic": ("topics", PLAIN_ROW, {**PLAIN_ROW, "topic": "boats"}),
    "no event: mapped to an event": ("topics", row(b"1", topic="cars"), row(b"2", topic="cars")),
    "no event: mapped, with a schema": ("topics", {**PLAIN_ROW, "topic": "maps"}, {**PLAIN_ROW, "topic": "maps"}),
    "no event: no key": ("no keys", PLAIN_ROW, {**PLAIN_ROW, "topic": "maps"}),
    "no event: white space": ("topics", PLAIN_ROW, {**PLAIN_ROW, "value": b' {"km":1}\n'}),
    "no event: compressed": ("topics", PLAIN_ROW, row(b'{"km":1}', [*PLAIN[1], ZIPPED], topic="plain")),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_neighbour_is_itself(tmp_path: Path, name: str) -> None:
    """What was learned of one record is not believed of another that differs in what counts."""
    beside, known, other = NEIGHBOURS[name]
    others = [known, other, other]
    # Of each set of headers an event is known, so that nothing but what differs can stop the other.
    if other["headers"] and other["headers"] != known["headers"]:
        others = [known, {**other, "value": known["value"], "topic": known["topic"]}, other, other]
    messages = list(records_of([batch([known, *others])], "here"))
    packed = new_catalog(beside)
    expected = landed(tmp_path / "general", packed, messages)
    assert expected == land(tmp_path / "fast", packed, [known, *others])


def test_a_quote_in_a_header(tmp_path: Path) -> None:
    """An attribute that looks like two is one, though events with those two, and without, are known."""
    rest = {"source": "/x", "type": "free", "datacontenttype": "application/json"}
    known = [{"specversion": "1.0", "id": "1", "label": "l", **rest}, {"specversion": "1.0", "id": "2", **rest}]
    odd = {"specversion": "1.0", "id": '1","label":"l', **rest}
    report, found = land(tmp_path, new_catalog("nothing"), [binary(event) for event in [*known, *known, odd]])
    assert (5, 0) == (report["landed"], report["dead"])
    assert ('1","label":"l', None) == (found[4][1]["id"], found[4][1]["extensions"])
    assert [("label", "l")] == found[2][1]["extensions"]


def test_the_transport_is_kept(tmp_path: Path) -> None:
    """What Kafka said stands in the column, whichever path was taken."""
    event = numbered(1)[0]
    _, found = land(
        tmp_path, new_catalog("nothing"), [structured(event, ("trace", b"\xff"), ("no", None), key=b"k")] * 2
    )
    first, second = (found[at][1]["transport"] for at in (0, 1))
    assert ("KAFKA", "cars", b"k", 1, 1) == tuple(
        second[name] for name in ("protocol", "address", "key", "partition", "offset")
    )
    headers = [["content-type", "application/cloudevents+json"], ["trace", {"base64": "/w=="}], ["no", None]]
    assert {"timestamp": round(second["timestamp"].timestamp() * 1000), "headers": headers} == json.loads(
        second["fields"]
    )
    assert first.keys() == second.keys()


def test_many_sets_of_headers(tmp_path: Path) -> None:
    """What is remembered of headers and content types is bounded, and all beyond it lands on the general path."""
    fast_path = KafkaFastPath(new_catalog("nothing").catalog().scope())
    events = numbered(60)
    rows = [binary({**event, "datacontenttype": f"application/v{at}+json"}) for at, event in enumerate(events)]
    rows += [structured(event, (f"h{at}", b"")) for at, event in enumerate(events)]
    known = mock.patch("signalbook.pipeline.worker.fast_path_of", return_value=fast_path)
    with known, mock.patch("signalbook.pipeline.columns.kafka._MOST_SETS", 10):
        report, _ = land(tmp_path, new_catalog("nothing"), rows)
    assert (120, 10, 32) == (report["landed"], len(fast_path._headers), len(fast_path._paths))
