"""`/replicas`: what another catalog reads and writes when it replicates; see `replication.replicas`.

    GET  /replicas[?link=NAME]                   this catalog's id, its newest cursor and the base of its URIs; how far
                                                 a replication has come, what it could not copy and as whose copies
    GET  /replicas/entities?scope=XID&after=KEY  groups and resources as they travel, page by page
    GET  /replicas/entities?xid=XID&xid=XID      the same for some of them; `before=N` gives their logs before a number
    GET  /replicas/marks?link=NAME&xid=XID       the source's epochs as they were when these were read there
    POST /replicas                               write entries, and how far the replication has come

Rule 1: reading is reading and writing is writing: the tokens are those of the whole server.
Rule 2: where the capabilities say that entities are not mutable, clients write nothing here either.
Rule 3: an entry that cannot be kept, for a text or its depth, is refused alone, and the rest of its batch is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import Json, check_json, parse_json
from signalbook.registry.changes import latest
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection
from signalbook.replication import links, replicas
from signalbook.replication.entries import (
    ReplicaEntry,
    base_of,
    catalog_id,
    entries_behind,
    entries_of,
    keep_base,
    own_origin,
)
from signalbook.replication.links import Link, ReplicaResult
from signalbook.server import http
from signalbook.server.events.changes import expand
from signalbook.server.http import JSON, Request, Response
from signalbook.server.problems import not_supported

__all__ = ["MOST_ENTRIES", "Replicas"]

MOST_ENTRIES = 500
_MOST_BYTES = 4 << 20
_AROUND_ENTRY = 2  # levels of a body around each of its entries
_Query = Mapping[str, list[str]]


class Replicas:
    """Answers `/replicas` and what is below for one registry; `base` is its own, where the operator fixed one.

    Its `owner` is not bound by what its capabilities offer to others.
    """

    def __init__(self, requests: Requests, base: str = "", *, owner: bool = False) -> None:
        self._requests = requests
        self._owner = owner
        self._base = base.rstrip("/")
        keep_base(requests.store, self._base)
        self._reads: Mapping[str, Callable[[Request, Connection, _Query], Json]] = {
            "/replicas": self._state,
            "/replicas/entities": self._entities,
            "/replicas/marks": self._marks,
        }

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        read = self._reads.get(request.path)
        if read is None:
            raise RegistryError("api_not_found", request.path)
        allow = "GET, OPTIONS, POST" if request.path == "/replicas" else "GET, OPTIONS"
        if request.method == "OPTIONS":
            return http.options(request, allow)
        if request.method == "POST" and request.path == "/replicas":
            return _json(self._write(request))
        if request.method != "GET":
            raise not_supported(request.path, request.method, allow)
        query = _query(request)
        catalog_id(self._requests.store)  # made before the snapshot, where it is not there yet
        return _json(self._requests.store.read(lambda db: read(request, db, query)))

    # ---- reading

    def _state(self, request: Request, db: Connection, query: _Query) -> Json:
        found: Json = {"catalog": catalog_id(self._requests.store), "cursor": str(latest(db, expand))}
        found |= self._stated(request, db)
        for name in query.get("link", ()):
            link = links.link_of(db, name)
            found["authority"] = links.authority_of(db, name)
            found["link"] = {"name": name, "cursor": link.cursor, "number": link.number}
            found["problems"] = links.problems_of(db, name)
        return found

    def _stated(self, request: Request, db: Connection) -> Json:
        """The base that the URIs of what this catalog owns are made with; where it was fixed, however it is reached."""
        base = self._base or request.base or base_of(db)
        return {"base": base, "fixed": bool(base) and (bool(self._base) or not request.base)}

    def _entities(self, request: Request, db: Connection, query: _Query) -> Json:
        own = own_origin(db, catalog_id(self._requests.store))
        named = query.get("xid")
        if named is not None:
            before = _number(query.get("before", ["0"])[0], request.path)
            return {"entries": [entry.to_dict() for entry in entries_of(self._requests, db, own, named, before)]}
        scope, after = (query.get(name, [""])[0] for name in ("scope", "after"))
        found, following = entries_behind(self._requests, db, own, scope, after, MOST_ENTRIES, _MOST_BYTES)
        return {"entries": [entry.to_dict() for entry in found], "next": following}

    def _marks(self, request: Request, db: Connection, query: _Query) -> Json:
        return links.marks_of(db, query.get("link", [""])[0], query.get("xid", ()))

    # ---- writing

    def _write(self, request: Request) -> Json:
        if not request.body:
            raise RegistryError("missing_body", request.path)
        body, refused = _read_body(request)
        link, entries = _link(body, request.path), _entries(body, request.path)
        met = body.get("met", [])
        if not isinstance(met, list) or len(met) > MOST_ENTRIES or not all(isinstance(xid, str) for xid in met):
            raise _malformed(request.path, "met")
        own = catalog_id(self._requests.store)
        authorities = {f"urn:signalbook:catalog:{own}", f"{self._base or request.base}/messagecatalog"}

        def job(db: Connection) -> Json:
            if not self._owner and not self._requests.setup(db).capabilities.is_mutable("entities"):
                raise not_supported(request.path, request.method, "GET, OPTIONS", '"entities" is not mutable')
            if body.get("sweep") is True:
                found = replicas.sweep(self._requests, db, own, link, MOST_ENTRIES)
                links.note(db, link, found)
                links.forget_problems(db, link)
                return {"results": [result.to_dict() for result in found], "more": len(found) == MOST_ENTRIES}
            links.meet(db, link, [*met, *(one.xid for one in refused)])
            results = refused + replicas.apply_entries(
                self._requests, db, own, link, entries,
                anew=body.get("anew") is True, keep_both=body.get("onconflict") == "keep-both",
                authorities=frozenset(authorities),
            )  # fmt: skip
            links.note(db, link, results)
            if "cursor" in body["link"]:
                links.save_link(db, link)
            return {"results": [result.to_dict() for result in results]}

        return self._requests.write(job, several=True)


def _read_body(request: Request) -> tuple[Any, list[ReplicaResult]]:
    """The body of a request without the entries that cannot be kept, and what became of those."""
    try:
        return parse_json(request.body, request.path), []
    except RegistryError:
        try:
            body = orjson.loads(request.body)
        except orjson.JSONDecodeError:
            body = None
        given = body.get("entries") if isinstance(body, dict) else None
        if not isinstance(given, list) or len(given) > MOST_ENTRIES:
            raise
        kept, refused = [], []
        for entry in given:
            try:
                check_json(entry, request.path, around=_AROUND_ENTRY)
                kept.append(entry)
            except RegistryError as error:
                refused.append(_refused(entry, error))
        if not refused or None in refused:
            raise
        rest = {name: value for name, value in body.items() if name != "entries"}
        check_json(rest, request.path)
        return {**rest, "entries": kept}, [one for one in refused if one is not None]


def _refused(entry: Any, error: RegistryError) -> ReplicaResult | None:
    given = entry if isinstance(entry, dict) else {}
    names = [
        name for name in (given.get("xid"), given.get("source", "")) if isinstance(name, str) and len(name) <= 2000
    ]
    if len(names) != 2:
        return None
    xid, source, detail = (text.replace("\0", "\ufffd") for text in (*names, str(error)))
    return ReplicaResult(xid, "refused", detail, source=source)


def _json(value: Json) -> Response:
    return Response(200, [JSON, ("cache-control", "no-store")], orjson.dumps(value))


def _query(request: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, text in parse_qsl(request.query, keep_blank_values=True):
        if name not in ("link", "xid", "scope", "after", "before"):
            raise RegistryError("bad_flag", request.path, flag=name)
        found.setdefault(name, []).append(text)
    if any(len(values) > MOST_ENTRIES for values in found.values()):
        raise RegistryError("bad_request", request.path, error_detail=f"more than {MOST_ENTRIES} names at once")
    return found


def _link(body: Any, path: str) -> Link:
    link = body.get("link") if isinstance(body, dict) else None
    if not isinstance(link, dict):
        raise _malformed(path, "link")
    name, cursor, number = link.get("name"), link.get("cursor", ""), link.get("number", 0)
    if not isinstance(name, str) or not isinstance(cursor, str) or not isinstance(number, int):
        raise _malformed(path, "link")
    if not 0 < len(name) <= 2000 or len(cursor) > 200 or not 0 <= number < 1 << 62:
        raise _malformed(path, "link")
    return Link(name, cursor, number)


def _entries(body: Json, path: str) -> list[ReplicaEntry]:
    given = body.get("entries", [])
    if not isinstance(given, list) or len(given) > MOST_ENTRIES:
        raise _malformed(path, "entries")
    return [ReplicaEntry.from_dict(entry, path) for entry in given]


def _number(text: str, path: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _malformed(path, "before")
    return int(text)


def _malformed(path: str, name: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=f'"{name}" is missing or not valid')
