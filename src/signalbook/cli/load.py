"""The command load: catalog documents into a store or a server.

Rule: a request is all or nothing, so what a load that stops half way has written is whole parts, and running it again
is safe: it writes the same entities over. The documents of one load may refer to each other in any order. A document
that breaks the rules of its own dialect is refused before anything is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from signalbook.cli import options
from signalbook.cli.failures import Exit
from signalbook.cli.output import print_json, say
from signalbook.cli.target import Target
from signalbook.document.dialects import check, detect, relabelled
from signalbook.document.dialects.history import assigned
from signalbook.errors import Problem, RegistryError
from signalbook.sources import Document, Part, parts
from signalbook.sources.dialects import Raw, in_canonical, read_raw
from signalbook.sources.history import with_history
from signalbook.sources.parts import MAX_BYTES, MAX_ENTRIES, metadata
from signalbook.sources.writing import Writing

__all__ = ["load"]


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
    documents: list[Document] = []
    told: set[str] = set()
    for raw in read_raw(location):
        document, notes = _read(raw, group)
        documents.append(document)
        tally.documents += 1
        for note in notes:
            told.add(note.code)
            say(f"{raw.source}: {note.code}: {note.path or '/'} {note.message}")
    if "invalid" in told:
        say("signalbook: nothing was loaded; correct what is invalid")
        return Exit.REFUSED
    with _progress(_resources(documents), visible=not quiet) as advance:
        writing = _writing(target, tally, advance, MAX_BYTES if chunk else 0)
        for document in documents:
            with _reporting(document.source, tally):
                _prepare(target, document, with_model=with_model, with_metadata=with_metadata)
                for part in _cut(target, document, chunk):
                    writing.write(part)
        with _reporting(location, tally):
            writing.finish()
    if as_json:
        counted = ("documents", "groups", "resources", "requests")
        print_json({name: getattr(tally, name) for name in counted}, compact=True)
    elif not quiet:
        say(f"loaded {tally.groups} groups with {tally.resources} resources from {tally.documents} document(s)")
    return Exit.OK


def _read(raw: Raw, group: str) -> tuple[Document, tuple[Problem, ...]]:
    """A document of any dialect as a registry takes it, and what there is to say about it."""
    found = detect(raw.value)
    counted = found.dialect.form == "catalog"
    documents, notes = in_canonical(raw, found.dialect, group=group)
    wrong = check(raw.value, found.dialect)
    anew = assigned(raw.value) if counted else ()
    return with_history(documents, anew=counted), (*wrong, *relabelled(found), *notes, *anew)


def _writing(target: Target, tally: Tally, advance: Callable[[int], None], max_bytes: int) -> Writing:
    """What writes parts into the registry and counts them."""

    def send(part: Part) -> None:
        # An export carries the epochs of the registry it came from; here they mean nothing.
        target.send("POST", f"{part.path}?ignore=epoch", part.body)
        tally.groups += part.groups
        tally.resources += part.resources
        tally.requests += 1
        advance(part.resources)

    return Writing(send, max_bytes)


@contextlib.contextmanager
def _reporting(source: str, tally: Tally) -> Iterator[None]:
    """Say how far a load got that is refused."""
    try:
        yield
    except RegistryError:
        say(f"signalbook: {source} stopped after {tally.resources} resources were loaded")
        raise


def _prepare(target: Target, document: Document, *, with_model: bool, with_metadata: bool) -> None:
    if with_model:
        _define(target, document.content)
    if with_metadata and (attributes := metadata(document.content)):
        target.send("PATCH", "/", attributes)


def _cut(target: Target, document: Document, chunk: int) -> Iterator[Part]:
    bound = MAX_BYTES if chunk else 0
    return parts(document.content, target.get("/model"), source=document.source, max_entries=chunk, max_bytes=bound)


def _define(target: Target, content: dict[str, Any]) -> None:
    source = content.get("modelsource") or content.get("model")
    if source:
        target.send("PUT", "/modelsource", source)
    if content.get("capabilities"):
        target.send("PATCH", "/capabilities", content["capabilities"])


def _resources(documents: list[Document]) -> int:
    """About how many resources there are: the entries two levels below each group collection."""
    return sum(
        len(resources)
        for document in documents
        for groups in document.content.values()
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
