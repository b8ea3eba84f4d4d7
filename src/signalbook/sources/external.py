"""Base messages that are kept elsewhere: followed only to the hosts that were allowed, and to an end.

Rule 1: an absolute `basemessage` is looked up where its host is allowed; all others stay the notes they are.
Rule 2: what is fetched may itself have a base; a relative one belongs to the registry that it came from.
Rule 3: how many are fetched is bounded; what cannot be had is left out, for a dangling base is no error (M-5).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from signalbook.errors import SignalbookError
from signalbook.sources.remote import SourceError, Web, host_of, is_address

__all__ = ["MOST", "external_bases"]

MOST = 1000
# The spellings of the attribute, by version: 1.0-rc2, 1.0-rc4, 0.5.
SPELLINGS = ("basemessage", "basemessageuri", "basemessageurl")
_log = logging.getLogger("signalbook.sources")

Json = Mapping[str, Any]


def external_bases(documents: Iterable[Json], web: Web, hosts: frozenset[str]) -> dict[str, Json]:
    """By address, the base messages that these documents take from hosts that are allowed, and their bases in turn."""
    if not hosts:
        return {}
    found: dict[str, Json] = {}
    waiting = [address for document in documents for address in _bases(document)]
    asked: set[str] = set()
    while waiting:
        address = waiting.pop()
        if address in asked or host_of(address) not in hosts:
            continue
        if len(asked) >= MOST:
            raise SourceError(f"the catalog takes more than {MOST:,} base messages from elsewhere")
        asked.add(address)
        try:
            message = _within(web.get(address, trusted=False).content, address)
        except SignalbookError as error:
            _log.warning("the base message %s is left out: %s", address, error)
            continue
        found[address] = message
        waiting += _of_message(message)
    return found


def _bases(document: Json) -> Iterator[str]:
    """The absolute bases that the messages of a document state."""
    for groups in _objects(document):
        for group in _objects(groups):
            messages = group.get("messages")
            for message in _objects(messages) if isinstance(messages, Mapping) else ():
                yield from _of_message(message)


def _of_message(message: Json) -> Iterator[str]:
    versions = message.get("versions")
    for entity in (message, *(_objects(versions) if isinstance(versions, Mapping) else ())):
        yield from (value for name in SPELLINGS if isinstance(value := entity.get(name), str) and is_address(value))


def _objects(parent: Json) -> Iterator[Json]:
    return (value for value in parent.values() if isinstance(value, Mapping))


def _within(message: dict[str, Any], address: str) -> Json:
    """A message whose relative base names the registry it came from."""
    root = _root(message, address)
    moved = {
        name: f"{root}{message[name]}"
        for name in SPELLINGS
        if isinstance(message.get(name), str) and message[name].startswith("/")
    }
    return {**message, **moved}


def _root(message: Json, address: str) -> str:
    """The address of the registry that a message lies in: what comes before its xid."""
    plain = address.partition("?")[0].partition("#")[0].removesuffix("$details")
    xid = message.get("xid")
    if isinstance(xid, str) and xid and plain.endswith(xid):
        return plain.removesuffix(xid)
    steps = plain.split("/")
    return "/".join(steps[:-4]) if len(steps) > 6 else "/".join(steps[:3])
