"""Which subject the values of a topic belong to: what clients stored, and what the catalog says.

Rule 1: a stored association counts. Where there is none, the catalog is asked: endpoint → topic → message → schema.
Rule 2: the catalog answers only where exactly one subject results, since clients fail on two, and only where there is
no subject `{topic}-value`, which clients find without help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import md5
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import orjson

from signalbook.registry import rows, schema_ids
from signalbook.registry.requests import now
from signalbook.registry.schema_ids import name_in, split_name
from signalbook.registry.store import Connection
from signalbook.server.confluent.calls import ConfluentError

__all__ = ["Associations"]

_KINDS, _LIVES = ("key", "value"), ("STRONG", "WEAK")
_COLUMNS = "resource, kind, association, name, namespace, context, subject, doc"


class Associations:
    """The associations of one registry; `catalog` says whether the catalog is asked."""

    def __init__(self, *, catalog: bool = True) -> None:
        self._catalog = catalog

    # ---- reading

    def of_topic(self, db: Connection, namespace: str, name: str, wanted: Mapping[str, Sequence[str]]) -> list[Any]:
        """The associations of a topic."""
        found = db.execute(f"SELECT {_COLUMNS} FROM schema_associations WHERE name = ? ORDER BY resource", (name,))
        shown = [_shown(one) for one in found if namespace in ("-", one[4])]
        picked = list(_picked(shown, wanted))
        if shown or not self._catalog or wanted.get("resourceType", ["topic"])[0] not in ("topic", ""):
            return picked
        return list(_picked(_derived(db, namespace, name), wanted))

    def of_resource(self, db: Connection, resource: str, wanted: Mapping[str, Sequence[str]]) -> list[Any]:
        """The associations of a resource."""
        found = db.execute(f"SELECT {_COLUMNS} FROM schema_associations WHERE resource = ?", (resource,))
        return list(_picked([_shown(one) for one in found], wanted))

    def of_subject(self, db: Connection, context: str, subject: str, wanted: Mapping[str, Sequence[str]]) -> list[Any]:
        """The associations of a subject."""
        sql = f"SELECT {_COLUMNS} FROM schema_associations WHERE context = ? AND subject = ? ORDER BY resource"
        return list(_picked([_shown(one) for one in db.execute(sql, (context, subject))], wanted))

    def refuse_deleting(self, db: Connection, context: str, subject: str) -> None:
        """Refuse to delete a subject that an association names."""
        found = self.of_subject(db, context, subject, {})
        if found:
            words = f"The subject '{name_in(context, subject)}' is associated with {found[0]['resourceName']}"
            raise ConfluentError(40904, f"{words}; delete the association first")

    # ---- writing

    def save(self, db: Connection, body: Mapping[str, Any], around: str, *, update: bool, dry: bool) -> dict[str, Any]:
        """Create or change the associations of a resource; what was asked for, as it is then."""
        resource, name, namespace = (_text(body, key) for key in ("resourceId", "resourceName", "resourceNamespace"))
        kind = _text(body, "resourceType", "topic")
        if kind != "topic":
            raise _invalid(f"'resourceType' is '{kind}', and only topic is known")
        given = body.get("associations")
        if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
            raise _invalid("'associations' must be a list of at least one object")
        made = []
        seen: set[str] = set()
        for one in given:
            association = _one_of(one, "associationType", _KINDS, "value")
            if association in seen:
                raise _invalid(f"'associations' has two of the type {association}")
            seen.add(association)
            made.append(self._save(db, resource, name, namespace, kind, association, one, around, update, dry))
        head = {"resourceName": name, "resourceNamespace": namespace, "resourceId": resource, "resourceType": kind}
        return {**head, "associations": made}

    def _save(
        self, db: Connection, resource: str, name: str, namespace: str, kind: str, association: str,
        one: Mapping[str, Any], around: str, update: bool, dry: bool,
    ) -> dict[str, Any]:  # fmt: skip
        before = db.one(
            f"SELECT {_COLUMNS} FROM schema_associations WHERE resource = ? AND kind = ? AND association = ?",
            (resource, kind, association),
        )
        known = _shown(before) if before is not None else {}
        named = one.get("subject") or known.get("subject")
        if not isinstance(named, str) or not named:
            raise _invalid("an association needs 'subject'")
        context, subject = split_name(named, around)
        lifecycle = _one_of(one, "lifecycle", _LIVES, known.get("lifecycle", "WEAK"))
        frozen = one.get("frozen", known.get("frozen", False)) is True
        if known and not update and (known["subject"], known["lifecycle"]) != (name_in(context, subject), lifecycle):
            raise ConfluentError(40903, f"The resource '{resource}' has another association of the type {association}")
        if known.get("frozen") and known["subject"] != name_in(context, subject):
            raise ConfluentError(40908, f"The association of the type {association} of '{resource}' is frozen")
        if not any(not each.deleted for each in schema_ids.versions(db, context, subject)):
            raise ConfluentError(40907, f"The subject '{name_in(context, subject)}' has no version")
        self._check_strong(db, context, subject, resource, lifecycle)
        doc = {
            "lifecycle": lifecycle,
            "frozen": frozen,
            "createTs": known.get("createTs") or _now(),
            "updateTs": _now(),
        }
        if not dry:
            self._delete(db, resource, kind, association)
            db.execute(
                f"INSERT INTO schema_associations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (resource, kind, association, name, namespace, context, subject, orjson.dumps(doc).decode()),
            )
        shown = {"subject": name_in(context, subject), "associationType": association, "lifecycle": lifecycle}
        return {**shown, **({"frozen": True} if frozen else {})}

    def _check_strong(self, db: Connection, context: str, subject: str, resource: str, lifecycle: str) -> None:
        for one in self.of_subject(db, context, subject, {}):
            if one["resourceId"] != resource and "STRONG" in (one["lifecycle"], lifecycle):
                code = 40904 if one["lifecycle"] == "STRONG" else 40905
                raise ConfluentError(
                    code, f"The subject '{name_in(context, subject)}' belongs to {one['resourceName']}"
                )

    def delete(self, db: Connection, resource: str, kind: str, kinds: Sequence[str], dry: bool) -> None:
        """Take associations of a resource away."""
        found = [
            one["associationType"]
            for one in self.of_resource(db, resource, {"resourceType": [kind] if kind else []})
            if not kinds or one["associationType"] in kinds
        ]
        if not found:
            raise ConfluentError(40410, f"No association was found for the resource '{resource}'")
        for association in found if not dry else ():
            self._delete(db, resource, kind or "topic", association)

    def _delete(self, db: Connection, resource: str, kind: str, association: str) -> None:
        sql = "DELETE FROM schema_associations WHERE resource = ? AND kind = ? AND association = ?"
        db.execute(sql, (resource, kind, association))


def _shown(row: Sequence[Any]) -> dict[str, Any]:
    resource, kind, association, name, namespace, context, subject, doc = row
    more = orjson.loads(doc)
    shown = {
        "subject": name_in(context, subject),
        "guid": _guid(resource, kind, association),
        "resourceName": name,
        "resourceNamespace": namespace,
        "resourceId": resource,
        "resourceType": kind,
        "associationType": association,
        "lifecycle": more["lifecycle"],
        "createTs": more["createTs"],
        "updateTs": more["updateTs"],
    }
    return {**shown, "frozen": True} if more.get("frozen") else shown


def _guid(*parts: str) -> str:
    return str(UUID(bytes=md5("\n".join(parts).encode(), usedforsecurity=False).digest()))


def _picked(found: Sequence[dict[str, Any]], wanted: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Those of some types; an empty wish is none."""
    for one in found:
        asked = ((name, [value for value in wanted.get(name, ()) if value]) for name in
                 ("resourceType", "associationType", "lifecycle"))  # fmt: skip
        if all(not values or one[name] in values for name, values in asked):
            yield one


def _text(body: Mapping[str, Any], name: str, default: str = "") -> str:
    value = body.get(name) or default
    if not isinstance(value, str) or not value:
        raise _invalid(f"'{name}' must be a text that is not empty")
    return value


def _one_of(body: Mapping[str, Any], name: str, known: Sequence[str], default: str) -> str:
    value = body.get(name) or default
    for one in known:
        if isinstance(value, str) and value.upper() == one.upper():
            return one
    raise _invalid(f"'{name}' must be one of {', '.join(known)}")


def _invalid(words: str) -> ConfluentError:
    return ConfluentError(42212, f"Invalid association: {words}")


def _now() -> int:
    from datetime import datetime

    return int(datetime.fromisoformat(now()).timestamp() * 1000)


# ---- what the catalog says


def _derived(db: Connection, namespace: str, topic: str) -> list[dict[str, Any]]:
    """The one association of a topic's values that the catalog makes up; none where it is not one."""
    if schema_ids.versions(db, schema_ids.DEFAULT, f"{topic}-value"):
        return []
    found: dict[tuple[str, str], str] = {}
    for endpoint, message in _messages(db, namespace, topic):
        meant = _subject_of(db, message)
        if meant is not None:
            found.setdefault(meant, endpoint)
    if len(found) != 1:
        return []
    ((context, subject), endpoint), *_ = found.items()
    at = _now()
    return [{
        "subject": name_in(context, subject), "guid": _guid(endpoint, topic, "value"), "resourceName": topic,
        "resourceNamespace": namespace, "resourceId": endpoint, "resourceType": "topic", "associationType": "value",
        "lifecycle": "WEAK", "createTs": at, "updateTs": at,
    }]  # fmt: skip


def _messages(db: Connection, namespace: str, topic: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The endpoint, or the message, that names a topic, with each message that it carries."""
    for xid, attrs in _groups(db, "endpoints"):
        if _is_kafka(attrs) and _topic(attrs) == topic and _is_in(attrs, namespace):
            for _, message in _members(db, xid):
                yield xid, message
            for group in attrs.get("messagegroups") or ():
                for _, message in _members(db, urlsplit(str(group)).path):
                    yield xid, message
    if namespace == "-":
        for plural in ("messagegroups", "endpoints"):
            for xid, message in _members(db, f"/{plural}"):
                if _is_kafka(message) and _topic(message) == topic:
                    yield xid, message


def _groups(db: Connection, plural: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for found in db.execute(rows.SELECT_RANGE, rows.range_of(rows.GROUP, f"/{plural}")):
        row = rows.EntityRow(*found)
        yield row.xid, orjson.loads(row.doc)


def _members(db: Connection, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages below a path, as their default versions have them."""
    for found in db.execute(rows.SELECT_RESOURCES, rows.range_of(rows.RESOURCE, path)):
        resource = rows.EntityRow(*found[: rows.WIDTH])
        if resource.type.endswith("/messages"):
            shown = found[rows.WIDTH :]
            if resource.xref:
                other = rows.load_resource(db, rows.resource_key(resource.xref))
                shown = other[1] if other is not None and other[1] is not None else (None,)
            if shown[0] is not None:
                yield resource.xid, orjson.loads(rows.EntityRow(*shown).doc)


def _is_kafka(attrs: Mapping[str, Any]) -> bool:
    return str(attrs.get("protocol") or "").upper().split("/")[0] == "KAFKA"


def _topic(attrs: Mapping[str, Any]) -> Any:
    options = attrs.get("protocoloptions")
    topic = options.get("topic") if isinstance(options, dict) else None
    return topic.get("value") if isinstance(topic, dict) else topic


def _is_in(attrs: Mapping[str, Any], namespace: str) -> bool:
    if namespace == "-":
        return True
    options = attrs.get("protocoloptions") if isinstance(attrs.get("protocoloptions"), dict) else {}
    return namespace in (attrs.get("labels") or {}).values() or namespace in (options or {}).values()


def _subject_of(db: Connection, message: Mapping[str, Any]) -> tuple[str, str] | None:
    """The subject of the schema that a message refers to."""
    for name in ("dataschemaxid", "dataschemauri"):
        stated = message.get(name)
        if isinstance(stated, str) and stated:
            path = urlsplit(stated.partition("#")[0]).path
            at = path.find(f"/{schema_ids.GROUPS}/")
            if at >= 0:
                found = schema_ids.subject_at(db, "/".join(path[at:].split("/")[:5]))
                if found is not None and any(not one.deleted for one in schema_ids.versions(db, *found[:2])):
                    return found[:2]
    return None
