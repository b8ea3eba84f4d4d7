"""URIs and URI-references by the grammar of RFC 3986 (appendix A), and nothing wider.

Rule: a text is tested, never changed; what RFC 3987 allows beyond ASCII is not a URI.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

__all__ = ["is_absolute_uri", "is_uri_reference", "remembered_reference", "remembered_uri"]

_ESCAPED = "%[0-9A-Fa-f]{2}"
_UNRESERVED_AND_SUB = r"A-Za-z0-9\-._~!$&'()*+,;="


def _many(characters: str) -> str:
    # Possessive: no text makes the match go back over what it has taken.
    return f"(?:[{characters}]++|{_ESCAPED})"


_PCHAR = _many(_UNRESERVED_AND_SUB + ":@")
_IP_LITERAL = rf"\[(?:([0-9A-Fa-f:.]+)|[vV][0-9A-Fa-f]+\.[{_UNRESERVED_AND_SUB}:]+)\]"
_HOST = f"(?:{_IP_LITERAL}|{_many(_UNRESERVED_AND_SUB)}*+)"
_AUTHORITY = f"//(?:{_many(_UNRESERVED_AND_SUB + ':')}*@)?{_HOST}(?::[0-9]*)?"
_SEGMENTS = f"(?:/{_PCHAR}*+)*+"
_ROOTED = f"/(?:{_PCHAR}++{_SEGMENTS})?"
_TAIL = rf"(?:\?{_many(_UNRESERVED_AND_SUB + ':@/?')}*+)?(?:#{_many(_UNRESERVED_AND_SUB + ':@/?')}*+)?"
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+.\-]*+:(?:{_AUTHORITY}{_SEGMENTS}|{_ROOTED}|{_PCHAR}++{_SEGMENTS}|)"
_RELATIVE = f"(?:{_AUTHORITY}{_SEGMENTS}|{_ROOTED}|{_many(_UNRESERVED_AND_SUB + '@')}++{_SEGMENTS}|)"
_absolute = re.compile(_ABSOLUTE + _TAIL).fullmatch
_reference = re.compile(f"(?:{_ABSOLUTE}|{_RELATIVE}){_TAIL}").fullmatch


def is_absolute_uri(text: str) -> bool:
    """Whether the text is a URI with a scheme; a fragment may follow, as schema references have one."""
    return _address_holds(_absolute(text))


def is_uri_reference(text: str) -> bool:
    """Whether the text is a URI or a relative reference."""
    return _address_holds(_reference(text))


def _address_holds(found: re.Match[str] | None) -> bool:
    """Whether it matched and an IPv6 address in it is one."""
    if found is None:
        return False
    address = next((text for text in found.groups() if text is not None), None)
    if address is not None:
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            return False
    return True


# A producer's sources and schemas are few and come again with every event.
remembered_uri = lru_cache(1024)(is_absolute_uri)
remembered_reference = lru_cache(4096)(is_uri_reference)
