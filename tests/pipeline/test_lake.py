import threading
from pathlib import Path
from typing import Any

import pytest

from signalbook.pipeline import lake as lake_module
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import STOPPED, Lake, Manifest
from tests.patience import LONG


def manifest(run: str, files: dict[str, list[dict[str, object]]]) -> Manifest:
    """A batch that brings these files."""
    return Manifest(run, 0, "digest", "events:x", "2026-01-01T00:00:00Z", {}, files)


def test_a_folder_that_is_not_a_lake(tmp_path: Path) -> None:
    """A folder without runs is not a lake, unless one is to be made."""
    with pytest.raises(PipelineError, match="is not a lake"):
        Lake.open(str(tmp_path), create=False)
    Lake.open(str(tmp_path))
    Lake.open(str(tmp_path), create=False)


def test_a_manifest_is_written_once(tmp_path: Path) -> None:
    """A batch has one manifest, and it comes back as it was."""
    lake = Lake.open(str(tmp_path))
    written = manifest("20260101T000000-00000000", {"g/a": [{"path": "x", "rows": 1, "bytes": 2}]})
    lake.write(written)
    assert written == lake.manifest(written.run, 0)
    assert [written] == list(lake.manifests())
    with pytest.raises(PipelineError, match="has a manifest already"):
        lake.write(written)


def test_only_nobodys_files_are_swept(tmp_path: Path) -> None:
    """Files of ended runs in no manifest go; those of living runs, of manifests, and of others stay."""
    lake = Lake.open(str(tmp_path))
    with lake.run({"kind": "land", "source": "a"}) as ended:
        pass
    name = f"{ended.name}-0-aaaaaaaaaaaa-"
    folder = tmp_path / "g" / "a"
    folder.mkdir(parents=True)
    for path in (f"{name}1.parquet", f"{name}2.parquet", "part-00000.parquet"):
        (folder / path).touch()
    lake.write(manifest(ended.name, {"g/a": [{"path": f"{name}1.parquet", "rows": 1, "bytes": 2}]}))
    with lake.run({"kind": "land", "source": "b"}) as living:
        (folder / f"{living.name}-0-bbbbbbbbbbbb-1.parquet").touch()
        assert 1 == lake.sweep()
    left = {path.name for path in folder.iterdir()}
    assert {f"{name}1.parquet", "part-00000.parquet", f"{living.name}-0-bbbbbbbbbbbb-1.parquet"} == left
    assert 1 == lake.sweep()


def test_a_run_that_fails(tmp_path: Path) -> None:
    """It says why, in one line, and leaves no file that it did not commit; begun again, it is alive, and then done."""
    lake, folder = Lake.open(str(tmp_path)), tmp_path / "g" / "a"
    folder.mkdir(parents=True)
    name = "stream-0123456789abcdef"
    paths = [f"{name}-0-aaaaaaaaaaaa-{number}.parquet" for number in (1, 2)]
    for path in paths:
        (folder / path).touch()
    lake.write(manifest(name, {"g/a": [{"path": paths[0], "rows": 1, "bytes": 2}]}))
    with pytest.raises(OSError, match="full"), lake.run({"kind": "land", "source": "a"}, name):
        raise OSError("the disk\n \x1b[31m↳\x1b[0m is full")
    assert ([paths[0]], "the disk is full") == ([path.name for path in folder.iterdir()], lake.failure(name))
    with lake.run({"kind": "land", "source": "a"}, name):
        assert lake.failure(name) is None
    assert lake.failure(name) is None


def test_a_run_that_is_stopped(tmp_path: Path) -> None:
    """What was killed had no time to say why."""
    lake = Lake.open(str(tmp_path))
    with pytest.raises(KeyboardInterrupt), lake.run({"kind": "land", "source": "a"}) as run:
        raise KeyboardInterrupt
    assert STOPPED == lake.failure(run.name)


def test_who_commits_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run waits until the first has written its manifest; for ever it does not."""
    order, refused = [], threading.Event()
    take = lake_module.take_lease

    def take_lease(*args: Any) -> Any:
        lease = take(*args)
        if lease is None:
            refused.set()
        return lease

    def second() -> None:
        with Lake.open(str(tmp_path)).commit_lock():
            order.append("second")

    monkeypatch.setattr(lake_module, "take_lease", take_lease)
    waiting = threading.Thread(target=second)
    with Lake.open(str(tmp_path)).commit_lock():
        waiting.start()
        assert refused.wait(LONG)
        order.append("first")
        monkeypatch.setattr(lake_module, "_WAIT_SECONDS", 0)
        with pytest.raises(PipelineError, match="try again"), Lake.open(str(tmp_path)).commit_lock():
            pass
    waiting.join()
    assert ["first", "second"] == order


def test_one_at_a_time(tmp_path: Path) -> None:
    """What must be done alone is refused to the second, in the words given, and free again afterwards."""
    lake = Lake.open(str(tmp_path))
    with (
        lake.exclusive("x", "wait"),
        pytest.raises(PipelineError, match="wait"),
        Lake.open(str(tmp_path)).exclusive("x", "wait"),
    ):
        pass
    with lake.exclusive("x", "wait"):
        pass
