"""The small grammars: timestamps, URIs, media types, headers, JSON numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from signalbook.cloudevents.attributes import (
    format_timestamp,
    instant,
    is_absolute_uri,
    is_timestamp,
    is_uri_reference,
    read_media_type,
)
from signalbook.jsontext import is_json_text, read_json, same_json, write_json
from signalbook.protocols.http import read_header, write_header
from tests.cases import Case, cases


@cases("cloudevents/timestamps")
def test_timestamps(case: Case) -> None:
    """RFC 3339 and nothing beside it."""
    assert case.expect is is_timestamp(case.given)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2018-04-05T17:31:00Z", "2018-04-05t19:31:00.000+02:00", True),
        ("2018-04-05T17:31:00Z", "2018-04-05T17:31:00.00000000000000000001Z", False),
        ("2018-01-01T00:30:00+01:00", "2017-12-31T23:30:00Z", True),
        ("9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59Z", False),
        ("0000-03-01T00:00:00Z", "0000-02-29T24:00:00Z".replace("24", "23"), False),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", False),
    ],
)
def test_instants(one: str, other: str, same: bool) -> None:
    """Two timestamps mean the same moment whatever their offset and zeros, and to every digit."""
    assert same is (instant(one) == instant(other))


def test_moments_are_written_in_their_zone() -> None:
    """A datetime becomes RFC 3339 text; without a zone it means no moment."""
    assert "2018-04-05T17:31:00Z" == format_timestamp(datetime(2018, 4, 5, 17, 31, tzinfo=UTC))
    east = timezone(timedelta(hours=2))
    assert "2018-04-05T17:31:00.500000+02:00" == format_timestamp(datetime(2018, 4, 5, 17, 31, 0, 500_000, tzinfo=east))
    odd = timezone(timedelta(hours=1, seconds=20))
    assert "2018-04-05T16:30:40Z" == format_timestamp(datetime(2018, 4, 5, 17, 31, tzinfo=odd))
    with pytest.raises(ValueError, match="time zone"):
        format_timestamp(datetime(2018, 4, 5))


@cases("cloudevents/uris")
def test_uris(case: Case) -> None:
    """RFC 3986 and nothing beside it."""
    found = {"absolute": is_absolute_uri(case.given), "reference": is_uri_reference(case.given)}
    assert case.expect == found


def test_a_hostile_uri_takes_no_time() -> None:
    """A long text that is almost a URI is rejected at once."""
    for text in ("a" * 100_000 + " ", "%20" * 50_000 + " ", "/a" * 50_000 + " ", "//" + "a:" * 50_000 + " "):
        assert not is_uri_reference(text)


@cases("cloudevents/media_types")
def test_media_types(case: Case) -> None:
    """RFC 2045 media types, whether they say JSON, and their charset."""
    media = read_media_type(case.given)
    assert case.expect == (None if media is None else [media.name, media.is_json, media.charset])


@cases("cloudevents/header_values")
def test_header_values(case: Case) -> None:
    """What an attribute holds goes through a header as printable ASCII, and older ways of writing are read."""
    if "value" in case.given:
        written = write_header(case.given["value"])
        assert case.expect == written
        assert case.given["value"] == read_header(written)
    elif case.expect is None:
        with pytest.raises(ValueError, match=r".+"):
            read_header(case.given["text"])
    else:
        assert case.expect == read_header(case.given["text"])


DIGITS = "1" * 5000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"1", 1),
        (b"1.5", 1.5),
        (b"0.1", 0.1),
        (b"1e3", 1000.0),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"3.14159265358979323846", Decimal("3.14159265358979323846")),
        (b"1e400", Decimal("1e400")),
        (b"-0.0", -0.0),
        (DIGITS.encode(), Decimal(DIGITS)),
        (b"[0.5," + DIGITS.encode() + b"]", [0.5, Decimal(DIGITS)]),
    ],
)
def test_numbers(text: bytes, value: Any) -> None:
    """A number is read to its exact value, as the plainest type that holds it."""
    found = read_json(text)
    assert value == found
    assert type(value) is type(found)
    assert same_json(text, write_json(found))


@pytest.mark.parametrize("text", [b"1e9999999999999999999999", b"[" * 3000 + b"]" * 3000, b"{", b"\xff", b'"\\ud800"'])
def test_what_cannot_be_read(text: bytes) -> None:
    """What is not JSON, or holds what nothing can hold, is a ValueError."""
    with pytest.raises(ValueError, match=r".+"):
        read_json(text)


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        ([None, 1.5], b"[null,1.5]"),
        ({"a": (1, True)}, b'{"a":[1,true]}'),
        (2**70, b"1180591620717411303424"),
        (Decimal("1.50"), b"1.50"),
        ({"é": [Decimal(1), None, "x", 2.5, False]}, '{"é":[1,null,"x",2.5,false]}'.encode()),
        (Word("x"), b'"x"'),
    ],
)
def test_written(value: Any, text: bytes) -> None:
    """What has a JSON form is written in it."""
    assert text == write_json(value)


NESTED: list[Any] = []
for _ in range(3000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "value",
    [float("nan"), [None, float("inf")], {"a": (None, float("-inf"))}, Decimal("NaN"), [2**70, float("nan")], "\ud800",
     [2**70, "\ud800"], {1: 2}, {2**70: 1}, b"x", {1, 2}, object(), NESTED, [10**5000]],
)  # fmt: skip
def test_not_written(value: Any) -> None:
    """What has no JSON form is rejected, not written as something else (R34)."""
    with pytest.raises(ValueError, match=r".+"):
        write_json(value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b"1", b"1.0", True),
        (b"1e400", b"10e399", True),
        (b"1", b"true", False),
        (b"0", b"false", False),
        (b'"1"', b"1", False),
        (b"null", b"false", False),
        (b'{"a":1,"b":2}', b'{"b":2, "a":1}', True),
        (b'{"a":1}', b'{"b":1}', False),
        (b"[1,2]", b"[2,1]", False),
        (b"[1]", b"[1,1]", False),
        (b"[true,[]]", b"[true,[ ]]", True),
        (b"[]", b"{}", False),
        (DIGITS.encode(), DIGITS.encode() + b".0", True),
        (b"1e9999999999999999999999", b"1e9999999999999999999999", True),
        (b"1e9999999999999999999999", b"1", False),
    ],
)
def test_same_json(one: bytes, other: bytes, same: bool) -> None:
    """Two texts are the same JSON by value."""
    assert same is same_json(one, other)
    assert is_json_text(one)
