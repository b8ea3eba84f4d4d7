"""What the command-line tests share: running a command in this process, and a catalog to work on."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from signalbook.cli import main
from tests.conftest import StartServer

CATALOG: dict[str, Any] = {
    "messagegroups": {
        "fleet": {
            "name": "Fleet",
            "messages": {
                "moved": {"description": "A vehicle moved.", "labels": {"team": "road"}},
                "parked": {"description": "A vehicle stands.", "labels": {"team": "yard"}},
            },
        }
    },
    "schemagroups": {
        "fleet": {"schemas": {"position": {"format": "JsonSchema/draft-07", "schema": {"type": "object"}}}}
    },
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON values."""
        return json.loads(self.out)


class Run(Protocol):
    """Runs one command."""

    def __call__(self, *args: str, stdin: str = "") -> Result: ...


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process, in an empty folder and without the caller's environment."""
    for name in ("STORE", "SERVER", "TOKEN", "READ_TOKEN", "WRITE_TOKEN", "CREDENTIALS"):
        monkeypatch.delenv(f"SIGNALBOOK_{name}", raising=False)
    monkeypatch.chdir(tmp_path)

    def once(*args: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        code = main(args)
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return once


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A file with a small catalog."""
    path = tmp_path / "catalog.xreg.json"
    path.write_text(json.dumps(CATALOG), encoding="utf-8")
    return path


@pytest.fixture(params=["store", "server"])
def target(request: pytest.FixtureRequest, shared_store_url: str, start_server: StartServer) -> tuple[str, str]:
    """The options that name an empty catalog: once a store, once a running server."""
    if request.param == "store":
        return "--store", shared_store_url
    return "--server", start_server(store=shared_store_url)
