"""Catalogs in this process as peers of a replication: whole, without a change feed, or failing when a test wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from signalbook.replication.peers import Answer, PeerError, refusal
from tests.registry.conftest import Api

Json = dict[str, Any]


class ApiPeer:
    """One catalog; `before` is called with each request and may raise, `after` may change an answer."""

    def __init__(self, api: Api, address: str) -> None:
        self.api = api
        self.address = address
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.after: Callable[[str, Any], Any] = lambda path, value: value
        self.requests = 0

    def request(
        self, method: str, path: str, body: Any = None, wait: float = 0, media: str = "application/json"
    ) -> Answer:
        """The answer to one request."""
        self.requests += 1
        self.before(method, path)
        reply = self.api(method, path, body, base=self.address)
        if reply.status >= 300:
            raise refusal(self.address, path, reply.status, reply.body)
        return Answer(self.after(path, reply.json), reply.headers)


def without_feed(method: str, path: str) -> None:
    """Make a catalog one of the servers that know xRegistry alone."""
    if path.startswith(("/replicas", "/changes")):
        raise PeerError("there is no such path", 404, "not_found")


def content(api: Api, *, logs: bool = True) -> Json:
    """All that a user controls in a catalog, without what a copy adds: authority; and the logs of what it said."""
    found: Json = {}
    entries = []
    after = ""
    while True:
        page = api("GET", f"/replicas/entities?after={after}").json
        entries += page["entries"]
        after = page["next"]
        if not after:
            break
    for entry in entries:
        body = orjson.loads(orjson.dumps(entry["body"]))
        for version in body.get("versions", {}).values():
            version.pop("authority", None)
            version.pop("modifiedat", None)
        found[entry["xid"]] = body
        log = [[number, at, _plain(said)] for number, at, said in (entry.get("log") or {}).get("snapshots", [])]
        if log and logs:
            body["log"] = log
    return found


def _plain(said: Json | None) -> Json | None:
    return said and {name: value for name, value in said.items() if name != "authority"}


def owned(api: Api, catalog: str) -> Json:
    """The same of what one catalog has authority over."""
    whole = content(api)
    entries = [entry for xid in whole for entry in api("GET", f"/replicas/entities?xid={xid}").json["entries"]]
    return {entry["xid"]: whole[entry["xid"]] for entry in entries if entry["origin"]["catalog"] == catalog}


def catalog_of(api: Api) -> str:
    """A catalog's own id."""
    return str(api("GET", "/replicas").json["catalog"])
