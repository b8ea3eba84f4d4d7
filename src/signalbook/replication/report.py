"""What a replication did, and what it could not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbook.errors import Problem

__all__ = ["Report"]

_MOST_PROBLEMS = 1000
_PROBLEMS = ("conflict", "refused")


@dataclass(slots=True)
class Report:
    """How many entries had which outcome, with the conflicts and refusals as problems, the first thousand of them.

    `failure` says why a run ended before its end.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: dict[str, Problem] = field(default_factory=dict)
    compared: bool = False
    cursor: str = ""
    failure: str = ""

    def add(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Count results; one that succeeds at last takes its problem back."""
        for result in results:
            xid, outcome, detail = (str(result.get(name, "")) for name in ("xid", "outcome", "detail"))
            self.outcomes[outcome] += 1
            if outcome not in _PROBLEMS:
                self.problems.pop(xid, None)
            elif len(self.problems) < _MOST_PROBLEMS:
                self.problems[xid] = Problem(xid, outcome, detail)

    @property
    def changed(self) -> int:
        """How many entities are other than before."""
        return self.outcomes["written"] + self.outcomes["deleted"]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        problems = [{"xid": one.path, "code": one.code, "message": one.message} for one in self.problems.values()]
        return {
            "compared": self.compared, "cursor": self.cursor, "outcomes": dict(sorted(self.outcomes.items())),
            "problems": problems,
        }  # fmt: skip
