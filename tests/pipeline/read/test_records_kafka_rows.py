"""Whole columns of Kafka's connector are the records that its rows are one by one."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline import rows
from signalbook.pipeline.read.records import Record, kafka_rows
from signalbook.pipeline.rows import records_of
from tests.pipeline.kafka_batches import CONNECTOR, HEADERS, batch, row

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
    with mock.patch.object(rows, "kafka_rows", return_value=None):
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
    "moments that are none": ("timestamp", pa.array(["soon", None])),
    "a header that is null": ("headers", pa.array([[None], []], HEADERS)),
    "a header without a name": ("headers", pa.array([[{"key": None, "value": b"x"}], []], HEADERS)),
    "headers of texts": ("headers", pa.array([[{"key": "a", "value": "b"}], []])),
    "headers as a map": ("headers", pa.array(PAIRS, pa.map_(pa.string(), pa.binary()))),
    "headers of another name": ("headers", pa.array([[{"name": "a", "value": b"b"}], []])),
    "a topic that is no UTF-8": ("topic", pa.array([b"\xff", b"a"]).view(pa.string())),
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
