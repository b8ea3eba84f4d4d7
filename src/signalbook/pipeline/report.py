"""What happened in a lake: arrived, landed, dead, by message, outcome and problem.

Rule 1: a report is read from manifests, so it costs nothing of the tables' size. Only where a redrive has landed some
are the dead letters that are left counted, without their records: no manifest says which of them went.
Rule 2: a message counts as arrived once, and where it is now: a dead letter that a redrive landed is landed, and its
former outcome and problems are no longer told.
Rule 3: a run that failed is told with its reason; one that was only stopped, until a later one of its source is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.lake import STOPPED, Lake
from signalbook.pipeline.manifest import Manifest
from signalbook.pipeline.report_letters import count_letters
from signalbook.pipeline.tally import Tally

__all__ = ["Report", "RunReport", "example", "read_report", "render"]

_TOP = 20
_OTHERWISE = (
    "{:,} dead by the manifests, {:,} in the table of dead letters: a batch is under way, or was killed and the next "
    "run finishes it"
)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run came to."""

    run: str
    kind: str
    source: str
    started: str
    batches: int
    input: int
    landed: int
    dead: int

    def to_json(self) -> dict[str, Any]:
        """The run as a JSON value."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Report:
    """What a lake, or one run, came to."""

    lake: str
    input: int
    landed: int
    dead: int
    outcomes: dict[str, int]
    messages: dict[str, int]
    problems: list[dict[str, Any]]
    runs: list[RunReport]
    notes: list[str] = field(default_factory=list)
    unchecked: int = 0

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON value."""
        return {
            "lake": self.lake,
            "input": self.input,
            "landed": self.landed,
            "dead": self.dead,
            "unchecked": self.unchecked,
            "outcomes": self.outcomes,
            "messages": self.messages,
            "problems": self.problems,
            "runs": [run.to_json() for run in self.runs],
            "notes": self.notes,
        }


def read_report(lake: Lake, run: str | None = None) -> Report:
    """The report of a lake, or of one of its runs."""
    about = {one["run"]: one for one in lake.runs()}
    if run is not None and run not in about:
        raise PipelineError(f"the lake has no run {run}; its runs are {', '.join(about) or 'none'}")
    manifests = list(lake.manifests(run))
    arrived = Tally.sum(one.counts for one in manifests if one.kind == "land" or run is not None)
    redriven = Tally.sum(one.counts for one in manifests if one.kind == "redrive" and run is None)
    notes = {note for one in manifests for note in one.notes}
    notes.update(_failures(lake, about, run))
    messages = arrived.messages + redriven.messages
    outcomes, problems, dead = arrived.outcomes, arrived, arrived.dead - redriven.landed
    if redriven.landed:
        problems = count_letters(lake)
        outcomes = problems.outcomes + Counter(matched=messages.total())
        if problems.dead != dead:
            notes.add(_OTHERWISE.format(dead, problems.dead))
    return Report(
        lake=lake.folder.uri,
        input=arrived.input,
        landed=messages.total(),
        dead=dead,
        outcomes=dict(outcomes.most_common()),
        messages=dict(messages.most_common()),
        problems=problems.to_json()["problems"],
        runs=sorted((_run(about[name], some) for name, some in _by_run(manifests)), key=lambda run: run.started),
        notes=sorted(notes),
        unchecked=arrived.unchecked + redriven.unchecked,
    )


def _failures(lake: Lake, about: Mapping[str, Mapping[str, Any]], wanted: str | None) -> Iterator[str]:
    done: set[str] = set()
    for name, one in reversed(list(about.items())):
        source = str(one["source"])
        words = lake.failure(name)
        if words is None:
            done.add(source)
        elif wanted in (None, name) and (source not in done or words != STOPPED):
            yield f"the run {name} of {source} did not end well: {words}; the same command goes on where it was"


def _by_run(manifests: Sequence[Manifest]) -> Iterator[tuple[str, list[Manifest]]]:
    runs: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        runs.setdefault(manifest.run, []).append(manifest)
    yield from runs.items()


def _run(about: dict[str, Any], manifests: list[Manifest]) -> RunReport:
    counts = Tally.sum(one.counts for one in manifests)
    return RunReport(
        about["run"],
        str(about["kind"]),
        str(about["source"]),
        str(about["started"]),
        len(manifests),
        counts.input,
        counts.landed,
        counts.dead,
    )


def render(report: Report) -> RenderableType:
    """The report for a terminal."""
    landed, dead = f"[green]{report.landed:,} landed[/green]", f"[red]{report.dead:,} dead[/red]"
    head = f"[bold]{report.input:,}[/bold] arrived, {landed}, {dead}"
    if report.unchecked:
        head += f"; of the landed, {report.unchecked:,} with a payload that no schema was applied to"
    parts: list[RenderableType] = [head, _counts("outcome", report.outcomes), _counts("message", report.messages)]
    if report.problems:
        parts.append(_problems(report.problems))
    parts += [f"[yellow]{escape(note)}[/yellow]" for note in report.notes]
    return Group(*parts)


def _counts(title: str, counts: dict[str, int]) -> Table:
    table = Table(title, "count", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for name, count in list(counts.items())[:_TOP]:
        table.add_row(escape(name), f"{count:,}")
    if len(counts) > _TOP:
        table.add_row(f"… {len(counts) - _TOP} more", "")
    return table


def _problems(problems: Sequence[dict[str, Any]]) -> Table:
    table = Table("problem", "at", "of", "count", "for example", box=None, pad_edge=False)
    for one in problems[:_TOP]:
        sample = example(one["samples"][0]) if one["samples"] else ""
        meant = one["definition"].rpartition("/")[2]
        table.add_row(
            escape(f"{one['outcome']}: {one['code']}"),
            escape(one["path"]),
            escape(meant),
            f"{one['count']:,}",
            escape(sample),
        )
    return table


def example(sample: Mapping[str, Any]) -> str:
    """What a sample of a problem says, with the definition that comes near, where none was meant."""
    near = sample.get("near")
    return f"{sample['message']}; near: {near}" if near else str(sample["message"])
