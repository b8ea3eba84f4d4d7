"""The recorded requests and responses of another xRegistry server, replayed in this process.

They lie beside the project, in `../shared/conformance`; without them these tests are skipped. Each group of requests
begins with a new registry. The steps that are answered otherwise are in tests/cases/conformance/recorded.json, with
the reason: one that is not listed fails the test, and so does a listed one that has come to be answered as recorded.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

from scripts.write_conformance import FORMAT_STEPS, STEPS
from tests.conformance.case import read
from tests.registry.conftest import BASE, Api, MakeApi

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
CASES = FOLDER / "xregistry-http.jsonl"
KNOWN = {(row["group"], step): row["reason"] for row in read("recorded") for step in row["steps"]}
# The steps of this file are about checking schemas by their format.
FORMATS = "format_test.go"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the recorded cases are not beside the project")


def load_replayer() -> ModuleType:
    """The program that replays the cases against a server, for how it compares."""
    spec = importlib.util.spec_from_file_location("replay", FOLDER / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_groups() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each group with its steps."""
    groups: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["type"] == "group":
            groups.append((row, []))
        elif row["type"] == "step":
            groups[-1][1].append(row)
    return groups


REPLAYER = load_replayer() if CASES.exists() else None
GROUPS = read_groups() if CASES.exists() else []


def differences(api: Api, step: dict[str, Any]) -> list[str]:
    """What is not as recorded in the response to one step."""
    assert REPLAYER is not None
    request = step["request"]
    local = [text.replace(REPLAYER.RECORDED_AT, BASE) for text in (request["body"] or "", *request["headers"])]
    headers = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in local[1:])}
    path, mark, query = ("/" + request["url"].lstrip("/")).partition("?")
    reply = api(request["method"], unquote(path) + mark + query, local[0].encode() or None, headers)
    received = {"content-length": str(len(reply.body)), **reply.headers}
    return list(REPLAYER.check(step, BASE, reply.status, received, reply.body.decode("utf-8", "replace")))


@pytest.mark.parametrize(("group", "steps"), [pytest.param(*found, id=found[0]["group"]) for found in GROUPS])
def test_group(group: dict[str, Any], steps: list[dict[str, Any]], make_api: MakeApi) -> None:
    """Every step is answered as recorded, except those that are listed with a reason."""
    api = make_api(model="empty", registryid=group["registryid"], specversion="1.0-rc4")
    found = {step["seq"]: differences(api, step) for step in steps}
    known = {step for name, step in KNOWN if name == group["group"]}
    assert {} == {seq: said for seq, said in found.items() if said and seq not in known}
    assert [] == [seq for seq in known if not found[seq]], "answered as recorded by now; take it off the list"


def test_enough(capsys: pytest.CaptureFixture[str]) -> None:
    """At least 1,310 of the 1,345 steps that are not about the formats of schemas are answered as recorded."""
    files = {group["group"]: group["file"] for group, _ in GROUPS}
    steps = {(group["group"], step["seq"]) for group, found in GROUPS for step in found}
    general = {step for step in steps if files[step[0]] != FORMATS}
    passed = len(general - KNOWN.keys())
    with capsys.disabled():
        print(f"\n{passed} of {len(general)} recorded steps, and {len(steps - general - KNOWN.keys())} about formats")
    assert (STEPS, FORMAT_STEPS) == (len(general), len(steps - general))
    assert set() == KNOWN.keys() - steps
    assert passed >= 1310
