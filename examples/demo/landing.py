"""The second part of the demo: a stream of messages lands in tables, and what did not is landed after a fix."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from examples.demo.traffic import CATALOG, mended, write_traffic
from examples.demo.walk import SAMPLES, Unexpected
from signalbook import cli, spark
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.report import read_report
from signalbook.pipeline.session import LocalSettings, open_session

__all__ = ["land_traffic"]

_QUERIES = (
    (
        "Captured names and payload columns are columns like any other.",
        """SELECT context.vin, count(*) AS positions, min(time) AS first
FROM com_example_fleet__com_example_fleet_position GROUP BY 1 ORDER BY 2 DESC LIMIT 5""",
    ),
    (
        "Dead letters say what was wrong.",
        """SELECT outcome, get(problems, 0).code AS problem, count(*) AS letters
FROM signalbook__dead_letters GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 8""",
    ),
)


def land_traffic(console: Console, folder: Path, count: int) -> str:
    """Land generated traffic, report, query, redrive; the last line of the demo."""
    catalog, traffic, lake = folder / "catalog", folder / "traffic", folder / "lake"
    shutil.copytree(SAMPLES, catalog)
    extra = catalog / "desk.xreg.json"
    extra.write_text(json.dumps(CATALOG), encoding="utf-8")
    console.print(f"\n[bold]Generate {count:,} messages of every outcome, over every protocol.[/bold]")
    written = write_traffic(spark.catalog(str(catalog)).catalog(), traffic, count)
    console.print(f"{written:,} messages in {len(list(traffic.iterdir()))} files", highlight=False)

    session = open_session(LocalSettings())
    _run(console, folder, "Land them: one typed table a message.", "land", "--catalog", str(catalog),
         "--from", f"messages:{traffic}", "--to", str(lake))  # fmt: skip
    _check(read_report(Lake.open(str(lake))).to_json(), written)
    _run(console, folder, "What arrived, and what became of it.", "report", "--lake", str(lake))
    spark.views_of(session, str(lake))
    for says, query in _QUERIES:
        console.print(f"\n[bold]{says}[/bold]\n[cyan]{escape(query)}[/cyan]", highlight=False)
        session.sql(query).show(truncate=60)
    extra.write_text(json.dumps(mended()), encoding="utf-8")
    _run(console, folder, "Mend the catalog, and match the dead letters again.", "redrive", "--catalog", str(catalog),
         "--lake", str(lake))  # fmt: skip
    report = read_report(Lake.open(str(lake))).to_json()
    _check(report, written)
    if not any(run["kind"] == "redrive" and run["landed"] for run in report["runs"]):
        raise Unexpected("the redrive landed nothing")
    return f"input {written:,} = landed {report['landed']:,} + dead {report['dead']:,}"


def _run(console: Console, folder: Path, says: str, *command: str) -> None:
    shown = shlex.join(["signalbook", *(word.replace(f"{folder}/", "") for word in command)])
    console.print(f"\n[bold]{says}[/bold]\n[cyan]$ {escape(shown)}[/cyan]", highlight=False, soft_wrap=True)
    began = time.monotonic()
    if cli.main(command) != 0:
        raise Unexpected(f"signalbook {command[0]} failed")
    console.print(f"[dim]{time.monotonic() - began:.1f} s[/dim]", highlight=False)


def _check(report: dict[str, Any], written: int) -> None:
    if report["input"] != written or report["landed"] + report["dead"] != written:
        raise Unexpected(f"{written:,} were written, but the lake says {report}")
