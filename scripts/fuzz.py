"""Send requests that are wrong in every way we can think of, and hold the answers to what was promised.

    python scripts/fuzz.py --requests 20000 [--seed 1]

Rule 1: a seed gives the same requests again; the first request that breaks a promise ends the run and is printed.
Rule 2: the promises are: no 5xx, no answer that takes more than five seconds (of a processor, in this process), none
larger than a bound, every error in the specification's form, and a registry that is consistent at the end, its index
included.
Rule 3: requests go in episodes, each to a new registry, because a wild model or capability ends most conversations.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import socket
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from scripts.crash import Server
from scripts.hostile import Sent, requests
from signalbook import app
from signalbook.registry.rows import SELECT_RANGE, EntityRow, enter_recent, range_of, term_numbers, terms_of
from signalbook.registry.urls import parse_flags
from signalbook.server import problems
from signalbook.server.dispatch import joined
from signalbook.server.http import Request, Response
from signalbook.settings import Settings
from signalbook.spec.error_types import ERROR_TYPES

SECONDS = 5.0
PATIENCE = 20.0  # over the wire, where others may keep the machine busy
LARGEST = 8 << 20
EPISODE = 250
BASE = "http://registry.test"
_ARGUMENT = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Broken(Exception):
    """A promise that did not hold, with the request that shows it."""


@dataclass
class Talk:
    """One registry in this process."""

    service: Any
    model: str

    @classmethod
    def begin(cls, store: str, model: str) -> Talk:
        """Open a registry."""
        specversion = "1.0-rc4" if model == "empty" else "1.0-rc2"
        return cls(app.service(Settings(store=store, model=model, specversion=specversion)), model)

    def send(self, sent: Sent) -> Response:
        """Send a request as the server's edge would, and look at the answer."""
        headers = joined(sent.headers)
        method = "GET" if sent.method == "HEAD" else sent.method
        path, query = (text.encode("utf-8", "replace").decode() for text in (sent.path, sent.query))
        request = Request(method, path, query, headers, sent.body, BASE)
        started = time.thread_time()
        trace = ""
        try:
            response: Response = self.service.quick(request) or self.service.answer(request)
        except Exception as error:
            trace = "".join(traceback.format_exception(error)[-4:])
            response = problems.respond(error, sent.path)
        spent = time.thread_time() - started
        for wrong in complaints(response, spent):
            raise Broken(f"{wrong}\n{sent}\n{trace}")
        return response

    def export(self) -> Any:
        """Return the whole registry as one document."""
        requests_ = self.service._requests
        answer = requests_.read("/", parse_flags("doc&inline=*,capabilities,modelsource"), BASE)
        return orjson.loads(answer.page.text)

    def check(self) -> None:
        """Look at everything that is left."""
        for wrong in _inconsistencies(self):
            raise Broken(wrong)


def complaints(response: Response, spent: float) -> Iterator[str]:
    """What is wrong with an answer."""
    if response.status >= 500:
        yield f"status {response.status}: {response.body[:500]!r}"
    if spent > SECONDS:
        yield f"it took {spent:.1f} s"
    if len(response.body) > LARGEST:
        yield f"{len(response.body)} bytes"
    if response.status >= 400:
        yield from _misshapen(response)
    elif dict(response.headers).get("content-type", "").startswith("application/json; charset") and response.body:
        try:
            orjson.loads(response.body)
        except ValueError as error:
            yield f"no JSON: {error}: {response.body[:300]!r}"
    for name, value in response.headers:
        if "\n" in value or "\r" in value or "\0" in value or not value.isascii():
            yield f"a header that is none: {name}: {value!r}"


def _misshapen(response: Response) -> Iterator[str]:
    """What is wrong with the form of an error: ERR-1 to ERR-5."""
    if ("content-type", "application/json; charset=utf-8") not in response.headers:
        yield f"an error that is no JSON: {response.headers}"
    try:
        body = orjson.loads(response.body)
    except ValueError as error:
        yield f"an error that is no JSON: {error}: {response.body[:300]!r}"
        return
    name = str(body.get("type", "")).rpartition("#")[2]
    known = ERROR_TYPES.get(name)
    if known is None or known.status != response.status:
        yield f"an error without a known type: {response.status} {response.body[:300]!r}"
        return
    if not body.get("title") or set(body) - {"type", "title", "detail", "subject", "args", "instance", "source"}:
        yield f"an error with too little or too much: {sorted(body)}"
    arguments = body.get("args", {})
    if set(known.args) - set(arguments):
        yield f"{name} without {set(known.args) - set(arguments)}"
    if not all(_ARGUMENT.fullmatch(key) and isinstance(value, str) for key, value in arguments.items()):
        yield f"arguments that are none: {arguments}"


# ---- the end of an episode


def _inconsistencies(talk: Talk) -> Iterator[str]:
    """What does not fit together in what is stored."""
    requests_ = talk.service._requests
    requests_.store.write(enter_recent)
    db = requests_.store.reader()
    setup = requests_.setup(db)
    whole = requests_.read("/", parse_flags("inline=*"), BASE)
    found = orjson.loads(whole.page.text)
    for plural, kind in setup.model.groups.items():
        yield from _miscounted(found, plural)
        for group in found[plural].values():
            for resources in kind.resources:
                yield from _miscounted(group, resources)
                for resource in group[resources].values():
                    if "versionsurl" in resource:
                        yield from _miscounted(resource, "versions")
    yield from _misindexed(db, setup)
    kinds = [kind for group in setup.model.groups.values() for kind in group.resources.values()]
    if all(kind.setversionid for kind in kinds) and "modelsource" in setup.capabilities.available:
        yield from _unimportable(talk)


def _miscounted(entity: Any, plural: str) -> Iterator[str]:
    if entity[plural + "count"] != len(entity[plural]):
        yield f"{entity['xid']}: {plural}count is {entity[plural + 'count']}, but there are {len(entity[plural])}"


def _misindexed(db: Any, setup: Any) -> Iterator[str]:
    """Index entries that nobody has, or that somebody lacks."""
    wanted: set[tuple[int, str]] = set()
    for values in db.execute(SELECT_RANGE, range_of("d", "")):
        row = EntityRow(*values)
        _, group, _, resource, id_, *_ = row.xid.split("/")
        singular = setup.model.groups[group].resources[resource].singular
        entries = terms_of(orjson.loads(row.doc)) | {(singular + "id", id_.lower())}
        wanted.update((number, row.key) for number in term_numbers(f"{group}/{resource}", entries))
    there = {(term, key) for term, key in db.execute("SELECT term, key FROM attrs")}
    if wanted - there:
        yield f"not in the index: {sorted(wanted - there)[:5]}"
    if there - wanted:
        yield f"only in the index: {sorted(there - wanted)[:5]}"


def _unimportable(talk: Talk) -> Iterator[str]:
    """Why the export is no registry document: a new registry takes it whole and then exports the same."""
    before = talk.export()
    other = Talk.begin("memory:", talk.model)
    try:
        answer = other.send(Sent("PUT", "/", "ignore=epoch,id", [], orjson.dumps(before)))
        if answer.status != 200:
            yield f"the export is refused: {answer.body[:500]!r}"
            return
        _fill(before)
        before, after = _lasting(before), _lasting(other.export())
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                yield f"the export is not taken as it is: {name}: {before.get(name)!r:.2000} {after.get(name)!r:.2000}"
    finally:
        other.service.close()


def _fill(document: Any) -> None:
    """Give versions what a group's constraints have as defaults: what was there before them has not, until written."""
    for groups in (value for value in document.values() if isinstance(value, dict)):
        for group in (value for value in groups.values() if isinstance(value, dict)):
            for name, rule in (group.get("constraints") or {}).items():
                plural, _, path = name.partition(".")
                for resource in (group.get(plural) or {}).values() if rule.get("default") is not None else ():
                    for version in (resource.get("versions") or {}).values():
                        version.setdefault(path, rule["default"])


def _lasting(value: Any) -> Any:
    """A document without what a new registry has of its own."""
    if isinstance(value, list):
        return [_lasting(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    own = ("epoch", "modifiedat", "self", "registryid", "specversion")
    return {name: _lasting(entry) for name, entry in value.items() if name not in own and not name.endswith("url")}


# ---- over the wire


def on_the_wire(server: Server, sent: Sent, chance: random.Random) -> int:
    """Send a request, perhaps broken, through a socket; returns the status, 0 where the server hung up."""
    target = "".join(
        character if 32 < ord(character) < 127 else f"%{ord(character) & 255:02X}" for character in sent.path
    )
    query = "".join(character for character in sent.query if 32 < ord(character) < 127)
    head = [
        f"{sent.method} {target or '/'}{'?' + query if query else ''} HTTP/1.1",
        "Host: registry.test",
        "Connection: close",
    ]
    head += [f"{name}: {value}" for name, value in sent.headers if value.isascii() and value.isprintable()]
    head.append(f"Content-Length: {len(sent.body)}")
    data = "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + sent.body
    broken = chance.random() < 0.3
    if broken and chance.random() < 0.5:
        data = data[: chance.randrange(len(data))]
    elif broken:
        at = chance.randrange(min(len(data), 400))
        data = data[:at] + bytes([chance.randrange(256)]) + data[at + chance.randrange(3) :]
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        answer = b""
        try:
            connection.sendall(data)
            if broken:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece
        except TimeoutError:
            raise Broken(f"no answer within {PATIENCE} s\n{data[:2000]!r}") from None
        except OSError:
            pass  # hung up, which is an answer to a request that is none
    match = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    status = int(match[1]) if match else 0
    if (answer and not match) or status >= 500:
        raise Broken(f"{answer[:600]!r}\n{data[:2000]!r}")
    return status


def run(count: int, seed: int, *, fresh_store: Callable[[], str] = lambda: "memory:", wire: int = 20) -> Counter[int]:
    """Send so many requests, every `wire`th to a real server; returns how often each status came back."""
    chance = random.Random(seed)
    statuses: Counter[int] = Counter()
    logging.getLogger("signalbook.server").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        server = (
            Server(str(Path(folder) / "fuzz.db"), Path(folder), model="builtin", options=("--body-timeout", "2"))
            if wire
            else None
        )
        try:
            for number in range(0, count, EPISODE):
                episode = random.Random(f"{seed} {number}")
                model = episode.choice(["builtin", "builtin", "empty"])
                talk = Talk.begin(fresh_store(), model)
                try:
                    for position, sent in enumerate(requests(episode, model, min(EPISODE, count - number))):
                        if server is not None and position % wire == 0:
                            statuses[on_the_wire(server, sent, chance)] += 1
                        else:
                            statuses[talk.send(sent).status] += 1
                    talk.check()
                except Broken as broken:
                    raise Broken(f"episode {number}: {broken}") from None
                finally:
                    talk.service.close()
            if server is not None and server.get("/")[0] != 200:
                raise Broken("the server does not answer any more")
        finally:
            if server is not None:
                server.kill()
    return statuses


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}")
    started = time.monotonic()
    statuses = run(given.requests, given.seed)
    shown = ", ".join(f"{status or 'hung up'}: {number}" for status, number in sorted(statuses.items()))
    print(f"{given.requests} requests in {time.monotonic() - started:.0f} s; {shown}")


if __name__ == "__main__":
    main()
