import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages.catalog import Catalog
from signalbook.pipeline.read.records import Record
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import PackedCatalog, run
from signalbook.pipeline.writers import Bounds
from signalbook.protocols import Message
from tests.pipeline.lakes import MOVED, document, event, job, packed

Rows = dict[str, list[dict[str, Any]]]


def land(folder: Path, catalog: PackedCatalog, lines: list[bytes], **more: Any) -> tuple[dict[str, Any], Rows]:
    """A task's report, and what it wrote, by table."""
    records = [Record(line, "given", number) for number, line in enumerate(lines)]
    report = json.loads(run(job(folder, catalog, **more), records))
    found: Rows = {}
    for file in report["files"]:
        table = pq.ParquetFile(folder / file["table"] / file["path"]).read()
        assert file["rows"] == table.num_rows
        found.setdefault(file["table"], []).extend(table.to_pylist())
    return report, found


def test_a_row_has_everything(tmp_path: Path) -> None:
    """Attributes, extensions, captured names, payload in columns and as bytes, and how it was matched."""
    line = event(5, priority=3, other="x", time="2024-05-17T14:30:00+02:00", data={"km": 5, "more": [1]})
    _, tables = land(tmp_path, packed(), [line])
    (row,) = tables["fleet/moved"]
    assert ("e5", "/cars/A1", 3, {"vin": "A1"}) == (row["id"], row["source"], row["priority"], row["context"])
    assert [("other", "x"), ("time", "2024-05-17T14:30:00+02:00")] == row["extensions"]
    assert "2024-05-17T12:30:00+00:00" == row["time"].isoformat()
    assert {"km": 5, "_additional": '{"more":[1]}'} == row["data"]
    assert {"km": 5, "more": [1]} == json.loads(row["payload"])
    assert (packed().digest, MOVED, 0, "given") == tuple(
        row["judged"][name] for name in ("digest", "definition", "position", "origin")
    )


def test_a_dead_letter_has_everything(tmp_path: Path) -> None:
    """The bytes as they came, the outcome, the problems and the definition that was meant."""
    line = b'  {"specversion":"1.0","id":"x","type":"moved","source":"/cars/A","data":{"km":"far"}} '
    report, tables = land(tmp_path, packed(), [line])
    (letter,) = tables[DEAD_LETTERS]
    assert (line, "nonconformant", MOVED, "x") == tuple(
        letter[name] for name in ("record", "outcome", "definition", "id")
    )
    assert [("/data/km", "payload")] == [(one["path"], one["code"]) for one in letter["problems"]]
    assert (1, 0, 1) == (report["input"], report["landed"], report["dead"])
    assert [("nonconformant", MOVED, "payload", 1)] == [
        (one["outcome"], one["definition"], one["code"], one["count"]) for one in report["problems"]
    ]


def test_a_refused_table(tmp_path: Path) -> None:
    """Messages whose table does not take them are dead letters with that reason."""
    _, tables = land(tmp_path, packed(), [event(1)], refused={MOVED: "other columns"})
    (letter,) = tables[DEAD_LETTERS]
    assert ("matched", [{"path": "", "code": "table", "message": "other columns"}]) == (
        letter["outcome"],
        letter["problems"],
    )


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ({"since": "0000-01-01T00:00:00Z"}, "/envelopemetadata/since"),
        ({"since": "0000-01-01T00:00:00Z", "time": "0000-01-01T00:00:00Z"}, "/envelopemetadata/since"),
    ],
)
def test_a_value_that_no_column_holds(tmp_path: Path, member: dict[str, Any], path: str) -> None:
    """A message that fits the schema but not the column is a dead letter that says where; those beside it land."""
    meant = document()
    meant["messagegroups"]["fleet"]["messages"]["moved"]["envelopemetadata"]["since"] = {"type": "timestamp"}
    lines = [event(1), event(2, **member), event(3, priority=2**31 - 1), event(4, since="2024-01-01T00:00:00Z")]
    report, tables = land(tmp_path, PackedCatalog.of(meant), lines)
    assert ["e1", "e3", "e4"] == sorted(row["id"] for row in tables["fleet/moved"])
    (letter,) = tables[DEAD_LETTERS]
    assert ("matched", "column", path) == (
        letter["outcome"],
        letter["problems"][0]["code"],
        letter["problems"][0]["path"],
    )
    assert {"matched": 4} == report["outcomes"]


def test_a_value_that_arrow_does_not_take(tmp_path: Path) -> None:
    """A number beyond its column is found when the columns are made, and said to be where it stands."""
    headers = (("content-type", b"application/cloudevents+json"),)
    records = [
        Record(
            None, "given", at, message=Message("KAFKA", {"topic": "t", "partition": at, "headers": headers}, event(7))
        )
        for at in (1, 2**31, 3)
    ]
    report = json.loads(run(job(tmp_path, packed()), records))
    assert [{"code": "column", "path": "/protocoloptions", "count": 1}] == [
        {name: one[name] for name in ("code", "path", "count")} for one in report["problems"]
    ]
    assert (3, 2, 1) == (report["input"], report["landed"], report["dead"])


def test_a_time_that_no_column_holds(tmp_path: Path) -> None:
    """It lands without the column's value, and the text is among the extensions; so do those beside it."""
    odd = "0000-01-01T00:00:00Z"
    report, tables = land(tmp_path, packed(), [event(1), event(2, time=odd, other="x"), event(3, time=odd)])
    found = {row["id"]: (row["time"], row["extensions"]) for row in tables["fleet/moved"]}
    assert {"e1": (None, None), "e2": (None, [("other", "x"), ("time", odd)]), "e3": (None, [("time", odd)])} == found
    assert (3, 3, 0) == (report["input"], report["landed"], report["dead"])


def test_a_payload_of_no_bytes(tmp_path: Path) -> None:
    """It is another thing than no payload: in Protobuf it is a message of defaults."""
    text = 'syntax = "proto3"; message Moved { int32 km = 1; string where = 2; }'
    moved = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "moved"}},
        "dataschemaformat": "Protobuf/3",
        "dataschema": text,
    }
    catalog = PackedCatalog.of({"messagegroups": {"fleet": {"messages": {"moved": moved}}}})
    bare = {"specversion": "1.0", "type": "moved", "source": "/a", "datacontenttype": "application/protobuf"}
    empty = json.dumps({**bare, "id": "empty", "data_base64": ""}).encode()
    none = json.dumps({**bare, "id": "none"}).encode()
    some = json.dumps({**bare, "id": "some", "data_base64": "CAc="}).encode()
    _, tables = land(tmp_path, catalog, [some, empty, none, empty])
    found = [(row["id"], row["payload"], row["data"] and row["data"]["km"]) for row in tables["fleet/moved"]]
    expected = [("some", b"\x08\x07", 7), ("empty", b"", 0), ("none", None, None), ("empty", b"", 0)]
    assert expected == found


def test_a_schema_that_does_not_say_what_a_payload_is(tmp_path: Path) -> None:
    """A message without a payload lands; one with a payload is a dead letter that says what is missing."""
    meant = document()
    moved = meant["messagegroups"]["fleet"]["messages"]["moved"]
    moved |= {"dataschemaformat": "Protobuf/3", "dataschema": 'syntax = "proto3"; message A {} message B {}'}
    bare = {"specversion": "1.0", "id": "e", "type": "moved", "source": "/cars/A1"}
    lines = [json.dumps(one).encode() for one in (bare, {**bare, "data_base64": "CAc="})]
    report, tables = land(tmp_path, PackedCatalog.of(meant), lines)
    assert (1, 1) == (report["landed"], report["dead"])
    assert ["schema_unavailable"] == [one["code"] for one in tables[DEAD_LETTERS][0]["problems"]]


CARRIED = {"ce_specversion": "1.0", "ce_id": "k", "ce_source": "", "ce_type": "moved"}
MALFORMED = [
    ({"specversion": "1.0", "id": "x", "type": "moved"}, ("x", None, "moved")),
    ({"specversion": "1.0", "id": "x", "type": 5, "source": "/a", "data": 1}, ("x", "/a", None)),
    ({"specversion": "1.0", "id": "", "type": "moved", "source": "/a"}, ("", "/a", "moved")),
    ({"id": "x", "source": "/a"}, ("x", "/a", None)),
    (
        {"protocol": "KAFKA", "topic": "t", "headers": [[name, value] for name, value in CARRIED.items()]},
        ("k", "", "moved"),
    ),
    (
        {
            "protocol": "HTTP",
            "method": "POST",
            "path": "/",
            "headers": [["content-type", "application/cloudevents+json"]],
            "payload_json": {"specversion": "1.0", "id": "h", "type": "moved"},
        },
        ("h", None, "moved"),
    ),
    ({"protocol": "KAFKA", "topic": 5}, (None, None, None)),
    ([1], (None, None, None)),
]


@pytest.mark.parametrize(("message", "expect"), MALFORMED)
def test_a_malformed_event_is_named(tmp_path: Path, message: Any, expect: tuple[str | None, ...]) -> None:
    """The dead letter of an event that is none has its id, source and type where they can be read."""
    _, tables = land(tmp_path, packed(), [json.dumps(message).encode()])
    (letter,) = tables[DEAD_LETTERS]
    assert ("malformed", *expect) == (letter["outcome"], letter["id"], letter["source"], letter["type"])


def test_a_batch_in_a_message(tmp_path: Path) -> None:
    """Each event of a batch that HTTP carried is one input, and a dead one can be matched again by itself."""
    headers = [["content-type", "application/cloudevents-batch+json; charset=utf-8"]]
    events = [json.loads(event(1)), json.loads(event(2, type="unheard"))]
    message = {"protocol": "HTTP", "method": "POST", "path": "/", "headers": headers, "payload_json": events}
    report, tables = land(tmp_path, packed(), [json.dumps(message).encode(), b"[%b, %b]" % (event(3), event(4))])
    assert (4, 2, 3, 1) == tuple(report[name] for name in ("input", "records", "landed", "dead"))
    again = packed().catalog().match(tables[DEAD_LETTERS][0]["record"])
    assert ("unexpected", "e2") == (again.outcome.value, again.cloudevent.id if again.cloudevent else None)


LINES = st.lists(
    st.one_of(
        st.builds(event, st.integers(0, 99)),
        st.builds(event, st.integers(0, 99), source=st.sampled_from(["/cars/B", "/cars/", "/boats/C", "/cars/%20"])),
        st.builds(event, st.integers(0, 99), type=st.sampled_from(["moved", "stopped", "unheard"])),
        st.builds(
            event,
            st.integers(0, 99),
            data=st.none() | st.text() | st.dictionaries(st.sampled_from(["km", "x"]), st.integers() | st.text()),
        ),
        st.builds(
            event, st.integers(0, 99), time=st.sampled_from(["2024-01-01T00:00:00Z", "soon", "0000-01-01T00:00:00Z"])
        ),
        st.binary(max_size=20).filter(bytes.strip),
        st.text(max_size=20).map(str.encode).filter(bytes.strip),
    ).filter(lambda line: line.lstrip()[:1] != b"["),
    max_size=25,
)
TIGHT = Bounds(rows=3, row_bytes=2000, column_bytes=4000, table_bytes=1000, open_files=1, file_bytes=5000)


@given(LINES, st.sampled_from([Bounds(), TIGHT]))
def test_a_task_says_what_the_catalog_says(tmp_path_factory: Any, lines: list[bytes], bounds: Bounds) -> None:
    """Row for row, a task's outcome, definition, context and problems are those of `catalog.match`."""
    catalog: Catalog = packed().catalog()
    report, tables = land(tmp_path_factory.mktemp("lake"), packed(), lines, bounds=bounds)
    rows = {row["judged"]["position"]: (table, row) for table, some in tables.items() for row in some}
    assert len(lines) == len(rows) == report["input"] == report["landed"] + report["dead"]
    for number, line in enumerate(lines):
        answer, (table, row) = catalog.match(line), rows[number]
        if table == DEAD_LETTERS:
            assert (answer.outcome.value, answer.definition, line) == (row["outcome"], row["definition"], row["record"])
            told = [(one.path, one.code, one.message) for one in answer.problems]
            if not answer.matched:
                assert told == [(one["path"], one["code"], one["message"]) for one in row["problems"]]
        else:
            assert (True, answer.definition) == (answer.matched, row["judged"]["definition"])
            context = row.get("context") or {}
            assert dict(answer.context) == {name: value for name, value in context.items() if value is not None}


def test_thousands_of_tables_in_bounds(tmp_path: Path) -> None:
    """However many types there are, few files are open, and each message is in its table."""
    messages = {
        f"m{number}": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": f"t{number}"}}}
        for number in range(300)
    }
    catalog = PackedCatalog.of({"messagegroups": {"g": {"messages": messages}}})
    lines = [event(number, type=f"t{number % 300}") for number in range(900)]
    report, tables = land(tmp_path, catalog, lines, bounds=Bounds(rows=500, open_files=8))
    assert (900, 300) == (report["landed"], len(tables))
    assert {3} == {len(rows) for rows in tables.values()}


def far(**more: Any) -> PackedCatalog:
    """A catalog of one definition whose schema lies elsewhere."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "far"}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschemauri": "https://here.example/schemagroups/s/schemas/n",
    }
    schemas = {"n": {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}}
    document = {"messagegroups": {"g": {"messages": {"far": definition}}}, "schemagroups": {"s": {"schemas": schemas}}}
    return PackedCatalog.of(document, **more)


FAR = b'{"specversion":"1.0","id":"%d","type":"far","source":"/s","data":{"a":1}}'


def test_a_payload_that_no_schema_is_applied_to(tmp_path: Path) -> None:
    """A message whose schema lies elsewhere lands with its payload as bytes, and is counted as unchecked."""
    report, tables = land(tmp_path, far(), [FAR % number for number in range(3)])
    assert (3, 3, 0, 3) == tuple(report[name] for name in ("input", "landed", "dead", "unchecked"))
    assert [b'{"a":1}'] * 3 == [row["payload"] for row in tables["g/far"]]
    assert [None] * 3 == [row.get("data") for row in tables["g/far"]]


def test_no_payload_is_not_an_unchecked_one(tmp_path: Path) -> None:
    """An event without data is not counted among those with a payload that no schema was applied to."""
    bare = b'{"specversion":"1.0","id":"1","type":"far","source":"/s"}'
    report, tables = land(tmp_path, far(), [bare, FAR % 2])
    assert (2, 2, 0, 1) == tuple(report[name] for name in ("input", "landed", "dead", "unchecked"))
    assert [None, b'{"a":1}'] == [row["payload"] for row in tables["g/far"]]


def test_every_schema_is_required(tmp_path: Path) -> None:
    """Where schemas are required, a message whose schema lies elsewhere is a dead letter."""
    report, tables = land(tmp_path, far(schemas_required=True), [FAR % 1])
    assert (1, 0, 1, 0) == tuple(report[name] for name in ("input", "landed", "dead", "unchecked"))
    (letter,) = tables[DEAD_LETTERS]
    assert ["schema_unavailable"] == [one["code"] for one in letter["problems"]]


def test_a_schema_by_the_catalogs_own_address(tmp_path: Path) -> None:
    """A schema that is named by an address of the catalog is applied in a worker, too."""
    report, tables = land(tmp_path, far(roots=("https://here.example",)), [FAR % 1, FAR.replace(b'{"a":1}', b"5") % 2])
    assert (2, 1, 1, 0) == tuple(report[name] for name in ("input", "landed", "dead", "unchecked"))
    assert [5] == [row["data"]["value"] for row in tables["g/far"]]


def test_an_encoding_that_nobody_knows(tmp_path: Path) -> None:
    """A payload in an unknown content encoding lands as it came, with no data, and is counted as unchecked."""
    headers = (("content-type", b"application/json"), ("content-encoding", b"aes"))
    fields = {"topic": "t", "headers": (*headers, ("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_type", b"moved"))}
    fields["headers"] += (("ce_source", b"/cars/A1"),)
    report = json.loads(
        run(job(tmp_path, packed()), [Record(None, "given", 0, message=Message("KAFKA", fields, b"?"))])
    )
    assert (1, 1, 1) == tuple(report[name] for name in ("input", "landed", "unchecked"))
    (file,) = report["files"]
    (row,) = pq.ParquetFile(tmp_path / file["table"] / file["path"]).read().to_pylist()
    assert (b"?", None) == (row["payload"], row["data"])
