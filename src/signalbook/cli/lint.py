"""The command lint: what is wrong with catalog documents, all of it at once."""

from __future__ import annotations

from collections import Counter

import click

from signalbook.cli.failures import Exit
from signalbook.cli.output import print_json, say

__all__ = ["lint"]


@click.command(short_help="Check catalog documents.", epilog="Example: signalbook lint samples --json")
@click.argument("locations", metavar="FILE|FOLDER|-...", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@click.option(
    "--model",
    metavar="builtin|document|FILE",
    default="builtin",
    show_default=True,
    help="The model to check by; `document` is each document's own modelsource.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a finding and line.")
def lint(locations: tuple[str, ...], strict: bool, model: str, as_json: bool) -> int:
    """Check catalog documents by the model and by the named rules beyond it.

    Errors are what a registry would refuse; warnings are what it takes though it is likely a mistake. The documents
    of one call are checked together, so one may refer to another.
    """
    from signalbook.sources import read_documents
    from signalbook.sources.check import check

    documents = [document for location in locations for document in read_documents(location)]
    counts: Counter[str] = Counter()
    for finding in check(documents, model):
        counts[finding.severity] += 1
        if as_json:
            print_json(finding.to_dict(), compact=True)
        else:
            click.echo(f"{finding.source}: {finding.severity}: {finding.message.rstrip('.')} [{finding.code}]")
    if not as_json:
        errors, warnings = counts["error"], counts["warning"]
        say(f"{len(documents)} document(s) checked: {errors} error(s), {warnings} warning(s)")
    return Exit.REFUSED if counts["error"] or (strict and counts["warning"]) else Exit.OK
