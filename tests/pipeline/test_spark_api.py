import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from signalbook import spark as signalbook_spark
from signalbook.spark import Book, PipelineError, judge, land, table, views_of
from tests.conftest import ROOT
from tests.pipeline.lakes import MOVED, event, on_spark, packed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = on_spark
LINES = [event(1), event(2, data={"km": "far"}), b"oops", event(3, type="unheard"), event(4, other="x")]


def test_judging_says_what_the_catalog_says(spark: "SparkSession") -> None:
    """A DataFrame keeps its columns and gets the catalog's answer beside them, row for row."""
    rows = spark.createDataFrame(
        [(number, bytearray(line)) for number, line in enumerate(LINES)], "n int, value binary"
    )
    judged = judge(rows, packed()).orderBy("n").collect()
    catalog = packed().catalog()
    for row, line in zip(judged, LINES, strict=True):
        answer = catalog.match(line)
        assert (answer.outcome.value, answer.definition) == (row.outcome, row.definition)
        assert dict(answer.context) == row.context
        assert [(one.path, one.code, one.message) for one in answer.problems] == [tuple(one) for one in row.problems]
    assert {"specversion": "1.0", "id": "e4", "type": "moved", "source": "/cars/A1", "other": "x"} == judged[
        4
    ].attributes
    assert {"km": 4} == json.loads(judged[4].payload)


def test_judging_a_stream(spark: "SparkSession", tmp_path: Path) -> None:
    """A streaming DataFrame is matched as a batch is."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_bytes(b"\n".join(LINES[:2]))
    rows = spark.readStream.text(str(tmp_path / "in"))
    query = judge(rows, packed()).writeStream.format("memory").queryName("judged_stream").trigger(availableNow=True)
    query.start().awaitTermination()
    found = spark.sql("SELECT outcome, count(*) AS n FROM judged_stream GROUP BY 1 ORDER BY 1").collect()
    assert [("matched", 1), ("nonconformant", 1)] == [tuple(row) for row in found]


def test_what_cannot_be_judged(spark: "SparkSession") -> None:
    """A DataFrame without messages, or with a column of ours, is refused with the remedy."""
    with pytest.raises(PipelineError, match="no column value"):
        judge(spark.range(1), packed())
    with pytest.raises(PipelineError, match="rename it"):
        judge(spark.sql("SELECT 'x' AS value, 1 AS outcome"), packed())


def test_landing_a_frame(spark: "SparkSession", tmp_path: Path) -> None:
    """Rows land by the same engine; given a run and a number, a batch that is done is not done again."""
    rows = spark.createDataFrame([(line.decode(),) for line in LINES], "value string")
    run, lake = "00112233aabbccdd", str(tmp_path)
    for _ in range(2):
        result = land(rows, packed(), lake, run=run, batch=7)
        assert (5, 2, 3, {MOVED: 2}) == (result.input, result.landed, result.dead, dict(result.messages))
    assert 2 == table(spark, lake, "fleet/moved").count()
    assert ["fleet__moved", "signalbook__dead_letters"] == views_of(spark, lake)
    assert 3 == spark.sql("SELECT * FROM signalbook__dead_letters").count()


@pytest.mark.parametrize("known", [{"run": "00112233aabbccdd"}, {"batch": 0}])
def test_half_a_name_of_a_batch(spark: "SparkSession", tmp_path: Path, known: dict[str, Any]) -> None:
    """A run alone would land its first rows only, a batch alone all rows twice: both are refused."""
    rows = spark.createDataFrame([(event(1).decode(),)], "value string")
    with pytest.raises(PipelineError, match="was given without"):
        land(rows, packed(), str(tmp_path), **known)
    assert [] == list(tmp_path.iterdir())


def test_landing_twice_without_a_name(spark: "SparkSession", tmp_path: Path) -> None:
    """Rows that are given without run and batch land each time."""
    rows = spark.createDataFrame([(event(1).decode(),)], "value string")
    assert [1, 1] == [land(rows, packed(), str(tmp_path)).landed for _ in range(2)]
    assert 2 == table(spark, str(tmp_path), "fleet/moved").count()


def test_a_catalog_of_another_type(spark: "SparkSession", tmp_path: Path) -> None:
    """A catalog that is none is told at once, with how one is made; no worker is asked."""
    rows: Any = spark.createDataFrame([(event(1).decode(),)], "value string")
    wrong: Any = "samples"
    for use in (lambda: judge(rows, wrong), lambda: land(rows, wrong, str(tmp_path / "lake"))):
        with pytest.raises(PipelineError, match=r"the catalog is str, not Book; signalbook.spark.catalog"):
            use()
    assert not (tmp_path / "lake").exists()


def test_names_that_are_words_of_sql(spark: "SparkSession", tmp_path: Path) -> None:
    """Tables and columns may bear any name: those of SQL's words, and such as begin with a digit."""
    odd = {"order": "string", "select": "string", "1st": "string"}
    described = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "moved"}, **{name: {"type": kind} for name, kind in odd.items()}},
    }
    catalog = Book.of({"messagegroups": {"1group": {"messages": {"select": described}}}})
    line = event(1, order="o", select="s", **{"1st": "f"}).decode()
    assert 1 == land(spark.createDataFrame([(line,)], "value string"), catalog, str(tmp_path)).landed
    (row,) = table(spark, str(tmp_path), "1group/select").collect()
    assert ("o", "s", "f") == (row["order"], row["select"], row["1st"])
    assert ["1group__select"] == views_of(spark, str(tmp_path))
    assert "o" == spark.sql("SELECT `order` FROM `1group__select`").first()["order"]  # type: ignore[index]  # one row


def test_landing_records_of_kafka(spark: "SparkSession", tmp_path: Path) -> None:
    """Rows as Spark's Kafka connector gives them are Kafka's records: headers and keys are matched, and kept."""
    names = {"ce_specversion": "1.0", "ce_id": "k1", "ce_type": "moved", "ce_source": "/cars/K"}
    names["content-type"] = "application/json"
    headers = [(name, bytearray(value.encode())) for name, value in names.items()]
    record = (bytearray(b"key"), bytearray(b'{"km": 9}'), "cars", 2, 5, headers)
    schema = "key binary, value binary, topic string, partition int, offset long, "
    rows = spark.createDataFrame([record], schema + "headers array<struct<key: string, value: binary>>")
    assert 1 == land(rows, packed(), str(tmp_path)).landed
    (row,) = table(spark, str(tmp_path), "fleet/moved").collect()
    transport = row.transport
    assert ("k1", 9, "KAFKA", "cars") == (row.id, row.data.km, transport.protocol, transport.address)
    assert (2, 5) == (transport.partition, transport.offset)
    assert b"key" == bytes(transport.key)


def test_the_names() -> None:
    """What the module offers is listed, and described with its arguments."""
    assert all(hasattr(signalbook_spark, name) for name in signalbook_spark.__all__)
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    rows = text.partition("## On Spark")[2].partition("\n## ")[0]
    described = {name: re.search(rf"^\| `{name}(?:\((.*?)\))?` \|", rows, re.M) for name in signalbook_spark.__all__}
    assert [] == [name for name, found in described.items() if found is None]
    for name, found in described.items():
        if found is not None and found[1] is not None:
            arguments = inspect.signature(getattr(signalbook_spark, name)).parameters
            assert list(arguments) == re.findall(r"(?:^|, )\*?(\w+)", found[1]), name
