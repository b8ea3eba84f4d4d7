"""The catalog that is read from: a Signalbook with its change feed, or any xRegistry server, compared by its epochs.

Rule 1: nothing a source sends is trusted: it is checked for its form here, and by every rule of the target there.
Rule 2: no more than one page of a source is held at a time.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson

from signalbook.registry.replica_entries import plain_group, plain_resource
from signalbook.replication.peers import Peer, PeerError
from signalbook.replication.scope import Scope, entity_of

__all__ = ["FeedSource", "PlainSource", "open_source"]

Json = dict[str, Any]
Marks = Callable[[list[str]], dict[str, str]]

_MOST_PAGES = 1_000_000
_EVENTS = 1000
_NAMES = 50
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')


def open_source(peer: Peer, authority: str = "") -> FeedSource | PlainSource:
    """The source that a catalog is: one with a change feed where it says so."""
    try:
        state = peer.request("GET", "/replicas").value
    except PeerError as error:
        if error.status in (400, 404, 405):
            return PlainSource(peer, authority)
        raise
    if not isinstance(state, dict) or not all(isinstance(state.get(name), str) for name in ("catalog", "cursor")):
        return PlainSource(peer, authority)
    return FeedSource(peer, state["catalog"], authority)


class FeedSource:
    """A Signalbook: entries as they travel, and a feed of what changed."""

    def __init__(self, peer: Peer, catalog: str, authority: str) -> None:
        self._peer = peer
        self.catalog = catalog
        self._authority = authority or peer.address or f"urn:signalbook:catalog:{catalog}"

    def newest(self) -> str:
        """The cursor behind everything that there is now; another catalog at the same address is refused."""
        state = self._peer.request("GET", "/replicas").value
        if state.get("catalog") != self.catalog:
            raise PeerError(f"{self._peer.address} is another catalog than before")
        return str(state["cursor"])

    def everything(self, scope: Scope) -> Iterator[Json]:
        """Every entry within a scope."""
        after = ""
        for _ in range(_MOST_PAGES):
            query = urlencode({"scope": scope.xid, "after": after})
            page = self._peer.request("GET", f"/replicas/entities?{query}").value
            yield from self._entries(page, scope)
            following = str(page.get("next", ""))
            if not following:
                return
            if following <= after:
                raise PeerError(f"{self._peer.address} sends its pages in a circle")
            after = following

    def changes(self, cursor: str, scope: Scope, wait: float = 0) -> tuple[list[str], str]:
        """The entities within a scope that changed behind a cursor, and the cursor behind them."""
        query = f"since={quote(cursor)}&limit={_EVENTS}" + (f"&wait={wait:g}" if wait else "")
        answer = self._peer.request("GET", f"/changes?{query}", wait=wait)
        following = answer.headers.get("signalbook-cursor", "")
        if not isinstance(answer.value, list) or not following:
            raise PeerError(f"{self._peer.address} answered /changes with something else than events")
        names = (entity_of(str(event.get("subject", ""))) for event in answer.value if _is_ours(event))
        return list(dict.fromkeys(xid for xid in names if xid is not None and scope.holds(xid))), following

    def entries(self, xids: list[str], scope: Scope) -> Iterator[Json]:
        """Entities as they are now; one that is not there any more is told as deleted."""
        for start in range(0, len(xids), _NAMES):
            query = urlencode([("xid", xid) for xid in xids[start : start + _NAMES]])
            yield from self._entries(self._peer.request("GET", f"/replicas/entities?{query}").value, scope)

    def _entries(self, page: Any, scope: Scope) -> Iterator[Json]:
        if not isinstance(page, dict) or not isinstance(page.get("entries"), list):
            raise PeerError(f"{self._peer.address} answered with something else than entries")
        for entry in page["entries"]:
            if not isinstance(entry, dict) or not isinstance(entry.get("xid"), str) or "origin" not in entry:
                raise PeerError(f"{self._peer.address} sent an entry that is none")
            origin = dict(entry["origin"])
            origin["authority"] = origin.get("authority") or self._authority
            if scope.holds(entry["xid"]):
                xid, body = scope.renamed(entry["xid"]), scope.rewritten(entry.get("body"))
                yield {"xid": xid, "origin": origin, "body": body, "mark": ""}


def _is_ours(event: Any) -> bool:
    return isinstance(event, dict) and str(event.get("type", "")).startswith("io.xregistry.")


class PlainSource:
    """Any other xRegistry server: read through and compared by the epochs it shows."""

    def __init__(self, peer: Peer, authority: str) -> None:
        self._peer = peer
        self.catalog = peer.address
        self._authority = authority or peer.address

    def everything(self, scope: Scope, marks: Marks) -> Iterator[Json | str]:
        """Every entry within a scope whose epochs are not those of its mark; of the others the xid at the target."""
        origin = {"catalog": self.catalog, "authority": self._authority, "revision": int(time.time() * 1000)}
        model = self._peer.request("GET", "/model").value
        for plural, kind in _types(model, "groups"):
            if scope.xid != "/" and scope.xid.split("/")[1] != plural:
                continue
            resources = dict(_types(kind, "resources"))
            for gid, group in self._members(f"/{plural}"):
                xid = f"/{plural}/{gid}"
                if not scope.holds(xid):
                    continue
                body = plain_group(str(kind.get("singular", "")), resources, group)
                yield {"xid": scope.renamed(xid), "origin": origin, "body": scope.rewritten(body), "mark": ""}
                for name, resource in resources.items():
                    yield from self._resources(f"{xid}/{name}", resource, scope, marks, origin)

    def _resources(self, path: str, kind: Json, scope: Scope, marks: Marks, origin: Json) -> Iterator[Json | str]:
        for page in self._pages(f"{path}?inline=versions,meta"):
            found = {f"{path}/{rid}": value for rid, value in page.items() if scope.holds(f"{path}/{rid}")}
            seen = {xid: _mark(value) for xid, value in found.items()}
            known = marks([scope.renamed(xid) for xid in found])
            for xid, value in found.items():
                target = scope.renamed(xid)
                if known.get(target) == seen[xid]:
                    yield target
                    continue
                if kind.get("hasdocument", True) is not False:
                    value = self._peer.request("GET", f"{quote(xid)}$details?inline=*&binary").value
                body = scope.rewritten(plain_resource(str(kind.get("singular", "")), value))
                yield {"xid": target, "origin": origin, "body": body, "mark": seen[xid]}

    def _members(self, path: str) -> Iterator[tuple[str, Json]]:
        for page in self._pages(path):
            yield from page.items()

    def _pages(self, path: str) -> Iterator[dict[str, Json]]:
        """The pages of a collection, by the links that lead from one to the next."""
        seen: set[str] = set()
        while path:
            if path in seen or len(seen) > _MOST_PAGES:
                raise PeerError(f"{self._peer.address} sends its pages in a circle")
            seen.add(path)
            answer = self._peer.request("GET", path)
            if not isinstance(answer.value, dict) or not all(isinstance(one, dict) for one in answer.value.values()):
                raise PeerError(f"{self._peer.address} answered {path} with something else than a collection")
            yield answer.value
            path = self._next(answer.headers.get("link", ""))

    def _next(self, header: str) -> str:
        found = _NEXT.search(header)
        if found is None:
            return ""
        if not found[1].startswith(self._peer.address + "/"):
            raise PeerError(f"{self._peer.address} sends on to {urlsplit(found[1]).netloc}, which is not followed")
        return found[1].removeprefix(self._peer.address)


def _types(value: Any, name: str) -> Iterable[tuple[str, Json]]:
    found = value.get(name) if isinstance(value, dict) else None
    return [(plural, kind) for plural, kind in (found or {}).items() if isinstance(kind, dict)]


def _mark(value: Json) -> str:
    """A name for the epochs of a resource's meta and of all its versions."""
    versions, meta = _object(value.get("versions")), _object(value.get("meta"))
    epochs = sorted((vid, str(one.get("epoch"))) for vid, one in versions.items() if isinstance(one, dict))
    return hashlib.sha256(orjson.dumps([str(meta.get("epoch")), str(meta.get("xref")), epochs])).hexdigest()[:32]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
