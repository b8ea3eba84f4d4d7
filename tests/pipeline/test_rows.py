import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land_files import land_files
from signalbook.pipeline.read.inputs import parse_source
from signalbook.pipeline.rows import CountedFrame, read_parquet, records_of
from tests.pipeline.lakes import MOVED, book, dead, event, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark
KAFKA = {"topic": ["cars", None], "value": [b"a", b"b"], "partition": [1, 1], "offset": [5, 6]}


def written(path: Path, columns: dict[str, Any], **more: Any) -> str:
    """The path of a Parquet file of such columns."""
    pq.write_table(pa.table(columns), path, **more)
    return str(path)


def damaged(path: Path, groups: int, group: int) -> bytes:
    """A Parquet file whose footer is good, and one row group of which is not."""
    written(path, {"value": [event(number) for number in range(10 * groups)]}, row_group_size=10, use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset : column.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(content)
    return bytes(content)


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


def test_a_value_that_is_no_message() -> None:
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
def test_rows_that_are_no_records_of_kafka(changes: dict[str, Any], words: str) -> None:
    """One bad row is a record that says so; the other is Kafka's record."""
    found = list(records_of(pa.table({**KAFKA, **changes}).to_batches(), "here"))
    (bad,) = [record for record in found if record.reason is not None]
    assert f"the row is not a Kafka record: {words}" in str(bad.reason)
    assert 1 == sum(record.message is not None for record in found)


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
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
    (other,) = read_parquet(written(tmp_path / "b.parquet", {"text": ["a"]}))
    assert "has no column value" in str(other.reason)


def test_a_row_group_that_cannot_be_read(tmp_path: Path) -> None:
    """The other row groups are read, in parts as in one; one record stands for those that are not."""
    path = tmp_path / "a.parquet"
    content = damaged(path, 3, 1)
    found = list(read_parquet(str(path)))
    assert [*range(10), 10, *range(20, 30)] == [record.position for record in found]
    (bad,) = [record for record in found if record.reason is not None]
    assert (10, None, hashlib.sha256(content).hexdigest()) == (bad.position, bad.data, bad.sha256)
    parts = [record for number in range(2) for record in read_parquet(str(path), number, 2)]
    assert sorted(record.position for record in found) == sorted(record.position for record in parts)


def test_a_folder_with_bad_files(spark: "SparkSession", tmp_path: Path) -> None:
    """One bad file or value is a dead letter; every good one beside it lands."""
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder / "text.parquet", {"value": [event(1).decode()]})
    written(folder / "bytes.parquet", {"value": [b"\xff", event(2)]})
    written(folder / "numbers.parquet", {"value": [3]})
    headers = [[{"key": "content-type", "value": b"application/cloudevents+json"}]]
    written(folder / "kafka.parquet", {"value": [event(4)], "topic": ["cars"], "partition": [0], "headers": headers})
    damaged(folder / "damaged.parquet", 2, 0)
    (folder / "garbage.parquet").write_bytes(b"garbage")
    lake = tmp_path / "lake"
    result = land_files(spark, book(), parse_source(f"parquet:{folder}"), Lake.open(str(lake)))
    assert (17, 13, 4) == (result.input, result.landed, result.dead)
    assert 13 == result.messages[MOVED]
    assert {b"\xff", b"3", b"garbage", None} == {letter["record"] for letter in dead(lake)}


def test_a_frame_of_numbers(spark: "SparkSession") -> None:
    """A DataFrame whose values are no messages is refused at once."""
    with pytest.raises(PipelineError, match="of the type long; a message is text or bytes"):
        CountedFrame(spark.range(1).withColumnRenamed("id", "value"), "frame")
