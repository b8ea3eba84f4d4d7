"""Entities judged by a model: `Level`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.model.model import read_model
from signalbook.model.values import Level
from tests.cases import Case, cases, read_cases

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["one", "two", "true", "5", "2024-01-01T01:00:00+01:00", "/dirs/d", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "a-b", "effective", "removal", "A b", "k"]), inner, max_size=3)
    ),
    max_leaves=10,
)
NAMES = [
    "name",
    "labels",
    "deprecated",
    "a",
    "b",
    "o",
    "p",
    "q",
    "r",
    "m",
    "one",
    "deep",
    "free",
    "A b",
    "documentation",
]


def group_level(attributes: dict[str, Any]) -> Level:
    """The level of a Group type with these attributes."""
    group = {"singular": "dir", "attributes": attributes, "resources": {"files": {"singular": "file"}}}
    return read_model({"groups": {"dirs": group}}).groups["dirs"].level


def resource_levels(**aspects: Any) -> tuple[Level, Level]:
    """The levels of a Resource type's Versions and of its meta."""
    group = {"singular": "dir", "resources": {"files": {"singular": "file", **aspects}}}
    files = read_model({"groups": {"dirs": group}}).groups["dirs"].resources["files"]
    return files.version_level, files.meta_level


@cases("document/entity")
def test_normalise(case: Case) -> None:
    """Attributes are made canonical, or the first fault is raised and all of them are listed, each at its path."""
    level = group_level(case.given["attributes"])
    attrs = copy.deepcopy(case.given["attrs"])
    found = [{"error": problem.code, "args": problem.args} for problem in level.problems(attrs, "/dirs/d1")]
    assert case.expect.get("problems", []) == found
    if found:
        with pytest.raises(RegistryError) as caught:
            level.normalise(attrs, "/dirs/d1")
        first = {"error": caught.value.name, "args": caught.value.args_}
        assert ("/dirs/d1", found[0]) == (caught.value.subject, first)
    else:
        assert case.expect["attrs"] == level.normalise(attrs, "/dirs/d1")
    assert case.given["attrs"] == attrs, "what was given is never changed"


LEVELS = [group_level(case.given["attributes"]) for case in read_cases("document/entity")]


@given(st.sampled_from(LEVELS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
def test_normalise_is_idempotent(level: Level, attrs: dict[str, Any]) -> None:
    """Canonical attributes are canonical; `problems` is empty exactly where `normalise` has nothing to refuse."""
    problems = list(level.problems(attrs, "/dirs/d1"))
    if problems:
        with pytest.raises(RegistryError) as caught:
            level.normalise(attrs, "/dirs/d1")
        assert problems[0].code == caught.value.name
    else:
        once = level.normalise(attrs, "/dirs/d1")
        assert once == level.normalise(once, "/dirs/d1")
        assert None not in once.values()


def test_a_problem_says_where_and_what() -> None:
    """A finding carries its path, the error's name and arguments, and a sentence."""
    (problem,) = group_level({}).problems({"labels": {"a": 5}}, "/dirs/d1")
    assert ("labels.a", "invalid_attribute") == (problem.path, problem.code)
    assert "/dirs/d1: labels.a, must be a string (invalid_attribute)" == problem.message


def test_a_version_cannot_have_what_its_resource_has() -> None:
    """Undefined extensions of a Version are not called like its Resource's attributes (TYPE-14)."""
    version, _ = resource_levels(attributes={"*": {"type": "any"}})
    for name in ("meta", "metaurl", "versions", "versionsurl", "versionscount"):
        with pytest.raises(RegistryError) as caught:
            version.normalise({name: {}}, "/dirs/d1/files/f1/versions/v1")
        expected = {"name": name, "error_detail": f"Versions can't define an extension called: {name}"}
        assert ("invalid_attribute", expected) == (caught.value.name, caught.value.args_)
    version, _ = resource_levels()
    with pytest.raises(RegistryError, match="unknown_attribute"):
        version.normalise({"meta": {}}, "/dirs/d1/files/f1/versions/v1")


def test_format_and_compatibility_are_not_empty() -> None:
    """A Version's `format` and a meta's `compatibility` have a text where they are there; the latter in any case."""
    version, meta = resource_levels()
    for level, name in ((version, "format"), (meta, "compatibility")):
        with pytest.raises(RegistryError) as caught:
            level.normalise({name: ""}, "/x")
        assert {"name": name, "error_detail": "can't be an empty string"} == caught.value.args_
    assert {"compatibility": "BackWard"} == meta.normalise({"compatibility": "BackWard"}, "/x")
    with pytest.raises(RegistryError, match="enum values: backward"):
        meta.normalise({"compatibility": "none"}, "/x")


def test_the_servers_attributes_are_not_the_clients() -> None:
    """A level knows what clients control; of the server's own attributes it knows those the model narrows."""
    version, meta = resource_levels(
        hasdocument=False,
        attributes={"file": {"type": "string"}, "name": {"type": "string", "required": True}},
        metaattributes={"defaultversionsticky": {"type": "boolean", "enum": [False]}},
    )
    client = {"name", "description", "documentation", "icon", "labels", "contenttype", "format", "file"}
    assert client == version.names == set(version.attributes)
    assert {} == dict(version.system)
    assert {"labels", "compatibility", "deprecated"} == meta.names
    assert {"defaultversionsticky"} == set(meta.system)
    assert False is meta.system["defaultversionsticky"].default
    with pytest.raises(RegistryError, match="list: name"):
        version.normalise({}, "/x")


def test_check_system() -> None:
    """What the model narrows of the server's attributes is checked one by one."""
    _, meta = resource_levels(metaattributes={"defaultversionsticky": {"type": "boolean", "enum": [False]}})
    assert False is meta.check_system("defaultversionsticky", False, "/x")
    assert None is meta.check_system("defaultversionsticky", None, "/x")
    assert "anything" == meta.check_system("defaultversionid", "anything", "/x")
    with pytest.raises(RegistryError) as caught:
        meta.check_system("defaultversionsticky", True, "/x/meta")
    detail = "value (true) must be one of the enum values: false"
    assert {"name": "defaultversionsticky", "error_detail": detail} == caught.value.args_
    assert ("invalid_attribute", "/x/meta") == (caught.value.name, caught.value.subject)


def test_find() -> None:
    """The definition of a name depends on the other attributes, where `ifvalues` or `*` bring it."""
    siblings = {"b": {"type": "integer"}, "*": {"type": "boolean"}}
    level = group_level({"a": {"type": "string", "ifvalues": {"x": {"siblingattributes": siblings}}}})
    assert None is level.find("b")
    found = [level.find(name, {"a": "X"}) for name in ("a", "b", "c")]
    assert ["string", "integer", "boolean"] == [attribute.type for attribute in found if attribute]


def test_the_choices_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Combinations of `ifvalues` are joined once and kept, up to a limit."""
    monkeypatch.setattr("signalbook.model.values._CHOICES_KEPT", 1)
    cases_ = {text: {"siblingattributes": {f"s{text}": {"type": "string"}}} for text in "abc"}
    level = group_level({"p": {"type": "string", "ifvalues": cases_}})
    for text in "abcabc":
        assert {"p": text, f"s{text}": "x"} == level.normalise({"p": text, f"s{text}": "x"}, "/x")
