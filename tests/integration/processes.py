"""Servers that tests start for themselves, and what is done about one that cannot be had."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tests.patience import LONG, until

__all__ = ["free_port", "missing", "serving"]


def free_port() -> int:
    """A port nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    command: Sequence[str], port: int, folder: Path, *, seconds: float = LONG, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server while the block lasts, which begins once it answers; what it says is in the folder's `log`."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        up = until(lambda: process.poll() is not None or _answers(port), seconds)
        assert (True, None) == (up, process.poll()), log.read_text(errors="replace")[-3000:]
        yield
    finally:
        process.terminate()
        process.wait(LONG)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def missing(line: str, *, required: bool) -> NoReturn:
    """End the test, with what is missing for `make integration` to say; where it is required, the test fails."""
    if required:
        pytest.fail(line)
    if notes := os.environ.get("SIGNALBOOK_SKIPPED"):
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    pytest.skip(line)
