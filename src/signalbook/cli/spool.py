"""The command spool: messages of a broker to files, which `signalbook land` reads.

Rule: a message is acknowledged once it is on disk, not before.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import click

from signalbook.cli.output import say

__all__ = ["spool"]


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
@click.option("--roll-seconds", default=10.0, show_default=True, help="How long a file is written before it is named.")
@click.option("--idle", type=float, metavar="SECONDS", help="End when nothing came for so long.")
@click.option("--count", type=int, metavar="N", help="End when so many messages came.")
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
    comes again. MQTT with QoS 0 and NATS without JetStream know no acknowledgement: what comes while the command is not
    there does not arrive. A broker that is lost is tried again until it is there; Ctrl+C and SIGTERM end the command.
    """
    from signalbook.pipeline.queues import parse_queue
    from signalbook.pipeline.spool import Spool
    from signalbook.pipeline.spoolers import spool as take

    queue = parse_queue(source, user, password)
    with Spool(target, roll_seconds=roll_seconds) as files:
        try:
            with _ended_by_sigterm():
                taken = take(queue, files, idle=idle, count=count, notice=say)
        except KeyboardInterrupt:
            say("stopped")
            return
    say(f"{taken:,} message(s) spooled")


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let the signal by which supervisors end a process do what Ctrl+C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
