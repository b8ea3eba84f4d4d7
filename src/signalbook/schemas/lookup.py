"""How a schema of a catalog finds another: by its xid, by a name that it declares, by its id beside the one that asks.

Rule 1: the order is the same for everybody who holds a catalog, be it a registry or documents in memory; they say what
is at a place, and who declares a name.
Rule 2: of those that declare a name the one in the group of the schema that asks is meant, else the only one there is;
of several, none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from urllib.parse import unquote, urljoin

from signalbook.schemas.names import is_absolute

__all__ = ["look_up", "meant"]

T = TypeVar("T")


def look_up(uri: str, own: str, at: Callable[[str], T], declared: Callable[[str], T]) -> T | None:
    """What a schema at the xid `own` means by a URI or a name; None where there is none, or several.

    >>> documents = {"/schemagroups/g/schemas/a": 1, "/schemagroups/h/schemas/a": 2}
    >>> names = {"com.x.A": 3}
    >>> own = "/schemagroups/g/schemas/b"
    >>> [look_up(uri, own, documents.get, names.get) for uri in ("/schemagroups/h/schemas/a", "com.x.A", "x/a", "c")]
    [2, 3, 1, None]
    """
    name = uri.partition("#")[0]
    path = _path(name)
    found = at(path) if path is not None else None
    if found is not None or name.startswith("/"):
        return found
    found = declared(name)
    if found is not None or not own or is_absolute(name):
        return found
    return at(urljoin(own, name.rpartition("/")[2]))


def meant(holders: Iterable[set[T]]) -> T | None:
    """Of sets of those that declare a name, the nearest first: the only one of the first set that has any."""
    for found in holders:
        if found:
            return next(iter(found)) if len(found) == 1 else None
    return None


def _path(name: str) -> str | None:
    """A name as the path of an entity; None where it is none. A Protobuf import begins without the slash."""
    if name.startswith("/"):
        return unquote(name)
    return f"/{name}" if name.count("/") in (3, 5) and not is_absolute(name) else None
