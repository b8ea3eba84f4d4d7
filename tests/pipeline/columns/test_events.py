"""Events that the fast path takes have the rows that they have without it."""

import itertools
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages.fast import FastPath
from signalbook.pipeline.read.records import Record
from signalbook.pipeline.tables import Layout
from signalbook.pipeline.worker import PackedCatalog, Task
from tests.pipeline.lakes import job

MESSAGES: dict[str, dict[str, Any]] = {
    "seen": {
        "envelopemetadata": {
            "type": {"value": "seen"},
            "source": {"value": "/cars/{vin}"},
            "subject": {"value": "{place}-{lane}"},
            "kind": {"type": "string", "value": "fixed"},
            "label": {"type": "string"},
            "level": {"type": "integer"},
        },
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschema": {
            "type": "object",
            "properties": {"km": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}},
            "required": ["km"],
        },
    },
    "free": {"envelopemetadata": {"type": {"value": "free"}, "time": {"value": "2024-05-17T12:30:00Z"}}},
}
NUMBERS = itertools.count()


def new_catalog() -> PackedCatalog:
    """The catalog of these messages, from which nobody has learned yet."""
    number = str(next(NUMBERS))
    messages = {name: {"envelope": "CloudEvents/1.0", "description": number, **one} for name, one in MESSAGES.items()}
    return PackedCatalog.of({"messagegroups": {"g": {"messages": messages}}})


TIMES = [
    *("2024-05-17T12:30:00Z", "2024-05-17T12:30:00.120Z", "2024-05-17T12:30:00.000001Z", "2024-05-17T12:30:00.000Z"),
    *("2024-05-17T12:30:00.1Z", "2024-05-17t12:30:00z", "2024-05-17T14:30:00+02:00", "0000-01-01T00:00:00Z"),
    *("0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59.999999Z", "2024-05-17T12:30:00.123456789Z"),
]
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "time": st.sampled_from(TIMES),
    "subject": st.sampled_from(["a-b", "x-1"]),
    "kind": st.just("fixed"),
    "label": st.sampled_from(["l", ""]),
    "level": st.sampled_from([5, 7]),
    "datacontenttype": st.just("application/json"),
    "other": st.sampled_from(["o", ""]),
    "data": st.none()
    | st.just({"km": 5, "at": "2024-05-17T12:30:00Z"})
    | st.dictionaries(st.sampled_from(["km", "at", "more"]), st.integers(-(2**65), 2**65) | st.just(1.0)),
}
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["seen", "seen", "free"]), "source": st.sampled_from(["/cars/A1", "/cars/B2"])},
        optional=MEMBERS,
    ),
    max_size=12,
)


def land(folder: Path, packed: PackedCatalog, lines: list[bytes]) -> tuple[dict[str, Any], dict[int, Any]]:
    """A task's counts, and the rows that it wrote by the place of their event."""
    task = Task(job(folder, packed))
    report = task.run(Record(line, "given", number) for number, line in enumerate(lines))
    rows: dict[int, Any] = {}
    for problem in report["problems"]:
        del problem["samples"]  # a few of many, and not the same few
    for file in report.pop("files"):
        for row in pq.ParquetFile(folder / file["table"] / file["path"]).read().to_pylist():
            assert row["judged"]["position"] not in rows
            rows[row["judged"]["position"]] = (file["table"], row)
    return report, rows


@given(EVENTS, st.sampled_from([(",", ":"), (", ", ": "), (",  ", ": ")]), st.sampled_from([b"", b" \t"]))
def test_the_rows_are_those_without_the_fast_path(
    tmp_path_factory: Any, events: list[dict[str, Any]], spelling: tuple[str, str], white: bytes
) -> None:
    """Every table has the same rows, every count is the same, whichever path the events took."""
    packed = new_catalog()
    whole = [{"specversion": "1.0", "id": f"e{number}", **event} for number, event in enumerate(events)]
    lines = [json.dumps(event, separators=spelling).encode() for event in whole]
    # Twice, so that what is learned from the first is used for the second.
    lines = [line[:-1] + white + b"}" for line in lines] * 2
    with mock.patch.object(FastPath, "parts", return_value=None):
        expected = land(tmp_path_factory.mktemp("general"), packed, lines)
    actual = land(tmp_path_factory.mktemp("fast"), packed, lines)
    assert expected == actual


def test_events_of_a_shape_are_taken_together(tmp_path: Path) -> None:
    """What follows the first event of a shape becomes columns without a row of its own."""
    event = {"specversion": "1.0", "type": "free", "source": "/x"}
    lines = [json.dumps({**event, "id": str(number)}).encode() for number in range(5)]
    with mock.patch.object(Layout, "row", autospec=True, side_effect=Layout.row) as row:
        report, rows = land(tmp_path, new_catalog(), lines)
        assert row.call_count == 1
    assert (5, [str(number) for number in range(5)]) == (report["landed"], [rows[at][1]["id"] for at in range(5)])
