"""The registry from Python takes and gives what HTTP does, and nothing else."""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from signalbook import Registry, RegistryError, UsageError

SCHEMA = "/schemagroups/g/schemas/s"
CIRCLE: list[Any] = []
CIRCLE += [CIRCLE, CIRCLE]


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """A new registry."""
    with Registry.open(store_url) as opened:
        yield opened


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "nan is not a number that JSON has"),
        (math.inf, "inf is not a number that JSON has"),
        ("a\0", "a string holds a NUL character"),
        ("\ud800", "a string holds half a surrogate pair"),
        (10**30, "an integer beyond 64 bits"),
        (Decimal(1), "JSON has no Decimal"),
        (b"x", "JSON has no bytes"),
        ({1}, "JSON has no set"),
        ((1,), "JSON has no tuple"),
        (UUID(int=1), "JSON has no UUID"),
        ({1: 2}, "a name is of type int, not a string"),
        ({"\0": 2}, "a name holds a NUL character"),
        (CIRCLE, "nested deeper than 64 levels"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("attribute", ["labels", "schema"])
def test_what_json_does_not_have_is_refused(registry: Registry, attribute: str, value: Any, words: str) -> None:
    """A value that no JSON text could have brought in is `parsing_data`, within a document too."""
    with pytest.raises(RegistryError, match=words) as caught:
        registry.put(SCHEMA, {attribute: {"x": value}})
    assert ("parsing_data", SCHEMA) == (caught.value.name, caught.value.subject)


class Team(StrEnum):
    """A text as programs keep it."""

    ROAD = "road"


def test_subclasses_are_taken_as_what_they_are(registry: Registry) -> None:
    """A `StrEnum` is a string and an `OrderedDict` a map, wherever they stand."""
    labels = OrderedDict(team=Team.ROAD)
    for value in ({"labels": labels, "name": Team.ROAD}, OrderedDict(labels=labels, name=Team.ROAD)):
        written = registry.put("/messagegroups/g/messages/m", value)
        assert ({"team": "road"}, "road") == (written["labels"], written["name"])
    shown = registry.put(SCHEMA, {"schema": OrderedDict(type=Team.ROAD), "contenttype": "application/json"})
    assert {"type": "road"} == registry.get(f"{shown['xid']}?inline=schema")["schema"]


@pytest.mark.parametrize("path", [None, 5, b"/", Path("/messagegroups")], ids=repr)
def test_what_is_no_path_is_told(registry: Registry, path: Any) -> None:
    """A path is a text; anything else is refused in words by every method."""
    with registry.transaction() as transaction:
        calls: list[Callable[[], Any]] = [
            lambda: transaction.get(path),
            lambda: transaction.put(path, {}),
            lambda: registry.get(path),
            lambda: registry.get_text(path),
            lambda: registry.find(path),
            lambda: registry.put(path, {}),
            lambda: registry.delete(path),
            lambda: registry.delete(path, epoch=1),
        ]
        for call in calls:
            with pytest.raises(UsageError, match="is not a path; write a text such as"):
                call()


@pytest.mark.parametrize("value", [None, "text", ["name"], 5], ids=repr)
@pytest.mark.parametrize("method", ["put", "patch", "post"])
def test_what_is_no_entity_is_told(registry: Registry, method: str, value: Any) -> None:
    """A write needs a mapping."""
    with pytest.raises(RegistryError, match=f"must be a mapping, not of type {type(value).__name__}") as caught:
        getattr(registry, method)("/messagegroups/g", value)
    assert "parsing_data" == caught.value.name


def test_an_epoch_beside_flags(registry: Registry) -> None:
    """The epoch of a deletion joins the flags that the path carries."""
    for path in ("/messagegroups/g", "messagegroups/g?specversion=1.0-rc4"):
        registry.put("/messagegroups/g", {})
        with pytest.raises(RegistryError, match="mismatched_epoch"):
            registry.delete(path, epoch=7)
        registry.delete(path, epoch=1)


def test_numbers_come_as_they_are(registry: Registry) -> None:
    """Integers of any size and decimals of any length come out of a document with all their digits."""
    text = '{"a": 123456789012345678901234567890, "b": 0.10000000000000000000001, "c": 0.1, "d": 1E5}'
    registry.put(SCHEMA, {"contenttype": "application/json", "schema": text})
    expected = {"a": 123456789012345678901234567890, "b": Decimal("0.10000000000000000000001"), "c": 0.1, "d": 1e5}
    assert expected == registry.get(f"{SCHEMA}?inline=schema")["schema"]
    assert text in registry.get_text(f"{SCHEMA}?inline=schema")
    assert expected == next(registry.find("/schemagroups/g/schemas?inline=schema"))["schema"]


def test_what_python_cannot_hold_comes_as_text(registry: Registry) -> None:
    """A number nearer to zero than Python is willing to read is still there in the text."""
    digits = "0" * 4400
    registry.put(SCHEMA, {"contenttype": "application/json", "schema": f'{{"a":0.{digits}1}}'})
    with pytest.raises(UsageError, match="get_text gives it as text"):
        registry.get(f"{SCHEMA}?inline=schema")
    assert digits in registry.get_text(f"{SCHEMA}?inline=schema")


@pytest.mark.parametrize("store", [None, "", 5])
def test_no_store_is_made_of_a_mistake(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not a store is refused, and leaves no file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is not a store"):
        Registry.open(store)
    assert [] == list(tmp_path.iterdir())


def test_a_write_as_text(registry: Registry) -> None:
    """The answer to a write is to be had as the text that HTTP sends; a deletion has none."""
    assert '"name":"A"' in registry.write_text("PUT", "/messagegroups/g", {"name": "A"})
    assert "" == registry.write_text("DELETE", "/messagegroups/g", None)


def test_a_model_that_another_changed(shared_store_url: str) -> None:
    """Who has a model at hand writes by the one in force, whatever became of the types it knew."""
    files = {"files": {"singular": "file", "hasdocument": False}}
    model = {"groups": {"dirs": {"singular": "dir", "resources": files}}}
    with (
        Registry.open(shared_store_url, model=model) as one,
        Registry.open(shared_store_url) as other,
    ):
        one.put("/dirs/d/files/f", {})
        one.delete("/dirs/d")
        other.put("/modelsource", {"groups": {"boxes": {"singular": "box", "resources": files}}})
        with pytest.raises(RegistryError, match="not_found"):
            one.put("/dirs/d/files/f", {})
        assert "/boxes/b/files/f" == one.put("/boxes/b/files/f", {})["xid"]


def test_what_others_show_has_to_suit_them() -> None:
    """A target is held to the groups that show it when it comes, and when it changes."""
    with Registry.open() as registry:
        registry.put("/messagegroups/strict", {"envelope": "CloudEvents/1.0"})
        registry.put("/messagegroups/strict/messages/shows/meta", {"xref": "/messagegroups/free/messages/shown"})
        for envelope in ("Other/1.0", "CloudEvents/1.0", "Other/1.0"):
            suits = envelope == "CloudEvents/1.0"
            with contextlib.nullcontext() if suits else pytest.raises(RegistryError, match="same as that of its group"):
                registry.put("/messagegroups/free/messages/shown", {"envelope": envelope})
