"""From the queue of a broker to a spool.

Rule 1: messages are taken, written, synced, and only then acknowledged; a killed spooler gets again what it had not
acknowledged, so nothing is lost, and what it had written already is there twice.
Rule 2: the first connection must come about; one that breaks later is made again, for as long as it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.queues import Connection, Lost, Queue, connect
from signalbook.pipeline.spool import Spool

__all__ = ["spool"]

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEP_SECONDS = 0.2


def spool(
    source: Queue,
    target: Spool,
    *,
    idle: float | None = None,
    count: int | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> int:
    """Spool until stopped, or until nothing came for `idle` seconds, or `count` messages came; how many came.

    `notice` is told when the broker is lost, and when it is there again.
    """
    taken, last = 0, time.monotonic()

    def enough() -> bool:
        return (idle is not None and time.monotonic() - last >= idle) or (count is not None and taken >= count)

    connection: Connection | None = connect(source)
    try:
        while connection is not None and not enough():
            try:
                messages = connection.take()
                if messages:
                    target.append(messages)
                    taken, last = taken + len(messages), time.monotonic()
                    connection.acknowledge()
                else:
                    target.roll_if_due()
            except Lost as lost:
                broken, connection = connection, None  # closed once, whoever stops us while we wait
                broken.close()
                notice(f"{source.address} is lost: {lost}")
                connection = _again(source, target, enough, notice)
    finally:
        if connection is not None:
            connection.close()
    return taken


def _again(
    source: Queue, target: Spool, enough: Callable[[], bool], notice: Callable[[str], None]
) -> Connection | None:
    """A new connection after however many tries; none where it is enough before."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        until = time.monotonic() + pause
        while time.monotonic() < until:
            if enough():
                return None
            target.roll_if_due()
            time.sleep(_STEP_SECONDS)
        try:
            connection = connect(source)
        except PipelineError as error:
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            notice(f"{error}; next try in {pause:g} s")
        else:
            notice(f"{source.address} is there again")
            return connection
