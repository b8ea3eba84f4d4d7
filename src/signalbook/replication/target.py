"""The Signalbook that a replication writes to, and the report of what it wrote there.

Rule 1: entries are sent in bounded batches, together with the position that the replication has reached.
Rule 2: an entry that was refused is sent once more at the end, because it may depend on one that came later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import orjson

from signalbook.client import MOST_PAGES, Client, RemoteError
from signalbook.errors import Problem
from signalbook.jsontext import Json
from signalbook.replication.links import Link

__all__ = ["ReplicationReport", "SignalbookTarget"]

_MOST_ENTRIES = 200
_MOST_BYTES = 2 << 20
_MOST_RETRIED = 5000
_LONGEST = 2000
_MOST_PROBLEMS = 1000
_PROBLEMS = ("conflict", "refused")

Earlier = Callable[[str, int], Json | None]


@dataclass(slots=True)
class ReplicationReport:
    """How many entries had which outcome, with the conflicts and refusals as problems, the first thousand of them.

    A problem is found by the xid at the source, and names the one at the target.

    `notes` are things that a person should know and that are not wrong, by the xid at the target.

    `failure` says why a run ended before its end.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: dict[str, Problem] = field(default_factory=dict)
    compared: bool = False
    cursor: str = ""
    failure: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    _troubled: dict[str, str] = field(default_factory=dict)

    def add(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Count results; a problem that is met again is counted once, one that succeeds at last is taken back."""
        for result in results:
            xid, outcome, detail = (str(result.get(name, "")) for name in ("xid", "outcome", "detail"))
            source = str(result.get("source") or xid)
            before = self._troubled.pop(source, None)
            if before is not None:
                self.problems.pop(source, None)
                self.outcomes -= Counter([before])
            self.outcomes[outcome] += 1
            if outcome in _PROBLEMS:
                self._troubled[source] = outcome
                if len(self.problems) < _MOST_PROBLEMS:
                    self.problems[source] = Problem(xid, outcome, detail)

    def note(self, xid: str, words: str) -> None:
        """Keep something that a person should know."""
        if len(self.notes) < _MOST_PROBLEMS and (xid, words) not in self.notes[-10:]:
            self.notes.append((xid, words))

    @property
    def changed(self) -> int:
        """How many entities are other than before."""
        return self.outcomes["written"] + self.outcomes["deleted"]

    def to_dict(self) -> Json:
        """The report as JSON values."""
        failure: Json = {"failure": self.failure} if self.failure else {}
        if self.notes:
            failure["notes"] = [{"xid": xid, "message": words} for xid, words in self.notes]
        problems = [{"xid": one.path, "code": one.code, "message": one.message} for one in self.problems.values()]
        return {
            "compared": self.compared, "cursor": self.cursor, "outcomes": dict(sorted(self.outcomes.items())),
            "problems": problems, **failure,
        }  # fmt: skip


class SignalbookTarget:
    """One catalog and the replication that writes to it; what became of entries goes into `report`.

    `authority` is the one under which the source is known there, empty where it is not.
    `earlier` reads more of the log of an entity at the source: what is before a number. `problems` are the xids there
    of what earlier runs could not write. `anew` says that the source's history is another than before.
    With `keep_both` what would be a conflict of two owners is kept beside the other.
    """

    def __init__(
        self, peer: Client, name: str, report: ReplicationReport, earlier: Earlier = lambda xid, before: None,
        *, keep_both: bool = False,
    ) -> None:  # fmt: skip
        self._peer = peer
        self._earlier = earlier
        self._keep_both = keep_both
        self.report = report
        self.anew = False
        self.problems: list[str] = []
        self.authority = ""
        self.link = self._read_link(name)
        self._refused: list[Json] = []

    def _read_link(self, name: str) -> Link:
        try:
            value = self._peer.request("GET", f"/replicas?{urlencode({'link': name})}").value
            link = value["link"]
            self.authority = str(value.get("authority") or "")
            self.problems = [str(one["xid"]) for one in value.get("problems", [])]
            return Link(name, str(link["cursor"]), int(link["number"]))
        except RemoteError as error:
            if error.status == 404:
                raise RemoteError(
                    f"{self._peer.name} is not a Signalbook or a catalog of 0.1, which a target has to be", status=404
                ) from None
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RemoteError(
                f"{self._peer.name} is not a Signalbook or a catalog of 0.1, which a target has to be"
            ) from None

    def begin(self) -> None:
        """Begin a comparison: what it does not meet can be swept afterwards.

        The cursor is forgotten, so that one that is interrupted is made again; one that the source does not know stays,
        for the next run has to learn that too.
        """
        cursor = self.link.cursor if self.anew else ""
        self.link = replace(self.link, cursor=cursor, number=self.link.number + 1)
        self._send([], cursor=cursor)

    def write(self, entries: Iterable[Json]) -> None:
        """Write entries in batches."""
        batch: list[Json] = []
        size = 0
        for entry in entries:
            flaw = entry.get("flaw") or _flaw(entry)
            if flaw:
                names = {name: _printable(entry[name]) for name in ("xid", "source")}
                self.report.add([{**names, "outcome": "refused", "detail": flaw}])
                if not _flaw({"xid": entry["xid"]}):
                    self.met([entry["xid"]])  # the source has it, so what is here of it is not swept
                continue
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
            query = urlencode([("link", self.link.name), *(("xid", xid) for xid in xids[start : start + 50])])
            marks = self._peer.request("GET", f"/replicas/marks?{query}").value
            if not isinstance(marks, dict):
                raise RemoteError(f"{self._peer.name} answered with something other than marks")
            found.update(marks)
        return found

    def retry(self) -> None:
        """Try what was refused once more, for it may have waited for something that came later."""
        again, self._refused = self._refused, []
        self.write(again)
        self._refused = []

    def sweep(self) -> None:
        """Delete what the comparison did not meet."""
        for _ in range(MOST_PAGES):
            answer = self._post({"link": self._named(), "sweep": True})
            self.report.add(answer["results"])
            # what cannot be deleted is met again by the next sweep; one that deletes nothing is the last
            if not answer.get("more") or not any(one["outcome"] == "deleted" for one in answer["results"]):
                return
        raise RemoteError(f"{self._peer.name} says for ever that there is more to delete")

    def reached(self, cursor: str) -> None:
        """Write down that everything up to a cursor is here."""
        self.link = replace(self.link, cursor=cursor)
        self._send([], cursor=cursor)
        self.report.cursor = cursor

    def _said(self) -> Json:
        """What holds for all entries of a batch."""
        return ({"anew": True} if self.anew else {}) | ({"onconflict": "keep-both"} if self._keep_both else {})

    def _named(self) -> Json:
        return {"name": self.link.name, "number": self.link.number}

    def _send(self, entries: list[Json], *, cursor: str | None = None, met: Sequence[str] = ()) -> None:
        link = self._named() if cursor is None else {**self._named(), "cursor": cursor}
        body = {"link": link, "entries": entries, "met": list(met), **self._said()}
        results = self._post(body)["results"]
        self.report.add(results)
        for one in results:
            if one.get("wants"):
                self._complete(one.get("source") or one["xid"], int(one["wants"]))
        refused = {one["xid"] for one in results if one["outcome"] == "refused"}
        room = _MOST_RETRIED - len(self._refused)
        self._refused.extend([entry for entry in entries if entry["xid"] in refused][: max(room, 0)])

    def _complete(self, xid: str, before: int) -> None:
        """Send earlier pages of an entity's log until the target has all of it."""
        while before:
            entry = self._earlier(xid, before)
            if entry is None:
                return
            body = {"link": self._named(), "entries": [entry], **self._said()}
            results = self._post(body)["results"]
            if not results:
                raise self._other_results()
            result = results[0]
            if result["outcome"] in ("conflict", "refused"):
                self.report.add([result])
            following = int(result.get("wants") or 0)
            if following >= before:
                raise RemoteError(f"{self._peer.name} asks for the same part of a log again")
            before = following

    def _post(self, body: Json) -> Json:
        value = self._peer.request("POST", "/replicas", body).value
        if not isinstance(value, dict) or not isinstance(value.get("results"), list):
            raise self._other_results()
        if not all(map(_is_result, value["results"])):
            raise self._other_results()
        return value

    def _other_results(self) -> RemoteError:
        return RemoteError(f"{self._peer.name} answered a batch with something other than results")


def _is_result(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("xid", "outcome")):
        return False
    return isinstance(value.get("wants") or 0, int) and isinstance(value.get("source") or "", str)


def _flaw(entry: Json) -> str:
    """What makes an entry one that cannot be sent, in words; empty where nothing does."""
    xid = entry["xid"]
    if len(xid) > _LONGEST or xid.count("/") not in (2, 4):
        return "its ids are not valid in a catalog"
    try:
        orjson.dumps(entry)
    except TypeError as error:
        return f"it holds something that cannot be sent: {error}"
    return ""


def _printable(xid: str) -> str:
    return xid[:_LONGEST].encode("utf-8", "replace").decode()
