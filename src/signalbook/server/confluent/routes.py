"""The paths of Confluent's API, below `/confluent` and, where that is wanted, at the root.

Rule 1: a subject is one segment of a path and may hold slashes, which arrive decoded; so a path is read by what stands
before and after the subject.
Rule 2: parameters and members that are not known are passed over.
Rule 3: every answer, an error too, is JSON of the type that the client accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson

from signalbook import __version__
from signalbook.jsontext import JsonError, decode_json
from signalbook.registry import schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import DEFAULT, SchemaEntry, SubjectVersion, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.server import http
from signalbook.server.confluent import compatibility, scopes
from signalbook.server.confluent.associations import Associations
from signalbook.server.confluent.errors import MEDIA, ConfluentError, answered, respond
from signalbook.server.confluent.subjects import Subjects, check_subject, read_request, read_version
from signalbook.server.http import Request, Response, refuse_coded

__all__ = ["ROOT", "ROOT_NAMES", "Confluent"]

ROOT = "/confluent"
# The first parts of the API's paths, where it is served at the root too.
ROOT_NAMES = frozenset({"subjects", "schemas", "compatibility", "config", "mode", "contexts", "associations", "v1"})

_MEDIA = (MEDIA, "application/vnd.schemaregistry+json", "application/json")
_BODIES = frozenset({*_MEDIA, "application/octet-stream"})
_MOST_SCHEMAS = 1000


@dataclass(slots=True)
class Call:
    """One request: what its path names, its parameters, and the context that it is made in."""

    request: Request
    parts: tuple[str, ...] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    context: str = DEFAULT

    def text(self, name: str, default: str = "") -> str:
        """A parameter; the first where it is repeated."""
        return next(iter(self.query.get(name, ())), default)

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.text(name).lower() == "true"

    def page(self, found: list[Any], most: int = 0) -> list[Any]:
        """The part of a list that was asked for."""
        offset, limit = (_whole(self.text(name), default) for name, default in (("offset", 0), ("limit", -1)))
        start = max(offset, 0)
        size = limit if 0 < limit and (not most or limit <= most) else most
        return found[start : start + size] if size else found[start:]


def _whole(text: str, default: int) -> int:
    try:
        return int(text) if text else default
    except ValueError:
        raise ConfluentError(404, "HTTP 404 Not Found") from None


Handler = Callable[["Confluent", Call], Any]
_S = r"(.+)"
_V = r"([^/]+)"
_ROUTES: list[tuple[re.Pattern[str], Mapping[str, Handler]]] = []


def _route(pattern: str, **methods: Handler) -> None:
    _ROUTES.append((re.compile(pattern, re.DOTALL), methods))


class Confluent:
    """Answers the paths of Confluent's API for one registry."""

    def __init__(self, requests: Requests, *, catalog: bool = True, keep_deleted: bool = False) -> None:
        self._requests = requests
        self._store = requests.store
        self._subjects = Subjects(requests)
        self._associations = Associations(catalog=catalog)
        self._keep_deleted = keep_deleted

    def answer(self, request: Request) -> Response:
        """Answer a request for a path of the API."""
        media = MEDIA
        try:
            media = _accepted(request.headers.get("accept") or "")
            path = _plain(request.path)
            found, methods = self._find(path)
            if request.method == "OPTIONS":
                return http.options(request, http.allow_list(methods))
            handler = methods.get(request.method)
            if handler is None:
                made = respond(ConfluentError(405, "HTTP 405 Method Not Allowed"), request.path, media)
                return Response(made.status, [*made.headers, ("allow", http.allow_list(methods))], made.body)
            value = handler(self, self._call(request, path, found))
        except Exception as error:
            return respond(error, request.path, media)
        if value is None:
            return Response(204, [])
        if isinstance(value, Response):
            return value
        if isinstance(value, _Text):
            return Response(200, [("content-type", media)], value.text.encode("utf-8", "surrogatepass"))
        return answered(200, value, media)

    def asks(self, request: Request) -> bool:
        """Whether a POST only asks, so that whoever may read may send it."""
        if request.method != "POST":
            return False
        path = _inner(_plain(request.path))[1]
        if path.startswith("/compatibility/") or path == "/associations:batchGet":
            return True
        return path.startswith("/subjects/") and not _REGISTERS.fullmatch(path)

    def respond(self, error: BaseException, path: str) -> Response:
        """The answer for what went wrong before the request came here."""
        return respond(error, path)

    def _find(self, path: str) -> tuple[re.Match[str], Mapping[str, Handler]]:
        inner = _inner(path)[1]
        for pattern, methods in _ROUTES:
            found = pattern.fullmatch(inner)
            if found is not None:
                return found, methods
        raise ConfluentError(404, "HTTP 404 Not Found")

    def _call(self, request: Request, path: str, found: re.Match[str]) -> Call:
        if request.method in ("POST", "PUT") and "content-type" in request.headers:
            given = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
            if given and given not in _BODIES:
                raise ConfluentError(415, "HTTP 415 Unsupported Media Type")
        if "content-encoding" in request.headers:
            refuse_coded(request)
        query = parse_qs(request.query, keep_blank_values=True, max_num_fields=1000)
        return Call(request, found.groups(), query, _inner(path)[0])

    def _read(self, job: Callable[[Connection], Any]) -> Any:
        return self._store.read(job)

    def _write(self, job: Callable[[Connection], Any]) -> Any:
        self._check_writable()
        return self._store.write(job)

    def _check_writable(self) -> None:
        if not self._requests.setup(self._store.reader()).capabilities.is_mutable("entities"):
            raise ConfluentError(42205, "This registry does not take writes")

    # ---- subjects and versions

    def list_subjects(self, call: Call) -> Any:
        prefix = call.text("subjectPrefix")
        if "subjectPrefix" not in call.query:
            prefix = ":*:" if call.context == DEFAULT else f":{call.context}:"
        elif call.context != DEFAULT and not prefix.startswith(":"):
            prefix = name_in(call.context, prefix)
        only, deleted = call.flag("deletedOnly"), call.flag("deleted")
        return call.page(self._read(lambda db: self._subjects.listed(db, prefix, deleted, only)))

    def list_versions(self, call: Call) -> Any:
        def job(db: Connection) -> list[int]:
            every = schema_ids.versions(db, *self._subject(db, call))
            only, deleted = call.flag("deletedOnly"), call.flag("deleted")
            negative = call.flag("deletedAsNegative")
            wanted = [one for one in every if (one.deleted if only else deleted or negative or not one.deleted)]
            if not wanted:
                raise ConfluentError(40401, f"Subject '{call.parts[0]}' not found.")
            return [-one.number if negative and one.deleted else one.number for one in wanted]

        return call.page(self._read(job))

    def _subject(self, db: Connection, call: Call) -> tuple[str, str]:
        return self._subjects.resolve(db, call.parts[0], call.context)

    def _version(self, db: Connection, call: Call) -> SubjectVersion:
        number = read_version(call.parts[1])
        where = self._subject(db, call)
        where = self._subjects.elsewhere(db, call.parts[0], *where)
        return self._subjects.version(db, *where, number, call.flag("deleted"))

    def get_version(self, call: Call) -> Any:
        qualified = call.text("referenceFormat").lower() == "qualified"
        return self._read(
            lambda db: self._subjects.shown(db, self._version(db, call), call.text("format"), qualified=qualified)
        )

    def get_version_text(self, call: Call) -> Any:
        def job(db: Connection) -> _Text:
            found = self._subjects.entry(db, self._version(db, call))
            return _Text(self._subjects.text(db, found, call.text("format")))

        return self._read(job)

    def list_referrers(self, call: Call) -> Any:
        def job(db: Connection) -> list[int]:
            one = self._version(db, call)
            found = schema_ids.referrers(db, one.context, one.subject, one.number)
            return sorted({each.id for each in found if call.flag("deleted") or not each.deleted})

        return call.page(self._read(job))

    def find_by_metadata(self, call: Call) -> Any:
        pairs = list(zip(call.query.get("key", ()), call.query.get("value", ()), strict=False))

        def job(db: Connection) -> Any:
            every = schema_ids.versions(db, *self._subject(db, call))
            found = [one for one in every if call.flag("deleted") or not one.deleted]
            if not found:
                raise ConfluentError(40401, f"Subject '{call.parts[0]}' not found.")
            for one in reversed(found):
                metadata = self._subjects.entry(db, one).content.metadata or {}
                if all((metadata.get("properties") or {}).get(name) == value for name, value in pairs):
                    return self._subjects.shown(db, one, call.text("format"))
            raise ConfluentError(40403, "Schema not found")

        return self._read(job)

    def look_up(self, call: Call) -> Any:
        sent = read_request(_body(call.request))

        def job(db: Connection) -> Any:
            where = self._subject(db, call)
            where = self._subjects.elsewhere(db, call.parts[0], *where)
            deleted = call.flag("deleted")
            every = schema_ids.versions(db, *where)
            if not any(deleted or not one.deleted for one in every):
                raise ConfluentError(40401, f"Subject '{call.parts[0]}' not found.")
            if not sent.text.strip():
                raise ConfluentError(40403, "Schema not found")
            normalise = call.flag("normalize") or bool(scopes.find_config(db, where).get("normalize"))
            found = self._subjects.find(db, *where, sent, normalise=normalise, deleted=deleted)
            if found is None:
                raise ConfluentError(40403, "Schema not found")
            return self._subjects.shown(db, found, call.text("format"))

        return self._read(job)

    def register(self, call: Call) -> Any:
        sent = read_request(_body(call.request))
        where = self._read(lambda db: self._subject(db, call))
        self._check_writable()
        return self._subjects.register(
            *where, sent, normalise=call.flag("normalize"), force=call.flag("force"), base=call.request.base
        )

    def delete_subject(self, call: Call) -> Any:
        def job(db: Connection) -> list[int]:
            where = self._subject(db, call)
            self._associations.refuse_deleting(db, *where)
            return self._subjects.delete(db, *where, call.flag("permanent"), call.request.base)

        return self._write(job)

    def delete_version(self, call: Call) -> Any:
        number = read_version(call.parts[1])

        def job(db: Connection) -> int:
            where = self._subject(db, call)
            return self._subjects.delete_version(db, *where, number, call.flag("permanent"), call.request.base)

        return self._write(job)

    # ---- ids

    def _by_id(self, db: Connection, call: Call) -> tuple[SchemaEntry, SubjectVersion | None]:
        """What an id stands for, and the version of the subject that the request names."""
        if not re.fullmatch(r"-?[0-9]+", call.parts[0]):
            raise ConfluentError(404, "HTTP 404 Not Found")
        number = int(call.parts[0]) if len(call.parts[0]) < 12 else 0
        subject = call.text("subject")
        for context, wanted in self._hinted(db, call, subject):
            held = schema_ids.holders(db, context, number)
            named = [one for one in held if one.subject == wanted]
            if wanted and not named and context != DEFAULT:
                continue
            entry = schema_ids.by_id(db, context, number) if held or self._keep_deleted else None
            if entry is not None:
                return entry, named[-1] if named else None
        raise ConfluentError(40403, f"Schema {call.parts[0]} not found")

    def _hinted(self, db: Connection, call: Call, subject: str) -> list[tuple[str, str]]:
        """The contexts in which an id is looked for, each with the subject that must have it."""
        context, plain = split_name(subject, call.context)
        if not plain:
            return [(context, "")]
        context, plain = self._subjects.resolve(db, subject, call.context)
        if context != DEFAULT or subject.startswith(":"):
            return [(context, plain if subject.startswith(":") else "")]
        number = int(call.parts[0]) if len(call.parts[0]) < 12 else 0
        if any(one.subject == plain for one in schema_ids.holders(db, DEFAULT, number)):
            return [(DEFAULT, plain)]
        return [*((other, plain) for other in schema_ids.all_contexts(db)[1:]), (DEFAULT, plain)]

    def get_id(self, call: Call) -> Any:
        def job(db: Connection) -> Any:
            entry, version = self._by_id(db, call)
            qualified = call.text("referenceFormat").lower() == "qualified"
            shown = self._subjects.content(db, entry, call.text("format"), version, qualified=qualified)
            if version is not None:
                named = {"subject": name_in(version.context, version.subject), "version": version.number}
                shown = {**named, **shown}
            if call.flag("fetchMaxId"):
                shown["maxId"] = schema_ids.highest_id(db, entry.context)
            return shown

        return self._read(job)

    def get_id_text(self, call: Call) -> Any:
        return self._read(lambda db: _Text(self._subjects.text(db, self._by_id(db, call)[0], call.text("format"))))

    def _holders(self, db: Connection, call: Call) -> list[SubjectVersion]:
        entry, _ = self._by_id(db, call)
        found = schema_ids.holders(db, entry.context, entry.id)
        return [one for one in found if call.flag("deleted") or not one.deleted]

    def list_id_subjects(self, call: Call) -> Any:
        def job(db: Connection) -> list[str]:
            return sorted({name_in(one.context, one.subject) for one in self._holders(db, call)})

        return call.page(self._read(job))

    def list_id_versions(self, call: Call) -> Any:
        def job(db: Connection) -> list[Any]:
            found = self._holders(db, call)
            return [{"subject": name_in(one.context, one.subject), "version": one.number} for one in found]

        return call.page(self._read(job))

    def get_guid(self, call: Call) -> Any:
        def job(db: Connection) -> Any:
            for entry in self._of_guid(db, call):
                return self._subjects.content(db, entry, call.text("format"), None)
            raise ConfluentError(40403, f"Schema {call.parts[0]} not found")

        return self._read(job)

    def list_guid_ids(self, call: Call) -> Any:
        def job(db: Connection) -> Any:
            found = [{"context": entry.context, "id": entry.id} for entry in self._of_guid(db, call)]
            if not found:
                raise ConfluentError(40403, f"Schema {call.parts[0]} not found")
            return found

        return self._read(job)

    def _of_guid(self, db: Connection, call: Call) -> list[SchemaEntry]:
        found = schema_ids.by_guid(db, call.parts[0].lower())
        return [one for one in found if self._keep_deleted or schema_ids.holders(db, one.context, one.id)]

    def list_types(self, call: Call) -> Any:
        return ["JSON", "PROTOBUF", "AVRO"]

    def list_schemas(self, call: Call) -> Any:
        prefix = call.text("subjectPrefix")
        if not prefix.startswith(":"):
            prefix = name_in(call.context, prefix)

        def job(db: Connection) -> list[Any]:
            found = []
            names = self._subjects.listed(db, prefix, call.flag("deleted"), False)
            for name in names:
                every = schema_ids.versions(db, *split_name(name))
                wanted = [one for one in every if call.flag("deleted") or not one.deleted]
                found += wanted[-1:] if call.flag("latestOnly") else wanted
            aliases = self._aliases(db) if call.flag("aliases") else {}
            shown = []
            for one in call.page(found, _MOST_SCHEMAS):
                made = self._subjects.shown(db, one, call.text("format"))
                if aliases.get((one.context, one.subject)):
                    made["aliases"] = aliases[one.context, one.subject]
                shown.append(made)
            return shown

        return self._read(job)

    def _aliases(self, db: Connection) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for context, subject, config in db.execute("SELECT context, subject, config FROM schema_scopes"):
            alias = orjson.loads(config).get("alias")
            if alias and subject:
                found.setdefault(split_name(alias, context), []).append(name_in(context, subject))
        return found

    # ---- compatibility

    def check_version(self, call: Call) -> Any:
        number = read_version(call.parts[1])

        def job(db: Connection) -> Any:
            where = self._subject(db, call)
            every = schema_ids.versions(db, *where)
            live = [one for one in every if not one.deleted]
            if number == -1:
                return live[-1:]
            found = [one for one in live if one.number == number]
            if not found:
                raise ConfluentError(40402, f"Version {number} not found.")
            return found

        return self._check(call, job, alone=True)

    def check_subject(self, call: Call) -> Any:
        def job(db: Connection) -> Any:
            return [one for one in schema_ids.versions(db, *self._subject(db, call)) if not one.deleted]

        return self._check(call, job, alone=False)

    def _check(self, call: Call, older: Callable[[Connection], Any], *, alone: bool) -> Any:
        sent = read_request(_body(call.request))
        verbose = call.flag("verbose")

        def job(db: Connection) -> Any:
            where = self._subject(db, call)
            config = scopes.find_config(db, where)
            normalise = call.flag("normalize") or bool(config.get("normalize"))
            found = older(db)
            try:
                content = self._subjects.content_sent(db, where[0], sent, [], normalise=normalise)
                self._subjects.check_readable(db, where[0], content)
            except ConfluentError as error:
                if not verbose or error.code != 42201:
                    raise
                return {"is_compatible": False, "messages": [error.message]}
            level = config[scopes.LEVEL]
            judged = {**config, scopes.LEVEL: level.partition("_")[0]} if alone else config
            findings = self._subjects.findings(db, where[0], content, found, judged)
            made: dict[str, Any] = {"is_compatible": not findings}
            if verbose:
                made["messages"] = compatibility.messages(findings, level)
            return made

        return self._read(job)

    # ---- config and mode

    def get_config(self, call: Call) -> Any:
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            own = scopes.load(db, scope)[0]
            if scope == scopes.GLOBAL or call.flag("defaultToGlobal"):
                return scopes.find_config(db, scope)
            if not own:
                code = 40408
                raise ConfluentError(
                    code, f"Subject '{name_in(*scope)}' does not have subject-level compatibility configured"
                )
            return own

        return self._read(job)

    def put_config(self, call: Call) -> Any:
        given = scopes.read_config(_body(call.request))
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            self._refuse_read_only(db, scope)
            config, mode = scopes.load(db, scope)
            merged = {**config, **given}
            config = {name: value for name, value in merged.items() if value is not None}
            scopes.save(db, scope, config, mode)
            if scope[1]:
                self._subjects.set_level(db, *scope, config.get(scopes.LEVEL), call.request.base)
            shown = dict(config)
            if scopes.LEVEL in shown:
                shown = {"compatibility": shown.pop(scopes.LEVEL), **shown}
            return shown

        return self._write(job)

    def delete_config(self, call: Call) -> Any:
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            self._refuse_read_only(db, scope)
            config, mode = scopes.load(db, scope)
            if scope == scopes.GLOBAL:
                scopes.save(db, scope, {}, mode)
                return {scopes.LEVEL: scopes.DEFAULT_LEVEL, **config}
            if not config:
                raise ConfluentError(40401, f"Subject '{name_in(*scope)}' not found.")
            scopes.save(db, scope, {}, mode)
            if scope[1]:
                self._subjects.set_level(db, *scope, None, call.request.base)
            return config

        return self._write(job)

    def _scope(self, call: Call) -> scopes.Scope:
        name = call.parts[0] if call.parts else ""
        scope = scopes.scope_of(name, call.context)
        if scope[1]:
            check_subject(scope[1])
        return scope

    def _refuse_read_only(self, db: Connection, scope: scopes.Scope) -> None:
        mode = scopes.find_mode(db, scope)
        if mode.startswith("READONLY"):
            raise ConfluentError(42205, f"Subject {name_in(*scope)} is in {mode.lower()} mode")

    def get_mode(self, call: Call) -> Any:
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            own = scopes.load(db, scope)[1]
            if scope == scopes.GLOBAL or call.flag("defaultToGlobal"):
                return {"mode": scopes.find_mode(db, scope)}
            if not own:
                raise ConfluentError(40409, f"Subject '{name_in(*scope)}' does not have subject-level mode configured")
            return {"mode": own}

        return self._read(job)

    def put_mode(self, call: Call) -> Any:
        mode = scopes.read_mode(_body(call.request).get("mode"))
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            if mode == "IMPORT" and scopes.load(db, scope)[1] != "IMPORT":
                self._enter_import(db, scope, call)
            config, _ = scopes.load(db, scope)
            scopes.save(db, scope, config, mode)
            return {"mode": mode}

        return self._write(job)

    def _enter_import(self, db: Connection, scope: scopes.Scope, call: Call) -> None:
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
        for context, subject, _ in found:
            self._subjects.delete(db, context, subject, True, call.request.base)

    def delete_mode(self, call: Call) -> Any:
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            config, mode = scopes.load(db, scope)
            if not mode and scope != scopes.GLOBAL:
                raise ConfluentError(40401, f"Subject '{name_in(*scope)}' not found.")
            scopes.save(db, scope, config, "")
            return {"mode": mode or scopes.DEFAULT_MODE}

        return self._write(job)

    # ---- contexts

    def list_contexts(self, call: Call) -> Any:
        prefix = call.text("contextPrefix")
        found = self._read(schema_ids.all_contexts)
        return call.page([one for one in found if one.startswith(prefix)])

    def delete_context(self, call: Call) -> Any:
        context = _context(call.parts[0])

        def job(db: Connection) -> None:
            if schema_ids.subjects(db, context):
                raise ConfluentError(42211, f"The context '{context}' is not empty")
            group = schema_ids.group_of(db, context)
            if group is not None and context != DEFAULT:
                self._subjects.put(db, "PATCH", group, {"confluentcontext": None}, call.request.base)
            scopes.delete_scope(db, (context, ""))

        return self._write(job)

    # ---- associations

    def list_topic_associations(self, call: Call) -> Any:
        namespace, name = call.parts
        return call.page(self._read(lambda db: self._associations.of_topic(db, namespace, name, call.query)))

    def list_resource_associations(self, call: Call) -> Any:
        return call.page(self._read(lambda db: self._associations.of_resource(db, call.parts[0], call.query)))

    def list_subject_associations(self, call: Call) -> Any:
        where = split_name(call.parts[0], call.context)
        return call.page(self._read(lambda db: self._associations.of_subject(db, *where, call.query)))

    def save_associations(self, call: Call) -> Any:
        body, update = _body(call.request), call.request.method == "PUT"
        if update and call.parts:
            body = {"resourceId": call.parts[0], **body}
        around = _context(call.text("context")) if call.text("context") else call.context
        dry = call.flag("dryRun")
        return self._write(lambda db: self._save_associations(db, body, around, update, dry))

    def _save_associations(self, db: Connection, body: Any, around: str, update: bool, dry: bool) -> Any:
        if update and not (body.get("resourceName") and body.get("resourceNamespace")):
            known = self._associations.of_resource(db, str(body.get("resourceId")), {})
            if known:
                kept = {name: known[0][name] for name in ("resourceName", "resourceNamespace", "resourceType")}
                body = {**kept, **body}
        return self._associations.save(db, body, around, update=update, dry=dry)

    def delete_associations(self, call: Call) -> Any:
        kinds = [one for one in call.query.get("associationType", ()) if one]
        kind, dry = call.text("resourceType"), call.flag("dryRun")
        return self._write(lambda db: self._associations.delete(db, call.parts[0], kind, kinds, dry))

    # ---- the server

    def root(self, call: Call) -> Any:
        return {}

    def cluster(self, call: Call) -> Any:
        id_ = self._requests.setup(self._store.reader()).registryid
        clusters = {"kafka-cluster": id_, "schema-registry-cluster": id_}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    def server_version(self, call: Call) -> Any:
        return {"version": __version__, "commitId": ""}

    def deployment(self, call: Call) -> Any:
        return {"attributes": []}


@dataclass(frozen=True, slots=True)
class _Text:
    """A schema by itself."""

    text: str


def _plain(path: str) -> str:
    path = path.removeprefix(ROOT)
    return path.rstrip("/") or "/"


_CONTEXT = re.compile(r"/contexts/([^/]+)(/.*)", re.DOTALL)
_REGISTERS = re.compile(r"/subjects/.+/versions")


def _inner(path: str) -> tuple[str, str]:
    """The context that a path is seen from, and the path within it."""
    found = _CONTEXT.fullmatch(path)
    return (_context(found[1]), found[2]) if found is not None else (DEFAULT, path)


def _context(name: str) -> str:
    if name.startswith(":.") and name.endswith(":"):
        name = name[1:-1]
    if ":" in name:
        raise ConfluentError(400, f"'{name}' is not a valid context: it has a colon")
    return name if name.startswith(".") else f".{name}"


def _accepted(accept: str) -> str:
    """The type of the answer that a client accepts."""
    wanted = [one.partition(";")[0].strip().lower() for one in accept.split(",") if one.strip()]
    if not wanted or MEDIA in wanted or "*/*" in wanted or "application/*" in wanted:
        return MEDIA
    for one in wanted:
        if one in _MEDIA:
            return one
    raise ConfluentError(406, "HTTP 406 Not Acceptable")


def _body(request: Request) -> dict[str, Any]:
    if not request.body.strip():
        raise ConfluentError(422, "The request has no body; send a JSON object")
    try:
        body = decode_json(request.body)
    except JsonError as error:
        raise ConfluentError(400, f"The body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ConfluentError(400, "The body must be a JSON object")
    return body


_C = Confluent
_route("/", GET=_C.root)
_route("/subjects", GET=_C.list_subjects)
_route(f"/subjects/{_S}/versions/{_V}/referencedby", GET=_C.list_referrers)
_route(f"/subjects/{_S}/versions/{_V}/schema", GET=_C.get_version_text)
_route(f"/subjects/{_S}/versions/{_V}", GET=_C.get_version, DELETE=_C.delete_version)
_route(f"/subjects/{_S}/versions", GET=_C.list_versions, POST=_C.register)
_route(f"/subjects/{_S}/metadata", GET=_C.find_by_metadata)
_route(f"/subjects/{_S}", POST=_C.look_up, DELETE=_C.delete_subject)
_route("/schemas", GET=_C.list_schemas)
_route("/schemas/types", GET=_C.list_types)
_route(f"/schemas/ids/{_V}", GET=_C.get_id)
_route(f"/schemas/ids/{_V}/schema", GET=_C.get_id_text)
_route(f"/schemas/ids/{_V}/subjects", GET=_C.list_id_subjects)
_route(f"/schemas/ids/{_V}/versions", GET=_C.list_id_versions)
_route(f"/schemas/guids/{_V}", GET=_C.get_guid)
_route(f"/schemas/guids/{_V}/ids", GET=_C.list_guid_ids)
_route(f"/compatibility/subjects/{_S}/versions/{_V}", POST=_C.check_version)
_route(f"/compatibility/subjects/{_S}/versions", POST=_C.check_subject)
_route("/config", GET=_C.get_config, PUT=_C.put_config, DELETE=_C.delete_config)
_route(f"/config/{_S}", GET=_C.get_config, PUT=_C.put_config, DELETE=_C.delete_config)
_route("/mode", GET=_C.get_mode, PUT=_C.put_mode, DELETE=_C.delete_mode)
_route(f"/mode/{_S}", GET=_C.get_mode, PUT=_C.put_mode, DELETE=_C.delete_mode)
_route("/contexts", GET=_C.list_contexts)
_route(f"/contexts/{_V}", DELETE=_C.delete_context)
_route("/associations", POST=_C.save_associations, PUT=_C.save_associations)
_route(f"/associations/resources/{_V}", GET=_C.list_resource_associations, PUT=_C.save_associations,
       DELETE=_C.delete_associations)  # fmt: skip
_route(f"/associations/resources/{_V}/{_S}", GET=_C.list_topic_associations)
_route(f"/associations/subjects/{_S}", GET=_C.list_subject_associations)
_route("/v1/metadata/id", GET=_C.cluster)
_route("/v1/metadata/version", GET=_C.server_version)
_route("/v1/metadata/deployment", GET=_C.deployment)
