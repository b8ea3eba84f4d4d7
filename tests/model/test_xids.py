"""Ids, attribute names, map keys, xids."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.model.xids import ATTRIBUTE_NAME, ID, MAP_KEY, TYPE_NAME, Xid, check_id, parse_xid, parse_xidtype
from tests.cases import Case, cases

IDS = st.from_regex(ID, fullmatch=True)
TYPES = st.from_regex(TYPE_NAME, fullmatch=True)


@cases("document/xid")
def test_parse(case: Case) -> None:
    """An xid is `/[GROUPS/GID[/RESOURCES/RID[/meta | /versions/VID]]]`, and says what kind of entity it is of."""
    if "error" in case.expect:
        with pytest.raises(ValueError, match=r".") as caught:
            Xid.parse(case.given)
        assert case.expect["error"] == str(caught.value)
    else:
        xid = Xid.parse(case.given)
        assert case.expect == {"kind": xid.kind, "type": xid.type, "parent": str(xid.parent)}
        assert case.given == str(xid)


@given(TYPES, IDS, TYPES, IDS, IDS, st.integers(0, 4))
def test_parse_and_str_are_inverse(groups: str, gid: str, resources: str, rid: str, vid: str, kind: int) -> None:
    """What an xid is written as reads back as the same xid."""
    xid = (
        Xid(),
        Xid(groups, gid),
        Xid(groups, gid, resources, rid),
        Xid(groups, gid, resources, rid, "meta"),
        Xid(groups, gid, resources, rid, "versions", vid),
    )[kind]
    assert xid == Xid.parse(str(xid))


@given(st.text(max_size=40))
def test_any_text_is_an_xid_or_a_value_error(text: str) -> None:
    """No text makes the parser fail in any other way."""
    with contextlib.suppress(ValueError):
        assert text == str(Xid.parse(text))


def test_a_wrong_xid_is_malformed() -> None:
    """A request with a wrong xid is answered by `malformed_xid`."""
    assert Xid("dirs", "d1") == parse_xid("/dirs/d1", "/")
    with pytest.raises(RegistryError) as caught:
        parse_xid("/dirs", "/x")
    assert ("malformed_xid", "/x") == (caught.value.name, caught.value.subject)
    assert {"xid": "/dirs", "error_detail": '"/dirs" does not end with an id'} == caught.value.args_


def test_xidtypes_name_types() -> None:
    """An xidtype is the Registry, a Group type, a Resource type or its Versions."""
    assert ("", "", False) == parse_xidtype("/")
    assert ("dirs", "files", True) == parse_xidtype("/dirs/files/versions")


@pytest.mark.parametrize("id_", ["a", "0", "_", "A-._~:@9", "x" * 128])
def test_ids(id_: str) -> None:
    """An id is 1 to 128 unreserved characters, ":" or "@", and starts with a letter, digit or "_"."""
    assert id_ == check_id(id_, "/")


@pytest.mark.parametrize("id_", ["", "-a", "a b", "a/b", "é", "x" * 129, "a\n", "a$details", 5, None])
def test_malformed_ids(id_: object) -> None:
    """Anything else is a `malformed_id`."""
    with pytest.raises(RegistryError) as caught:
        check_id(id_, "/dirs")
    assert ("malformed_id", "/dirs", str(id_)) == (caught.value.name, caught.value.subject, caught.value.args_["id"])


@pytest.mark.parametrize("id_", ["null", "request"])
def test_reserved_version_ids(id_: str) -> None:
    """A Version must not be called `null` or `request` (ID-6); anything else may."""
    assert id_ == check_id(id_, "/")
    with pytest.raises(RegistryError, match="reserved"):
        check_id(id_, "/", version=True)


def test_names_and_keys_have_63_characters_at_most() -> None:
    """Attribute names and map keys have 1 to 63 characters, type names 57."""
    for pattern, most in ((ATTRIBUTE_NAME, 63), (MAP_KEY, 63), (TYPE_NAME, 57)):
        assert pattern.fullmatch("a" * most)
        assert not pattern.fullmatch("a" * (most + 1))
        assert not pattern.fullmatch("")
        assert not pattern.fullmatch("A")
