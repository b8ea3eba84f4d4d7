import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.read.records import Elements

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def split(text: bytes, size: int, largest: int = 1 << 20) -> tuple[list[tuple[bytes, int]], Any]:
    """The elements of a text that comes in chunks, and what was left."""
    elements = Elements(largest)
    found = [one for at in range(0, len(text), size) for one in elements.take(text[at : at + size])]
    return found, elements.finish()


@given(st.lists(st.lists(VALUES), min_size=1, max_size=3), st.integers(1, 40), st.sampled_from([None, 1]))
def test_every_element_is_found(arrays: list[list[Any]], size: int, indent: int | None) -> None:
    """However an array is written and cut into chunks, its elements come out with their places."""
    text = "\n".join(json.dumps(array, indent=indent) for array in arrays).encode()
    found, left = split(text, size)
    assert left is None
    assert [value for array in arrays for value in array] == [json.loads(element) for element, _ in found]
    assert all(text[position:].lstrip().startswith(element) for element, position in found)


def test_what_is_no_batch_is_left() -> None:
    """A batch that is cut, or that something follows, gives its elements and then the rest."""
    assert ([(b"1", 1)], (b'{"a"', 3, "the batch ends too early")) == split(b'[1,{"a"', 2)
    assert ([(b"1", 1)], (b"{}", 3, "something that is not a batch stands outside of one")) == split(b"[1]{}", 9)
    assert ([], (b"1}", 1, "the brackets of the batch do not fit")) == split(b"[1}", 9)


def test_an_endless_element_is_given_up() -> None:
    """What has no end does not fill the memory."""
    found, left = split(b'["' + b"x" * 100_000, 1000, largest=4096)
    assert [] == found
    assert left is not None
    assert len(left[0]) < 20_000
