"""Several processes on one store: one of two equal writes wins, and nobody sees half of a request."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import StartServer
from tests.patience import LONG

ROUNDS = 100
MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "hasdocument": False}}}}}
Answer = tuple[int, Any]


class Client:
    """A connection of its own to one server."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=LONG)

    def __call__(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send one request."""
        self._connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        response = self._connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()


@pytest.fixture
def clients(start_server: StartServer, shared_store_url: str, tmp_path: Path) -> Iterator[list[Client]]:
    """Two servers on one store, and a client of each."""
    model = tmp_path / "model.json"
    model.write_text(json.dumps(MODEL))
    options = ("--model", str(model), "--specversion", "1.0-rc4", "--no-log")
    made = [Client(start_server(*options, store=shared_store_url)) for _ in range(2)]
    yield made
    for client in made:
        client.close()


def at_once(*calls: tuple[Any, ...]) -> list[Answer]:
    """Call all of them, each with its arguments, at the same moment."""
    start = threading.Barrier(len(calls))

    def run(call: tuple[Any, ...]) -> Answer:
        start.wait()
        answer: Answer = call[0](*call[1:])
        return answer

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def error(answer: Any) -> str:
    """The name of an error."""
    return str(answer["type"].rpartition("#")[2])


def test_one_of_two_equal_epochs_wins(clients: list[Client]) -> None:
    """EPOCH-2: two processes write the same entity with the same epoch, a hundred times: exactly one wins each time."""
    one, two = clients
    _, file = one("PUT", "/dirs/d1/files/f1", {"name": "begin"})
    for number in range(ROUNDS):
        epoch = file["epoch"]
        answers = at_once(
            (one, "PUT", "/dirs/d1/files/f1", {"name": f"one {number}", "epoch": epoch}),
            (two, "PUT", "/dirs/d1/files/f1", {"name": f"two {number}", "epoch": epoch}),
        )
        won = [answer for status, answer in answers if status == 200]
        lost = [error(answer) for status, answer in answers if status != 200]
        assert (1, ["mismatched_epoch"]) == (len(won), lost)
        file = two("GET", "/dirs/d1/files/f1")[1]
        assert (won[0]["name"], epoch + 1) == (file["name"], file["epoch"])


def test_one_of_two_equal_tags_wins(clients: list[Client]) -> None:
    """The same with `If-Match`: one writes, the other is told that its condition does not hold."""
    one, two = clients
    one("PUT", "/dirs/d1", {"name": "begin"})
    for number in range(ROUNDS // 4):
        epoch = str(one("GET", "/dirs/d1")[1]["epoch"])
        answers = at_once(
            (one, "PATCH", "/dirs/d1", {"name": f"one {number}"}, {"If-Match": f'"{epoch}"'}),
            (two, "PATCH", "/dirs/d1", {"name": f"two {number}"}, {"If-Match": f'"{epoch}"'}),
        )
        assert [200, 412] == sorted(status for status, _ in answers)


def test_ids_that_differ_by_case(clients: list[Client]) -> None:
    """ID-2: of two ids that differ only by case, created at once by two processes, exactly one comes to be."""
    one, two = clients
    one("PUT", "/dirs/d1/files/f1", {})
    for collection in ("/dirs", "/dirs/d1/files", "/dirs/d1/files/f1/versions"):
        for number in range(ROUNDS // 4):
            answers = at_once(
                (one, "PUT", f"{collection}/name{number}", {}),
                (two, "PUT", f"{collection}/NAME{number}", {}),
            )
            assert [201, 400] == sorted(status for status, _ in answers)
            assert ["bad_request"] == [error(answer) for status, answer in answers if status == 400]
        found = [name for name in one("GET", collection)[1] if name.lower().startswith("name")]
        assert ROUNDS // 4 == len(found) == len({name.lower() for name in found})


def test_a_reader_sees_all_or_nothing(clients: list[Client]) -> None:
    """HTTP-7: while several entities are written by one request, every reader sees all of it or nothing."""
    one, two = clients
    ids = [f"f{number}" for number in range(5)]
    one("POST", "/dirs/d1/files", {id_: {"name": "0", "labels": {"round": "0"}} for id_ in ids})
    done = threading.Event()
    seen: set[int] = set()
    halves: list[Any] = []

    def read() -> None:
        while not done.is_set():
            whole = two("GET", "/?inline=*")[1]["dirs"]["d1"]["files"]
            names = {file["name"] for file in whole.values()}
            found = two("GET", f"/dirs/d1/files?filter=labels.round={max(names)}")[1]
            if len(names) > 1 or len(whole) != len(ids) or len(found) not in (0, len(ids)):
                halves.append((names, found))
            seen.update(int(name) for name in names)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(1, ROUNDS):
            body = {id_: {"name": str(number), "labels": {"round": str(number)}} for id_ in ids}
            if number % 10 == 0:  # and a request that is wrong at its end
                body = {**body, "zz": {"nope": 1}}  # type: ignore[dict-item]
            status, _ = one("POST", "/dirs/d1/files", body)
            assert (400 if number % 10 == 0 else 200) == status
    finally:
        done.set()
        reader.join()
    assert [] == halves
    assert len(seen) > 3
    assert not {number for number in seen if number and number % 10 == 0}


def test_no_counting_is_lost(clients: list[Client]) -> None:
    """Two processes add and remove members of one collection at once; the counts are what is there."""

    def work(client: Client, name: str) -> Answer:
        for number in range(25):
            client("PUT", f"/dirs/d1/files/{name}{number}", {})
            if number % 3 == 0:
                client("DELETE", f"/dirs/d1/files/{name}{number}")
        return client("GET", "/dirs/d1")

    at_once((work, clients[0], "a"), (work, clients[1], "b"))
    whole = clients[0]("GET", "/?inline=*")[1]
    assert (32, 32) == (whole["dirs"]["d1"]["filescount"], len(whole["dirs"]["d1"]["files"]))
    assert (
        50 + 18 == whole["dirs"]["d1"]["epoch"]
    )  # made with its first member, then one step for each that came or went
