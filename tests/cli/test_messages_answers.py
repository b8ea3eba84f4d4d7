"""match and validate: what a person reads, what ties an answer to its line, and what is said beside the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.errors import Problem
from signalbook.messages.answer import Answer, Candidate, Outcome
from tests.cli.conftest import Run
from tests.conftest import StartServer

XID = "/messagegroups/g/messages/moved"
MOVED = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {"type": {"value": "moved"}, "source": {"value": "/vehicles/{vin}"}},
}
EVENT = {"specversion": "1.0", "id": "1", "type": "moved", "source": "/vehicles/A1"}


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """A file with one definition."""
    return written(tmp_path, moved=MOVED)


def written(folder: Path, **messages: Any) -> str:
    """A file with these definitions."""
    path = folder / "c.xreg.json"
    path.write_text(json.dumps({"messagegroups": {"g": {"messages": messages}, "h": {}}}), encoding="utf-8")
    return str(path)


def line(**attributes: Any) -> str:
    """The event with other attributes, as a line."""
    return json.dumps({**EVENT, **attributes}) + "\n"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/vehicles/A1", "vin=A1"),
        ("/vehicles/A%0Aline%202:%20matched", 'vin="A\\nline 2: matched"'),
        ("/vehicles/%1B%5B31m", "vin=\\u001b[31m"),
        ("/vehicles/A,%20b=c", 'vin="A, b=c"'),
        ("/vehicles/%E2%80%AEtxt", "vin=\\u202etxt"),
        ("/vehicles/%C2%85", 'vin="\\u0085"'),
    ],
    ids=["plain", "a line's end", "a terminal's colours", "another name", "another direction", "next line"],
)
def test_a_captured_value_forges_nothing(run: Run, catalog: str, source: str, shown: str) -> None:
    """An answer is one line, whatever the message holds."""
    assert f"line 1: matched {XID} ({shown})\n" == run("match", "--catalog", catalog, stdin=line(source=source)).out


def test_what_is_wrong_stays_on_its_line(run: Run, catalog: str) -> None:
    """A value that a problem repeats does not end the line either."""
    result = run("match", "--catalog", catalog, stdin=line(source="/ships/1%0A", subject="a\u2028b"))
    assert 2 == len(result.out.splitlines())
    result = run("match", "--catalog", catalog, stdin=json.dumps({"protocol": "NATS", "x\ny": 1}))
    assert 2 == len(result.out.splitlines())


def test_several_that_hold_are_not_near(run: Run, tmp_path: Path) -> None:
    """The definitions of an ambiguous answer hold; those of an unexpected one come near."""
    catalog = written(tmp_path, moved=MOVED, other=MOVED)
    result = run("match", "--catalog", catalog, stdin=line() + line(type="movd"))
    assert f"line 1: ambiguous\n  holds: {XID}\n  holds: /messagegroups/g/messages/other\n" in result.out
    assert f"line 2: unexpected\n  near: {XID} (" in result.out


def test_problems_that_are_not_shown_are_counted(run: Run, catalog: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a candidate three problems are shown, and how many there are besides."""
    wrong = tuple(Problem(f"/{number}", "value", "is wrong") for number in range(5))
    answer = Answer(Outcome.UNEXPECTED, candidates=(Candidate(XID, wrong), Candidate(XID, wrong[:3])))
    monkeypatch.setattr("signalbook.messages.catalog.Catalog.match_all", lambda *_: [answer])
    shown = "/0: is wrong; /1: is wrong; /2: is wrong"
    expected = f"line 1: unexpected\n  near: {XID} ({shown}; ... 2 more)\n  near: {XID} ({shown})\n"
    assert expected == run("match", "--catalog", catalog, stdin=line()).out


@pytest.mark.parametrize("command", ["match", "validate"])
def test_answers_name_their_lines(run: Run, catalog: str, command: str) -> None:
    """With --number an answer begins with the number of its line; without it the form is the documented one."""
    given = "\n" + line() + "[]\n" + json.dumps([EVENT, EVENT]) + "\n\nnonsense\n"
    result = run(command, "--catalog", catalog, "--json", "--number", stdin=given)
    answers = [json.loads(text) for text in result.out.splitlines()]
    assert [2, 4, 4, 6] == [answer["line"] for answer in answers]
    assert all("line" == next(iter(answer)) for answer in answers)
    plain = run(command, "--catalog", catalog, "--json", stdin=given).out.splitlines()
    assert [json.loads(text) for text in plain] == [
        {name: value for name, value in answer.items() if name != "line"} for answer in answers
    ]
    assert 2 == run(command, "--catalog", catalog, "--number", stdin=given).code


def test_a_message_over_several_lines(run: Run, catalog: str) -> None:
    """Who gives a message over several lines is told, once, to write it on one."""
    result = run("match", "--catalog", catalog, "--json", stdin=json.dumps([EVENT, EVENT], indent=2))
    assert result.err.startswith("signalbook: line 1 is only the beginning of a document; write each on one line")
    assert 1 == result.err.count("beginning")
    assert "beginning" not in run("match", "--catalog", catalog, stdin="nonsense\n{}\n[oops\n" + line()).err


def test_a_byte_order_mark(run: Run, catalog: str) -> None:
    """A byte order mark before the first line is no part of it, and alone it is no message."""
    assert 0 == run("match", "--catalog", catalog, stdin="\ufeff" + line()).code
    assert 0 == run("match", "--catalog", catalog, stdin="\ufeff\n" + line()).code
    assert "0 message(s): none\n" == run("match", "--catalog", catalog, stdin="\ufeff").err
    assert 1 == run("match", "--catalog", catalog, stdin=line() + "\ufeff" + line()).code


def test_validate_within(run: Run, catalog: str) -> None:
    """Also validate looks where --within says; one definition is all there is to look among."""
    assert 0 == run("validate", "--catalog", catalog, "--within", "/messagegroups/g", stdin=line()).code
    result = run("validate", "--catalog", catalog, "--within", "/messagegroups/h", "--json", stdin=line())
    assert "unexpected" == result.json["outcome"]
    both = ("--within", "/messagegroups/g", "--definition", XID)
    assert 2 == run("validate", "--catalog", catalog, *both, stdin=line()).code
    assert 3 == run("validate", "--catalog", catalog, "--definition", "/z").code


def test_a_base_that_is_missing_is_said(run: Run, tmp_path: Path) -> None:
    """Answers by a definition whose base is not there come with a word about it and what to do."""
    derived = {**MOVED, "basemessage": "http://127.0.0.1:18555/messagegroups/h/messages/b"}
    result = run("match", "--catalog", written(tmp_path, moved=derived), "--json", stdin=line() + line())
    words = (
        f"signalbook: {XID} was checked without its base: {derived['basemessage']} lies outside "
        "the catalog and is not followed; --resolve 127.0.0.1:18555 fetches it\n2 message(s): 2 matched\n"
    )
    assert (0, words) == (result.code, result.err)
    derived = {**MOVED, "basemessage": "/messagegroups/h/messages/b"}
    result = run("match", "--catalog", written(tmp_path, moved=derived), stdin=line())
    assert "/messagegroups/h/messages/b is not in the catalog\n" in result.err
    several = {f"m{number}": {**derived, "envelopemetadata": MOVED["envelopemetadata"]} for number in range(5)}
    result = run("match", "--catalog", written(tmp_path, **several), stdin=line())
    assert 3 == result.err.count("was checked without its base")
    assert "signalbook: so were 2 more\n" in result.err


def test_a_base_of_another_registry(run: Run, tmp_path: Path, start_server: StartServer) -> None:
    """A base is fetched for a catalog in a file and in a store, without what the other registry keeps about it."""
    base = str(tmp_path / "base.db")
    assert 0 == run("load", written(tmp_path, b=MOVED), "--store", base, "--quiet").code
    server = start_server(store=base)
    derived = {"basemessage": f"{server}/messagegroups/g/messages/b", "description": "derived"}
    catalog, store = written(tmp_path, moved=derived), str(tmp_path / "one.db")
    assert 0 == run("load", catalog, "--store", store, "--quiet").code
    for place in (catalog, store):
        resolved = ("--catalog", place, "--resolve", server.removeprefix("http://"))
        assert {**derived, **MOVED} == run("show", *resolved, XID, "--json").json["definition"]
        result = run("match", *resolved, stdin=line())
        assert (0, "1 message(s): 1 matched\n") == (result.code, result.err)


def test_hosts_are_hosts(run: Run, catalog: str, tmp_path: Path) -> None:
    """What --resolve takes for no host is refused, with a store as with a file, and with what was meant."""
    store = str(tmp_path / "one.db")
    assert 0 == run("load", catalog, "--store", store, "--quiet").code
    for place in (catalog, store):
        result = run("match", "--catalog", place, "--resolve", "http://127.0.0.1:18555/x", stdin=line())
        assert (2, "") == (result.code, result.out)
        assert "write it as in 127.0.0.1:18555" in result.err
        assert 0 == run("match", "--catalog", place, "--resolve", "base.example", stdin=line()).code
