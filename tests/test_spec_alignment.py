"""The tables agree with the specification's text, as our digest of its rules has it."""

import re
from pathlib import Path

import pytest

from signalbook.spec.error_types import ERROR_TYPES

DIGEST = Path(__file__).resolve().parent.parent.parent / "shared" / "spec" / "xregistry-rules.md"
ROW = re.compile(
    r"^\| `(?P<name>\w+)`(?P<http> \(http\.md\))? \| (?P<status>\d+) [^|]*"
    r"\| [^|]*\| (?P<args>[^|]*) \| (?P<title>.*) \|$"
)

pytestmark = pytest.mark.skipif(not DIGEST.is_file(), reason="the digest of the specification is not here")


def rows() -> list[re.Match[str]]:
    """The rows of the digest's error table."""
    found = (ROW.match(line) for line in DIGEST.read_text(encoding="utf-8").splitlines())
    return [row for row in found if row]


def test_all_errors_are_there() -> None:
    """The table has the specification's 66 errors and no other of that origin."""
    names = [row["name"] for row in rows()]
    assert len(names) == 66
    assert sorted(names) == sorted(row.name for row in ERROR_TYPES.values() if row.origin == "specification")


def test_each_error_is_as_the_text_has_it() -> None:
    """Status, document, arguments and title are the text's; `header_error` has its detail as an argument too."""
    for row in rows():
        own = ERROR_TYPES[row["name"]]
        args = set() if row["args"] == "-" else set(row["args"].split(", "))
        args |= {"error_detail"} if own.name == "header_error" else set()
        assert (int(row["status"]), args, row["title"]) == (own.status, set(own.args), own.title), own.name
        assert ("http" if row["http"] else "spec") == own.document, own.name
