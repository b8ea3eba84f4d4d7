"""Every JSON example of the two message texts labelled 1.0-rc2, written to a server and read back."""

import json
from pathlib import Path
from typing import Any

import pytest

from signalbook import Catalog

FOLDER = Path(__file__).parent.parent / "cases" / "seeds"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted(FOLDER.glob("*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
]
# What the server writes: ids, addresses, times and counts.
SERVERS = {
    *("messagegroupid", "messageid", "versionid", "self", "xid", "epoch", "isdefault", "createdat", "modifiedat"),
    *("ancestor", "ancestorid", "metaurl", "versionsurl", "versionscount", "messagesurl", "messagescount"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["1.0-rc2", "1.0-rc4"])
def test_an_example_is_read_back(case: dict[str, Any], version: str, api: Any) -> None:
    """What is written under 1.0-rc2 comes back with equal meaning, in the spelling of the version that is asked for."""
    written = api(case["method"], case["path"], case["body"])
    assert written.status in (200, 201), written.json
    for read in case["expect"]:
        answer = api("GET", f"{read['path']}?specversion={version}")
        assert answer.status == 200
        assert read[version] == {name: value for name, value in answer.json.items() if name not in SERVERS}
        if "/messages/" in read["path"]:
            assert {"1.0-rc2": "ancestor", "1.0-rc4": "ancestorid"}[version] in answer.json


@pytest.mark.parametrize("case", CASES)
def test_an_example_is_built_and_found_again(case: dict[str, Any], api: Any) -> None:
    """Of what an example makes of the registry, a message is built with values given, and it matches its definition."""
    # The schema that examples name, and do not show.
    schema = {"format": "JsonSchema/draft-07", "schema": {"type": "object"}}
    assert api("PUT", "/schemagroups/g/schemas/s$details", schema).status == 201
    assert api(case["method"], case["path"], case["body"]).status in (200, 201)
    catalog = Catalog.from_documents(api("GET", "/export").json)
    for xid in catalog.definitions:
        made = catalog.message(xid).sample()
        assert made.ok, (xid, made.problems)
        answer = catalog.validate(made.message or made.cloudevent, xid)
        assert "matched" == answer.outcome.value, (xid, answer.problems)


def test_every_repair_is_named() -> None:
    """A case says which section it is from, and each repair is a sentence."""
    for parameter in CASES:
        case: dict[str, Any] = parameter.values[0]  # type: ignore[assignment]
        assert case["spec"].startswith("seed 00")
        assert all(len(repair.split()) > 3 for repair in case["repairs"])
