import contextlib
import logging
import os
import signal
from collections.abc import Iterator

import click
import pytest

from signalbook.cli.land import stoppable


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Who is stopped logs nothing any more; the tests after it do."""
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGTERM, 143, "stopped by SIGTERM"), (signal.SIGINT, 130, "stopped by Ctrl+C")],
)
def test_a_signal_ends_the_command(
    number: signal.Signals, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told in one line, no handler of failures on the way takes it, and who waited for signals waits again."""
    before = signal.getsignal(number)
    with pytest.raises(click.exceptions.Exit) as ended, stoppable(), contextlib.suppress(Exception):
        os.kill(os.getpid(), number)
    assert (code, before) == (ended.value.exit_code, signal.getsignal(number))
    said = capsys.readouterr().err
    assert (words, 1) == (said.partition(";")[0], said.count("\n"))
