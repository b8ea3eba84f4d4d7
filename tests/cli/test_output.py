from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from signalbook.cli.output import EXTRAS, Exit, report
from signalbook.client import RemoteError
from signalbook.cloudevents import CloudEventError
from signalbook.errors import Problem, RegistryError, SignalbookError, StoreError, UsageError
from signalbook.protocols import WireError
from tests.cli.conftest import CATALOG

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CloudEventError(Problem("/id", "R8", "id must not be empty")), Exit.REFUSED),
        (WireError(Problem("/topic", "value", "is missing")), Exit.REFUSED),
        (RegistryError("bad_request", error_detail="x"), Exit.REFUSED),
        (RegistryError("not_found", "/x"), Exit.ABSENT),
        (UsageError("no"), Exit.USAGE),
        (StoreError("no"), Exit.ABSENT),
        (RemoteError("no"), Exit.ABSENT),
        (SignalbookError("no"), Exit.ABSENT),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error: Exception, code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of failure has its exit code, and one line on standard error."""
    assert code is report(error)
    said = capsys.readouterr().err
    assert said.startswith("signalbook: ")
    assert 1 == said.count("\n")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            RegistryError("format_violation", "/v", detail="/type: no.", format="Avro"),
            'signalbook: The request would cause Version "/v" to be non-compliant with its "format" (Avro): /type: no '
            "[format_violation]\n",
        ),
        (RegistryError("elsewhere", detail="Their words: more."), "signalbook: Their words: more [elsewhere]\n"),
        (RegistryError("elsewhere"), "signalbook: elsewhere [elsewhere]\n"),
    ],
)
def test_a_refusal_says_why(error: RegistryError, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence has the error's title and its detail; for an error of another server, what that said."""
    report(error)
    assert expected == capsys.readouterr().err


# Runs commands in an interpreter that knows nothing of what the extras bring, as in an installation without them.
WITHOUT_EXTRAS = """
import contextlib, io, json, sys
from signalbook.cli import main
from signalbook.cli.output import EXTRAS

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
found = []
for args in json.load(sys.stdin):
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(args)
    found.append([int(code), err.getvalue()])
print(json.dumps(found))
"""


def without_extras(commands: Sequence[tuple[str, ...]], folder: Path) -> list[tuple[int, str]]:
    """The exit code and the error output of each command, run without any extra."""
    (folder / "catalog.json").write_text(json.dumps(CATALOG))
    (folder / "schema.json").write_text('{"type": "object"}')
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], input=json.dumps(commands), cwd=folder, capture_output=True, text=True
    )
    assert 0 == done.returncode, done.stderr
    return [(code, err) for code, err in json.loads(done.stdout)]


def test_a_command_names_the_extra_it_lacks(tmp_path: Path) -> None:
    """Without its extra a command ends with one sentence that says what to install, and no traceback."""
    catalog, store = ("--catalog", "catalog.json"), ("--store", "postgresql://nobody@localhost/none")
    expected = {
        ("ddl", *catalog): "lake",
        ("land", *catalog, "--from", "events:in", "--to", "lake"): "spark",
        ("land", *catalog, "--from", "kafka:localhost:9092/t", "--to", "lake"): "spark",
        ("land", *catalog, "--from", "spool:in", "--to", "lake", "--stream"): "spark",
        ("report", "--lake", "lake"): "lake",
        ("schema", "columns", "schema.json"): "lake",
        ("redrive", *catalog, "--lake", "lake"): "spark",
        ("spool", "--from", "mqtt:localhost:1/t", "--to", "out"): "mqtt",
        ("spool", "--from", "nats:localhost:1/t", "--to", "out"): "nats",
        ("spool", "--from", "amqp:localhost:1/t", "--to", "out"): "amqp",
        ("load", "catalog.json", *store): "postgres",
        ("get", "/", *store): "postgres",
        ("serve", *store): "postgres",
    }
    for (args, extra), (code, err) in zip(expected.items(), without_extras(list(expected), tmp_path), strict=True):
        assert Exit.USAGE == code, (args, err)
        assert f"pip install 'signalbook[{extra}]'" in err, args
        assert err.startswith("signalbook: ")
        assert 1 == err.count("\n"), args
        if args[0] == "schema":  # its other commands need no extra
            assert '"signalbook schema columns" needs' in err


def test_the_library_names_the_extra_it_lacks() -> None:
    """So does the module for Spark programs, when it is imported."""
    program = """
import sys
sys.modules["deltalake"] = None
try:
    import signalbook.spark
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "the package \"deltalake\" is not installed: pip install 'signalbook[spark]'\n" == said


def test_the_rest_needs_no_extra(tmp_path: Path) -> None:
    """Loading, reading, checking and matching work in an installation without extras."""
    commands = [
        ("lint", "catalog.json"),
        ("load", "catalog.json", "--store", "a.db"),
        ("get", "/messagegroups/fleet", "--store", "a.db"),
        ("export", "--store", "a.db", "--output", "all.json"),
        ("sample", "--catalog", "catalog.json"),
        ("schema", "validate", "schema.json", "in/a.json"),
        ("convert", "catalog.json", "--detect"),
    ]
    found = without_extras(commands, tmp_path)
    assert [0] * len(commands) == [code for code, _ in found], found


def test_only_tables_need_pyarrow() -> None:
    """A registry, a server and an engine are imported without pyarrow: only what makes tables imports it."""
    program = """
import importlib, pkgutil, sys
import signalbook

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
for module in pkgutil.walk_packages(signalbook.__path__, "signalbook."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            print(module.name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    needing = done.stdout.split()
    makes_tables = re.compile(r"signalbook\.(?:pipeline\..+|spark|schemas\..+\.(?:columns|typed))").fullmatch
    assert [] == [name for name in needing if not makes_tables(name)]
    assert {"signalbook.pipeline.files", "signalbook.pipeline.read.queues"}.isdisjoint(needing)


def test_each_extra_is_known() -> None:
    """Every extra of the package, but the one that is always there, is named by a module of it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(declared) - {"http"} == set(EXTRAS.values())
