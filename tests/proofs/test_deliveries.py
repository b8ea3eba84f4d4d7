"""A sink that is killed and started again under write load misses nothing; nor does one whose server is killed."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import httpx
import pytest

from scripts.crash import Server
from tests.patience import LONG
from tests.server.sink import Sink


def deliver(folder: Path, writes: int, server_kills: int) -> None:
    """Write so often while the sink goes down and up, and compare what it got with the feed."""
    chance = random.Random(11)
    store = str(folder / "signalbook.db")
    options = ("--allow-sink", "127.0.0.0/8")
    server = Server(store, folder, model="builtin", options=options)
    sink = Sink().start()
    address = f"http://127.0.0.1:{server.port}"
    httpx.post(f"{address}/subscriptions", json={"protocol": "HTTP", "sink": sink.url}, timeout=LONG).raise_for_status()
    done = threading.Event()

    def shake() -> None:
        while not done.is_set():
            time.sleep(chance.uniform(0.1, 0.6))
            sink.stop()
            time.sleep(chance.uniform(0.05, 0.4))
            sink.start()

    shaker = threading.Thread(target=shake)
    shaker.start()
    kills = sorted(chance.sample(range(writes), server_kills))
    with httpx.Client(timeout=LONG) as client:
        for number in range(writes):
            if kills and number == kills[0]:
                kills.pop(0)
                server.kill()
                server = Server(store, folder, model="builtin", options=options)
                address = f"http://127.0.0.1:{server.port}"
            path = f"{address}/messagegroups/g{number % 7}/messages/m{number % 50}"
            client.put(path, json={"name": f"n{number}"}).raise_for_status()
        done.set()
        shaker.join()
        expected: list[str] = []
        cursor = "0"
        while page := client.get(f"{address}/changes?since={cursor}&limit=1000").json():
            expected += [event["id"] for event in page]
            cursor = page[-1]["id"]
    try:
        assert sink.wait(lambda: len(sink.ids()) >= len(expected)), len(sink.ids())
        assert expected == sink.ids()
    finally:
        server.kill()
        sink.stop()


def test_a_sink_killed_under_writes(tmp_path: Path) -> None:
    """150 writes, the sink down again and again, the server killed once: every event arrives, first in its order."""
    deliver(tmp_path, 150, 1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_sink_killed_under_five_thousand_writes(tmp_path: Path) -> None:
    """The same with 5,000 writes."""
    deliver(tmp_path, 5000, 5)
