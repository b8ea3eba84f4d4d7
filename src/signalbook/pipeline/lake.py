"""`Lake`: a folder of Delta tables, and beside them in `_signalbook` what the runs say of themselves.

    SCHEMA/TABLE/                       one Delta table a message
    signalbook/dead_letters/            the table of the messages that did not land
    _signalbook/runs/RUN/run.json       what a run was asked to do
    _signalbook/runs/RUN/failed         why a run ended before it was done
    _signalbook/runs/RUN/BATCH.json     a manifest; with BATCH.done beside it once it is carried out
    _signalbook/catalogs/DIGEST.json.z  the catalogs that messages were matched by

Rule 1: a manifest without its mark is unfinished: whoever opens the lake next carries it out, unless its run is alive.
Rule 2: a data file that bears the name of a run that has ended, and is in no manifest, is nobody's, and is swept.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from signalbook.pipeline import delta
from signalbook.pipeline.delta import Replaced
from signalbook.pipeline.files import Folder, Lease, PipelineError, is_leased, take_lease
from signalbook.pipeline.tables import DEAD_LETTERS

__all__ = ["STOPPED", "Lake", "LakeRun", "Manifest"]

CONTROL = "_signalbook"
_DONE = ".done"
_ORPHAN_SECONDS = 600
# How a run ended that could not say why.
STOPPED = "it was stopped on the way"
# How long a run may take to look at the other manifests and to write its own, and how long others wait for it.
_COMMIT_SECONDS, _WAIT_SECONDS, _PAUSE_SECONDS = 60, 120, 0.02
# What `deltalake` sets its words off with, in colours.
_decoration = re.compile(r"\x1b\[[0-9;]*m|↳")
_data_file = re.compile(
    r"(?P<run>[0-9]{8}T[0-9]{6}-[0-9a-f]{8}|stream-[0-9a-f]{16})-[0-9]+-[0-9a-f]{12}-[0-9]+\.parquet"
)


@dataclass(frozen=True, slots=True)
class LakeRun:
    """One run: its name, which the files it writes bear."""

    name: str
    about: Mapping[str, Any] = field(default_factory=dict)


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
        """The tables that it changes, the dead letters last, so that a message is always in some table."""
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


class Lake:
    """The lake in a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.control = folder.below(CONTROL)
        self._runs = self.control.below("runs")
        self._leases: dict[str, Lease] = {}

    @classmethod
    def open(cls, path: str, *, create: bool = True) -> Lake:
        """The lake at a path; with `create`, a new one where there is none."""
        lake = cls(Folder.at(path))
        if create:
            lake.control.make()
        elif not lake.control.is_folder():
            raise PipelineError(f"'{path}' is not a lake: the folder {CONTROL} is missing")
        return lake

    # Runs ------------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def run(self, about: Mapping[str, Any], name: str | None = None) -> Iterator[LakeRun]:
        """A run that is alive until the end of the block, or of the process."""
        now = datetime.now(UTC)
        run = LakeRun(name or f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}", {**about, "started": _timestamp(now)})
        lease = take_lease(self._runs, f"{run.name}/lease")
        if lease is None:
            words = f"the run {run.name} is going on already, in another process"
            raise PipelineError(words + _unless_killed(self._runs, f"{run.name}/lease"))
        try:
            self._runs.write(f"{run.name}/run.json", orjson.dumps({"run": run.name, **run.about}))
            self._runs.delete(f"{run.name}/failed")
            yield run
        except Exception as error:
            self._give_up(run.name, str(error) or type(error).__name__)
            raise
        finally:
            lease.release()
        self._runs.write(f"{run.name}/ended", b"")

    def runs(self) -> list[dict[str, Any]]:
        """What each run was asked to do, the oldest first."""
        found = []
        for name in self._runs.folders():
            about = self._runs.read(f"{name}/run.json")
            if about is not None:
                found.append(orjson.loads(about))
        return sorted(found, key=lambda about: str(about["started"]))

    def failure(self, run: str) -> str | None:
        """Why a run is over and not done, in words; None where it is done, or alive."""
        if is_leased(self._runs, f"{run}/lease"):
            return None
        words = self._runs.read(f"{run}/failed")
        if words is not None:
            return words.decode("utf-8", "replace")
        return None if self._runs.stat(f"{run}/ended") is not None else STOPPED

    def _give_up(self, run: str, words: str) -> None:
        """Keep why a run ends; what it wrote and did not commit goes first, for the disk may be full."""
        with contextlib.suppress(OSError, PipelineError):
            self._remove_all_but({run: self._committed(run)})
            self._runs.write(f"{run}/failed", " ".join(_decoration.sub("", words).split()).encode())

    @contextlib.contextmanager
    def exclusive(self, purpose: str, words: str) -> Iterator[None]:
        """Hold a lock of the lake; raise `PipelineError` with these words where another process holds it."""
        lease = take_lease(self.control, f"leases/{purpose}")
        if lease is None:
            raise PipelineError(words + _unless_killed(self.control, f"leases/{purpose}"))
        try:
            yield
        finally:
            lease.release()

    def keep_catalog(self, digest: str, text: bytes) -> None:
        """Keep the documents of the catalog that a run matches by."""
        path = f"catalogs/{digest}.json.z"
        if self.control.stat(path) is None:
            self.control.write(path, text)

    # Batches ---------------------------------------------------------------------------------------------------------

    def manifest(self, run: str, batch: int) -> Manifest | None:
        """The manifest of a batch, or None where it has none yet."""
        content = self._runs.read(f"{run}/{batch:012}.json")
        return None if content is None else Manifest.from_bytes(content)

    def manifests(self, run: str | None = None) -> Iterator[Manifest]:
        """Every manifest, of one run or of all, in the order of runs and batches."""
        for name, number in self.manifest_names(run):
            found = self.manifest(name, number)
            if found is not None:
                yield found

    def manifest_names(self, run: str | None = None) -> Iterator[tuple[str, int]]:
        """The run and the number of every batch that has a manifest, of one run or of all."""
        for name in [run] if run is not None else self._runs.folders():
            for entry in self._runs.below(name).files():
                if re.fullmatch(r"[0-9]{12}\.json", entry.path):
                    yield name, int(entry.path.removesuffix(".json"))

    @contextlib.contextmanager
    def commit_lock(self) -> Iterator[None]:
        """Hold the lock under which manifests are added; waits for the processes that came before."""
        until = time.monotonic() + _WAIT_SECONDS
        while (lease := take_lease(self.control, "leases/commit", _COMMIT_SECONDS)) is None:
            if time.monotonic() > until:
                raise PipelineError("another run keeps this lake from committing; nothing was committed, try again")
            time.sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            lease.release()

    def write(self, manifest: Manifest) -> None:
        """Put a manifest into the lake; from here on its batch only rolls forward."""
        if not self._runs.claim(manifest.name, manifest.to_bytes()):
            raise PipelineError(f"the batch {manifest.batch} of {manifest.run} has a manifest already")

    def carry_out(self, manifest: Manifest) -> None:
        """Do what a manifest says, as far as it is not done."""
        mark = manifest.name.removesuffix(".json") + _DONE
        if self._runs.stat(mark) is not None:
            return
        for table in manifest.tables():
            replaced = [one for one in manifest.replaced if one.table == table]
            transaction = (f"signalbook/{manifest.run}", manifest.batch)
            delta.commit(self.folder, table, transaction, manifest.files.get(table, []), replaced)
        self._runs.write(mark, b"")

    def roll_forward(self) -> list[Manifest]:
        """Carry out what runs that have ended left unfinished."""
        finished = []
        for name in self._runs.folders():
            marks = {entry.path for entry in self._runs.below(name).files()}
            open_ = [mark for mark in marks if mark.endswith(".json") and mark != "run.json"]
            open_ = [mark for mark in open_ if mark.removesuffix(".json") + _DONE not in marks]
            if not open_ or is_leased(self._runs, f"{name}/lease"):
                continue
            for manifest in self.manifests(name):
                if f"{manifest.batch:012}.json" in open_:
                    self.carry_out(manifest)
                    finished.append(manifest)
        return finished

    def sweep(self) -> int:
        """Remove the data files of ended runs that nobody committed; how many there were."""
        known = {
            name: self._committed(name)
            for name in self._runs.folders()
            if self._runs.stat(f"{name}/swept") is None and not is_leased(self._runs, f"{name}/lease")
        }
        swept = self._remove_all_but(known) if known else 0
        for name in known:
            self._mark_swept(name)
        return swept

    def _committed(self, run: str) -> set[str]:
        """The data files in the manifests of a run, by their paths in the lake."""
        return {
            f"{table}/{file['path']}"
            for manifest in self.manifests(run)
            for table, files in manifest.files.items()
            for file in files
        }

    def _remove_all_but(self, committed_by: Mapping[str, set[str]]) -> int:
        """Remove the data files of these runs but for those that they committed; how many there were."""
        swept = 0
        for entry in self.folder.files(recursive=True):
            found = _data_file.fullmatch(entry.path.rpartition("/")[2])
            committed = committed_by.get(found["run"]) if found else None
            if committed is not None and entry.path not in committed:
                self.folder.delete(entry.path)
                swept += 1
        return swept

    def _mark_swept(self, name: str) -> None:
        """Mark a run as swept once no orphan of it can write any more; a stream may come back, and is never."""
        about = self._runs.stat(f"{name}/run.json")
        ended = self._runs.stat(f"{name}/ended") is not None
        old = about is not None and time.time() - about.changed / 1e9 > _ORPHAN_SECONDS
        if not name.startswith("stream-") and (ended or old):
            self._runs.write(f"{name}/swept", b"")


def _unless_killed(folder: Folder, lease: str) -> str:
    """What to do where a lease outlives its holder, which no lock on a file system does."""
    return "" if folder.is_local else f"; if it was killed, remove {folder.place(lease)}"


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
