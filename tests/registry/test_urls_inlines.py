from __future__ import annotations

from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.model.model import read_model
from signalbook.registry.urls import (
    CONFIGURATION,
    MAX_PATHS,
    MAX_TEXT,
    META,
    InlineSet,
    group_shape,
    parse_inline,
    registry_shape,
    resource_shape,
    version_shape,
)
from tests.cases import Case, cases

MODEL = read_model(
    {
        "groups": {
            "dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}},
            "docs": {"singular": "doc", "resources": {"notes": {"singular": "note", "hasdocument": False}}},
        }
    }
)
FILES = MODEL.groups["dirs"].resources["files"]
PLACES = {
    "registry": registry_shape(MODEL),
    "groups": group_shape(MODEL.groups["dirs"]),
    "resource": resource_shape(FILES),
    "version": version_shape(FILES),
    "meta": META,
}


def shown(inlines: InlineSet) -> dict[str, Any]:
    """The set as plain JSON, a star as a member."""
    children = {name: shown(child) for name, child in inlines.children.items()}
    return {"*": True, **children} if inlines.all else children


@cases("registry/inlines")
def test_cases(case: Case) -> None:
    """A path is checked against the model at the place of the request, and leads down the response."""
    values, shape = case.given["values"], PLACES[case.given["at"]]
    if case.expect.keys() & {"bad_inline", "inline_noninlineable"}:
        with pytest.raises(RegistryError) as caught:
            parse_inline(values, shape, "/?inline")
        assert ("/?inline", case.expect) == (caught.value.subject, {caught.value.name: caught.value.args_})
    else:
        assert case.expect == shown(parse_inline(values, shape, "/?inline"))


def test_a_walk_with_a_star() -> None:
    """`*` inlines everything below, except what configures the registry."""
    found = parse_inline(["*,model"], PLACES["registry"], "/")
    assert {"dirs": True, "model": True, "modelsource": False} == {
        name: found.child(name) is not None for name in ("dirs", "model", "modelsource")
    }
    files = InlineSet.EVERYTHING.child("files")
    assert files is not None
    assert files.child("versions") is InlineSet.EVERYTHING
    assert files.child("model") is InlineSet.EVERYTHING
    assert all(PLACES["registry"].children[name] is META for name in CONFIGURATION)


def test_a_walk_with_a_path() -> None:
    """Only the named collections are inlined, and nothing below the last."""
    found = parse_inline(["dirs.files"], PLACES["registry"], "/")
    dirs = found.child("dirs")
    assert dirs is not None
    assert found.child("docs") is None
    files = dirs.child("files")
    assert InlineSet() == files
    assert not files
    assert found
    assert InlineSet.EVERYTHING


def test_nothing_is_shared() -> None:
    """A request without the flag costs no new value."""
    assert InlineSet.NOTHING is parse_inline([], PLACES["registry"], "/")
    assert InlineSet.NOTHING.child("dirs") is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("d" * (MAX_TEXT + 1), {"value": "d" * 60 + "...", "error_detail": "longer than 8192 characters"}),
        (",".join(["dirs"] * (MAX_PATHS + 1)), {"value": "dirs", "error_detail": "more than 256 paths"}),
    ],
)
def test_bounds(value: str, expected: dict[str, str]) -> None:
    """A request's paths have a greatest length and number together."""
    with pytest.raises(RegistryError) as caught:
        parse_inline([value], PLACES["registry"], "/")
    assert ("bad_inline", expected) == (caught.value.name, caught.value.args_)
