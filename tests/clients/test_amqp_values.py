"""Values of AMQP: types, and the bits of decimal numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.protocols import Typed, WireError

pytest.importorskip("proton", reason="python-qpid-proton is not installed")
from signalbook.clients.amqp import FORMATS, Format, write_value


def test_lists_may_be_lists_or_tuples() -> None:
    """Whoever builds a message in Python may give either."""
    assert [1, [2]] == write_value((1, [2]), "/x")


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "/x"),
        ({"a": [Typed("nothing", 1)]}, "/x/a/0"),
        (Typed("uint", -1), "/x"),
        (Typed("uuid", "x"), "/x"),
        (Typed("timestamp", None), "/x"),
        (nested(65), "/x" + 65 * "/0"),
    ],
    ids=["not a value", "not a type", "a negative uint", "not a uuid", "not a timestamp", "nested"],
)
def test_what_is_not_a_value(value: Any, path: str) -> None:
    """What is of no type, or not of its own, is rejected with its place."""
    with pytest.raises(WireError) as rejected:
        write_value(value, "/x")
    assert path == rejected.value.problems[0].path


@pytest.mark.parametrize(
    ("name", "text", "bits"),
    [
        ("decimal32", "-7.50", 0xB18002EE),
        ("decimal32", "9.999999E+96", 0x77F8967F),
        ("decimal32", "0", 0x32800000),
        ("decimal64", "1", 0x31C0000000000001),
        ("decimal64", "-7.50", 0xB1800000000002EE),
        ("decimal64", "9.999999999999999E+384", 0x77FB86F26FC0FFFF),
        ("decimal128", "1E-6176", 1),
    ],
)
def test_known_numbers(name: str, text: str, bits: int) -> None:
    """Numbers whose bits are known from the standard's own library."""
    assert bits == FORMATS[name].write(text)
    assert text == FORMATS[name].read(bits)


def test_the_formats_have_their_public_name() -> None:
    """The class of the formats is public under the name `Format`."""
    assert all(isinstance(one, Format) for one in FORMATS.values())


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_numbers_come_back(name: str, data: st.DataObject) -> None:
    """read(write(n)) is n with all its digits and its exponent."""
    form = FORMATS[name]
    figures = data.draw(st.integers(0, 10**form.digits - 1))
    exponent = data.draw(st.integers(-form.bias, (3 << (form.exponent_bits - 2)) - 1 - form.bias))
    number = Decimal((data.draw(st.integers(0, 1)), tuple(map(int, str(figures))), exponent))
    assert number.as_tuple() == Decimal(form.read(form.write(str(number)))).as_tuple()


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_any_bits(name: str, data: st.DataObject) -> None:
    """Any bits are a number that is written, or rejected."""
    form = FORMATS[name]
    try:
        text = form.read(data.draw(st.integers(0, 2**form.width - 1)))
    except ValueError:
        return
    assert text == form.read(form.write(text))


@pytest.mark.parametrize(
    "text", ["", "+-1", "12345678", "1E91", "1E-102", "Infinity", "NaN", "1E999999999999999999999"]
)
def test_what_does_not_fit(text: str) -> None:
    """A number is rejected rather than rounded."""
    with pytest.raises(ValueError, match=r"is not a decimal|digits"):
        FORMATS["decimal32"].write(text)
