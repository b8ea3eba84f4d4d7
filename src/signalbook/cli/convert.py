"""The command convert: a catalog document from one dialect into another, and what that did to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from signalbook.cli.failures import Exit
from signalbook.cli.output import print_json, say
from signalbook.errors import Problem, UsageError
from signalbook.spec.dialects import DIALECTS, WRITTEN, Dialect

__all__ = ["convert"]


@click.command(
    short_help="Convert catalog documents between dialects.",
    epilog="Example: signalbook convert --to 1.0-rc2 < catalog-0.5.json > catalog.json",
)
@click.argument("location", metavar="[FILE|FOLDER|-]", default="-")
@click.option(
    "--from",
    "source",
    metavar="VERSION",
    help=f"The dialect of the document, found by its content when absent: {', '.join(DIALECTS)}.",
)
@click.option("--to", "wanted", metavar="VERSION", help=f"The dialect to write: {', '.join(WRITTEN)}.")
@click.option("--detect", is_flag=True, help="Only say which dialect each document is in.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write each document into a file of this folder, not to standard output.",
)
@click.option("--strict", is_flag=True, help="Fail where something is lost or means something else.")
@click.option("--json", "as_json", is_flag=True, help="Report one JSON object a note and line.")
def convert(
    location: str,
    source: str | None,
    wanted: str | None,
    detect: bool,
    output: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Convert the catalog document in a file, a folder or standard input into another dialect.

    The result goes to standard output, the report to standard error: what the target has no place for is kept in labels
    (held), left out (lost), or means something else there (changed). What breaks a rule of the document's own dialect
    (invalid) is converted as it stands, and the exit code is 1.
    """
    from signalbook.document import dialects
    from signalbook.sources.dialects import read_raw

    documents = list(read_raw(location))
    if detect:
        for document in documents:
            _tell(document.source, dialects.detect(document.value), as_json)
        return Exit.OK
    target = _dialect(wanted, "--to", WRITTEN)
    given = _dialect(source, "--from", tuple(DIALECTS)) if source else None
    if output is None and len(documents) > 1:
        raise UsageError(f"'{location}' holds {len(documents)} documents; write them into files with --output FOLDER")
    counted: set[str] = set()
    for document in documents:
        result = dialects.convert(document.value, target, given)
        _write(result.content, output, document.source)
        for note in (*result.problems, *result.notes):
            counted.add(note.code)
            _report(document.source, note, as_json)
    refused = {"invalid", "lost", "changed"} if strict else {"invalid"}
    return Exit.REFUSED if counted & refused else Exit.OK


def _dialect(name: str | None, option: str, known: tuple[str, ...]) -> Dialect:
    if name is None or name.lower() not in known:
        raise UsageError(f"{option} {name or 'is missing; it'} is not one of {', '.join(known)}")
    return DIALECTS[name.lower()]


def _tell(source: str, found: Any, as_json: bool) -> None:
    if as_json:
        facts = {"source": source, "dialect": found.dialect.name, "label": found.label, "why": found.why}
        print_json(facts, compact=True)
        return
    why = f" ({found.why})" if found.why else " (nothing tells it from others)"
    click.echo(f"{source}: {found.dialect.name}, {found.dialect.title}{why}")


def _write(content: Any, folder: Path | None, source: str) -> None:
    if folder is None:
        print_json(content)
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{Path(source).name.partition('.')[0] or 'catalog'}.json"
    (folder / name).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _report(source: str, note: Problem, as_json: bool) -> None:
    if as_json:
        facts = {"source": source, "path": note.path, "code": note.code, "message": note.message}
        say(orjson.dumps(facts).decode())
    else:
        say(f"{source}: {note.code}: {note.path or '/'} {note.message}")
