from pathlib import Path

import pytest

from signalbook.errors import UsageError
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.read.inputs import InputFile, list_files, list_with_hidden, parse_source, share_out, stat_of


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source has a scheme and a place; a path is absolute, a URI stays."""
    monkeypatch.chdir(tmp_path)
    assert f"events:{tmp_path}/in" == str(parse_source("events:in"))
    assert "parquet:s3://bucket/in" == str(parse_source("parquet:s3://bucket/in/"))
    assert "kafka:h:9092/a,b" == str(parse_source("kafka:h:9092/a,b"))


@pytest.mark.parametrize("text", ["in", "files:in", "events:", "kafka:host:9092"])
def test_what_names_no_source(text: str) -> None:
    """Anything else is wrong usage, and says what there is."""
    with pytest.raises(UsageError, match="kafka:"):
        parse_source(text)


def test_listing(tmp_path: Path) -> None:
    """A folder's files at any depth, but none that is hidden, which are counted; a file alone; nothing is an error."""
    for name in ("b.jsonl", "sub/a.gz", ".hidden", "_temporary/x", ".a.jsonl.open"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12")
    listed = list_files(parse_source(f"events:{tmp_path}"))
    assert [(f"{tmp_path}/b.jsonl", 2), (f"{tmp_path}/sub/a.gz", 2)] == [(one.path, one.size) for one in listed]
    assert [f"{tmp_path}/b.jsonl"] == [one.path for one in list_files(parse_source(f"events:{tmp_path}/b.jsonl"))]
    assert [3, 0] == [list_with_hidden(parse_source(f"events:{tmp_path}{below}"))[1] for below in ("", "/b.jsonl")]
    with pytest.raises(PipelineError, match="neither a file nor a folder"):
        list_files(parse_source(f"events:{tmp_path}/none"))


def test_two_ways_to_one_source(tmp_path: Path) -> None:
    """A folder reached by a link is the same source; a file that is a link keeps its name, which says its kind."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/blob").write_bytes(b"12")
    (tmp_path / "real/a.gz").symlink_to("blob")
    assert parse_source(f"events:{tmp_path}/real") == parse_source(f"events:{tmp_path}/link")
    assert f"events:{tmp_path}/real/a.gz" == str(parse_source(f"events:{tmp_path}/link/a.gz"))
    assert f"events:{tmp_path}/real/new" == str(parse_source(f"events:{tmp_path}/link/new"))


def test_one_file_now(tmp_path: Path) -> None:
    """A file at a full path has a size; what is not there has none."""
    (tmp_path / "a").write_bytes(b"12")
    found = stat_of(f"{tmp_path}/a")
    assert found is not None
    assert (2, None) == (found.size, stat_of(f"{tmp_path}/b"))


def test_small_files_share_a_task(tmp_path: Path) -> None:
    """Tasks are about equal; a compressed file and a batch are never cut."""
    (tmp_path / "batch.json").write_bytes(b"[" + b" " * 99)
    files = [InputFile(f"/{number}", 10, 0) for number in range(10)]
    assert [3, 3, 3, 1] == [len(task) for task in share_out(files, 30)]
    whole = share_out([InputFile("/big.gz", 1000, 0), InputFile(f"{tmp_path}/batch.json", 100, 0)], 30)
    assert [(0, None), (0, None)] == [(split.start, split.end) for task in whole for split in task]
