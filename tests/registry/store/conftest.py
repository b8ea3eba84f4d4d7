"""A fresh store on each database, with a table of its own: these tests do not depend on the registry's tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from signalbook.registry.store import Store, open_store


@pytest.fixture(params=["file", "memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a fresh store can be opened."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory:" if request.param == "memory" else str(tmp_path / "store.db")


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where several processes can open the same fresh store."""
    return str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else str(tmp_path / "store.db")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A fresh store with the table `notes`."""
    with open_store(url) as opened:
        opened.write(
            lambda connection: connection.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")
        )
        yield opened
