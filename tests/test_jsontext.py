import json
from collections import Counter, OrderedDict
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.jsontext import MAX_DEPTH, check_json, export_text, is_deeper, parse_json
from tests.cases import Case, cases

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=30)


@cases("document/json_refused")
def test_what_is_refused(case: Case) -> None:
    """What is no JSON, or could not be given back exactly, is `parsing_data` with its place."""
    with pytest.raises(RegistryError) as caught:
        parse_json(case.given.encode("latin-1"), "/s")
    error = caught.value
    assert ("parsing_data", "/s", {"error_detail": case.expect}) == (error.name, error.subject, error.args_)


@pytest.mark.parametrize("text", ['{"a": ":"}', '{"a": "\\":"}', '{"a" : {"a":1}}', '"\\\\u0000"', "[]", "3", '"x"'])
def test_what_only_looks_wrong(text: str) -> None:
    """A colon or an escape inside a string, and the same name in another object, are no reason to refuse."""
    assert json.loads(text) == parse_json(text.encode(), "/")


def test_depth() -> None:
    """64 levels are read, 65 are not, and a million neither."""
    parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "/")
    parse_json(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, "/")
    for depth in (MAX_DEPTH + 1, 1_000_000):
        with pytest.raises(RegistryError, match="nested deeper than 64 levels"):
            parse_json(b"[" * depth + b"]" * depth, "/")
        with pytest.raises(RegistryError):
            parse_json(b"[" * depth, "/")


@pytest.mark.parametrize("around", [1, 6, 63])
def test_depth_in_an_export(around: int) -> None:
    """The levels that stand around a value count; brackets that do not nest, or stand in strings, do not."""
    text = "[" * (MAX_DEPTH - around) + "]" * (MAX_DEPTH - around)
    assert text == export_text(json.loads(text), "/s", around)
    assert export_text([1] if around == 63 else [[], "[" * 100, *[[]] * 100], "/s", around)
    with pytest.raises(RegistryError, match=f"nested deeper than 64 levels, with the {around} that stand around it"):
        export_text(json.loads(f"[{text}]"), "/s", around)


def test_the_levels_around_a_value_given_from_python() -> None:
    """A value that is part of a text has the levels that the text leaves."""
    value = json.loads("[" * 62 + "]" * 62)
    check_json(value, "/", around=2)
    with pytest.raises(RegistryError, match="nested deeper than 64 levels"):
        check_json([value], "/", around=2)


@pytest.mark.parametrize(("value", "depth"), [(1, 0), ("[[", 0), ([], 1), ({}, 1), ([1, {"a": []}, []], 3)])
def test_how_deep_a_value_is(value: Any, depth: int) -> None:
    """Each object or array around another is a level."""
    assert [True] * depth + [False] == [is_deeper(value, levels) for levels in range(depth + 1)]


def test_a_value_that_holds_itself_is_deeper_than_any() -> None:
    """It is found out at once, however often it holds itself."""
    value: list[Any] = []
    value += [value, {"a": value}, value]
    assert is_deeper(value, MAX_DEPTH)
    with pytest.raises(RegistryError, match="nested deeper"):
        check_json(value, "/")


def test_an_integer_of_more_digits_than_python_reads() -> None:
    """It is refused like any other integer beyond 64 bits."""
    with pytest.raises(RegistryError, match="an integer beyond 64 bits"):
        parse_json(b"9" * 5000, "/")


@given(VALUES)
def test_a_value_that_was_read_may_be_given(value: Any) -> None:
    """What a JSON text can bring in is taken as Python values too."""
    assert repr(value) == repr(check_json(value, "/"))


class Colour(StrEnum):
    """A text of a subclass."""

    RED = "red"


class Shouted(str):
    """A text that is another one when it is asked for its own."""

    def __str__(self) -> str:
        return "SHOUTED"


class Level(IntEnum):
    """An integer of a subclass."""

    HIGH = 3


class Items(list[Any]):
    """A list of a subclass."""


class Metres(float):
    """A fraction of a subclass."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        (Shouted("a"), "a"),
        (Level.HIGH, 3),
        (Metres(0.5), 0.5),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (Items([1]), [1]),
        ({Colour.RED: True, Shouted("b"): None}, {"red": True, "b": None}),
        ([OrderedDict(a=[Colour.RED, {Colour.RED: Metres(1)}])], [{"a": ["red", {"red": 1.0}]}]),
    ],
    ids=repr,
)
def test_a_subclass_is_taken_as_what_it_is(value: Any, expected: Any) -> None:
    """Texts, numbers, maps and lists of a subclass become plain ones, at any depth; what was given stays as it is."""
    before = repr(value)
    for given_value, plain in ((value, expected), ({"a": [value]}, {"a": [expected]})):
        assert repr(plain) == repr(check_json(given_value, "/"))
    assert before == repr(value)


def test_a_large_broken_document_is_not_scanned() -> None:
    """The place is looked for only in a document of reasonable size."""
    with pytest.raises(RegistryError) as caught:
        parse_json(b"[" + b"1," * 200_000 + b"]", "/")
    assert "path" not in caught.value.args_["error_detail"]


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_a_value_comes_back(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    """Whatever can be kept is read as it was written, however it is laid out."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert value == parse_json(text.encode(), "/")


@given(st.binary(max_size=200) | st.text('[]{}",:\\u0d8 ne1-.', max_size=80).map(str.encode))
@example(b'"\\ud800"')
@example(b'{"a":1,"a":1}')
@example(b"\xef\xbb\xbf{}")
def test_nothing_else_is_raised(body: bytes) -> None:
    """Any bytes give a value or `parsing_data`, never anything else."""
    names = []
    try:
        parse_json(body, "/")
    except RegistryError as error:
        names = [error.name, *error.args_]
    assert names in ([], ["parsing_data", "error_detail"])
