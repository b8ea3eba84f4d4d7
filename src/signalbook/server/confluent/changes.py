"""The calls that change something: registering, deleting, configuration, mode, contexts and associations.

Rule: a call is one transaction; what it writes to the registry it writes with the registry's own operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from signalbook.registry import schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import DEFAULT, name_in
from signalbook.registry.store import Connection
from signalbook.server.confluent import subjects
from signalbook.server.confluent.associations import Associations
from signalbook.server.confluent.calls import ConfluentCall, ConfluentError, context_of
from signalbook.server.confluent.subjects import SubjectView, check_subject, read_request, read_version
from signalbook.server.confluent.writing import Registration, SubjectWriter

__all__ = ["Changes"]

T = TypeVar("T")


class Changes:
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
