"""What a dialect is: the names, shapes and places that it has other ones for than the canonical form.

Rule 1: a row pairs a place `there`, in the dialect, with a place `here`, in the canonical form; steps are separated by
slashes. One list of rows serves both directions.
Rule 2: what a side has no place for stands in a label of it, and that is a row too: a label `0.5.origin` holds what
0.5 called `origin`, a label `1.0.deprecated` what 1.0 calls so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from signalbook.spec.versions import SpecVersion

__all__ = ["AMQP_PROPERTIES", "CANONICAL", "Dialect", "DialectRow", "DialectTable", "Format01", "Level", "Sign"]

Level = Literal["registry", "messagegroup", "message", "schemagroup", "schema", "endpoint", "meta"]


@dataclass(frozen=True, slots=True)
class DialectRow:
    """Where a value stands on either side, and the form it is converted by; `only` limits a row to one direction.

    An empty `here` or `there` leaves it to the form to take and to put what it needs.
    """

    there: str
    here: str
    form: str = "same"
    only: Literal["", "in", "out"] = ""


@dataclass(frozen=True, slots=True)
class DialectTable:
    """The rows of one kind of entity; `assigned` are canonical names that a server gives and the dialect has not."""

    rows: tuple[DialectRow, ...] = ()
    assigned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Format01:
    """A message format of 0.1: the envelope or protocol it stands for, and the rows of its `definition`."""

    rows: tuple[DialectRow, ...]
    envelope: str = ""
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class Sign:
    """What gives a dialect away: a member of this name, and of this JSON type, in an entity of this level.

    With `text` the member has to have this value, with `beside` there has to be a member of that name as well. Signs
    count by `rank`: a name that only some texts have, then a name that the text shares with others.
    """

    level: Literal["", "registry", "group", "message", "schema", "resource", "property"]
    name: str
    kind: type | tuple[type, ...] = object
    text: str = ""
    beside: str = ""
    rank: Literal["name", "shared"] = "name"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One dialect.

    `label` is the `specversion` its documents carry, `prefix` that of the labels for what only it has; `collections`
    are its names of the canonical collections; `options` the rows of `protocoloptions` by canonical protocol. `members`
    are the names of its entities' members that no row has, and that an extension of 1.0 cannot have beside them.
    """

    name: str
    label: str
    title: str
    prefix: str = ""
    written: bool = False
    form: Literal["registry", "catalog"] = "registry"
    collections: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, DialectTable] = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    options: Mapping[str, tuple[DialectRow, ...]] = field(default_factory=dict)
    protocols: Mapping[str, str] = field(default_factory=dict)
    # Names of property types: there -> here, and here -> there; and the timestamp that means "now".
    types: Mapping[str, str] = field(default_factory=dict)
    types_out: Mapping[str, str] = field(default_factory=dict)
    now: str = "0000-01-01T00:00:00Z"
    overrides: bool = False  # a derived message replaces what its base has, instead of being merged with it
    formats: Mapping[str, Format01] = field(default_factory=dict)
    schematypes: Mapping[str, str] = field(default_factory=dict)
    # What the members of an entity have to be, by level: a JSON type, or several.
    shapes: Mapping[str, Mapping[str, type | tuple[type, ...]]] = field(default_factory=dict)
    signs: tuple[Sign, ...] = ()
    modern: bool = False  # it has the names of 1.0
    spec: SpecVersion | None = None


# The built-in model's tree: group collection -> level of its groups, and resource collections with theirs.
CANONICAL: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "messagegroups": ("messagegroup", {"messages": "message"}),
    "schemagroups": ("schemagroup", {"schemas": "schema"}),
    "endpoints": ("endpoint", {"messages": "message"}),
}

# AMQP 1.0 section 3.2.4, in the spelling of 1.0; 0.5's model has underscores for the hyphens, 0.1 has nothing.
AMQP_PROPERTIES = (
    "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
    "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
)  # fmt: skip
