"""Protobuf texts and payloads that mean harm: bounded time and memory, a clear problem, no crash."""

import sys
from collections.abc import Iterator

import pytest

from signalbook.schemas import SchemaError
from signalbook.schemas.protobuf import schema as protobuf
from signalbook.schemas.protobuf.compare import compare
from tests.schemas.bounds import bounded

P3 = 'syntax = "proto3"; '
SECONDS = 10.0 if sys.gettrace() is None else 6 * 10.0  # measuring coverage costs several times as much
MEBIBYTES = 1000


@pytest.fixture(autouse=True)
def _bounds() -> Iterator[None]:
    """Each case ends within its time, and the process grows by no more than its memory."""
    with bounded(SECONDS, MEBIBYTES):
        yield


def refused(text: str, words: str) -> None:
    """The text is refused with these words."""
    with pytest.raises(SchemaError, match=words):
        protobuf.read_proto3(text)


LIST = protobuf.read_proto3(P3 + "message L { L n = 1; map<string, L> m = 2; repeated L r = 3; string s = 4; }")


def nested(levels: int) -> bytes:
    """A list of so many links, the innermost first."""
    parts: list[bytes] = []
    size = 0
    for _ in range(levels):
        head, left = b"\x0a", size
        while left > 127:
            head += bytes([left & 127 | 128])
            left >>= 7
        parts.append(head + bytes([left]))
        size += len(parts[-1])
    return b"".join(reversed(parts))


def test_a_long_list() -> None:
    """A payload nested deeper than a hundred levels is refused."""
    assert () == LIST.check(nested(90)).problems
    (problem,) = LIST.check(nested(100_000)).problems
    assert "nested deeper than 100" in problem.message


def test_deep_json() -> None:
    """The same as JSON."""
    assert LIST.check(b'{"n":' * 300 + b"{}" + b"}" * 300, "application/json").problems
    assert LIST.check(b'{"n":' * 100_000 + b"{}" + b"}" * 100_000, "application/json").problems


def test_columns_of_a_list() -> None:
    """A message within itself ends as text."""
    assert "struct<n: string, m: map<string, string>, r: list<element: string>, s: string>" == str(LIST.columns())


def test_a_payload_of_nothing() -> None:
    """A megabyte of empty messages, and one of unknown fields, is read."""
    assert () == LIST.check(b"\x1a\x00" * 500_000).problems
    assert () == LIST.check(b"\x78\x01" * 500_000).problems


def test_groups_that_do_not_end() -> None:
    """Bytes that open a hundred thousand groups are refused."""
    assert LIST.check(b"\x7b" * 100_000).problems


def test_messages_that_double() -> None:
    """Messages that hold the next twice, sixty levels deep, have columns; what is too wide is text."""
    body = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }} " for n in range(60))
    schema = protobuf.read_proto3(P3 + body + "message M60 { string s = 1; }")
    assert "struct<a: string, b: string>" == str(schema.columns())
    assert [] == list(compare(schema, schema))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (P3 + "message M { " * 1000 + "}" * 1000, "too large to be compiled"),
        (P3 + "option (o) = " + "{o:" * 100_000 + "{}" + "}" * 100_000 + ";", "too large to be compiled"),
        (P3 + "option (o) = { o" + "<o" * 100_000 + ">" * 100_000 + "};", "too large to be compiled"),
        (P3 + "option (o) = { o: " + "[" * 100_000 + "]" * 100_000 + "};", "too large to be compiled"),
        (P3 + "".join(f"message M{n} {{}} " for n in range(100_000)), "more than 4000 blocks"),
        (P3 + "message M { reserved " + ", ".join(map(str, range(1, 100_000))) + "; }", "4000 reserved numbers"),
        (P3 + "message M { " + "".join(f"reserved {n}; " for n in range(1, 10_000)) + " }", "4000 reserved numbers"),
        (P3 + "option x = " + "a " * 600_000 + ";", "more than 500000 words"),
        (P3 + "message M { " + "".join(f"int32 f{n} = 1; " for n in range(9_000)) + "}", "already been used"),
        (
            P3 + "message M { " + "".join(f"int32 f{n} = {n + 20_000}; " for n in range(100_000)) + "}",
            "20000 statements",
        ),
        (P3 + "message M { " + "".join(f"int32 f{n} = {n + 20_000}; " for n in range(18_000)) + "}", "cannot be used"),
        ("x" * (11 * 1024 * 1024), "larger than"),
        (P3 + "/* " * 1_000_000, "a comment does not end"),
        (P3 + "/* " * 1_000_000 + "*/", "the beginning of another"),
        (P3 + "\x01" * 5_000_000, "more than 500000 words"),
        (P3 + '"' * 1_000_001, "."),
        (P3 + "message M { int32 \ud800 = 1; }", "."),
    ],
    ids=[
        "messages in messages",
        "options in options",
        "angles in options",
        "lists in options",
        "messages",
        "reserved in one statement",
        "reserved in many",
        "words",
        "numbers used twice",
        "a hundred thousand fields",
        "fields",
        "size",
        "comments that do not end",
        "comments in a comment",
        "signs of no kind",
        "quotes",
        "half a character",
    ],
)
def test_texts(text: str, words: str) -> None:
    """A text beyond the bounds is refused before the compiler could fail on it, with words that say why."""
    refused(text, words)


def test_many_fields() -> None:
    """A message with ten thousand fields is read, checked, compared, and has its columns."""
    numbers = range(1, 10_001)
    text = P3 + "message M { " + "".join(f"int32 f{n} = {n}; " for n in numbers) + "}"
    schema = protobuf.read_proto3(text)
    assert len(numbers) == schema.columns().num_fields
    assert () == schema.check(b"\x08\x01").problems
    assert [] == list(compare(schema, protobuf.read_proto3(text)))


def test_imports_that_never_end() -> None:
    """A catalog whose every text imports one more is asked a bounded number of times."""
    asked = []

    def references(name: str) -> str:
        asked.append(name)
        return P3 + f'import "n{len(asked)}.proto";'

    with pytest.raises(SchemaError, match="neither a well-known type nor in this catalog"):
        protobuf.read_proto3(P3 + 'import "n.proto"; message M { }', references)
    assert len(asked) <= 201


def test_imports_are_bounded_together() -> None:
    """Texts that are each within the bounds, but not all together, are refused."""
    body = "".join(f"message NAME{n} {{}} " for n in range(3000))

    def references(name: str) -> str:
        return P3 + body.replace("NAME", name[0])

    with pytest.raises(SchemaError, match="4000 blocks with imports"):
        protobuf.read_proto3(P3 + 'import "a.proto"; import "b.proto"; message M { }', references)
