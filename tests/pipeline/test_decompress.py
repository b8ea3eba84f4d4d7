import gzip

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.decompress import CODECS, Damaged, decompressed

WRITERS = {".gz": gzip.compress, ".zst": zstandard.compress}


def read(content: bytes, ending: str, size: int) -> tuple[bytes, str | None]:
    """What could be read, and what was wrong."""
    chunks = (content[at : at + size] for at in range(0, len(content), size))
    read = b""
    try:
        for part in decompressed(chunks, CODECS[ending]):
            read += part
    except Damaged as error:
        return read, str(error)
    return read, None


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=3), st.sampled_from(sorted(WRITERS)), st.integers(1, 99))
def test_what_was_compressed_comes_back(parts: list[bytes], ending: str, size: int) -> None:
    """Several compressed files one behind the other are one."""
    content = b"".join(WRITERS[ending](part) for part in parts)
    assert (b"".join(parts), None) == read(content, ending, size)


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_a_cut_file_gives_what_it_has(ending: str) -> None:
    """A file that was cut gives a beginning of its content, and then says so."""
    whole = b"".join(b"line %d\n" % number for number in range(20_000))
    content = WRITERS[ending](whole)
    found, words = read(content[: len(content) // 2], ending, 1000)
    assert whole.startswith(found)
    assert words == "the compressed file ends too early"


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_what_is_not_compressed_is_damaged(ending: str) -> None:
    """A file that only has the name of a compressed one is told as damaged."""
    assert "damaged" in str(read(b"plain text, really", ending, 100)[1])
