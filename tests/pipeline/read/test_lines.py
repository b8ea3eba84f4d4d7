import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.read.inputs import InputFile, share_out
from signalbook.pipeline.read.lines import Elements, Split, read_split
from signalbook.pipeline.read.records import Record

LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"").replace(b"[", b"")), max_size=20)


def records(path: Path, *splits: Split, largest: int = 1 << 20) -> list[Record]:
    """What is read of a file."""
    return [record for split in splits or [Split(str(path))] for record in read_split(split, largest)]


@given(LINES, st.integers(1, 40), st.booleans())
def test_parts_of_a_file_give_each_line_once(tmp_path_factory, lines: list[bytes], part: int, ends: bool) -> None:  # type: ignore[no-untyped-def]
    """However a file of lines is cut, each line that is not blank comes once, exactly as it stands, with its place."""
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    content = b"\n".join(lines) + (b"\n" if ends else b"")
    path.write_bytes(content)
    splits = [split for task in share_out([InputFile(str(path), len(content), 0)], part) for split in task]
    found = records(path, *splits)
    assert [line for line in content.split(b"\n") if line.strip(b" \t\r\n")] == [record.data for record in found]
    assert all(content[record.position :].startswith(record.data or b"") for record in found)


def test_a_line_that_is_too_long(tmp_path: Path) -> None:
    """A line beyond the bound is one record without its bytes, by place, length and hash; its neighbours are whole."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"first\n" + b"x" * 5_000_000 + b"\nlast")
    first, long, last = records(path, largest=1000)
    assert (b"first", b"last") == (first.data, last.data)
    assert (None, 6, 5_000_000) == (long.data, long.position, long.length)
    assert hashlib.sha256(b"x" * 5_000_000).hexdigest() == long.sha256
    assert "longer than 1,000 bytes" in str(long.reason)


def test_a_batch_file(tmp_path: Path) -> None:
    """Each element of a batch file is a record; what is not an element is one that says so."""
    path = tmp_path / "a.json"
    path.write_bytes(b'\n[{"a": 1},\n {"b": [2, "]"]}, oops, {"c"')
    *whole, cut = records(path)
    assert [b'{"a": 1}', b'{"b": [2, "]"]}', b"oops"] == [record.data for record in whole]
    assert (b'{"c"', "the batch ends too early") == (cut.data, cut.reason)


def test_a_cut_gzip(tmp_path: Path) -> None:
    """The lines before the cut are records, the rest is one record that says what happened."""
    path = tmp_path / "a.jsonl.gz"
    content = gzip.compress(b"".join(b'{"n":%d}\n' % number for number in range(50_000)), 1)
    path.write_bytes(content[: len(content) - 2000])
    found = records(path)
    whole = [record for record in found if record.reason is None]
    assert list(range(len(whole))) == [json.loads(record.data or b"")["n"] for record in whole]
    (cut,) = found[len(whole) :]
    assert str(cut.reason).startswith("the compressed file ends too early")
    assert (cut.data or b"").startswith(b'{"n":')
    told = bytes.fromhex(str(cut.reason).partition(" is the bytes ")[2])
    assert path.read_bytes().endswith(told)


EVENTS = [b'{"n":%d,"text":"%d"}' % (number, number * number) for number in range(300)]


def _one_flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


_CHECKED = zstandard.ZstdCompressor(write_checksum=True).compress
_FRAME = zstandard.ZstdCompressor(write_content_size=False)


def _in_blocks(lines: list[bytes]) -> bytes:
    """A frame of Zstandard with a block for each of some lines."""
    writer = _FRAME.compressobj()
    parts = [writer.compress(line) + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for line in lines]
    return b"".join(parts) + writer.flush()


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("gz", lambda text: (_one_flipped(gzip.compress(text), -8 % len(gzip.compress(text))), 300, -8)),
        ("gz", lambda text: (gzip.compress(text)[:-3], 300, -5)),
        ("gz", lambda text: (gzip.compress(text) + b"garbage", 300, -7)),
        ("gz", lambda text: (text, 0, -len(text))),
        ("gz", lambda text: (b"\n", 0, -1)),
        ("zst", lambda text: (zstandard.compress(text)[:-10], 0, -len(zstandard.compress(text)) + 10)),
        ("zst", lambda text: (_one_flipped(_CHECKED(text), len(_CHECKED(text)) - 2), 300, -4)),
        ("zst", lambda text: (zstandard.compress(text) + b"some garbage", 300, -12)),
        ("zst", lambda text: (text, 0, -len(text))),
    ],
)
def test_a_damaged_file(tmp_path: Path, ending: str, damage: Any, ends: bool) -> None:
    """All that stands before the damage is read; the rest of the file is one record, byte for byte."""
    content, good, left = damage(b"\n".join(EVENTS) + (b"\n" if ends else b""))
    path = tmp_path / f"a.jsonl.{ending}"
    path.write_bytes(content)
    *whole, rest = records(path)
    assert EVENTS[:good] == [record.data for record in whole]
    assert all(record.reason is None for record in whole)
    data = rest.data or b""
    # The mark of a block's end gives nothing, and may have a byte of its own.
    assert data in (content[left:], content[left - 1 :])
    assert (len(data), hashlib.sha256(data).hexdigest()) == (rest.length, rest.sha256)
    assert "the compressed file" in str(rest.reason)


def test_damage_among_blocks(tmp_path: Path) -> None:
    """A frame of Zstandard gives the blocks before the damaged one."""
    lines = [line + b"\n" for line in EVENTS]
    content = _in_blocks(lines)
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(content[: len(content) // 2] + b"\xff" * 50)
    found = records(path)
    whole = [record.data for record in found if record.reason is None]
    assert len(whole) > 100
    assert EVENTS[: len(whole)] == whole
    assert len(found) == len(whole) + 1
    assert (found[-1].data or b"").endswith(b"\xff" * 50)


def test_damage_within_a_line_and_within_an_element(tmp_path: Path) -> None:
    """The line or element at the damage is a record, and the rest of the file is another."""
    for name, text in (("a.jsonl.gz", b'{"a":1}\n{"b":'), ("b.json.gz", b'[{"a":1},{"b":')):
        content = gzip.compress(text)
        (tmp_path / name).write_bytes(_one_flipped(content, len(content) - 6))
        whole, cut, rest = records(tmp_path / name)
        assert (b'{"a":1}', None) == (whole.data, whole.reason)
        assert b'{"b":' == cut.data
        assert cut.reason == rest.reason is not None
        assert _one_flipped(content, len(content) - 6)[-8:] == (rest.data or b"")[-8:]
        assert len({record.position for record in (whole, cut, rest)}) == 3


def test_a_rest_that_is_too_long(tmp_path: Path) -> None:
    """The rest of a damaged file beyond the bound is kept by its length and hash."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"one\n") + b"garbage" * 1_000_000)
    whole, rest = records(path, largest=1000)
    assert b"one" == whole.data
    assert (None, 7_000_000, hashlib.sha256(b"garbage" * 1_000_000).hexdigest()) == (
        rest.data,
        rest.length,
        rest.sha256,
    )


@pytest.mark.parametrize("text", [b'{"a":1}\n{"b":2}\n', b'[{"a":1},\n{"b":2}]'])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_byte_order_mark(tmp_path: Path, text: bytes, ending: str) -> None:
    """One mark at the beginning of a file is passed over; places are those in the file."""
    content = b"\xef\xbb\xbf" + text
    path = tmp_path / f"a.jsonl{ending}"
    path.write_bytes(gzip.compress(content) if ending else content)
    found = records(path)
    assert [b'{"a":1}', b'{"b":2}'] == [(record.data or b"").strip() for record in found]
    assert all(content[record.position :].lstrip().startswith((record.data or b"").strip()) for record in found)


def test_a_second_byte_order_mark(tmp_path: Path) -> None:
    """Only one mark is passed over, and only at the beginning; alone it is not a record."""
    mark = b"\xef\xbb\xbf"
    (tmp_path / "a.jsonl").write_bytes(mark + mark + b"x\n" + mark + b"y")
    assert [mark + b"x", mark + b"y"] == [record.data for record in records(tmp_path / "a.jsonl")]
    (tmp_path / "b.jsonl").write_bytes(mark)
    assert [] == records(tmp_path / "b.jsonl")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """A file that vanished is one record."""
    (gone,) = records(tmp_path / "gone.jsonl")
    assert (None, "the file is gone") == (gone.data, gone.reason)


def test_an_empty_file(tmp_path: Path) -> None:
    """Nothing gives nothing, compressed or not."""
    for name, content in (("a.jsonl", b""), ("b.jsonl", b" \n\n"), ("c.gz", b""), ("d.json", b"[]")):
        (tmp_path / name).write_bytes(content)
        assert [] == records(tmp_path / name)


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


def test_what_is_not_a_batch_is_left() -> None:
    """A batch that is cut, or that something follows, gives its elements and then the rest."""
    assert ([(b"1", 1)], (b'{"a"', 3, "the batch ends too early")) == split(b'[1,{"a"', 2)
    assert ([(b"1", 1)], (b"{}", 3, "something outside of the batches is not a batch")) == split(b"[1]{}", 9)
    assert ([], (b"1}", 1, "the brackets of the batch do not fit")) == split(b"[1}", 9)


def test_an_endless_element_is_given_up() -> None:
    """What has no end does not fill the memory."""
    found, left = split(b'["' + b"x" * 100_000, 1000, largest=4096)
    assert [] == found
    assert left is not None
    assert len(left[0]) < 20_000
