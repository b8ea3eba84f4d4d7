"""The command load: catalog documents into a store or a server.

Rule: a request is all or nothing, so what a load that stops half way has written is whole parts, and running it again
is safe: it writes the same entities over. The documents of one load may refer to each other in any order. A document
that breaks the rules of its own dialect is refused before anything is written. Versions that did not stay, because
their type keeps only so many, are told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click

from signalbook.cli import options
from signalbook.cli.failures import Exit
from signalbook.cli.output import print_json, say
from signalbook.cli.target import Target
from signalbook.errors import RegistryError
from signalbook.sources import Part
from signalbook.sources.dialects import read_raw
from signalbook.sources.loading import Loadable, Loading, loadable
from signalbook.sources.parts import MAX_ENTRIES

__all__ = ["load"]

NAMED = 3  # so many of the versions that were not kept are named


@dataclass(slots=True)
class Tally:
    """What a load has written."""

    documents: int = 0
    groups: int = 0
    resources: int = 0
    requests: int = 0


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
    help="At most so many entries a request, unless they refer to each other; 0 writes each document in one.",
)
@click.option("--with-model", is_flag=True, help="Take over a document's model source and capabilities too.")
@click.option("--with-metadata", is_flag=True, help="Take over the registry's own name, description and labels too.")
@click.option("--group", metavar="ID", default="", help="The group for a document that is one definition by itself.")
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
    quiet: bool,
    as_json: bool,
) -> int:
    """Write the catalog documents in a file, a folder or standard input into a registry.

    In a folder that has files named *.xreg.json, *.xreg.yaml or *.xreg.yml only these are read, else every JSON and
    YAML file. Entities that are there already are replaced; others stay. Documents of older dialects are read too, as
    `signalbook convert` would; those that break the rules of their dialect are refused.
    """
    tally = Tally()
    documents: list[Loadable] = []
    told: set[str] = set()
    for raw in read_raw(location):
        documents.append(loadable(raw, group))
        tally.documents += 1
        for note in documents[-1].notes:
            told.add(note.code)
            say(f"{raw.source}: {note.code}: {note.path or '/'} {note.message}")
    if "invalid" in told:
        say("signalbook: nothing was loaded; correct what is invalid")
        return Exit.REFUSED
    with _progress(_resources(documents), visible=not quiet) as advance:

        def written(part: Part) -> None:
            tally.groups += part.groups
            tally.resources += part.resources
            tally.requests += 1
            advance(part.resources)

        loading = Loading(target, chunk=chunk, with_model=with_model, with_metadata=with_metadata, written=written)
        for one in documents:
            with _reporting(one.document.source, tally):
                loading.load(one)
        with _reporting(location, tally):
            loading.finish()
    _tell_unkept(loading)
    if as_json:
        counted = ("documents", "groups", "resources", "requests")
        print_json({name: getattr(tally, name) for name in counted}, compact=True)
    elif not quiet:
        say(f"loaded {tally.groups} groups with {tally.resources} resources from {tally.documents} document(s)")
    return Exit.OK


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
    say(f"signalbook: {count} version(s) were not kept, for their type keeps only so many: {', '.join(named)}{more}")


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
