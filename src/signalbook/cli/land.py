"""The commands land and redrive: messages to tables, on Spark.

Rule 1: with --json the last line of standard output is the result; all that is said on the way goes to standard error.
Rule 2: the exit code says whether the landing was done, not whether all messages were good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signalbook.cli.catalog import on_documents
from signalbook.cli.land_stop import stoppable
from signalbook.cli.output import print_json, say
from signalbook.errors import UsageError

if TYPE_CHECKING:
    from signalbook.pipeline.book import Book
    from signalbook.pipeline.land import Result
    from signalbook.pipeline.session import LocalSettings
    from signalbook.sources import Contents

__all__ = ["land", "redrive"]

Command = TypeVar("Command", bound=Callable[..., Any])

_WITHIN = click.option(
    "--within",
    metavar="XID",
    multiple=True,
    help="Look only among the messages of this group or endpoint; may be repeated.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
_SPARK = (
    click.option(
        "--master",
        metavar="URL",
        default="local[*]",
        show_default=True,
        envvar="SIGNALBOOK_SPARK_MASTER",
        show_envvar=True,
        help="Where Spark runs: this machine, or spark://HOST:PORT; under spark-submit it is as that says.",
    ),
    click.option("--memory", default="1g", show_default=True, metavar="SIZE", help="The memory of Spark's driver."),
    click.option("--conf", metavar="NAME=VALUE", multiple=True, help="A setting of Spark's; may be repeated."),
)


def _on_spark(command: Command) -> Command:
    decorated: Any = command
    for option in reversed(_SPARK):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


@click.command(
    short_help="Land messages in typed tables, on Spark.",
    epilog="Example: signalbook land --catalog samples --from events:incoming --to lake",
)
@click.option(
    "--from",
    "source",
    metavar="SOURCE",
    required=True,
    help="events:PATH, messages:PATH, spool:PATH, parquet:PATH or kafka:HOST:PORT/TOPICS.",
)
@click.option("--to", "lake", metavar="LAKE", required=True, help="The lake: a folder, or s3://, gs://, abfss://.")
@_WITHIN
@click.option("--stream", is_flag=True, help="Go on as messages come, until stopped.")
@click.option("--once", is_flag=True, help="Take what is there as a stream would, and end.")
@click.option("--again", is_flag=True, help="Land files that were landed before once more.")
@click.option("--compact", is_flag=True, help="Join small files of the tables at the end.")
@_JSON
@_on_spark
@on_documents
def land(
    read: Callable[[], Contents],
    source: str,
    lake: str,
    within: tuple[str, ...],
    stream: bool,
    once: bool,
    again: bool,
    compact: bool,
    as_json: bool,
    master: str,
    memory: str,
    conf: tuple[str, ...],
) -> None:
    """Judge every message by the catalog and land it in its message's table, or among the dead letters.

    A lake is a folder of Delta tables: a schema for each message group, a table for each message, and
    signalbook.dead_letters. Every message arrives in one of them exactly once, whatever is killed on the way: run the
    same command again and it goes on. Files that were landed are not landed again.
    """
    from rich.console import Console

    from signalbook.pipeline.inputs import look, parse_source
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.land_files import land_files
    from signalbook.pipeline.probe import probe
    from signalbook.pipeline.progress import shown
    from signalbook.pipeline.session import open_session
    from signalbook.pipeline.stream import StreamOptions, land_stream
    from signalbook.pipeline.upkeep import compact_tables

    found = parse_source(source)
    if stream and once:
        raise UsageError("--stream goes on until stopped and --once ends by itself; give one of them")
    if (stream or once) and again:
        raise UsageError("--again is for files that are landed once; a stream knows where it is")
    books = _Books(read)
    # What is asked wrongly is said before Spark is started, which takes long.
    books().catalog().scope(within)
    settings = _settings(master, memory, conf, found.scheme)
    hidden = look(found)[1] if found.scheme != "kafka" else 0
    there = Lake.open(lake)
    spark = open_session(settings)
    with stoppable(), shown(spark, Console(stderr=True)):
        probe(spark, there)
        if stream or once or found.scheme == "kafka":
            options = StreamOptions(once=not stream)
            result = land_stream(spark, books, found, there, within=within, options=options, say=say)
        else:
            result = land_files(spark, books(), found, there, within=within, again=again, say=say)
    if compact:
        compact_tables(there, say)
    if hidden:
        say(f"left out: {hidden:,} file(s) whose names, or whose folders' names, begin with . or _")
    _print(result, as_json)


@click.command(
    short_help="Judge dead letters again, by a newer catalog.",
    epilog="Example: signalbook redrive --catalog samples --lake lake",
)
@click.option("--lake", metavar="LAKE", required=True, help="The lake whose dead letters are judged again.")
@_WITHIN
@_JSON
@_on_spark
@on_documents
def redrive(
    read: Callable[[], Contents],
    lake: str,
    within: tuple[str, ...],
    as_json: bool,
    master: str,
    memory: str,
    conf: tuple[str, ...],
) -> None:
    """Judge the dead letters of a lake by the catalog as it is now: what passes lands, the rest stays."""
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.probe import probe
    from signalbook.pipeline.redrive import redrive as judge_again
    from signalbook.pipeline.session import open_session

    books = _Books(read)
    there = Lake.open(lake, create=False)
    book = books()
    book.catalog().scope(within)
    spark = open_session(_settings(master, memory, conf))
    with stoppable():
        probe(spark, there)
        result = judge_again(spark, book, there, within=within, say=say)
    _print(result, as_json)


class _Books:
    """The catalog as it is now, made anew only where its documents are others."""

    def __init__(self, read: Callable[[], Contents]) -> None:
        self._read = read
        self._known: tuple[Contents, Book] | None = None

    def __call__(self) -> Book:
        from signalbook.pipeline.book import Book

        contents = self._read()
        if self._known is None or self._known[0] is not contents:
            self._known = (contents, Book.of_contents(contents))
        return self._known[1]


def _settings(master: str, memory: str, conf: tuple[str, ...], scheme: str = "") -> LocalSettings:
    from signalbook.pipeline.session import LocalSettings, kafka_packages

    more = {}
    for text in conf:
        name, mark, value = text.partition("=")
        if not mark:
            raise UsageError(f"--conf takes NAME=VALUE, not '{text}'")
        more[name] = value
    if scheme == "kafka" and not {"spark.jars", "spark.jars.packages"} & more.keys():
        more["spark.jars.packages"] = kafka_packages()
    return LocalSettings(master, memory, more)


def _print(result: Result, as_json: bool) -> None:
    if as_json:
        print_json(result.to_json(), compact=True)
        return
    for xid, count in sorted(result.messages.items(), key=lambda item: -item[1]):
        click.echo(f"{count:>12,}  {xid}")
    outcomes = ", ".join(f"{count:,} {name}" for name, count in result.outcomes.items())
    if result.unchecked:
        click.echo(f"{result.unchecked:>12,}  of the landed have a payload that no schema was applied to")
    click.echo(f"{result.input:,} arrived = {result.landed:,} landed + {result.dead:,} dead ({outcomes or 'none'})")
