import gzip
import hashlib
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.inputs import Listed, share_out
from signalbook.pipeline.reading import Record, Split, read_split

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
    splits = [split for task in share_out([Listed(str(path), len(content), 0)], part) for split in task]
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
    """Each element of a batch file is a record; what is no element is one that says so."""
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
    *whole, cut = records(path)
    assert list(range(len(whole))) == [json.loads(record.data or b"")["n"] for record in whole]
    assert "ends too early" in str(cut.reason)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """A file that vanished is one record."""
    (gone,) = records(tmp_path / "gone.jsonl")
    assert (None, "the file is gone") == (gone.data, gone.reason)


def test_an_empty_file(tmp_path: Path) -> None:
    """Nothing gives nothing, compressed or not."""
    for name, content in (("a.jsonl", b""), ("b.jsonl", b" \n\n"), ("c.gz", b""), ("d.json", b"[]")):
        (tmp_path / name).write_bytes(content)
        assert [] == records(tmp_path / name)
