"""Framed records of older versions of a schema land with the values that their writers meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from signalbook.pipeline.read.records import KafkaRow, Record
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import PackedCatalog, run
from tests.messages.test_constraint_writers import (
    EVOLUTIONS,
    JSON_SCHEMA,
    NEW,
    OLD,
    OLD_PROTO,
    by_guid,
    document,
    encoded,
    proto,
    version,
)
from tests.pipeline.lakes import job

Rows = dict[str, list[dict[str, Any]]]


def frame(schemaid: int, payload: bytes) -> bytes:
    """A payload with a frame before it."""
    return b"\0" + schemaid.to_bytes(4, "big") + payload


def rows_of(*given: tuple[bytes, bytes | None]) -> list[KafkaRow]:
    """Records of Kafka: their values, and the header for a frame where they have one."""
    return [
        KafkaRow(
            value, None, "orders", 0, offset, None,
            () if header is None else ("__value_schema_id",), [] if header is None else [header], "orders/0", offset,
        )
        for offset, (value, header) in enumerate(given)
    ]  # fmt: skip


def land(folder: Path, catalog: dict[str, Any], rows: list[KafkaRow]) -> Rows:
    """What a task wrote, by table, the same by the fast path of Kafka's records and without it."""
    found: list[Rows] = []
    for place, records in (("fast", rows), ("general", [one.record() for one in rows])):
        given: list[Record | KafkaRow] = [*records]
        report = json.loads(run(job(folder / place, PackedCatalog.of(catalog)), given))
        assert len(rows) == report["input"]
        tables: Rows = {}
        for file in report["files"]:
            table = pq.ParquetFile(folder / place / file["table"] / file["path"]).read()
            tables.setdefault(file["table"], []).extend(table.to_pylist())
        found.append(tables)
    fast, general = found
    assert fast.keys() == general.keys()
    for name in fast:
        assert [without_place(one) for one in fast[name]] == [without_place(one) for one in general[name]]
    return fast


def without_place(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is another each time."""
    return {name: value for name, value in row.items() if name not in ("id", "judged")}


@pytest.mark.parametrize(("old", "new", "written", "read"), EVOLUTIONS)
def test_an_older_record_lands_right(tmp_path: Path, old: Any, new: Any, written: Any, read: Any) -> None:
    """Old and new records in flight, in both forms of the frame, land in one table with the same values."""
    catalog = document(version(old, 7), version(new, 9))
    before, after = encoded(old, written), encoded(new, read)
    given = [(frame(7, before), None), (frame(9, after), None), (before, by_guid(7)), (after, by_guid(9))]
    tables = land(tmp_path, catalog, rows_of(*given, *given))
    assert ["shop/order"] == list(tables)
    assert [read] * 8 == [row["data"] for row in tables["shop/order"]]
    assert [7, 9, None, None] * 2 == [row["transport"]["schemaid"] for row in tables["shop/order"]]
    assert [value for value, _ in given] * 2 == [row["payload"] for row in tables["shop/order"]]


def test_a_record_of_an_unknown_writer_is_a_dead_letter(tmp_path: Path) -> None:
    """What nobody can read for certain is kept as it came, and says which id is not known."""
    catalog = document(version(OLD, 7), version(NEW, 9))
    given = [(frame(8, b"\2\4\6"), None), (b"\2\4\6", by_guid(8)), (frame(7, b"\2\4\6"), None)]
    tables = land(tmp_path, catalog, rows_of(*given))
    assert [{"id": 1, "price": 3, "qty": 2}] == [row["data"] for row in tables["shop/order"]]
    letters = tables[DEAD_LETTERS]
    assert [["schema_unavailable"]] * 2 == [[one["code"] for one in row["problems"]] for row in letters]
    assert ["the id 8", f"the guid {'0' * 8}-0000-0000-0000-{'0' * 11}8"] == [
        row["problems"][0]["message"].removeprefix("the payload was written with the schema of ").partition(",")[0]
        for row in letters
    ]


def test_an_older_protobuf_message_lands_right(tmp_path: Path) -> None:
    """Fields that are wider, new or gone in the newer text."""
    new = proto("message Order { int64 id = 1; string more = 4; }")
    catalog = document(version(OLD_PROTO, 7, "Protobuf/3"), version(new, 9, "Protobuf/3"))
    given = [(frame(7, b"\0\x08\x05\x10\x06"), None), (b"\x08\x05\x10\x06", by_guid(7) + b"\0")]
    tables = land(tmp_path, catalog, rows_of(*given, (frame(9, b"\0\x08\x05"), None)))
    assert [{"id": 5, "more": ""}] * 3 == [row["data"] for row in tables["shop/order"]]


def test_json_with_an_id_in_a_header(tmp_path: Path) -> None:
    """A record whose header has an id keeps it, also after many that have none were landed by the fast path."""
    catalog = document(version({"type": "object"}, 7, JSON_SCHEMA), dataschemaframing=None)
    plain, marked = (b'{"a":1}', None), (b'{"a":1}', b"\0\0\0\0\7")
    tables = land(tmp_path, catalog, rows_of(*[plain] * 20, marked, plain))
    assert [None] * 20 + [7, None] == [row["transport"]["schemaid"] for row in tables["shop/order"]]
