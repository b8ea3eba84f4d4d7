"""The recorded requests and responses of another xRegistry server, replayed in this process.

They lie beside the project, in `../shared/conformance`; without them these tests are skipped. Each group of requests
begins with a new registry. The steps that are answered otherwise are in tests/cases/conformance/recorded.json, with
the reason: one that is not listed fails the test, and so does a listed one that has come to be answered as recorded.

They were recorded in 1.0-rc4. In 1.0-rc2, the default of this server, the same requests and responses are in that
version's words: `in_words` puts them so by the table of the version itself.
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
from signalbook.spec.versions import RC2, RC4, SpecVersion
from tests.conformance.case import read
from tests.registry.conftest import BASE, Api, MakeApi

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
CASES = FOLDER / "xregistry-http.jsonl"
VERSIONS = (RC4, RC2)
# By version, sequence and step; a row that names no version is about both.
KNOWN = {
    (version.name, row["group"], step): row["reason"]
    for version in VERSIONS
    for row in read("recorded")
    if row.get("version", version.name) == version.name
    for step in row["steps"]
}
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


def in_words(text: str, version: SpecVersion) -> str:
    """A text of the recording, which is in 1.0-rc4, in another version's words."""
    if version is RC4:
        return text
    text = text.replace(RC4.name, version.name).replace(RC4.ancestor, version.ancestor)
    if not any(f'"{name}"' in text for name in version.members):
        return text
    try:
        return json.dumps(with_members(json.loads(text), version))
    except ValueError:
        return text


def with_members(value: Any, version: SpecVersion) -> Any:
    """JSON with the members of `deprecated` named as a version names them, in entities and in models."""
    if isinstance(value, list):
        return [with_members(one, version) for one in value]
    if not isinstance(value, dict):
        return value
    shown = {name: with_members(one, version) for name, one in value.items()}
    for name, names in version.members.items():
        held = shown.get(name)
        if not isinstance(held, dict):
            continue
        if held.get("name") == name:  # its definition in a model
            own = held["attributes"]
            held["attributes"] = {names.get(one, one): {**row, "name": names.get(one, one)} for one, row in own.items()}
        else:
            shown[name] = {names.get(one, one): member for one, member in held.items()}
    return shown


def differences(api: Api, step: dict[str, Any], version: SpecVersion) -> list[str]:
    """What is not as recorded in the response to one step."""
    assert REPLAYER is not None
    request, expect = step["request"], step["expect"]
    asked = (request["body"] or "", request["url"], *request["headers"])
    body, url, *lines = (in_words(text.replace(REPLAYER.RECORDED_AT, BASE), version) for text in asked)
    headers = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    path, mark, query = ("/" + url.lstrip("/")).partition("?")
    reply = api(request["method"], unquote(path) + mark + query, body.encode() or None, headers)
    received = {"content-length": str(len(reply.body)), **reply.headers}
    wanted = {
        in_words(name, version): in_words(value, version) for name, value in (expect.get("headers") or {}).items()
    }
    step = {**step, "expect": {**expect, "body": in_words(expect.get("body") or "", version), "headers": wanted}}
    return list(REPLAYER.check(step, BASE, reply.status, received, reply.body.decode("utf-8", "replace")))


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(("group", "steps"), [pytest.param(*found, id=found[0]["group"]) for found in GROUPS])
def test_group(group: dict[str, Any], steps: list[dict[str, Any]], version: SpecVersion, make_api: MakeApi) -> None:
    """Every step is answered as recorded, in either version, except those that are listed with a reason."""
    api = make_api(model="empty", registryid=group["registryid"], specversion=version.name)
    found = {step["seq"]: differences(api, step, version) for step in steps}
    known = {step for label, name, step in KNOWN if (label, name) == (version.name, group["group"])}
    assert {} == {seq: said for seq, said in found.items() if said and seq not in known}
    assert [] == [seq for seq in known if not found[seq]], "answered as recorded by now; take it off the list"


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_enough(version: SpecVersion, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 1,310 of the 1,345 steps that are not about the formats of schemas are answered as recorded."""
    known = {(group, step) for label, group, step in KNOWN if label == version.name}
    files = {group["group"]: group["file"] for group, _ in GROUPS}
    steps = {(group["group"], step["seq"]) for group, found in GROUPS for step in found}
    general = {step for step in steps if files[step[0]] != FORMATS}
    passed = len(general - known)
    with capsys.disabled():
        others = len(steps - general - known)
        print(f"\n{version}: {passed} of {len(general)} recorded steps, and {others} about formats")
    assert (STEPS, FORMAT_STEPS) == (len(general), len(steps - general))
    assert set() == known - steps
    assert passed >= 1310
