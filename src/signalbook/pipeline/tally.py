"""`Tally`: what a task or a batch counted: inputs, outcomes, messages, problems with a few samples.

Rule 1: a tally is bounded, whatever the messages are: beyond a thousand kinds of problems the rest is one line.
Rule 2: a problem is one of a definition only where that definition was meant. What merely comes near an unexpected
message, or is one of several, stands in the sample as `near`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbook.errors import Problem

__all__ = ["Tally"]

_MOST_KINDS = 1000
_SAMPLES = 3
_LONGEST = 300
_REST = ("", "", "…", "")

# The outcomes of which no single definition is the one that was meant.
_UNDECIDED = frozenset({"unexpected", "ambiguous"})

_Kind = tuple[str, str, str, str]


@dataclass(slots=True)
class Tally:
    """Counts that add up; `records` are the inputs before batches were taken apart.

    `unchecked` counts those of the landed whose payload no schema was applied to, though they have one.
    """

    input: int = 0
    records: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    problems: Counter[_Kind] = field(default_factory=Counter)
    samples: dict[_Kind, list[dict[str, Any]]] = field(default_factory=dict)
    dead: int = 0
    unchecked: int = 0

    @property
    def landed(self) -> int:
        """How many messages went to their tables."""
        return self.messages.total()

    def problem(self, outcome: str, definition: str | None, problem: Problem, place: Mapping[str, Any]) -> None:
        """Count one problem of a dead letter, and keep where it was seen first.

        A problem whose code is the outcome says that nothing was decided: the definition is then one that comes near.
        """
        near = definition if outcome in _UNDECIDED or problem.code == outcome else None
        kind = (outcome, "" if near else definition or "", problem.code, problem.path[:_LONGEST])
        if kind not in self.problems and len(self.problems) >= _MOST_KINDS:
            kind = _REST
        self.problems[kind] += 1
        seen = self.samples.setdefault(kind, [])
        if len(seen) < _SAMPLES:
            words = problem.message[:_LONGEST].encode("utf-8", "replace").decode()
            seen.append({**place, "message": words, **({"near": near} if near else {})})

    def to_json(self) -> dict[str, Any]:
        """The counts as a JSON value."""
        return {
            "input": self.input,
            "records": self.records,
            "landed": self.landed,
            "dead": self.dead,
            "unchecked": self.unchecked,
            "outcomes": dict(+self.outcomes),
            "messages": dict(+self.messages),
            "problems": [
                {
                    **dict(zip(("outcome", "definition", "code", "path"), kind, strict=True)),
                    "count": count,
                    "samples": self.samples.get(kind, []),
                }
                for kind, count in self.problems.most_common()
            ],
        }

    @classmethod
    def sum(cls, parts: Iterable[Mapping[str, Any]]) -> Tally:
        """What several tallies, as JSON values, come to."""
        whole = cls()
        for part in parts:
            whole.input += part["input"]
            whole.records += part["records"]
            whole.dead += part["dead"]
            whole.unchecked += part.get("unchecked", 0)  # which older manifests do not have
            whole.outcomes.update(part["outcomes"])
            whole.messages.update(part["messages"])
            for one in part["problems"]:
                kind = (one["outcome"], one["definition"], one["code"], one["path"])
                if kind not in whole.problems and len(whole.problems) >= _MOST_KINDS:
                    kind = _REST
                whole.problems[kind] += one["count"]
                seen = whole.samples.setdefault(kind, [])
                seen.extend(one["samples"][: _SAMPLES - len(seen)])
        return whole
