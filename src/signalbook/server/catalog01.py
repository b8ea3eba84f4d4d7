"""The CNCF Message and Event Catalog API 0.1: `/messagecatalog` and `/messagedefinition?uri=`.

Rule 1: it is a view on the registry: a group is a message group, a definition a message, and every write is one of the
registry's, with all its rules. What only 0.1 demands is checked here before.
Rule 2: a version is a snapshot of the registry's log. Versions are added and taken away, never changed: what would
change one is not supported.
Rule 3: a document that says what the newest version says is no new version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from signalbook.document.dialects.catalog_form import format_of, read_definition, read_group
from signalbook.document.dialects.catalog_version import NO_PROTOCOL
from signalbook.document.dialects.history import in_line
from signalbook.document.dialects.ids import to_id
from signalbook.document.dialects.metaschema import check_definition, check_group
from signalbook.document.json_text import parse_json
from signalbook.errors import Problem, RegistryError
from signalbook.registry import snapshots
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.flags import Flags
from signalbook.registry.reads import Page
from signalbook.registry.registry import Transaction
from signalbook.registry.requests import Requests, now, unrecorded
from signalbook.registry.resources import Ask
from signalbook.registry.store import Connection
from signalbook.server import cross_origin
from signalbook.server.catalog01_rules import (
    check_relations,
    definition_subject,
    invalid,
    keep_authority,
    keep_format,
    keep_related,
    loosen,
    read_definitions,
    read_versions,
    refuse_lost,
    refuse_problems,
    words_of_01,
)
from signalbook.server.catalog01_view import (
    DIALECT,
    FILTERS,
    GROUPS,
    ROOT,
    Catalog01View,
    definition_path,
    definition_xid,
    version_uri,
)
from signalbook.server.http import JSON, Request, Response
from signalbook.server.problems import not_supported

__all__ = ["MessageCatalog"]

Json = dict[str, Any]
Ids = tuple[str, ...]
_ASSIGNED = ("messagegroupid", "messageid", "versionid", "createdat", "modifiedat", "messages", "versions")


class MessageCatalog:
    """Answers the paths of 0.1 for one registry; `may_write` says whether a request like this one could write."""

    def __init__(self, requests: Requests, *, may_write: Callable[[Request], bool] = lambda request: True) -> None:
        self._requests = requests
        self._may_write = may_write
        self._routes: Mapping[tuple[str, ...], Mapping[str, Callable[[Request, Ids], Response]]] = {
            (): {"GET": self._list_groups},
            ("*",): {"GET": self._get_group, "PUT": self._put_group, "DELETE": self._delete},
            ("*", "messagedefinitions"): {
                "GET": self._list_definitions, "POST": self._post, "DELETE": self._delete,
            },
            ("*", "messagedefinitions", "*"): {"GET": self._get_latest, "DELETE": self._delete},
            ("*", "messagedefinitions", "*", "versions"): {"GET": self._list_versions},
            ("*", "messagedefinitions", "*", "versions", "*"): {
                "GET": self._get_version, "DELETE": self._delete_version,
            },
            ("*", "messagedefinitions", "*", "version", "*"): {"GET": self._get_version},  # as events write it
        }  # fmt: skip

    def answer(self, request: Request) -> Response:
        """Answer a request for a path that begins with `/messagecatalog`."""
        parts = tuple(part for part in request.path[len(ROOT) :].split("/") if part)
        shape = tuple("*" if place % 2 == 0 else part for place, part in enumerate(parts))
        methods = self._routes.get(shape)
        if methods is None:
            raise RegistryError("api_not_found", request.path)
        allow = cross_origin.allow_list(methods)
        if request.method == "OPTIONS":
            return self._features(request, allow) if not parts else cross_origin.options(request, allow)
        handler = methods.get(request.method)
        if handler is None:
            raise not_supported(request.path, request.method, allow)
        if request.method != "GET" and not self._capabilities().is_mutable("entities"):
            raise not_supported(request.path, request.method, "GET, OPTIONS", '"entities" is not mutable')
        return handler(request, tuple(to_id(quote(part)) for part in parts[::2]))

    def resolve(self, request: Request) -> Response:
        """Answer `/messagedefinition?uri=`."""
        allow = "GET, OPTIONS"
        if request.path.rstrip("/") != "/messagedefinition":
            raise RegistryError("api_not_found", request.path)
        if request.method == "OPTIONS":
            return cross_origin.options(request, allow)
        if request.method != "GET":
            raise not_supported(request.path, request.method, allow)
        given = dict(parse_qsl(request.query, keep_blank_values=True))
        if not given.get("uri"):
            raise RegistryError("bad_request", request.path, error_detail="the parameter 'uri' is missing")
        view = Catalog01View(self._requests, request)
        return _json(self._requests.store.read(lambda db: view.by_uri(db, given["uri"])))

    def _capabilities(self) -> Capabilities:
        return self._requests.setup(self._requests.store.reader()).capabilities

    def _features(self, request: Request, allow: str) -> Response:
        """Section 4.2.1: what this implementation can do, and does for whoever asks."""
        head = cross_origin.options(request, allow)
        capabilities = self._capabilities()
        features = {
            "filterattributes": list(FILTERS),
            "pagination": capabilities.pagination,
            "update": capabilities.is_mutable("entities") and self._may_write(request),
        }
        return Response(200, [JSON, *head.headers], orjson.dumps(features))

    # ---- reading

    def _list(self, request: Request, read: Callable[[Catalog01View, Connection], tuple[list[Json], Page]]) -> Response:
        view = Catalog01View(self._requests, request)
        found, page = self._requests.store.read(lambda db: read(view, db))
        return _json(found, _next(request, page))

    def _list_groups(self, request: Request, ids: Ids) -> Response:
        return self._list(request, lambda view, db: view.groups(db))

    def _list_definitions(self, request: Request, ids: Ids) -> Response:
        return self._list(request, lambda view, db: view.definitions(db, ids[0]))

    def _list_versions(self, request: Request, ids: Ids) -> Response:
        return self._list(request, lambda view, db: view.versions(db, *ids))

    def _get_group(self, request: Request, ids: Ids) -> Response:
        view = Catalog01View(self._requests, request)
        return _json(self._requests.store.read(lambda db: view.group(db, ids[0])))

    def _get_latest(self, request: Request, ids: Ids) -> Response:
        view = Catalog01View(self._requests, request)
        return self._shown(request, ids, self._requests.store.read(lambda db: view.latest(db, *ids)))

    def _get_version(self, request: Request, ids: Ids) -> Response:
        groupid, messageid, number = ids
        view = Catalog01View(self._requests, request)
        found = self._requests.store.read(lambda db: view.version(db, groupid, messageid, number))
        return self._shown(request, ids, found)

    def _shown(self, request: Request, ids: Ids, shown: Json, status: int = 200) -> Response:
        """A version with its URI, and where it can be had here."""
        place = request.base + definition_path(ids[0], ids[1], shown["version"])
        authority = str(shown.get("authority") or request.base + ROOT)
        view = Catalog01View(self._requests, request)
        home = self._requests.store.read(lambda db: view.home(db, ids[0], ids[1])).split("/")
        uri = version_uri(authority, home[2], home[4], shown["version"])
        headers = [("content-location", place), ("link", f"<{quote(uri, safe=_URI)}>;rel=canonical")]
        if status == 201:
            headers.append(("location", place))
        return _json(shown, headers, status)

    # ---- writing

    def _write(
        self, request: Request, job: Callable[[Transaction, Connection], Any], correlation: str = ""
    ) -> tuple[Any, tuple[str, str]]:
        correlation = correlation or self._requests.correlation()

        def run(db: Connection) -> Any:
            return job(Transaction(self._requests, db, request.base, correlation), db)

        return self._requests.store.write(run), ("xRegistry-xregcorrelationid", correlation)

    def _put_group(self, request: Request, ids: Ids) -> Response:
        body = _body(request)
        given = {"id": _segment(request.path, 1), **body}
        _refuse(check_group(given), request.path)
        if to_id(given["id"]) != ids[0]:
            raise RegistryError(
                "mismatched_id", request.path, singular="group", invalid_id=given["id"], expected_id=ids[0]
            )
        view = Catalog01View(self._requests, request)

        definitions = read_definitions(body, request.path)

        def job(tx: Transaction, db: Connection) -> tuple[bool, Json]:
            known = _found(view.find_group, db, ids[0])
            with words_of_01("/", request.path):
                group = read_group({name: given[name] for name in given if name != "definitions"}, DIALECT, [])
            if known is not None:
                keep_format(known, group, given["format"], request.path)
            if known is None or not view.says_the_same(ids[0], known, group):
                with words_of_01(f"{GROUPS}/{ids[0]}", request.path):
                    tx.put(f"{GROUPS}/{ids[0]}", _client(group))
            for definition in definitions:
                self._add(tx, db, view, ids[0], definition, request)
            for definition in definitions:  # which may refer to each other in any order
                check_relations(db, ids[0], definition, definition_subject(ids[0], definition, request.path))
            return known is None, view.group(db, ids[0])

        (created, shown), header = self._write(request, job)
        place = [("location", request.base + request.path)] if created else []
        return _json(shown, [header, *place], 201 if created else 200)

    def _post(self, request: Request, ids: Ids) -> Response:
        body = _body(request)
        view = Catalog01View(self._requests, request)

        def job(tx: Transaction, db: Connection) -> tuple[bool, Json]:
            messageid, new = self._add(tx, db, view, ids[0], body, request)
            check_relations(db, ids[0], body, definition_subject(ids[0], body, request.path))
            return new, view.latest(db, ids[0], messageid)

        (new, shown), header = self._write(request, job)
        response = self._shown(request, (ids[0], to_id(shown["id"])), shown, 201 if new else 200)
        return Response(response.status, [*response.headers, header], response.body)

    def _add(
        self, tx: Transaction, db: Connection, view: Catalog01View, groupid: str, body: Json, request: Request
    ) -> tuple[str, bool]:
        """Add the version, or the versions, that a document holds; the definition's id, and whether any was new."""
        group = view.find_group(db, groupid)
        form = format_of(group, DIALECT, {})
        subject = definition_subject(groupid, body, request.path)
        if body.get("format", form) != form:
            raise invalid(subject, "format", f"must be that of the group ({form})")
        protocol = "" if form in DIALECT.formats else group.get("protocol") or NO_PROTOCOL
        versions, notes = [], list[Problem]()
        for place, document in read_versions(body, subject):
            refuse_problems(check_definition(document, form), body, place, subject)
            with words_of_01("/", subject, form):
                versions.append(_client(read_definition(document, DIALECT, notes, "", form, protocol)))
        refuse_lost(notes, subject)
        messageid = to_id(body["id"])
        xid = definition_xid(groupid, messageid)
        before = snapshots.latest(db, xid)
        keep_authority(before, versions, subject)
        if before is not None and view.has_all(db, groupid, messageid, versions, group):
            return messageid, False
        for message in versions:
            loosen(tx, group, message, form, groupid)
        with words_of_01(xid, subject, form):
            tx.put(xid, in_line(versions))
        after = snapshots.latest(db, xid)
        return messageid, before is None or (after is not None and after.number != before.number)

    def _delete(self, request: Request, ids: Ids) -> Response:
        view = Catalog01View(self._requests, request)
        listed = request.path.rstrip("/").endswith("/messagedefinitions")
        path = f"{GROUPS}/{ids[0]}" if len(ids) == 1 else definition_xid(*ids)

        def job(tx: Transaction, db: Connection) -> None:
            view.find_group(db, ids[0])
            if len(ids) == 2:
                keep_related(view.related(db, *ids), request.path)
            tx.delete(f"{path}/messages" if listed else path)

        return Response(204, [self._write(request, job)[1]])

    def _delete_version(self, request: Request, ids: Ids) -> Response:
        """Take a version away; where it was the newest, the one before is what holds now."""
        groupid, messageid, number = ids
        view = Catalog01View(self._requests, request)
        correlation = self._requests.correlation()

        def job(tx: Transaction, db: Connection) -> None:
            shown = view.version(db, groupid, messageid, number)
            xid = definition_xid(groupid, messageid)
            kept = [one for one in snapshots.listing(db, xid, 0, 1 << 31) if one.number != shown["version"]]
            if not kept:
                keep_related(view.related(db, groupid, messageid), request.path)
                tx.delete(xid)
                return
            snapshots.remove(db, xid, shown["version"], now(), correlation)
            if kept[-1].number < shown["version"]:
                self._put_back(db, request, xid, kept[-1].attrs, correlation)

        return Response(204, [self._write(request, job, correlation)[1]])

    def _put_back(self, db: Connection, request: Request, xid: str, attrs: Json, correlation: str) -> None:
        """Make a message what the newest snapshot of its log says, which is not recorded again."""
        self._requests.write_in(
            db, "PUT", xid, lambda setup: Flags.EMPTY, request.base, lambda setup, target, flags: (attrs, Ask()),
            correlation, unrecorded,
        )  # fmt: skip


# --- requests and responses -----------------------------------------------------------------------------------------

_URI = "%/:?#[]@!$&'()*+,;=~-._"


def _json(value: Any, headers: list[tuple[str, str]] | None = None, status: int = 200) -> Response:
    return Response(status, [JSON, *(headers or [])], orjson.dumps(value))


def _next(request: Request, page: Page) -> list[tuple[str, str]]:
    if not page.next:
        return []
    kept = [part for part in request.query.split("&") if part and part.partition("=")[0] != "page"]
    query = "&".join([*kept, f"page={page.next}"])
    return [("link", f"<{request.base}{quote(request.path)}?{query}>;rel=next")]


def _body(request: Request) -> Json:
    if not request.body:
        raise RegistryError("missing_body", request.path)
    body = parse_json(request.body, request.path)
    if not isinstance(body, dict):
        raise RegistryError("parsing_data", request.path, error_detail="the body must be a JSON object")
    return body


def _segment(path: str, place: int) -> str:
    return quote(path.split("/")[place + 1], safe="!$&'()*+,;=@~")


def _client(entity: Json) -> Json:
    return {name: value for name, value in entity.items() if name not in _ASSIGNED}


def _found(read: Callable[[Connection, str], Json], db: Connection, groupid: str) -> Json | None:
    try:
        return read(db, groupid)
    except RegistryError as error:
        if error.name != "not_found":
            raise
        return None


def _refuse(problems: Iterator[Problem], path: str) -> None:
    for problem in problems:
        raise RegistryError(problem.code, path, **dict(problem.args))
