import json
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import signalbook
from signalbook.cli import COMMANDS, main
from tests.cli.conftest import Run


def test_version(run: Run) -> None:
    """`version` names the program's version and the specification versions."""
    assert run("version").out.startswith(f"signalbook {signalbook.__version__} (xRegistry 1.0-rc2, 1.0-rc4;")
    printed = run("version", "--json").json
    assert (signalbook.__version__, ["1.0-rc2", "1.0-rc4"]) == (printed["signalbook"], printed["specversions"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run: Run, shell: str) -> None:
    """`completion` prints a script that calls the program."""
    result = run("completion", shell)
    assert (0, True) == (result.code, "_SIGNALBOOK_COMPLETE" in result.out)


def test_completion_completes() -> None:
    """The script's question is answered with commands and options."""
    asked = {**os.environ, "_SIGNALBOOK_COMPLETE": "bash_complete", "COMP_WORDS": "signalbook rest", "COMP_CWORD": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", "from signalbook.cli import main; main()"], env=asked, capture_output=True, text=True
    )
    assert ["plain,restore"] == answer.stdout.split()


@pytest.mark.parametrize("command", [*COMMANDS])
def test_every_command_has_help_with_an_example(run: Run, command: str) -> None:
    """`--help` says what the command does and shows how it is used."""
    result = run(command, "--help")
    assert 0 == result.code
    assert f"Example: signalbook {command}" in result.out


def test_a_closed_pipe_is_no_failure(tmp_path: Path) -> None:
    """Output that nobody reads any more ends the command without a traceback."""
    command = f"{sys.executable} -m signalbook get / --help; " * 3
    pipe = subprocess.run(["bash", "-c", f"({command}) | head -c 1"], capture_output=True, text=True, cwd=tmp_path)
    assert "" == pipe.stderr
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run([sys.executable, "-m", "signalbook", "version"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert b"" == process.stderr


def test_backup_and_restore(run: Run, catalog: Path) -> None:
    """A restored backup holds what the store held at that moment, and nothing is written over unasked."""
    assert 0 == run("load", str(catalog)).code
    assert 0 == run("backup", "copy.db").code
    assert 2 == run("backup", "copy.db").code
    assert 0 == run("delete", "/messagegroups/fleet").code
    assert 2 == run("restore", "copy.db").code
    restored = run("restore", "copy.db", "--force")
    assert (0, "") == (restored.code, restored.out), restored.err
    assert "Fleet" == run("get", "/messagegroups/fleet").json["name"]
    assert 0 == run("restore", "copy.db", "--store", "other.db").code
    assert run("get", "/messagegroups/fleet").json == run("get", "/messagegroups/fleet", "--store", "other.db").json


def test_backup_while_it_is_written(run: Run, catalog: Path, tmp_path: Path) -> None:
    """A backup taken under writes is whole: every write that is in it is completely in it."""
    assert 0 == run("load", str(catalog)).code
    stop = threading.Event()

    def write() -> None:
        with signalbook.Registry.open(str(tmp_path / "signalbook.db")) as registry:
            number = 0
            while not stop.is_set():
                number += 1
                registry.put(f"/messagegroups/g{number}", {"name": str(number), "messages": {"m": {}}})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            assert 0 == main(["backup", f"copy{number}.db"])
    finally:
        stop.set()
        writer.join()
    for number in range(5):
        groups = run("get", "/messagegroups", "--store", f"copy{number}.db").json
        assert {1, 2} >= {group["messagescount"] for group in groups.values()}


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("backup", "x.db", "--store", "absent.db"), 3, "there is no store 'absent.db'"),
        (("backup", "x.db", "--store", "memory:"), 2, "use export"),
        (("backup", "x.db", "--store", "postgresql://h/d"), 2, "use pg_dump"),
        (("restore", "absent.db"), 3, "there is no backup 'absent.db'"),
        (("restore", "text.db"), 3, "'text.db' is not a backup"),
        (("restore", "foreign.db"), 3, "not a backup of a Signalbook store"),
        (("restore", "foreign.db", "--store", "foreign.db", "--force"), 2, "the same file"),
        (("restore", "text.db", "--store", ".", "--force"), 2, "'.' is a folder"),
    ],
)
def test_what_backup_and_restore_refuse(run: Run, tmp_path: Path, args: tuple[str, ...], code: int, words: str) -> None:
    """What cannot be copied is refused, and no file is left behind."""
    (tmp_path / "text.db").write_text("this is no database " * 100)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    result = run(*args)
    assert code == result.code
    assert words in result.err
    assert {"text.db", "foreign.db"} == {path.name for path in tmp_path.iterdir()}


def test_a_store_in_use_is_replaced_at_once(run: Run, catalog: Path, tmp_path: Path) -> None:
    """Whoever has the store open sees what was restored, and change numbers are not given out again."""
    assert 0 == run("load", str(catalog)).code
    assert 0 == run("backup", "copy.db").code
    with signalbook.Registry.open(str(tmp_path / "signalbook.db")) as registry:
        registry.delete("/messagegroups/fleet")
        before = registry.store.sequence()
        assert 0 == run("restore", "copy.db", "--force").code
        assert "Fleet" == registry.get("/messagegroups/fleet")["name"]
        registry.put("/messagegroups/new", {})
        assert before < registry.store.sequence()


def test_a_backup_over_a_store_in_use_is_refused(run: Run, catalog: Path, tmp_path: Path) -> None:
    """`--force` replaces an earlier copy, not what somebody serves."""
    assert 0 == run("load", str(catalog)).code
    with signalbook.Registry.open(str(tmp_path / "other.db")):
        result = run("backup", "other.db", "--force")
        assert (3, True) == (result.code, "is a store in use" in result.err)
    assert 0 == run("backup", "copy.db").code
    assert 0 == run("backup", "copy.db", "--force").code


def test_numbers_and_texts_survive(run: Run) -> None:
    """What is printed is the JSON that was written."""
    text = json.dumps({"name": "Zürich ✓"}, ensure_ascii=False)
    assert "Zürich ✓" == run("put", "/messagegroups/g", "--data", text).json["name"]


def test_version_as_an_option(run: Run) -> None:
    """`--version` is what people try first."""
    assert f"signalbook {signalbook.__version__}\n" == run("--version").out
