"""What tests share: a fresh store on either database, a server that is really started, and how workers share the tests.

With SIGNALBOOK_TEST_POSTGRES set to the URL of a PostgreSQL that tests may fill, `store_url` is there instead of in
memory: the same tests, the other database. `make integration` does that.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from signalbook.model.model import Model, read_model
from signalbook.registry import capabilities
from tests.patience import LONG, answers, until

ROOT = Path(__file__).resolve().parent.parent
POSTGRES = os.environ.get("SIGNALBOOK_TEST_POSTGRES", "")
# The fixtures of stores that may be in PostgreSQL.
STORES = {"postgres_url", "fresh_store", "store_url", "shared_store_url"}
_numbers = itertools.count(1)
# Most sessions of Spark in tests end before Java's better compiler has paid for itself.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A slow machine must not fail a property; examples are bounded in number, not in time. By default the same code is
# tried with the same examples; `random` and `thorough` look for new ones.
settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("SIGNALBOOK_TEST_PROFILE", "default"))


FreshStore = Callable[[], str]


@cache
def _read_once(text: bytes) -> Model:
    return read_model(orjson.loads(text))


def _read_model(source: Mapping[str, Any]) -> Model:
    """The model that a document defines; the parts that it was read into are shared, the model is a new one."""
    return replace(_read_once(orjson.dumps(source)))


# A registry in memory is made in 10 ms, but for reading the built-in model, which takes another 60: thousands of tests
# make one, and share what they read. The tests of models read them anew.
assert capabilities.read_model is read_model  # type: ignore[attr-defined]
capabilities.read_model = _read_model  # type: ignore[attr-defined]


class StartServer(Protocol):
    """Starts `signalbook serve` with options and gives its address."""

    def __call__(self, *options: str, store: str = "memory:", wait: bool = True) -> str: ...


@cache
def _on_spark(file: str) -> bool:
    """Whether the tests of a file are marked with `tests.pipeline.lakes.on_spark`."""
    path = ROOT / file
    return path.suffix == ".py" and "pytestmark = on_spark" in path.read_text(encoding="utf-8")


class Shares(LoadScopeScheduling):
    """Hands eight tests of a file at a time to a worker, and all tests on Spark to one: they share its session.

    pytest-xdist would do the latter by marks, but not with pytest 9.2 (its issue 1386), and would hand out the others
    one by one, for which it looks through all that were handed out before.
    """

    _shares: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        """The share that a test belongs to; it is asked of all tests in their order first."""
        if self._shares is None:
            self._shares, self._counts = {}, Counter[str]()
        if nodeid not in self._shares:
            file = nodeid.partition("::")[0]
            self._shares[nodeid] = "spark" if _on_spark(file) else f"{file} {self._counts[file] // 8}"
            self._counts[file] += 1
        return self._shares[nodeid]


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Who decides what each worker runs, with `--dist loadgroup`."""
    return Shares(config, log) if config.getvalue("dist") == "loadgroup" else None  # type: ignore[arg-type]


def _on_postgres(item: pytest.Item) -> bool:
    """Whether a test's store is in PostgreSQL, where one is given."""
    return bool(item.get_closest_marker("postgres") or STORES & set(getattr(item, "fixturenames", ())))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which `make integration` leaves out what `make test` has run on the same store."""
    words = "run only tests whose store is in the PostgreSQL that SIGNALBOOK_TEST_POSTGRES names"
    parser.addoption("--on-postgres", action="store_true", help=words)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put first what takes longest, so that no worker ends alone; skip what needs a PostgreSQL where there is none."""
    if config.getoption("--on-postgres"):
        others = [item for item in items if not _on_postgres(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _on_postgres(item)]
    items.sort(key=lambda item: (not _on_spark(item.nodeid.partition("::")[0]), item.path.parent != ROOT / "tests"))
    if not POSTGRES:
        for item in items:
            if item.get_closest_marker("postgres"):
                item.add_marker(pytest.mark.skip(reason="SIGNALBOOK_TEST_POSTGRES is not set; see make integration"))


def _in_schema(schema: str) -> str:
    mark = "&" if "?" in POSTGRES else "?"
    return f"{POSTGRES}{mark}options={quote(f'-csearch_path={schema}', safe='')}"


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The URL of an empty schema of its own in the PostgreSQL that tests may fill."""
    if not POSTGRES:
        pytest.skip("SIGNALBOOK_TEST_POSTGRES is not set; see make integration")
    import psycopg

    schema = f"t{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    yield _in_schema(schema)
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def fresh_store() -> Iterator[FreshStore]:
    """Make as many new stores as a test needs: in memory, or in PostgreSQL where one is given."""
    if not POSTGRES:
        yield lambda: "memory:"
        return
    import psycopg

    made: list[str] = []
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")

        def make() -> str:
            schema = f"f{os.getpid()}_{next(_numbers)}"
            connection.execute(f"CREATE SCHEMA {schema}")
            made.append(schema)
            return _in_schema(schema)

        yield make
        for schema in made:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """A fresh store: in memory, or in PostgreSQL where one is given."""
    return request.getfixturevalue("postgres_url") if POSTGRES else "memory:"


@pytest.fixture
def shared_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh store that several processes can open: a file, or in PostgreSQL where one is given."""
    return request.getfixturevalue("postgres_url") if POSTGRES else str(tmp_path / "signalbook.db")


@pytest.fixture
def free_port() -> int:
    """A port nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Start real servers; they are stopped when the test ends, and must have stopped by themselves then."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*options: str, store: str = "memory:", wait: bool = True) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = (tmp_path / f"server-{port}.log").open("wb")
        command = [sys.executable, "-m", "signalbook", "serve", "--port", str(port), "--store", store, *options]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)
        log.close()
        running.append(process)
        scheme = "https" if "--cert" in options else "http"
        address = f"{scheme}://127.0.0.1:{port}"
        if wait:
            _wait(lambda: answers(port), process, tmp_path / f"server-{port}.log")
        return address

    yield start
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(timeout=LONG)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    if not until(lambda: process.poll() is not None or ready()) or process.poll() is not None:
        raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')}")
