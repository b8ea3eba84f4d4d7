from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.jsontext import JsonError, read_members, read_plainly

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
def test_what_is_no_object(document: bytes) -> None:
    """What is not one JSON object is refused in words."""
    with pytest.raises(JsonError, match=r".+"):
        read_members(document)


@pytest.mark.parametrize("document", [b"", b"\xff", b'{"a":NaN}', b"[" * 3000, "é?".encode()])
def test_what_is_no_json(document: bytes) -> None:
    """The patient reader refuses the same, and says at which byte."""
    with pytest.raises(JsonError, match=r".+"):
        read_plainly(document)
