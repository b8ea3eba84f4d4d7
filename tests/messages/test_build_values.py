"""Values that a build is given."""

from decimal import Decimal
from typing import Any

import pytest

from signalbook.errors import Problem, UsageError
from signalbook.messages.build import context_texts, json_flaws, read_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{}", {}),
        (b'{"context": null, "data": null}', {"data": None}),
        (b'{"attributes": {"a": 1, "b": true, "c": "x"}}', {"attributes": {"a": 1, "b": True, "c": "x"}}),
        (b'{"data": 12345678901234567890}', {"data": 12345678901234567890}),
        (b'{"data": 0.1234567890123456789012345}', {"data": Decimal("0.1234567890123456789012345")}),
        (b'{"schemaid": 7}', {"schemaid": 7}),
        (b'{"protocol": {"protocol": "KAFKA", "topic": "t"}}', {"protocol": {"protocol": "KAFKA", "topic": "t"}}),
    ],
)
def test_values_are_read(text: bytes, expected: dict[str, Any]) -> None:
    """Every member may be left out; data keeps its numbers, and null is data."""
    assert expected == read_values(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not one JSON object"),
        (b"[]", "not one JSON object"),
        (b'{"a"', "not one JSON object"),
        (b'{"data": 1, "data": 2}', "more than once"),
        (b'{"contexts": {}}', "'contexts' is not one of"),
        (b'{"context": []}', "context is an object"),
        (b'{"context": {"a": {}}}', "context is an object"),
        (b'{"protocol": 1}', "protocol is a name"),
        (b'{"schemaid": -1}', "schemaid is -1"),
        (b'{"schemaid": "7"}', 'schemaid is "7"'),
        (b'{"data_base64": "%"}', "not valid Base64"),
        (b'{"data_base64": 5}', "not valid Base64"),
        (b'{"data": 1, "data_base64": ""}', "together"),
        (b'{"data": ' + b"[" * 100_000 + b"}", "not one JSON object"),
    ],
)
def test_what_is_wrong_is_said(text: bytes, words: str) -> None:
    """What is not a set of values is an error in words."""
    with pytest.raises(UsageError, match=words):
        read_values(text)


@pytest.mark.parametrize(
    ("value", "text", "problems"),
    [
        (None, None, []),
        (7, "7", []),
        (Decimal("1.50"), "1.50", []),
        (True, "true", []),
        ([], "x", ["must be a text, a number or a boolean"]),
        (b"a", "x", ["must be a text, a number or a boolean"]),
        (float("nan"), "x", ["is nan, which is not a number"]),
        ("\ud800", "x", ["must be a text without unpaired surrogates"]),
    ],
)
def test_the_values_of_placeholders(value: Any, text: str | None, problems: list[str]) -> None:
    """A placeholder takes a scalar, and None is not a value; something stands in for what is wrong."""
    found: list[Problem] = []
    assert ({} if text is None else {"vin": text}) == context_texts({"vin": value}, found)
    assert [f"vin {words}" for words in problems] == [one.message for one in found]


SHARED = {1: "a"}


@pytest.mark.parametrize(
    ("data", "paths"),
    [
        ({"a": [SHARED, SHARED]}, ["/a/0"]),
        ({"a/b": float("inf"), "c": [Decimal("NaN"), 1]}, ["/a~1b", "/c/0"]),
        ((1.5, "x", None), []),
        ([float("nan")] * 30, [f"/{at}" for at in range(20)]),
    ],
)
def test_what_json_does_not_have(data: Any, paths: list[str]) -> None:
    """Names and numbers that JSON does not have are listed by their places, each object once and at most twenty."""
    assert paths == [path for path, _ in json_flaws(data)]
