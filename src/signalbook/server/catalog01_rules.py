"""What only the 0.1 catalog demands of a write: rules that the registry itself has not.

Rule: they hold for who writes through the API of 0.1. The xRegistry API keeps the model's rules alone, in which these
are attributes like any other; versions keep what they were written with, whatever is written later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signalbook.document.dialects.catalog_form import format_of
from signalbook.document.dialects.ids import to_id
from signalbook.errors import RegistryError
from signalbook.registry import snapshots
from signalbook.registry.registry import Transaction
from signalbook.registry.snapshots import Snapshot
from signalbook.registry.store import Connection
from signalbook.server.catalog01_view import DIALECT, GROUPS, definition_xid

__all__ = [
    "check_relations",
    "invalid",
    "keep_authority",
    "keep_format",
    "keep_related",
    "loosen",
    "read_definitions",
    "read_versions",
]

Json = dict[str, Any]


def invalid(path: str, name: str, words: str) -> RegistryError:
    """The error of a rule that is broken by an attribute."""
    return RegistryError("invalid_attribute", path, name=name, error_detail=words)


# --- documents --------------------------------------------------------------------------------------------------------


def read_definitions(body: Json, path: str) -> list[Json]:
    """The definitions that a group's document holds, each under an id of its own."""
    given = body.get("definitions") or []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise invalid(path, "definitions", "must be a list of objects")
    seen: set[str] = set()
    for one in given:
        messageid = to_id(str(one.get("id", "")))
        if messageid in seen:
            raise invalid(path, "definitions", f"must have one definition an id, and '{one['id']}' has several")
        seen.add(messageid)
    return given


def read_versions(body: Json, path: str) -> list[Json]:
    """The versions that a definition's document holds, the oldest first: itself, or those of its list."""
    common = {name: value for name, value in body.items() if name != "versions"}
    given = body.get("versions")
    if given is None:
        return [common]
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise invalid(path, "versions", "must be a list of at least one version")
    numbers = [one.get("version", place) for place, one in enumerate(given, 1)]
    if not all(isinstance(number, int) for number in numbers):
        raise invalid(path, "versions", "must have integers as versions")
    if len(set(numbers)) != len(numbers):
        raise invalid(path, "versions", "must have one version a number")
    found = []
    for _, place in sorted((number, place) for place, number in enumerate(numbers)):
        overridden = {"id", "format", "authority"} & given[place].keys()
        if any(given[place][name] != common.get(name) for name in overridden):
            raise invalid(path, "versions", f"must not override {', '.join(sorted(overridden))}")
        found.append({**common, **given[place]})
    return found


# --- what stays -------------------------------------------------------------------------------------------------------


def keep_format(known: Json, group: Json, form: str, path: str) -> None:
    """Section 2.1.1: a format is not modified while there are definitions; it then keeps what stands for it."""
    before = format_of(known, DIALECT, {})
    if known.get("messagescount") and before != form:
        raise invalid(path, "format", f"is '{before}' and cannot change while the group has definitions")
    if before == form:
        for name in ("envelope", "protocol"):
            group.pop(name, None)
            if name in known:
                group[name] = known[name]
        if "0.1.format" in (known.get("labels") or {}):
            group["labels"] = {**(group.get("labels") or {}), "0.1.format": form}


def keep_authority(before: Snapshot | None, versions: Sequence[Json], path: str) -> None:
    """Section 2.2.4: the authority of a definition is immutable; a version that leaves it out inherits it."""
    known = before.attrs.get("authority") if before is not None else None
    for message in versions:
        given = message.get("authority")
        if given is None and known is not None:
            message["authority"] = known
        elif before is not None and given != known:
            raise invalid(path, "authority", f"is '{known or 'this catalog'}' and cannot change")


def loosen(tx: Transaction, group: Json, message: Json, form: str, groupid: str) -> None:
    """A group of 0.1 may hold definitions for two versions of a protocol, one of 1.0 states one or none."""
    known = group.get("protocol")
    if known is None or message.get("protocol") in (None, known):
        return
    labels = {**(group.get("labels") or {}), "0.1.format": form}
    tx.patch(f"{GROUPS}/{groupid}", {"protocol": None, "labels": labels})
    group.pop("protocol")


# --- relations --------------------------------------------------------------------------------------------------------


def check_relations(db: Connection, groupid: str, body: Json, path: str) -> None:
    """Section 2.2.4: `relatedto` names a definition of the same group, which may have come with this one."""
    for document in read_versions(body, path):
        other = document.get("relatedto")
        if other and snapshots.latest(db, definition_xid(groupid, to_id(other))) is None:
            raise invalid(path, "relatedto", f"must name a definition of the group; there is no '{other}'")


def keep_related(related: Sequence[str], path: str) -> None:
    """The same section: a definition stays as long as another says that it is related to it."""
    if related:
        detail = f"'{related[0]}' is related to it; delete that first, or post a version of it without 'relatedto'"
        raise RegistryError("bad_request", path, error_detail=detail)
