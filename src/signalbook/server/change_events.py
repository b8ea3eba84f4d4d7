"""Recorded changes as CloudEvents: those of xRegistry's core/events.md, and those of the 0.1 message catalog.

Rule 1: an event's `id` is the cursor of the place behind it, so a client that knows an event knows where to go on.
Rule 2: every change of a message group, of a message's shown version or of the log of its versions is told in the words
of the 0.1 catalog too (section 5.5 of its text): created or updated, or deleted, with the path of its API as subject
and without data. The subject of a version ends in `/version/3`, as that text writes it; its `time` is the version's own
`createdtimeutc`, also where a copy of it came later, and that of a group is its `updatedtimeutc`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from signalbook.document.dialects.ids import from_id
from signalbook.registry import snapshots
from signalbook.registry.change_feed import Change

__all__ = ["attributes_of", "event_of", "expand"]

_XREGISTRY = "io.xregistry."
UPDATED = "io.cloudevents.messagecatalog.updated.v1"
DELETED = "io.cloudevents.messagecatalog.deleted.v1"

_CATALOG: Mapping[str, str] = {
    **dict.fromkeys(
        (f"{entity}.{action}" for entity in ("group", "resource") for action in ("created", "updated")), UPDATED
    ),
    **dict.fromkeys(("group.deprecation", "resource.deprecation"), UPDATED),
    **dict.fromkeys(("group.deleted", "resource.deleted"), DELETED),
    snapshots.CREATED: UPDATED,
    snapshots.DELETED: DELETED,
}
_SUBJECT = re.compile(r"/messagegroups/([^/]+)(?:/messages/([^/]+)(?:/snapshots/([0-9]+))?)?")
# What is recorded for the 0.1 catalog alone.
_OWN = (snapshots.CREATED, snapshots.DELETED)


def expand(recorded: list[list[Any]]) -> list[list[Any]]:
    """Return the recorded events of one request, and behind them those of the 0.1 catalog."""
    told = {}
    for type_, subject, _, *time in recorded:
        if type_ in _CATALOG and (path := _catalog_path(subject)) is not None:
            told[path] = [_CATALOG[type_], path, None, *time]
    return [*(event[:3] for event in recorded if event[0] not in _OWN), *told.values()]


def attributes_of(change: Change, source: str) -> dict[str, Any]:
    """Return the context attributes of an event of the registry at `source`."""
    known = change.type if change.type.startswith("io.") else _XREGISTRY + change.type
    found = {
        "specversion": "1.0",
        "type": known,
        "source": source,
        "subject": change.subject,
        "id": str(change.position),
        "time": change.at,
    }
    if known.startswith(_XREGISTRY):
        found["xregcorrelationid"] = change.correlation
    return found


def event_of(change: Change, source: str) -> dict[str, Any]:
    """Return an event in the JSON format."""
    event = attributes_of(change, source)
    if change.changed is not None:
        event["data"] = {"changed": change.changed}
    return event


def _catalog_path(subject: str) -> str | None:
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        return None
    group, message, number = found.groups()
    path = f"/messagecatalog/{from_id(group)}"
    if message is not None:
        path += f"/messagedefinitions/{from_id(message)}"
    return path if number is None else f"{path}/version/{number}"
