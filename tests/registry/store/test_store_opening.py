from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from signalbook.errors import StoreError
from signalbook.registry import store as package
from signalbook.registry.store import open_store
from tests.patience import LONG


@pytest.mark.parametrize("url", ["", "sqlite:", "sqlite://x", "mysql://host/x", "http://host/x"])
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    """What is neither a path nor a known kind of store is refused with the forms that are."""
    with pytest.raises(StoreError, match="write memory:, a path, sqlite:PATH or postgresql://"):
        open_store(url)


def test_a_path_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is a file here; the store's own URL opens it from anywhere."""
    monkeypatch.chdir(tmp_path)
    with open_store("x.db") as store:
        monkeypatch.chdir("/")
        assert store.url == f"sqlite:{tmp_path}/x.db"
        assert store.sequence() == 0


def test_without_psycopg_the_remedy_is_named() -> None:
    """Where psycopg is not installed, a PostgreSQL URL says what to install, and SQLite works."""
    program = """
import sys
sys.modules["psycopg"] = None
from signalbook.errors import UsageError
from signalbook.registry.store import open_store
open_store("memory:").close()
try:
    open_store("postgresql://localhost/x")
except UsageError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG, check=True)
    assert "pip install 'signalbook[postgres]'" in result.stdout


def test_public_names_are_listed() -> None:
    """The package's list of public names is sorted, and each is there."""
    assert sorted(package.__all__) == package.__all__
    assert all(hasattr(package, name) for name in package.__all__)
