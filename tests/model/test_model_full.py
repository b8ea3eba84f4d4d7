"""The full model: the specification's own example, and what a server was recorded to answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.model.model import read_model
from tests.cases import Case, cases

RECORDED = Path(__file__).parents[3] / "shared" / "conformance" / "xregistry-http.jsonl"
RICH: dict[str, Any] = {
    "description": "d",
    "documentation": "https://example.com",
    "labels": {"a": "b"},
    "attributes": {
        "*": {"name": "*", "type": "any"},
        "s": {"type": "string", "enum": ["a"], "strict": False, "description": "t", "required": True, "default": "x"},
        "f": {"type": "boolean", "required": True, "default": False},
        "o": {"type": "object", "namecharset": "extended", "attributes": {"a-b": {"type": "xid", "target": "/dirs"}}},
        "m": {"type": "map", "item": {"type": "array", "item": {"type": "object"}}},
        "i": {"type": "string", "ifvalues": {"x": {"siblingattributes": {"j": {"type": "uri"}}}, "y": {}}},
    },
    "groups": {
        "dirs": {
            "singular": "dir",
            "description": "g",
            "icon": "https://example.com/i",
            "modelversion": "1",
            "modelcompatiblewith": "https://example.com/m",
            "constraints": {
                "files.name": {"default": "n", "enum": ["n", "z"], "equals": "name"},
                "files.format": {},
                "files.o.x": {"default": False},
            },
            "resources": {
                "files": {
                    "singular": "file",
                    "typemap": {"b/*": "json", "a/*": "string"},
                    "attributes": {"o": {"type": "object", "attributes": {"x": {"type": "boolean"}}}},
                },
                "notes": {"singular": "note", "hasdocument": False},
            },
        }
    },
}


@cases("document/models")
def test_full(case: Case) -> None:
    """A type is shown with everything the specification defines; what is shown reads back as the same model."""
    full = read_model(case.given).full()
    if case.expect:
        assert case.expect == full
    assert full == read_model(full).full()


def test_the_empty_model() -> None:
    """A registry without types has the Registry's own attributes."""
    full = read_model({}).full()
    assert ["attributes"] == list(full)
    assert "1.0-rc4" == full["attributes"]["specversion"]["default"]
    assert {"name": "name", "type": "string"} == full["attributes"]["name"]
    assert full == read_model(full).full()


def test_spelling_of_another_version() -> None:
    """The full model is shown in the spelling of the version that is asked for, and reads back as the same model."""
    model = read_model(RICH)
    full = model.full("1.0-rc2", {"ancestorid": "ancestor"})
    attributes = full["groups"]["dirs"]["resources"]["files"]["attributes"]
    assert "1.0-rc2" == full["attributes"]["specversion"]["default"]
    assert {"name": "ancestor", "type": "string", "required": True} == attributes["ancestor"]
    assert "ancestorid" not in attributes
    assert model.full() == read_model(full).full("1.0-rc4")


def test_everything_that_was_said_is_shown() -> None:
    """Every aspect of the source is in the full model."""
    full = read_model(RICH).full()

    def contained(said: Any, shown: Any, path: str) -> Iterator[str]:
        if isinstance(said, dict):
            for name, value in said.items():
                if value not in ({}, []):
                    yield from contained(value, shown.get(name), f"{path}/{name}")
        elif said != shown:
            yield path

    assert [] == list(contained(RICH, full, ""))
    assert ["a/*", "b/*"] == list(full["groups"]["dirs"]["resources"]["files"]["typemap"])


def recorded_steps() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each recorded request about a model: its name, the model source in force before it, and the step."""
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        step = json.loads(line)
        if step["type"] == "group":
            source: dict[str, Any] = {}
        elif step["type"] == "step":
            sent = sent_source(step["request"])
            if sent is not None or step["request"]["url"] in ("/model", "/?inline=model"):
                yield f"{step['group']} {step['seq']}", source, step
            if sent is not None and step["expect"]["status"] == 200:
                source = sent


def sent_source(request: dict[str, Any]) -> dict[str, Any] | None:
    """The model source that a request sends, if it does."""
    try:
        body = json.loads(request["body"] or "null")
    except ValueError:
        return None
    if request["method"] == "GET" or not isinstance(body, dict):
        return None
    found = body if request["url"].startswith("/modelsource") else body.get("modelsource")
    return found if isinstance(found, dict) else None


# Refused for what the registry holds, not for what the model says.
NEEDS_A_REGISTRY = {"TestModelDeleteBlocksOnLiveData 3", "TestModelDeleteBlocksOnLiveData 8"}


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded cases are not beside the repository")
def test_recorded_models() -> None:
    """Every recorded model is accepted, refused with the same error, and shown in full as recorded."""
    shown = refused = accepted = 0
    for name, source, step in recorded_steps():
        expect = step["expect"]
        sent = sent_source(step["request"])
        if sent is None:
            if step["request"]["method"] == "GET" and expect["body_kind"] == "exact":
                body = json.loads(expect["body"])
                assert without_proxyurl(body.get("model", body)) == read_model(source).full(), name
                shown += 1
        elif expect["status"] == 200:
            read_model(sent)
            accepted += 1
        elif expect["body_kind"] == "exact" and name not in NEEDS_A_REGISTRY:
            error = json.loads(expect["body"])
            if error["subject"] == "/model":
                with pytest.raises(RegistryError) as caught:
                    read_model(sent)
                assert error["type"].endswith(f"#{caught.value.name}"), name
                assert error["args"] == caught.value.args_, name
                refused += 1
    assert (shown, refused) >= (9, 15)
    assert accepted > 150


def without_proxyurl(model: dict[str, Any]) -> dict[str, Any]:
    """A recorded full model without `<RESOURCE>proxyurl`, which the recorded server adds to the specification's."""
    for group in model.get("groups", {}).values():
        for resource in group["resources"].values():
            resource["attributes"].pop(f"{resource['singular']}proxyurl", None)
    return model
