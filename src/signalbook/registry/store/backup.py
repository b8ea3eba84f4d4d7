"""Copies of an SQLite store: made while it is written, checked, and put back.

Rule: a copy appears under its name only when it is complete and has passed SQLite's own integrity check.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from signalbook.errors import StoreError
from signalbook.registry.store.migrate import LATEST

__all__ = ["backup", "restore", "write_copy"]


def backup(store: Path, path: Path, *, force: bool = False) -> None:
    """Copy the store in a file as it is at one moment; with `force` over an earlier copy, never over a store in use."""
    if force and path.exists():
        if _log_of(path).exists():
            raise StoreError(f"'{path}' is a store in use, not an earlier copy: choose another name")
    elif path.exists():
        raise StoreError(f"'{path}' exists: choose another name, or remove it first")
    with closing(_reading(store)) as source:
        _fill(source.backup, path)


def write_copy(copy_to: Callable[[sqlite3.Connection], None], path: Path) -> None:
    """Let `copy_to` fill a new database, check it, and name it `path`, which must not exist yet."""
    if path.exists():
        raise StoreError(f"{path} exists: choose another name, or remove it first")
    _fill(copy_to, path)


def _fill(copy_to: Callable[[sqlite3.Connection], None], path: Path) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial, isolation_level=None)) as target:
            copy_to(target)
            target.execute("PRAGMA journal_mode = DELETE")  # the copy is one file, with no log beside it
            _check(target, str(path))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the copy to '{path}' failed: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def restore(path: Path, into: Path, *, force: bool = False) -> None:
    """Make the store at `into` what the backup at `path` holds; with `force` even if there is one already."""
    log = _log_of(into)
    if not path.is_file():
        raise StoreError(f"there is no backup '{path}'")
    if (into.exists() or log.exists()) and not force:
        raise StoreError(f"{into} exists, and a restore replaces all it holds: choose another name, or force it")
    with closing(_reading(path)) as source:
        _check_backup(source, str(path))
        if into.exists():
            _replace_in_place(source, into)
        else:
            log.unlink(missing_ok=True)  # the log of a store that is gone must not be played into this one
            write_copy(source.backup, into)


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _check_backup(source: sqlite3.Connection, path: str) -> None:
    try:
        _check(source, path)
        (version,) = source.execute("SELECT version FROM schema_version").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"'{path}' is not a backup of a Signalbook store: {error}") from error
    if version > LATEST:
        raise StoreError(f"'{path}' has schema version {version}, and this Signalbook knows versions up to {LATEST}")


def _replace_in_place(source: sqlite3.Connection, path: Path) -> None:
    """One transaction on the existing store, so that processes that have it open see the old state or the new."""
    newest = "SELECT COALESCE(MAX(seq), 0) FROM changes"
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as target:
            _check_store(target, path)
            (before,) = target.execute(newest).fetchone()
            source.backup(target)
            # Numbers of changes that the restore undid are not given out again: a client may have seen them. It is
            # itself a change, one without events.
            (after,) = target.execute(newest).fetchone()
            if before > after:
                row = (before + 1, datetime.now(UTC).isoformat()[:-6] + "Z", secrets.token_hex(8), "[]")
                target.execute("INSERT INTO changes (seq, at, correlation, events) VALUES (?, ?, ?, ?)", row)
            _check(target, str(path))
    except sqlite3.Error as error:
        remedy = "remove it, with its -wal and -shm files, and restore again"
        raise StoreError(f"'{path}' cannot be replaced ({error}): {remedy}") from error


def _check_store(database: sqlite3.Connection, path: Path) -> None:
    """Refuse to replace what somebody else keeps there."""
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    if tables and not tables >= _TABLES:
        shown = ", ".join(sorted(tables)[:5])
        raise StoreError(f"'{path}' is no Signalbook store (it holds {shown}): choose another name, or remove it first")


# Those that stores of every version have.
_TABLES = frozenset({"schema_version", "entities", "changes", "settings"})


def _check(database: sqlite3.Connection, place: str) -> None:
    findings = [row[0] for row in database.execute("PRAGMA integrity_check(3)")]
    if findings != ["ok"]:
        raise StoreError(f"{place} is damaged: {'; '.join(findings)}")
