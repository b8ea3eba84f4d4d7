from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import UsageError
from signalbook.sources import Part, parts
from signalbook.sources.documents import metadata

MODEL = {
    "groups": {
        "dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}, "links": {"singular": "link"}}},
        "boxes": {"singular": "box", "ximportresources": ["/dirs/files"]},
    },
    "attributes": {"owner": {"type": "string"}},
}


def apply(requests: list[Part]) -> dict[str, Any]:
    """What a registry would hold after the requests: POST replaces an entry's attributes and adds to collections."""
    held: dict[str, Any] = {}
    for request in requests:
        if request.path == "/":
            for plural, groups in request.body.items():
                for groupid, group in groups.items():
                    before = held.setdefault(plural, {}).get(groupid, {})
                    kept = {name: dict(before[name]) for name in ("files", "links") if name in before}
                    held[plural][groupid] = {**kept, **group}
        else:
            _, plural, groupid = request.path.split("/")
            for name, entries in request.body.items():
                held[plural][groupid].setdefault(name, {}).update(entries)
    return held


def test_what_is_not_a_group_stays_behind() -> None:
    """The registry's own members, views and declared attributes are not sent."""
    document = {
        "specversion": "1.0-rc2", "registryid": "x", "epoch": 3, "self": "http://x/", "dirsurl": "#/dirs",
        "dirscount": 1, "name": "N", "labels": {"a": "b"}, "modelsource": {}, "capabilities": {}, "owner": "me",
        "dirs": {"d": {"name": "D"}},
    }  # fmt: skip
    assert [Part("/", {"dirs": {"d": {"name": "D"}}}, groups=1)] == list(parts(document, MODEL))
    assert {"name": "N", "labels": {"a": "b"}, "owner": "me"} == metadata(document, MODEL)


def test_a_member_the_model_does_not_know_is_refused() -> None:
    """A misspelt collection is named, with those the model has."""
    with pytest.raises(UsageError, match=r"x\.json: 'dirz' is not a group type .* \(it has: boxes, dirs\)"):
        list(parts({"dirz": {}}, MODEL, source="x.json"))


@pytest.mark.parametrize("document", [{"dirs": []}, {"dirs": {"d": 1}}])
def test_a_collection_is_a_map_of_objects(document: dict[str, Any]) -> None:
    """What cannot be groups is refused before anything is sent."""
    with pytest.raises(UsageError):
        list(parts(document, MODEL))


def test_a_large_group_continues_where_it_stopped() -> None:
    """What does not fit follows in requests that only add to the group."""
    document = {"dirs": {"d": {"name": "D", "files": {f"f{n}": {} for n in range(5)}}}, "boxes": {"b": {}}}
    assert [
        Part("/", {"dirs": {"d": {"name": "D", "files": {"f0": {}}}}}, groups=1, resources=1),
        Part("/dirs/d", {"files": {"f1": {}, "f2": {}}}, resources=2),
        Part("/dirs/d", {"files": {"f3": {}, "f4": {}}}, resources=2),
        Part("/", {"boxes": {"b": {}}}, groups=1),
    ] == list(parts(document, MODEL, max_entries=2))


def test_imported_resources_are_resources() -> None:
    """A collection that a group type imports is cut like its own."""
    document = {"boxes": {"b": {"files": {"f0": {}, "f1": {}}}}}
    assert 2 == sum(part.resources for part in parts(document, MODEL))


def test_bytes_bound_a_request_too() -> None:
    """A few large resources do not make one large request."""
    document = {"dirs": {"d": {"files": {f"f{n}": {"file": "x" * 1000} for n in range(10)}}}}
    assert [2, 2, 2, 2, 2] == [part.resources for part in parts(document, MODEL, max_bytes=2100)]


entries = st.dictionaries(st.sampled_from("abcdefgh"), st.fixed_dictionaries({"n": st.integers(0, 9)}), max_size=8)
groups = st.dictionaries(
    st.sampled_from("wxyz"),
    st.fixed_dictionaries({"name": st.text(max_size=5)}, optional={"files": entries, "links": entries}),
)


@given(dirs=groups, boxes=groups, bound=st.integers(0, 6))
def test_nothing_is_lost_and_nothing_undone(dirs: dict[str, Any], boxes: dict[str, Any], bound: int) -> None:
    """However it is cut, the requests together write the document, and none is over the bound."""
    boxes = {key: {name: value for name, value in box.items() if name != "links"} for key, box in boxes.items()}
    document = {"dirs": dirs, "boxes": boxes}
    requests = list(parts(document, MODEL, max_entries=bound))

    def full(held: dict[str, Any]) -> dict[str, Any]:
        return {
            plural: {key: {n: v for n, v in group.items() if v or n == "name"} for key, group in entries.items()}
            for plural, entries in held.items()
            if entries
        }

    assert full(document) == full(apply(requests))
    assert not bound or all(request.groups + request.resources <= bound for request in requests)
