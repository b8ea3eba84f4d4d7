"""Base messages that are kept elsewhere: followed only to the hosts that were allowed, and to an end.

Rule 1: an absolute `basemessage` is looked up where its host is allowed; all others stay the notes they are.
Rule 2: what is fetched may itself have a base; a relative one belongs to the registry that it came from.
Rule 3: how many are fetched is bounded; what cannot be had, or is no message, is left out and said, for a dangling base
is no error (M-5).
Rule 4: of a message that is fetched only that counts which its author said, as of those in the catalog itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from signalbook.errors import SignalbookError, UsageError
from signalbook.messages.entities import Entities
from signalbook.sources.remote import SourceError, Web, is_address

__all__ = ["MOST", "external_bases", "place_of"]

MOST = 1000
# The spellings of the attribute, by version: 1.0-rc2, 1.0-rc4, 0.5.
SPELLINGS = ("basemessage", "basemessageuri", "basemessageurl")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?:[\w.~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# A message, or a version of one; and what only other entities have.
_XID = re.compile(r"/[^/]+/[^/]+/messages/[^/]+(?:/versions/[^/]+)?")
_OTHER_IDS = ("registryid", "messagegroupid", "endpointid", "schemagroupid", "schemaid")
_log = logging.getLogger("signalbook.sources")

Json = Mapping[str, Any]


def external_bases(documents: Iterable[Json], web: Web, hosts: frozenset[str]) -> dict[str, Json]:
    """By address, the base messages that these documents take from hosts that are allowed, and their bases in turn."""
    if not hosts:
        return {}
    allowed = frozenset(_allowed(host) for host in hosts)
    found: dict[str, Json] = {}
    waiting = [address for document in documents for address in _bases(document)]
    asked: set[str] = set()
    passed: set[str] = set()
    while waiting:
        address = waiting.pop()
        if address in asked or address in passed:
            continue
        if place_of(address) not in allowed:
            passed.add(address)
            _pass_over(address, allowed)
            continue
        if len(asked) >= MOST:
            raise SourceError(f"the catalog takes more than {MOST:,} base messages from elsewhere")
        asked.add(address)
        try:
            message = _message(web.get(address, trusted=False).content, address)
        except SignalbookError as error:
            _log.warning("the base message %s is left out: %s", address, error)
            continue
        found[address] = message
        waiting += _of_message(message)
    return found


# Who may be asked ----------------------------------------------------------------------------------------------------


def place_of(address: str) -> str:
    """The host of an address as `Reach.resolve` names it, with its port where that is not the usual one; or nothing.

    >>> place_of("http://base.example:80/a"), place_of("http://[::1]:8080/a"), place_of("/messagegroups/g")
    ('base.example', '[::1]:8080', '')
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"


def _allowed(host: str) -> str:
    """A host that was named, as `place_of` has it; `UsageError` where it is none."""
    place = place_of(f"http://{host}") if _HOST.fullmatch(host) else ""
    if not place:
        meant = place_of(host) or "base.example:8080"
        raise UsageError(f"'{host}' is no host to take base messages from; name it as in {meant}")
    return place


def _pass_over(address: str, allowed: frozenset[str]) -> None:
    """Say it where the host of an address is allowed, and only its port is not."""
    place = place_of(address)
    if _without_port(place) in {_without_port(one) for one in allowed}:
        _log.warning("the base message %s is not followed: only the host %s would allow it", address, place)


def _without_port(place: str) -> str:
    return re.sub(r":[0-9]+$", "", place)


# What there is to ask for --------------------------------------------------------------------------------------------


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


# What came -----------------------------------------------------------------------------------------------------------


def _message(content: dict[str, Any], address: str) -> Json:
    """What the author of a message said; its relative base names the registry it came from."""
    words = _other_than_message(content)
    if words:
        raise SourceError(f"it is {words}")
    meta = content.get("meta")
    if isinstance(meta, Mapping):
        # Who borrows a message shows its attributes, too.
        content = {**content, "meta": {name: value for name, value in meta.items() if name != "xref"}}
    (entity,) = Entities.of({"messagegroups": {"g": {"messages": {"m": content}}}}).messages.values()
    for problem in entity.problems:
        raise SourceError(problem.message)
    stated = entity.attributes.get("basemessage")
    if isinstance(stated, str) and stated.startswith("/"):
        return {**entity.attributes, "basemessage": f"{_root(content, address)}{stated}"}
    return entity.attributes


def _other_than_message(content: Json) -> str:
    """What it is that came, where that is plainly no message."""
    if not content:
        return "empty"
    if all(isinstance(value, Mapping) and ("xid" in value or "messageid" in value) for value in content.values()):
        return "a collection; name one of its messages"
    xid = content.get("xid")
    if (isinstance(xid, str) and not _XID.fullmatch(xid)) or any(name in content for name in _OTHER_IDS):
        return "no message, but another entity of a registry"
    return ""


def _root(message: Json, address: str) -> str:
    """The address of the registry that a message lies in: what comes before its xid."""
    plain = address.partition("?")[0].partition("#")[0].removesuffix("$details")
    xid = message.get("xid")
    if isinstance(xid, str) and xid and plain.endswith(xid):
        return plain.removesuffix(xid)
    steps = plain.split("/")
    return "/".join(steps[:-4]) if len(steps) > 6 else "/".join(steps[:3])
