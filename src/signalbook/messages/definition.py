"""`Definition`: one message definition as it stands once its bases are merged into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbook.errors import Problem
from signalbook.spec.protocols import stated_protocol
from signalbook.wire.fields import pointer

__all__ = ["Definition"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A message definition, materialised.

    `bases` are the definitions it derives from, the nearest first, each with the document it adds; `target` is the
    definition that this one is an alias of; `implied` is what groups give it, each with the group's xid. `notes` are
    bases that could not be followed; with `problems` the definition cannot be used and never matches.
    """

    xid: str
    document: Mapping[str, Any]
    own: Mapping[str, Any] = field(repr=False)
    bases: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), repr=False)
    target: str | None = None
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    implied: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), repr=False)

    @property
    def group(self) -> str:
        """The xid of its group: a message group or an endpoint."""
        return self.xid.rsplit("/", 2)[0]

    @property
    def identity(self) -> str:
        """Its xid, or that of the definition it is an alias of."""
        return self.target or self.xid

    @property
    def derives_from(self) -> tuple[str, ...]:
        """The xids of the definitions it derives from, the nearest first."""
        return tuple(xid for xid, _ in self.bases)

    @property
    def protocol(self) -> str | None:
        """The protocol it is bound to, as definitions spell it."""
        return stated_protocol(self.document.get("protocol"))

    @property
    def envelope(self) -> str | None:
        """The envelope it has."""
        return _text(self.document.get("envelope"))

    def origins(self) -> dict[str, str]:
        """The xid of the definition, or of the group, that each value comes from, by JSON Pointer."""
        layers = ((self.identity, self.own), *self.bases, *self.implied)
        return {path: _origin(steps, layers) for path, steps in _leaves(self.document, "", ())}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _leaves(value: Any, path: str, steps: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Every value that is no map or an empty one; a payload schema is one value."""
    if not isinstance(value, Mapping) or not value or steps == ("dataschema",):
        return [(path, steps)]
    return [leaf for name, member in value.items() for leaf in _leaves(member, pointer(path, name), (*steps, name))]


def _origin(steps: tuple[str, ...], layers: tuple[tuple[str, Mapping[str, Any]], ...]) -> str:
    for xid, layer in layers:
        value: Any = layer
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            return xid
    return layers[0][0]
