"""What happened in a lake: arrived, landed, dead, by message, outcome and problem; for a terminal and as an HTML page.

Rule 1: a report is read from manifests, so it costs nothing of the tables' size. Only where a redrive has landed some
are the dead letters that are left counted: no manifest says which of them went. Only the columns that are counted are
read then, some rows at a time.
Rule 2: a message counts as arrived once, and where it is now: a dead letter that a redrive landed is landed, and its
former outcome and problems are left out.
Rule 3: a run that failed is shown with its reason; one that was only stopped is shown until a later run of its source
is done.
Rule 4: the HTML page needs no script, style sheet or picture from elsewhere. Whatever messages said is text on the
page, never markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape as escape_html
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from signalbook.errors import Problem
from signalbook.pipeline import delta
from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import STOPPED, Lake, Manifest
from signalbook.pipeline.tables import DEAD_LETTERS
from signalbook.pipeline.worker import LandingCounts

__all__ = ["LakeReport", "RunReport", "count_dead_letters", "example", "page", "read_report", "render"]

# The dead letters that a lake holds, counted.


_COLUMNS = ["outcome", "definition", "problems", "candidates", "id", "judged"]
_AT_ONCE = 4096
_UNDECIDED = "no single definition of the catalog is the one that the message means"


def count_dead_letters(lake: Lake) -> LandingCounts:
    """The outcomes and problems of the dead letters as they are now."""
    found = LandingCounts()
    for batch in _batches(lake):
        nearest = _nearest(batch.column("candidates"))
        rows = batch.drop_columns(["candidates"]).to_pylist()
        for row, near in zip(rows, nearest, strict=True):
            found.dead += 1
            found.outcomes[row["outcome"]] += 1
            place = {"origin": row["judged"]["origin"], "position": row["judged"]["position"], "id": row["id"]}
            for problem in _count_problems(row):
                found.problem(row["outcome"], row["definition"] or near, problem, place)
    return found


def _count_problems(row: dict[str, Any]) -> list[Problem]:
    return [Problem(**one) for one in row["problems"] or ()] or [Problem("", row["outcome"], _UNDECIDED)]


def _batches(lake: Lake) -> Iterator[pa.RecordBatch]:
    folder = lake.folder.below(DEAD_LETTERS)
    for entry in delta.files_of(lake.folder, DEAD_LETTERS):
        with folder.open(entry["path"]) as file:
            yield from pq.ParquetFile(file).iter_batches(_AT_ONCE, columns=_COLUMNS)


def _nearest(candidates: pa.ListArray) -> list[str | None]:
    """The first candidate of each letter, without a look at the problems of all."""
    names, ends = candidates.values.field("definition"), candidates.offsets.to_pylist()
    return [names[start].as_py() if end > start else None for start, end in pairwise(ends)]


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
class LakeReport:
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


def read_report(lake: Lake, run: str | None = None) -> LakeReport:
    """The report of a lake, or of one of its runs."""
    about = {one["run"]: one for one in lake.runs()}
    if run is not None and run not in about:
        raise PipelineError(f"the lake has no run {run}; its runs are {', '.join(about) or 'none'}")
    manifests = list(lake.manifests(run))
    arrived = LandingCounts.sum(one.counts for one in manifests if one.kind == "land" or run is not None)
    redriven = LandingCounts.sum(one.counts for one in manifests if one.kind == "redrive" and run is None)
    notes = {note for one in manifests for note in one.notes}
    notes.update(_failures(lake, about, run))
    messages = arrived.messages + redriven.messages
    outcomes, problems, dead = arrived.outcomes, arrived, arrived.dead - redriven.landed
    if redriven.landed:
        problems = count_dead_letters(lake)
        outcomes = problems.outcomes + Counter(matched=messages.total())
        if problems.dead != dead:
            notes.add(_OTHERWISE.format(dead, problems.dead))
    return LakeReport(
        lake=lake.folder.uri,
        input=arrived.input,
        landed=messages.total(),
        dead=dead,
        outcomes=dict(outcomes.most_common()),
        messages=dict(messages.most_common()),
        problems=problems.to_json()["problems"],
        runs=sorted((_run_report(about[name], some) for name, some in _by_run(manifests)), key=lambda run: run.started),
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


def _run_report(about: dict[str, Any], manifests: list[Manifest]) -> RunReport:
    counts = LandingCounts.sum(one.counts for one in manifests)
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


def render(report: LakeReport) -> RenderableType:
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
            escape(one["outcome"] if one["outcome"] == one["code"] else f"{one['outcome']}: {one['code']}"),
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


# The report as an HTML page.


_STYLE = """
:root { color-scheme: light dark; --bar: #4a7fb5; --good: #3a8f5c; --bad: #b5524a; --faint: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid var(--faint); vertical-align: top; overflow-wrap: anywhere }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.sum { display: flex; gap: 2rem; font-size: 1.1rem } .sum b { display: block; font-size: 1.8rem }
.good { color: var(--good) } .bad { color: var(--bad) } code { font-size: .9em }
svg rect { fill: var(--bar) } svg rect.matched { fill: var(--good) } svg text { fill: currentColor; font-size: 12px }
"""
_MOST = 100
_WIDTH, _ROW, _LABEL = 900, 22, 420


def page(report: LakeReport) -> str:
    """The whole page."""
    sections = [
        _section("Outcomes", _bars(report.outcomes)),
        _section("Messages", _bars(report.messages)),
        _section("Problems", _problems_table(report.problems)),
        _section("Runs", _runs(report)),
    ]
    if report.notes:
        sections.append(_section("Notes", "".join(f"<p>{escape_html(note)}</p>" for note in report.notes)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Signalbook report</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape_html(report.lake)}</h1>"
        f'<div class="sum"><div><b>{report.input:,}</b>arrived</div>'
        f'<div class="good"><b>{report.landed:,}</b>landed</div>'
        f'<div class="bad"><b>{report.dead:,}</b>dead</div>'
        + (f"<div><b>{report.unchecked:,}</b>landed with an unchecked payload</div>" if report.unchecked else "")
        + f"</div>{''.join(sections)}</body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape_html(title)}</h2>{content}</section>"


def _bars(counts: Mapping[str, int]) -> str:
    rows = sorted(counts.items(), key=lambda item: -item[1])[:_MOST]
    if not rows:
        return "<p>none</p>"
    most = max(count for _, count in rows) or 1
    drawn = []
    for number, (name, count) in enumerate(rows):
        top = number * _ROW
        width = max(1, round((_WIDTH - _LABEL - 90) * count / most))
        label = name if len(name) <= 60 else f"…{name[-59:]}"
        drawn.append(
            f'<text x="0" y="{top + 15}">{escape_html(label)}<title>{escape_html(name)}</title></text>'
            f'<rect class="{escape_html(name)}" x="{_LABEL}" y="{top + 4}" width="{width}" height="{_ROW - 8}"/>'
            f'<text x="{_LABEL + width + 6}" y="{top + 15}">{count:,}</text>'
        )
    height = len(rows) * _ROW
    more = f"<p>… {len(counts) - _MOST} more</p>" if len(counts) > _MOST else ""
    return f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="100%">{"".join(drawn)}</svg>{more}'


def _problems_table(problems: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in problems[:_MOST]:
        samples = "".join(
            f"<div>{escape_html(example(sample))} "
            f"<code>{escape_html(str(sample['origin']))}:{sample['position']}</code></div>"
            for sample in one["samples"]
        )
        cells = (one["outcome"], one["code"], one["path"], one["definition"])
        rows.append((*(escape_html(str(cell)) for cell in cells), f"{one['count']:,}", samples))
    return _html_table(("outcome", "problem", "at", "definition", "count", "samples"), rows, numbers={4})


def _runs(report: LakeReport) -> str:
    rows = [
        (
            *(escape_html(cell) for cell in (run.run, run.kind, run.source, run.started)),
            *(f"{count:,}" for count in (run.batches, run.input, run.landed, run.dead)),
        )
        for run in report.runs
    ]
    names = ("run", "kind", "source", "started", "batches", "input", "landed", "dead")
    return _html_table(names, rows, numbers={4, 5, 6, 7})


def _html_table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int]) -> str:
    """A table of cells that are markup already."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = (f"<{tag}{' class=n' if at in numbers else ''}>{cell}</{tag}>" for at, cell in enumerate(cells))
        return f"<tr>{''.join(marked)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table>{line('th', [escape_html(name) for name in names])}{body}</table>"
