"""Reading models: what is refused, what older versions said, what belongs together."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.model import attributes as attribute_read
from signalbook.model.model import Model, ResourceType, read_model
from tests.cases import Case, cases, read_cases


def files(**aspects: Any) -> ResourceType:
    """A Resource type with these aspects."""
    group = {"singular": "dir", "resources": {"files": {"singular": "file", **aspects}}}
    return read_model({"groups": {"dirs": group}}).groups["dirs"].resources["files"]


@cases("document/model_errors")
def test_refused(case: Case) -> None:
    """A model that breaks a rule of the model language is refused with the place and the reason."""
    with pytest.raises(RegistryError) as caught:
        read_model(case.given)
    assert (case.expect["error"], "/model") == (caught.value.name, caught.value.subject)
    assert case.expect["args"] == caught.value.args_


SNIPPETS = [case.given for case in read_cases("document/model_errors")]
KEYS = ["attributes", "groups", "dirs", "singular", "resources", "files", "type", "item", "ifvalues", "enum", "default"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["string", "array", "map", "object", "dir", "any"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from([*KEYS, "labels"]), JSON, max_size=4))
def test_any_document_is_a_model_or_refused(source: dict[str, Any]) -> None:
    """No document makes reading fail otherwise than with one of the specification's errors."""
    with contextlib.suppress(RegistryError):
        assert isinstance(read_model(source), Model)


@given(st.data())
def test_a_damaged_model_is_a_model_or_refused(data: st.DataObject) -> None:
    """Neither does a real model with something else put in one place."""

    def damage(value: Any) -> Any:
        if not isinstance(value, dict) or not value or data.draw(st.integers(0, 3)) == 0:
            return data.draw(JSON)
        name = data.draw(st.sampled_from(sorted(value)))
        return {**value, name: damage(value[name])}

    source = damage(data.draw(st.sampled_from(SNIPPETS)))
    with contextlib.suppress(RegistryError):
        assert isinstance(read_model(source), Model)


def test_depth_is_bounded() -> None:
    """Attributes nest 64 levels deep at most, through objects, items and ifvalues alike."""
    for wrap in (
        lambda inner, level: {"type": "object", "attributes": {"a": inner}},
        lambda inner, level: {"type": "array", "item": {"type": "object", "attributes": {"a": inner}}},
        lambda inner, level: {"type": "string", "ifvalues": {"x": {"siblingattributes": {f"b{level}": inner}}}},
    ):
        attribute: dict[str, Any] = {"type": "string"}
        for level in range(66):
            attribute = wrap(attribute, level)
        with pytest.raises(RegistryError, match="nested deeper than 64 levels"):
            read_model({"attributes": {"a": attribute}})


def test_the_number_of_attributes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model has a limited number of attributes."""
    monkeypatch.setattr(attribute_read, "MAX_ATTRIBUTES", 20)
    read_model({})
    with pytest.raises(RegistryError, match="more than 20 attributes"):
        read_model({"attributes": {f"a{number}": {"type": "string"} for number in range(5)}})


def test_an_imported_type_is_the_same_type() -> None:
    """`ximportresources` gives a Group type the very Resource type of another, also by way of a third."""
    model = read_model(
        {
            "groups": {
                "cs": {"singular": "c", "ximportresources": ["/bs/files"]},
                "bs": {
                    "singular": "b",
                    "ximportresources": ["/as/notes", "/as/files"],
                    "resources": {"own": {"singular": "o"}},
                },
                "as": {"singular": "a", "resources": {"files": {"singular": "file"}, "notes": {"singular": "note"}}},
            }
        }
    )
    defined = model.groups["as"].resources["files"]
    assert "/as/files" == defined.origin
    assert defined is model.groups["bs"].resources["files"] is model.groups["cs"].resources["files"]
    assert ["own", "notes", "files"] == list(model.groups["bs"].resources)
    assert ("/as/notes", "/as/files") == model.groups["bs"].ximports
    assert "filesurl" in model.full()["groups"]["cs"]["attributes"]
    assert "ximportresources" not in model.full()["groups"]["cs"]


def test_aspects() -> None:
    """A Resource type has its aspects, or their defaults."""
    plain = files()
    assert (0, True, True, "manual") == (plain.maxversions, plain.setversionid, plain.hasdocument, plain.versionmode)
    set_ = files(
        maxversions=3, setversionid=False, hasdocument=False, versionmode="CreatedAt", singleversionroot=True,
        validateformat=True, validatecompatibility=True, strictvalidation=True, description="d", documentation="u",
        icon="i", labels={"a": "b"}, modelversion="1", modelcompatiblewith="m", typemap={"a/*": "JSON"},
    )  # fmt: skip
    shown = read_model({"groups": {"gs": {"singular": "g"}}})
    assert (3, False, False, "createdat", True) == (
        set_.maxversions, set_.setversionid, set_.hasdocument, set_.versionmode, set_.singleversionroot,
    )  # fmt: skip
    assert (True, True, True) == (set_.validateformat, set_.validatecompatibility, set_.strictvalidation)
    assert ("d", "u", "i", "1", "m") == (
        set_.description, set_.documentation, set_.icon, set_.modelversion, set_.modelcompatiblewith,
    )  # fmt: skip
    assert ({"a": "b"}, {"a/*": "json"}) == (dict(set_.labels), dict(set_.typemap))
    assert "" == shown.groups["gs"].modelcompatiblewith
    assert "filebase64" in plain.attributes
    assert "filebase64" not in set_.attributes


def test_matchversions_paths() -> None:
    """The attributes that all Versions must agree on are listed by path, also inside objects."""
    inner = {"x": {"type": "string", "matchversions": True}, "*": {"type": "any"}}
    attributes = {"format": {"matchversions": True}, "o": {"type": "object", "attributes": inner}, "*": {"type": "any"}}
    assert {("format",), ("o", "x")} == set(files(attributes=attributes).matchversions)


def test_what_older_versions_said() -> None:
    """Aspects and types of 1.0-rc2 and rc3 are read as what they are today."""
    model = read_model(
        {
            "$schema": "https://example.com/model.schema.json",
            "attributes": {"ref": {"type": "uri-reference", "matchcase": True}},
            "groups": {
                "dirs": {
                    "singular": "dir",
                    "compatiblewith": "https://example.com/dirs",
                    "resources": {
                        "files": {
                            "singular": "file",
                            "compatiblewith": "https://example.com/old",
                            "modelcompatiblewith": "https://example.com/files",
                            "setdefaultversionsticky": False,
                            "consistentformat": True,
                            "attributes": {"ancestor": {"name": "ancestor", "type": "string", "required": True}},
                        }
                    },
                }
            },
        }
    )
    group = model.groups["dirs"]
    resource = group.resources["files"]
    assert "uri" == model.attributes["ref"].type
    assert "https://example.com/dirs" == group.modelcompatiblewith
    assert "https://example.com/files" == resource.modelcompatiblewith
    assert (False,) == resource.metaattributes["defaultversionsticky"].enum
    assert (("format",),) == resource.matchversions
    assert "ancestor" not in resource.attributes
    assert files(setdefaultversionsticky=True).metaattributes["defaultversionsticky"].enum == ()


def test_older_aspects_do_not_hide_a_fault() -> None:
    """An attribute that is no object is refused, whatever an older aspect adds to it."""
    with pytest.raises(RegistryError, match="must be an object"):
        files(consistentformat=True, attributes={"format": "x"})


def test_specification_attributes_are_narrowed_not_replaced() -> None:
    """What a model leaves unsaid about a specification-defined attribute stays as the specification has it."""
    narrowed = read_model(
        {
            "attributes": {
                "registryid": {"type": "string", "enum": ["a"], "immutable": False},
                "model": {"type": "object"},
                "labels": {"type": "map", "item": {"type": "string"}, "description": "d"},
            },
            "groups": {
                "dirs": {
                    "singular": "dir",
                    "attributes": {"deprecated": {"type": "object", "attributes": {"reason": {"type": "url"}}}},
                    "resources": {
                        "files": {
                            "singular": "file",
                            "metaattributes": {
                                "compatibility": {"type": "string", "enum": [], "description": "d"},
                                "defaultversionsticky": {"enum": [True], "default": True},
                            },
                        }
                    },
                }
            },
        }
    )
    registryid = narrowed.attributes["registryid"]
    assert (True, True, True) == (registryid.required, registryid.readonly, registryid.immutable)
    assert "object" == narrowed.attributes["model"].type
    assert "d" == narrowed.attributes["labels"].description
    deprecated = narrowed.groups["dirs"].attributes["deprecated"].attributes
    assert ["alternative", "documentation", "effective", "removal", "*", "reason"] == list(deprecated)
    meta = narrowed.groups["dirs"].resources["files"].metaattributes
    assert 6 == len(meta["compatibility"].enum)
    assert True is meta["defaultversionsticky"].default


@pytest.mark.parametrize(
    ("typemap", "contenttype", "kind"),
    [
        ({}, "application/json", "json"),
        ({}, "application/json; charset=utf-8", "json"),
        ({}, "Application/CloudEvents+JSON", "json"),
        ({}, "text/plain", "string"),
        ({}, "text/html", "binary"),
        ({}, "", "binary"),
        ({"foo/bar": "json"}, "foo/bar", "json"),
        ({"FOO/*": "json"}, "foo/bar", "json"),
        ({"bad/*": "json", "bad/b*": "json"}, "bad/bad", "json"),
        ({"bad/*": "json", "*/b*": "string"}, "bad/bad", "binary"),
        ({"*/b*": "string"}, "bad/bad", "string"),
        ({"*a*d": "string"}, "bad/bad", "string"),
        ({"*x*d": "string"}, "bad/bad", "binary"),
        ({"bad/bad*bad": "string"}, "bad/bad", "binary"),
        ({"application/json": "binary"}, "application/json", "binary"),
        ({"*": "string"}, "application/json", "string"),
    ],
)
def test_content_kind(typemap: dict[str, str], contenttype: str, kind: str) -> None:
    """A `typemap` decides first, by type and subtype; entries that disagree mean binary (DOC-13)."""
    assert kind == files(typemap=typemap).content_kind(contenttype)
