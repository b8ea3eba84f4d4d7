"""From a request to a registry's operation and back: the HTTP binding (requests/http.md).

Rule 1: paths come from the model; the few of our own are listed here (`/.xregistry`, `/.well-known/xregistry`) or given
as extensions.
Rule 2: nothing here decides an error's status: errors are raised, `problems` answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote
from zlib import crc32

import orjson

from signalbook.budget import Budget, within
from signalbook.errors import RegistryError, SignalbookError
from signalbook.jsontext import parse_json
from signalbook.registry.capabilities import Setup, generation
from signalbook.registry.read import render
from signalbook.registry.read.reads import Page
from signalbook.registry.read.render import ReadContext, View, point_read
from signalbook.registry.requests import RequestResult, Requests, latest_change
from signalbook.registry.store import Connection, Store
from signalbook.registry.store.store import why_unwritable
from signalbook.registry.urls import DETAILS, Flags, RequestTarget, find_target, parse_flags
from signalbook.registry.work import ResourceState, Work
from signalbook.registry.write.operations import ALLOWED
from signalbook.registry.write.versions import Ask
from signalbook.server import http, problems
from signalbook.server.answers import encoded
from signalbook.server.headers import document_body, document_response, refuse_headers
from signalbook.server.http import (
    ATTRIBUTE,
    JSON,
    REPEATED,
    SEQUENCE,
    Headers,
    Request,
    Response,
    WaitingAnswer,
    refuse_coded,
)
from signalbook.server.problems import not_supported

if TYPE_CHECKING:
    from signalbook.server.events.delivery import Courier
    from signalbook.server.messages import Judgements

__all__ = [
    "CODINGS",
    "MOST_BYTES",
    "Face",
    "PointCache",
    "RegistryService",
    "check_preconditions",
    "coded",
    "joined",
    "matches",
    "tag",
    "unchanged",
    "view_name",
]


def joined(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers as a dict by lower-case name, repeated ones joined as RFC 9110 section 5.3 says.

    An attribute's header is not a list: a line end, which no value has, tells that it was repeated.
    """
    headers: dict[str, str] = {}
    for name, value in items:
        name = name.lower()
        between = REPEATED if name.startswith(ATTRIBUTE) else ", "
        headers[name] = f"{headers[name]}{between}{value}" if name in headers else value
    return headers


# Answers to point reads, kept while nothing is written.
#
# Rule 1: SQLite says in one word whether anybody, in this process or another, has committed since it was last asked
# (`PRAGMA data_version`); then everything kept is forgotten. So an answer is never older than the look-up it saves.
# Rule 2: it is used on the event loop alone, with that thread's own connection, and holds a bounded number of bytes.


MOST_BYTES = 32 << 20


class PointCache:
    """Responses and their tags by address."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._left = most_bytes
        self._version = -1
        self._kept: dict[tuple[str, str], tuple[Response, str]] = {}

    def find(self, db: Connection, address: tuple[str, str]) -> tuple[Response, str] | None:
        """Return a response that is still right."""
        found = db.one("PRAGMA data_version")
        version = found[0] if found is not None else -1
        if version != self._version:
            self._version = version
            self._forget()
            return None
        return self._kept.get(address)

    def keep(self, address: tuple[str, str], response: Response, etag: str) -> None:
        """Keep a response that was made after `find` returned None."""
        self._left -= len(response.body) + 1000
        if self._left < 0:
            self._forget()
        self._kept[address] = (response, etag)

    def _forget(self) -> None:
        self._kept.clear()
        self._left = self._most_bytes


# Entity tags: how a response carries one and how a request is compared with it (RFC 9110 sections 8.8 and 13.1).
#
# Rule: a compressed response carries its tag with the coding as suffix (`"7-zstd"`), because a strong tag names exact
# bytes; on the way in the suffix is dropped, so a client may send back whichever it was given.


CODINGS = ("zstd", "gzip")
"""The content codings this server can apply, the one it likes best first."""

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_SUFFIXES = tuple(f"-{coding}" for coding in CODINGS)


def coded(etag: str, coding: str) -> str:
    """The tag of the same response in a content coding: `'"7"'` becomes `'"7-gzip"'`."""
    return f'{etag[:-1]}-{coding}"' if etag.endswith('"') else etag


def matches(header: str, etag: str, *, weak: bool = False) -> bool:
    """Whether `If-Match`, or with `weak` `If-None-Match`, holds for the entity that has `etag`."""
    if header == etag:
        return True
    if header.strip() == "*":
        return True
    current = _TAG.fullmatch(etag)
    if current is None or (current[1] and not weak):
        return False
    wanted = current[2]
    for prefix, tag in _TAG.findall(header):
        if prefix and not weak:
            continue
        if tag == wanted or (tag.endswith(_SUFFIXES) and tag.rpartition("-")[0] == wanted):
            return True
    return False


def unchanged(if_none_match: str | None, etag: str) -> Response | None:
    """The 304 for a client that has what it asks for, with the tag under which it has it; else None."""
    if if_none_match is None or not matches(if_none_match, etag, weak=True):
        return None
    known = next((tag for tag in (etag, *(coded(etag, coding) for coding in CODINGS)) if tag in if_none_match), etag)
    return Response(304, [("etag", known)])


# `If-Match` and `If-None-Match` on writes, and the tags that answers carry: design section 3.
#
# Rule 1: the tag of one entity is `"e<epoch>-<modifiedat>-<view>"`, that of anything larger `"s<change>-<view>"`: a
# parent's epoch does not move when a grandchild changes, the name of the latest change does.
# Rule 2: a write compares the state, not the view: what a tag begins with, whatever view or content coding it came
# with. A bare epoch is taken too.


# The state that a tag names: a change number, an epoch with its time, or an epoch alone; of any other tag nothing.
_EPOCH_TAG = re.compile(r'"(s[0-9a-f.]+|e[0-9.]+-[0-9T:.-]+Z)-[^"]*"|"([0-9]+)"|"[^"]*"|([0-9]+)')


def view_name(*parts: str) -> str:
    """Return a short name for everything about a view that changes its bytes."""
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def tag(state: str, view: str) -> str:
    """Return an entity tag."""
    return f'"{state}-{view}"'


def check_preconditions(headers: Headers, work: Work, target: RequestTarget) -> None:
    """Refuse a write whose condition does not hold."""
    if_match, if_none_match = headers.get("if-match"), headers.get("if-none-match")
    if if_match is None and if_none_match is None:
        return
    states = _states(work, target)
    if if_match is not None and not _meets(if_match, states):
        raise RegistryError("precondition_failed", target.path)
    if if_none_match is not None and _meets(if_none_match, states):
        raise RegistryError("precondition_failed", target.path)


def _meets(header: str, states: set[str]) -> bool:
    """Tell whether one of the tags in a header names one of these states."""
    if header.strip() == "*":
        return bool(states)
    return any(not states.isdisjoint(named) for named in _EPOCH_TAG.findall(header))


def _states(work: Work, target: RequestTarget) -> set[str]:
    """Return the names of the state that the addressed entity is in; none where it does not exist."""
    sequence = f"s{latest_change(work.db)}"
    if target.kind in ("registry", "capabilities", "modelsource", "groups"):
        return {sequence, str(work.registry.row.epoch)}
    group = work.group(target.group_type, target.gid)
    if group is None or group.row is None or group.id != target.gid:
        return set()
    if target.kind in ("group", "resources"):
        return {sequence, f"e{group.row.epoch}-{group.row.modifiedat}", str(group.row.epoch)}
    state = work.resource(group, target.resource_type, target.rid)
    if state is None or state.row is None or state.id != target.rid:
        return set()
    return _resource_states(work, state, target, sequence)


def _resource_states(work: Work, state: ResourceState, target: RequestTarget, sequence: str) -> set[str]:
    assert state.row is not None
    meta = state.row.epoch
    if target.kind in ("meta", "versions"):
        return {sequence, str(meta)}
    if state.xref is not None:
        return {sequence}
    versionid = target.vid if target.kind == "version" else state.default
    version = work.complete(state).get(versionid or "")
    if version is None or version.row is None:
        return set()
    return {sequence, f"e{meta}.{version.row.epoch}-{version.row.modifiedat}", str(version.row.epoch)}


_DISCOVERY = ("/.xregistry", "/.well-known/xregistry")
_NO_BODY = frozenset({"DELETE"})
# What a point read of another API may take on the event loop: some dozen SQL statements.
_POINT_STEPS = 200
_WRITES = frozenset({"PUT", "POST", "PATCH", "DELETE"})
# The branches whose writes are changes of the registry.
_RECORDED = frozenset({"messagecatalog", "messagedefinition", "replicas"})
_ROOT = RequestTarget("registry", "/", "/")


class Face(Protocol):
    """Another API on the same registry, with paths and errors of its own."""

    def answer(self, request: Request, /) -> Response:
        """The answer to a request."""
        ...

    def asks(self, request: Request, /) -> bool:
        """Whether a POST only asks."""
        ...

    def is_point(self, request: Request, /) -> bool:
        """Whether a GET is answered within microseconds."""
        ...

    def respond(self, error: BaseException, path: str, /) -> Response:
        """The response for what went wrong."""
        ...


class RegistryService:
    """Answers requests for one registry; its `owner` is not bound by what its capabilities offer to others."""

    def __init__(
        self,
        requests: Requests,
        *,
        local: bool = True,
        extensions: Mapping[str, Callable[[Request], Response]] | None = None,
        branches: Mapping[str, Callable[[Request], Response]] | None = None,
        waiting: Mapping[str, WaitingAnswer] | None = None,
        described: frozenset[str] = frozenset(),
        courier: Courier | None = None,
        judgements: Judgements | None = None,
        owner: bool = False,
        faces: Mapping[str, Face] | None = None,
    ) -> None:
        self._requests = requests
        self._owner = owner
        self._extensions = extensions or {}
        self._branches = branches or {}  # by the first part of a path, what answers all paths that begin with it
        self.waiting: Mapping[str, WaitingAnswer] = waiting or {}
        self.described = described
        self._faces = faces or {}  # by the first part of a path, another API of its own
        self._courier = courier
        self.judgements = judgements
        self._local = local  # the store is in this process: a look-up is quicker than another thread
        self._views: dict[str, tuple[View, str]] = {}
        self._points = PointCache()

    @property
    def store(self) -> Store:
        """The store that holds the registry."""
        return self._requests.store

    # ---- reading

    def quick(self, request: Request) -> Response | None:
        """Answer a point read on the spot."""
        if request.method != "GET" or not self._local or request.path in self._extensions:
            return None
        face = self._face(request.path) if self._faces else None
        if face is not None:
            return self._quick_face(face, request)
        if request.query:
            return None
        db = self._requests.store.reader()
        address = (request.base, request.path)
        kept = self._points.find(db, address)
        if kept is None:
            kept = self._point(db, request)
            if kept is None:
                return None
            self._points.keep(address, *kept)
        response, etag = kept
        return unchanged(request.headers.get("if-none-match"), etag) or response

    def _quick_face(self, face: Face, request: Request) -> Response | None:
        """Answer a point read of another API."""
        if not face.is_point(request):
            return None
        address = (request.base, f"{request.path}?{request.query} {request.headers.get('accept') or ''}")
        kept = self._points.find(self._requests.store.reader(), address)
        if kept is not None:
            return kept[0]
        budget = Budget(_POINT_STEPS, "This look-up")
        with within(budget):
            response = face.answer(request)
        if budget.left < 0:
            return None  # a thread has the time for it
        if response.status == 200:
            self._points.keep(address, response, "")
        return response

    def _point(self, db: Connection, request: Request) -> tuple[Response, str] | None:
        """Return the answer to a point read and its tag."""
        setup = self._requests.known
        if setup is None:
            return None
        known = self._views.get(request.base)
        if known is None or known[0].model is not setup.model:
            known = self._remember(request.base, setup, db)
        view, name = known
        view.room = self._requests.limits.size
        found = point_read(db, setup, view, request.path)
        if found is None:
            return None
        return _entity(*found, name)

    def _remember(self, base: str, setup: Setup, db: Connection) -> tuple[View, str]:
        if len(self._views) > 256:
            self._views.clear()
        spec = self._requests.spec
        view = ReadContext(db, setup, _ROOT, Flags.EMPTY, spec, base, self._requests.limits).view()
        known = self._views[base] = (view, view_name(base, spec.name, setup.generation))  # a model shapes answers too
        return known

    def _face(self, path: str) -> Face | None:
        """Return the API that a path belongs to, where that is another one; the model's own names go before it."""
        first = path.split("/", 2)[1] if path.startswith("/") else ""
        face = self._faces.get(first)
        if face is None:
            return None
        known = self._requests.known
        return None if known is not None and first in known.model.groups else face

    def asks(self, request: Request) -> bool:
        """Tell whether a POST only asks, so that whoever may read may send it."""
        face = self._face(request.path)
        return request.path in self._extensions or (face is not None and face.asks(request))

    def respond(self, error: BaseException, path: str) -> Response:
        """Return the response for what went wrong, in the form of the API that the path belongs to."""
        face = self._face(path)
        return face.respond(error, path) if face is not None else problems.respond(error, path)

    def answer(self, request: Request) -> Response:
        """Answer any request."""
        if request.path in self._extensions:
            return self._extensions[request.path](request)
        face = self._face(request.path)
        if face is not None:
            return face.answer(request)
        branch = self._branches.get(request.path.split("/", 2)[1]) if request.path.startswith("/") else None
        if branch is not None:
            response = branch(request)
            if request.method in _WRITES and response.status < 300 and request.path.split("/", 2)[1] in _RECORDED:
                response.headers.append((SEQUENCE, str(self._requests.store.sequence())))
            return response
        if request.path in _DISCOVERY:
            return self._discovery(request)
        if request.path.startswith(render.PREFIX):
            request = replace(request, path=self._long_path(request.path))
        if request.method in ("GET", "HEAD"):
            return self._read_in_snapshot(request)
        if request.method == "OPTIONS":
            setup = self._current()
            target = find_target(setup.model, request.path)
            return http.options(request, "GET, OPTIONS" if self._requests.read_only else _allow(target))
        return self._write(request)

    def _current(self) -> Setup:
        return self._requests.setup(self._requests.store.reader())

    def _long_path(self, path: str) -> str:
        """Return the path that a short one stands for; a client may append `$details` to either (ATTR-3)."""
        setup = self._current()
        name, details, rest = path[len(render.PREFIX) :].partition(DETAILS)
        known = setup.capabilities.shortself and not rest
        xid = render.resolve(self._requests.store.reader(), name) if known else None
        if xid is None:
            raise RegistryError("not_found", path)
        return xid + details

    def _discovery(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return http.options(request, "GET, OPTIONS")
        if request.method not in ("GET", "HEAD"):
            raise not_supported(request.path, request.method, "GET, OPTIONS")
        return Response(200, [JSON], orjson.dumps({"registries": [request.base + "/"]}))

    def _query(self, request: Request) -> str | Flags:
        """Return a request's query; for the owner, whom capabilities do not bind, with every flag in it read."""
        if not self._owner or not request.query:
            return request.query
        return parse_flags(request.query, path=request.path.rstrip("/") or "/")

    def _read_in_snapshot(self, request: Request) -> Response:
        return self._requests.store.read(lambda db: self._read_in(db, request))

    def _read_in(self, db: Connection, request: Request) -> Response:
        """Answer a GET from one snapshot."""
        requests = self._requests
        setup = requests.setup(db)
        target = find_target(setup.model, request.path)
        flags = requests.flags(self._query(request), setup, request.path)
        spec = requests.shown_version(flags, setup, target.path)
        known = request.headers.get("if-none-match")
        if not request.query:
            view = ReadContext(db, setup, _ROOT, flags, spec, request.base, requests.limits).view()
            point = point_read(db, setup, view, request.path)
            if point is not None:
                response, etag = _entity(*point, view_name(request.base, spec.name, setup.generation))
                return unchanged(known, etag) or response
        document = target.document and not flags.doc
        shown = (request.path, "document" if document else request.query)
        etag = tag(f"s{latest_change(db)}", view_name(request.base, spec.name, setup.generation, *shown))
        if known != "*" and (same := unchanged(known, etag)) is not None:
            return same
        context = ReadContext(db, setup, target, flags, spec, request.base, requests.limits, not document)
        if not document and known != "*" and request.answers is not None:
            return request.answers.shared(etag, lambda: self._shown(request, context, etag))
        page = requests.page(context)
        if known is not None and (same := unchanged(known, etag)) is not None:  # `*`: whatever there is
            return same
        if not document:
            return _metadata(request, page, etag)
        view = replace(context, flags=Flags.EMPTY).view()
        response = document_response(db, view, RequestResult(target, spec, page), request.base)
        return Response(response.status, [*response.headers, ("etag", etag)], response.body)

    def _shown(self, request: Request, context: ReadContext, etag: str) -> Response:
        if not context.spec.dialect or request.answers is None:
            return _metadata(request, self._requests.page(context), etag)
        with request.answers.in_memory(request.path):
            return _metadata(request, self._requests.page(context), etag)

    # ---- writing

    def _write(self, request: Request) -> Response:
        if "content-encoding" in request.headers:
            refuse_coded(request)
        correlation = self._requests.correlation()
        answer, document = self._requests.write(partial(self._write_in, request, correlation))
        sequence = answer.sequence if answer.sequence is not None else self._requests.store.sequence()
        headers = [("xRegistry-xregcorrelationid", correlation), (SEQUENCE, str(sequence))]
        if load := _load(request):
            headers.append(("preference-applied", f"load={load}"))
            if answer.written is not None:
                headers.append((WRITTEN, "groups={}, resources={}".format(*answer.written)))
        if answer.page is None:
            return Response(204, headers)
        status = 201 if answer.outcome is not None and answer.outcome.created else 200
        headers += _places(request, answer)
        if document is not None:
            if status == 200:
                return Response(document.status, [*headers, *document.headers], document.body)
            shown = [header for header in document.headers if header[0] != "location"]
            return Response(status, [*headers, *shown], document.body)
        return Response(status, [JSON, *headers], answer.page.text.encode())

    def _write_in(self, request: Request, correlation: str, db: Connection) -> tuple[RequestResult, Response | None]:
        """Do one write within a transaction; the second value shows the document that it wrote, if that is asked."""
        requests, method = self._requests, request.method
        begun = requests.begin_write(db, method, request.path, self._query(request), request.base, correlation)
        context, target = begun.context, begun.context.target
        _check_method(context.setup, method, target, owner=self._owner)
        setdefault = context.flags.setdefaultversionid
        if target.document and method in ("PUT", "POST"):
            body, ask = document_body(request, target, setdefault)
        else:
            names = request.headers.keys()
            if any(name.startswith(ATTRIBUTE) for name in names):
                refuse_headers(names, target.path)
            ask = Ask(method == "PATCH", setdefault, target.kind == "meta", load=_load(request))
            body = _json_body(request, target)
        check_preconditions(request.headers, begun.work, target)
        answer = requests.finish_write(begun, body, ask)
        # Metadata are shown where they would be read: where the target is not a document, or with `doc`.
        if answer.page is None or not answer.target.document or context.flags.doc:
            return answer, None
        view = replace(context, setup=requests.setup(db), target=answer.target, flags=Flags.EMPTY).view()
        return answer, document_response(db, view, answer, request.base)

    # ---- upkeep

    def health(self) -> str:
        """Return why requests cannot be answered, writes among them where it takes any; empty where they can."""
        try:
            generation(self._requests.store.reader())
        except SignalbookError as error:
            return str(error)
        return "" if self._requests.read_only else why_unwritable(self._requests.store)

    def start(self) -> None:
        """Begin what goes on beside the requests: deliveries to subscribers."""
        if self._courier is not None:
            self._courier.start()

    def close(self) -> None:
        """Give the store back."""
        if self._courier is not None:
            self._courier.stop()
        self._requests.store.close()


def _entity(text: str, state: str, view: str) -> tuple[Response, str]:
    """Return the answer that shows one entity, and its tag.

    An entity that is made anew may have the epoch and, by its client, the time of the one before it: so a sum of the
    bytes is part of the tag.
    """
    body = text.encode()
    etag = tag(state, f"{view}{crc32(body):08x}")
    return Response(200, [JSON, ("etag", etag)], body), etag


def _metadata(request: Request, page: Page, etag: str) -> Response:
    """Return the answer that shows a page; a large one is put where the request says."""
    headers = [JSON, ("etag", etag), *_links(request, page)]
    if page.pieces is None:
        return Response(200, headers, page.text.encode())
    if request.answers is None:
        return Response(200, headers, "".join(page.pieces).encode())
    body, spool = request.answers.collect(encoded(page.pieces), request.path)
    return Response(200, headers, body, spool)


def _allow(target: RequestTarget) -> str:
    return ALLOWED[target.kind] if target.kind != "meta" else "DELETE, " + ALLOWED["meta"]


def _check_method(setup: Setup, method: str, target: RequestTarget, *, owner: bool) -> None:
    if method == "PATCH" and target.document:
        raise RegistryError("details_required", target.path)
    if method not in ALLOWED[target.kind].split(", "):
        raise not_supported(target.path, method, ALLOWED[target.kind])
    needed = target.kind if target.kind in ("capabilities", "modelsource") else "entities"
    if not owner and not setup.capabilities.available.get(needed):
        raise not_supported(target.path, method, "GET, OPTIONS", f'"{needed}" is not mutable')


# How many groups and resources of a part of a load were new or changed; `Preference-Applied` has no place for it.
WRITTEN = "signalbook-written"
_LOAD = re.compile(r'(?:^|[,;])\s*load\s*=\s*"?([0-9A-Za-z_-]{1,64})"?\s*(?=[,;]|$)', re.IGNORECASE)


def _load(request: Request) -> str:
    """Return the name of the load that a request says it is a part of (`Prefer: load=NAME`, RFC 7240)."""
    found = _LOAD.search(request.headers.get("prefer") or "")
    return found[1] if found else ""


def _json_body(request: Request, target: RequestTarget) -> Any:
    if not request.body:
        if request.method in _NO_BODY:
            return None
        raise RegistryError("missing_body", target.path)
    body = parse_json(request.body, target.path)
    if body is None and target.kind == "modelsource":
        return {}  # as where it is part of the registry: REG-6
    if not isinstance(body, dict):
        raise RegistryError("parsing_data", target.path, error_detail="the body must be a JSON object")
    return body


def _links(request: Request, page: Page) -> list[tuple[str, str]]:
    """Return the link to the next part of a collection: PAGE-3."""
    if not page.next:
        return []
    kept = [part for part in request.query.split("&") if part and part.partition("=")[0] != "page"]
    query = "&".join([*kept, f"page={page.next}"])
    address = f"{request.base}{quote(request.path)}?{query}"
    return [("link", f"<{address}>;rel=next;count={page.count}")]


def _places(request: Request, answer: RequestResult) -> list[tuple[str, str]]:
    """Return where to find what was written: HTTP-12, HTTP-13."""
    outcome, target = answer.outcome, answer.target
    assert outcome is not None
    details = "$details" if target.resource is not None and target.resource.hasdocument and not target.document else ""
    places = []
    version = f"{target.resource_xid}/versions/{outcome.vid}{details}" if outcome.vid else ""
    if outcome.created:
        if outcome.shown == "version":
            places.append(("location", request.base + version))
        else:
            suffix = details if outcome.shown == "resource" else ""
            places.append(("location", request.base + target.xid + suffix))
    if outcome.new_version and version and not target.document:
        places.append(("content-location", request.base + version))
    return places
