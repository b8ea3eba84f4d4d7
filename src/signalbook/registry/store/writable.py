"""Whether a store could be written now, found out without a write and without waiting for one.

Rule 1: what is in memory can; a file can where it and its folder may be written and the disk takes a little more; a
PostgreSQL server can unless it is a standby or its transactions are read-only.
Rule 2: nothing here waits for the write lock: who asks is a health check.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from signalbook.errors import StoreError
from signalbook.registry.store.store import Store

__all__ = ["PROBE_BYTES", "why_unwritable"]

PROBE_BYTES = 64 * 1024
"""What has to fit on the disk beside a store: more than the commit of a small write needs."""


def why_unwritable(store: Store) -> str:
    """Why the store cannot be written; empty where it can."""
    if store.url.startswith("postgres"):
        return _standby(store)
    return "" if store.url.startswith("memory:") else _full_or_read_only(store.url.removeprefix("sqlite:"))


def _standby(store: Store) -> str:
    try:
        found = store.reader().one("SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')")
    except StoreError as error:
        return str(error)
    if found is not None and found[0]:
        return "the PostgreSQL server is in recovery: it is a standby, and takes no writes"
    return "PostgreSQL's transactions are read-only here" if found is not None and found[1] == "on" else ""


def _full_or_read_only(path: str) -> str:
    if not os.access(path, os.W_OK):
        return f"the file '{path}' is not there, or may not be written"
    try:
        with tempfile.TemporaryFile(dir=Path(path).resolve().parent, prefix=".signalbook-probe-") as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return f"nothing can be written beside '{path}': {error.strerror or error}"
    return ""
