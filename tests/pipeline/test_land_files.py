import gzip
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from examples.demo.traffic import CATALOG, write_traffic

from signalbook.pipeline import delta
from signalbook.pipeline.ddl import compact_tables
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.lake import Lake, Manifest
from signalbook.pipeline.land import Landing, LandingResult
from signalbook.pipeline.land_files import AlreadyLanded, LandedFiles, land_files
from signalbook.pipeline.read.inputs import InputFile, parse_source
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import PackedCatalog
from tests.pipeline.lakes import (
    MOVED,
    data_files,
    dead,
    event,
    on_spark,
    packed,
    places,
    rows,
    write_damaged_parquet,
    write_lines,
    write_parquet,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = on_spark


class Killed(BaseException):
    """What stops a driver where it stands."""


def land(
    spark: "SparkSession", folder: Path, catalog: PackedCatalog, source: str = "events", **more: Any
) -> LandingResult:
    """Land the folder `in` into the folder `lake`."""
    return land_files(
        spark, catalog, parse_source(f"{source}:{folder / 'in'}"), Lake.open(str(folder / "lake")), **more
    )


def test_everything_arrives_once(spark: "SparkSession", tmp_path: Path, samples: PackedCatalog) -> None:
    """Traffic of every outcome over every protocol: input = landed + dead, row for row as the catalog says."""
    catalog = PackedCatalog.of(*json.loads(json.dumps(_documents(samples))), CATALOG)
    written = write_traffic(catalog.catalog(), tmp_path / "in", 1500)
    result = land(spark, tmp_path, catalog, "messages")
    assert (1500, 1500, 1500) == (written, result.input, result.landed + result.dead)
    assert {"matched", "nonconformant", "ambiguous", "unexpected", "malformed"} == set(result.outcomes)
    found = places(tmp_path / "lake")
    assert (1500, {1}) == (found.total(), set(found.values()))
    judge = catalog.catalog()
    for letter in dead(tmp_path / "lake"):
        answer = judge.match(letter["record"])
        assert (answer.outcome.value, answer.definition) == (letter["outcome"], letter["definition"])
        assert [(one.path, one.code, one.message) for one in answer.problems] == [
            (one["path"], one["code"], one["message"]) for one in letter["problems"]
        ]


def _documents(packed: PackedCatalog) -> list[Any]:
    import zlib

    documents: list[Any] = json.loads(zlib.decompress(packed.text))["documents"]
    return documents


def test_bad_input(spark: "SparkSession", tmp_path: Path) -> None:
    """Garbage, cut files, a bad element, a file that is gone: each is a dead letter, and the counts add up."""
    write_lines(tmp_path / "in/a.jsonl", [event(1), b"not JSON", b"\xff\xfe\0", b"", b"  ", event(2)])
    (tmp_path / "in/b.json").write_bytes(b"[%b,\n{oops},%b" % (event(3), event(4)))
    content = gzip.compress(b"".join(event(number) + b"\n" for number in range(10, 3000)), 1)
    (tmp_path / "in/c.jsonl.gz").write_bytes(content[:-500])
    result = land(spark, tmp_path, packed())
    assert result.input == result.landed + result.dead == places(tmp_path / "lake").total()
    letters = dead(tmp_path / "lake")
    assert {"malformed"} == {letter["outcome"] for letter in letters}
    assert {b"not JSON", b"\xff\xfe\0", b"{oops}", event(4)} < {letter["record"] for letter in letters}
    assert 5 == result.dead


def test_landed_once(spark: "SparkSession", tmp_path: Path) -> None:
    """What has landed lands again only where that is asked for; a new file lands; a changed one is refused."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    assert [1, 0, 1] == [land(spark, tmp_path, packed(), again=again).input for again in (False, False, True)]
    write_lines(tmp_path / "in/b.jsonl", [event(2)])
    assert 1 == land(spark, tmp_path, packed()).landed
    write_lines(tmp_path / "in/b.jsonl", [event(2), event(3)])
    with pytest.raises(PipelineError, match=r"b\.jsonl' has changed since it was landed"):
        land(spark, tmp_path, packed())


@pytest.mark.parametrize("moment", range(5))
def test_a_driver_that_dies(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Killed before the manifest, after it, or between tables, with another catalog waiting: each message once."""
    lines = [event(1), event(2, type="stopped", data=None), event(3, type="unheard"), event(4)]
    write_lines(tmp_path / "in/a.jsonl", lines)
    real_commit, real_write = delta.commit, Lake.write
    commits = []

    def dying_commit(*arguments: Any) -> bool:
        if len(commits) == moment - 1:
            raise Killed
        commits.append(real_commit(*arguments))
        return commits[-1]

    def dying_write(lake: Lake, manifest: Any) -> None:
        if moment == 0:
            raise Killed
        real_write(lake, manifest)

    def dying_mark(folder: Folder, path: str, content: bytes) -> None:
        if path.endswith(".done"):
            raise Killed
        real_mark(folder, path, content)

    real_mark = Folder.write
    with monkeypatch.context() as dying:
        dying.setattr(delta, "commit", dying_commit)
        dying.setattr(Lake, "write", dying_write)
        dying.setattr(Folder, "write", dying_mark)
        with pytest.raises(Killed):
            land(spark, tmp_path, packed())
    # The catalog that waits takes other payloads; what has a manifest is not matched by it.
    waiting = packed() if moment == 0 else packed(fuel={"type": "number"}, km={"type": "string"})
    result = land(spark, tmp_path, waiting)
    found = places(tmp_path / "lake")
    assert (4, 3, 1) == (result.input, result.landed, result.dead)
    assert (4, {1}) == (found.total(), set(found.values()))
    assert 0 == land(spark, tmp_path, waiting).input
    committed = {
        f"{table}/{row['path']}"
        for table in ("fleet/moved", "fleet/stopped", DEAD_LETTERS)
        for row in _files(tmp_path, table)
    }
    assert committed == data_files(tmp_path / "lake")


def _files(folder: Path, table: str) -> list[dict[str, Any]]:
    return delta.files_of(Lake.open(str(folder / "lake")).folder, table)


def test_tables_grow(spark: "SparkSession", tmp_path: Path) -> None:
    """A newer definition adds columns; rows before it have none there, and both read back together."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    land(spark, tmp_path, packed())
    write_lines(tmp_path / "in/b.jsonl", [event(2, data={"km": 2, "fuel": 0.5})])
    land(spark, tmp_path, packed(fuel={"type": "number"}))
    from signalbook.spark import table

    found = table(spark, str(tmp_path / "lake"), "fleet/moved").orderBy("id").select("id", "data.km", "data.fuel")
    assert [("e1", 1, None), ("e2", 2, 0.5)] == [tuple(row) for row in found.collect()]


def test_a_table_refuses_what_would_break_it(spark: "SparkSession", tmp_path: Path) -> None:
    """Messages of a definition whose column has another type wait as dead letters with that reason."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    land(spark, tmp_path, packed(fuel={"type": "number"}))
    write_lines(tmp_path / "in/b.jsonl", [event(2), event(3, type="stopped")])
    result = land(spark, tmp_path, packed(fuel={"type": "string"}))
    assert (1, 1) == (result.landed, result.dead)
    (letter,) = dead(tmp_path / "lake")
    assert ("matched", "table") == (letter["outcome"], letter["problems"][0]["code"])
    assert "/data/fuel" in letter["problems"][0]["message"]


def test_names_that_clash(spark: "SparkSession", tmp_path: Path) -> None:
    """Two messages whose ids differ in case only have a table each, and keep them when a third comes."""

    def catalog(*names: str) -> PackedCatalog:
        messages = {
            name: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}}} for name in names
        }
        return PackedCatalog.of({"messagegroups": {"g": {"messages": messages}}})

    write_lines(tmp_path / "in/a.jsonl", [event(1, type="b.c"), event(2, type="b-c")])
    land(spark, tmp_path, catalog("b.c", "b-c"))
    write_lines(tmp_path / "in/b.jsonl", [event(3, type="b.c"), event(4, type="B+c"), event(5, type="b-c")])
    assert 3 == land(spark, tmp_path, catalog("B+c", "b.c", "b-c")).landed
    held = Counter()
    for path in sorted((tmp_path / "lake" / "g").iterdir()):
        types = {row["type"] for row in rows(tmp_path / "lake", f"g/{path.name}")}
        assert 1 == len(types)
        held[types.pop()] += len(rows(tmp_path / "lake", f"g/{path.name}"))
    assert {"b.c": 2, "b-c": 2, "B+c": 1} == held


def test_two_at_once(spark: "SparkSession", tmp_path: Path) -> None:
    """Two runs into one lake both succeed; of one source, the second is told to wait."""
    for name in ("x", "y"):
        write_lines(tmp_path / name / "in/a.jsonl", [event(number) for number in range(300)])
    lake = str(tmp_path / "lake")
    sources = [parse_source(f"events:{tmp_path / name / 'in'}") for name in ("x", "y")]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda source: land_files(spark, packed(), source, Lake.open(lake)), sources))
    assert [300, 300] == [result.landed for result in results]
    assert 600 == len(rows(lake, "fleet/moved"))


def test_two_at_once_that_overlap(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that another run landed while this one matched it is left out; the others land, and none is doubled."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    write_lines(tmp_path / "in/b.jsonl", [event(2)])
    lake, real = str(tmp_path / "lake"), Landing.land
    said: list[str] = []

    def overtaken(landing: Landing, catalog: PackedCatalog, batch: Any) -> Any:
        monkeypatch.setattr(Landing, "land", real)
        one = parse_source(f"events:{tmp_path / 'in/a.jsonl'}")
        assert 1 == land_files(spark, packed(), one, Lake.open(lake)).landed
        return real(landing, catalog, batch)

    monkeypatch.setattr(Landing, "land", overtaken)
    assert 1 == land(spark, tmp_path, packed(), say=said.append).landed
    assert ["e1", "e2"] == sorted(row["id"] for row in rows(lake, "fleet/moved"))
    assert any("another run landed 1 of these files meanwhile" in text for text in said)


def test_a_file_that_is_written_to_meanwhile(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that grows while it is read is not committed; when it is whole, it lands whole."""
    path = write_lines(tmp_path / "in/a.jsonl", [event(1)])
    real = Landing.land

    def growing(landing: Landing, catalog: PackedCatalog, batch: Any) -> Any:
        write_lines(path, [event(1), event(2)])
        return real(landing, catalog, batch)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Landing, "land", growing)
        with pytest.raises(PipelineError, match=r"a\.jsonl' was written to while it was landed"):
            land(spark, tmp_path, packed())
    assert 2 == land(spark, tmp_path, packed()).landed
    assert 2 == places(tmp_path / "lake").total()


def test_a_changed_file_alone_again(spark: "SparkSession", tmp_path: Path) -> None:
    """The way out that the refusal names lands that file once more, and the folder is free again."""
    write_lines(tmp_path / "in/a.jsonl", [event(1)])
    write_lines(tmp_path / "in/b.jsonl", [event(2)])
    land(spark, tmp_path, packed())
    write_lines(tmp_path / "in/b.jsonl", [event(2), event(3)])
    with pytest.raises(PipelineError, match="has changed") as refused:
        land(spark, tmp_path, packed())
    source = str(refused.value).partition("--from ")[2].removesuffix(" --again")
    lake = Lake.open(str(tmp_path / "lake"))
    assert 2 == land_files(spark, packed(), parse_source(source), lake, again=True).landed
    assert 0 == land(spark, tmp_path, packed()).input
    assert ["e1", "e2", "e2", "e3"] == sorted(row["id"] for row in rows(tmp_path / "lake", "fleet/moved"))


def test_small_files_are_joined(spark: "SparkSession", tmp_path: Path) -> None:
    """Files that landed one by one become one, with the same rows; dead letters are left alone."""
    for number in range(4):
        write_lines(tmp_path / f"in/{number}.jsonl", [event(number), b"oops"])
        land(spark, tmp_path, packed())
    lake = Lake.open(str(tmp_path / "lake"))
    before = sorted(row["id"] for row in rows(tmp_path / "lake", "fleet/moved"))
    assert 3 == compact_tables(lake)
    assert before == sorted(row["id"] for row in rows(tmp_path / "lake", "fleet/moved"))
    assert 4 == len(_files(tmp_path, DEAD_LETTERS))
    assert 0 == lake.sweep()


def test_parquet(spark: "SparkSession", tmp_path: Path) -> None:
    """Rows of Parquet files are messages too, in a column or as Kafka's records."""
    import pyarrow as pa

    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"value": [event(1), b"oops", None]}), tmp_path / "in/a.parquet")
    result = land(spark, tmp_path, packed(), "parquet")
    assert (3, 1, 2) == (result.input, result.landed, result.dead)
    assert {MOVED: 1} == result.messages


def test_readers_agree(spark: "SparkSession", tmp_path: Path) -> None:
    """Spark SQL and DuckDB read the same rows from a table."""
    import duckdb

    from signalbook.spark import table

    write_lines(tmp_path / "in/a.jsonl", [event(number, priority=number) for number in range(50)])
    land(spark, tmp_path, packed())
    by_spark = table(spark, str(tmp_path / "lake"), "fleet/moved").select("id", "priority", "context.vin", "data.km")
    files = [str(tmp_path / "lake/fleet/moved" / one["path"]) for one in _files(tmp_path, "fleet/moved")]
    by_duckdb = duckdb.sql(f"SELECT id, priority, context.vin, data.km FROM read_parquet({files})").fetchall()
    assert sorted(by_duckdb) == sorted(tuple(row) for row in by_spark.collect())


SOURCE = parse_source("events:/in")


def put(lake: Lake, number: int, *files: InputFile) -> None:
    """A batch that landed these files."""
    inputs = tuple(one.to_json() for one in files)
    lake.write(Manifest("stream-0000000000000000", number, "d", "events:/in", "2026-01-01T00:00:00Z", {}, {}, inputs))


def test_what_was_landed_is_left_out(tmp_path: Path) -> None:
    """A file is known by path, size and time; one that changed is refused, with the way out for it alone."""
    lake = Lake.open(str(tmp_path))
    landed, files = LandedFiles(lake), [InputFile("/in/a", 1, 5), InputFile("/in/b", 2, 6)]
    assert files == landed.unlanded(SOURCE, files)
    put(lake, 0, files[0])
    assert files[1:] == landed.unlanded(SOURCE, files)
    with pytest.raises(PipelineError, match=r"'/in/a' has changed .* --from events:/in/a --again"):
        landed.unlanded(SOURCE, [InputFile("/in/a", 1, 7)])


def test_a_file_that_was_landed_again(tmp_path: Path) -> None:
    """A changed file that was landed once more is known as it is now, whichever run has the later name."""
    lake = Lake.open(str(tmp_path))
    put(lake, 0, InputFile("/in/a", 2, 6))
    put(lake, 1, InputFile("/in/a", 1, 5))
    assert [] == LandedFiles(lake).unlanded(SOURCE, [InputFile("/in/a", 2, 6)])


def test_landed_meanwhile(tmp_path: Path) -> None:
    """What another run lands after one has looked is noticed when that one looks again."""
    lake, file = Lake.open(str(tmp_path)), InputFile("/in/a", 1, 5)
    landed = LandedFiles(lake)
    landed.check(SOURCE, [file])
    put(lake, 0, file)
    with pytest.raises(AlreadyLanded, match="landed 1 of these"):
        landed.check(SOURCE, [file])


def test_a_landed_file_by_another_way(tmp_path: Path) -> None:
    """What was landed through a link is known by the folder's own name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    lake = Lake.open(str(tmp_path / "lake"))
    put(lake, 0, InputFile(f"{tmp_path}/link/a", 1, 5))
    assert [] == LandedFiles(lake).unlanded(SOURCE, [InputFile(f"{tmp_path}/real/a", 1, 5)])


def test_a_look(tmp_path: Path) -> None:
    """A file of the source that grew after it was landed is found."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_bytes(b"1")
    source, lake = parse_source(f"events:{tmp_path}/in"), Lake.open(str(tmp_path / "lake"))
    landed = LandedFiles(lake)
    landed.check_unchanged(source)
    place = tmp_path / "in/a"
    put(lake, 0, InputFile(str(place), 1, place.stat().st_mtime_ns))
    landed.check_unchanged(source)
    place.write_bytes(b"12")
    with pytest.raises(PipelineError, match="has changed since it was landed"):
        landed.check_unchanged(source)


def test_a_folder_with_bad_files(spark: "SparkSession", tmp_path: Path) -> None:
    """One bad file or value is a dead letter; every good one beside it lands."""
    folder = tmp_path / "in"
    folder.mkdir()
    write_parquet(folder / "text.parquet", {"value": [event(1).decode()]})
    write_parquet(folder / "bytes.parquet", {"value": [b"\xff", event(2)]})
    write_parquet(folder / "numbers.parquet", {"value": [3]})
    headers = [[{"key": "content-type", "value": b"application/cloudevents+json"}]]
    write_parquet(
        folder / "kafka.parquet", {"value": [event(4)], "topic": ["cars"], "partition": [0], "headers": headers}
    )
    write_damaged_parquet(folder / "damaged.parquet", 2, 0)
    (folder / "garbage.parquet").write_bytes(b"garbage")
    lake = tmp_path / "lake"
    result = land_files(spark, packed(), parse_source(f"parquet:{folder}"), Lake.open(str(lake)))
    assert (17, 13, 4) == (result.input, result.landed, result.dead)
    assert 13 == result.messages[MOVED]
    assert {b"\xff", b"3", b"garbage", None} == {letter["record"] for letter in dead(lake)}
