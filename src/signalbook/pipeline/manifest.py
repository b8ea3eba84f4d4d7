"""`Manifest`: what one batch changes in a lake, written before the first change and kept for ever.

Rule 1: a batch whose manifest is there is never judged again; whoever finds it unfinished carries it out.
Rule 2: a manifest says all that is needed for that: files by table, and files that they replace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from signalbook.errors import Problem
from signalbook.pipeline.tables import DEAD_LETTERS

__all__ = ["Manifest", "Replaced", "Tally"]

# `Tally`: what a task or a batch counted: inputs, outcomes, messages, problems with a few samples.
#
# Rule 1: a tally is bounded, whatever the messages are: beyond a thousand kinds of problems the rest is one line.
# Rule 2: a problem is one of a definition only where that definition was meant. What merely comes near an unexpected
# message, or is one of several, stands in the sample as `near`.


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


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file of a table that others take the place of."""

    table: str
    path: str
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON value."""
        return {"table": self.table, "path": self.path, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One batch: where its input came from, what was counted, and its files by table."""

    run: str
    batch: int
    digest: str
    source: str
    written: str
    counts: Mapping[str, Any]
    files: Mapping[str, list[dict[str, Any]]]
    inputs: tuple[Mapping[str, Any], ...] = ()
    replaced: tuple[Replaced, ...] = ()
    kind: str = "land"
    notes: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """The path of its file below the lake's runs."""
        return f"{self.run}/{self.batch:012}.json"

    @property
    def landed(self) -> int:
        """How many rows its files bring to the tables of messages."""
        return sum(file["rows"] for table, files in self.files.items() if table != DEAD_LETTERS for file in files)

    def tables(self) -> list[str]:
        """The tables that it changes, the dead letters last: a message is never in none."""
        names = {*self.files, *(one.table for one in self.replaced)}
        return sorted(names, key=lambda name: (name == DEAD_LETTERS, name))

    def to_bytes(self) -> bytes:
        """The manifest as JSON."""
        return orjson.dumps(
            {
                "run": self.run,
                "batch": self.batch,
                "kind": self.kind,
                "digest": self.digest,
                "source": self.source,
                "written": self.written,
                "counts": self.counts,
                "inputs": self.inputs,
                "files": self.files,
                "replaced": [one.to_json() for one in self.replaced],
                "notes": self.notes,
            }
        )

    @classmethod
    def from_bytes(cls, content: bytes) -> Manifest:
        """The manifest that JSON means."""
        held = orjson.loads(content)
        replaced = tuple(Replaced(**one) for one in held.pop("replaced"))
        return cls(
            **{**held, "inputs": tuple(held["inputs"]), "notes": tuple(held["notes"])},
            replaced=replaced,
        )
