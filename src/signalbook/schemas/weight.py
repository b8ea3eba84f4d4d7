"""How much a schema document holds, counted in its text before anything reads it.

Rule: a document at its format's limit takes about a second to read, which is more than those may take for whom others
wait: the registry while it writes. They keep what is beyond it as it is. No schema that people write comes near.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SECOND", "reading_steps", "too_large"]

# The steps (`budget`) that a document at its limit takes, and what each takes besides.
SECOND, _EACH = 100_000, 50


@dataclass(frozen=True, slots=True)
class _Limit:
    """How often a sign may stand in a text, and what it stands for."""

    sign: bytes
    most: int
    what: str


_LIMITS: dict[str, tuple[_Limit, ...]] = {
    "jsonschema": (_Limit(b"{", 40_000, "objects"), _Limit(b"true", 200_000, "times true")),
    "avro": (_Limit(b"{", 30_000, "objects"), _Limit(b'"', 800_000, "quotes")),
    # What the compiler takes, which refuses more; libxml2 has no bound of its own.
    "protobuf": (_Limit(b"{", 4_000, "blocks"), _Limit(b";", 20_000, "statements")),
    "xsd": (_Limit(b"<", 100_000, "tags"),),
    "jsonstructure": (_Limit(b"{", 15_000, "objects"),),
}


def too_large(family: str, text: bytes) -> str:
    """The words for what a document of a format's family has too much of; empty where it is within the limits.

    >>> too_large("protobuf", b"enum E { A = 0; }" * 5000)
    'The document has more than the 4,000 blocks that are checked'
    """
    for limit in _LIMITS.get(family, ()):
        if text.count(limit.sign) > limit.most:
            return f"The document has more than the {limit.most:,} {limit.what} that are checked"
    return ""


def reading_steps(family: str, text: bytes) -> int:
    """The steps that it takes to read a document of a format's family.

    >>> reading_steps("xsd", b"<a/>" * 1000)
    1050
    """
    shares = (text.count(limit.sign) / limit.most for limit in _LIMITS.get(family, ()))
    return _EACH + int(SECOND * max(shares, default=0))
