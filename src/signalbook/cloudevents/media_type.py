"""Media types: what `datacontenttype` may say, and what follows for the data.

Rule: the text stays as it is; type, subtype and parameter names compare without case (RFC 2045 section 5.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["EVENT", "EVENT_BATCH", "JSON", "MediaType", "read_media_type", "remembered_media_type"]

EVENT = "application/cloudevents+json"
EVENT_BATCH = "application/cloudevents-batch+json"
JSON = "application/json"

# RFC 2045 section 5.1 `token`; quoted values are printable ASCII, so that a content type can be a header as it is.
_TOKEN = r"[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_PARAMETER = rf" *; *({_TOKEN})=({_TOKEN}|{_QUOTED})"
_matches = re.compile(rf"({_TOKEN}/{_TOKEN})((?:{_PARAMETER})*)").fullmatch
_parameters = re.compile(_PARAMETER).finditer
_LONGEST_KEPT = 200


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type without its parameters, in lower case, and the parameters that say something to us."""

    name: str
    is_json: bool
    charset: str | None = None


def read_media_type(text: str) -> MediaType | None:
    """The media type that the text is; None where it is none."""
    return remembered_media_type(text) if len(text) <= _LONGEST_KEPT else _read(text)


def _read(text: str) -> MediaType | None:
    found = _matches(text)
    if found is None:
        return None
    name = found[1].lower()
    charset = None
    for parameter in _parameters(found[2]):
        if parameter[1].lower() == "charset":
            charset = re.sub(r"\\(.)", r"\1", parameter[2][1:-1]) if parameter[2][0] == '"' else parameter[2]
            break
    return MediaType(name, name.endswith(("/json", "+json")), charset)


# The same few content types come again and again.
remembered_media_type = lru_cache(1024)(_read)
