"""Which dialect a document is in, by what it contains: the label "1.0-rc2" alone names three texts.

Rule 1: dialects are tried in the order of their table; the first with a sign in the document is it. Signs in the
content go before the label, for documents have been relabelled without being rewritten; names that several texts have
tell something only where there is no label either.
Rule 2: a document without any sign fits all of 1.0, and is taken for what its label says, or for the default.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from signalbook.document.dialects.properties import PROPERTY
from signalbook.errors import Problem
from signalbook.spec.dialects import DIALECTS
from signalbook.spec.dialects.dialect import CANONICAL, RANKS, Dialect, Sign
from signalbook.spec.versions import DEFAULT

__all__ = ["Detection", "detect", "level_of", "relabelled"]


@dataclass(frozen=True, slots=True)
class Detection:
    """A document's dialect, the label it carries, and where the sign that decided was found."""

    dialect: Dialect
    label: str
    why: str


def detect(document: Any) -> Detection:
    """The dialect of a document, or of a part of one."""
    label = document.get("specversion", "") if isinstance(document, dict) else ""
    label = label if isinstance(label, str) else ""
    members = _members(document)
    for rank in RANKS:
        for dialect in DIALECTS.values():
            for sign in dialect.signs:
                if sign.rank == rank and (place := _seen(sign, members)):
                    return Detection(dialect, label, place)
    return Detection(DIALECTS[DEFAULT.name], label, "")


def relabelled(found: Detection) -> Iterator[Problem]:
    """A note where a document has a label that no dialect has: it is taken for something that it does not say."""
    if found.label and found.label not in _LABELS:
        words = f"'{found.label}' is the label of no dialect; the document is read as one of {found.dialect.name}"
        yield Problem("/specversion", "changed", words)


_LABELS = frozenset(dialect.label for dialect in DIALECTS.values())


def _seen(sign: Sign, members: dict[tuple[str, str], list[tuple[Any, str]]]) -> str:
    if sign.beside and (sign.level, sign.beside) not in members:
        return ""
    for value, place in members.get((sign.level, sign.name), ()):
        if isinstance(value, sign.kind) and (not sign.text or value == sign.text):
            return f"{place or '/'} has '{sign.name}'" + (f" {sign.text}" if sign.text else "")
    return ""


def level_of(document: Any) -> str:
    """What a document holds: a registry, or one entity by itself."""
    if not isinstance(document, dict) or document.keys() & _REGISTRY:
        return "registry"
    for name, level in _LEVELS:
        if name in document:
            return level
    return "message" if document.keys() & _MESSAGE else "registry"


_REGISTRY = CANONICAL.keys() | {"definitionGroups", "schemaGroups", "registryid"}
_LEVELS = (
    ("messagegroupid", "messagegroup"),
    ("schemagroupid", "schemagroup"),
    ("endpointid", "endpoint"),
    ("usage", "endpoint"),
    ("config", "endpoint"),
    ("schemaid", "schema"),
    ("messageid", "message"),
    ("messages", "messagegroup"),
    ("definitions", "messagegroup"),
    ("schemas", "schemagroup"),
)
_MESSAGE = frozenset(
    {"envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions", "basemessage", "basemessageuri"}
    | {"dataschema", "dataschemaformat", "dataschemauri", "dataschemaxid", "datacontenttype", "ancestorid", "ancestor"}
    | {"format", "binding", "metadata", "message", "basemessageurl", "schemaformat", "schemaurl", "definition", "xref"}
)
_KINDS = {"messagegroup": "group", "schemagroup": "group", "endpoint": "group", "registry": "registry"}
_COLLECTIONS = {
    "registry": (*CANONICAL, "definitionGroups", "schemaGroups"),
    "group": ("messages", "definitions", "schemas"),
    "resource": ("versions",),
}
_BELOW = {"registry": "group", "group": "resource", "resource": "resource"}
_PROPERTIES = ("metadata", "envelopemetadata", "message", "protocoloptions")


def _members(document: Any) -> dict[tuple[str, str], list[tuple[Any, str]]]:
    """Every distinct member by level and name; of values of one name, the first of each text or type."""
    found: dict[tuple[str, str], list[tuple[Any, str]]] = defaultdict(list)
    kept: set[tuple[str, str, object]] = set()
    roots = document if isinstance(document, list) else [document]
    for root in roots:
        if not isinstance(root, dict):
            continue
        level = _KINDS.get(level_of(root), "resource")
        for name, value in root.items():  # a document's own members count as the registry's too: of 0.1, or a label
            found["registry", name].append((value, ""))
        for kind, name, value, place in _walk(root, level, ""):
            mark = (kind, name, value if isinstance(value, str) and len(value) < 32 else type(value))
            if mark not in kept:
                kept.add(mark)
                found[kind, name].append((value, place))
    return found


def _walk(entity: dict[str, Any], level: str, place: str) -> Iterator[tuple[str, str, Any, str]]:
    for name, value in entity.items():
        yield level, name, value, place
        if name in _PROPERTIES and level == "resource" and isinstance(value, dict):
            yield from _properties(value, f"{place}/{name}", 4)
        elif name in _COLLECTIONS[level]:
            below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            for key, member in below:
                if isinstance(member, dict):
                    yield from _walk(member, _BELOW[level], f"{place}/{name}/{key}")


def _properties(value: Any, place: str, depth: int) -> Iterator[tuple[str, str, Any, str]]:
    for key, member in value.items():
        if isinstance(member, dict):
            if member.keys() <= PROPERTY:
                for name, text in member.items():
                    yield "property", name, text, f"{place}/{key}"
            elif depth:
                yield from _properties(member, f"{place}/{key}", depth - 1)
