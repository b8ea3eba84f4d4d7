"""Compatibility of Avro schemas, case by case, and by the pairs of Avro's own test suite."""

import unittest
import warnings
from typing import Any

import avro.compatibility
import avro.test.test_compatibility
import pytest

from signalbook.schemas import Difference, compatible
from signalbook.schemas.avro import payload as avro_format
from signalbook.schemas.avro.compare import compare
from tests.cases import Case, cases


def verdict(found: list[Difference], direction: str) -> bool | None:
    """True: compatible; False: broken; None: cannot be decided."""
    broken = [one for one in found if direction in one.breaks]
    return True if not broken else None if all(not one.certain for one in broken) else False


@cases("schemas/compatibility-avro")
def test_compatibility(case: Case) -> None:
    """Each change breaks the promises that the published rules say, and is named."""
    older, newer = (avro_format.read(case.given[which]) for which in ("older", "newer"))
    found = list(compare(older, newer))
    assert case.expect == {
        "backward": verdict(found, "backward"),
        "forward": verdict(found, "forward"),
        "kinds": sorted({one.kind for one in found}),
    }


def test_differences_have_places() -> None:
    """A difference names the way to the field in question."""
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
    wider = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "string"}]}
    older, newer = (
        avro_format.read(
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": one}}]}
        )
        for one in (inner, wider)
    )
    words = "the type changes from int to string"
    assert [Difference("/a/items/x", "type_changed", words, frozenset({"backward", "forward"}))] == list(
        compare(older, newer)
    )


def test_a_lineage() -> None:
    """A transitive rule looks at every earlier schema, a plain one at the last."""
    fields = [
        [],
        [{"name": "a", "type": "int", "default": 0}],
        [{"name": "a", "type": "int"}],
    ]
    lineage = [avro_format.read({"type": "record", "name": "R", "fields": one}) for one in fields]
    assert [] == list(compatible(lineage, "backward"))
    assert ["field_added"] == [one.kind for one in compatible(lineage, "backward_transitive")]


def test_pairs_of_the_official_suite(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair in the tests of Avro's own compatibility checker gets the same verdict here."""
    pairs: list[tuple[str, str, bool]] = []
    checker = avro.compatibility.ReaderWriterCompatibilityChecker
    original = checker.get_compatibility

    def recorded(self: Any, reader: Any, writer: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(self, reader, writer, *args, **kwargs)
        if not args and not kwargs:
            compatible_ = answer.compatibility is avro.compatibility.SchemaCompatibilityType.compatible
            pairs.append((str(reader), str(writer), compatible_))
        return answer

    monkeypatch.setattr(checker, "get_compatibility", recorded)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(avro.test.test_compatibility.TestCompatibility)
        assert suite.run(unittest.TestResult()).wasSuccessful()
    wrong = []
    for reader, writer, expected in pairs:
        found = list(compare(avro_format.read(writer), avro_format.read(reader)))
        if expected != (verdict(found, "backward") is True):
            wrong.append((reader, writer, expected, found))
    with capsys.disabled():
        print(f"\nAvro {avro.__name__} compatibility suite: {len(pairs) - len(wrong)} of {len(pairs)} pairs agree")
    assert len(pairs) > 100
    assert [] == wrong
