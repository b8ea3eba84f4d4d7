"""Values of names that occur many times in a message."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.messages import Catalog
from signalbook.messages.constraint import Named, PropertyConstraint, Several, texts_of
from signalbook.protocols import Message


@pytest.mark.parametrize("length", [3, 100])
def test_the_values_of_a_name(length: int) -> None:
    """Of few pairs and of many, a name has its values in their order."""
    pairs = tuple((f"n{number % 3}", number) for number in range(length))
    named = Named()
    assert [value for name, value in pairs if name == "n1"] == list(named(pairs, "n1"))
    assert [] == list(named(pairs, "other"))


@pytest.mark.parametrize("length", [3, 100])
def test_names_without_case(length: int) -> None:
    """Where case does not count, all spellings of a name are one."""
    pairs = tuple((("Etag", "ETAG", "x")[number % 3], str(number)) for number in range(length))
    assert [value for name, value in pairs if name != "x"] == list(Named(fold=str.lower)(pairs, "eTag"))


@pytest.mark.parametrize("length", [3, 100])
def test_values_are_made_ready(length: int) -> None:
    """A value is given as the reader makes it."""
    pairs = tuple(("n", number) for number in range(length))
    assert [str(number) for number in range(length)] == list(Named(str)(pairs, "n"))


def test_pairs_that_can_change_are_read_again() -> None:
    """A list is sorted again each time, since it may have changed."""
    pairs = [("n", str(number)) for number in range(100)]
    named = Named()
    assert 100 == len(named(pairs, "n"))
    pairs.append(("n", "more"))
    assert 101 == len(named(pairs, "n"))


def test_texts() -> None:
    """Each text is there once; of values with one text, the text itself is preferred."""
    assert {"YQ==": "YQ==", "b": "b"} == Several([b"a", "YQ==", "b", "b"]).texts
    assert ["a", "1"] == list(texts_of(["a", 1, "1", "a"]))


def of_header(values: list[Any], **more: Any) -> Catalog:
    """A catalog of one definition that asks for all these values of one header."""
    headers = [{"name": "h", "value": value, **more} for value in values]
    definition = {"protocol": "KAFKA", "protocoloptions": {"topic": "t", "headers": headers}}
    return Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": definition}}}})


@pytest.mark.parametrize(
    ("values", "more", "outcome", "most"),
    [
        ([f"v{n}" for n in range(500)], {}, "matched", 500),
        ([f"w{n}" for n in range(500)], {}, "nonconformant", 500),
        ([f"v{n}-{{x{n}}}" for n in range(500)], {}, "nonconformant", 500 * 32),
        ([n + 0.5 for n in range(500)], {"type": "number"}, "nonconformant", 500 * 32),
    ],
    ids=["constants that are there", "constants that are not", "templates", "numbers"],
)
def test_many_constraints_on_many_headers(
    monkeypatch: pytest.MonkeyPatch, values: list[Any], more: dict[str, Any], outcome: str, most: int
) -> None:
    """The cost of n constraints on a header that occurs m times is not n times m."""
    judged = 0
    judge = PropertyConstraint._judge

    def counted(*given: Any) -> Any:
        nonlocal judged
        judged += 1
        return judge(*given)

    monkeypatch.setattr(PropertyConstraint, "_judge", counted)
    sent = Message("KAFKA", {"topic": "t", "headers": tuple(("h", f"v{n}".encode()) for n in range(20_000))})
    assert outcome == of_header(values, **more).match(sent).outcome
    assert judged <= most + 10  # the key is looked at a few times, too


def test_a_template_among_many_headers() -> None:
    """Of many values, one of the first 32 that differ has to fit a template; repeated ones count once."""
    catalog = of_header(["order-{id}"])
    headers = (*((("h", b"x"),) * 5000), ("h", b"order-7"))
    assert {"id": "7"} == catalog.match(Message("KAFKA", {"topic": "t", "headers": headers})).context
