"""`Landed`: which files the runs of a lake have landed, so that none lands twice and none is passed over.

Rule 1: a file is known by its place without links, its size and its time; landing it again has to be asked for.
Rule 2: one that was landed and is another now is refused: what is new in it cannot be told from what has landed.
Rule 3: a manifest never changes, so each is read once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.files import real_folder
from signalbook.pipeline.inputs import Listed, Source, list_files
from signalbook.pipeline.lake import Lake

__all__ = ["Landed", "LandedMeanwhile"]


class LandedMeanwhile(PipelineError):
    """Another run landed some of a batch's files while it was judged."""


class Landed:
    """The files that the manifests of a lake name; threads may share it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: set[tuple[str, int]] = set()
        self._files: dict[str, set[tuple[int, int]]] = {}
        self._folders: dict[str, str] = {}
        self._lock = threading.Lock()

    def unlanded(self, source: Source, files: Iterable[Listed]) -> list[Listed]:
        """Those of a source's files that no batch landed; raises `PipelineError` where one has changed since it was."""
        with self._lock:
            self._refresh()
            return self._fresh(source, files)

    def look(self, source: Source) -> None:
        """Raise `PipelineError` where a file of the source has changed since it was landed."""
        with self._lock:
            # In this order: a file that is landed while the others are listed is then new, and not another.
            self._refresh()
            self._fresh(source, list_files(source))

    def check(self, source: Source, files: list[Listed]) -> None:
        """Raise `LandedMeanwhile` where one of these files has been landed."""
        left = len(self.unlanded(source, files))
        if left < len(files):
            raise LandedMeanwhile(f"another run landed {len(files) - left} of these files meanwhile")

    def _fresh(self, source: Source, files: Iterable[Listed]) -> list[Listed]:
        fresh, changed = [], []
        for one in files:
            known = self._files.get(self._place(one.path))
            if known is None:
                fresh.append(one)
            elif (one.size, one.changed) not in known:
                changed.append(one.path)
        if changed:
            others = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            raise PipelineError(
                f"'{changed[0]}'{others} has changed since it was landed; what is in it would land twice. Take it "
                "away and put what is new into a new file, or land all that is in it once more: "
                f"--from {source.scheme}:{changed[0]} --again"
            )
        return fresh

    def _refresh(self) -> None:
        for name in self._lake.manifest_names():
            manifest = None if name in self._read else self._lake.manifest(*name)
            if manifest is not None:
                self._read.add(name)
                for one in manifest.inputs:
                    self._files.setdefault(self._place(one["path"]), set()).add((one["size"], one["changed"]))

    def _place(self, path: str) -> str:
        above, _, name = path.rpartition("/")
        if above not in self._folders:
            self._folders[above] = real_folder(above or "/")
        return f"{self._folders[above]}/{name}"
