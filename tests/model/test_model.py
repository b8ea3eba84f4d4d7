"""`$include` and `$includes`."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.model import model
from signalbook.model.model import resolve

DOCUMENTS: dict[str, Any] = {
    "https://example.com/models/a.json": {
        "groups": {"as": {"singular": "a"}, "x/y": {"singular": "b"}, "list": [{"$include": "#/groups/as"}]},
        "more": {"$include": "../b.json#groups"},
    },
    "https://example.com/b.json": {"groups": {"bs": {"singular": "b"}, "as": {"singular": "other"}}, "text": "x"},
    "https://example.com/loop.json": {"a": {"$include": "loop2.json#/b"}},
    "https://example.com/loop2.json": {"b": {"$include": "loop.json#/a"}},
    "https://example.com/deep.json": {"x": {"$include": "https://example.com/wide.json"}},
    "https://example.com/wide.json": {"x": [1] * 50},
}
BASE = "https://example.com/models/model.json"
load = DOCUMENTS.__getitem__


def detail(error: pytest.ExceptionInfo[RegistryError]) -> str:
    """The words of an error about the model."""
    assert ("model_error", "/model") == (error.value.name, error.value.subject)
    return error.value.args_["error_detail"]


def test_a_document_without_includes_stays() -> None:
    """Nothing to include, nothing changed, nobody asked."""
    source = {"groups": {"dirs": {"singular": "dir", "ximportresources": ["/a/b"]}}}
    assert source == resolve(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"$include": "a.json#/groups/as"}, {"singular": "a"}),
        ({"$include": "a.json#/groups/as", "singular": "mine"}, {"singular": "mine"}),
        ({"$include": "a.json#/groups/x~1y"}, {"singular": "b"}),
        ({"$include": "a.json#/more"}, {"bs": {"singular": "b"}, "as": {"singular": "other"}}),
        (
            {"$includes": ["a.json#/groups/as", "../b.json#/groups"]},
            {"singular": "a", **DOCUMENTS["https://example.com/b.json"]["groups"]},
        ),
        (
            {"g": {"$includes": ["../b.json#groups", "a.json#groups"]}}["g"],
            {
                "bs": {"singular": "b"},
                "as": {"singular": "other"},
                "x/y": {"singular": "b"},
                "list": [{"singular": "a"}],
            },
        ),
        ({"own": {"a": 1}, "too": {"$include": "#/own"}}, {"own": {"a": 1}, "too": {"a": 1}}),
    ],
)
def test_resolve(source: Any, expected: Any) -> None:
    """Includes are relative to their document; siblings win over them, and earlier ones over later ones."""
    assert expected == resolve(source, load, BASE)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"$include": "a.json", "$includes": []}, '"$include" and "$includes" must not be used at the same place'),
        ({"$include": 5}, '"$include" must be a string and "$includes" an array of strings'),
        ({"$includes": "a.json"}, '"$include" must be a string and "$includes" an array of strings'),
        ({"$include": "a.json#/nope"}, '"https://example.com/models/a.json#/nope" leads nowhere'),
        ({"$include": "a.json#/groups/as/singular/x"}, "leads nowhere"),
        ({"$include": "../b.json#/text"}, "is not an object, so it can't be included"),
        ({"$include": "../loop.json#/a"}, "includes go in a circle: https://example.com/loop.json#/a"),
    ],
)
def test_wrong_includes(source: Any, words: str) -> None:
    """An include that leads nowhere, to something else than an object, or back to itself is refused."""
    with pytest.raises(RegistryError) as caught:
        resolve(source, load, BASE)
    assert words in detail(caught)


def test_includes_are_refused_where_nobody_loads_them() -> None:
    """Without a way to load documents, nothing is included."""
    with pytest.raises(RegistryError) as caught:
        resolve({"groups": [{"$include": "file:///etc/passwd"}]})
    assert "can't be included here" in detail(caught)


def test_depth_is_bounded() -> None:
    """A document that is nested too deep is refused, not followed."""
    source: Any = {}
    for _ in range(400):
        source = {"a": source}
    with pytest.raises(RegistryError) as caught:
        resolve(source)
    assert "nested deeper" in detail(caught)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Includes cannot blow a small document up."""
    monkeypatch.setattr(model, "MAX_VALUES", 100)
    with pytest.raises(RegistryError) as caught:
        resolve({name: {"$include": "../deep.json"} for name in "abc"}, load, BASE)
    assert "more than 100 values" in detail(caught)
