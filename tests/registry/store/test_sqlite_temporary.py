from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from signalbook.registry.store import sqlite as module
from signalbook.registry.store.sqlite import make_folder, remove_folder
from tests.patience import LONG

PROGRAM = """
import os, signal, sys
from pathlib import Path
from signalbook.registry.store import sqlite
sqlite._IN_MEMORY = Path(sys.argv[1])
print(sqlite.make_folder()[0], flush=True)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.readline()
"""


def start(place: Path, how: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that made a folder, and that folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(place), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a killed process goes with the next one made; a living one's, a new one, and files stay."""
    monkeypatch.setattr(module, "_IN_MEMORY", tmp_path)
    killed, left = start(tmp_path, "kill")
    living, used = start(tmp_path, "live")
    killed.communicate(timeout=LONG)
    new = tmp_path / "signalbook-new"
    new.mkdir()
    file = tmp_path / "signalbook-file"
    file.write_text("")
    for old in (left, used, file):
        os.utime(old, (0, 0))
    folder, claim = make_folder()
    assert [path.exists() for path in (left, used, new, file)] == [False, True, True, True]
    living.communicate("\n", timeout=LONG)
    remove_folder(folder, claim, os.getppid())
    assert Path(folder).exists()
    remove_folder(folder, claim, os.getpid())
    assert not Path(folder).exists()


def test_without_memory_for_files_the_usual_place_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no file system in memory, the folder is made among the temporary files."""
    monkeypatch.setattr(module, "_IN_MEMORY", tmp_path / "none")
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    folder, claim = make_folder()
    assert Path(folder).parent == tmp_path
    remove_folder(folder, claim, os.getpid())
