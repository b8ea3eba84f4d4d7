"""Models that are put together from other documents: MODEL-2, MODEL-17."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.registry.conftest import Api, MakeApi


@pytest.fixture
def api(make_api: MakeApi, tmp_path: Path) -> Api:
    """A registry whose operator lets models include documents of one folder."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "dirs.json").write_text(
        json.dumps({"groups": {"dirs": {"singular": "dir", "resources": {"$include": "files.json#/resources"}}}})
    )
    (tmp_path / "models" / "files.json").write_text(json.dumps({"resources": {"files": {"singular": "file"}}}))
    (tmp_path / "secret.json").write_text(json.dumps({"groups": {}}))
    return make_api(model="empty", specversion="1.0-rc4", include_from=tmp_path / "models")


def test_included(api: Api) -> None:
    """The source keeps its includes, the full model has what they bring."""
    source = {"groups": {"$include": "dirs.json#/groups", "boxes": {"singular": "box"}}}
    assert 200 == api("PUT", "/modelsource", source).status
    assert source == api("GET", "/modelsource").json
    groups = api("GET", "/model").json["groups"]
    assert {"dirs", "boxes"} == set(groups)
    assert "file" == groups["dirs"]["resources"]["files"]["singular"]
    assert "$include" not in json.dumps(groups)


def test_resolved_when_the_model_is_written(api: Api, tmp_path: Path) -> None:
    """A document that changes later changes the model when the model is written again."""
    source = {"groups": {"$include": "dirs.json#/groups"}}
    api("PUT", "/modelsource", source)
    (tmp_path / "models" / "files.json").write_text(json.dumps({"resources": {"notes": {"singular": "note"}}}))
    assert ["files"] == list(api("GET", "/model").json["groups"]["dirs"]["resources"])
    assert 200 == api("PATCH", "/", {"name": "x"}).status
    assert ["files"] == list(api("GET", "/model").json["groups"]["dirs"]["resources"])
    api("PUT", "/modelsource", source)
    assert ["notes"] == list(api("GET", "/model").json["groups"]["dirs"]["resources"])


@pytest.mark.parametrize(
    "source",
    [
        {"$include": "dirs.json", "$includes": ["files.json"]},
        {"$include": "none.json"},
        {"$include": "../secret.json"},
        {"$include": "https://registry.test/dirs.json"},
        {"$include": "dirs.json#/none"},
    ],
)
def test_refused(api: Api, source: dict[str, object]) -> None:
    """Nothing is included from elsewhere, and a model that asks for it stays out."""
    assert "model_error" == api("PUT", "/modelsource", source).error
    assert {} == api("GET", "/modelsource").json
