"""A version is a value that a client can name in several ways."""

import pytest

from signalbook.spec.versions import DEFAULT, RC2, RC4, VERSIONS, SpecVersion, find


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.0-rc2", RC2),
        ("1.0-rc4", RC4),
        ("1.0-RC4", RC4),
        ("1.0.7-rc4", RC4),
        ("v1.0.0-rc2", RC2),
        (" 1.0-rc2 ", RC2),
        ("1.0", None),
        ("1.0-rc3", None),
        ("0.5-wip", None),
        ("2.0-rc4", None),
        ("", None),
        ("1.٠-rc4", None),
    ],
)
def test_find(text: str, expected: SpecVersion | None) -> None:
    """FLAGS-8: in any case, the patch number ignored, the suffix not."""
    assert expected is find(text)


def test_the_versions() -> None:
    """1.0-rc2 is the default, 1.0-rc4 the second; each is found under its own name."""
    assert DEFAULT is RC2
    assert [RC2, RC4] == list(VERSIONS.values())
    assert all(find(name) is version and str(version) == name for name, version in VERSIONS.items())


def test_spellings_differ_where_the_texts_do() -> None:
    """The ancestor and the base message have two names."""
    assert ("ancestor", "ancestorid") == (RC2.ancestor, RC4.ancestor)
    assert {"ancestorid": "ancestor"} == dict(RC2.attributes)
    assert {"basemessage": "basemessageuri"} == dict(RC4.attributes)
