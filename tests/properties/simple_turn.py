"""One request on its way: when it is, what it changed so far, what is wrong with it; and what all entities share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Entity = dict[str, Any]
SINGULAR = {"dirs": "dir", "boxes": "box", "files": "file", "versions": "version"}


def new_entity(now: str) -> Entity:
    """An entity without attributes; what is `new` has the epoch it is to have."""
    return {"epoch": 1, "createdat": now, "modifiedat": now, "attrs": {}, "new": False}


class Stop(Exception):
    """Nothing more to find out about a wrong request."""


@dataclass
class Turn:
    """The state of one request."""

    now: str
    patch: bool
    wrong: list[str] = field(default_factory=list)
    touched: list[Entity] = field(default_factory=list)

    def fail(self, name: str) -> None:
        self.wrong.append(name)

    def stop(self, name: str) -> None:
        self.wrong.append(name)
        raise Stop

    def touch(self, entity: Entity) -> None:
        """An entity is changed: its epoch and modifiedat move, once a request."""
        if not any(entity is one for one in self.touched):
            self.touched.append(entity)
            entity["modifiedat"] = self.now

    def there(self, siblings: Entity, id_: str) -> Entity:
        if id_ not in siblings:
            self.stop("not_found")
        entity: Entity = siblings[id_]
        return entity

    def find(self, siblings: Entity, id_: str, parent: Entity) -> Entity:
        """The entity of this id, new where it is missing; ids differ by more than case."""
        if id_ not in siblings:
            if id_.lower() in {other.lower() for other in siblings}:
                self.stop("bad_request")
            entity = siblings[id_] = {**new_entity(self.now), "new": True}
            self.touch(entity)
            self.touch(parent)
        found: Entity = siblings[id_]
        return found

    def write(self, entity: Entity, body: Entity, ids: dict[str, str], system: set[str], known: set[str]) -> None:
        """Times, epoch, ids and attributes of one entity in a request."""
        for name, id_ in ids.items():
            if body.get(name, id_) not in (id_, None):
                self.fail("mismatched_id")
        shown = entity.pop("shown", entity["epoch"])
        if not entity["new"] and body.get("epoch") not in (None, shown):
            self.fail("mismatched_epoch")
        previous = None if entity["new"] else entity.get("stored", entity["modifiedat"])
        self.touch(entity)
        if "createdat" in body:
            entity["createdat"] = body["createdat"] or self.now
        given = body.get("modifiedat")
        entity["modifiedat"] = self.now if given in (None, previous) else given
        attrs = {name: value for name, value in body.items() if name not in system and name not in ids}
        for name, value in attrs.items():
            if value is not None and name not in known:
                self.fail("unknown_attribute")
            if value is not None and (not isinstance(value, dict) if name == "labels" else not isinstance(value, str)):
                self.fail("invalid_attribute")
        merged = {**entity["attrs"], **attrs} if self.patch else attrs
        entity["attrs"] = {name: value for name, value in merged.items() if value is not None}
