"""The command load: catalog documents into a store or a server.

Rule: a request is all or nothing, so what a load that stops half way has written is whole parts, and running it again
is safe: it writes what is not there yet. The documents of one load may refer to each other in any order. A document
that breaks the rules of its own dialect is refused before anything is written, unless the configuration of lint says
that this is not an error. Versions that did not stay, because their type limits them, are reported. With --keep-going
a document that is refused leaves nothing behind, and the others are loaded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from signalbook.cli import options
from signalbook.cli.output import Exit, print_json, say, sentence
from signalbook.cli.target import Target
from signalbook.errors import RegistryError, SignalbookError, UsageError
from signalbook.sources import Part
from signalbook.sources.documents import MAX_ENTRIES, Document, Raw, UnreadableDocument, read_each, read_raw
from signalbook.sources.loading import Loadable, Loading, load_good, loadable

__all__ = ["load"]

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
class Tally:
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
        whole = f"{self.groups} groups with {self.resources} resources from {self.documents} document(s)"
        groups, resources = self.groups - self.written_groups, self.resources - self.written_resources
        if not self.documents:
            return "nothing was loaded"
        if not groups and not resources:
            return f"loaded {whole}"
        if not self.written_groups and not self.written_resources:
            return f"no group or resource was written: {whole} are there already, unchanged"
        written = f"{self.written_groups} groups and {self.written_resources} resources written"
        return f"loaded {whole}: {written}, {groups} groups and {resources} resources unchanged"


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
@options.on_target
def load(
    target: Target,
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
    where they do not; others stay. Documents of older dialects are read too, as `signalbook convert` would; those that
    break the rules of their dialect are refused, and so are those of which lint finds that the whole catalog has an
    error, unless a configuration of lint says that this is not one.
    """
    if keep_going and click.get_current_context().get_parameter_source("chunk") is ParameterSource.COMMANDLINE:
        raise UsageError("--keep-going writes each document in one request; leave --chunk out")
    tally = Tally()
    documents, bad = _read(location, group, config, keep_going=keep_going)
    documents = _without_errors(target, documents, bad, config, keep_going=keep_going)
    tally.documents = len(documents)
    if bad and not keep_going:
        say("signalbook: nothing was loaded; correct what is invalid")
        if as_json:
            print_json({**Tally().to_json(), "refused": [one.to_json() for one in bad]}, compact=True)
        return Exit.REFUSED
    with _progress(_resources(documents), visible=not quiet) as advance:

        def written(part: Part, groups: int, resources: int) -> None:
            tally.groups += part.groups
            tally.resources += part.resources
            tally.requests += 1
            tally.written_groups += groups
            tally.written_resources += resources
            advance(part.resources)

        begin = partial(Loading, target, with_model=with_model, with_metadata=with_metadata, written=written)
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
        _tell_unkept(loading)
    if as_json:
        print_json({**tally.to_json(), "refused": [one.to_json() for one in bad]}, compact=True)
    elif not quiet:
        say(str(tally))
    if bad:
        say(f"signalbook: {len({one.source for one in bad})} document(s) were not loaded")
    return Exit.REFUSED if bad else Exit.OK


def _read(location: str, group: str, config: Path | None, *, keep_going: bool) -> tuple[list[Loadable], list[Refused]]:
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
    target: Target, documents: list[Loadable], bad: list[Refused], config: Path | None, *, keep_going: bool
) -> list[Loadable]:
    """The documents without an error that only the whole catalog shows; those that have one are told with `bad`."""
    from signalbook.sources.lint import Config, catalog_errors

    severities = Config.read(config)

    def there() -> list[Document]:
        held = target.export(None)
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
def _reporting(source: str, tally: Tally) -> Iterator[None]:
    """Say how far a load got that is refused."""
    try:
        yield
    except RegistryError:
        say(f"signalbook: {source} stopped after {tally.resources} resources were loaded")
        raise


def _tell_unkept(loading: Loading) -> None:
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
