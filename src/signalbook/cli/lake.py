"""The commands ddl and report: what a lake would hold, and what happened in one.

Rule: neither starts Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from signalbook.cli.catalog import on_catalog
from signalbook.cli.output import print_json, say

if TYPE_CHECKING:
    from signalbook.messages.catalog import Catalog

__all__ = ["ddl", "report"]


@click.command(
    short_help="Print the tables of a catalog as Spark SQL.",
    epilog="Example: signalbook ddl --catalog samples",
)
@click.option(
    "--within",
    metavar="XID",
    multiple=True,
    help="Only the tables of this group or endpoint; may be repeated.",
)
@click.option("--lake", metavar="LAKE", help="The lake that the tables lie in.")
@on_catalog
def ddl(catalog: Catalog, within: tuple[str, ...], lake: str | None) -> None:
    """Print the statements that make the tables which `signalbook land` fills, before a message has arrived."""
    from signalbook.pipeline.ddl import statements
    from signalbook.pipeline.files import Folder

    for statement in statements(catalog, within, None if lake is None else Folder.at(lake)):
        click.echo(statement + "\n")


@click.command(
    short_help="Show what arrived in a lake, and what became of it.",
    epilog="Example: signalbook report --lake lake --html report.html",
)
@click.option("--lake", metavar="LAKE", required=True, help="The lake.")
@click.option("--run", metavar="RUN", help="Only this run; the report names them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with charts, which needs nothing else.",
)
def report(lake: str, run: str | None, as_json: bool, page: Path | None) -> None:
    """Show how many messages arrived, landed and died, by message, outcome and problem, with samples."""
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.report import read_report, render

    found = read_report(Lake.open(lake, create=False), run)
    if page is not None:
        from signalbook.pipeline.report_page import page as written

        page.write_text(written(found), encoding="utf-8")
        say(f"wrote {page}")
    if as_json:
        print_json(found.to_json())
    elif page is None:
        from rich.console import Console

        Console(highlight=False).print(render(found))
