"""Every row of tests/cases/messages: a catalog, a message, and the answer that a rule gives."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from signalbook.messages import Answer, Catalog
from tests.cases import Case, read_cases

FILES = (
    "batches",
    "keys",
    "malformed",
    "merging",
    "native",
    "payloads",
    "placeholders",
    "properties",
    "seeds",
    "several",
)
ROWS = [pytest.param(case, id=f"{name}: {case.name}") for name in FILES for case in read_cases(f"messages/{name}")]
ANY = "(any)"


def catalog_of(given: Mapping[str, Any]) -> Catalog:
    """The catalog of a case: `messages` are those of the group g, `schemas` those of the group s."""
    groups = {"g": {"messages": given["messages"]}, **given.get("groups", {})}
    schemas = {"s": {"schemas": given.get("schemas", {})}}
    document = {"messagegroups": groups, "schemagroups": schemas, "endpoints": given.get("endpoints", {})}
    return Catalog.from_documents(document, roots=given.get("roots", ()))


def message_of(given: Mapping[str, Any]) -> Any:
    """The message of a case as the line of JSON that a tool reads; one that is no JSON stands as a text."""
    message = given["message"]
    return message.removeprefix("text: ") if isinstance(message, str) else json.dumps(message).encode()


def full(name: str) -> str:
    """The xid of a definition that a case names."""
    return name if name.startswith("/") else f"/messagegroups/g/messages/{name}"


def expect_answer(expected: Mapping[str, Any], answer: Answer) -> None:
    """Compare what a case says with an answer's JSON form; what it leaves out may be anything."""
    found = answer.to_json()
    said: dict[str, Any] = {"outcome": expected["outcome"]}
    seen: dict[str, Any] = {"outcome": found["outcome"]}
    if expected["outcome"] in ("matched", "nonconformant"):
        named = expected.get("definition")
        said["definition"], seen["definition"] = None if named is None else full(named), found["definition"]
    if "context" in expected:
        said["context"], seen["context"] = expected["context"], found["context"]
    if "problems" in expected:
        said["problems"], seen["problems"] = sorted(expected["problems"]), sorted(_places(found["problems"]))
    if "candidates" in expected:
        said["candidates"] = {full(name): problems for name, problems in expected["candidates"].items()}
        seen["candidates"] = {one["definition"]: _places(one["problems"]) for one in found["candidates"]}
    for name in ("unchecked", "data", "schemaid"):
        if name in expected:
            said[name], seen[name] = expected[name], found.get(name, "absent")
    if expected["outcome"] == "matched":
        said["unchecked"], seen["unchecked"] = expected.get("unchecked", []), found.get("unchecked", [])
    if "cloudevent" in expected:
        event = found.get("cloudevent", "absent")
        wanted = expected["cloudevent"]
        if isinstance(wanted, dict):
            wanted = {name: event.get(name) if value == ANY else value for name, value in wanted.items()}
        said["cloudevent"], seen["cloudevent"] = wanted, event
    assert said == seen, found


def _places(problems: list[dict[str, str]]) -> list[list[str]]:
    return [[problem["path"], problem["code"]] for problem in problems]


@pytest.mark.parametrize("case", ROWS)
def test_answer(case: Case) -> None:
    """A message gets the answer that the rule of its case gives."""
    given = case.given
    answers = catalog_of(given).match_all(message_of(given), given.get("within", ()))
    expected = case.expect if isinstance(case.expect, list) else [case.expect]
    assert len(expected) == len(answers)
    for one, answer in zip(expected, answers, strict=True):
        expect_answer(one, answer)


def test_every_case_names_its_rule() -> None:
    """At least two hundred cases, each with the rule that it shows."""
    cases = [case for name in FILES for case in read_cases(f"messages/{name}")]
    assert len(cases) >= 200
    assert [case.name for case in cases if not case.spec] == []
