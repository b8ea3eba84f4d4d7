"""Writes of Confluent's API on the registry, all of one request in one transaction and under one name.

Rule 1: every write is one of the registry's, so that events, replication and the other APIs see it. Schemas were judged
before; what the registry itself would say of them it notes.
Rule 2: to delete is to hide, here alone: messages may refer to the version. To delete for good is to delete on the
registry, and is refused while other schemas or messages refer to it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.registry import rows, schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import DEFAULT, SubjectVersion, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.registry.write.versions import Ask
from signalbook.schemas.canonical import Content, Reference, format_of
from signalbook.server.confluent import scopes
from signalbook.server.confluent.calls import ConfluentError
from signalbook.server.confluent.subjects import invalid, no_subject

__all__ = ["SubjectWriter"]


class SubjectWriter:
    """The writes of one request."""

    def __init__(self, requests: Requests, db: Connection, base: str) -> None:
        self._requests = requests
        self._db = db
        self._base = base
        self._correlation = requests.correlation()

    def add(self, context: str, subject: str, content: Content, number: int, id_: int = 0) -> SubjectVersion:
        """Add a version to a subject, with an id of its own where one is given."""
        db = self._db
        xid = schema_ids.subject_of(db, context, subject) or self._new_schema(context, subject)
        every = schema_ids.versions(db, context, subject)
        before = [one for one in every if one.number < number]
        ancestor = ([one for one in before if not one.deleted] or before)[-1:]
        body: dict[str, Any] = {
            "format": format_of(content.type, content.text),
            "schemabase64": base64.b64encode(content.text.encode("utf-8", "surrogatepass")).decode(),
            "contenttype": "text/plain" if content.type == "PROTOBUF" else "application/json",
            self._requests.spec.ancestor: _versionid(ancestor[0]) if ancestor else str(number),
        }
        if xid.rpartition("/")[2] != subject:
            body["confluentsubject"] = subject
        if content.references:
            body["confluentreferences"] = [self._stored(context, one) for one in content.references]
        if content.metadata:
            body["confluentmetadata"] = content.metadata
        if content.rules:
            body["confluentruleset"] = content.rules
        if id_:
            body["confluentid"] = id_
        path = f"{xid}/versions/{self._free_versionid(xid, number)}"
        if id_ or not path.endswith(f"/{number}"):
            body["confluentversion"] = number
        self.put("PUT", path, body)
        after = next((one for one in every if one.number > number), None)
        if after is not None:
            changed = {self._requests.spec.ancestor: path.rpartition("/")[2]}
            self.put("PATCH", f"{xid}/versions/{_versionid(after)}", changed)
        if not every:
            self.set_level(context, subject, scopes.load(db, (context, subject))[0].get(scopes.LEVEL))
        found = schema_ids.version_of(db, rows.VERSION + path.lower())
        if found is None or found.number != number:
            raise ConfluentError(50001, f"the schema was not entered at {path}")
        return found

    def _free_versionid(self, xid: str, number: int) -> str:
        """The id of a new version: its number, unless a version of another number has that."""
        if rows.load(self._db, rows.version_key(xid, str(number))) is None:
            return str(number)
        return f"{number}-{schema_ids.DEFAULT_GROUP}"

    def _stored(self, context: str, one: Reference) -> dict[str, Any]:
        db = self._db
        where, subject = split_name(one.subject, context)
        found = next((each for each in schema_ids.versions(db, where, subject) if each.number == one.version), None)
        row = rows.load(db, found.key) if found is not None else None
        return {**one.shown(), **({"xid": row.xid} if row is not None else {})}

    def _new_schema(self, context: str, subject: str) -> str:
        """The xid of the schema that a new subject will be; its group is made where it is not there."""
        db = self._db
        group = schema_ids.group_of(db, context)
        if group is None:
            chosen = schema_ids.contexts_of(db)

            def is_group(id_: str) -> bool:
                return rows.load(db, rows.group_key(f"/{schema_ids.GROUPS}/{id_}")) is not None

            if context == DEFAULT:
                group = f"/{schema_ids.GROUPS}/{chosen.group}"
                self.put("PUT", group, {})
            else:
                group = f"/{schema_ids.GROUPS}/{schema_ids.free_id(context, is_group)}"
                self.put("PUT", group, {"confluentcontext": context})

        def is_schema(id_: str) -> bool:
            return rows.load(db, rows.resource_key(f"{group}/{schema_ids.SCHEMAS}/{id_}")) is not None

        return f"{group}/{schema_ids.SCHEMAS}/{schema_ids.free_id(subject, is_schema)}"

    def put(self, method: str, path: str, body: Any) -> None:
        """One write of the registry, which leaves the judgement of schemas to this API."""
        requests = self._requests
        begun = requests.begin_write(self._db, method, path, "", self._base, self._correlation, judged=True)
        try:
            requests.finish_write(begun, body, Ask(method == "PATCH", None, begun.context.target.kind == "meta"))
        except RegistryError as error:
            if error.name == "mismatched_version_attribute":
                words = "all versions of a subject have one format in this registry, and this one is in another"
                raise invalid(f"{words}: register it under another subject") from None
            raise

    def set_level(self, context: str, subject: str, level: str | None) -> None:
        """Let the schema state the level of its subject, where that is there."""
        db = self._db
        xid = schema_ids.subject_of(db, context, subject)
        if xid is None:
            return
        row = rows.load(db, rows.resource_key(xid))
        wanted = level.lower() if level and level != "NONE" else None
        stated = orjson.loads(row.doc).get("compatibility") if row is not None else None
        if row is not None and stated != wanted:
            self.put("PATCH", f"{xid}/meta", {"compatibility": wanted})

    # ---- deleting

    def delete(self, context: str, subject: str, permanent: bool) -> list[int]:
        """Hide all versions of a subject, or take it away for good; the numbers of the versions."""
        db = self._db
        every = schema_ids.versions(db, context, subject)
        if not every:
            raise no_subject(context, subject)
        live = [one for one in every if not one.deleted]
        self._check_mode(context, subject)
        name = name_in(context, subject)
        if not permanent:
            if not live:
                words = f"Subject '{name}' was soft deleted. Set permanent=true to delete permanently"
                raise ConfluentError(40404, words)
            self._check_references(live, own=(context, subject), every=False)
            for one in live:
                self._hide(one)
            return [one.number for one in live]
        if live:
            raise ConfluentError(40405, f"Subject '{name}' was not deleted first before being permanently deleted")
        self._check_references(every, own=(context, subject), every=True)
        self._check_messages(every)
        xid = schema_ids.subject_of(db, context, subject)
        self.put("DELETE", xid or "", None)
        scopes.delete_scope(db, (context, subject))
        return [one.number for one in every]

    def delete_version(self, context: str, subject: str, number: int, permanent: bool) -> int:
        """Hide a version, or take it away for good; its number."""
        db = self._db
        every = schema_ids.versions(db, context, subject)
        if not every or (number == -1 and all(one.deleted for one in every)):
            raise no_subject(context, subject)
        live = [one for one in every if not one.deleted]
        found = live[-1] if number == -1 else next((one for one in every if one.number == number), None)
        if found is None:
            raise ConfluentError(40402, f"Version {number} not found.")
        self._check_mode(context, subject)
        name = f"Subject '{name_in(context, subject)}' Version {found.number}"
        if not permanent:
            if found.deleted:
                raise ConfluentError(40406, f"{name} was soft deleted. Set permanent=true to delete permanently")
            self._check_references([found], own=None, every=False)
            self._hide(found)
            return found.number
        if not found.deleted:
            raise ConfluentError(40407, f"{name} was not deleted first before being permanently deleted")
        self._check_references([found], own=None, every=True)
        self._check_messages([found])
        row = rows.load(db, found.key)
        assert row is not None
        if len(every) == 1:
            self.put("DELETE", "/".join(row.xid.split("/")[:5]), None)
            scopes.delete_scope(db, (context, subject))
        else:
            self.put("DELETE", row.xid, None)
        return found.number

    def _hide(self, version: SubjectVersion) -> None:
        row = rows.load(self._db, version.key)
        assert row is not None
        self.put("PATCH", row.xid, {"confluentdeleted": True})

    def _check_mode(self, context: str, subject: str) -> None:
        mode = scopes.find_mode(self._db, (context, subject))
        if mode not in ("READWRITE", "IMPORT"):
            raise ConfluentError(42205, f"Subject {name_in(context, subject)} is in {mode.lower()} mode")

    def _check_references(self, found: Sequence[SubjectVersion], own: tuple[str, str] | None, every: bool) -> None:
        for one in found:
            for other in schema_ids.referrers(self._db, one.context, one.subject, one.number):
                if (every or not other.deleted) and (other.context, other.subject) != own:
                    named = f"{{magic=1,keytype=SCHEMA,subject={one.subject},version={one.number}}}"
                    by = f"version {other.number} of {name_in(other.context, other.subject)}"
                    raise ConfluentError(42206, f"One or more references exist to the schema {named}: {by}")

    def _check_messages(self, found: Sequence[SubjectVersion]) -> None:
        """Refuse to take away what messages of the catalog refer to."""
        keys = [one.key for one in found]
        users = _users_of(self._db, keys)
        if users:
            named = ", ".join(users[:5])
            raise ConfluentError(42206, f"One or more references exist to the schema: messages refer to it: {named}")


def _users_of(db: Connection, keys: Sequence[str]) -> list[str]:
    """The xids of the messages that refer to one of these versions, or to their schema."""
    wanted: dict[str, None] = {}
    for key in keys:
        wanted[key[1:]] = None
        wanted["/".join(key[1:].split("/")[:5])] = None
    found: list[str] = []
    for xid, doc in db.execute(
        "SELECT xid, doc FROM entities WHERE type IN ('messagegroups/messages/versions',"
        " 'endpoints/messages/versions') AND doc LIKE '%dataschema%' ORDER BY key"
    ):
        attrs = orjson.loads(doc)
        for name in ("dataschemaxid", "dataschemauri"):
            stated = str(attrs.get(name) or "").partition("#")[0].lower()
            if any(stated == one or stated.endswith(one) for one in wanted if stated):
                found.append(xid.rpartition("/versions/")[0])
                break
    return list(dict.fromkeys(found))


def _versionid(version: SubjectVersion) -> str:
    return version.key.rpartition("/")[2]
