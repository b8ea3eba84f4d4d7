"""Where a registry is kept: SQLite or PostgreSQL, behind one SQL.

`open_store` takes `memory:`, a path, `sqlite:PATH` or `postgresql://…`; `restore` puts a backup in a store's place.
"""

from __future__ import annotations

from signalbook.registry.store.backup import restore
from signalbook.registry.store.connection import Connection, Job, Row, StoreBusy
from signalbook.registry.store.opening import open_store
from signalbook.registry.store.store import Store

__all__ = ["Connection", "Job", "Row", "Store", "StoreBusy", "open_store", "restore"]
