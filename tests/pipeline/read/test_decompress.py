import gzip
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.read.decompress import CODECS, Damaged, decompressed

WRITERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}


def read(content: bytes, ending: str, size: int) -> tuple[bytes, str | None]:
    """What could be read, and what was wrong."""
    found, damage = taken(content, ending, size)
    return found, None if damage is None else str(damage)


def taken(content: bytes, ending: str, size: int) -> tuple[bytes, Damaged | None]:
    """What could be read, and the damage that ended it."""
    chunks = (content[at : at + size] for at in range(0, len(content), size))
    read = b""
    try:
        for part in decompressed(chunks, CODECS[ending]):
            read += part
    except Damaged as error:
        return read, error
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


def rest_of(content: bytes, ending: str, size: int) -> tuple[bytes, bytes]:
    """What could be read, and what was not read of the compressed file."""
    found, damage = taken(content, ending, size)
    return found, b"" if damage is None else b"".join(damage.rest)


@given(
    st.binary(max_size=2000),
    st.sampled_from(sorted(WRITERS)),
    st.integers(0, 5000),
    st.binary(max_size=20),
    st.integers(1, 999),
)
def test_whatever_is_damaged(text: bytes, ending: str, at: int, garbage: bytes, size: int) -> None:
    """Up to where the damage begins nothing is lost: what was read and what is left of the file have it all."""
    whole = WRITERS[ending](text)
    at %= len(whole) + 1
    content = whole[:at] + garbage
    read, rest = rest_of(content, ending, size)
    assert content.endswith(rest)
    if not garbage:
        assert text.startswith(read)
    if at == len(whole):
        assert read.startswith(text)
    again, _ = rest_of(content[: len(content) - len(rest)], ending, size)
    assert read == again


def test_a_frame_to_be_skipped() -> None:
    """Frames of Zstandard that are to be skipped give nothing, and one that is too long is damage."""
    skipped = (0x184D2A53).to_bytes(4, "little")
    content = skipped + (5).to_bytes(4, "little") + b"12345" + zstandard.compress(b"text")
    assert (b"text", None) == read(content, ".zst", 3)
    assert "is to be skipped" in str(read(skipped + b"\xff" * 4, ".zst", 3)[1])


def test_what_holds_nothing_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header without end is not read for ever."""
    monkeypatch.setattr("signalbook.pipeline.read.decompress._MOST_BARREN", 1000)
    content = b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"name" * 1000
    assert "the compressed file is damaged: more than 1,000 bytes hold nothing" == read(content, ".gz", 100)[1]
    assert content == rest_of(content, ".gz", 100)[1]


@pytest.mark.parametrize(("log", "read_whole"), [(27, True), (28, False), (31, False)])
def test_a_window_has_a_bound(log: int, read_whole: bool) -> None:
    """A frame that asks for a window of more than 128 MiB is damaged, and all of it is kept."""
    magic = (0xFD2FB528).to_bytes(4, "little")
    frame = magic + bytes([0, log - 10 << 3]) + b"\x19\x00\x00" + b"abc"  # a raw block of three bytes, the last
    found, damage = taken(frame, ".zst", 1000)
    if read_whole:
        assert (b"abc", None) == (found, damage)
    else:
        assert damage is not None
        assert (b"", frame) == (found, b"".join(damage.rest))
