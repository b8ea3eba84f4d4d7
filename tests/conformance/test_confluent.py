"""The recorded sequences of Confluent's API, replayed in this process.

They lie beside the project, in `../shared/conformance`; without them these tests are skipped. Each sequence begins with
a new registry, and every expectation of it holds: there is no list of exceptions. A part of them runs with every test
run, the rest with the long ones.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.registry.conftest import Api, MakeApi

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
FILES = ("confluent-http.jsonl", "confluent-http-by-source.jsonl")
SEQUENCES = 894 + 30
# Of the first file, one in so many runs always; all of the second do.
EVERY = 3

pytestmark = pytest.mark.skipif(
    not all((FOLDER / name).exists() for name in FILES), reason="the recorded cases are not beside the project"
)


def load_replayer() -> ModuleType:
    """The program that replays the cases against a server, for how it reads and compares them."""
    spec = importlib.util.spec_from_file_location("replay_confluent", FOLDER / "replay_confluent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REPLAYER = load_replayer() if (FOLDER / FILES[0]).exists() else None
GROUPS = [one for name in FILES for one in (REPLAYER.read_groups(FOLDER / name) if REPLAYER else [])]
SAFE = "/?&=%~.*+:;,@!$'()[]<>|^{}-_#"


def parameters() -> list[Any]:
    """Each sequence with its name; most are marked as long."""
    found = []
    for number, (group, steps) in enumerate(GROUPS):
        always = number % EVERY == 0 or number >= len(GROUPS) - 30
        marks = () if always else (pytest.mark.slow,)
        found.append(pytest.param(steps, id=f"{group['group']}{'' if number < 894 else ' by source'}", marks=marks))
    return found


class Client:
    """Sends the requests of a sequence to a registry in this process, as the replayer's own client does to a server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def send(
        self, method: str, url: str, headers: Sequence[str] = (), body: str = ""
    ) -> tuple[int, dict[str, str], str]:
        """Send one request; what came back."""
        path, mark, query = url.lstrip("/").partition("?")
        sent = dict(line.split(": ", 1) for line in headers)
        reply = self._api(
            method, f"/confluent/{unquote(path)}{mark}{quote(query, safe=SAFE)}", body.encode() or None, sent
        )
        return reply.status, dict(reply.headers), reply.body.decode("utf-8", "replace")


@pytest.mark.parametrize("steps", parameters())
def test_sequence(steps: list[dict[str, Any]], make_api: MakeApi) -> None:
    """Every request of a sequence is answered as expected."""
    assert REPLAYER is not None
    found = REPLAYER.run_group(steps, Client(make_api(deliver=False)))
    assert [] == [(step["seq"], step["request"]["url"], said) for step, said in found if said]


def test_all_are_here() -> None:
    """The files hold as many sequences as the page about this API says."""
    assert len(GROUPS) == SEQUENCES
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "confluent.md"
    assert "894" in page.read_text(encoding="utf-8")
