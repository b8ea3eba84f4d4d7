from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.sources import Part, parts
from signalbook.sources.loading import Writing

MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
NAMES = ("a/1", "a/2", "b/1", "b/2", "c/1")


class Shelf:
    """A registry of files that refuses one whose references it does not have."""

    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {}
        self.groups: set[str] = set()
        self.requests = 0

    def send(self, part: Part) -> None:
        self.requests += 1
        dirs = part.body["dirs"] if part.path == "/" else {part.path.rpartition("/")[2]: part.body}
        given = {f"{d}/{f}": file["refers"] for d in dirs for f, file in dirs[d].get("files", {}).items()}
        if any(name not in {**self.files, **given} for refers in given.values() for name in refers):
            raise RegistryError("format_violation", "/x")
        if any("broken" in dirs[d] for d in dirs):
            raise RegistryError("invalid_attribute", "/x")
        self.files |= given
        self.groups |= dirs.keys()


def catalog(references: dict[str, list[str]]) -> dict[str, Any]:
    """A document with a file for each name."""
    dirs: dict[str, Any] = {"empty": {}}
    for name, refers in references.items():
        group, file = name.split("/")
        dirs.setdefault(group, {"files": {}})["files"][file] = {"refers": refers}
    return {"dirs": dirs}


def write(shelf: Shelf, document: dict[str, Any], entries: int, size: int) -> list[Part]:
    """Write a document in parts, and give these."""
    writing = Writing(shelf.send, size)
    cut = list(parts(document, MODEL, max_entries=entries, max_bytes=size))
    for part in cut:
        writing.write(part)
    writing.finish()
    return cut


@given(
    st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=2)),
    st.integers(1, 5),
)
def test_any_order_goes_in(references: dict[str, list[str]], entries: int) -> None:
    """Whatever refers to whatever among the documents of one load, also in circles, goes in whole."""
    shelf = Shelf()
    whole = {name: [other for other in refers if other in references] for name, refers in references.items()}
    write(shelf, catalog(whole), entries, 0)
    assert (whole, {"empty", *(name.split("/")[0] for name in whole)}) == (shelf.files, shelf.groups)


@given(st.lists(st.sampled_from(NAMES), unique=True), st.integers(1, 5))
def test_a_chain_goes_in_under_a_bound_of_bytes(names: list[str], entries: int) -> None:
    """Where all that waits is too large for one request, smaller ones find the order."""
    shelf = Shelf()
    chain = {name: names[at + 1 : at + 2] for at, name in enumerate(names)}
    write(shelf, catalog(chain), entries, 40)
    assert chain == shelf.files


def test_what_refers_to_nothing_there_is_refused() -> None:
    """A reference that nothing satisfies is the registry's own error, and nothing of that request is left."""
    shelf = Shelf()
    with pytest.raises(RegistryError, match="format_violation"):
        write(shelf, catalog({"a/1": ["z/9"]}), 10, 0)
    assert (set(), {}) == (shelf.groups, shelf.files)


def test_another_refusal_stops_at_once() -> None:
    """Only what may come right with other documents is tried again."""
    shelf = Shelf()
    with pytest.raises(RegistryError, match="invalid_attribute"):
        write(shelf, {"dirs": {"a": {"broken": 1}}}, 10, 0)
    assert 1 == shelf.requests
