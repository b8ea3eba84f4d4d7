"""Compatibility of JSON Schemas: containment of what they accept."""

import pytest

from signalbook import schemas
from signalbook.schemas.json_schema.compare import KINDS, compare
from tests.cases import Case, cases, read_cases

D7, D20 = "JsonSchema/draft-07", "JsonSchema/draft/2020-12"


def verdict(differences: list[schemas.Difference], direction: str) -> bool | None:
    """True: compatible; False: not; None: unknown."""
    found = [difference for difference in differences if direction in difference.breaks]
    return False if any(difference.certain for difference in found) else None if found else True


@cases("schemas/compatibility-json")
def test_compatibility(case: Case) -> None:
    """Each change is judged as its reason says, and named by path and kind."""
    older, newer = (schemas.read(D20, case.given[side]) for side in ("older", "newer"))
    found = list(compare(older, newer))
    assert case.expect == {
        "backward": verdict(found, "backward"),
        "forward": verdict(found, "forward"),
        "kinds": [[difference.path, difference.kind] for difference in found],
    }
    assert all(difference.message and difference.breaks for difference in found)


@cases("schemas/compatibility-json")
def test_compatibility_backwards(case: Case) -> None:
    """What is backward one way is forward the other way."""
    older, newer = (schemas.read(D20, case.given[side]) for side in ("older", "newer"))
    found = list(compare(newer, older))
    assert case.expect["backward"] == verdict(found, "forward")
    assert case.expect["forward"] == verdict(found, "backward")


def test_cases_have_reasons() -> None:
    """Each case of the table says why."""
    rows = read_cases("schemas/compatibility-json")
    assert len(rows) >= 60
    assert all(case.spec for case in rows)


def test_kinds_are_distinct() -> None:
    """Accepting less and accepting more have names of their own, but for what is undecided."""
    decided = [names for aspect, names in KINDS.items() if aspect not in ("reference", "metaschema", "size")]
    kinds = [kind for _, *two in decided for kind in two]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(
    ("older", "newer", "expect"),
    [
        # `format` is asserted in draft-07.
        ({"type": "string", "format": "date"}, {"type": "string", "format": "time"}, (False, False)),
        ({"type": "string", "format": "date"}, {"type": "string"}, (True, False)),
        # Keywords beside `$ref` do not count in draft-07.
        (
            {"definitions": {"s": {"type": "string"}}, "$ref": "#/definitions/s"},
            {"definitions": {"s": {"type": "string"}}, "$ref": "#/definitions/s", "maxLength": 1},
            (True, True),
        ),
        # Keywords of later drafts do not count either.
        ({"type": "object"}, {"type": "object", "unevaluatedProperties": False}, (True, True)),
        ({"items": [{"type": "string"}]}, {"items": [{"type": "string"}], "additionalItems": False}, (False, True)),
        ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"]}}, (False, True)),
        ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": {"required": ["b"]}}}, (True, True)),
    ],
)
def test_draft_07(older: object, newer: object, expect: tuple[bool | None, bool | None]) -> None:
    """A draft's own reading decides."""
    found = list(compare(schemas.read(D7, older), schemas.read(D7, newer)))  # type: ignore[arg-type]
    assert expect == (verdict(found, "backward"), verdict(found, "forward"))


def test_dynamic_references_are_unknown() -> None:
    """Where a reference leads only when the payload is there, nothing is decided, but for the same text."""
    tree = {"$dynamicAnchor": "n", "properties": {"next": {"$dynamicRef": "#n"}}}
    older = schemas.read(D20, tree)
    assert [] == list(compare(older, schemas.read(D20, dict(reversed(tree.items())))))
    found = list(compare(older, schemas.read(D20, {**tree, "minProperties": 1})))
    assert ("/properties/next", "reference_unknown", False) in [(one.path, one.kind, one.certain) for one in found]


def test_references_into_the_catalog_are_followed() -> None:
    """What the catalog's other schemas say counts."""
    catalog = {"/a": {"type": "integer"}, "/b": {"type": "number"}}
    older, newer = (schemas.read(D20, {"items": {"$ref": name}}, catalog.get) for name in ("/a", "/b"))
    assert [("/items", "type_widened")] == [(one.path, one.kind) for one in compare(older, newer)]


def test_a_relative_identifier_with_a_folder_is_followed() -> None:
    """An identifier is joined with the base around it once."""

    def items(kind: str) -> dict[str, object]:
        inner = {"$id": "sub/item", "type": kind}
        return {"$id": "https://x.example/a/root", "$defs": {"i": inner}, "items": {"$ref": "sub/item"}}

    older, newer = (schemas.read(D20, items(kind)) for kind in ("integer", "number"))
    assert [("/items", "type_widened")] == [(one.path, one.kind) for one in compare(older, newer)]
