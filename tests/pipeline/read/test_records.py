import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.read import records
from signalbook.pipeline.read.records import Record, kafka_rows, read_parquet, records_of
from tests.pipeline.kafka_batches import CONNECTOR, HEADERS, batch, row
from tests.pipeline.lakes import write_damaged_parquet, write_parquet

if TYPE_CHECKING:
    pass


MOMENTS = st.datetimes(datetime(2, 1, 2), datetime(9998, 12, 30)).map(lambda one: one.replace(tzinfo=UTC))
TEXTS = st.sampled_from(["content-type", "ce_id", "", "ä"]) | st.text(max_size=3)
ROWS = st.lists(
    st.builds(
        row,
        st.none() | st.binary(max_size=4),
        st.none() | st.lists(st.tuples(TEXTS, st.none() | st.binary(max_size=3)), max_size=4),
        key=st.none() | st.binary(max_size=2),
        topic=st.none() | st.sampled_from(["cars", "boats"]),
        partition=st.none() | st.integers(-1, 2**31 - 1),
        offset=st.none() | st.integers(-1, 2**63 - 1),
        timestamp=st.none() | MOMENTS,
    ),
    max_size=8,
)


def one_by_one(batch: pa.RecordBatch) -> list[Record]:
    """The records, each made of its row alone."""
    with mock.patch.object(records, "kafka_rows", return_value=None):
        return list(records_of([batch], "here"))


@given(ROWS, st.sampled_from(["UTC", "Europe/Berlin", "+02:00"]), st.sampled_from(["us", "ms", "s"]), st.booleans())
def test_columns_are_rows(given_rows: list[dict[str, Any]], zone: str, unit: str, cut: bool) -> None:
    """The records of a batch, or of a part of one, are those of its rows."""
    whole = batch(given_rows)
    at = whole.schema.get_field_index("timestamp")
    whole = whole.set_column(at, "timestamp", whole.column(at).cast(pa.timestamp(unit, tz=zone), safe=False))
    whole = whole.slice(1, 3) if cut else whole
    found = kafka_rows(whole)
    assert found is not None
    assert one_by_one(whole) == [one.record() for one in found] == list(records_of([whole], "here"))


@pytest.mark.parametrize("left", [one.name for one in CONNECTOR if one.name not in ("topic", "value")])
def test_columns_that_are_not_there(left: str) -> None:
    """A record lacks what there is no column for."""
    some = batch([row(b"a", [("x", b"y")]), row(None, None)]).drop_columns([left])
    found = kafka_rows(some)
    assert found is not None
    assert one_by_one(some) == [one.record() for one in found]
    assert left not in found[0].message().fields


PAIRS = [[("a", b"b")], []]
ODD = {
    "a zone that nobody knows": ("timestamp", pa.array([0, None], pa.timestamp("us", tz="Nowhere/Here"))),
    "no zone": ("timestamp", pa.array([0, None], pa.timestamp("us"))),
    "nanoseconds": ("timestamp", pa.array([0, None], pa.timestamp("ns", tz="UTC"))),
    "beyond the years": ("timestamp", pa.array([2**62, None], pa.timestamp("us", tz="UTC"))),
    "moments that do not exist": ("timestamp", pa.array(["soon", None])),
    "a header that is null": ("headers", pa.array([[None], []], HEADERS)),
    "a header without a name": ("headers", pa.array([[{"key": None, "value": b"x"}], []], HEADERS)),
    "headers of texts": ("headers", pa.array([[{"key": "a", "value": "b"}], []])),
    "headers as a map": ("headers", pa.array(PAIRS, pa.map_(pa.string(), pa.binary()))),
    "headers of another name": ("headers", pa.array([[{"name": "a", "value": b"b"}], []])),
    "a topic that is not UTF-8": ("topic", pa.array([b"\xff", b"a"]).view(pa.string())),
    "a topic of bytes": ("topic", pa.array([b"a", b"b"])),
    "a partition that is a text": ("partition", pa.array(["1", None])),
    "an offset that is a float": ("offset", pa.array([1.0, None])),
    "values that are numbers": ("value", pa.array([1, None])),
}


@pytest.mark.parametrize("name", ODD)
def test_other_columns_are_read_row_by_row(name: str) -> None:
    """Columns of other types are left alone; each row is then a record, or says why it is none."""
    column, values = ODD[name]
    some = batch([row(b"a"), row(b"b")])
    at = some.schema.get_field_index(column)
    some = some.set_column(at, column, values)
    assert kafka_rows(some) is None
    assert one_by_one(some) == list(records_of([some], "here"))


def test_a_column_twice() -> None:
    """Where two columns bear one name, they are left alone."""
    some = batch([row(b"a")])
    assert kafka_rows(some.append_column("topic", pa.array(["other"]))) is None


def test_half_a_millisecond() -> None:
    """Moments are rounded as Python rounds them."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    moments = [first + timedelta(microseconds=one) for one in (499, 500, 501, 1499, 1500, 1501, 2500)]
    some = batch([row(b"a", timestamp=one) for one in moments])
    found = kafka_rows(some)
    assert found is not None
    assert [round(one.timestamp() * 1000) for one in moments] == [one.timestamp for one in found]


KAFKA = {"topic": ["cars", None], "value": [b"a", b"b"], "partition": [1, 1], "offset": [5, 6]}


@pytest.mark.parametrize(
    ("values", "expect"),
    [
        (pa.array(["a", None]), [b"a", None]),
        (pa.array([b"\xff", b""]), [b"\xff", b""]),
        (pa.array([b"\xff", b"x"]).view(pa.string()), [b"\xff", b"x"]),
        (pa.array(["a", "a"], pa.large_string()), [b"a", b"a"]),
        (pa.array(["a", "a"]).dictionary_encode(), [b"a", b"a"]),
        (pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
        (pa.nulls(1), [None]),
    ],
    ids=lambda one: str(getattr(one, "type", "")),
)
def test_texts_and_bytes(values: pa.Array, expect: list[bytes | None]) -> None:
    """A value is the bytes that stand there, whatever the column calls them; only null is none."""
    found = list(records_of([pa.RecordBatch.from_arrays([values], ["value"])], "here"))
    assert expect == [record.data for record in found]
    assert [None if data is not None else "the value is null" for data in expect] == [one.reason for one in found]


def test_a_value_that_is_not_a_message() -> None:
    """A number is a record that says so, and can be seen in its dead letter."""
    batch = pa.RecordBatch.from_arrays([pa.array([7, None])], ["value"])
    words = "the value is of the type int64; a message is text or bytes"
    assert [(b"7", 0, words), (None, 1, words)] == [
        (record.data, record.position, record.reason) for record in records_of([batch], "here")
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topic": pa.array([b"cars", b"\xff"]).view(pa.string())}, "'utf-8' codec can't decode"),
        ({"partition": ["1", None]}, "the column partition holds '1'"),
        ({"value": [1, None]}, "the column value holds 1"),
        ({"headers": [1, None]}, "'int' object is not iterable"),
        ({"timestamp": ["soon", None]}, "'str' object has no attribute"),
    ],
)
def test_rows_that_are_not_records_of_kafka(changes: dict[str, Any], words: str) -> None:
    """One bad row is a record that says so; the other is Kafka's record."""
    found = list(records_of(pa.table({**KAFKA, **changes}).to_batches(), "here"))
    (bad,) = [record for record in found if record.reason is not None]
    assert f"the row is not a Kafka record: {words}" in str(bad.reason)
    assert 1 == sum(record.message is not None for record in found)


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    """What cannot be read at all is one record with all its bytes, told once however many parts there are."""
    path = tmp_path / "a.parquet"
    path.write_bytes(b"garbage, really")
    found = [record for number in range(3) for record in read_parquet(str(path), number, 3)]
    (record,) = found
    assert (b"garbage, really", 15) == (record.data, record.length)
    assert hashlib.sha256(b"garbage, really").hexdigest() == record.sha256
    assert "the Parquet file cannot be read" in str(record.reason)
    (gone,) = read_parquet(str(tmp_path / "gone.parquet"))
    assert "the file is gone" == gone.reason
    (other,) = read_parquet(write_parquet(tmp_path / "b.parquet", {"text": ["a"]}))
    assert "has no column value" in str(other.reason)


def test_a_row_group_that_cannot_be_read(tmp_path: Path) -> None:
    """The other row groups are read, in parts as in one; one record stands for those that are not."""
    path = tmp_path / "a.parquet"
    content = write_damaged_parquet(path, 3, 1)
    found = list(read_parquet(str(path)))
    assert [*range(10), 10, *range(20, 30)] == [record.position for record in found]
    (bad,) = [record for record in found if record.reason is not None]
    assert (10, None, hashlib.sha256(content).hexdigest()) == (bad.position, bad.data, bad.sha256)
    parts = [record for number in range(2) for record in read_parquet(str(path), number, 2)]
    assert sorted(record.position for record in found) == sorted(record.position for record in parts)
