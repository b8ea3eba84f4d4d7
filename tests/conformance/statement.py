"""The normative statements of the five source texts, with cases that are answered otherwise where one is broken.

`tests/cases/conformance/seeds/<seed>.json` is {"title", "page", "sections": {title: [row…]}}. A row is
  {"id", "line": of the text, "text": in our words, "answer"?: "yes" | "decided otherwise" | "no", "remark"?,
   "cases"?: […], "tests"?: ["path::function"…]}
A case has one of these members, which says what is tried:
  "write"    attributes of a message, put into a group that has those of "group"; "refused" is the attribute (or rule,
             or error) that the refusal names; else it is stored, and "reads", or the same, comes back
  "steps"    [method, path, body or null, status, expect?] in order, sent to a new registry that has the built-in model
             and the "settings"; `expect` is that of `case.py`, a header that begins with ">" is sent; a refusal (400)
             has its "error", since another mistake is refused as well; the method EVENTS reads those of the changes
             whose type begins with the path
  "match"    a message, or a text; "by" are the definitions of one group, or "document" a whole catalog of any dialect
  "build"    values for the definition in "by"; `expect` names parts of what is built, or its "problems"
  "codec"    decode | encode | reencode | batch | http_binary: "input" and "expect" as in the recorded cases
  "convert"  a document, "from" a dialect if it is not to be recognised, "to" another; "shows" what is in the result,
             "notes" [code, path] that are in the report, "refused" the attribute
  "lint"     attributes of a message (with "group"), or a "document"; "finds" are rules or codes among the findings, and
             "finds": [] means that there are none of the severity "severity" (an error, where it is not said);
             "refused" is a word of an error among them
  "load"     a document of any dialect, written as `signalbook load` does; "shows" what paths then show
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signalbook.cloudevents import CloudEventError
from signalbook.dialects.convert import convert
from signalbook.errors import RegistryError
from signalbook.messages import Catalog
from signalbook.messages.fill import Origin
from signalbook.registry.registry import Registry
from signalbook.sources.lint import lint
from signalbook.spec.dialects import DIALECTS
from tests.cloudevents.test_conformance import agrees, answer
from tests.conformance import case as cases
from tests.conformance.test_rules import found
from tests.messages.test_match import expect_answer
from tests.registry.conftest import BASE, Api, MakeApi, Reply
from tests.sources.test_documents_dialects import load

FOLDER = cases.FOLDER / "seeds"
ANSWERS = ("yes", "decided otherwise", "no")
ROW = {"id", "line", "text", "answer", "remark", "cases", "tests"}
ORIGIN = Origin(lambda: datetime(2024, 5, 17, 12, 30, tzinfo=UTC), lambda: "new-id")
XID = "/messagegroups/g/messages/m"
Json = Mapping[str, Any]


def read_seeds() -> dict[str, Any]:
    """Every text that there are statements of, by the name of its file."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))}


def rows_of(seed: Json) -> Iterator[dict[str, Any]]:
    """The statements of a text, with what a row leaves out."""
    for rows in seed["sections"].values():
        for row in rows:
            assert row.keys() <= ROW, row.keys() - ROW
            yield {"answer": "yes", "remark": "", "cases": [], "tests": [], **row}


@dataclass(frozen=True, slots=True)
class Around:
    """What cases are tried with: new registries, one that all writes share, a folder."""

    make_api: MakeApi
    shared: Api
    folder: Path


def run(case: dict[str, Any], around: Around) -> None:
    """Try one case."""
    (kind,) = [name for name in KINDS if name in case]
    KINDS[kind](case, around)


def _expect(expected: Any, actual: Any, *, whole: bool = False) -> None:
    wrong = list(cases.differences(expected, actual, {}, whole=whole))
    assert not wrong, f"{'; '.join(wrong)}\n{actual}"


def _write(case: dict[str, Any], around: Around) -> None:
    assert case.keys() <= {"write", "group", "refused", "reads"}
    api = around.shared
    api("DELETE", "/messagegroups/g")
    reply = api("PUT", "/messagegroups/g", case.get("group", {}))
    assert reply.status == 201, reply.body
    reply = api("PUT", XID, case["write"])
    if "refused" in case:
        assert reply.status == 400, reply.body
        _expect_refused(case["refused"], reply.error, reply.json.get("args", {}))
    else:
        assert reply.status == 201, reply.body
        shown = api("GET", XID).json
        for name, value in case.get("reads", case["write"]).items():
            if value is None:
                assert name not in shown, shown
            else:
                _expect(value, shown[name], whole=True)


def _expect_refused(expected: str, error: str, args: Json) -> None:
    detail, name = str(args.get("error_detail", "")), str(args.get("name", args.get("list", "")))
    assert expected == error or name.startswith(expected) or detail.endswith(f"[{expected}]"), (error, args)


def _steps(case: dict[str, Any], around: Around) -> None:
    assert case.keys() <= {"steps", "settings"}
    api = around.make_api(**case.get("settings", {}))
    known: dict[str, Any] = {}
    for number, (method, path, body, status, *rest) in enumerate(case["steps"], 1):
        expect = {"status": status, **(rest[0] if rest else {})}
        assert expect.keys() <= cases.EXPECT, expect
        assert status != 400 or "error" in expect, f"step {number} does not say by which error it is refused"
        target = cases.PLACEHOLDER.sub(lambda shown: str(known[shown[2]]).removeprefix(BASE), path)
        headers = expect.pop("headers", {})
        sent = {name[1:]: value for name, value in headers.items() if name.startswith(">")}
        expect["headers"] = {name: value for name, value in headers.items() if not name.startswith(">")}
        reply = _events(api, path) if method == "EVENTS" else api(method, target, body, sent)
        wrong = list(found(expect, reply, known))
        assert not wrong, f"step {number}, {method} {path}: {'; '.join(wrong)}\n{reply.body[:2000]!r}"


def _events(api: Api, kind: str) -> Reply:
    reply = api("GET", "/changes?limit=1000")
    kept = [event for event in reply.json if event["type"].startswith(kind)]
    return Reply(reply.status, reply.headers, json.dumps(kept).encode())


def _catalog(case: Json) -> Catalog:
    if "document" in case:
        return Catalog.from_documents(convert(copy.deepcopy(case["document"]), DIALECTS["1.0-rc2"]).content)
    return Catalog.from_documents({"messagegroups": {"g": {**case.get("group", {}), "messages": case["by"]}}})


def _match(case: dict[str, Any], _: Around) -> None:
    assert case.keys() <= {"match", "by", "group", "document", "within", "expect"}
    message = case["match"]
    line = message if isinstance(message, str) else json.dumps(message).encode()
    answers = _catalog(case).match_all(line, case.get("within", ()))
    expected = case["expect"] if isinstance(case["expect"], list) else [case["expect"]]
    assert len(expected) == len(answers)
    for one, given in zip(expected, answers, strict=True):
        expect_answer(one, given)


def _build(case: dict[str, Any], _: Around) -> None:
    assert case.keys() <= {"build", "by", "document", "of", "expect"}
    given = case if "document" in case else {"by": {"m": case["by"]}}
    built = _catalog(given).message(case.get("of", XID)).build(**case["build"], origin=ORIGIN)
    written = json.loads(built.to_bytes())
    written["problems"] = [[one["path"], one["code"]] for one in written.get("problems", ())]
    expected = {"problems": [], **case["expect"]}
    absent = expected.pop("absent", [])
    assert sorted(expected.pop("problems")) == sorted(written.pop("problems")), written
    _expect(expected, written)
    assert [] == [place for place in absent if cases.has(written, place)]


def _codec(case: dict[str, Any], _: Around) -> None:
    assert case.keys() <= {"codec", "input", "expect", "refused"}
    given = {"direction": case["codec"], "input": case["input"]}
    if "refused" in case:
        with pytest.raises(CloudEventError) as refused:
            answer(given)
        assert case["refused"] in (refused.value.path, refused.value.rule)
    else:
        agrees(case["expect"], answer(given))


def _convert(case: dict[str, Any], _: Around) -> None:
    assert case.keys() <= {"convert", "from", "to", "shows", "absent", "notes", "refused"}
    source = DIALECTS[case["from"]] if "from" in case else None
    if "refused" in case:
        with pytest.raises(RegistryError) as refused:
            convert(copy.deepcopy(case["convert"]), DIALECTS[case["to"]], source)
        _expect_refused(case["refused"], refused.value.name, refused.value.args_)
        return
    result = convert(copy.deepcopy(case["convert"]), DIALECTS[case["to"]], source)
    _expect(case.get("shows", {}), result.content)
    assert [] == [place for place in case.get("absent", ()) if cases.has(result.content, place)]
    notes = [[note.code, note.path] for note in result.notes]
    assert [] == [note for note in case.get("notes", ()) if note not in notes], notes


def _lint(case: dict[str, Any], around: Around) -> None:
    assert case.keys() <= {"lint", "group", "document", "finds", "severity", "refused"}
    group = {**case.get("group", {}), "messages": {"m": case["lint"]}}
    document = case["lint"] if case.get("document") else {"specversion": "1.0-rc2", "messagegroups": {"g": group}}
    (around.folder / "catalog.json").write_text(json.dumps(document), encoding="utf-8")
    findings = list(lint([str(around.folder)], group="g"))
    if "refused" in case:
        errors = [one for one in findings if one.severity == "error"]
        words = [f"{one.code} {one.message} {one.args}".replace("/", ".") for one in errors]
        assert [text for text in words if case["refused"] in text], findings
        return
    seen = {name for one in findings for name in (one.rule, one.code)}
    if case["finds"]:
        assert set(case["finds"]) <= seen, findings
        severities = {one.severity for one in findings if {one.rule, one.code} & set(case["finds"])}
        assert "severity" not in case or severities == {case["severity"]}
    else:
        assert [] == [one for one in findings if one.severity == case.get("severity", "error")]


def _load(case: dict[str, Any], _: Around) -> None:
    assert case.keys() <= {"load", "shows", "refused"}
    with Registry.open("memory:") as registry:
        if "refused" in case:
            with pytest.raises(RegistryError) as refused:
                load(registry, copy.deepcopy(case["load"]), "g")
            _expect_refused(case["refused"], refused.value.name, refused.value.args_)
            return
        load(registry, copy.deepcopy(case["load"]), "g")
        for path, expected in case["shows"].items():
            _expect(expected, registry.get(path))


KINDS: Mapping[str, Callable[[dict[str, Any], Around], None]] = {
    "write": _write,
    "steps": _steps,
    "match": _match,
    "build": _build,
    "codec": _codec,
    "convert": _convert,
    "lint": _lint,
    "load": _load,
}
