"""The names by which other schemas may refer to a schema, read from its text alone.

Rule 1: JSON Schema and JSON Structure are known by the absolute `$id` of the document, Avro by the full names of the
types at its top. Protobuf and XML Schema are files, known by where they are and by nothing in their text.
Rule 2: a text that cannot be read has no names; whether it has its format others judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import orjson

from signalbook.schemas.format import unmarked

__all__ = ["MOST_NAMES", "is_absolute", "names_of"]

MOST_NAMES = 100
_LONGEST = 1000


def names_of(family: str, text: bytes) -> tuple[str, ...]:
    """The names of a document of a format's family.

    >>> names_of("avro", b'{"type": "record", "name": "Address", "namespace": "com.x", "fields": []}')
    ('com.x.Address',)
    >>> names_of("jsonschema", b'{"$id": "https://x.example/address#"}')
    ('https://x.example/address',)
    """
    declared = _DECLARED.get(family)
    if declared is None:
        return ()
    try:
        document = orjson.loads(unmarked(text))
    except orjson.JSONDecodeError:
        return ()
    return tuple(name for name in islice(declared(document), MOST_NAMES) if len(name) <= _LONGEST)


def _id(document: Any) -> Iterator[str]:
    name = document.get("$id") if isinstance(document, dict) else None
    if isinstance(name, str) and is_absolute(name):
        yield name.partition("#")[0]


def is_absolute(name: str) -> bool:
    """Whether a name is an absolute URI."""
    try:
        return bool(urlsplit(name).scheme)
    except ValueError:
        return False


def _full_names(document: Any) -> Iterator[str]:
    for one in document if isinstance(document, list) else [document]:
        name = one.get("name") if isinstance(one, dict) and one.get("type") in _NAMED else None
        if isinstance(name, str):
            namespace = one.get("namespace")
            yield f"{namespace}.{name}" if "." not in name and isinstance(namespace, str) and namespace else name


_NAMED = ("record", "error", "enum", "fixed")
_DECLARED: dict[str, Callable[[Any], Iterator[str]]] = {
    "jsonschema": _id,
    "jsonstructure": _id,
    "avro": _full_names,
}
