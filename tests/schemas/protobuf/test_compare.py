"""Compatibility of Protobuf texts, case by case."""

from signalbook.schemas import Difference, compatible, read
from signalbook.schemas.protobuf import schema
from signalbook.schemas.protobuf.compare import compare
from tests.cases import Case, cases
from tests.schemas.avro.test_compare import verdict


@cases("schemas/compatibility-protobuf")
def test_compatibility(case: Case) -> None:
    """Each change breaks the promises that the published rules say, and is named."""
    older, newer = (read(case.given["format"], case.given[which]) for which in ("older", "newer"))
    found = list(compare(older, newer))
    assert case.expect == {
        "backward": verdict(found, "backward"),
        "forward": verdict(found, "forward"),
        "kinds": sorted({one.kind for one in found}),
    }


def test_differences_have_places() -> None:
    """A difference names the message and the field."""
    older, newer = (
        schema.read_proto3(f'syntax = "proto3"; message A {{ message B {{ {kind} x = 1; }} B b = 1; }}')
        for kind in ("int32", "string")
    )
    words = "the type of x changes from int32 to string"
    assert [Difference("/A.B/x", "type_changed", words, frozenset({"backward", "forward"}))] == list(
        compare(older, newer)
    )


def test_a_deep_link_is_compared_alone() -> None:
    """Two links are compared by the messages they lead to, whatever else their texts hold."""
    older = schema.read_proto3('syntax = "proto3"; message A { string x = 1; } message B { int32 y = 1; }')
    newer = schema.read_proto3('syntax = "proto3"; message A2 { string x = 1; } message B { string y = 1; }')
    assert [] == list(compare(older.at(":A"), newer.at(":A2")))
    assert ["type_changed"] == [one.kind for one in compare(older.at(":B"), newer.at(":B"))]


def test_the_two_languages() -> None:
    """A text may move from proto2 to proto3."""
    older = schema.read_proto2("message A { optional string x = 1; }")
    newer = schema.read_proto3('syntax = "proto3"; message A { optional string x = 1; }')
    assert [] == list(compatible([older, newer], "full"))
