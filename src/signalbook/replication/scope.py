"""Which part of a catalog is copied, and under which names.

Rule: a scope is the xid of what is copied with all below it; a mapping gives groups other ids at the target, and no two
the same. References to what is renamed are renamed along, in the attributes that the specification makes references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from signalbook.dialects.rows import to_id
from signalbook.errors import UsageError

__all__ = ["ReplicationScope", "entity_of"]

_REFERENCES = frozenset({"basemessage", "dataschemauri", "dataschemaxid", "messagegroups", "xref"})


@dataclass(frozen=True, slots=True)
class ReplicationScope:
    """What is copied: `xid` and all below, with groups renamed by `groups` (ids, or `messagegroups/a`)."""

    xid: str = "/"
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, xid: str, mappings: tuple[str, ...]) -> ReplicationScope:
        """The scope that a user names; `A=B` renames a group."""
        steps = _of_01(xid.rstrip("/").split("/")[1:])
        if not xid.startswith("/") or len(steps) > 4 or not all(steps):
            raise UsageError(f"'{xid}' is not a scope; write / or the xid of a group, such as /messagegroups/orders")
        groups: dict[str, str] = {}
        for mapping in mappings:
            old, mark, new = mapping.partition("=")
            if not (mark and old and new) or ("/" in old) != ("/" in new) or "/" in old.strip("/").partition("/")[2]:
                raise UsageError(
                    f"'{mapping}' is not a group mapping; write OLD=NEW, or /messagegroups/OLD=/messagegroups/NEW"
                )
            if "/" in old and old.strip("/").split("/")[0] != new.strip("/").split("/")[0]:
                raise UsageError(f"'{mapping}' would move a group into another collection, which is not possible")
            name = new.strip("/").rpartition("/")[2]
            if groups.setdefault(old.strip("/"), name) != name:
                raise UsageError(f"'{mapping}' maps '{old}' a second time; give each group one name")
        for old, new in groups.items():
            for other, name in groups.items():
                if old < other and new.lower() == name.lower() and _may_meet(old, other):
                    raise UsageError(
                        f"'{old}' and '{other}' cannot both be named '{new}'; give each group its own name"
                    )
        return cls("/" + "/".join(steps), MappingProxyType(groups))

    @property
    def name(self) -> str:
        """A text that identifies this scope."""
        return self.xid + "".join(f" {old}={new}" for old, new in sorted(self.groups.items()))

    def holds(self, xid: str) -> bool:
        """Whether an entity is copied: what is below the scope, and the group that a lone resource is in."""
        own, given = self.xid.lower().rstrip("/"), xid.lower()
        return f"{given}/".startswith(own + "/") or (given.count("/") == 2 and own.startswith(given + "/"))

    def holds_renamed(self, xid: str) -> bool:
        """Whether what has this xid at the target may be a copy of what is copied."""
        steps = xid.split("/")
        olds = [
            old.rpartition("/")[2]
            for old, new in self.groups.items()
            if new.lower() == steps[2].lower() and old.rpartition("/")[0] in ("", steps[1])
        ]
        if not olds and self.renamed(xid) != xid:
            return False
        return any(self.holds("/".join([*steps[:2], old, *steps[3:]])) for old in olds or [steps[2]])

    def renamed(self, xid: str) -> str:
        """The xid at the target."""
        if not self.groups or not xid.startswith("/"):
            return xid
        steps = xid.split("/")
        if len(steps) > 2:
            steps[2] = self.groups.get(f"{steps[1]}/{steps[2]}") or self.groups.get(steps[2], steps[2])
        return "/".join(steps)

    def rewritten(self, body: Any) -> Any:
        """An entity's body with its references renamed."""
        if not self.groups or not isinstance(body, dict):
            return body
        return {name: self._value(name, value) for name, value in body.items()}

    def _value(self, name: str, value: Any) -> Any:
        if name in _REFERENCES and isinstance(value, str):
            return self.renamed(value)
        if name in _REFERENCES and isinstance(value, list):
            return [self.renamed(one) if isinstance(one, str) else one for one in value]
        if name in ("meta", "versions"):
            return self.rewritten(value)
        return self.rewritten(value) if isinstance(value, dict) and "createdat" in value else value

    def rewritten_log(self, log: Any) -> Any:
        """A page of a resource's log with the references in it renamed."""
        if not self.groups or not isinstance(log, dict) or not isinstance(log.get("snapshots"), list):
            return log
        renamed = [
            [*one[:2], self.rewritten(one[2])] if isinstance(one, list) and len(one) == 3 else one
            for one in log["snapshots"]
        ]
        return {**log, "snapshots": renamed}


def _of_01(steps: list[str]) -> list[str]:
    """The steps of an xid, also where the path of the 0.1 API was written."""
    if steps[:1] != ["messagecatalog"] or steps[2:3] not in ([], ["messagedefinitions"]):
        return steps
    words = ["messagegroups", "", "messages", ""]
    return [word or to_id(step) for word, step in zip(words, steps[:4], strict=False)] + steps[4:]


def _may_meet(old: str, other: str) -> bool:
    """Whether two names of groups, with or without their collection, may be of one collection."""
    plural, another = old.rpartition("/")[0], other.rpartition("/")[0]
    return not (plural and another) or plural == another


def entity_of(subject: str) -> str | None:
    """The group or resource that an event's subject is, or is a part of; None for what is above groups.

    The versions of the 0.1 catalog are a part of their message.
    """
    steps = subject.split("/")
    if len(steps) in (5, 7) and steps[1] == "messagecatalog":
        return f"/messagegroups/{to_id(steps[2])}/messages/{to_id(steps[4])}"
    if len(steps) == 3 and steps[1] == "messagecatalog":
        return f"/messagegroups/{to_id(steps[2])}"
    if len(steps) < 3 or steps[0]:
        return None
    return "/".join(steps[:5]) if len(steps) >= 5 else "/".join(steps[:3])
