"""Where a registry is kept: SQLite or PostgreSQL, behind one SQL.

`open_store` takes `memory:`, a path, `sqlite:PATH` or `postgresql://…`; `restore` puts a backup in a store's place.
"""

from __future__ import annotations

from signalbook.registry.store.connection import Connection, Job, ResultRow, StoreBusy
from signalbook.registry.store.sqlite import restore
from signalbook.registry.store.store import Store, open_store

__all__ = ["Connection", "Job", "ResultRow", "Store", "StoreBusy", "open_store", "restore"]
