from decimal import Decimal
from typing import Any

import pytest

from signalbook.errors import UsageError
from signalbook.messages.build import read_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{}", {}),
        (b'{"context": null, "data": null}', {"data": None}),
        (b'{"attributes": {"a": 1, "b": true, "c": "x"}}', {"attributes": {"a": 1, "b": True, "c": "x"}}),
        (b'{"data": 12345678901234567890}', {"data": 12345678901234567890}),
        (b'{"data": 0.1234567890123456789012345}', {"data": Decimal("0.1234567890123456789012345")}),
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
        (b'{"data_base64": "%"}', "not valid Base64"),
        (b'{"data_base64": 5}', "not valid Base64"),
        (b'{"data": 1, "data_base64": ""}', "together"),
        (b'{"data": ' + b"[" * 100_000 + b"}", "not one JSON object"),
    ],
)
def test_what_is_wrong_is_said(text: bytes, words: str) -> None:
    """Whatever is no set of values is refused in words."""
    with pytest.raises(UsageError, match=words):
        read_values(text)
