"""What a message definition is once its bases and its group have had their say: the definition that rules judge.

Rule 1: maps merge deep, arrays and scalars replace, the nearer definition wins, null removes what was inherited.
Rule 2: the payload schema is one piece: who sets `dataschema`, `dataschemauri` or `dataschemaxid` inherits none of the
three.
Rule 3: a definition with metadata of an envelope, or with options of a protocol, that names none has its group's, or
else that of a group of its bases, the nearest first (message/spec.md, Message Groups: all messages inside a group use
the same envelope and the same protocol).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from signalbook.document.property_names import aligned
from signalbook.document.spelling import to_canonical
from signalbook.spec.builtin import MESSAGE

__all__ = ["INHERITED", "MAX_CHAIN", "SELECTORS", "chosen", "derived", "merge", "message_of", "nearest", "whole"]

Attributes = Mapping[str, Any]

MAX_CHAIN = 100  # definitions in one basemessage chain; a longer one is a mistake, and each write walks it
# What rules look at of that which a definition may have from its base.
INHERITED = frozenset(
    {
        *("basemessage", "envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
        *("dataschema", "dataschemaformat", "dataschemauri", "dataschemaxid", "datacontenttype"),
    }
)
_SCHEMA = ("dataschema", "dataschemauri", "dataschemaxid")
# What of a definition is for the envelope, and what for the protocol, that it has.
SELECTORS = (
    ("envelope", frozenset({"envelopemetadata", "envelopeoptions"})),
    ("protocol", frozenset({"protocoloptions"})),
)
_FRAMING = "dataschemaframing"
_MAX_DEPTH = 64


def merge(base: Attributes, nearer: Attributes) -> dict[str, Any]:
    """What `nearer` is once it inherits from `base`."""
    if any(name in nearer for name in _SCHEMA):
        base = {name: value for name, value in base.items() if name not in _SCHEMA}
    return _merged({name: value for name, value in base.items() if name != "basemessage"}, aligned(base, nearer), 0)


def _merged(base: Attributes, nearer: Attributes, depth: int) -> dict[str, Any]:
    merged = dict(base)
    for name, value in nearer.items():
        inherited = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif depth == 0 and name in _SCHEMA:
            merged[name] = value
        elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
            merged[name] = _merged(inherited if isinstance(inherited, Mapping) else {}, value, depth + 1)
        else:
            merged[name] = value
    return merged


def derived(base: Attributes, own: Attributes, group: Attributes, subject: str = "") -> tuple[Attributes, Attributes]:
    """A definition's own attributes, spelled as what it inherits wants them, and the definition that they make."""
    selected = _selectors({**base, **own}, group)
    own = _spelled(own, selected)
    return own, chosen(merge(_spelled(base, selected), own), group, subject)


def chosen(document: Attributes, group: Attributes, subject: str = "") -> Attributes:
    """The definition with its group's envelope or protocol, where it has metadata of one and does not name it.

    How payloads are framed, too, is the group's to say where the message does not.
    """
    found = _selectors(document, group)
    if isinstance(framing := group.get(_FRAMING), str):
        found[_FRAMING] = framing
    added = {name: value for name, value in found.items() if name not in document}
    return to_canonical(MESSAGE, {**document, **added}, subject) if added else document


def _selectors(document: Attributes, group: Attributes) -> dict[str, str]:
    """The envelope and the protocol that a definition has: those it states or inherits, else its group's."""
    found = {}
    for selector, metadata in SELECTORS:
        named = document.get(selector)
        if selector not in document and not metadata.isdisjoint(document):
            named = group.get(selector)
        if isinstance(named, str):
            found[selector] = named
    return found


def _spelled(attributes: Attributes, selected: Mapping[str, str]) -> Attributes:
    """Attributes as the envelope and the protocol want them that they do not state themselves."""
    added = {name: value for name, value in selected.items() if name not in attributes}
    if not added:
        return attributes
    spelled = to_canonical(MESSAGE, {**attributes, **added})
    return {name: value for name, value in spelled.items() if name not in added}


def message_of(xid: str) -> str:
    """The xid of the message that an xid is, or is a version of."""
    return xid.partition("/versions/")[0]


def whole(xid: str, attrs: Attributes, group: Attributes, lookup: Callable[[str], Attributes | None]) -> Attributes:
    """The definition at an xid as it is matched; `attrs` themselves where nothing is inherited.

    `lookup` gives the attributes of a message or of a group. A chain is followed as far as it leads.
    """
    base = attrs.get("basemessage")
    if not isinstance(base, str) or not base.startswith("/"):
        return chosen(attrs, group, xid)
    chain = [(xid, attrs, group)]
    seen = {message_of(xid)}
    while isinstance(base, str) and base.startswith("/") and len(chain) < MAX_CHAIN:
        message = message_of(base)
        found = lookup(base) if message not in seen else None
        if found is None:
            break
        seen.add(message)
        chain.append((base, found, lookup(message.rsplit("/", 2)[0]) or {}))
        base = found.get("basemessage")
    document: Attributes | None = None
    for place, own, owner in reversed(chain):
        document = chosen(own, owner, place) if document is None else derived(document, own, owner, place)[1]
    assert document is not None, "a chain has at least the definition itself"
    return chosen(document, nearest([owner for _, _, owner in chain]), xid)


def nearest(groups: Iterable[Attributes]) -> dict[str, str]:
    """The envelope and the protocol of groups, the nearest first, of which the first that states one says which."""
    found: dict[str, str] = {}
    for group in groups:
        for selector, _ in SELECTORS:
            if isinstance(stated := group.get(selector), str) and stated:
                found.setdefault(selector, stated)
    return found
