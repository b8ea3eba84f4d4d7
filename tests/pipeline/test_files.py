import errno
import os
from pathlib import Path

import pytest

from signalbook.pipeline.files import Folder, PipelineError, is_leased, real_place, take_lease


def test_files_of_a_folder(tmp_path: Path) -> None:
    """What is written is there whole; it is listed, read, and gone when deleted."""
    folder = Folder.at(tmp_path / "new")
    assert ([], None, False) == (list(folder.files()), folder.read("a"), folder.is_folder())
    folder.write("sub/a", b"one")
    folder.write("sub/a", b"two")
    assert b"two" == folder.read("sub/a")
    assert (["sub/a"], ["sub"]) == ([one.path for one in folder.files(recursive=True)], folder.folders())
    folder.delete("sub/a")
    folder.delete("sub/a")
    assert folder.stat("sub/a") is None


def test_what_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves what was there, and no part of what was to come."""

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = Folder.at(tmp_path)
    folder.write("a", b"one")
    monkeypatch.setattr(os, "fsync", full)
    for put in (folder.write, folder.claim):
        with pytest.raises(OSError, match="No space"):
            put("a", b"two")
    assert (b"one", ["a"]) == (folder.read("a"), [path.name for path in tmp_path.iterdir()])


def test_a_claim_is_one_processs(tmp_path: Path) -> None:
    """Of two who put a file there unless there is one, the first succeeds."""
    folder = Folder.at(tmp_path)
    assert [True, False] == [folder.claim("a", text) for text in (b"one", b"two")]
    assert (b"one", ["a"]) == (folder.read("a"), [path.name for path in tmp_path.iterdir()])


def test_names_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is absolute; a URI keeps its scheme, unless it means this machine."""
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path}/a" == Folder.at("a/").uri
    assert "/a" == Folder.at("file:///a").uri
    assert ("s3://b/a/c", False) == ((remote := Folder.at("s3://b/a/").below("c")).uri, remote.is_local)
    with pytest.raises(PipelineError, match="cannot be reached"):
        Folder.at("nowhere://x").read("y")


def test_places_without_links(tmp_path: Path) -> None:
    """A folder is named without links, a file by its real folder and its own name, a URI as it is."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/a").symlink_to("b")
    names = [real_place(f"{tmp_path}/{name}") for name in ("link", "link/a", "real/a")]
    assert [f"{tmp_path}/real", f"{tmp_path}/real/a", f"{tmp_path}/real/a"] == names
    assert ("s3://bucket/a", "/a") == (real_place("s3://bucket/a"), real_place("/a"))


def test_a_lease_ends(tmp_path: Path) -> None:
    """A lease is one process's until it is given back."""
    folder = Folder.at(tmp_path)
    assert not is_leased(folder, "x")
    lease = take_lease(folder, "x")
    assert lease is not None
    assert (True, None) == (is_leased(folder, "x"), take_lease(folder, "x"))
    lease.release()
    assert not is_leased(folder, "x")


def test_a_folder_that_is_not_on_a_disk() -> None:
    """In an object store a file is there whole or not at all, is claimed once, and a lease is a file."""
    folder = Folder("mock://bucket/lake")
    assert not folder.is_local
    folder.make()
    assert folder.is_folder()
    folder.write("a.json", b"1")
    assert [True, False] == [folder.claim("b.json", content) for content in (b"2", b"3")]
    assert {"a.json": b"1", "b.json": b"2"} == {entry.path: folder.read(entry.path) for entry in folder.files()}
    folder.sync("a.json")
    lease = take_lease(folder, "lease", held_seconds=60)
    assert lease is not None
    assert is_leased(folder, "lease", 60)
    assert take_lease(folder, "lease", 60) is None
    lease.release()
    assert not is_leased(folder, "lease", 60)
    folder.delete("a.json")
    assert folder.read("a.json") is None
    with pytest.raises(PipelineError, match="cannot be reached"):
        Folder("nothing://bucket/lake").is_folder()
