"""The CNCF Message and Event Catalog API 0.1: `/messagecatalog` and `/messagedefinition?uri=`.

Rule 1: it is a view on the registry: a group is a message group, a definition a message, and every write is one of the
registry's, with all its rules. What only 0.1 demands is checked here before.
Rule 2: a version is a snapshot of the registry's log. Versions are added and taken away, never changed: what would
change one is not supported.
Rule 3: a document that says what the newest version says is not a new version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from signalbook.dialects.catalog01_documents import FORMAT_LABEL, NO_PROTOCOL, in_line, read_definition, read_group
from signalbook.dialects.checks import check_definition, check_group
from signalbook.dialects.rows import SEGMENT, to_id
from signalbook.errors import Problem, RegistryError
from signalbook.jsontext import Json, parse_json
from signalbook.registry import changes
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.changes import Snapshot
from signalbook.registry.read.reads import Page
from signalbook.registry.registry import Transaction
from signalbook.registry.requests import Requests, now
from signalbook.registry.store import Connection
from signalbook.registry.write.versions import Ask
from signalbook.server import http
from signalbook.server.catalog01.view import (
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
from signalbook.spec.dialects.dialect import DialectRow

__all__ = [
    "MessageCatalog",
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

# What only the 0.1 catalog demands of a write: rules that the registry itself has not.
#
# Rule: they hold for who writes through the API of 0.1. The xRegistry API keeps the model's rules alone, in which these
# are attributes like any other; versions keep what they were written with, whatever is written later.


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
        raise invalid(path, "definition", "must be in one of the versions, since there is a list of them")
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
    """Refuse a version of a definition by what is wrong first; its place is named unless all versions share it."""
    for problem in problems:
        args = dict(problem.args)
        name = args["name"]
        if place and name.partition(".")[0] not in body:
            args["name"] = f"{place}.{name}"
        raise RegistryError(problem.code, path, **args)


@contextmanager
def words_of_01(xid: str, subject: str, form: str = "") -> Iterator[None]:
    """Report what the registry refuses of an entity by the names and at the place that 0.1 has for it."""
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
    rows += known.rows if known is not None else (DialectRow("definition", "protocoloptions"),)
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


def keep_format(known: Json, before: str, group: Json, form: str, path: str) -> None:
    """Section 2.1.1: a format is not modified while there are definitions; it then keeps what stands for it."""
    if known.get("messagescount") and before != form:
        raise invalid(path, "format", f"is '{before}' and cannot change while the group has definitions")
    if before == form:
        for name in ("envelope", "protocol"):
            group.pop(name, None)
            if name in known:
                group[name] = known[name]
        stated = (known.get("labels") or {}).get(FORMAT_LABEL)
        if stated is not None:
            group["labels"] = {**(group.get("labels") or {}), FORMAT_LABEL: stated}


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
    labels = {**(group.get("labels") or {}), FORMAT_LABEL: form}
    tx.patch(f"{GROUPS}/{groupid}", {"protocol": None, "labels": labels})
    group.pop("protocol")


# --- relations --------------------------------------------------------------------------------------------------------


def check_relations(db: Connection, groupid: str, body: Json, path: str) -> None:
    """Section 2.2.4: `relatedto` names a definition of the same group, which may have come with this one."""
    for _, document in read_versions(body, path):
        other = document.get("relatedto")
        if other and changes.latest_snapshot(db, definition_xid(groupid, to_id(other))) is None:
            raise invalid(path, "relatedto", f"must name a definition of the group; there is no '{other}'")


def keep_related(related: Sequence[str], path: str) -> None:
    """The same section: a definition stays as long as another says that it is related to it."""
    if related:
        detail = f"'{related[0]}' is related to it; delete that first, or post a version of it without 'relatedto'"
        raise RegistryError("bad_request", path, error_detail=detail)


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
        allow = http.allow_list(methods)
        if request.method == "OPTIONS":
            return self._features(request, allow) if not parts else http.options(request, allow)
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
            return http.options(request, allow)
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
        head = http.options(request, allow)
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

        return self._requests.write(run, several=True), ("xRegistry-xregcorrelationid", correlation)

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
            form, before = given["format"], view.format(db, known) if known is not None else ""
            if known is not None:
                keep_format(known, before, group, form, request.path)
            elif not (group.get("envelope") or group.get("protocol")):
                group["labels"] = {**(group.get("labels") or {}), FORMAT_LABEL: form}  # before a message tells it
            if known is None or not view.says_the_same(ids[0], known, before, group, form):
                with words_of_01(f"{GROUPS}/{ids[0]}", request.path):
                    tx.put(f"{GROUPS}/{ids[0]}", _client(group))
            for definition in definitions:
                self._add(tx, db, view, ids[0], definition, request, form)
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
        self, tx: Transaction, db: Connection, view: Catalog01View, groupid: str, body: Json, request: Request,
        form: str = "",
    ) -> tuple[str, bool]:  # fmt: skip
        """Add the version, or the versions, that a document holds; the definition's id, and whether any was new.

        `form` is the group's format, where that is known already.
        """
        group = view.find_group(db, groupid)
        form = form or view.format(db, group)
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
        before = changes.latest_snapshot(db, xid)
        keep_authority(before, versions, subject)
        if before is not None and view.has_all(db, groupid, messageid, versions, group, form):
            return messageid, False
        for message in versions:
            loosen(tx, group, message, form, groupid)
        with words_of_01(xid, subject, form):
            tx.put(xid, in_line(versions))
        after = changes.latest_snapshot(db, xid)
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
            kept = [one for one in changes.listing(db, xid, 0, 1 << 31) if one.number != shown["version"]]
            if not kept:
                keep_related(view.related(db, groupid, messageid), request.path)
                tx.delete(xid)
                return
            changes.remove(db, xid, shown["version"], now(), correlation)
            if kept[-1].number < shown["version"]:
                self._put_back(db, request, xid, kept[-1].attrs, correlation)

        return Response(204, [self._write(request, job, correlation)[1]])

    def _put_back(self, db: Connection, request: Request, xid: str, attrs: Json, correlation: str) -> None:
        """Make a message what the newest snapshot of its log says, which is not recorded again."""
        begun = self._requests.begin_write(db, "PUT", xid, "", request.base, correlation, recorded=False)
        self._requests.finish_write(begun, attrs, Ask())


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
