"""The paths of Confluent's API, below `/confluent` and, where that is wanted, at the root.

Rule 1: a subject is one segment of a path and may hold slashes, which arrive decoded; so a path is read by what stands
before and after the subject.
Rule 2: parameters and members that are not known are passed over.
Rule 3: every answer, an error too, is JSON of the type that the client accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from signalbook import __version__
from signalbook.registry import schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import DEFAULT, SchemaEntry, SubjectVersion, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.server import http
from signalbook.server.confluent import subjects
from signalbook.server.confluent.changes import Associations, ConfluentChanges
from signalbook.server.confluent.subjects import (
    MEDIA,
    MEDIA_TYPES,
    ConfluentCall,
    ConfluentError,
    SchemaText,
    accepted,
    answered,
    context_of,
    read_request,
    read_version,
    respond,
)
from signalbook.server.confluent.writing import messages
from signalbook.server.http import Request, Response, refuse_coded

__all__ = ["ROOT", "ROOT_NAMES", "Confluent"]

ROOT = "/confluent"
# The first parts of the API's paths, where it is served at the root too.
ROOT_NAMES = frozenset({"subjects", "schemas", "compatibility", "config", "mode", "contexts", "associations", "v1"})

_BODIES = frozenset({*MEDIA_TYPES, "application/octet-stream"})
_MOST_SCHEMAS = 1000


Handler = Callable[["Confluent", ConfluentCall], Any]
_S = r"(.+)"
_V = r"([^/]+)"
_ROUTES: list[tuple[re.Pattern[str], Mapping[str, Handler]]] = []


def _route(pattern: str, **methods: Handler) -> None:
    _ROUTES.append((re.compile(pattern, re.DOTALL), methods))


class Confluent(ConfluentChanges):
    """Answers the paths of Confluent's API for one registry."""

    def __init__(self, requests: Requests, *, catalog: bool = True, keep_deleted: bool = False) -> None:
        super().__init__(requests, Associations(catalog=catalog))
        self._keep_deleted = keep_deleted

    def answer(self, request: Request) -> Response:
        """Answer a request for a path of the API."""
        media = MEDIA
        try:
            media = accepted(request.headers.get("accept") or "")
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
        if isinstance(value, SchemaText):
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

    def is_point(self, request: Request) -> bool:
        """Whether a GET asks what an id stands for, in the form that is stored."""
        return _POINT.fullmatch(request.path) is not None and "format=" not in request.query.lower()

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

    def _call(self, request: Request, path: str, found: re.Match[str]) -> ConfluentCall:
        if request.method in ("POST", "PUT") and "content-type" in request.headers:
            given = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
            if given and given not in _BODIES:
                raise ConfluentError(415, "HTTP 415 Unsupported Media Type")
        if "content-encoding" in request.headers:
            refuse_coded(request)
        query = parse_qs(request.query, keep_blank_values=True, max_num_fields=1000)
        return ConfluentCall(request, found.groups(), query, _inner(path)[0])

    # ---- subjects and versions

    def list_subjects(self, call: ConfluentCall) -> Any:
        """Answer `GET /subjects`."""
        prefix = call.text("subjectPrefix")
        if "subjectPrefix" not in call.query:
            prefix = ":*:" if call.context == DEFAULT else f":{call.context}:"
        elif call.context != DEFAULT and not prefix.startswith(":"):
            prefix = name_in(call.context, prefix)
        only, deleted = call.flag("deletedOnly"), call.flag("deleted")
        return call.page(self._read(lambda db: self._subjects.listed(db, prefix, deleted, only)))

    def list_versions(self, call: ConfluentCall) -> Any:
        """Answer `GET /subjects/{subject}/versions`."""

        def job(db: Connection) -> list[int]:
            every = schema_ids.versions(db, *self._subject(db, call))
            only, deleted = call.flag("deletedOnly"), call.flag("deleted")
            negative = call.flag("deletedAsNegative")
            wanted = [one for one in every if (one.deleted if only else deleted or negative or not one.deleted)]
            if not wanted:
                raise ConfluentError(40401, f"Subject '{call.parts[0]}' not found.")
            return [-one.number if negative and one.deleted else one.number for one in wanted]

        return call.page(self._read(job))

    def _version(self, db: Connection, call: ConfluentCall) -> SubjectVersion:
        number = read_version(call.parts[1])
        where = self._subject(db, call)
        where = self._subjects.elsewhere(db, call.parts[0], *where)
        return self._subjects.version(db, *where, number, call.flag("deleted"))

    def get_version(self, call: ConfluentCall) -> Any:
        """Answer `GET /subjects/{subject}/versions/{version}`."""
        qualified = call.text("referenceFormat").lower() == "qualified"
        return self._read(
            lambda db: self._subjects.shown(db, self._version(db, call), call.text("format"), qualified=qualified)
        )

    def get_version_text(self, call: ConfluentCall) -> Any:
        """Answer `GET /subjects/{subject}/versions/{version}/schema`."""

        def job(db: Connection) -> SchemaText:
            found = self._subjects.entry(db, self._version(db, call))
            return SchemaText(self._subjects.text(db, found, call.text("format")))

        return self._read(job)

    def list_referrers(self, call: ConfluentCall) -> Any:
        """Answer `GET /subjects/{subject}/versions/{version}/referencedby`."""

        def job(db: Connection) -> list[int]:
            one = self._version(db, call)
            found = schema_ids.referrers(db, one.context, one.subject, one.number)
            return sorted({each.id for each in found if call.flag("deleted") or not each.deleted})

        return call.page(self._read(job))

    def find_by_metadata(self, call: ConfluentCall) -> Any:
        """Answer `GET /subjects/{subject}/metadata`."""
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

    def look_up(self, call: ConfluentCall) -> Any:
        """Answer `POST /subjects/{subject}`."""
        sent = read_request(call.body())

        def job(db: Connection) -> Any:
            where = self._subject(db, call)
            where = self._subjects.elsewhere(db, call.parts[0], *where)
            deleted = call.flag("deleted")
            every = schema_ids.versions(db, *where)
            if not any(deleted or not one.deleted for one in every):
                raise ConfluentError(40401, f"Subject '{call.parts[0]}' not found.")
            if not sent.text.strip():
                raise ConfluentError(40403, "Schema not found")
            normalise = call.flag("normalize") or bool(subjects.find_config(db, where).get("normalize"))
            found = self._subjects.find(db, *where, sent, normalise=normalise, deleted=deleted)
            if found is None:
                raise ConfluentError(40403, "Schema not found")
            return self._subjects.shown(db, found, call.text("format"))

        return self._read(job)

    # ---- ids

    def _by_id(self, db: Connection, call: ConfluentCall) -> tuple[SchemaEntry, SubjectVersion | None]:
        """What an id stands for, and the version of the subject that the request names."""
        if not re.fullmatch(r"-?[0-9]+", call.parts[0]):
            raise ConfluentError(404, "HTTP 404 Not Found")
        number = int(call.parts[0]) if len(call.parts[0]) < 12 else 0
        for context, wanted, must in self._hinted(db, call):
            held = schema_ids.holders(db, context, number)
            named = [one for one in held if one.subject == wanted]
            if must and not named:
                continue
            entry = schema_ids.by_id(db, context, number) if held or self._keep_deleted else None
            if entry is not None:
                return entry, named[-1] if named else None
        raise ConfluentError(40403, f"Schema {call.parts[0]} not found")

    def _hinted(self, db: Connection, call: ConfluentCall) -> Iterator[tuple[str, str, bool]]:
        """The contexts in which an id is looked for, each with a subject, and whether that must have it."""
        subject = call.text("subject")
        context, plain = split_name(subject, call.context)
        if not plain:
            yield context, "", False
        elif subject.startswith(":"):
            yield (*self._subjects.resolve(db, subject, call.context), True)
        elif context != DEFAULT:
            yield (*self._subjects.resolve(db, subject, call.context), False)
        else:
            yield DEFAULT, plain, True
            meant = self._subjects.resolve(db, subject, call.context)
            yield (*meant, True)
            yield from ((other, plain, True) for other in schema_ids.all_contexts(db)[1:])
            yield DEFAULT, plain, False

    def get_id(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/ids/{id}`."""

        def job(db: Connection) -> Any:
            entry, version = self._by_id(db, call)
            qualified = call.text("referenceFormat").lower() == "qualified"
            shown = self._subjects.content(db, entry, call.text("format"), version, qualified=qualified)
            if version is not None:
                named = {"subject": name_in(version.context, version.subject), "version": version.number}
                shown = {**named, "id": entry.id, **shown}  # with which Python's client finds it again
            if call.flag("fetchMaxId"):
                shown["maxId"] = schema_ids.highest_id(db, entry.context)
            return shown

        return self._read(job)

    def get_id_text(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/ids/{id}/schema`."""
        return self._read(lambda db: SchemaText(self._subjects.text(db, self._by_id(db, call)[0], call.text("format"))))

    def _holders(self, db: Connection, call: ConfluentCall) -> list[SubjectVersion]:
        entry, _ = self._by_id(db, call)
        found = schema_ids.holders(db, entry.context, entry.id)
        return [one for one in found if call.flag("deleted") or not one.deleted]

    def list_id_subjects(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/ids/{id}/subjects`."""

        def job(db: Connection) -> list[str]:
            return sorted({name_in(one.context, one.subject) for one in self._holders(db, call)})

        return call.page(self._read(job))

    def list_id_versions(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/ids/{id}/versions`."""

        def job(db: Connection) -> list[Any]:
            found = self._holders(db, call)
            return [{"subject": name_in(one.context, one.subject), "version": one.number} for one in found]

        return call.page(self._read(job))

    def get_guid(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/guids/{guid}`."""

        def job(db: Connection) -> Any:
            for entry in self._of_guid(db, call):
                return self._subjects.content(db, entry, call.text("format"), None)
            raise ConfluentError(40403, f"Schema {call.parts[0]} not found")

        return self._read(job)

    def list_guid_ids(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/guids/{guid}/ids`."""

        def job(db: Connection) -> Any:
            found = [{"context": entry.context, "id": entry.id} for entry in self._of_guid(db, call)]
            if not found:
                raise ConfluentError(40403, f"Schema {call.parts[0]} not found")
            return found

        return self._read(job)

    def _of_guid(self, db: Connection, call: ConfluentCall) -> list[SchemaEntry]:
        found = schema_ids.by_guid(db, call.parts[0].lower())
        return [one for one in found if self._keep_deleted or schema_ids.holders(db, one.context, one.id)]

    def list_types(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas/types`."""
        return ["JSON", "PROTOBUF", "AVRO"]

    def list_schemas(self, call: ConfluentCall) -> Any:
        """Answer `GET /schemas`."""
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

    def check_version(self, call: ConfluentCall) -> Any:
        """Answer `POST /compatibility/subjects/{subject}/versions/{version}`."""
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

    def check_subject(self, call: ConfluentCall) -> Any:
        """Answer `POST /compatibility/subjects/{subject}/versions`."""

        def job(db: Connection) -> Any:
            return [one for one in schema_ids.versions(db, *self._subject(db, call)) if not one.deleted]

        return self._check(call, job, alone=False)

    def _check(self, call: ConfluentCall, older: Callable[[Connection], Any], *, alone: bool) -> Any:
        sent = read_request(call.body())
        verbose = call.flag("verbose")

        def job(db: Connection) -> Any:
            where = self._subject(db, call)
            config = subjects.find_config(db, where)
            normalise = call.flag("normalize") or bool(config.get("normalize"))
            found = older(db)
            try:
                content = self._subjects.content_sent(db, where[0], sent, [], normalise=normalise)
                self._subjects.check_readable(db, where[0], content)
            except ConfluentError as error:
                if not verbose or error.code != 42201:
                    raise
                return {"is_compatible": False, "messages": [error.message]}
            level = config[subjects.LEVEL]
            judged = {**config, subjects.LEVEL: level.partition("_")[0]} if alone else config
            findings = self._registration.findings(db, where[0], content, found, judged)
            made: dict[str, Any] = {"is_compatible": not findings}
            if verbose:
                made["messages"] = messages(findings, level)
            return made

        return self._read(job)

    # ---- config and mode

    def get_config(self, call: ConfluentCall) -> Any:
        """Answer `GET /config` and `GET /config/{subject}`."""
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            own = subjects.load_scope(db, scope)[0]
            if scope == subjects.GLOBAL or call.flag("defaultToGlobal"):
                return subjects.find_config(db, scope)
            if not own:
                code = 40408
                raise ConfluentError(
                    code, f"Subject '{name_in(*scope)}' does not have subject-level compatibility configured"
                )
            return own

        return self._read(job)

    def get_mode(self, call: ConfluentCall) -> Any:
        """Answer `GET /mode` and `GET /mode/{subject}`."""
        scope = self._scope(call)

        def job(db: Connection) -> Any:
            own = subjects.load_scope(db, scope)[1]
            if scope == subjects.GLOBAL or call.flag("defaultToGlobal"):
                return {"mode": subjects.find_mode(db, scope)}
            if not own:
                raise ConfluentError(40409, f"Subject '{name_in(*scope)}' does not have subject-level mode configured")
            return {"mode": own}

        return self._read(job)

    # ---- contexts

    def list_contexts(self, call: ConfluentCall) -> Any:
        """Answer `GET /contexts`."""
        prefix = call.text("contextPrefix")
        found = self._read(schema_ids.all_contexts)
        return call.page([one for one in found if one.startswith(prefix)])

    # ---- associations

    def list_topic_associations(self, call: ConfluentCall) -> Any:
        """Answer `GET /associations/resources/{namespace}/{topic}`."""
        namespace, name = call.parts
        return call.page(self._read(lambda db: self._associations.of_topic(db, namespace, name, call.query)))

    def list_resource_associations(self, call: ConfluentCall) -> Any:
        """Answer `GET /associations/resources/{id}`."""
        return call.page(self._read(lambda db: self._associations.of_resource(db, call.parts[0], call.query)))

    def list_subject_associations(self, call: ConfluentCall) -> Any:
        """Answer `GET /associations/subjects/{subject}`."""
        where = split_name(call.parts[0], call.context)
        return call.page(self._read(lambda db: self._associations.of_subject(db, *where, call.query)))

    # ---- the server

    def root(self, call: ConfluentCall) -> Any:
        """Answer `GET /`."""
        return {}

    def cluster(self, call: ConfluentCall) -> Any:
        """Answer `GET /v1/metadata/id`."""
        id_ = self._requests.setup(self._store.reader()).registryid
        clusters = {"kafka-cluster": id_, "schema-registry-cluster": id_}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    def server_version(self, call: ConfluentCall) -> Any:
        """Answer `GET /v1/metadata/version`."""
        return {"version": __version__, "commitId": ""}

    def deployment(self, call: ConfluentCall) -> Any:
        """Answer `GET /v1/metadata/deployment`."""
        return {"attributes": []}


def _plain(path: str) -> str:
    path = path.removeprefix(ROOT)
    return path.rstrip("/") or "/"


_CONTEXT = re.compile(r"/contexts/([^/]+)(/.*)", re.DOTALL)
_POINT = re.compile(rf"(?:{ROOT})?/schemas/ids/[0-9]+")
_REGISTERS = re.compile(r"/subjects/.+/versions")


def _inner(path: str) -> tuple[str, str]:
    """The context that a path is seen from, and the path within it."""
    found = _CONTEXT.fullmatch(path)
    return (context_of(found[1]), found[2]) if found is not None else (DEFAULT, path)


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
