"""Writing the parts of catalog documents into a registry, whatever order they refer to each other in.

Rule 1: a registry refuses a schema that refers to one it does not have. So a part that is refused for its documents
waits until all others are written, and is tried again as long as that gets any of those that wait in.
Rule 2: those left may refer to each other in a circle: they go in one request, as far as its size allows; what is
refused then is wrong by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.sources.parts import Entry, Part

__all__ = ["REFERRING", "Writing"]

Groups = dict[str, dict[str, Mapping[str, Any]]]
"""Groups without their resources, by the plural of their type and their id."""

# What is refused for documents that a schema refers to, and may be taken once these are there.
REFERRING = frozenset({"compatibility_violation", "format_violation"})


class Writing:
    """Sends parts, at once or when what they refer to is there; `max_bytes` bounds a request, 0 means no bound."""

    def __init__(self, send: Callable[[Part], object], max_bytes: int = 0) -> None:
        self._send = send
        self._max_bytes = max_bytes
        self._waiting: list[tuple[Part, RegistryError]] = []
        self._held: dict[str, RegistryError] = {}

    def write(self, part: Part) -> None:
        """Send a part; where it has to wait, later parts of its groups wait too."""
        if part.path in self._held:
            self._waiting.append((_joined({}, part.entries), self._held[part.path]))
        elif not self._sent(part):
            error = self._waiting[-1][1]
            self._held.update((f"/{plural}/{groupid}", error) for plural in part.body for groupid in part.body[plural])

    def finish(self) -> None:
        """Send what waits, or raise why the registry does not take it."""
        while self._waiting:
            tried, self._waiting = self._waiting, []
            if not sum(self._sent(part) for part, _ in tried):
                self._release()

    def _sent(self, part: Part) -> bool:
        try:
            self._send(part)
        except RegistryError as error:
            if error.name not in REFERRING or not part.entries:
                raise
            self._waiting.append((part, error))
            return False
        return True

    def _release(self) -> None:
        """Get on where all that waits is refused: in one request if that is not too large, else in smaller parts."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) == 1:
            raise waiting[0][1]
        entries = [entry for part, _ in waiting for entry in part.entries]
        if not self._max_bytes or sum(len(orjson.dumps(entry.resource)) for entry in entries) <= self._max_bytes:
            self._send(_merged([part for part, _ in waiting]))
        elif len(waiting) == len(entries):
            raise waiting[0][1]
        else:
            self._waiting = [(half, error) for part, error in waiting for half in _halves(part)]


def _merged(parts: Sequence[Part]) -> Part:
    alone: Groups = {}
    for part in parts:
        for plural, groups in _alone(part).items():
            alone.setdefault(plural, {}).update(groups)
    merged = _joined(alone, [entry for part in parts for entry in part.entries])
    merged.groups = sum(part.groups for part in parts)
    return merged


def _halves(part: Part) -> Iterator[Part]:
    middle = (len(part.entries) + 1) // 2
    first = _joined(_alone(part), part.entries[:middle])
    first.groups = part.groups
    yield first
    if part.entries[middle:]:
        yield _joined({}, part.entries[middle:])


def _alone(part: Part) -> Groups:
    """The groups of a part without their resources; some may have none."""
    alone = {plural: dict(groups) for plural, groups in part.body.items()} if part.path == "/" else {}
    for entry in part.entries:
        alone.setdefault(entry.plural, {})[entry.groupid] = entry.group
    return alone


def _joined(alone: Groups, entries: Sequence[Entry]) -> Part:
    """One part that writes these groups and resources."""
    part = Part(resources=len(entries), entries=list(entries))
    for plural, groups in alone.items():
        part.body[plural] = {groupid: dict(group) for groupid, group in groups.items()}
    for entry in entries:
        group = part.body.setdefault(entry.plural, {}).setdefault(entry.groupid, dict(entry.group))
        group.setdefault(entry.collection, {})[entry.resourceid] = entry.resource
    return part
