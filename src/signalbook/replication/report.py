"""What a replication did, and what it could not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbook.errors import Problem
from signalbook.jsontext import Json

__all__ = ["Report"]

_MOST_PROBLEMS = 1000
_PROBLEMS = ("conflict", "refused")


@dataclass(slots=True)
class Report:
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
