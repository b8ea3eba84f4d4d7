"""The catalog that is read from: a Signalbook with its change feed, or any xRegistry server, compared by its epochs.

One that speaks only the 0.1 message catalog API is read by `catalog01`; who is asked says which of them it is.

Rule 1: nothing a source sends is trusted: it is checked for its form here, and by every rule of the target there.
Rule 2: no more than one page of a source is held at a time.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from signalbook.client import MOST_PAGES, Client, RegistryReply, RemoteError
from signalbook.errors import UsageError
from signalbook.jsontext import Json
from signalbook.replication.catalog01 import Catalog01, Catalog01Source
from signalbook.replication.entries import plain_group, plain_resource
from signalbook.replication.scope import ReplicationScope, entity_of

__all__ = ["FeedSource", "PlainSource", "Source", "asked", "check_authority", "is_there", "open_source", "speaks_01"]

Marks = Callable[[list[str]], dict[str, str]]

_EVENTS = 1000
_NAMES = 50
_ABSENT = (400, 404, 410)
_DELETED = ("io.xregistry.group.deleted", "io.xregistry.resource.deleted")
# RFC 3986 section 3: a scheme, and then only characters that a URI may hold.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
# The base of the 0.1 API: what an authority is implied to be where a definition names none (seed 004, 2.2.4).
_CATALOG = "/messagecatalog"


def check_authority(text: str) -> str:
    """The authority that a user names, which has to be a URI."""
    if text and not (_URI.fullmatch(text) and len(text) <= 1000):
        raise UsageError(
            f"'{text[:100]}' is not an authority; write a URI, such as https://catalog.example.com or urn:acme"
        )
    return text


def stated_base(value: Any) -> str:
    """The base that a source states for its own URIs; empty where it states none that is a web address."""
    text = value.rstrip("/") if isinstance(value, str) else ""
    is_address = text.lower().startswith(("http://", "https://"))
    return text if is_address and _URI.fullmatch(text) and len(text) <= 1000 else ""


def is_there(source: Source, peer: Client, scope: ReplicationScope) -> bool:
    """Whether a source has the group, the resource or the collection that a scope names."""
    if isinstance(source, Catalog01Source):
        return source.has(scope)
    steps = scope.xid.split("/")[1:]
    if len(steps) % 2:
        kind = dict(_types(peer.request("GET", "/model").value, "groups")).get(steps[0])
        if kind is None or (len(steps) == 3 and steps[2] not in dict(_types(kind, "resources"))):
            return False
    path = "/" + "/".join(quote(step) for step in steps[: len(steps) // 2 * 2])
    try:
        if path != "/":
            peer.request("GET", path + ("/meta" if len(steps) == 4 else ""))
    except RemoteError as error:
        if error.status in _ABSENT:
            return False
        raise
    return True


class FeedSource:
    """A Signalbook: entries as they travel, and a feed of what changed."""

    def __init__(self, peer: Client, state: Json, authority: str) -> None:
        self._peer = peer
        self.catalog = str(state["catalog"])
        base = stated_base(state.get("base")) or peer.address
        implied = base + _CATALOG if base else f"urn:signalbook:catalog:{self.catalog}"
        self.authority = authority or implied
        self._is_fixed = bool(authority) or state.get("fixed") is True

    def known_as(self, authority: str) -> None:
        """Keep the authority that the target knows the source by, unless it was said: 2.2.4, it never changes."""
        if authority and not self._is_fixed:
            self.authority = authority

    def newest(self) -> str:
        """The cursor behind everything that there is now; another catalog at the same address is refused."""
        state = self._peer.request("GET", "/replicas").value
        if not isinstance(state, dict) or state.get("catalog") != self.catalog:
            raise RemoteError(f"{self._peer.name} is not the same catalog as before")
        return str(state.get("cursor", ""))

    def everything(self, scope: ReplicationScope) -> Iterator[Json]:
        """Every entry within a scope."""
        after = ""
        for _ in range(MOST_PAGES):
            query = urlencode({"scope": scope.xid, "after": after})
            page = self._peer.request("GET", f"/replicas/entities?{query}").value
            yield from self._entries(page, scope)
            following = str(page.get("next", ""))
            if not following:
                return
            if following <= after:
                raise RemoteError(f"{self._peer.name} links its pages in a circle")
            after = following
        raise _endless(self._peer)

    def changes(self, cursor: str, scope: ReplicationScope, wait: float = 0) -> tuple[list[str], str]:
        """The entities within a scope that changed behind a cursor, and the cursor behind them."""
        query = f"since={quote(cursor)}&limit={_EVENTS}" + (f"&wait={wait:g}" if wait else "")
        answer = self._peer.request("GET", f"/changes?{query}", wait=wait)
        events, following = _events(answer)
        names = (entity_of(str(event.get("subject", ""))) for event in events if _is_ours(event))
        return list(dict.fromkeys(xid for xid in names if xid is not None and scope.holds(xid))), following

    def deleted(self, scope: ReplicationScope) -> set[str]:
        """The xids at the target of what the feed says was deleted; none where it does not go back to its start."""
        found: set[str] = set()
        cursor = "0"
        for _ in range(MOST_PAGES):
            try:
                answer = self._peer.request("GET", f"/changes?since={quote(cursor)}&limit={_EVENTS}")
            except RemoteError as error:
                if error.name == "feed_trimmed":
                    return set()
                raise
            events, following = _events(answer)
            deleted = (one for one in events if isinstance(one, dict) and one.get("type") in _DELETED)
            found.update(scope.renamed(str(one.get("subject", ""))) for one in deleted)
            if following == cursor:
                return found
            cursor = following
        raise _endless(self._peer)

    def entries(self, xids: list[str], scope: ReplicationScope) -> Iterator[Json]:
        """Entities as they are now; one that is not there any more is a deleted entry."""
        for start in range(0, len(xids), _NAMES):
            query = urlencode([("xid", xid) for xid in xids[start : start + _NAMES]])
            yield from self._entries(self._peer.request("GET", f"/replicas/entities?{query}").value, scope)

    def earlier(self, xid: str, before: int, scope: ReplicationScope) -> Json | None:
        """An entity as it is now with the page of its log before a number; None where there is no such page."""
        query = urlencode({"xid": xid, "before": before})
        found = list(self._entries(self._peer.request("GET", f"/replicas/entities?{query}").value, scope))
        return found[0] if found and found[0].get("log") else None

    def _entries(self, page: Any, scope: ReplicationScope) -> Iterator[Json]:
        if not isinstance(page, dict) or not isinstance(page.get("entries"), list):
            raise RemoteError(f"{self._peer.name} answered with something other than entries")
        for entry in page["entries"]:
            if not _is_entry(entry):
                raise RemoteError(f"{self._peer.name} sent an entry that is not valid")
            origin = dict(entry["origin"])
            origin["authority"] = origin.get("authority") or self.authority
            origin["home"] = origin.get("home") or entry["xid"]
            if scope.holds(entry["xid"]):
                xid, body = scope.renamed(entry["xid"]), scope.rewritten(entry.get("body"))
                log = {"log": scope.rewritten_log(entry["log"])} if entry.get("log") else {}
                yield {"xid": xid, "source": entry["xid"], "origin": origin, "body": body, "mark": "", **log}


def _events(reply: RegistryReply) -> tuple[list[Any], str]:
    """The events of a page of a change feed, and the cursor behind them."""
    events, following = reply.value, reply.headers.get("signalbook-cursor", "")
    if not isinstance(events, list) or not following:
        raise RemoteError(f"{reply.name} answered /changes with something other than events")
    return events, following


def _is_ours(event: Any) -> bool:
    """Whether an event is one of xRegistry, or of a version of the 0.1 catalog, which xRegistry has no events for."""
    if not isinstance(event, dict):
        return False
    type_, subject = str(event.get("type", "")), str(event.get("subject", ""))
    return type_.startswith("io.xregistry.") or (
        type_.startswith("io.cloudevents.messagecatalog.") and "/version/" in subject
    )


class PlainSource:
    """Any other xRegistry server: read through and compared by the epochs it shows."""

    def __init__(self, peer: Client, root: Any, authority: str) -> None:
        self._peer = peer
        self.catalog = stated_base(_object(root).get("self")) or peer.address
        self.authority = authority or self.catalog

    def known_as(self, authority: str) -> None:
        """What the source calls itself holds, whatever it is known as."""

    def everything(self, scope: ReplicationScope, marks: Marks) -> Iterator[Json | str]:
        """Every entry within a scope whose epochs are not those of its mark; of the others the xid at the target."""
        origin = {"catalog": self.catalog, "authority": self.authority, "revision": int(time.time() * 1000)}
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
                yield {
                    "xid": scope.renamed(xid), "source": xid, "origin": {**origin, "home": xid},
                    "body": scope.rewritten(body), "mark": "",
                }  # fmt: skip
                for name, resource in resources.items():
                    yield from self._resources(f"{xid}/{name}", resource, scope, marks, origin)

    def _resources(
        self, path: str, kind: Json, scope: ReplicationScope, marks: Marks, origin: Json
    ) -> Iterator[Json | str]:
        for page in self._pages(f"{path}?inline=versions,meta", may_be_gone=True):
            found = {f"{path}/{rid}": value for rid, value in page.items() if scope.holds(f"{path}/{rid}")}
            seen = {xid: _mark(value) for xid, value in found.items()}
            known = marks([scope.renamed(xid) for xid in found])
            for xid, value in found.items():
                target = scope.renamed(xid)
                if known.get(target) == seen[xid]:
                    yield target
                    continue
                if kind.get("hasdocument", True) is not False:
                    value = self._details(xid)
                if value is not None:
                    found_at = {"xid": target, "source": xid, "origin": {**origin, "home": xid}, "mark": seen[xid]}
                    yield found_at | _body(str(kind.get("singular", "")), value, scope)

    def _details(self, xid: str) -> Any:
        """A resource with its documents; None where it was deleted since it was listed."""
        try:
            return self._peer.request("GET", f"{quote(xid)}$details?inline=*&binary").value
        except RemoteError as error:
            if error.status in (404, 410):
                return None
            raise

    def _members(self, path: str) -> Iterator[tuple[str, Json]]:
        for page in self._pages(path):
            yield from page.items()

    def _pages(self, path: str, *, may_be_gone: bool = False) -> Iterator[dict[str, Json]]:
        """The pages of a collection, by the links that lead from one to the next; one that has gone has none."""
        try:
            for reply, _ in self._peer.pages(path):
                page = reply.value
                if not isinstance(page, dict) or not all(isinstance(one, dict) for one in page.values()):
                    raise RemoteError(f"{self._peer.name} answered {path} with something other than a collection")
                yield page
        except RemoteError as error:
            if not (may_be_gone and error.status in (404, 410)):
                raise


# ---- which of them a catalog is

Source = FeedSource | PlainSource | Catalog01Source


def open_source(peer: Client, authority: str = "", api: str = "auto") -> Source:
    """The source that a catalog is: one with a change feed, or a plain xRegistry server, or one of 0.1 alone.

    It is asked what it speaks, unless `api` says "xregistry" or "0.1".
    """
    if api == "0.1":
        return Catalog01Source(peer, authority)
    state = asked(peer, "/replicas")
    if isinstance(state, dict) and all(isinstance(state.get(name), str) for name in ("catalog", "cursor")):
        return FeedSource(peer, state, authority)
    root = asked(peer, "/")
    if api == "auto" and not (isinstance(root, dict) and "specversion" in root) and speaks_01(peer):
        return Catalog01Source(peer, authority)
    return PlainSource(peer, root, authority)


def asked(peer: Client, path: str) -> Any:
    """What a catalog says at a path; None where it has no such path, or something other than JSON there."""
    try:
        return peer.request("GET", path).value
    except RemoteError as error:
        if error.status in (*_ABSENT, 200, 405, 501):
            return None
        raise


def speaks_01(peer: Client) -> bool:
    """Whether a catalog answers the 0.1 message catalog API."""
    api = Catalog01(peer)
    if api.features() is not None:
        return True
    return isinstance(asked(peer, "/messagecatalog"), list)


def _is_entry(value: Any) -> bool:
    """Whether a value has the shape of an entry: what is in its body, the target judges."""
    if not isinstance(value, dict) or not isinstance(value.get("xid"), str):
        return False
    origin, body, log = value.get("origin"), value.get("body"), value.get("log") or {}
    if not isinstance(origin, dict) or not isinstance(body, dict | None) or not isinstance(log, dict):
        return False
    if any(not isinstance(origin.get(name, ""), str | None) for name in ("authority", "home")):
        return False
    return not log or (isinstance(log.get("snapshots"), list) and all(map(_is_snapshot, log["snapshots"])))


def _is_snapshot(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    return isinstance(value[0], int) and isinstance(value[2], dict | None)


def _endless(peer: Client) -> RemoteError:
    return RemoteError(f"{peer.name} has more than {MOST_PAGES} pages, and is not read further")


def _body(singular: str, value: Any, scope: ReplicationScope) -> Json:
    """What of a resource travels, or what is wrong with it."""
    try:
        return {"body": scope.rewritten(plain_resource(singular, value))}
    except (AttributeError, TypeError):
        return {"body": None, "flaw": "the source shows something other than a resource with its versions"}


def _types(value: Any, name: str) -> Iterable[tuple[str, Json]]:
    found = value.get(name) if isinstance(value, dict) else None
    return [(plural, kind) for plural, kind in _object(found).items() if isinstance(kind, dict)]


def _mark(value: Json) -> str:
    """A name for the epochs of a resource's meta and of all its versions."""
    versions, meta = _object(value.get("versions")), _object(value.get("meta"))
    epochs = sorted((vid, str(one.get("epoch"))) for vid, one in versions.items() if isinstance(one, dict))
    return hashlib.sha256(orjson.dumps([str(meta.get("epoch")), str(meta.get("xref")), epochs])).hexdigest()[:32]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
