"""The catalog that is written to: entries go there in bounded batches, with how far the replication has come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import orjson

from signalbook.replication.peers import Peer, PeerError
from signalbook.replication.report import Report

__all__ = ["Link", "Target"]

_MOST_ENTRIES = 200
_MOST_BYTES = 2 << 20
_MOST_RETRIED = 5000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Link:
    """How far a replication has come: the source's cursor, empty before the first comparison ended, and its number."""

    name: str
    cursor: str = ""
    number: int = 0


class Target:
    """One catalog and the replication that writes to it; what became of entries goes into `report`."""

    def __init__(self, peer: Peer, name: str, report: Report) -> None:
        self._peer = peer
        self.report = report
        self.link = self._read(name)
        self._refused: list[Json] = []

    def _read(self, name: str) -> Link:
        try:
            link = self._peer.request("GET", f"/replicas?{urlencode({'link': name})}").value["link"]
            return Link(name, str(link["cursor"]), int(link["number"]))
        except PeerError as error:
            if error.status == 404:
                raise PeerError(f"{self._peer.address} is no Signalbook, which a target has to be", 404) from None
            raise
        except (KeyError, TypeError, ValueError):
            raise PeerError(f"{self._peer.address} is no Signalbook, which a target has to be") from None

    def begin(self) -> None:
        """Begin a comparison: what it does not meet can be swept afterwards."""
        self.link = replace(self.link, cursor="", number=self.link.number + 1)
        self._send([], cursor="")

    def write(self, entries: Iterable[Json]) -> None:
        """Write entries in batches."""
        batch: list[Json] = []
        size = 0
        for entry in entries:
            cost = len(orjson.dumps(entry))
            if batch and (len(batch) == _MOST_ENTRIES or size + cost > _MOST_BYTES):
                self._send(batch)
                batch, size = [], 0
            batch.append(entry)
            size += cost
        if batch:
            self._send(batch)

    def met(self, xids: Sequence[str]) -> None:
        """Note that entities are there unchanged."""
        for start in range(0, len(xids), _MOST_ENTRIES):
            self._send([], met=xids[start : start + _MOST_ENTRIES])

    def marks(self, xids: Sequence[str]) -> dict[str, str]:
        """The marks under which entities were last written."""
        found: dict[str, str] = {}
        for start in range(0, len(xids), 50):
            query = urlencode([("xid", xid) for xid in xids[start : start + 50]])
            found.update(self._peer.request("GET", f"/replicas/marks?{query}").value)
        return found

    def retry(self) -> None:
        """Try what was refused once more, for it may have waited for something that came later."""
        again, self._refused = self._refused, []
        self.write(again)
        self._refused = []

    def sweep(self) -> None:
        """Delete what the comparison did not meet."""
        more = True
        while more:
            answer = self._post({"link": self._named(), "sweep": True})
            self.report.add(answer["results"])
            # what cannot be deleted is met again by the next sweep; one that deletes nothing is the last
            more = bool(answer.get("more")) and any(one["outcome"] == "deleted" for one in answer["results"])

    def reached(self, cursor: str) -> None:
        """Write down that everything up to a cursor is here."""
        self.link = replace(self.link, cursor=cursor)
        self._send([], cursor=cursor)
        self.report.cursor = cursor

    def _named(self) -> Json:
        return {"name": self.link.name, "number": self.link.number}

    def _send(self, entries: list[Json], *, cursor: str | None = None, met: Sequence[str] = ()) -> None:
        link = self._named() if cursor is None else {**self._named(), "cursor": cursor}
        results = self._post({"link": link, "entries": entries, "met": list(met)})["results"]
        self.report.add(results)
        refused = {one["xid"] for one in results if one["outcome"] == "refused"}
        room = _MOST_RETRIED - len(self._refused)
        self._refused.extend([entry for entry in entries if entry["xid"] in refused][: max(room, 0)])

    def _post(self, body: Json) -> Json:
        value = self._peer.request("POST", "/replicas", body).value
        if not isinstance(value, dict) or not isinstance(value.get("results"), list):
            raise PeerError(f"{self._peer.address} answered a batch with something else than results")
        return value
