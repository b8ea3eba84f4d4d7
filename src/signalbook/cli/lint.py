"""The command lint: what is wrong with catalog documents, all of it at once.

Rule: what it passes, `load` takes: where no error is left, the documents are loaded into a registry in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signalbook.cli.output import Exit, print_json, say

if TYPE_CHECKING:
    from signalbook.sources.documents import UnreadableDocument
    from signalbook.sources.lint import Finding

__all__ = ["lint"]


@click.command(short_help="Check catalog documents.", epilog="Example: signalbook lint samples --json")
@click.argument("locations", metavar="FILE|FOLDER|-...", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--model",
    metavar="builtin|document|FILE",
    default="builtin",
    show_default=True,
    help="The model to check by; `document` is each document's own modelsource.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The lint configuration; by default .signalbook-lint.toml in this folder, if there is one.",
)
@click.option("--group", metavar="ID", default="", help="The group for a document that is a single definition.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a finding and line.")
def lint(
    locations: tuple[str, ...], strict: bool, model: str, config: Path | None, group: str, as_json: bool
) -> int:  # fmt: skip
    """Check catalog documents by the model, by the named rules beyond it, and as one catalog.

    Errors are what a registry would refuse and definitions that cannot do what they say; warnings are likely mistakes;
    notes are for information. If the checks find no error, the documents are loaded into a registry in memory, and
    what it refuses is an error too. The documents of one call are one catalog, so one may refer to another. The exit
    code is 1 where there are errors, with --strict also where there are warnings. Documents of older dialects are
    checked as `load` would write them, by the built-in model; by another model every document is taken as it stands.
    """
    from signalbook.sources.documents import Raw
    from signalbook.sources.lint import Config
    from signalbook.sources.lint import lint as find
    from signalbook.sources.rehearsal import rehearse

    settings = Config.read(config)
    counts: Counter[str] = Counter()
    seen: list[Raw | UnreadableDocument] = []
    told: list[Finding] = []

    def tell(findings: Iterable[Finding]) -> None:
        for finding in settings.apply(findings):
            counts[finding.severity] += 1
            _print(finding, as_json)

    tell(_noted(find(locations, model, seen.append, group=group), told))
    if not counts["error"]:
        tell(rehearse((one for one in seen if isinstance(one, Raw)), model, group=group, told=told))
    if not as_json:
        errors, warnings, notes = counts["error"], counts["warning"], counts["note"]
        further = f", {notes} note(s)" if notes else ""
        checked = len({one.source for one in seen})
        say(f"{checked} document(s) checked: {errors} error(s), {warnings} warning(s){further}")
    return Exit.REFUSED if counts["error"] or (strict and counts["warning"]) else Exit.OK


def _print(finding: Finding, as_json: bool) -> None:
    if as_json:
        print_json(finding.to_dict(), compact=True)
    else:
        click.echo(f"{finding.source}: {finding.severity}: {finding.message.rstrip('.')} [{finding.code}]")


def _noted(findings: Iterable[Finding], told: list[Finding]) -> Iterator[Finding]:
    """The findings as they come; errors are kept in `told`, also those that a configuration will silence."""
    for finding in findings:
        if finding.severity == "error":
            told.append(finding)
        yield finding
