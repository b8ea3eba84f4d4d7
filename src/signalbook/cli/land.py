"""The commands land and redrive: messages to tables, on Spark.

Rule 1: with --json the last line of standard output is the result; all that is said on the way goes to standard error.
Rule 2: the exit code says whether the landing was done, not whether all messages were good.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signalbook.cli import catalog as catalogs
from signalbook.cli import options
from signalbook.cli.catalog import on_catalog, on_documents
from signalbook.cli.output import print_json, print_words, say
from signalbook.errors import UsageError

if TYPE_CHECKING:
    from signalbook.messages.catalog import Catalog
    from signalbook.pipeline.land import LandingResult
    from signalbook.pipeline.session import LocalSettings
    from signalbook.pipeline.worker import PackedCatalog
    from signalbook.sources import Contents

__all__ = ["ddl", "land", "redrive", "report", "spool", "stoppable"]

# How a command on Spark is stopped: Ctrl+C, or the signal by which supervisors end a process.
#
# Rule: either is reported in one sentence. Spark's own handler asks Java to stop in the middle of a call to Java, which
# ends in pages of complaints; what is left behind by a command that just ends, the next run of it removes.


_STOPPED = "stopped by {}; what was not committed is not in any table; run the same command again to continue"


class _Stopped(KeyboardInterrupt):
    """The signal that came; no `except Exception` on the way may take it for a failure."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal end the block, and the command, with the exit code that shells give it."""
    try:
        with _handling(_stop, signal.SIGINT, signal.SIGTERM):
            yield
    except _Stopped as stopped:
        number = signal.Signals(stopped.args[0])
        say(_STOPPED.format("Ctrl+C" if number == signal.SIGINT else number.name))
        raise click.exceptions.Exit(128 + number) from None


@contextlib.contextmanager
def _handling(handler: Callable[[int, Any], object], *numbers: signal.Signals) -> Iterator[None]:
    """Let signals be handled so within the block; in a thread that signals do not reach, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)


def _stop(number: int, frame: Any) -> None:
    # From here on Py4J would only report that one of its calls was not finished.
    logging.disable()
    raise _Stopped(number)


Command = TypeVar("Command", bound=Callable[..., Any])

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
@catalogs.within
@click.option("--stream", is_flag=True, help="Go on as messages come, until stopped.")
@click.option("--once", is_flag=True, help="Take what is there as a stream would, and end.")
@click.option("--again", is_flag=True, help="Land files that were landed before once more.")
@click.option(
    "--fetch-connector",
    metavar="SHA256",
    default="",
    help="Let Spark fetch its Kafka connector from Maven's repository; the sum is that of the connector's jar.",
)
@click.option("--compact", is_flag=True, help="Join small files of the tables at the end.")
@options.as_json
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
    fetch_connector: str,
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

    from signalbook.pipeline.ddl import compact_tables
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.land_files import land_files
    from signalbook.pipeline.read.inputs import list_with_hidden, parse_source
    from signalbook.pipeline.session import check_executors, open_session, show_progress, with_connector
    from signalbook.pipeline.stream import StreamOptions, land_stream

    found = parse_source(source)
    if stream and once:
        raise UsageError("--stream runs until it is stopped and --once ends by itself; give one of them")
    if (stream or once) and again:
        raise UsageError("--again is for files that are landed once; it cannot be combined with --stream")
    current_catalog = _CurrentCatalog(read)
    # What is asked wrongly is said before Spark is started, which takes long.
    current_catalog().catalog().scope(within)
    settings = _settings(master, memory, conf)
    if found.scheme == "kafka":
        settings = with_connector(settings, fetch_connector)
    elif fetch_connector:
        raise UsageError("--fetch-connector is for a landing from Kafka; leave it out")
    hidden = list_with_hidden(found)[1] if found.scheme != "kafka" else 0
    there = Lake.open(lake)
    spark = open_session(settings)
    with stoppable(), show_progress(spark, Console(stderr=True)):
        check_executors(spark, there)
        if stream or once or found.scheme == "kafka":
            options = StreamOptions(once=not stream)
            result = land_stream(spark, current_catalog, found, there, within=within, options=options, say=say)
        else:
            result = land_files(spark, current_catalog(), found, there, within=within, again=again, say=say)
    if compact:
        compact_tables(there, say)
    if hidden:
        say(f"left out: {hidden:,} file(s) whose names, or whose folders' names, begin with . or _")
    _print(result, as_json)


@click.command(
    short_help="Process dead letters again with a newer catalog.",
    epilog="Example: signalbook redrive --catalog samples --lake lake",
)
@click.option("--lake", metavar="LAKE", required=True, help="The lake whose dead letters are processed again.")
@catalogs.within
@options.as_json
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
    """Match the dead letters of a lake again by the current catalog: what passes lands, the rest stays."""
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.land import redrive as judge_again
    from signalbook.pipeline.session import check_executors, open_session

    current_catalog = _CurrentCatalog(read)
    there = Lake.open(lake, create=False)
    packed = current_catalog()
    packed.catalog().scope(within)
    spark = open_session(_settings(master, memory, conf))
    with stoppable():
        check_executors(spark, there)
        result = judge_again(spark, packed, there, within=within, say=say)
    _print(result, as_json)


class _CurrentCatalog:
    """The catalog as it is now, made anew only where its documents are others."""

    def __init__(self, read: Callable[[], Contents]) -> None:
        self._read = read
        self._known: tuple[Contents, PackedCatalog] | None = None

    def __call__(self) -> PackedCatalog:
        from signalbook.pipeline.worker import PackedCatalog

        contents = self._read()
        if self._known is None or self._known[0] is not contents:
            self._known = (contents, PackedCatalog.of_contents(contents))
        return self._known[1]


def _settings(master: str, memory: str, conf: tuple[str, ...]) -> LocalSettings:
    from signalbook.pipeline.session import LocalSettings

    more = {}
    for text in conf:
        name, mark, value = text.partition("=")
        if not mark:
            raise UsageError(f"--conf takes NAME=VALUE, not '{text}'")
        more[name] = value
    return LocalSettings(master, memory, more)


def _print(result: LandingResult, as_json: bool) -> None:
    if as_json:
        print_json(result.to_json(), compact=True)
        return
    for xid, count in sorted(result.messages.items(), key=lambda item: -item[1]):
        print_words(f"{count:>12,}  {xid}")
    outcomes = ", ".join(f"{count:,} {name}" for name, count in result.outcomes.items())
    if result.unchecked:
        print_words(f"{result.unchecked:>12,}  of the landed have a payload that no schema was applied to")
    print_words(f"{result.input:,} arrived = {result.landed:,} landed + {result.dead:,} dead ({outcomes or 'none'})")


# The commands ddl and report: what a lake would hold, and what happened in one.
#
# Rule: neither starts Spark.


@click.command(
    short_help="Print the tables of a catalog as Spark SQL.",
    epilog="Example: signalbook ddl --catalog samples",
)
@click.option(
    "--within",
    metavar="XID",
    multiple=True,
    help="Only the tables of this group or endpoint; may be repeated.",
)
@click.option("--lake", metavar="LAKE", help="The lake that the tables lie in.")
@on_catalog
def ddl(catalog: Catalog, within: tuple[str, ...], lake: str | None) -> None:
    """Print the statements that make the tables which `signalbook land` fills, before a message has arrived."""
    from signalbook.pipeline.ddl import statements
    from signalbook.pipeline.files import Folder

    for statement in statements(catalog, within, None if lake is None else Folder.at(lake)):
        click.echo(statement + "\n")


@click.command(
    short_help="Show what arrived in a lake, and what became of it.",
    epilog="Example: signalbook report --lake lake --html report.html",
)
@click.option("--lake", metavar="LAKE", required=True, help="The lake.")
@click.option("--run", metavar="RUN", help="Only this run; the report names them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write one self-contained HTML page with charts.",
)
def report(lake: str, run: str | None, as_json: bool, page: Path | None) -> None:
    """Show how many messages arrived, landed and became dead letters, by message, outcome and problem, with samples."""
    from signalbook.pipeline.lake import Lake
    from signalbook.pipeline.report import read_report, render

    found = read_report(Lake.open(lake, create=False), run)
    if page is not None:
        from signalbook.pipeline.report import page as written

        page.write_text(written(found), encoding="utf-8")
        say(f"wrote {page}")
    if as_json:
        print_json(found.to_json())
    elif page is None:
        from rich.console import Console

        Console(highlight=False).print(render(found))


# The command spool: messages of a broker to files, which `signalbook land` reads.
#
# Rule: a message is acknowledged once it is on disk, not before.


@click.command(
    short_help="Write the messages of a broker to files, safely.",
    epilog="Example: signalbook spool --from mqtt:localhost:1883/fleet/# --to incoming",
)
@click.option(
    "--from",
    "source",
    metavar="QUEUE",
    required=True,
    help="mqtt:HOST:PORT/TOPIC, nats:HOST:PORT/SUBJECT or amqp:HOST:PORT/ADDRESS.",
)
@click.option("--to", "target", metavar="PATH", required=True, help="The folder; signalbook land --from spool:PATH.")
@click.option("--user", metavar="NAME", envvar="SIGNALBOOK_SPOOL_USER", show_envvar=True, help="The broker's user.")
@click.option(
    "--password",
    metavar="TEXT",
    envvar="SIGNALBOOK_SPOOL_PASSWORD",
    show_envvar=True,
    help="That user's password; better in the environment than on the command line.",
)
@click.option(
    "--roll-seconds",
    default=10.0,
    show_default=True,
    help="How long a file is written to before it gets its final name.",
)
@click.option("--idle", type=float, metavar="SECONDS", help="Stop when no message has arrived for this long.")
@click.option("--count", type=int, metavar="N", help="Stop after this many messages.")
def spool(
    source: str,
    target: str,
    user: str | None,
    password: str | None,
    roll_seconds: float,
    idle: float | None,
    count: int | None,
) -> None:
    """Append the messages of a broker to files, sync them, and only then acknowledge.

    Nothing that was acknowledged is lost, whenever the command is killed; what it had written and not yet acknowledged
    comes again. MQTT with QoS 0 and NATS without JetStream do not acknowledge: what is sent while the command is not
    running does not arrive. When the connection is lost, the command reconnects; Ctrl+C and SIGTERM end the command.
    """
    from signalbook.pipeline.read.queues import Spool, parse_queue
    from signalbook.pipeline.read.queues import spool as take

    queue = parse_queue(source, user, password)
    with Spool(target, roll_seconds=roll_seconds) as files:
        try:
            # The signal by which supervisors end a process does what Ctrl+C does.
            with _handling(signal.default_int_handler, signal.SIGTERM):
                taken = take(queue, files, idle=idle, count=count, notice=say)
        except KeyboardInterrupt:
            say("stopped")
            return
    say(f"{taken:,} message(s) spooled")
