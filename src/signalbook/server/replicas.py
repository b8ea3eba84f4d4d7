"""`/replicas`: what another catalog asks and tells when it replicates; see `registry.replicas`.

    GET  /replicas[?link=NAME]                   this catalog's id, its newest cursor, how far a replication has come
    GET  /replicas/entities?scope=XID&after=KEY  groups and resources as they travel, page by page
    GET  /replicas/entities?xid=XID&xid=XID      the same for some of them
    GET  /replicas/marks?xid=XID&xid=XID         the source's epochs as they were when these were read there
    POST /replicas                               write entries, and how far the replication has come

Rule: reading is reading and writing is writing: the tokens are those of the whole server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl

import orjson

from signalbook.document.json_text import parse_json
from signalbook.errors import RegistryError
from signalbook.registry import replicas
from signalbook.registry.change_feed import latest
from signalbook.registry.replica_entries import Entry, Origin, catalog_id, entries_behind, entries_of
from signalbook.registry.replicas import Link
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection
from signalbook.server import cross_origin
from signalbook.server.change_events import expand
from signalbook.server.http import JSON, Request, Response
from signalbook.server.problems import not_supported

__all__ = ["MOST_ENTRIES", "Replicas"]

MOST_ENTRIES = 500
_MOST_BYTES = 4 << 20
_Query = Mapping[str, list[str]]
Json = dict[str, Any]


class Replicas:
    """Answers `/replicas` and what is below for one registry."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
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
            return cross_origin.options(request, allow)
        if request.method == "POST" and request.path == "/replicas":
            return _json(self._write(request))
        if request.method != "GET":
            raise not_supported(request.path, request.method, allow)
        query = _query(request)
        catalog_id(self._requests.store)  # made before the snapshot, where it is not there yet
        return _json(self._requests.store.read(lambda db: read(request, db, query)))

    # ---- reading

    def _own(self, db: Connection) -> Origin:
        return Origin(catalog_id(self._requests.store), "", latest(db, expand).seq)

    def _state(self, request: Request, db: Connection, query: _Query) -> Json:
        found: Json = {"catalog": self._own(db).catalog, "cursor": str(latest(db, expand))}
        for name in query.get("link", ()):
            link = replicas.link_of(db, name)
            found["link"] = {"name": name, "cursor": link.cursor, "number": link.number}
        return found

    def _entities(self, request: Request, db: Connection, query: _Query) -> Json:
        own = self._own(db)
        named = query.get("xid")
        if named is not None:
            return {"entries": [entry.to_dict() for entry in entries_of(self._requests, db, own, named)]}
        scope, after = (query.get(name, [""])[0] for name in ("scope", "after"))
        found, following = entries_behind(self._requests, db, own, scope, after, MOST_ENTRIES, _MOST_BYTES)
        return {"entries": [entry.to_dict() for entry in found], "next": following}

    def _marks(self, request: Request, db: Connection, query: _Query) -> Json:
        return replicas.marks_of(db, query.get("xid", ()))

    # ---- writing

    def _write(self, request: Request) -> Json:
        if not request.body:
            raise RegistryError("missing_body", request.path)
        body = parse_json(request.body, request.path)
        link, entries = _link(body, request.path), _entries(body, request.path)
        met = body.get("met", [])
        if not isinstance(met, list) or len(met) > MOST_ENTRIES or not all(isinstance(xid, str) for xid in met):
            raise _malformed(request.path, "met")
        own = catalog_id(self._requests.store)

        def job(db: Connection) -> Json:
            if body.get("sweep") is True:
                found = replicas.sweep(self._requests, db, own, link, MOST_ENTRIES)
                return {"results": [asdict(result) for result in found], "more": len(found) == MOST_ENTRIES}
            replicas.meet(db, link, met)
            results = replicas.apply_entries(self._requests, db, own, link.name, link.number, entries)
            if "cursor" in body["link"]:
                replicas.save_link(db, link)
            return {"results": [asdict(result) for result in results]}

        return self._requests.store.write(job)


def _json(value: Json) -> Response:
    return Response(200, [JSON, ("cache-control", "no-store")], orjson.dumps(value))


def _query(request: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, text in parse_qsl(request.query, keep_blank_values=True):
        if name not in ("link", "xid", "scope", "after"):
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


def _entries(body: Json, path: str) -> list[Entry]:
    given = body.get("entries", [])
    if not isinstance(given, list) or len(given) > MOST_ENTRIES:
        raise _malformed(path, "entries")
    return [Entry.from_dict(entry, path) for entry in given]


def _malformed(path: str, name: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=f'"{name}" is not as it must be')
