"""The calls that change something: registering, deleting, configuration, mode, contexts and associations.

Rule: a call is one transaction; what it writes to the registry it writes with the registry's own operations.
Which subject the values of a topic belong to is what clients stored. Where they stored nothing the catalog is asked:
endpoint → topic → message → schema. It answers only where exactly one subject results, since clients fail on two, and
only where there is no subject `{topic}-value`, which clients find without help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import md5
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import orjson

from signalbook.registry import rows, schema_ids
from signalbook.registry.requests import Requests, now
from signalbook.registry.schema_ids import DEFAULT, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.server.confluent import subjects
from signalbook.server.confluent.subjects import (
    ConfluentCall,
    ConfluentError,
    SubjectView,
    check_subject,
    context_of,
    read_request,
    read_version,
)
from signalbook.server.confluent.writing import Registration, SubjectWriter

__all__ = [
    "Associations", "ConfluentChanges",
]  # fmt: skip

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


T = TypeVar("T")


class ConfluentChanges:
    """Answers the calls that change something."""

    def __init__(self, requests: Requests, associations: Associations) -> None:
        self._requests = requests
        self._store = requests.store
        self._subjects = SubjectView()
        self._registration = Registration(requests, self._subjects)
        self._associations = associations

    def _read(self, job: Callable[[Connection], T]) -> T:
        return self._store.read(job)

    def _subject(self, db: Connection, call: ConfluentCall) -> tuple[str, str]:
        return self._subjects.resolve(db, call.parts[0], call.context)

    def register(self, call: ConfluentCall) -> Any:
        """Answer `POST /subjects/{subject}/versions`."""
        sent = read_request(call.body())
        where = self._read(lambda db: self._subject(db, call))
        self._check_writable()
        return self._registration.register(
            *where, sent, normalise=call.flag("normalize"), force=call.flag("force"), base=call.request.base
        )

    def delete_subject(self, call: ConfluentCall) -> Any:
        """Answer `DELETE /subjects/{subject}`."""

        def job(db: Connection) -> list[int]:
            where = self._subject(db, call)
            self._associations.refuse_deleting(db, *where)
            return self._writer(db, call).delete(*where, call.flag("permanent"))

        return self._write(job)

    def delete_version(self, call: ConfluentCall) -> Any:
        """Answer `DELETE /subjects/{subject}/versions/{version}`."""
        number = read_version(call.parts[1])

        def job(db: Connection) -> int:
            where = self._subject(db, call)
            return self._writer(db, call).delete_version(*where, number, call.flag("permanent"))

        return self._write(job)

    def put_config(self, call: ConfluentCall) -> Any:
        """Answer `PUT /config` and `PUT /config/{subject}`."""
        given = subjects.read_config(call.body())
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            self._refuse_read_only(db, scope)
            config, mode = subjects.load_scope(db, scope)
            merged = {**config, **given}
            config = {name: value for name, value in merged.items() if value is not None}
            subjects.save_scope(db, scope, config, mode)
            if scope[1]:
                self._writer(db, call).set_level(*scope, config.get(subjects.LEVEL))
            shown = dict(config)
            if subjects.LEVEL in shown:
                shown = {"compatibility": shown.pop(subjects.LEVEL), **shown}
            return shown

        return self._write(job)

    def delete_config(self, call: ConfluentCall) -> Any:
        """Answer `DELETE /config` and `DELETE /config/{subject}`."""
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            self._refuse_read_only(db, scope)
            config, mode = subjects.load_scope(db, scope)
            if scope == subjects.GLOBAL:
                subjects.save_scope(db, scope, {}, mode)
                return {subjects.LEVEL: subjects.DEFAULT_LEVEL, **config}
            if not config:
                raise ConfluentError(40401, f"Subject '{name_in(*scope)}' not found.")
            subjects.save_scope(db, scope, {}, mode)
            if scope[1]:
                self._writer(db, call).set_level(*scope, None)
            return config

        return self._write(job)

    def _refuse_read_only(self, db: Connection, scope: subjects.Scope) -> None:
        mode = subjects.find_mode(db, scope)
        if mode.startswith("READONLY"):
            raise ConfluentError(42205, f"Subject {name_in(*scope)} is in {mode.lower()} mode")

    def put_mode(self, call: ConfluentCall) -> Any:
        """Answer `PUT /mode` and `PUT /mode/{subject}`."""
        mode = subjects.read_mode(call.body().get("mode"))
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            if mode == "IMPORT" and subjects.load_scope(db, scope)[1] != "IMPORT":
                self._enter_import(db, scope, call)
            config, _ = subjects.load_scope(db, scope)
            subjects.save_scope(db, scope, config, mode)
            return {"mode": mode}

        return self._write(job)

    def _enter_import(self, db: Connection, scope: subjects.Scope, call: ConfluentCall) -> None:
        """Refuse to begin an import where there are subjects already, and clear what is hidden."""
        if call.flag("force"):
            return
        if scope[1]:
            found = [(scope[0], scope[1], all(one.deleted for one in schema_ids.versions(db, *scope)))]
            found = found if schema_ids.versions(db, *scope) else []
        else:
            found = schema_ids.subjects(db, scope[0] or None)
        if any(not hidden for _, _, hidden in found):
            raise ConfluentError(42205, "Cannot import since found existing subjects; use force=true to do so anyway")
        writer = self._writer(db, call)
        for context, subject, _ in found:
            writer.delete(context, subject, True)

    def delete_mode(self, call: ConfluentCall) -> Any:
        """Answer `DELETE /mode` and `DELETE /mode/{subject}`."""
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            config, mode = subjects.load_scope(db, scope)
            if not mode and scope != subjects.GLOBAL:
                raise ConfluentError(40401, f"Subject '{name_in(*scope)}' not found.")
            subjects.save_scope(db, scope, config, "")
            return {"mode": mode or subjects.DEFAULT_MODE}

        return self._write(job)

    def delete_context(self, call: ConfluentCall) -> Any:
        """Answer `DELETE /contexts/{context}`."""
        context = context_of(call.parts[0])

        def job(db: Connection) -> None:
            if schema_ids.subjects(db, context):
                raise ConfluentError(42211, f"The context '{context}' is not empty")
            group = schema_ids.group_of(db, context)
            if group is not None and context != DEFAULT:
                self._writer(db, call).put("PATCH", group, {"confluentcontext": None})
            subjects.delete_scope(db, (context, ""))

        return self._write(job)

    def save_associations(self, call: ConfluentCall) -> Any:
        """Answer `POST /associations` and `PUT /associations/resources/{id}`."""
        body, update = call.body(), call.request.method == "PUT"
        if update and call.parts:
            body = {"resourceId": call.parts[0], **body}
        around = context_of(call.text("context")) if call.text("context") else call.context
        dry = call.flag("dryRun")
        return self._write(lambda db: self._save_associations(db, body, around, update, dry))

    def _save_associations(self, db: Connection, body: Any, around: str, update: bool, dry: bool) -> Any:
        if update and not (body.get("resourceName") and body.get("resourceNamespace")):
            known = self._associations.of_resource(db, str(body.get("resourceId")), {})
            if known:
                kept = {name: known[0][name] for name in ("resourceName", "resourceNamespace", "resourceType")}
                body = {**kept, **body}
        return self._associations.save(db, body, around, update=update, dry=dry)

    def delete_associations(self, call: ConfluentCall) -> Any:
        """Answer `DELETE /associations/resources/{id}`."""
        kinds = [one for one in call.query.get("associationType", ()) if one]
        kind, dry = call.text("resourceType"), call.flag("dryRun")
        return self._write(lambda db: self._associations.delete(db, call.parts[0], kind, kinds, dry))

    def _scope(self, call: ConfluentCall) -> subjects.Scope:
        name = call.parts[0] if call.parts else ""
        scope = subjects.scope_of(name, call.context)
        if scope[1]:
            check_subject(scope[1])
        return scope

    def _write(self, job: Callable[[Connection], T]) -> T:
        self._check_writable()
        return self._requests.write(job, several=True)

    def _writer(self, db: Connection, call: ConfluentCall) -> SubjectWriter:
        return SubjectWriter(self._requests, db, call.request.base)

    def _check_writable(self) -> None:
        if not self._requests.setup(self._store.reader()).capabilities.is_mutable("entities"):
            raise ConfluentError(42205, "This registry does not take writes")
