"""JSON text to values and back."""

import json
from collections import Counter, OrderedDict
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.jsontext import (
    MAX_DEPTH,
    JsonError,
    check_json,
    decode_json,
    encode_json,
    export_text,
    is_deeper,
    parse_json,
    read_members,
    read_pairs,
)
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
    """What is not JSON, or could not be given back exactly, is `parsing_data` with its place."""
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


# Payloads and schemas: every digit is kept.

NUMBERS: dict[str, Any] = {
    "0.1": 0.1,
    "1.0": 1.0,
    "1e2": 100.0,
    "-0": 0,
    "18446744073709551616": 2**64,
    "-9223372036854775809": -(2**63) - 1,
    "0.1000000000000000055": Decimal("0.1000000000000000055"),
    "9007199254740993.0": Decimal("9007199254740993.0"),
    "9007199254740993e0": Decimal("9007199254740993"),
    "123456789012345e-20": 123456789012345e-20,
    "1e400": Decimal("1e400"),
    "1e-400": 0.0,
    "1.000000000000000000001e-400": Decimal("1.000000000000000000001e-400"),
    "5e-324": 5e-324,
    "1.7976931348623157e308": 1.7976931348623157e308,
}


@pytest.mark.parametrize(("text", "expect"), NUMBERS.items())
def test_numbers_are_exact(text: str, expect: Any) -> None:
    """A number is an integer, a double with the same shortest decimal, or a decimal."""
    for wrapped in (text, f"[1.5,{text}]"):
        value = decode_json(wrapped.encode())
        value = value[1] if isinstance(value, list) else value
        assert (type(expect), expect) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "NaN", "Infinity", "1 2", '"\\ud800"', "1" * 5000, "1e99999", "1e-999999999999999999999",
     "[" * 5000, "'a'", "\ufeff1", "[1.00000000000000000001", "[1e400"],
)  # fmt: skip
def test_what_cannot_be_decoded(text: str) -> None:
    """A text without a value that can be kept is refused in words."""
    with pytest.raises(JsonError):
        decode_json(text.encode())


def test_bytes_that_are_not_utf_8() -> None:
    """Bytes that are not UTF-8 are refused, by the fast and by the exact decoder."""
    for payload in (b'"\xff"', b'["\xff",1.00000000000000000001]'):
        with pytest.raises(JsonError):
            decode_json(payload)


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40, places=30)


@given(DECIMALS)
def test_no_digit_is_lost(number: Decimal) -> None:
    """The value of a number's text is that number."""
    value = decode_json(str(number).encode())
    assert number == (Decimal(repr(value)) if isinstance(value, float) else value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | DECIMALS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(JSON)
def test_texts_round_trip(value: Any) -> None:
    """`decode_json` gives back what `encode_json` wrote."""
    text = encode_json(value)
    assert encode_json(decode_json(text.encode())) == encode_json(
        decode_json(encode_json(decode_json(text.encode())).encode())
    )
    plain = json.loads(text, parse_float=Decimal)
    assert plain == json.loads(encode_json(decode_json(text.encode())), parse_float=Decimal)


# The members of one object.

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
PAIRS = st.lists(
    st.tuples(TEXTS | st.sampled_from(["a", "b", '":', '"']), TEXTS | st.integers() | st.lists(TEXTS, max_size=2)),
    max_size=5,
)


@given(PAIRS, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]), st.booleans())
def test_a_name_occurs_once(pairs: list[tuple[str, object]], separators: tuple[str, str], ascii_only: bool) -> None:
    """Members are read with their values' own text, unless a name occurs twice, however they are spaced and escaped."""

    def dump(value: object) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    document = f"{{{separators[0].join(dump(name) + separators[1] + dump(value) for name, value in pairs)}}}".encode()
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        with pytest.raises(JsonError, match="more than once"):
            read_members(document)
    else:
        assert {name: dump(value).encode() for name, value in pairs} == {
            n: bytes(v) for n, v in read_members(document).items()
        }


@pytest.mark.parametrize("document", [b"{}", b" { } "])
def test_an_empty_object(document: bytes) -> None:
    """An object may have no members."""
    assert {} == read_members(document)


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"{", b'{"a":1}x', b'{"a":NaN}', b'{"\xff":1}', b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}"],
)
def test_what_is_not_an_object(document: bytes) -> None:
    """What is not one JSON object is refused in words."""
    with pytest.raises(JsonError, match=r".+"):
        read_members(document)


@pytest.mark.parametrize("document", [b"", b"\xff", b'{"a":NaN}', b"[" * 3000, "é?".encode()])
def test_what_cannot_be_read_as_pairs(document: bytes) -> None:
    """The reader of pairs refuses the same, and says at which byte."""
    with pytest.raises(JsonError, match=r".+"):
        read_pairs(document)
