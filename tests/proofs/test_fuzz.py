"""Thousands of requests that are wrong on purpose: scripts/fuzz.py, and that it can tell."""

from __future__ import annotations

import os
import random

import pytest

from scripts import fuzz
from scripts.hostile import Sent, requests
from signalbook.server.dispatch import RegistryService
from signalbook.server.http import JSON, Request, Response
from tests.conftest import FreshStore

REQUESTS = int(os.environ.get("SIGNALBOOK_REQUESTS", "1500"))
# The same for the same code, so that a change is taken or refused for what it changes; `make soak` looks further.
FURTHER = random.randrange(1 << 32) if os.environ.get("SIGNALBOOK_TEST_PROFILE") == "random" else 20_261_115
SEED = int(os.environ.get("SIGNALBOOK_SEED", "0")) or FURTHER


def test_hostile_requests(fresh_store: FreshStore) -> None:
    """No request makes a 5xx, a hang, an unbounded answer, an error out of form, or a registry out of order."""
    print(f"SIGNALBOOK_SEED={SEED}")
    statuses = fuzz.run(REQUESTS, SEED, fresh_store=fresh_store)
    assert REQUESTS == statuses.total()
    assert statuses[200] > REQUESTS / 10 < statuses[400]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_thousand_hostile_requests(fresh_store: FreshStore) -> None:
    """The same for twenty thousand."""
    print(f"SIGNALBOOK_SEED={SEED}")
    assert 20_000 == fuzz.run(20_000, SEED, fresh_store=fresh_store).total()


def test_the_same_seed_gives_the_same_requests() -> None:
    """A seed that found something finds it again."""
    first, second = (list(map(str, requests(random.Random("7 0"), "builtin", 200))) for _ in range(2))
    assert first == second


ERROR = b'{"type":"https://github.com/xregistry/spec/blob/main/core/spec.md#not_found","title":"x","subject":"/"}'


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (Response(500, [JSON], ERROR), "status 500"),
        (Response(404, [JSON], b"nothing here"), "no JSON"),
        (Response(404, [("content-type", "text/plain")], ERROR), "no JSON"),
        (Response(400, [JSON], ERROR), "without a known type"),
        (Response(404, [JSON], b'{"type":"about:blank","title":"x"}'), "without a known type"),
        (Response(404, [JSON], ERROR.replace(b'"subject"', b'"where"')), "too much"),
        (Response(200, [JSON], b'{"a":'), "no JSON"),
        (Response(200, [JSON], b"1" * (fuzz.LARGEST + 1)), "bytes"),
        (Response(303, [("location", "a\r\nb")]), "a header that is none"),
    ],
    ids=["5xx", "text", "text as such", "wrong status", "unknown", "more", "half", "large", "header"],
)
def test_it_can_fail(response: Response, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that breaks a promise ends the run with words about it."""

    def answer(self: RegistryService, request: Request) -> Response:
        return response

    monkeypatch.setattr(RegistryService, "answer", answer)
    talk = fuzz.Talk.begin("memory:", "builtin")
    try:
        with pytest.raises(fuzz.Broken, match=words):
            talk.send(Sent("GET", "/", "", [], b""))
    finally:
        talk.service.close()


def test_what_is_out_of_order_is_found_out() -> None:
    """A count or an index entry that is wrong ends the run."""
    for statement in ("DELETE FROM recent", "UPDATE entities SET counts = '{}' WHERE key = 'a/'"):
        talk = fuzz.Talk.begin("memory:", "builtin")
        talk.send(Sent("PUT", "/messagegroups/g1/messages/m1", "", [], b'{"name": "x"}'))
        with talk.service._requests.store.writing() as db:
            db.execute(statement)
        with pytest.raises(fuzz.Broken, match=r"index|count"):
            talk.check()
        talk.service.close()
