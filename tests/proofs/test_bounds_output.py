"""What a catalog, a message or a peer says reaches a terminal, a log or a CI runner as text, and as nothing else."""

from __future__ import annotations

import ast
import json
import logging
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import signalbook
from signalbook.cli import output
from signalbook.errors import RegistryError, UsageError, one_line
from signalbook.pipeline.ddl import _create_table, _remark, _sql_text
from signalbook.pipeline.report import LakeReport, render
from signalbook.server import run as server
from signalbook.server.metrics import RequestLog
from tests.cli.conftest import Run, run

__all__ = ["run"]

# A colour, a title by C1, an order of reading, ends of lines of every kind, an unseen tag, and commands of CI runners.
HOSTILE = (
    "\x1b[31m\x9b0m\x7f\u202e\u2066\u2028\u2029\x85\U000e0041\r\n::warning::a\n  ::error::b\n##[error]c ##vso[task]d"
)
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def check(printed: str) -> None:
    """Nothing in it is unseen but the ends of lines, and no line is a command."""
    assert [] == [one for one in printed if unicodedata.category(one) in UNSEEN and one != "\n"]
    assert [] == [line for line in printed.split("\n") if line.lstrip().startswith("::")]
    assert "##[" not in printed
    assert "##vso[" not in printed


@given(st.text() | st.lists(st.sampled_from(["::", "##[", "##vso[", "#", ":", " ", "\n", "\x1b", "a"])).map("".join))
def test_any_text_is_one_line(text: str) -> None:
    """Whatever the text, one line comes of it, and doing so again changes nothing."""
    shown = one_line(text)
    check(shown)
    assert "\n" not in shown
    assert shown == one_line(shown)


@given(st.text(st.characters(exclude_categories=("Cs",))) | st.just(HOSTILE))
def test_json_stays_the_data_that_it_is(text: str) -> None:
    """JSON is escaped where others are acted upon, and means the same; ends of lines that JSON has not are data."""
    line = output.json_line(json.dumps({text: [text]}, ensure_ascii=False).encode()).decode()
    check(line)
    assert {text: [text]} == json.loads(line)
    laid_out = json.dumps({text: [text]}, ensure_ascii=False, indent="\t").replace("\n", "\r\n")
    assert {text: [text]} == json.loads(output.json_line(laid_out.encode()))


@pytest.mark.parametrize("compact", [True, False])
def test_printed_json(compact: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The same holds for JSON that a command prints, whoever wrote it."""
    for text in (json.dumps({"a": HOSTILE}, ensure_ascii=False), '{\t"a":\r\n "\u202e"}'):
        output.print_text(text, compact=compact)
        printed = capsys.readouterr().out
        check(printed)
        assert json.loads(text) == json.loads(printed)


def test_a_document_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A document goes to a file byte for byte, and to a terminal as text."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    output.print_bytes(f"a\tb\r\n{HOSTILE}".encode() + b"\xff")
    printed = capsys.readouterr().out
    check(printed)
    assert printed.startswith("a   b\n")


@pytest.mark.parametrize("error", [UsageError(HOSTILE), RegistryError("bad_request", "/x", error_detail=HOSTILE)])
def test_errors_and_remarks(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    """An error is one line, and so is a remark."""
    output.report(error)
    output.say(HOSTILE)
    said = capsys.readouterr().err
    check(said)
    assert 2 == said.count("\n")


@pytest.mark.parametrize(
    "command", [("lint",), ("lint", "--json"), ("load", "--store", "memory:"), ("convert", "--to", "0.5-wip")]
)
def test_what_is_said_of_a_document(run: Run, command: tuple[str, ...]) -> None:
    """Names and values of a catalog, and the name of its file, cannot write a line of their own."""
    message: dict[str, Any] = {HOSTILE: HOSTILE, "envelope": HOSTILE, "protocol": HOSTILE, "basemessage": HOSTILE}
    document = {"messagegroups": {"g": {"messages": {HOSTILE: message, "m": message}}, HOSTILE: {}}, HOSTILE: 1}
    file = Path(f"::warning::{HOSTILE.replace('/', '')}.xreg.json")
    file.write_text(json.dumps(document), encoding="utf-8")
    result = run(command[0], str(file), *command[1:])
    check(result.out)
    check(result.err)
    assert "warning" in result.out + result.err


def test_what_is_said_of_arguments(run: Run) -> None:
    """A name that a pattern of the shell gave is text from outside, too."""
    for args in (
        ("convert", "--output", "f", "-", HOSTILE),
        ("validate", HOSTILE),
        (HOSTILE,),
        ("ddl", "--catalog", HOSTILE),
    ):
        result = run(*args)
        assert result.code
        check(result.err)


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_request_log(form: str, caplog: pytest.LogCaptureFixture) -> None:
    """A request is one line, whatever its method, path, query and the client that a proxy names."""
    log = RequestLog(form)
    with caplog.at_level(logging.INFO, "signalbook.requests"):
        logging.getLogger("signalbook.requests").propagate = logging.getLogger("signalbook").propagate = True
        log.note(HOSTILE, HOSTILE, HOSTILE, 200, 1, 0.001, HOSTILE)
        log.flush()
    (record,) = caplog.records
    check(record.getMessage())
    assert 1 == len(record.getMessage().splitlines())


def test_the_server_log() -> None:
    """An entry is one line; the lines of a traceback are indented, so none of them looks like an entry."""
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        trace = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("signalbook.x", logging.ERROR, "f", 1, "failed: %s", (HOSTILE,), trace)
    first, *rest = server._LineFormatter("%(levelname)s %(message)s").format(record).split("\n")
    assert first.startswith("ERROR failed: ")
    assert [] == [line for line in rest if not line.startswith("  ")]
    check("\n".join((first, *rest)))


@pytest.mark.parametrize("width", [20, 80, 2000])
def test_the_report_of_a_lake(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages, problems and notes are text in the report, too, wherever its lines are broken."""
    sample = {"message": HOSTILE, "near": HOSTILE}
    problem = {"outcome": "x", "code": HOSTILE, "path": HOSTILE, "definition": HOSTILE, "count": 1, "samples": [sample]}
    report = LakeReport("lake", 1, 1, 0, {HOSTILE: 1}, {HOSTILE: 1}, [problem], [], [HOSTILE])
    Console(highlight=False, width=width, force_terminal=False).print(render(report))
    check(capsys.readouterr().out)


def test_statements() -> None:
    """A text in SQL has the escapes that Spark reads back; a remark and a name cannot end their line."""
    import pyarrow as pa

    check(_remark(HOSTILE))
    check(_sql_text(HOSTILE))
    assert r"'a\\b\'c\nd'" == _sql_text("a\\b'c\nd")
    made = _create_table(f"s/{HOSTILE.replace('/', '')}", pa.schema([(HOSTILE, pa.string())]), HOSTILE, None)
    check(made)
    assert 4 == len(made.split("\n"))


def test_nothing_is_printed_past_the_one_place() -> None:
    """Commands print through `cli.output` alone; what they print otherwise has no text from outside in it."""
    folder = Path(signalbook.__file__).parent / "cli"
    found = {
        f"{path.name}: {ast.unparse(node.args[0])}"
        for path in folder.glob("*.py")
        if path.name != "output.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "print", "click.secho")
    }
    own = ("land.py: statement", "upkeep.py: ")
    assert [] == [one for one in found if not one.startswith(own)]


# What is printed or logged outside of commands and is our own: numbers, names of ours, or made safe before.
OURS = {
    "id_", "instance", "ascii(path)", "words", "line", "'\\n'.join(self._lines(entries))", "statement + '\\n'",
    "held[0]", "soft", "most", "wanted", "PATIENCE", "self._back - self._away",
}  # fmt: skip
WRITERS = {"print", "sys.stderr.write", "sys.stdout.write", "warnings.warn", "self._logger.info"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def unsafe(argument: ast.expr) -> list[str]:
    """The parts of a printed value that are neither constant nor made one line."""
    if isinstance(argument, ast.Constant) or ast.unparse(argument) in OURS:
        return []
    if isinstance(argument, ast.JoinedStr):
        return [one for part in argument.values for one in unsafe(part)]
    if isinstance(argument, ast.FormattedValue):
        return unsafe(argument.value)
    if isinstance(argument, ast.Call) and ast.unparse(argument.func) == "one_line":
        return []
    return [ast.unparse(argument)]


def test_what_is_logged_is_one_line() -> None:
    """Everything that a module logs or prints by itself is made one line where it comes from outside."""
    root = Path(signalbook.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        if path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name in WRITERS or (name.partition(".")[0] in ("_log", "logger") and name.rpartition(".")[2] in LEVELS):
                found += [f"{path.name}: {one}" for argument in node.args for one in unsafe(argument)]
    assert [] == found


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("a.db", "a.db"),
        ("postgresql://u:secret@h/d", "postgresql://…@h/d"),
        ("postgresql://h/d?user=u&password=secret", "postgresql://h/d?…"),
        ("postgresql://u:p@ss@h/d?x=y@z", "postgresql://…@h/d?…"),
    ],
)
def test_what_is_said_of_a_store(store: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The line that says "serving" has no password in it, and is one line."""
    assert expected == server._shown(store)
    server._say(f"signalbook serving {HOSTILE}")
    check(capsys.readouterr().out)
