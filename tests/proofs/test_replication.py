"""Two peers and a hub on real sockets, written on all sides while processes are killed, end equal."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from scripts.crash import Server
from tests.patience import LONG, until
from tests.replication.peers import Json


class Catalog:
    """A served catalog that keeps its address when it is killed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder / name
        self._folder.mkdir()
        self._store = str(self._folder / "signalbook.db")
        self.port = 0
        self.server = self._start()
        self.port = self.server.port
        self.address = f"http://127.0.0.1:{self.port}"

    def restart(self) -> None:
        """Kill it and start it again at the same port."""
        self.server.kill()
        self.server = self._start()

    def _start(self) -> Server:
        options = ("--allow-sink", "127.0.0.1")
        return Server(self._store, self._folder, model="builtin", port=self.port, options=options)

    def content(self) -> dict[str, tuple[str, Json]]:
        """Every entity with its owner, without what a copy adds."""
        found = {}
        after = ""
        while True:
            page = httpx.get(f"{self.address}/replicas/entities", params={"after": after}, timeout=LONG).json()
            for entry in page["entries"]:
                for version in entry["body"].get("versions", {}).values():
                    version.pop("authority", None)
                    version.pop("modifiedat", None)
                found[entry["xid"]] = (entry["origin"]["catalog"], entry["body"])
            after = page["next"]
            if not after:
                return found

    def owned(self) -> dict[str, Json]:
        """What this catalog has authority over."""
        own = self.state()["catalog"]
        return {xid: body for xid, (owner, body) in self.content().items() if owner == own}

    def state(self, link: str = "") -> Json:
        """Its id, where its feed ends, and how far a replication into it has come."""
        found: Json = httpx.get(f"{self.address}/replicas", params={"link": link} if link else {}, timeout=LONG).json()
        return found


def start(folder: Path, *names: str) -> list[Catalog]:
    """Start catalogs side by side."""
    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(lambda name: Catalog(name, folder), names))


def follow(source: Catalog, target: Catalog, *options: str) -> subprocess.Popen[bytes]:
    """Start a replication that follows."""
    command = [
        sys.executable,
        "-m",
        "signalbook",
        "replicate",
        "follow",
        "--from",
        source.address,
        "--to",
        target.address,
        *options,
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(chance: random.Random, client: httpx.Client, catalog: Catalog, number: int) -> None:
    """One random write or delete of what a catalog owns; a catalog that is being started is asked again."""
    group = f"{catalog.address}/messagegroups/{catalog.name}{chance.randrange(4)}"
    message = f"{group}/messages/m{chance.randrange(12)}"
    kind = chance.choice(["put", "put", "put", "patch", "delete", "delete", "group", "schema"])
    schema = f"{catalog.address}/schemagroups/{catalog.name}/schemas/s{chance.randrange(5)}$details"
    wish: dict[str, tuple[str, str, Any]] = {
        "put": ("PUT", message, {"name": f"n{number}", "labels": {"turn": str(number)}}),
        "patch": ("PATCH", message, {"description": f"d{number}"}),
        "delete": ("DELETE", message, None),
        "group": ("DELETE", group, None) if chance.random() < 0.3 else ("PATCH", group, {"name": f"g{number}"}),
        "schema": ("POST", schema, {"format": "JsonSchema/draft-07", "schema": {"title": str(number)}}),
    }
    method, url, body = wish[kind]
    answer = client.request(method, url, json=body)
    assert answer.status_code < 300 or answer.status_code == 404, answer.text


def replicate(folder: Path, writes: int, kills: int) -> None:
    """Write to two peers and a hub while servers and replications are killed, and compare at the end."""
    chance = random.Random(3)
    a, b, hub = start(folder, "a", "b", "hub")
    # peers both ways, each to the hub, and the hub back to both
    links = [(a, b), (b, a), (a, hub), (b, hub), (hub, a), (hub, b)]
    followers = [follow(*link) for link in links]
    moments = sorted(chance.sample(range(1, writes), kills))
    try:
        with httpx.Client(timeout=LONG) as client:
            for number in range(writes):
                if moments and number == moments[0]:
                    moments.pop(0)
                    if chance.random() < 0.5:
                        chance.choice((a, b, hub)).restart()
                    else:
                        place = chance.randrange(len(links))
                        followers[place].kill()
                        followers[place].wait()
                        followers[place] = follow(*links[place])
                write(chance, client, chance.choice((a, b, hub)), number)
        assert until(lambda: is_settled(links))
        owned = a.owned() | b.owned() | hub.owned()
        assert len(owned) > 10
        for catalog in (a, b, hub):
            assert owned == {xid: body for xid, (_, body) in catalog.content().items()}, catalog.name
        before = [catalog.state() for catalog in (a, b, hub)]
        time.sleep(1)
        assert before == [catalog.state() for catalog in (a, b, hub)], "it has not settled"
    finally:
        for follower in followers:
            follower.kill()
            follower.wait()
        for catalog in (a, b, hub):
            catalog.server.kill()


def is_settled(links: list[tuple[Catalog, Catalog]]) -> bool:
    """Whether every replication has come to the end of its source's feed, and none of them has moved meanwhile."""

    def states() -> list[Json]:
        return [source.state() for source, _ in links]

    before = states()
    reached = [
        target.state(f"{state['catalog']} /")["link"]["cursor"]
        for (_, target), state in zip(links, before, strict=True)
    ]  # fmt: skip
    return reached == [state["cursor"] for state in before] and before == states()


def test_three_catalogs(tmp_path: Path) -> None:
    """150 writes and deletes on all sides with 3 kills end equal, and then rest."""
    replicate(tmp_path, 150, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_catalogs_at_length(tmp_path: Path) -> None:
    """The same with 2,000 writes and 20 kills."""
    replicate(tmp_path, 2000, 20)


@pytest.mark.parametrize("options", [(), ("--listen", "127.0.0.1:0")], ids=["by the feed", "by a subscription"])
def test_a_change_arrives_as_it_happens(options: tuple[str, ...], tmp_path: Path) -> None:
    """`follow` shows each change at the target though it would compare once an hour only, and tidies up."""
    a, b = start(tmp_path, "a", "b")
    follower = follow(a, b, "--every", "3600", *options)
    try:
        with httpx.Client(timeout=LONG) as client:
            for number in range(11):
                path = f"/messagegroups/g/messages/m{number}"
                client.put(a.address + path, json={}).raise_for_status()
                assert until(lambda path=path: client.get(b.address + path).status_code == 200)  # type: ignore[misc]
            subscribed = len(client.get(f"{a.address}/subscriptions").json())
            follower.send_signal(signal.SIGINT)
            follower.wait(LONG)
            left = len(client.get(f"{a.address}/subscriptions").json())
            assert (len(options) // 2, 0) == (subscribed, left)
    finally:
        follower.kill()
        follower.wait()
        for catalog in (a, b):
            catalog.server.kill()
