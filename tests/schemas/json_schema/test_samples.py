"""Texts for patterns."""

import pytest

from signalbook.schemas.json_schema.samples import text_for


@pytest.mark.parametrize(
    ("pattern", "shortest", "expected"),
    [
        ("", 0, ""),
        ("^$", 0, ""),
        ("^abc$", 0, "abc"),
        ("^a?b*c+$", 0, "c"),
        ("^(a|b)\\1$", 0, "aa"),
        ("^(?:x|y)z$", 0, "xz"),
        ("^[a-f][^a-z][^\\d\\s][\\w-]$", 0, "a0aa"),
        ("^[^\\w]$", 0, "-"),
        ("^\\d\\D\\s\\S\\w\\W$", 0, "0a aa-"),
        ("^.[^x]$", 0, "aa"),
        ("^[^a]$", 0, "0"),
        ("^a*?b$", 0, "b"),
        ("^a+$", 4, "aaaa"),
        ("^x", 3, "xaa"),
        ("^a$", 2, None),
        ("a{3000}", 0, None),
        ("(a{900}){900}", 0, None),
        ("[", 0, None),
        ("a" * 20_000, 0, None),
        ("^(?=b)a$", 0, None),
        ("(" * 5000, 0, None),
        ("^(?!a)b$", 0, "b"),
    ],
)
def test_a_text_that_a_pattern_takes(pattern: str, shortest: int, expected: str | None) -> None:
    """A text is found that the pattern takes and that is long enough, or none; a hostile pattern ends soon."""
    assert expected == text_for(pattern, shortest)
