"""Scopes and names of a replication."""

from __future__ import annotations

import pytest

from signalbook.errors import UsageError
from signalbook.replication.scope import ReplicationScope, entity_of


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("/", ["/messagegroups/g", "/a/b/c/d"], []),
        ("/messagegroups", ["/messagegroups/g"], ["/messagegroupsx/g", "/schemagroups/g"]),
        ("/messagegroups/g", ["/messagegroups/g", "/messagegroups/G/messages/m"], ["/messagegroups/g2"]),
        ("/messagegroups/g/messages/m", ["/messagegroups/g", "/messagegroups/g/messages/m"], ["/messagegroups/h"]),
    ],
)  # fmt: skip
def test_what_it_holds(scope: str, inside: list[str], outside: list[str]) -> None:
    """A scope holds itself, what is below, and the group that a lone resource is in."""
    chosen = ReplicationScope.parse(scope, ())
    assert [True] * len(inside) == [chosen.holds(xid) for xid in inside]
    assert [False] * len(outside) == [chosen.holds(xid) for xid in outside]


@pytest.mark.parametrize("scope", ["", "messagegroups", "/a/b/c/d/e", "//a", "/a//b"])
def test_no_scope(scope: str) -> None:
    """What is no xid of a collection, group or resource is refused."""
    with pytest.raises(UsageError):
        ReplicationScope.parse(scope, ())


@pytest.mark.parametrize("mapping", ["", "a", "=b", "a=", "/x/a=b", "/x/a=/y/b", "/x/a/z=/x/b/z"])
def test_no_mapping(mapping: str) -> None:
    """What maps no group is refused."""
    with pytest.raises(UsageError):
        ReplicationScope.parse("/", (mapping,))


@pytest.mark.parametrize(
    "mappings", [("a=b", "c=b"), ("a=b", "c=B"), ("a=b", "a=c"), ("a=b", "/x/c=/x/b"), ("/x/a=/x/b", "/x/c=/x/b")]
)
def test_two_groups_of_one_name(mappings: tuple[str, ...]) -> None:
    """No two groups can have one name, and no group two."""
    with pytest.raises(UsageError):
        ReplicationScope.parse("/", mappings)


def test_names_in_a_circle() -> None:
    """Groups may change their names with each other, and have one in different collections."""
    assert "/x/b" == ReplicationScope.parse("/", ("a=b", "b=a")).renamed("/x/a")
    assert "/y/b" == ReplicationScope.parse("/", ("/x/a=/x/b", "/y/c=/y/b")).renamed("/y/c")


def test_names() -> None:
    """Groups are renamed by id or by xid, below too, and references with them; words stay."""
    scope = ReplicationScope.parse("/", ("a=b", "/schemagroups/s=/schemagroups/t"))
    assert "/messagegroups/b/messages/a" == scope.renamed("/messagegroups/a/messages/a")
    assert "/messagegroups/s" == scope.renamed("/messagegroups/s")
    assert "/schemagroups/t/schemas/x" == scope.renamed("/schemagroups/s/schemas/x")
    body = {
        "meta": {"xref": "/messagegroups/a/messages/m"},
        "versions": {
            "1": {"createdat": "x", "dataschemauri": "/schemagroups/s/schemas/x", "name": "/messagegroups/a/x"}
        },
    }
    assert {
        "meta": {"xref": "/messagegroups/b/messages/m"},
        "versions": {
            "1": {"createdat": "x", "dataschemauri": "/schemagroups/t/schemas/x", "name": "/messagegroups/a/x"}
        },
    } == scope.rewritten(body)


def test_subjects() -> None:
    """An event is about its group or its resource."""
    subjects = ["/", "/model", "/g/1", "/g/1/r/2", "/g/1/r/2/versions/3"]
    assert [None, None, "/g/1", "/g/1/r/2", "/g/1/r/2"] == [entity_of(subject) for subject in subjects]
    version = "/messagecatalog/a%20b/messagedefinitions/c/version/3"
    assert "/messagegroups/a~20b/messages/c" == entity_of(version)
