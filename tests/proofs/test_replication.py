"""Two peers and a hub on real sockets, written on all sides while processes are killed, end equal."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from scripts.crash import Server
from tests.replication.peers import Json


class Catalog:
    """A served catalog that keeps its address when it is killed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder / name
        self._folder.mkdir()
        self._store = str(self._folder / "signalbook.db")
        self.server = Server(self._store, self._folder, model="builtin")
        self.port = self.server.port
        self.address = f"http://127.0.0.1:{self.port}"

    def restart(self) -> None:
        """Kill it and start it again at the same port."""
        self.server.kill()
        self.server = Server(self._store, self._folder, model="builtin", port=self.port)

    def content(self) -> dict[str, tuple[str, Json]]:
        """Every entity with its owner, without what a copy adds."""
        found = {}
        after = ""
        while True:
            page = httpx.get(f"{self.address}/replicas/entities", params={"after": after}, timeout=60).json()
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
        own = httpx.get(f"{self.address}/replicas", timeout=30).json()["catalog"]
        return {xid: body for xid, (owner, body) in self.content().items() if owner == own}


def follow(source: Catalog, target: Catalog) -> subprocess.Popen[bytes]:
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
    a, b, hub = (Catalog(name, folder) for name in ("a", "b", "hub"))
    # peers both ways, each to the hub, and the hub back to both
    links = [(a, b), (b, a), (a, hub), (b, hub), (hub, a), (hub, b)]
    followers = [follow(*link) for link in links]
    moments = sorted(chance.sample(range(1, writes), kills))
    try:
        with httpx.Client(timeout=60) as client:
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
        until = time.monotonic() + 120
        while not is_settled(a, b, hub) and time.monotonic() < until:
            time.sleep(0.5)
        owned = a.owned() | b.owned() | hub.owned()
        assert len(owned) > 10
        for catalog in (a, b, hub):
            assert owned == {xid: body for xid, (_, body) in catalog.content().items()}, catalog.name
        before = [latest(catalog) for catalog in (a, b, hub)]
        time.sleep(2)
        assert before == [latest(catalog) for catalog in (a, b, hub)], "it has not settled"
    finally:
        for follower in followers:
            follower.kill()
            follower.wait()
        for catalog in (a, b, hub):
            catalog.server.kill()


def latest(catalog: Catalog) -> str:
    """Where a catalog's feed ends."""
    return httpx.get(f"{catalog.address}/changes?since=latest", timeout=30).headers["signalbook-cursor"]


def is_settled(*catalogs: Catalog) -> bool:
    """Whether all hold the same."""
    first, *others = [{xid: body for xid, (_, body) in one.content().items()} for one in catalogs]
    return all(first == other for other in others)


def test_three_catalogs(tmp_path: Path) -> None:
    """150 writes and deletes on all sides with 3 kills end equal, and then rest."""
    replicate(tmp_path, 150, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_catalogs_at_length(tmp_path: Path) -> None:
    """The same with 2,000 writes and 20 kills."""
    replicate(tmp_path, 2000, 20)


def test_a_change_arrives_within_a_second(tmp_path: Path) -> None:
    """`follow` shows a change at the target within a second on loopback, in the middle of ten."""
    a, b = Catalog("a", tmp_path), Catalog("b", tmp_path)
    follower = follow(a, b)
    seconds = []
    try:
        with httpx.Client(timeout=30) as client:
            for number in range(11):
                path = f"/messagegroups/g/messages/m{number}"
                client.put(a.address + path, json={}).raise_for_status()
                began = time.monotonic()
                while client.get(b.address + path).status_code != 200:
                    assert time.monotonic() - began < 30
                    time.sleep(0.01)
                seconds.append(time.monotonic() - began)
    finally:
        follower.kill()
        follower.wait()
        for catalog in (a, b):
            catalog.server.kill()
    assert sorted(seconds[1:])[5] < 1.0, seconds
