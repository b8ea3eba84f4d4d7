"""From a request to a registry's operation and back: the HTTP binding (requests/http.md).

Rule 1: paths come from the model; the few of our own are listed here (`/.xregistry`, `/.well-known/xregistry`) or given
as extensions.
Rule 2: nothing here decides an error's status: errors are raised, `problems` answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from zlib import crc32

import orjson

from signalbook.document.json_text import parse_json
from signalbook.errors import RegistryError, SignalbookError
from signalbook.registry import shortnames
from signalbook.registry.flags import Flags, parse_flags
from signalbook.registry.operations import ALLOWED
from signalbook.registry.points import point_read
from signalbook.registry.reads import Page, make_view
from signalbook.registry.render import View
from signalbook.registry.requests import Answer, Requests, latest_change
from signalbook.registry.resources import Ask
from signalbook.registry.setup import Setup, generation
from signalbook.registry.state import Work
from signalbook.registry.store import Connection, Store
from signalbook.registry.targets import DETAILS, Target, find_target
from signalbook.server import cross_origin
from signalbook.server.conditional import unchanged
from signalbook.server.delivery import Courier
from signalbook.server.entities import document_body, document_response
from signalbook.server.headers import refuse_headers
from signalbook.server.http import JSON, Patient, Request, Response, refuse_coded
from signalbook.server.messages import Judgements
from signalbook.server.point_cache import PointCache
from signalbook.server.preconditions import check_preconditions, tag, view_name
from signalbook.server.problems import not_supported

__all__ = ["RegistryService"]

_DISCOVERY = ("/.xregistry", "/.well-known/xregistry")
_NO_BODY = frozenset({"DELETE"})
_ROOT = Target("registry", "/", "/")


class RegistryService:
    """Answers requests for one registry."""

    def __init__(
        self,
        requests: Requests,
        *,
        local: bool = True,
        extensions: Mapping[str, Callable[[Request], Response]] | None = None,
        branches: Mapping[str, Callable[[Request], Response]] | None = None,
        patient: Mapping[str, Patient] | None = None,
        described: frozenset[str] = frozenset(),
        courier: Courier | None = None,
        judgements: Judgements | None = None,
    ) -> None:
        self._requests = requests
        self._extensions = extensions or {}
        self._branches = branches or {}  # by the first part of a path, what answers all paths that begin with it
        self.patient: Mapping[str, Patient] = patient or {}
        self.described = described
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
        if request.query or request.method != "GET" or not self._local or request.path in self._extensions:
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
        view = make_view(db, setup, Flags.EMPTY, spec, base, _ROOT, self._requests.limits)
        known = self._views[base] = (view, view_name(base, spec.name, setup.generation))  # a model shapes answers too
        return known

    def answer(self, request: Request) -> Response:
        """Answer any request."""
        if request.path in self._extensions:
            return self._extensions[request.path](request)
        branch = self._branches.get(request.path.split("/", 2)[1]) if request.path.startswith("/") else None
        if branch is not None:
            return branch(request)
        if request.path in _DISCOVERY:
            return self._discovery(request)
        if request.path.startswith(shortnames.PREFIX):
            request = replace(request, path=self._long_path(request.path))
        if request.method in ("GET", "HEAD"):
            return self._read(request)
        if request.method == "OPTIONS":
            setup = self._current()
            target = find_target(setup.model, request.path)
            return cross_origin.options(request, "GET, OPTIONS" if self._requests.read_only else _allow(target))
        return self._write(request)

    def _current(self) -> Setup:
        return self._requests.setup(self._requests.store.reader())

    def _long_path(self, path: str) -> str:
        """Return the path that a short one stands for; a client may append `$details` to either (ATTR-3)."""
        setup = self._current()
        name, details, rest = path[len(shortnames.PREFIX) :].partition(DETAILS)
        known = setup.capabilities.shortself and not rest
        xid = shortnames.resolve(self._requests.store.reader(), name) if known else None
        if xid is None:
            raise RegistryError("not_found", path)
        return xid + details

    def _discovery(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return cross_origin.options(request, "GET, OPTIONS")
        if request.method not in ("GET", "HEAD"):
            raise not_supported(request.path, request.method, "GET, OPTIONS")
        return Response(200, [JSON], orjson.dumps({"registries": [request.base + "/"]}))

    def _flags(self, request: Request, setup: Setup) -> Flags:
        capabilities = setup.capabilities
        return parse_flags(
            request.query, capabilities.parameters, path=request.path.rstrip("/") or "/", ignores=capabilities.ignores
        )

    def _read(self, request: Request) -> Response:
        return self._requests.store.read(lambda db: self._read_in(db, request))

    def _read_in(self, db: Connection, request: Request) -> Response:
        """Answer a GET from one snapshot."""
        requests = self._requests
        setup = requests.setup(db)
        target = find_target(setup.model, request.path)
        flags = self._flags(request, setup)
        spec = requests.shown_version(flags, setup, target.path)
        known = request.headers.get("if-none-match")
        if not request.query:
            view = make_view(db, setup, flags, spec, request.base, _ROOT, requests.limits)
            point = point_read(db, setup, view, request.path)
            if point is not None:
                response, etag = _entity(*point, view_name(request.base, spec.name, setup.generation))
                return unchanged(known, etag) or response
        document = target.document and not flags.doc
        shown = (request.path, "document" if document else request.query)
        etag = tag(f"s{latest_change(db)}", view_name(request.base, spec.name, setup.generation, *shown))
        if known != "*" and (same := unchanged(known, etag)) is not None:
            return same
        page = requests.page(db, setup, target, flags, spec, request.base)
        if known is not None and (same := unchanged(known, etag)) is not None:  # `*`: whatever there is
            return same
        if not document:
            return Response(200, [JSON, ("etag", etag), *_links(request, page)], page.text.encode())
        view = make_view(db, setup, Flags.EMPTY, spec, request.base, target, requests.limits)
        response = document_response(db, view, Answer(target, spec, page), request.base)
        return Response(response.status, [*response.headers, ("etag", etag)], response.body)

    # ---- writing

    def _write(self, request: Request) -> Response:
        requests = self._requests
        method = request.method
        refuse_coded(request)

        def body_of(setup: Setup, target: Target, flags: Flags) -> tuple[Any, Ask]:
            _check_method(setup, method, target)
            if target.document and method in ("PUT", "POST"):
                return document_body(request, target, flags.setdefaultversionid)
            refuse_headers((name for name, _ in request.headers.items()), target.path)
            ask = Ask(
                patch=method == "PATCH", setdefault=flags.setdefaultversionid, from_meta=target.kind == "meta",
                load=_load(request),
            )  # fmt: skip
            return _json_body(request, target), ask

        def flags_of(setup: Setup) -> Flags:
            return self._flags(request, setup)

        def check(work: Work, target: Target) -> None:
            check_preconditions(request.headers, work, target)

        documents: list[Response] = []

        def job(db: Connection) -> Answer:
            answer = requests.write_in(db, method, request.path, flags_of, request.base, body_of, correlation, check)
            if answer.target.document and answer.page is not None:
                setup = requests.setup(db)
                view = make_view(db, setup, Flags.EMPTY, answer.spec, request.base, answer.target, requests.limits)
                documents.append(document_response(db, view, answer, request.base))
            return answer

        correlation = requests.correlation()
        answer = requests.store.write(job)
        headers = [("xRegistry-xregcorrelationid", correlation)]
        if load := _load(request):
            headers.append(("preference-applied", f"load={load}"))
            if answer.written is not None:
                headers.append((WRITTEN, "groups={}, resources={}".format(*answer.written)))
        if answer.page is None:
            return Response(204, headers)
        status = 201 if answer.outcome is not None and answer.outcome.created else 200
        headers += _places(request, answer)
        if documents:
            document = documents[0]
            if status == 200:
                return Response(document.status, [*headers, *document.headers], document.body)
            shown = [header for header in document.headers if header[0] != "location"]
            return Response(status, [*headers, *shown], document.body)
        return Response(status, [JSON, *headers], answer.page.text.encode())

    # ---- upkeep

    @property
    def asking(self) -> frozenset[str]:
        """The paths where a POST only asks, so that whoever may read may send it."""
        return frozenset(self._extensions)

    def health(self) -> str:
        """Return why requests cannot be answered; empty where they can."""
        try:
            generation(self._requests.store.reader())
        except SignalbookError as error:
            return str(error)
        return ""

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


def _allow(target: Target) -> str:
    return ALLOWED[target.kind] if target.kind != "meta" else "DELETE, " + ALLOWED["meta"]


def _check_method(setup: Setup, method: str, target: Target) -> None:
    if method == "PATCH" and target.document:
        raise RegistryError("details_required", target.path)
    if method not in ALLOWED[target.kind].split(", "):
        raise not_supported(target.path, method, ALLOWED[target.kind])
    needed = target.kind if target.kind in ("capabilities", "modelsource") else "entities"
    if not setup.capabilities.is_mutable(needed):
        raise not_supported(target.path, method, "GET, OPTIONS", f'"{needed}" is not mutable')


# How many groups and resources of a part of a load were new or changed; `Preference-Applied` has no place for it.
WRITTEN = "signalbook-written"
_LOAD = re.compile(r'(?:^|[,;])\s*load\s*=\s*"?([0-9A-Za-z_-]{1,64})"?\s*(?=[,;]|$)', re.IGNORECASE)


def _load(request: Request) -> str:
    """Return the name of the load that a request says it is a part of (`Prefer: load=NAME`, RFC 7240)."""
    found = _LOAD.search(request.headers.get("prefer") or "")
    return found[1] if found else ""


def _json_body(request: Request, target: Target) -> Any:
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


def _places(request: Request, answer: Answer) -> list[tuple[str, str]]:
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
