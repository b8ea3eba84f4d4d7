"""Waiting for what has to come: what tests have instead of a clock.

Rule: no test measures time that a busy machine could take. It waits for an event, looks at the order of events, or
bounds processor time (`tests.schemas.bounds`). `LONG` ends what hangs; nothing that works comes near it.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable

import httpx

__all__ = ["LONG", "answers", "in_flight", "until"]

LONG = 250.0


def until(ready: Callable[[], object], seconds: float = LONG) -> bool:
    """Wait until something is true; tell whether it became so."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return bool(ready())
        time.sleep(0.01)
    return True


def answers(port: int) -> bool:
    """Whether something listens at a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(LONG)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def in_flight(address: str) -> int:
    """How many requests a server has begun and not answered, besides the one that asks."""
    text = httpx.get(f"{address}/metrics", timeout=LONG).text
    found = re.search(r"^signalbook_requests_in_flight (\d+)$", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) - 1
