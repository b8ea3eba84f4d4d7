from __future__ import annotations

from typing import Any

import pytest

from signalbook.protocols import Typed, WireError

pytest.importorskip("proton", reason="python-qpid-proton is not installed")
from signalbook.clients.amqp import write_value


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
    ids=["no value", "no type", "a negative uint", "no uuid", "no timestamp", "nested"],
)
def test_what_is_no_value(value: Any, path: str) -> None:
    """What is of no type, or not of its own, is refused with its place."""
    with pytest.raises(WireError) as refused:
        write_value(value, "/x")
    assert path == refused.value.problems[0].path
