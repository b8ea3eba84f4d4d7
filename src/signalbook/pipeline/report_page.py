"""The report as one HTML page that needs nothing else: no script, no style sheet, no picture from elsewhere.

Rule: whatever messages said is text on the page, never markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from signalbook.pipeline.report import Report, example

__all__ = ["page"]

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


def page(report: Report) -> str:
    """The whole page."""
    sections = [
        _section("Outcomes", _bars(report.outcomes)),
        _section("Messages", _bars(report.messages)),
        _section("Problems", _problems(report.problems)),
        _section("Runs", _runs(report)),
    ]
    if report.notes:
        sections.append(_section("Notes", "".join(f"<p>{escape(note)}</p>" for note in report.notes)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Signalbook report</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(report.lake)}</h1>"
        f'<div class="sum"><div><b>{report.input:,}</b>arrived</div>'
        f'<div class="good"><b>{report.landed:,}</b>landed</div>'
        f'<div class="bad"><b>{report.dead:,}</b>dead</div>'
        + (f"<div><b>{report.unchecked:,}</b>landed with an unchecked payload</div>" if report.unchecked else "")
        + f"</div>{''.join(sections)}</body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


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
            f'<text x="0" y="{top + 15}">{escape(label)}<title>{escape(name)}</title></text>'
            f'<rect class="{escape(name)}" x="{_LABEL}" y="{top + 4}" width="{width}" height="{_ROW - 8}"/>'
            f'<text x="{_LABEL + width + 6}" y="{top + 15}">{count:,}</text>'
        )
    height = len(rows) * _ROW
    more = f"<p>… {len(counts) - _MOST} more</p>" if len(counts) > _MOST else ""
    return f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="100%">{"".join(drawn)}</svg>{more}'


def _problems(problems: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in problems[:_MOST]:
        samples = "".join(
            f"<div>{escape(example(sample))} <code>{escape(str(sample['origin']))}:{sample['position']}</code></div>"
            for sample in one["samples"]
        )
        cells = (one["outcome"], one["code"], one["path"], one["definition"])
        rows.append((*(escape(str(cell)) for cell in cells), f"{one['count']:,}", samples))
    return _table(("outcome", "problem", "at", "definition", "count", "samples"), rows, numbers={4})


def _runs(report: Report) -> str:
    rows = [
        (
            *(escape(cell) for cell in (run.run, run.kind, run.source, run.started)),
            *(f"{count:,}" for count in (run.batches, run.input, run.landed, run.dead)),
        )
        for run in report.runs
    ]
    names = ("run", "kind", "source", "started", "batches", "input", "landed", "dead")
    return _table(names, rows, numbers={4, 5, 6, 7})


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int]) -> str:
    """A table of cells that are markup already."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = (f"<{tag}{' class=n' if at in numbers else ''}>{cell}</{tag}>" for at, cell in enumerate(cells))
        return f"<tr>{''.join(marked)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table>{line('th', [escape(name) for name in names])}{body}</table>"
