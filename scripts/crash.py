"""Kill a server under write load, again and again, and compare what is left with what it had acknowledged.

    python scripts/crash.py --kills 50 [--store signalbook.db | postgresql://…] [--workers 2] [--seed 1]

Rule 1: every writer has entities of its own, so what it was told is what must be there; only the one request that was
under way at the kill may have happened or not, and then wholly.
Rule 2: whatever a reader saw once is never older later: epochs only grow.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Versions = dict[str, str]  # versionid -> the token that was written
State = dict[str, Versions]  # fileid -> its versions

MODEL = {
    "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "hasdocument": False}}}},
}
FILES = [f"f{number}" for number in range(6)]


class Wrong(Exception):
    """What was acknowledged is not what is there."""


class Server:
    """`signalbook serve` in a process group of its own."""

    def __init__(
        self, store: str, folder: Path, workers: int = 1, command: Sequence[str] = ("-m", "signalbook"),
        model: str = "", options: Sequence[str] = (), port: int = 0,
    ) -> None:  # fmt: skip
        self.port = port or _free_port()
        if not model:
            model = str(folder / "model.json")
            Path(model).write_text(json.dumps(MODEL))
        self.log = folder / "server.log"
        options = [
            "serve", "--port", str(self.port), "--store", store, "--model", model, "--workers", str(workers), *options,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, *options, "--no-log", "--specversion", "1.0-rc4"],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Wrong(f"the server does not start any more:\n{self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            return self.get("/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> tuple[int, Any]:
        """Read something."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=250)
        try:
            return send(connection, "GET", path)
        finally:
            connection.close()

    def kill(self) -> None:
        """End it with all its processes, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def send(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """One request on an open connection."""
    connection.request(method, path, None if body is None else json.dumps(body))
    response = connection.getresponse()
    text = response.read()
    return response.status, json.loads(text) if text else None


@dataclass
class Writer:
    """One client with a group of its own: what it was told, and what it had asked for when the server went away."""

    name: str
    chance: random.Random
    state: State = field(default_factory=dict)
    asked: State | None = None  # what there is if the last request, which nobody answered, went through
    epochs: dict[str, int] = field(default_factory=dict)  # by path, the highest that an answer showed
    tokens: list[str] = field(default_factory=list)
    acknowledged: int = 0
    problem: str = ""

    def token(self) -> str:
        """A label that no other write has."""
        self.tokens.append(f"{self.name}-{len(self.tokens)}")
        return self.tokens[-1]

    def choose(self) -> tuple[str, str, Any, State]:
        """The next request, and the state it leads to."""
        base, state, chance = f"/dirs/{self.name}/files", self.state, self.chance
        rid, token = chance.choice(FILES), self.token()
        body: dict[str, Any] = {"name": token, "labels": {"batch": token}}
        kind = chance.choice(["write", "write", "several", "several", "version", "delete"])
        if kind == "several":
            chosen = chance.sample(FILES, 3)
            after = {**state, **{one: _written(state.get(one), token) for one in chosen}}
            return "POST", base, dict.fromkeys(chosen, body), after
        if kind == "delete" and rid in state:
            return "DELETE", f"{base}/{rid}", None, {one: state[one] for one in state if one != rid}
        if kind == "version" and rid in state:
            vid = f"v{len(self.tokens)}"
            after = {**state, rid: {**state[rid], vid: token}}
            return "PUT", f"{base}/{rid}/versions/{vid}", {**body, "createdat": _later(len(self.tokens))}, after
        known = self.epochs.get(f"{base}/{rid}/versions/{_default(state[rid])}") if rid in state else None
        if known is not None:
            body["epoch"] = known
        return "PUT", f"{base}/{rid}", body, {**state, rid: _written(state.get(rid), token)}

    def run(self, port: int, stop: threading.Event) -> None:
        """Write until the server is gone."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=250)
        try:
            while not stop.is_set():
                method, path, body, self.asked = self.choose()
                status, answer = send(connection, method, path, body)
                if status >= 300:
                    self.problem = f"{method} {path} {body}: {status} {answer}"
                    return
                self.told(path, answer)
                self.state, self.asked = self.asked, None
                self.acknowledged += 1
                for seen in ("/", f"/dirs/{self.name}"):
                    if self.chance.random() < 0.1:
                        status, answer = send(connection, "GET", seen)
                        if status == 200:
                            self.told(seen, answer)
        except (OSError, http.client.HTTPException, ValueError):
            pass  # killed; a half answer is no answer
        finally:
            connection.close()

    def told(self, path: str, answer: Any) -> None:
        """Remember the epochs in an answer."""
        if answer is None:  # what is deleted begins anew
            self.epochs = {known: epoch for known, epoch in self.epochs.items() if not known.startswith(path + "/")}
            return
        for entity in [answer] if "epoch" in answer else answer.values():
            where = entity["xid"]
            if "/files/" in where and "/versions/" not in where:
                where += f"/versions/{entity['versionid']}"
            self.epochs[where] = max(entity["epoch"], self.epochs.get(where, 0))


def _written(before: Versions | None, token: str) -> Versions:
    return {"1": token} if before is None else {**before, _default(before): token}


def _default(versions: Versions) -> str:
    """The newest version: each one is created later than those before it."""
    return max(versions, key=lambda vid: int(vid.removeprefix("v")))


def _later(number: int) -> str:
    return f"2100-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"


def check(server: Server, writers: Sequence[Writer]) -> int:
    """Compare what is there with what was acknowledged; returns how many requests were in doubt and went through."""
    _, whole = server.get("/?inline=*")
    if whole["dirscount"] != len(whole["dirs"]):
        raise Wrong(f"dirscount is {whole['dirscount']}, but there are {len(whole['dirs'])}")
    through = 0
    for writer in writers:
        group = whole["dirs"].get(writer.name, {"files": {}, "filescount": 0})
        found: State = {
            rid: {vid: version["name"] for vid, version in file["versions"].items()}
            for rid, file in group["files"].items()
        }
        if found not in (writer.state, writer.asked):
            raise Wrong(f"{writer.name}: acknowledged {writer.state}, asked {writer.asked}, found {found}")
        through += found != writer.state
        _check_counts(group)
        _check_epochs(whole, group, writer, settled=found == writer.state)
        _check_index(server, writer, group)
        writer.state, writer.asked = found, None
    return through


def _check_counts(group: Any) -> None:
    if group["filescount"] != len(group["files"]):
        raise Wrong(f"filescount is {group['filescount']}, but there are {len(group['files'])}")
    for file in group["files"].values():
        if file["versionscount"] != len(file["versions"]) or file["versionid"] not in file["versions"]:
            raise Wrong(f"{file['xid']} does not know its versions")


def _check_epochs(whole: Any, group: Any, writer: Writer, *, settled: bool) -> None:
    there = {"/": whole["epoch"], f"/dirs/{writer.name}": group.get("epoch", 0)}
    for file in group["files"].values():
        there.update({version["xid"]: version["epoch"] for version in file["versions"].values()})
    for path, epoch in writer.epochs.items():
        if path in there and there[path] < epoch:
            raise Wrong(f"the epoch of {path} was {epoch} and is {there[path]}")
        if settled and path.count("/") > 2 and there.get(path) != epoch:
            raise Wrong(f"the epoch of {path} was {epoch} and is {there.get(path)}, though nobody wrote")
    kept = {path: epoch for path, epoch in writer.epochs.items() if path in there}
    writer.epochs = {**{path: epoch for path, epoch in there.items() if path.count("/") > 2}, **kept}
    writer.epochs.update({path: there[path] for path in writer.epochs})


def _check_index(server: Server, writer: Writer, group: Any) -> None:
    """A filter by label finds exactly the files that have it, for labels of now and of before."""
    if not group["files"]:
        return
    by_token: dict[str, set[str]] = {}
    for rid, file in group["files"].items():
        by_token.setdefault(file["labels"]["batch"], set()).add(rid)
    for token in {*by_token, *writer.tokens[-8:]}:
        _, found = server.get(f"/dirs/{writer.name}/files?filter=labels.batch={token}")
        if set(found) != by_token.get(token, set()):
            raise Wrong(f"the index finds {set(found)} for {token}, but it is on {by_token.get(token, set())}")


def torture(
    store: str, kills: int, *, seed: int, workers: int = 1, writers: int = 4, seconds: float = 0.5,
    command: Sequence[str] = ("-m", "signalbook"),
) -> tuple[int, int]:  # fmt: skip
    """Kill a server so many times; returns how many writes were acknowledged and how many in doubt went through."""
    chance = random.Random(seed)
    clients = [Writer(f"w{number}", random.Random(chance.random())) for number in range(writers)]
    through = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(kills):
            server = Server(store, Path(folder), workers, command)
            try:
                through += check(server, clients)
                stop = threading.Event()
                threads = [threading.Thread(target=client.run, args=(server.port, stop)) for client in clients]
                for thread in threads:
                    thread.start()
                time.sleep(chance.uniform(0.02, seconds))
            finally:
                server.kill()
            stop.set()
            for thread in threads:
                thread.join()
            for client in clients:
                if client.problem:
                    raise Wrong(client.problem)
        server = Server(store, Path(folder), workers, command)
        try:
            through += check(server, clients)
        finally:
            server.kill()
    return sum(client.acknowledged for client in clients), through


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--store", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or str(Path(folder) / "signalbook.db")
        started = time.monotonic()
        acknowledged, through = torture(store, given.kills, seed=given.seed, workers=given.workers)
        print(
            f"{given.kills} kills, {acknowledged} writes acknowledged and none lost, "
            f"{through} in doubt went through, {time.monotonic() - started:.0f} s"
        )


if __name__ == "__main__":
    main()
