"""From the text a user gives for a store to the store."""

from __future__ import annotations

from signalbook.errors import StoreError
from signalbook.registry.store.connection import Database
from signalbook.registry.store.sqlite import open_file, open_memory
from signalbook.registry.store.store import Store

__all__ = ["open_store"]


def open_store(url: str) -> Store:
    """The store at `url`: `memory:`, a path, `sqlite:PATH` or `postgresql://…`; made and migrated where needed."""
    return Store(_database(url))


def _database(url: str) -> Database:
    if url == "memory:":
        return open_memory()
    if url.startswith(("postgresql://", "postgres://")):
        from signalbook.registry.store.postgres import open_server  # psycopg is an optional dependency

        return open_server(url)
    path = url.removeprefix("sqlite:")
    if not path or "://" in url or path.startswith("//"):
        raise StoreError(f"{url!r} names no store: write memory:, a path, sqlite:PATH or postgresql://user@host/name")
    return open_file(path)
