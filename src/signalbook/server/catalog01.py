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
from signalbook.document.dialects.ids import to_id
from signalbook.document.dialects.metaschema import check_definition, check_group
from signalbook.document.json_text import parse_json
from signalbook.errors import Problem, RegistryError
from signalbook.registry import snapshots
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.reads import Page
from signalbook.registry.registry import Transaction
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection
from signalbook.server import cross_origin
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
    """Answers the paths of 0.1 for one registry; `update` says whether this server takes writes at all."""

    def __init__(self, requests: Requests, *, update: bool = True) -> None:
        self._requests = requests
        self._update = update
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
        if request.method != "GET" and not self._mutable():
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

    def _mutable(self) -> bool:
        return self._update and self._capabilities().is_mutable("entities")

    def _features(self, request: Request, allow: str) -> Response:
        """Section 4.2.1: what this implementation can do, and does for this server."""
        head = cross_origin.options(request, allow)
        features = {
            "filterattributes": list(FILTERS),
            "pagination": self._capabilities().pagination,
            "update": self._mutable(),
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
        uri = version_uri(authority, ids[0], ids[1], shown["version"])
        headers = [("content-location", place), ("link", f"<{quote(uri, safe=_URI)}>;rel=canonical")]
        if status == 201:
            headers.append(("location", place))
        return _json(shown, headers, status)

    # ---- writing

    def _write(self, request: Request, job: Callable[[Transaction, Connection], Any]) -> tuple[Any, tuple[str, str]]:
        correlation = self._requests.correlation()

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

        def job(tx: Transaction, db: Connection) -> tuple[bool, Json]:
            known = _found(view.find_group, db, ids[0])
            group = read_group({name: value for name, value in given.items() if name != "definitions"}, DIALECT, [])
            if known is not None:
                _keep_format(known, group, given["format"], request.path)
            tx.put(f"{GROUPS}/{ids[0]}", _client(group))
            for definition in _definitions(body, request.path):
                self._add(tx, db, view, ids[0], definition, request)
            return known is None, view.group(db, ids[0])

        (created, shown), header = self._write(request, job)
        place = [("location", request.base + request.path)] if created else []
        return _json(shown, [header, *place], 201 if created else 200)

    def _post(self, request: Request, ids: Ids) -> Response:
        body = _body(request)
        view = Catalog01View(self._requests, request)

        def job(tx: Transaction, db: Connection) -> tuple[bool, Json]:
            messageid, new = self._add(tx, db, view, ids[0], body, request)
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
        if body.get("format", form) != form:
            raise _invalid(request.path, "format", f"must be that of the group ({form})")
        new = False
        messageid = ""
        for document in _versions(body, request.path):
            _refuse(check_definition(document, form), request.path)
            messageid = to_id(document["id"])
            xid = definition_xid(groupid, messageid)
            before = snapshots.latest(db, xid)
            message = read_definition(document, DIALECT, [], "", form)
            _keep_authority(before.attrs if before else {}, message, before is not None, request.path)
            _check_relation(db, groupid, messageid, document, request.path)
            _loosen(tx, group, message, form, groupid)
            tx.put(xid, _client(message))
            after = snapshots.latest(db, xid)
            new = new or before is None or (after is not None and after.number != before.number)
        return messageid, new

    def _delete(self, request: Request, ids: Ids) -> Response:
        view = Catalog01View(self._requests, request)
        listed = request.path.rstrip("/").endswith("/messagedefinitions")
        path = f"{GROUPS}/{ids[0]}" if len(ids) == 1 else definition_xid(*ids)

        def job(tx: Transaction, db: Connection) -> None:
            view.find_group(db, ids[0])
            tx.delete(f"{path}/messages" if listed else path)

        return Response(204, [self._write(request, job)[1]])

    def _delete_version(self, request: Request, ids: Ids) -> Response:
        """Take a version away; where it was the newest, the one before is what holds now, as a version of its own."""
        groupid, messageid, number = ids
        view = Catalog01View(self._requests, request)

        def job(tx: Transaction, db: Connection) -> None:
            shown = view.version(db, groupid, messageid, number)
            xid = definition_xid(groupid, messageid)
            kept = [one for one in snapshots.listing(db, xid, 0, 1 << 31) if one.number != shown["version"]]
            if not kept:
                tx.delete(xid)
                return
            newest = snapshots.latest(db, xid)
            if newest is not None and newest.number == shown["version"]:
                tx.put(xid, kept[-1].attrs)
            snapshots.remove(db, xid, shown["version"])

        return Response(204, [self._write(request, job)[1]])


# --- what only 0.1 demands ------------------------------------------------------------------------------------------


def _keep_format(known: Json, group: Json, form: str, path: str) -> None:
    """Section 2.1.1: a format is not modified while there are definitions; it then keeps what stands for it."""
    before = format_of(known, DIALECT, {})
    if known.get("messagescount") and before != form:
        raise _invalid(path, "format", f"is '{before}' and cannot change while the group has definitions")
    if before == form:
        for name in ("envelope", "protocol"):
            group.pop(name, None)
            if name in known:
                group[name] = known[name]
        if "0.1.format" in (known.get("labels") or {}):
            group["labels"] = {**(group.get("labels") or {}), "0.1.format": form}


def _keep_authority(before: Json, message: Json, exists: bool, path: str) -> None:
    """Section 2.2.4: the authority of a definition is immutable; a version that leaves it out inherits it."""
    known, given = before.get("authority"), message.get("authority")
    if given is None and known is not None:
        message["authority"] = known
    elif exists and given != known:
        raise _invalid(path, "authority", f"is '{known or 'this catalog'}' and cannot change")


def _check_relation(db: Connection, groupid: str, messageid: str, document: Json, path: str) -> None:
    """Section 2.2.4: `relatedto` names a definition of the same group."""
    other = document.get("relatedto")
    if not other or to_id(other) == messageid:
        return
    if snapshots.latest(db, definition_xid(groupid, to_id(other))) is None:
        raise _invalid(path, "relatedto", f"must name a definition of the group; there is no '{other}'")


def _loosen(tx: Transaction, group: Json, message: Json, form: str, groupid: str) -> None:
    """A group of 0.1 may hold definitions for two versions of a protocol, one of 1.0 states one or none."""
    known = group.get("protocol")
    if known is None or message.get("protocol") in (None, known):
        return
    labels = {**(group.get("labels") or {}), "0.1.format": form}
    tx.patch(f"{GROUPS}/{groupid}", {"protocol": None, "labels": labels})
    group.pop("protocol")


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


def _definitions(body: Json, path: str) -> list[Json]:
    given = body.get("definitions") or []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise _invalid(path, "definitions", "must be a list of objects")
    return given


def _versions(body: Json, path: str) -> Iterator[Json]:
    """The versions that a definition's document holds, the oldest first: itself, or those of its list."""
    common = {name: value for name, value in body.items() if name != "versions"}
    given = body.get("versions")
    if given is None:
        yield common
        return
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise _invalid(path, "versions", "must be a list of at least one version")
    numbers = [one.get("version", place) for place, one in enumerate(given, 1)]
    if not all(isinstance(number, int) for number in numbers):
        raise _invalid(path, "versions", "must have integers as versions")
    for _, place in sorted((number, place) for place, number in enumerate(numbers)):
        overridden = {"id", "format", "authority"} & given[place].keys()
        if any(given[place][name] != common.get(name) for name in overridden):
            raise _invalid(path, "versions", f"must not override {', '.join(sorted(overridden))}")
        yield {**common, **given[place]}


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


def _invalid(path: str, name: str, words: str) -> RegistryError:
    return RegistryError("invalid_attribute", path, name=name, error_detail=words)


def _refuse(problems: Iterator[Problem], path: str) -> None:
    for problem in problems:
        raise RegistryError(problem.code, path, **dict(problem.args))
