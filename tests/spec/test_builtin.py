"""The built-in model: one document, the union of what texts and published models allow."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA, builtin_modelsource

FILE = Path(__file__).parent.parent / "cases" / "spec" / "published_models.json"
# `deprecated` is the core's attribute of every group; only the endpoint's model repeats it.
PUBLISHED: list[dict[str, Any]] = [
    row for row in json.loads(FILE.read_text(encoding="utf-8")) if not row["path"].startswith("endpoints/deprecated")
]
# What a published model says under another name or in a place that the core has: canonical path instead.
ELSEWHERE = {"basemessageuri": "basemessage", "url": "uri"}
# A type of ours that takes every value of the published one.
WIDER = {("uritemplate", "string"), ("url", "uri"), ("string", "any"), ("uritemplate", "any")}


def walk(attributes: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every attribute and item below, by its path; `name=value` is a step into `ifvalues`."""
    for name, attribute in attributes.items():
        path = f"{prefix}/{name}"
        yield path, attribute
        yield from walk(attribute.get("attributes", {}), path)
        item = attribute.get("item")
        while item:
            path += "/[]"
            yield path, item
            yield from walk(item.get("attributes", {}), path)
            item = item.get("item")
        for value, section in attribute.get("ifvalues", {}).items():
            yield from walk(section["siblingattributes"], f"{prefix}/{name}={value}")


def ours() -> dict[str, dict[str, Any]]:
    """The built-in model's attributes by path."""
    found: dict[str, dict[str, Any]] = {}
    for plural, group in builtin_modelsource()["groups"].items():
        found.update(walk(group["attributes"], plural))
        for name, resource in group.get("resources", {}).items():
            found.update(walk(resource["attributes"], f"{plural}/{name}"))
    return found


OURS = ours()


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['path']} {row['in'][0]}")
def test_what_a_published_model_allows_is_allowed(row: dict[str, Any]) -> None:
    """Each attribute of the published models is in ours, with a type and values at least as wide."""
    own = OURS["/".join(ELSEWHERE.get(step, step) for step in row["path"].split("/"))]
    assert own["type"] == row["type"] or (row["type"], own["type"]) in WIDER
    if "enum" in row and "enum" in own:
        assert set(row["enum"]) <= set(own["enum"])
    else:
        assert "enum" not in own or row["path"].endswith("/type"), "only the names of property types are restricted"


def test_nothing_is_filled_in() -> None:
    """No default, and nothing required but the name of an entry in a list: a definition is served as it was stated."""
    assert {} == {path: attribute for path, attribute in OURS.items() if "default" in attribute}
    required = [path for path, attribute in OURS.items() if attribute.get("required")]
    assert {"name"} == {path.rpartition("/")[2] for path in required}


def test_domains() -> None:
    """Types say by which spellings and named rules they go."""
    groups = builtin_modelsource()["groups"]
    assert ["messagegroups", "schemagroups", "endpoints"] == list(groups)
    assert (MESSAGE, SCHEMA, ENDPOINT) == tuple(group["modelcompatiblewith"] for group in groups.values())
    assert groups["messagegroups"]["resources"]["messages"]["modelcompatiblewith"] == MESSAGE
    assert groups["schemagroups"]["resources"]["schemas"]["modelcompatiblewith"] == SCHEMA
    assert groups["endpoints"]["ximportresources"] == ["/messagegroups/messages"]


def test_a_new_document_each_time() -> None:
    """A caller may change what it gets, and no include is left in it."""
    first = builtin_modelsource()
    first["groups"].clear()
    assert builtin_modelsource()["groups"]
    assert "$include" not in json.dumps(builtin_modelsource())
