"""The versions of a definition as one message."""

from __future__ import annotations

from signalbook.dialects.catalog01_documents import assigned, in_line


def test_versions_follow_each_other() -> None:
    """Each version has the one before as its ancestor; numbers and times are left to the registry."""
    versions = [
        {"messageid": "m", "versionid": "7", "createdat": "2022-03-01T00:00:00Z", "name": name} for name in "abc"
    ]
    assert {
        "messageid": "m",
        "name": "c",
        "versions": {
            "1": {"name": "a", "ancestorid": "1"},
            "2": {"name": "b", "ancestorid": "1"},
            "3": {"name": "c", "ancestorid": "2"},
        },
    } == in_line(versions)
    assert {"messageid": "m", "name": "a"} == in_line(versions[:1])


def test_what_is_given_anew_is_told() -> None:
    """A definition whose numbers or times a catalog does not keep is named, once."""
    definitions = [
        {"id": "a", "definition": {}},
        {"id": "b", "version": 1, "definition": {}},
        {"id": "c", "version": 3, "definition": {}},
        {"id": "d", "versions": [{"version": 2}, {"version": 1, "createdtimeutc": "2022-03-01T00:00:00Z"}]},
        {"id": "e", "createdtimeutc": "2022-03-01T00:00:00Z", "versions": [{"version": 4}, {"version": 9}]},
    ]
    words = "left out, for the catalog gives it anew: "
    told = [(2, "version"), (3, "createdtimeutc"), (4, "version, createdtimeutc")]
    found = [(note.code, note.path, note.message) for note in assigned({"id": "g", "definitions": definitions})]
    assert [("assigned", f"/definitions/{place}", words + names) for place, names in told] == found
    assert ["/1"] == [note.path for note in assigned([{"definitions": []}, definitions[2]])]
    assert [""] == [note.path for note in assigned(definitions[3])]
