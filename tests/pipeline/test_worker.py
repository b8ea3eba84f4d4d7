import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages.catalog import Catalog
from signalbook.pipeline.book import Book
from signalbook.pipeline.names import DEAD_LETTERS
from signalbook.pipeline.reading import Record
from signalbook.pipeline.worker import run
from signalbook.pipeline.writers import Bounds
from tests.pipeline.lakes import MOVED, book, event, job

Rows = dict[str, list[dict[str, Any]]]


def land(folder: Path, catalog: Book, lines: list[bytes], **more: Any) -> tuple[dict[str, Any], Rows]:
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
    """Attributes, extensions, captured names, payload in columns and as bytes, and how it was judged."""
    line = event(5, priority=3, other="x", time="2024-05-17T14:30:00+02:00", data={"km": 5, "more": [1]})
    _, tables = land(tmp_path, book(), [line])
    (row,) = tables["fleet/moved"]
    assert ("e5", "/cars/A1", 3, {"vin": "A1"}) == (row["id"], row["source"], row["priority"], row["context"])
    assert [("other", "x"), ("time", "2024-05-17T14:30:00+02:00")] == row["extensions"]
    assert "2024-05-17T12:30:00+00:00" == row["time"].isoformat()
    assert {"km": 5, "_additional": '{"more":[1]}'} == row["data"]
    assert {"km": 5, "more": [1]} == json.loads(row["payload"])
    assert (book().digest, MOVED, 0, "given") == tuple(
        row["judged"][name] for name in ("digest", "definition", "position", "origin")
    )


def test_a_dead_letter_has_everything(tmp_path: Path) -> None:
    """The bytes as they came, the outcome, the problems and the definition that was meant."""
    line = b'  {"specversion":"1.0","id":"x","type":"moved","source":"/cars/A","data":{"km":"far"}} '
    report, tables = land(tmp_path, book(), [line])
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
    _, tables = land(tmp_path, book(), [event(1)], refused={MOVED: "other columns"})
    (letter,) = tables[DEAD_LETTERS]
    assert ("matched", [{"path": "", "code": "table", "message": "other columns"}]) == (
        letter["outcome"],
        letter["problems"],
    )


def test_a_value_that_no_column_holds(tmp_path: Path) -> None:
    """A message that fits the schema but not the column is a dead letter; those beside it land."""
    lines = [event(1), event(2, time="0000-01-01T00:00:00Z"), event(3, priority=2**31 - 1), event(4)]
    report, tables = land(tmp_path, book(), lines)
    assert ["e1", "e3", "e4"] == [row["id"] for row in tables["fleet/moved"]]
    (letter,) = tables[DEAD_LETTERS]
    assert ("matched", "column") == (letter["outcome"], letter["problems"][0]["code"])
    assert {"matched": 4} == report["outcomes"]


def test_a_batch_on_paper(tmp_path: Path) -> None:
    """Each event of a batch that HTTP carried is one input, and a dead one can be judged again by itself."""
    headers = [["content-type", "application/cloudevents-batch+json; charset=utf-8"]]
    events = [json.loads(event(1)), json.loads(event(2, type="unheard"))]
    message = {"protocol": "HTTP", "method": "POST", "path": "/", "headers": headers, "payload_json": events}
    report, tables = land(tmp_path, book(), [json.dumps(message).encode(), b"[%b, %b]" % (event(3), event(4))])
    assert (4, 2, 3, 1) == tuple(report[name] for name in ("input", "records", "landed", "dead"))
    again = book().catalog().match(tables[DEAD_LETTERS][0]["record"])
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
    catalog: Catalog = book().catalog()
    report, tables = land(tmp_path_factory.mktemp("lake"), book(), lines, bounds=bounds)
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
    catalog = Book.of({"messagegroups": {"g": {"messages": messages}}})
    lines = [event(number, type=f"t{number % 300}") for number in range(900)]
    report, tables = land(tmp_path, catalog, lines, bounds=Bounds(rows=500, open_files=8))
    assert (900, 300) == (report["landed"], len(tables))
    assert {3} == {len(rows) for rows in tables.values()}
