"""JSON text with all its digits."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.jsontext import BadJson, decode, encode

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
def test_numbers(text: str, expect: Any) -> None:
    """A number is an integer, a double with the same shortest decimal, or a decimal."""
    for wrapped in (text, f"[1.5,{text}]"):
        value = decode(wrapped.encode())
        value = value[1] if isinstance(value, list) else value
        assert (type(expect), expect) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "NaN", "Infinity", "1 2", '"\\ud800"', "1" * 5000, "1e99999", "1e-999999999999999999999",
     "[" * 5000, "'a'", "\ufeff1", "[1.00000000000000000001", "[1e400"],
)  # fmt: skip
def test_what_is_no_json(text: str) -> None:
    """A text without a value that can be kept is refused in words."""
    with pytest.raises(BadJson):
        decode(text.encode())


def test_what_is_no_text() -> None:
    """Bytes that are not UTF-8 are refused, in the quick and in the careful parse."""
    for payload in (b'"\xff"', b'["\xff",1.00000000000000000001]'):
        with pytest.raises(BadJson):
            decode(payload)


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40, places=30)


@given(DECIMALS)
def test_no_digit_is_lost(number: Decimal) -> None:
    """The value of a number's text is that number."""
    value = decode(str(number).encode())
    assert number == (Decimal(repr(value)) if isinstance(value, float) else value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | DECIMALS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(JSON)
def test_texts_round_trip(value: Any) -> None:
    """`decode` gives back what `encode` wrote."""
    text = encode(value)
    assert encode(decode(text.encode())) == encode(decode(encode(decode(text.encode())).encode()))
    plain = json.loads(text, parse_float=Decimal)
    assert plain == json.loads(encode(decode(text.encode())), parse_float=Decimal)
