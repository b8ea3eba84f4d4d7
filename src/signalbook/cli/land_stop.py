"""How a command on Spark is stopped: Ctrl+C, or the signal by which supervisors end a process.

Rule: either is told in one sentence. Spark's own handler asks Java to stop in the middle of a call to Java, which ends
in pages of complaints; what is left behind by a command that just ends, the next run of it removes.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from typing import Any

import click

from signalbook.cli.output import say

__all__ = ["stoppable"]

_STOPPED = "stopped by {}; what was not committed is in no table, and the same command goes on from here"


class _Stopped(KeyboardInterrupt):
    """The signal that came; no `except Exception` on the way may take it for a failure."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal end the block, and the command, with the exit code that shells give it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _Stopped as stopped:
        number = signal.Signals(stopped.args[0])
        say(_STOPPED.format("Ctrl+C" if number == signal.SIGINT else number.name))
        raise click.exceptions.Exit(128 + number) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _stop(number: int, frame: Any) -> None:
    # From here on Py4J has only to tell that a call of its was not finished.
    logging.disable()
    raise _Stopped(number)
