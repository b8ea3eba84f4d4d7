"""Requests against the built-in model: its forms, its spellings and every named rule."""

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

from signalbook import Registry
from signalbook.model.rules import RULES

FOLDER = Path(__file__).parent.parent / "cases" / "builtin"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted(FOLDER.glob("*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
]
# Attributes whose whole value is compared: nothing may be filled in.
WHOLE = {"envelopemetadata", "envelopeoptions", "protocoloptions", "labels", "deprecated", "dataschema"}


class Answer(Protocol):
    """What a server said."""

    status: int
    json: Any


class Api(Protocol):
    """A server with the built-in model, in this process."""

    def __call__(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer: ...


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where `actual` lacks something of `expected`; None means absent."""
    if isinstance(expected, dict) and isinstance(actual, dict) and path.rpartition("/")[2] not in WHOLE:
        return [line for key in expected for line in differences(expected[key], actual.get(key), f"{path}/{key}")]
    return [] if expected == actual else [f"{path}: expected {expected!r}, got {actual!r}"]


@pytest.mark.parametrize("case", CASES)
def test_a_request_case(case: dict[str, Any], api: Api) -> None:
    """Each step is answered as the case says."""
    for step in case["steps"]:
        expect = step["expect"]
        answer = api(step["method"], step["path"], step.get("body"), step.get("headers"))
        told = answer.json if answer.status >= 400 else None
        assert expect["status"] == answer.status, told
        if told is not None and "error" in expect:
            assert expect["error"] == told["type"].partition("#")[2]
            assert "name" not in expect or expect["name"] == told["args"]["name"]
            assert "rule" not in expect or told["args"]["error_detail"].endswith(f"[{expect['rule']}]")
        assert [] == differences(expect.get("body", {}), answer.json if "body" in expect else {})


def test_enough_cases() -> None:
    """There are at least a hundred cases, and every named rule is in one that asks a server."""
    assert len(CASES) >= 100
    asked = {case.values[0].get("rule") for case in CASES}  # type: ignore[union-attr]
    assert {rule.name for rule in RULES} <= asked


def test_a_message_whose_base_names_the_schema() -> None:
    """A message that leaves its schema to its base is judged by the rules, and taken."""
    with Registry.open() as registry:
        base = {"dataschemaformat": "JsonSchema/draft-07", "dataschemauri": "/schemagroups/g/schemas/s"}
        registry.put("/messagegroups/g/messages/base", base)
        derived = {"basemessage": "/messagegroups/g/messages/base"}
        assert "m" == registry.put("/messagegroups/g/messages/m", derived)["messageid"]
