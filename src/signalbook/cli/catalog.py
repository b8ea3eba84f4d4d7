"""The catalog that a command works by, from wherever --catalog says, and the lines that it reads.

Rule 1: a catalog is a file, a folder, a store or the address of a running registry; several are taken as one.
Rule 2: one JSON document a line comes in and one goes out, written as soon as it is known: a command works in a pipe.
Rule 3: a line is bounded; a longer one is one unreadable line, and the next is read. A byte order mark is not text.
"""

from __future__ import annotations

import codecs
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from signalbook.cli import options
from signalbook.cli.options import read_secret
from signalbook.cli.output import json_line
from signalbook.errors import UsageError

if TYPE_CHECKING:
    from signalbook.messages.catalog import Catalog
    from signalbook.sources import Contents, Reach

__all__ = [
    "FILE", "LARGEST_LINE", "Broken", "Line", "as_json_lines", "lines", "numbered", "on_catalog", "on_documents",
    "print_line", "with_numbers", "within",
]  # fmt: skip

Command = TypeVar("Command", bound=Callable[..., Any])
LARGEST_LINE = 64 * 1024 * 1024

FILE = click.argument("file", metavar="[FILE]", type=click.File("rb"), default="-")
as_json_lines = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
with_numbers = click.option(
    "--number", is_flag=True, help='With --json: begin each object with "line", the number of the line it answers.'
)

within = click.option(
    "--within",
    metavar="XID",
    multiple=True,
    help="Look only among the messages of this group or endpoint; may be repeated.",
)

_OPTIONS = (
    click.option(
        "--catalog",
        "locations",
        metavar="FILE|FOLDER|STORE|URL",
        multiple=True,
        required=True,
        envvar="SIGNALBOOK_CATALOG",
        show_envvar=True,
        help="The catalog: documents, a store, or a running registry; may be repeated.",
    ),
    click.option(
        "--resolve",
        "hosts",
        metavar="HOST[:PORT]",
        multiple=True,
        help="Fetch base messages from this host, and from this port if it is not the default; may be "
        "repeated. Without it none are fetched.",
    ),
    options.schemas,
    options.token,
    options.token_file,
    options.ca,
)


def on_catalog(command: Command) -> Command:
    """Give a command the options that name a catalog, and the `Catalog` as its first argument."""
    return _with_catalog_options(command, _read_catalog)


def on_documents(command: Command) -> Command:
    """Give a command the options that name a catalog, and what reads its documents as they are by then."""
    return _with_catalog_options(command, _document_reader)


def _with_catalog_options(command: Command, read: Callable[[tuple[str, ...], Reach], Any]) -> Command:
    @functools.wraps(command)
    def run(
        *args: Any,
        locations: tuple[str, ...],
        hosts: tuple[str, ...],
        schemas: str,
        token: str | None,
        token_file: Path | None,
        ca: Path | None,
        **kw: Any,
    ) -> Any:
        from signalbook.sources import Reach

        reach = Reach(
            token=read_secret("--token", token, token_file),
            ca=ca,
            resolve=frozenset(host.lower() for host in hosts),
            schemas_required=schemas == "required",
        )
        return command(read(locations, reach), *args, **kw)

    decorated: Any = run
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _document_reader(locations: tuple[str, ...], reach: Reach) -> Callable[[], Contents]:
    from signalbook.sources import Contents, Document, open_source

    if not _in_store(locations):
        return open_source(*locations, reach=reach).read

    def export() -> Contents:
        from signalbook import Registry

        with Registry.open(locations[0]) as registry:
            document = registry.export()
        return Contents((Document(locations[0], document),), _bases(document, reach), (), reach.schemas_required)

    return export


def _bases(document: dict[str, Any], reach: Reach) -> Mapping[str, Any]:
    """The base messages that a store's content takes from the hosts that --resolve names."""
    from signalbook.sources.catalogs import Fetcher, external_bases

    with closing(Fetcher(reach)) as fetcher:
        return external_bases([document], fetcher, reach.resolve)


def _in_store(locations: tuple[str, ...]) -> bool:
    from signalbook.sources.catalogs import is_store

    found = any(is_store(location) for location in locations)
    if found and len(locations) > 1:
        raise UsageError("a store is a whole catalog; remove the other --catalog options")
    return found


def _read_catalog(locations: tuple[str, ...], reach: Reach) -> Catalog:
    if _in_store(locations):
        from signalbook import Registry
        from signalbook.app import catalog_of
        from signalbook.messages.catalog import Catalog
        from signalbook.messages.schema_library import SchemaPolicy

        with Registry.open(locations[0]) as registry:
            if not reach.resolve and not reach.schemas_required:
                return catalog_of(registry)
            document = registry.export()
        policy = SchemaPolicy(required=reach.schemas_required)
        return Catalog.from_canonical(document, bases=_bases(document, reach), schemas=policy)
    from signalbook.sources import open_source

    with open_source(*locations, reach=reach) as source:
        return source.catalog()


@dataclass(frozen=True, slots=True)
class Line:
    """One line that was read: where it stood, and its text; `whole` is false where it was too long to be kept."""

    number: int
    text: bytes
    whole: bool = True


def lines(file: IO[bytes]) -> Iterator[Line]:
    """Each line that is not empty, as soon as it has come."""
    number = 0
    while text := file.readline(LARGEST_LINE):
        number += 1
        if number == 1:
            text = text.removeprefix(codecs.BOM_UTF8) or b"\n"
        whole = True
        while len(text) == LARGEST_LINE and not text.endswith(b"\n"):
            whole = False
            text = file.readline(LARGEST_LINE)
        if not whole:
            yield Line(number, b"", whole=False)
        elif text.strip():
            yield Line(number, text.strip())


class Broken:
    """The first line that is only the beginning of a document, where there was one: it was written over several."""

    def __init__(self) -> None:
        self._number = 0

    def see(self, line: Line) -> None:
        """Take note of a line that could not be read."""
        from signalbook.jsontext import is_json_text

        opens = line.text[:1] in (b"{", b"[") and line.text[-1:] in (b"{", b"[", b",")
        if not self._number and opens and not is_json_text(line.text):
            self._number = line.number

    def hint(self) -> str:
        """What to do about it, or an empty text."""
        if not self._number:
            return ""
        return f"signalbook: line {self._number} is only the beginning of a document; write each on one line (jq -c .)"


def numbered(document: bytes, line: Line, number: bool) -> bytes:
    """A JSON object that begins with the number of the line it answers, where that was asked for."""
    return b'{"line":%d,%b' % (line.number, document[1:]) if number else document


def print_line(line: bytes) -> None:
    """One line of JSON, at once."""
    sys.stdout.buffer.write(json_line(line) + b"\n")
    sys.stdout.buffer.flush()
