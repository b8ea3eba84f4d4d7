"""Constraints of Group types and Groups."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.model.constraints import (
    check_instance_constraints,
    constraint_defaults,
    constraint_violations,
    effective_constraints,
)
from signalbook.model.model import GroupType, read_model
from tests.cases import Case, cases


def group_type(constraints: dict[str, Any], attributes: dict[str, Any] | None = None) -> GroupType:
    """A Group type with these constraints on its files."""
    group = {
        "singular": "dir",
        "attributes": {"o": {"type": "object", "attributes": {"s": {"type": "string"}}}, "n": {"type": "integer"}},
        "constraints": constraints,
        "resources": {"files": {"singular": "file", "attributes": attributes or {}}, "notes": {"singular": "note"}},
    }
    return read_model({"groups": {"dirs": group}}).groups["dirs"]


@cases("document/constraints")
def test_constraints(case: Case) -> None:
    """Type and instance constraints together fill in defaults, and are then held: `equals` first, then `enum`."""
    type_ = group_type(case.given["type"], case.given.get("attributes"))
    group = case.given["group"]
    filled = constraint_defaults(type_, group, "files", case.given["version"])
    assert case.expect["version"] == filled
    assert case.expect["violations"] == [list(one) for one in constraint_violations(type_, group, "files", filled)]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"files.name": {"enum": ["c"]}}, "has an enum value (c) that is not one of: a, b"),
        ({"files.name": {"default": "c"}}, "has a default value (c) that is not one of: a, b"),
        ({"files.name": {"equals": "description"}}, "that differs from its Group type's (name)"),
        ({"files.name": {"enum": ["b"]}}, "has an enum set (b) without the inherited default value (a)"),
        ({"files.foo": {}}, 'attribute "foo" can not be found'),
    ],
)
def test_an_instance_only_narrows(own: dict[str, Any], words: str) -> None:
    """A Group's own constraints may only narrow its type's (CONS-4)."""
    type_ = group_type({"files.name": {"default": "a", "enum": ["a", "b"], "equals": "name"}})
    with pytest.raises(RegistryError) as caught:
        check_instance_constraints(type_, own, "/dirs/d1")
    assert ("bad_request", "/dirs/d1") == (caught.value.name, caught.value.subject)
    assert words in caught.value.args_["error_detail"]


def test_an_instance_narrows_aspect_by_aspect() -> None:
    """What a Group does not say about a constraint stays as its type has it."""
    type_ = group_type({"files.name": {"default": "a", "enum": ["a", "b"]}})
    own = {"files.name": {"equals": "name", "enum": ["a"], "default": None}, "notes.name": {"default": "n"}}
    found = check_instance_constraints(type_, own, "/dirs/d1")
    assert {"default": "a", "enum": ["a"], "equals": "name"} == found["files.name"].to_dict()
    assert ["files.name"] == [one.key for one in effective_constraints(type_, {"constraints": own}, "files")]
    assert type_.constraints is check_instance_constraints(type_, None, "/dirs/d1")


def test_nothing_to_fill_in_changes_nothing() -> None:
    """Attributes that need no default are given back as they are."""
    attrs = {"name": "x", "o": {"x": False}}
    type_ = group_type(
        {"files.name": {"default": "n"}, "files.o.x": {"default": True}},
        {"o": {"type": "object", "attributes": {"x": {"type": "boolean"}}}},
    )
    assert attrs is constraint_defaults(type_, {}, "files", attrs)
    assert attrs is constraint_defaults(type_, {}, "notes", attrs)
