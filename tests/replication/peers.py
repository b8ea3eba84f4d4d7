"""Catalogs in this process as peers of a replication: whole, without a change feed, or failing when a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from signalbook.client import Call, Client, RegistryReply, RemoteError
from tests.registry.conftest import Api

Json = dict[str, Any]


class ApiPeer(Client):
    """One catalog; `before` is called with each request and may raise, `after` may change an answer."""

    address = name = ""

    def __init__(self, api: Api, address: str) -> None:
        super().__init__(self)
        self.api = api
        self.address = self.name = address
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.after: Callable[[str, Any], Any] = lambda path, value: value
        self.requests = 0

    def answer(self, call: Call) -> RegistryReply:
        """The reply to one call."""
        self.requests += 1
        self.before(call.method, call.path)
        reply = self.api(call.method, call.path, call.content, call.headers, base=self.address)
        # Text of this module, unlike that of orjson, may hold what no registry keeps.
        content = json.dumps(self.after(call.path, reply.json)).encode() if reply.body else b""
        return RegistryReply(self.name, reply.status, reply.headers, content)

    def close(self) -> None:
        """The registry is closed by the fixture that made it."""


def without_feed(method: str, path: str) -> None:
    """Make a catalog one of the servers that know xRegistry alone."""
    if path.startswith(("/replicas", "/changes")):
        raise RemoteError("there is no such path", status=404, name="not_found")


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
