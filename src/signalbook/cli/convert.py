"""The command convert: a catalog document from one dialect into another, and what that did to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from signalbook.cli.output import Exit, print_json, say
from signalbook.errors import Problem, UsageError
from signalbook.spec.dialects import DIALECTS, WRITTEN, Dialect

if TYPE_CHECKING:
    from signalbook.dialects.convert import Detection
    from signalbook.sources.documents import Raw, UnreadableDocument

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
    help=f"The dialect of the document, by its label, else by its content, when absent: {', '.join(DIALECTS)}.",
)
@click.option("--to", "wanted", metavar="VERSION", help=f"The dialect to write: {', '.join(WRITTEN)}.")
@click.option("--detect", is_flag=True, help="Only print which dialect each document is in.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write each document into a file of this folder, at the place it has in FOLDER, not to standard output.",
)
@click.option("--force", is_flag=True, help="Replace files that are already in the folder.")
@click.option("--strict", is_flag=True, help="Fail where something is lost or means something else.")
@click.option("--json", "as_json", is_flag=True, help="Report one JSON object a note and line.")
def convert(
    location: str,
    source: str | None,
    wanted: str | None,
    detect: bool,
    output: Path | None,
    force: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Convert the catalog document in a file, a folder or standard input into another dialect.

    The result goes to standard output, the report to standard error: what the target has no place for is kept in labels
    (held), left out (lost), or means something else there (changed). What breaks a rule of the document's own dialect
    (invalid) is converted as it stands, and the exit code is 1.

    In a folder, every JSON or YAML file that is a catalog document is converted, with its subfolders; others are
    reported as skipped. A file named *.xreg.json, *.xreg.yaml or *.xreg.yml has to be a catalog document.
    """
    from signalbook.dialects import convert as dialects
    from signalbook.sources.documents import read_every
    from signalbook.sources.lint import broken

    found = [one for one in read_every(location) if output is None or output not in Path(one[0].source).parents]
    if detect:
        told = [_detect(document, as_json) or not meant for document, meant in found]
        return Exit.OK if all(told) else Exit.REFUSED
    target = _dialect(wanted, "--to", WRITTEN)
    given = _dialect(source, "--from", tuple(DIALECTS)) if source else None
    chosen, skipped = _chosen(location, found, given)
    for name, why in skipped:
        _report(name, Problem("", "skipped", why), as_json)
    if not chosen:
        raise UsageError(f"no catalog document was found in '{location}'; name the file to convert")
    documents = [document for document, _ in chosen]
    if output is None and len(documents) > 1:
        raise UsageError(f"'{location}' holds {len(documents)} documents; write them into files with --output FOLDER")
    files = _files(location, output, [document.source for document in documents], force=force)
    results = [dialects.convert(document.value, target, dialect) for document, dialect in chosen]
    counted: set[str] = set()
    for document, result, file in zip(documents, results, files, strict=True):
        _write(result.content, file)
        for note in (*result.problems, *broken(document, result.source.dialect), *result.notes):
            counted.add(note.code)
            _report(document.source, note, as_json)
    refused = {"invalid", "lost", "changed"} if strict else {"invalid"}
    return Exit.REFUSED if counted & refused else Exit.OK


def _dialect(name: str | None, option: str, known: tuple[str, ...]) -> Dialect:
    if name is None:
        raise UsageError(f"{option} is missing; name one of {', '.join(known)}")
    if name.lower() not in known:
        raise UsageError(f"{option} '{name}' is not one of {', '.join(known)}")
    return DIALECTS[name.lower()]


def _chosen(
    location: str, found: list[tuple[Raw | UnreadableDocument, bool]], given: Dialect | None
) -> tuple[list[tuple[Raw, Dialect | Detection]], list[tuple[str, str]]]:
    """The documents to convert with their dialects, and the files of a folder that are none, each with the reason."""
    from signalbook.dialects.convert import ForeignDocument
    from signalbook.sources.documents import CATALOG_SUFFIXES, UnreadableDocument, recognise

    in_folder = Path(location).is_dir()
    chosen: list[tuple[Raw, Dialect | Detection]] = []
    skipped: list[tuple[str, str]] = []
    for document, _ in found:
        if isinstance(document, UnreadableDocument):
            skipped.append((document.source, document.reason.removeprefix(f"{document.source} ")))
            continue
        optional = in_folder and not document.source.endswith(CATALOG_SUFFIXES)
        try:
            chosen.append((document, given if given and not optional else recognise(document)))
        except ForeignDocument as error:
            if not optional:
                raise
            skipped.append((document.source, str(error).removeprefix(f"{document.source} ")))
        except UsageError:
            if given is None:
                raise
            chosen.append((document, given))
    return [(document, given or dialect) for document, dialect in chosen], skipped


def _detect(document: Raw | UnreadableDocument, as_json: bool) -> bool:
    """Say which dialect a document is in; False where it is in none."""
    from signalbook.sources.documents import UnreadableDocument, recognise

    try:
        if isinstance(document, UnreadableDocument):
            raise UsageError(document.reason)
        found = recognise(document)
    except UsageError as error:
        if as_json:
            print_json({"source": document.source, "dialect": None, "label": "", "why": str(error)}, compact=True)
        else:
            click.echo(str(error))
        return False
    if as_json:
        facts = {"source": document.source, "dialect": found.dialect.name, "label": found.label, "why": found.why}
        print_json(facts, compact=True)
    else:
        why = f" ({found.why})" if found.why else " (nothing tells it from others)"
        click.echo(f"{document.source}: {found.dialect.name}, {found.dialect.title}{why}")
    return True


def _files(location: str, folder: Path | None, sources: list[str], *, force: bool) -> list[Path | None]:
    """The file for each source: where it was below `location`, now below the folder, as JSON; none without a folder."""
    if folder is None:
        return [None] * len(sources)
    root = Path(location)
    files: dict[Path, str] = {}
    for source in sources:
        path = Path("catalog.json") if location == "-" else Path(source)
        below = path.relative_to(root) if root.is_dir() else Path(path.name)
        file = folder / below.with_suffix(".json")
        if file in files:
            raise UsageError(f"'{files[file]}' and '{source}' would both be written to '{file}'; rename one of them")
        if file.exists() and not force:
            raise UsageError(f"'{file}' already exists; choose another folder, or use --force to replace it")
        files[file] = source
    return list(files)


def _write(content: Any, file: Path | None) -> None:
    if file is None:
        print_json(content)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _report(source: str, note: Problem, as_json: bool) -> None:
    if as_json:
        facts = {"source": source, "path": note.path, "code": note.code, "message": note.message}
        say(orjson.dumps(facts).decode())
    else:
        place = "" if note.code == "skipped" else f"{note.path or '/'} "
        say(f"{source}: {note.code}: {place}{note.message}")
