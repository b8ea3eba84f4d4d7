"""The frame: the table, lineages, names of columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook import schemas
from signalbook.errors import Problem
from signalbook.schemas import COMPATIBILITIES, FORMATS, SchemaError, compatible, find, read
from signalbook.schemas.format import column_names
from signalbook.schemas.references import names_of
from tests.cases import Case, cases

NAMES = {
    "JsonSchema/draft-07": "JsonSchema/draft-07",
    "JSONSchema/draft-07": "JsonSchema/draft-07",
    "jsonschema/draft7": "JsonSchema/draft-07",
    "JsonSchema/draft/2019-09": "JsonSchema/draft/2019-09",
    "JsonSchema/draft-2020-12": "JsonSchema/draft/2020-12",
    "JSON": "JsonSchema",
    "Avro": "Avro/*",
    "Avro/1.9.0": "Avro/*",
    "AVRO/1.11.3": "Avro/*",
    "Protobuf/2": "Protobuf/2",
    "Protobuf/3": "Protobuf/3",
    "Protobuf": "Protobuf/3",
    "Protobuf/3.21": "Protobuf/3",
    "XSD/1.0": "XSD/1.0",
    "JsonStructure/draft-04": "JsonStructure/draft-04",
    "XSD/1.1": None,
    "Numbers/1.0": None,
    "": None,
}


@pytest.mark.parametrize(("name", "expect"), NAMES.items())
def test_names_are_found_in_any_case_and_spelling(name: str, expect: str | None) -> None:
    """A format is found by its name without regard to case, and by the spellings of real catalogs."""
    row = find(name)
    assert expect == (row and row.name)


def test_each_row_finds_itself() -> None:
    """No row hides another."""
    assert [row.name for row in FORMATS] == [getattr(find(row.name), "name", None) for row in FORMATS]


def test_an_unknown_format_is_a_schema_error() -> None:
    """Reading a format without a row says which there are."""
    with pytest.raises(SchemaError, match=r"\"Numbers/1\" is not one of JsonSchema/draft-07, .*"):
        read("Numbers/1", "{}")


def test_a_schema_error_tells_where() -> None:
    """The words of a schema error are its problems with their places."""
    error = SchemaError([Problem("/a", "schema", "one"), Problem("", "schema", "two")])
    assert "/a: one; two" == str(error)


@cases("schemas/byte-order-mark")
@pytest.mark.parametrize("encoded", [True, False], ids=["bytes", "text"])
def test_a_byte_order_mark(case: Case, encoded: bool) -> None:
    """One mark before a document says nothing, whatever the format; anywhere else it is a mistake."""
    text = case.given["text"].encode() if encoded else case.given["text"]
    if not case.expect:
        read(case.given["format"], text)
        return
    with pytest.raises(SchemaError) as caught:
        read(case.given["format"], text)
    assert case.expect in str(caught.value)


def test_names_behind_a_byte_order_mark() -> None:
    """A document has the same names with a mark before it."""
    text = b'{"$id": "https://x.example/a"}'
    assert ("https://x.example/a",) == names_of("jsonschema", text) == names_of("jsonschema", b"\xef\xbb\xbf" + text)


def test_a_payload_has_no_byte_order_mark() -> None:
    """What is taken of a document is not taken of a payload: RFC 8259 has no mark before JSON text."""
    checked = read("JsonSchema/draft-07", "{}").check(b"\xef\xbb\xbf{}")
    assert ["the payload is not JSON: the text is not UTF-8"] == [problem.message for problem in checked.problems]


def lineage(*types: str) -> list[schemas.Schema]:
    """Schemas of strings, numbers and so on, oldest first."""
    return [read("JsonSchema/draft/2020-12", {"type": name}) for name in types]


@pytest.mark.parametrize(
    ("types", "rule", "expect"),
    [
        (["integer", "number"], "backward", []),
        (["integer", "number"], "forward", ["type_widened"]),
        (["integer", "number"], "full", ["type_widened"]),
        (["string", "integer", "number"], "backward", []),
        (["string", "integer", "number"], "backward_transitive", ["type_changed"]),
        (["number", "integer", "integer"], "BACKWARD_TRANSITIVE", ["type_narrowed"]),
        (["string", "string", "integer"], "full_transitive", ["type_changed"]),
        (["string"], "full", []),
        ([], "full", []),
    ],
)
def test_a_rule_looks_at_the_last_or_at_all(types: list[str], rule: str, expect: list[str]) -> None:
    """A transitive rule compares the newest with all before it, any other with the last; each finding comes once."""
    assert expect == [difference.kind for difference in compatible(lineage(*types), rule)]


def test_only_the_directions_of_the_rule_are_told() -> None:
    """A difference that breaks both promises is told with the one that was asked for."""
    (found,) = compatible(lineage("string", "integer"), "forward")
    assert {"forward"} == found.breaks


def test_a_rule_that_is_none() -> None:
    """Other words are refused, and the rules are those of the specification."""
    assert COMPATIBILITIES == (
        "backward",
        "backward_transitive",
        "forward",
        "forward_transitive",
        "full",
        "full_transitive",
    )
    for rule in ("sideways", "none", "backward_sometimes", ""):
        with pytest.raises(ValueError, match="is not one of"):
            list(compatible(lineage("string"), rule))


def test_unknown_is_not_compatible_unless_trusted() -> None:
    """What cannot be decided breaks the promise, unless the caller trusts it."""
    pair = [read("JsonSchema/draft/2020-12", {"type": "string", "pattern": text}) for text in ("^(a|b)+$", "^[ab]+$")]
    assert [False] == [difference.certain for difference in compatible(pair, "backward")]
    assert [] == list(compatible(pair, "backward", trust_unknown=True))


def test_a_change_of_format_is_a_difference() -> None:
    """Two formats are not compatible; two drafts of one format are compared."""
    string = {"type": "string"}
    older, newer = read("JsonSchema/draft-07", string), read("JsonSchema/draft/2020-12", string)
    assert [] == list(compatible([older, newer], "full"))

    class Other:
        format = "Avro/1.11.0"

    (found,) = compatible([older, Other()], "full")  # type: ignore[list-item]
    assert ("", "format_changed") == (found.path, found.kind)


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=4), unique=True, max_size=8))
def test_columns_never_clash(names: list[str]) -> None:
    """Columns differ without regard to case, hold no character that Delta refuses, and hide no reserved name."""
    columns = column_names(names, reserved=["_additional"])
    assert names == list(columns)
    lowered = [column.lower() for column in columns.values()]
    assert len(set(lowered)) == len(lowered)
    assert "_additional" not in lowered
    assert not any(set(column) & set(" ,;{}()\n\t=.`") or not column for column in columns.values())


@given(st.sampled_from(["id", "ID", "Id", "userID", "userId", "_x"]), st.sampled_from(["ID", "x y", "zz"]))
def test_a_name_in_lower_case_keeps_its_column(name: str, other: str) -> None:
    """A name in lower case has the same column whatever stands beside it."""
    if name == name.lower():
        assert column_names([name])[name] == column_names({name, other})[name]
