"""The commands on catalog documents: load, lint and convert.

Rule 1: a request of a load is all or nothing, so what a load that stops half way has written is whole parts, and
running it again is safe: it writes what is not there yet. The documents of one load may refer to each other in any
order. Versions that did not stay, because their type limits them, are reported.
Rule 2: a document that breaks the rules of its own dialect is refused before anything is written, unless the
configuration of lint says that this is not an error. With --keep-going a document that is refused leaves nothing
behind, and the others are loaded.
Rule 3: what lint passes, load takes: where no error is left, the documents are loaded into a registry in memory.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from click.core import ParameterSource

from signalbook.cli import options
from signalbook.cli.output import Exit, print_json, say, sentence
from signalbook.client import Client
from signalbook.errors import Problem, RegistryError, SignalbookError, UsageError
from signalbook.sources import Part
from signalbook.sources.documents import (
    CATALOG_SUFFIXES,
    MAX_ENTRIES,
    Document,
    Raw,
    UnreadableDocument,
    read_each,
    read_every,
    read_raw,
    recognise,
)
from signalbook.sources.loading import Loadable, Loading, load_good, loadable
from signalbook.spec.dialects import DIALECTS, WRITTEN, Dialect

if TYPE_CHECKING:
    from signalbook.dialects.convert import Detection
    from signalbook.sources.lint import Finding

__all__ = ["convert", "lint", "load"]

NAMED = 3  # so many of the versions that were not kept are named


@dataclass(frozen=True, slots=True)
class Refused:
    """A document that was not loaded, and why: in words and, where a rule or the registry has one, by a name."""

    source: str
    error: str
    code: str = ""
    subject: str = ""

    def to_json(self) -> dict[str, str]:
        """The members that say something."""
        said = {"source": self.source, "code": self.code, "subject": self.subject, "error": self.error}
        return {name: text for name, text in said.items() if text}


@dataclass(slots=True)
class LoadTally:
    """What a load has sent, and how much of it was new or changed, which alone is written."""

    documents: int = 0
    groups: int = 0
    resources: int = 0
    requests: int = 0
    written_groups: int = 0
    written_resources: int = 0

    def to_json(self) -> dict[str, Any]:
        """All of it, with what was there already."""
        counted = ("documents", "groups", "resources", "requests")
        written = {"groups": self.written_groups, "resources": self.written_resources}
        unchanged = {name: getattr(self, name) - count for name, count in written.items()}
        return {**{name: getattr(self, name) for name in counted}, "written": written, "unchanged": unchanged}

    def __str__(self) -> str:
        whole = f"{_counted(self.groups, 'group')} with {_counted(self.resources, 'resource')}"
        whole += f" from {_counted(self.documents, 'document')}"
        groups, resources = self.groups - self.written_groups, self.resources - self.written_resources
        if not self.documents:
            return "nothing was loaded"
        if not groups and not resources:
            return f"loaded {whole}"
        if not self.written_groups and not self.written_resources:
            return f"no group or resource was written: {whole} are there already, unchanged"
        written = f"{_counted(self.written_groups, 'group')} and {_counted(self.written_resources, 'resource')} written"
        unchanged = f"{_counted(groups, 'group')} and {_counted(resources, 'resource')} unchanged"
        return f"loaded {whole}: {written}, {unchanged}"


def _counted(count: int, singular: str) -> str:
    return f"{count} {singular}" if count == 1 else f"{count} {singular}s"


@click.command(
    short_help="Write catalog documents into a registry.",
    epilog="Example: signalbook load samples --store signalbook.db",
)
@click.argument("location", metavar="FILE|FOLDER|-")
@click.option(
    "--chunk",
    type=click.IntRange(min=0),
    default=MAX_ENTRIES,
    show_default=True,
    metavar="N",
    help="At most this many entries per request, unless they refer to each other; 0: one request per document.",
)
@click.option("--with-model", is_flag=True, help="Take over a document's model source and capabilities too.")
@click.option("--with-metadata", is_flag=True, help="Take over the registry's own name, description and labels too.")
@click.option("--group", metavar="ID", default="", help="The group for a document that is a single definition.")
@click.option("--keep-going", is_flag=True, help="Load every valid document, each in one request; report the others.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The lint configuration (severities); by default .signalbook-lint.toml in this folder, if there is one.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress bar and no summary.")
@options.model
@options.as_json
@options.on_registry
def load(
    client: Client,
    location: str,
    chunk: int,
    with_model: bool,
    with_metadata: bool,
    group: str,
    keep_going: bool,
    config: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Write the catalog documents in a file, a folder or standard input into a registry.

    In a folder that has files named *.xreg.json, *.xreg.yaml or *.xreg.yml only these are read, else every JSON and
    YAML file. Entities that are there already are replaced where the documents say something else, and left alone
    where they do not; others stay. Documents of older dialects are read too, as `signalbook convert` would. A document
    that breaks a rule of its dialect is refused. So is one in which `signalbook lint` finds an error about the catalog
    as a whole, unless the configuration of lint lowers that rule.
    """
    if keep_going and click.get_current_context().get_parameter_source("chunk") is ParameterSource.COMMANDLINE:
        raise UsageError("--keep-going writes each document in one request; leave --chunk out")
    tally = LoadTally()
    documents, bad = _read_loadable(location, group, config, keep_going=keep_going)
    documents = _without_errors(client, documents, bad, config, keep_going=keep_going)
    tally.documents = len(documents)
    if bad and not keep_going:
        say("signalbook: nothing was loaded; correct what is invalid")
        if as_json:
            print_json({**LoadTally().to_json(), "refused": [one.to_json() for one in bad]}, compact=True)
        return Exit.REFUSED
    with _progress(_resources(documents), visible=not quiet) as advance:

        def written(part: Part, groups: int, resources: int) -> None:
            tally.groups += part.groups
            tally.resources += part.resources
            tally.requests += 1
            tally.written_groups += groups
            tally.written_resources += resources
            advance(part.resources)

        begin = partial(Loading, client, with_model=with_model, with_metadata=with_metadata, written=written)
        if keep_going:

            def refused(one: Loadable, error: SignalbookError) -> None:
                tally.documents -= 1
                bad.append(_refused(one.document.source, error))

            loadings = load_good(lambda name: begin(chunk=0, name=name), documents, refused)
        else:
            loading = begin(chunk=chunk)
            for one in documents:
                with _reporting(one.document.source, tally):
                    loading.load(one)
            with _reporting(location, tally):
                loading.finish()
            loadings = [loading]
    for loading in loadings:
        _report_unkept(loading)
    if as_json:
        print_json({**tally.to_json(), "refused": [one.to_json() for one in bad]}, compact=True)
    elif not quiet:
        say(str(tally))
    if bad:
        say(f"signalbook: {len({one.source for one in bad})} document(s) were not loaded")
    return Exit.REFUSED if bad else Exit.OK


def _read_loadable(
    location: str, group: str, config: Path | None, *, keep_going: bool
) -> tuple[list[Loadable], list[Refused]]:
    """The documents to load, and those that cannot be; what there is to say of each is said."""
    from signalbook.sources.lint import NOTED, Config, noted

    severities = Config.read(config)
    good: list[Loadable] = []
    bad: list[Refused] = []
    for raw in read_each(location) if keep_going else read_raw(location):
        if isinstance(raw, UnreadableDocument):
            bad.append(_refused(raw.source, UsageError(raw.reason)))
            continue
        try:
            one = loadable(raw, group)
        except (RegistryError, UsageError) as error:
            if not keep_going:
                raise
            bad.append(_refused(raw.source, error))
            continue
        for note in (note for note in one.notes if note.code not in NOTED):
            say(f"{raw.source}: {note.code}: {note.path or '/'} {note.message}")
        findings = list(severities.apply(noted(one.document, one.notes)))
        for finding in findings:
            say(f"{raw.source}: {finding.code}: {finding.message.removesuffix('.')}")
        wrong = [finding for finding in findings if finding.severity == "error"]
        bad.extend(Refused(raw.source, one.message, one.code, one.xid) for one in wrong)
        if not wrong:
            good.append(one)
    return good, bad


def _without_errors(
    client: Client, documents: list[Loadable], bad: list[Refused], config: Path | None, *, keep_going: bool
) -> list[Loadable]:
    """The documents without an error that only the whole catalog shows; those that have one are reported in `bad`."""
    from signalbook.sources.lint import Config
    from signalbook.sources.rehearsal import catalog_errors

    severities = Config.read(config)

    def there() -> list[Document]:
        held = client.export()
        has_entities = any(isinstance(value, dict) and value for value in held.values())
        return [loadable(Raw("", held)).document] if has_entities else []

    while documents and (keep_going or not bad):
        found = catalog_errors([one.document for one in documents], severities, there)
        for finding in found:
            say(f"{finding.source}: {finding.code}: {finding.message.removesuffix('.')}")
            bad.append(Refused(finding.source, finding.message, finding.code, finding.xid))
        wrong = {finding.source for finding in found}
        if not wrong or not keep_going:
            break
        documents = [one for one in documents if one.document.source not in wrong]  # another may refer to what is gone
    return documents


def _refused(source: str, error: SignalbookError) -> Refused:
    """Say that a document was not loaded, and why."""
    words = sentence(error).removeprefix(f"{source} ").removeprefix(f"{source}: ")
    say(f"signalbook: {source} was not loaded: {words}")
    if isinstance(error, RegistryError):
        return Refused(source, words, error.name, error.subject)
    return Refused(source, words)


@contextlib.contextmanager
def _reporting(source: str, tally: LoadTally) -> Iterator[None]:
    """Say how far a load got that is refused."""
    try:
        yield
    except RegistryError:
        say(f"signalbook: {source} stopped after {tally.resources} resources were loaded")
        raise


def _report_unkept(loading: Loading) -> None:
    """Say in one line how many versions did not stay, and which are the first."""
    unkept = loading.unkept()
    if not unkept:
        return
    count = sum(one.count for one in unkept)
    named = [xid for one in unkept[:NAMED] for xid in loading.gone(one) or [one.xid]][:NAMED]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    say(f"signalbook: {count} version(s) were not kept, since their type keeps only so many: {', '.join(named)}{more}")


def _resources(documents: Sequence[Loadable]) -> int:
    """About how many resources there are: the entries two levels below each group collection."""
    return sum(
        len(resources)
        for one in documents
        for groups in one.document.content.values()
        if isinstance(groups, dict)
        for group in groups.values()
        if isinstance(group, dict)
        for resources in group.values()
        if isinstance(resources, dict) and all(isinstance(resource, dict) for resource in resources.values())
    )


@contextlib.contextmanager
def _progress(total: int, *, visible: bool) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere; call what it gives with the number of resources just written."""
    from rich.console import Console

    console = Console(stderr=True)
    if not visible or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("loading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("loading", total=total)
        yield lambda count: progress.update(task, advance=count)


# Lint ----------------------------------------------------------------------------------------------------------------


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
    from signalbook.app import store_client
    from signalbook.sources.lint import Config
    from signalbook.sources.lint import lint as find
    from signalbook.sources.rehearsal import rehearse

    settings = Config.read(config)
    counts: Counter[str] = Counter()
    seen: list[Raw | UnreadableDocument] = []
    errors: list[Finding] = []

    def report(findings: Iterable[Finding]) -> None:
        for finding in settings.apply(findings):
            counts[finding.severity] += 1
            _print_finding(finding, as_json)

    report(_keep_errors(find(locations, model, seen.append, group=group), errors))
    if not counts["error"]:
        documents = (one for one in seen if isinstance(one, Raw))
        report(rehearse(documents, model, open_client=partial(store_client, "memory:"), group=group, known=errors))
    if not as_json:
        count, warnings, notes = counts["error"], counts["warning"], counts["note"]
        further = f", {notes} note(s)" if notes else ""
        checked = len({one.source for one in seen})
        say(f"{checked} document(s) checked: {count} error(s), {warnings} warning(s){further}")
    return Exit.REFUSED if counts["error"] or (strict and counts["warning"]) else Exit.OK


def _print_finding(finding: Finding, as_json: bool) -> None:
    if as_json:
        print_json(finding.to_dict(), compact=True)
    else:
        # The words of a named rule end with its name already, which says more than the error's.
        words = finding.message.rstrip(".")
        named = words if words.endswith(f"[{finding.rule}]") else f"{words} [{finding.code}]"
        click.echo(f"{finding.source}: {finding.severity}: {named}")


def _keep_errors(findings: Iterable[Finding], errors: list[Finding]) -> Iterator[Finding]:
    """The findings as they come; errors are kept, also those that a configuration will silence."""
    for finding in findings:
        if finding.severity == "error":
            errors.append(finding)
        yield finding


# Convert -------------------------------------------------------------------------------------------------------------


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
    (held), left out (lost), or means something else there, or is refused there (changed). What breaks a rule of the
    document's own dialect (invalid) is converted as it stands, and the exit code is 1.

    In a folder, every JSON or YAML file that is a catalog document is converted, with its subfolders; others are
    reported as skipped. A file named *.xreg.json, *.xreg.yaml or *.xreg.yml has to be a catalog document.
    """
    from signalbook.dialects import convert as dialects
    from signalbook.sources.lint import broken

    found = [one for one in read_every(location) if output is None or output not in Path(one[0].source).parents]
    if detect:
        recognised = [_print_dialect(document, as_json) or not meant for document, meant in found]
        return Exit.OK if all(recognised) else Exit.REFUSED
    target = _find_dialect(wanted, "--to", WRITTEN)
    given = _find_dialect(source, "--from", tuple(DIALECTS)) if source else None
    chosen, skipped = _choose_documents(location, found, given)
    for name, why in skipped:
        _report_note(name, Problem("", "skipped", why), as_json)
    if not chosen:
        raise UsageError(f"no catalog document was found in '{location}'; name the file to convert")
    documents = [document for document, _ in chosen]
    if output is None and len(documents) > 1:
        raise UsageError(f"'{location}' holds {len(documents)} documents; write them into files with --output FOLDER")
    files = _output_files(location, output, [document.source for document in documents], force=force)
    results = [dialects.convert(document.value, target, dialect) for document, dialect in chosen]
    counted: set[str] = set()
    for document, result, file in zip(documents, results, files, strict=True):
        _write_document(result.content, file)
        dialect = result.source.dialect
        told = bool(result.problems) and dialect.spec is None  # of what its own text forbids, that is said
        for note in (*result.problems, *(() if told else broken(document, dialect)), *result.notes):
            counted.add(note.code)
            _report_note(document.source, note, as_json)
    refused = {"invalid", "lost", "changed"} if strict else {"invalid"}
    return Exit.REFUSED if counted & refused else Exit.OK


def _find_dialect(name: str | None, option: str, known: tuple[str, ...]) -> Dialect:
    if name is None:
        raise UsageError(f"{option} is missing; name one of {', '.join(known)}")
    if name.lower() not in known:
        raise UsageError(f"{option} '{name}' is not one of {', '.join(known)}")
    return DIALECTS[name.lower()]


def _choose_documents(
    location: str, found: list[tuple[Raw | UnreadableDocument, bool]], given: Dialect | None
) -> tuple[list[tuple[Raw, Dialect | Detection]], list[tuple[str, str]]]:
    """The documents to convert with their dialects, and the files of a folder that are none, each with the reason."""
    from signalbook.dialects.convert import ForeignDocument

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


def _print_dialect(document: Raw | UnreadableDocument, as_json: bool) -> bool:
    """Say which dialect a document is in; False where it is in none."""
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


def _output_files(location: str, folder: Path | None, sources: list[str], *, force: bool) -> list[Path | None]:
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


def _write_document(content: Any, file: Path | None) -> None:
    if file is None:
        print_json(content)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _report_note(source: str, note: Problem, as_json: bool) -> None:
    if as_json:
        facts = {"source": source, "path": note.path, "code": note.code, "message": note.message}
        say(orjson.dumps(facts).decode())
    else:
        place = "" if note.code == "skipped" else f"{note.path or '/'} "
        say(f"{source}: {note.code}: {place}{note.message}")
