from pathlib import Path

import pytest

from signalbook.errors import UsageError
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.inputs import Listed, list_files, parse_source, share_out, unlanded


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
    """A folder's files at any depth, but none that is hidden; a file alone; nothing there is an error."""
    for name in ("b.jsonl", "sub/a.gz", ".hidden", "_temporary/x", ".a.jsonl.open"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12")
    listed = list_files(parse_source(f"events:{tmp_path}"))
    assert [(f"{tmp_path}/b.jsonl", 2), (f"{tmp_path}/sub/a.gz", 2)] == [(one.path, one.size) for one in listed]
    assert [f"{tmp_path}/b.jsonl"] == [one.path for one in list_files(parse_source(f"events:{tmp_path}/b.jsonl"))]
    with pytest.raises(PipelineError, match="neither a file nor a folder"):
        list_files(parse_source(f"events:{tmp_path}/none"))


def test_what_was_landed_is_left_out() -> None:
    """A file is known by path, size and time; one that changed is refused."""
    files = [Listed("/a", 1, 5), Listed("/b", 2, 6)]
    assert files[1:] == unlanded(files, [{"path": "/a", "size": 1, "changed": 5}])
    with pytest.raises(PipelineError, match="'/a' has changed"):
        unlanded(files, [{"path": "/a", "size": 1, "changed": 4}])


def test_small_files_share_a_task(tmp_path: Path) -> None:
    """Tasks are about equal; a compressed file and a batch are never cut."""
    (tmp_path / "batch.json").write_bytes(b"[" + b" " * 99)
    files = [Listed(f"/{number}", 10, 0) for number in range(10)]
    assert [3, 3, 3, 1] == [len(task) for task in share_out(files, 30)]
    whole = share_out([Listed("/big.gz", 1000, 0), Listed(f"{tmp_path}/batch.json", 100, 0)], 30)
    assert [(0, None), (0, None)] == [(split.start, split.end) for task in whole for split in task]
