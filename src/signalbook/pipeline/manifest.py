"""`Manifest`: what one batch changes in a lake, written before the first change and kept for ever.

Rule 1: a batch whose manifest is there is never judged again; whoever finds it unfinished carries it out.
Rule 2: a manifest says all that is needed for that: files by table, and files that they replace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from signalbook.pipeline.names import DEAD_LETTERS

__all__ = ["Manifest", "Replaced"]


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
