"""What only the 0.1 catalog demands of a write: rules that the registry itself has not.

Rule: they hold for who writes through the API of 0.1. The xRegistry API keeps the model's rules alone, in which these
are attributes like any other; versions keep what they were written with, whatever is written later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from signalbook.document.dialects.catalog_form import format_of
from signalbook.document.dialects.ids import SEGMENT, to_id
from signalbook.errors import Problem, RegistryError
from signalbook.registry import snapshots
from signalbook.registry.registry import Transaction
from signalbook.registry.snapshots import Snapshot
from signalbook.registry.store import Connection
from signalbook.server.catalog01_view import DIALECT, GROUPS, definition_path, definition_xid
from signalbook.spec.dialects.dialect import Row

__all__ = [
    "check_relations",
    "definition_subject",
    "invalid",
    "keep_authority",
    "keep_format",
    "keep_related",
    "loosen",
    "read_definitions",
    "read_versions",
    "refuse_lost",
    "refuse_problems",
    "words_of_01",
]

Json = dict[str, Any]


def invalid(path: str, name: str, words: str) -> RegistryError:
    """The error of a rule that is broken by an attribute."""
    return RegistryError("invalid_attribute", path, name=name, error_detail=words)


# --- documents --------------------------------------------------------------------------------------------------------


def read_definitions(body: Json, path: str) -> list[Json]:
    """The definitions that a group's document holds, each under an id of its own."""
    given = body.get("definitions")
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise invalid(path, "definitions", "must be a list of objects")
    seen: set[str] = set()
    for place, one in enumerate(given):
        if not isinstance(one.get("id"), str) or not SEGMENT.fullmatch(one["id"]):
            raise invalid(path, f"definitions[{place}].id", "must be a segment-nz-nc of RFC 3986, without a slash")
        messageid = to_id(one["id"])
        if messageid in seen:
            raise invalid(path, "definitions", f"must have one definition an id, and '{one['id']}' has several")
        seen.add(messageid)
    return given


def definition_subject(groupid: str, body: Json, path: str) -> str:
    """Where a definition that was sent is in the catalog; the request's own path where it has no id for that."""
    given = body.get("id")
    return definition_path(groupid, to_id(given)) if isinstance(given, str) and SEGMENT.fullmatch(given) else path


def read_versions(body: Json, path: str) -> list[tuple[str, Json]]:
    """The versions that a definition's document holds, the oldest first, each with its place there.

    That is the document itself, at no place, or those of its list.
    """
    common = {name: value for name, value in body.items() if name != "versions"}
    given = body.get("versions")
    if given is None:
        return [("", common)]
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise invalid(path, "versions", "must be a list of at least one version")
    if "definition" in common:
        raise invalid(path, "definition", "must stand in one of the versions, for there is a list of them")
    numbers = [one.get("version", place) for place, one in enumerate(given, 1)]
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise invalid(path, "versions", "must have integers as versions")
    if len(set(numbers)) != len(numbers):
        raise invalid(path, "versions", "must have one version a number")
    found = []
    for _, place in sorted((number, place) for place, number in enumerate(numbers)):
        overridden = {"id", "format", "authority"} & given[place].keys()
        if any(given[place][name] != common.get(name) for name in overridden):
            raise invalid(path, "versions", f"must not override {', '.join(sorted(overridden))}")
        found.append((f"versions[{place}]", {**common, **given[place]}))
    return found


def refuse_problems(problems: Iterator[Problem], body: Json, place: str, path: str) -> None:
    """Refuse a version of a definition by what is wrong first; its place is told unless all versions share that."""
    for problem in problems:
        args = dict(problem.args)
        name = args["name"]
        if place and name.partition(".")[0] not in body:
            args["name"] = f"{place}.{name}"
        raise RegistryError(problem.code, path, **args)


@contextmanager
def words_of_01(xid: str, subject: str, form: str = "") -> Iterator[None]:
    """Tell what the registry refuses of an entity in the names and at the place that 0.1 has for it."""
    try:
        yield
    except RegistryError as error:
        if error.subject not in ("", "/") and not f"{error.subject}/".startswith(f"{xid}/"):
            raise
        args = dict(error.args_)
        if "name" in args:
            args["name"] = _name_in_01(args["name"], form)
        raise RegistryError(error.name, subject, detail=error.detail, **args) from None


# What a `dataschema` of 0.1 has for an attribute of 1.0.
_SCHEMA = {"dataschema": "schema", "dataschemauri": "value", "dataschemaformat": "schematype"}


def _name_in_01(name: str, form: str) -> str:
    """The member of a group, or of a definition of a format, that becomes an attribute of 1.0."""
    known = DIALECT.formats.get(form)
    rows = DIALECT.tables["message" if form else "messagegroup"].rows
    rows += known.rows if known is not None else (Row("definition", "protocoloptions"),)
    top = name.partition(".")[0]
    for row in rows:
        if row.form == "dataschema" and top in _SCHEMA:
            return f"{row.there}.{_SCHEMA[top]}{name[len(top) :]}".replace("/", ".")
    found = [row for row in rows if row.here and re.match(rf"{re.escape(row.here.replace('/', '.'))}(?![^.\[])", name)]
    if not found:
        return name
    row = max(found, key=lambda one: len(one.here))
    return row.there.replace("/", ".") + name[len(row.here) :]


def refuse_lost(notes: Sequence[Problem], path: str) -> None:
    """Refuse a document of which something would not be kept."""
    for note in notes:
        if note.code == "lost":
            raise invalid(path, note.path.strip("/").replace("/", ".") or "definition", note.message)


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
    for _, document in read_versions(body, path):
        other = document.get("relatedto")
        if other and snapshots.latest(db, definition_xid(groupid, to_id(other))) is None:
            raise invalid(path, "relatedto", f"must name a definition of the group; there is no '{other}'")


def keep_related(related: Sequence[str], path: str) -> None:
    """The same section: a definition stays as long as another says that it is related to it."""
    if related:
        detail = f"'{related[0]}' is related to it; delete that first, or post a version of it without 'relatedto'"
        raise RegistryError("bad_request", path, error_detail=detail)
