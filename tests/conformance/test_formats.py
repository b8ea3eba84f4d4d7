"""Format and compatibility checks in the write path, with a format of the tests' own: FMT-3 to FMT-8.

A document of the format `numbers` is a list of whole numbers; a newer one keeps compatible as long as it has the older
one's numbers (`backward`), or no others (`forward`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from signalbook import schemas
from signalbook.schemas import Checked, Difference, Format
from signalbook.schemas.format import BadValue, Direction, References, Text, unusable
from tests.registry.conftest import Api, MakeApi

FILE = "/dirs/d1/files/f1"
# The row takes the place of one that the server offers, and is found by another name.
ROW = "JsonStructure/draft-04"


@dataclass(frozen=True)
class Numbers:
    """A list of numbers."""

    numbers: frozenset[int]
    format: str = ROW

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """No payloads here."""
        raise NotImplementedError

    def at(self, fragment: str) -> Numbers:
        """No deep links here."""
        raise NotImplementedError

    def columns(self) -> Any:
        """No columns here."""
        raise NotImplementedError

    def convert(self, value: Any) -> Any:
        """No columns here."""
        raise NotImplementedError


def read_numbers(text: Text, references: References | None) -> Numbers:
    """The list that a document holds."""
    assert isinstance(text, bytes)
    try:
        found = json.loads(text)
    except ValueError:
        found = [None]
    if not all(isinstance(one, int) for one in found):
        raise unusable("it is no list of whole numbers")
    return Numbers(frozenset(found))


def compare_numbers(older: Any, newer: Any, budget: Any) -> Iterator[Difference]:
    """Yield which promises a newer list breaks."""
    directions: list[tuple[Direction, frozenset[int]]] = [
        ("backward", older.numbers - newer.numbers),
        ("forward", newer.numbers - older.numbers),
    ]
    for direction, numbers in directions:
        if numbers:
            yield Difference("", "numbers", f"not {direction} compatible", frozenset({direction}))


def no_payload(schema: Any, value: Any, media_type: str) -> bytes:
    """Refuse to write a payload, for the format has none."""
    raise BadValue("a list of numbers has no payloads")


def no_samples(schema: Any, media_type: str) -> Iterator[bytes]:
    """Yield no payload."""
    return iter(())


@pytest.fixture(autouse=True)
def _numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Format(ROW, ("numbers*",), read_numbers, compare_numbers, no_payload, no_samples, ())
    monkeypatch.setattr(schemas, "FORMATS", (row,))


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A registry that checks formats and compatibility, without being strict."""
    return registry(make_api)


def registry(make_api: MakeApi, **aspects: Any) -> Api:
    """A registry whose types check formats, with these aspects besides."""
    api = make_api(model="empty", specversion="1.0-rc4")
    checked = {"validateformat": True, "validatecompatibility": True, **aspects}
    types = {
        "files": {"singular": "file", **checked},
        "notes": {"singular": "note", "hasdocument": False, **checked},
    }
    reply = api("PUT", "/modelsource", {"groups": {"dirs": {"singular": "dir", "resources": types}}})
    assert 200 == reply.status, reply.body
    return api


def version(name: str, document: Any, **more: Any) -> tuple[str, str, dict[str, Any]]:
    """The request that writes a version of the format."""
    return "PUT", f"{FILE}/versions/{name}$details", {"format": "Numbers/1", "file": document, **more}


def test_checked(api: Api) -> None:
    """FMT-3: a document that has its format says so, and gives no reason."""
    shown = api(*version("v1", [1])).json
    assert shown["formatvalidated"] is True
    assert not {"formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason"} & shown.keys()


@pytest.mark.parametrize("strict", [False, True])
def test_format_violation(make_api: MakeApi, strict: bool) -> None:
    """FMT-5: a document that does not have its format is refused, strict or not."""
    api = registry(make_api, strictvalidation=strict)
    reply = api(*version("v1", ["one"]))
    assert (400, "format_violation") == (reply.status, reply.error)
    assert (f"{FILE}/versions/v1", {"format": "Numbers/1"}) == (reply.json["subject"], reply.json["args"])
    assert 404 == api("GET", "/dirs/d1").status


def test_a_format_given_later_is_checked(api: Api) -> None:
    """FMT-5: the document that is there has to have a format that is given afterwards."""
    api("PUT", f"{FILE}$details", {"file": ["one"]})
    assert "format_violation" == api("PATCH", f"{FILE}$details", {"format": "numbers"}).error
    assert "format" not in api("GET", f"{FILE}$details").json


@pytest.mark.parametrize("strict", [False, True])
def test_compatibility_violation(make_api: MakeApi, strict: bool) -> None:
    """FMT-5: a version that breaks the promise of its resource is refused, strict or not."""
    api = registry(make_api, strictvalidation=strict)
    api(*version("v1", [1, 2]))
    assert 200 == api("PATCH", f"{FILE}/meta", {"compatibility": "backward"}).status
    assert api("GET", f"{FILE}$details").json["compatibilityvalidated"] is True
    reply = api(*version("v2", [2]))
    assert (400, "compatibility_violation") == (reply.status, reply.error)
    assert (FILE, {"compat": "backward"}) == (reply.json["subject"], reply.json["args"])
    assert 201 == api(*version("v2", [1, 2, 3])).status


def test_a_new_promise_is_for_all_versions(api: Api) -> None:
    """FMT-8: changing the compatibility checks every version again."""
    for name, document in (("v1", [1]), ("v2", [2]), ("v3", [2, 3])):
        api(*version(name, document))
    assert "compatibility_violation" == api("PATCH", f"{FILE}/meta", {"compatibility": "backward"}).error
    assert "compatibility" not in api("GET", f"{FILE}/meta").json
    assert 200 == api("PATCH", f"{FILE}/versions/v2$details", {"file": [1, 2]}).status
    assert "compatibility_violation" == api("PATCH", f"{FILE}/meta", {"compatibility": "backward"}).error
    assert 200 == api("PATCH", f"{FILE}/versions/v3$details", {"file": [1, 2, 3]}).status
    assert 200 == api("PATCH", f"{FILE}/meta", {"compatibility": "backward"}).status


@pytest.mark.parametrize(
    ("rule", "documents", "holds"),
    [
        ("backward", ([1], [1, 2], [1, 2, 3]), True),
        ("backward", ([1], [2], [2]), False),
        ("backward_transitive", ([1], [1, 2], [1, 2]), True),
        ("forward", ([1, 2], [1], []), True),
        ("forward", ([1], [1, 2], [1]), False),
        ("forward_transitive", ([1, 2], [1], [1]), True),
        ("full", ([1], [1], [1]), True),
        ("full", ([1], [1, 2], [1, 2]), False),
        ("full_transitive", ([1], [1], [1]), True),
    ],
)
def test_rules(api: Api, rule: str, documents: tuple[Any, ...], holds: bool) -> None:
    """FMT-8: each of the six rules is kept along the line of ancestors."""
    api("PUT", f"{FILE}/meta", {"compatibility": rule})
    results = [api(*version(f"v{number}", one)).status for number, one in enumerate(documents)]
    assert holds is ([201, 201, 201] == results)


def test_lineage_is_by_ancestors(api: Api) -> None:
    """FMT-8: a version is compared with its ancestor, not with whichever came before."""
    api("PUT", f"{FILE}/meta", {"compatibility": "backward"})
    assert 201 == api(*version("a", [1])).status
    assert 201 == api(*version("b", [1, 2])).status
    assert "compatibility_violation" == api(*version("c", [1])).error
    assert 201 == api(*version("c", [1], ancestorid="a")).status
    assert "compatibility_violation" == api("PATCH", f"{FILE}/versions/c$details", {"ancestorid": "b"}).error


def test_the_version_that_makes_room(make_api: MakeApi) -> None:
    """RES-3: a version is compared with the one that it replaces before that one goes."""
    api = registry(make_api, maxversions=1)
    api(*version("v1", [1]))
    api("PATCH", f"{FILE}/meta", {"compatibility": "backward"})
    assert "compatibility_violation" == api(*version("v2", [2])).error
    assert 201 == api(*version("v2", [1, 2])).status
    assert ["v2"] == list(api("GET", f"{FILE}/versions").json)


def test_a_version_that_goes_at_once(make_api: MakeApi) -> None:
    """RES-3: what a request gives has to be right, also where it gives more than is kept."""
    api = registry(make_api, maxversions=2)
    versions = {name: {"format": "numbers", "file": [1]} for name in ("v1", "v2", "v3")}
    reply = api("POST", f"{FILE}/versions", {**versions, "v1": {"format": "numbers", "file": ["one"]}})
    assert ("format_violation", f"{FILE}/versions/v1") == (reply.error, reply.json["subject"])


def test_an_ancestor_without_a_format(api: Api) -> None:
    """FMT-2: a version is not compared with one that names no format."""
    api("PUT", f"{FILE}/versions/a$details", {"file": "what"})
    api("PATCH", f"{FILE}/meta", {"compatibility": "full_transitive"})
    assert api(*version("b", [1])).json["compatibilityvalidated"] is True


def test_an_ancestor_that_changes(api: Api) -> None:
    """FMT-8: a version may not change so that the next one breaks the promise."""
    api("PUT", f"{FILE}/meta", {"compatibility": "backward"})
    api(*version("a", [1]))
    api(*version("b", [1, 2]))
    assert "compatibility_violation" == api(*version("a", [1, 9])).error


def test_not_validated_forces_not_compatible(api: Api) -> None:
    """FMT-4: what has not been checked for its format is not compatible either, and says so."""
    api("PUT", f"{FILE}/meta", {"compatibility": "backward"})
    body = {"format": "Numbers/1", "fileurl": "http://x.example/"}
    shown = api("PUT", f"{FILE}/versions/v1$details", body).json
    assert (False, False) == (shown["formatvalidated"], shown["compatibilityvalidated"])
    assert shown["formatvalidatedreason"]
    assert shown["compatibilityvalidatedreason"]


def test_strict_refuses_what_cannot_be_compared(make_api: MakeApi) -> None:
    """FMT-6, FMT-8: where the capabilities have no such rule for the format, a strict type refuses the version."""
    api = registry(make_api, strictvalidation=True)
    assert 200 == api("PATCH", "/capabilities", {"compatibilities": {ROW: ["backward"]}}).status
    api(*version("v1", [1]))
    reply = api("PATCH", f"{FILE}/meta", {"compatibility": "full"})
    assert (400, "compatibility_unknown") == (reply.status, reply.error)
    assert {"compat": "full", "format": "Numbers/1"} == reply.json["args"]
    assert f"{FILE}/meta" == reply.json["subject"]
    assert 200 == api("PATCH", f"{FILE}/meta", {"compatibility": "backward"}).status


@pytest.mark.parametrize("body", [{}, {"filebase64": ""}, {"file": None}])
def test_no_document_is_an_empty_one(api: Api, body: dict[str, Any]) -> None:
    """FMT-7: a type without documents, a missing and an empty document are all empty, which no format is."""
    assert "format_violation" == api("PUT", f"{FILE}$details", {"format": "numbers", **body}).error
    assert "format_violation" == api("PUT", "/dirs/d1/notes/n1", {"format": "numbers"}).error


def test_names_have_no_case(api: Api) -> None:
    """CASE-2: a format is found in any case, and kept as it was given."""
    shown = api("PUT", f"{FILE}$details", {"format": "NUMBERS/x", "file": [1]}).json
    assert ("NUMBERS/x", True) == (shown["format"], shown["formatvalidated"])
