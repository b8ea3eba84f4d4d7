"""What a caller of the store holds in its hands: a connection, and the errors it may raise.

Rule 1: SQL is one text for both databases, with `?` for every parameter and no other question mark.
Rule 2: a database driver's exception never leaves this package: it is a `StoreError` whose cause is the driver's.
Rule 3: a statement, and each row that it gives, takes steps of the budget that the work is within; what begins and
ends a transaction takes none, so that it can always be undone.

    StoreError
    ├── StoreBusy     another process held the write lock for too long; the same request may work later
    └── StoreLost     the connection was lost before a commit: nothing was written, and the job may be run again
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

from signalbook.errors import StoreError

__all__ = [
    "A_STATEMENT",
    "LATEST",
    "MOST_CONNECTIONS",
    "WORDS",
    "Connection",
    "Database",
    "Job",
    "ResultRow",
    "Session",
    "StoreBusy",
    "StoreLost",
    "migrate",
    "scripts",
]

T = TypeVar("T")

# The steps that one statement takes besides its rows.
A_STATEMENT = 5

ResultRow: TypeAlias = tuple[Any, ...]


class StoreBusy(StoreError):
    """The write lock could not be had in time: nothing was written, and the same request may work later."""


class StoreLost(StoreError):
    """The connection was lost and nothing was committed: the same job may be run again on another."""


# Connections that the threads of a process read by, where a store is on a server; there is one more, which writes.
MOST_CONNECTIONS = 16


class Connection(Protocol):
    """Runs statements; what they see and whether they last is decided by who handed the connection out."""

    def execute(self, sql: str, params: Sequence[Any] = (), /) -> list[ResultRow]:
        """All rows of one statement; an empty list where it returns none."""

    def one(self, sql: str, params: Sequence[Any] = (), /) -> ResultRow | None:
        """The first row of one statement, or None."""

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> None:
        """One statement run for each row of parameters."""


Job: TypeAlias = Callable[[Connection], T]


class Session(Connection, Protocol):
    """A connection with its transaction in the hands of the store; `savepoint` guards one job of a group."""

    def begin_read(self) -> None:
        """Every statement until `commit` sees the same state."""

    def begin_write(self) -> None:
        """Take the write lock of the whole store; `StoreBusy` when that takes too long."""

    def commit(self) -> None:
        """Make the transaction last: on return it survives a power cut, unless the store is a temporary one."""

    def rollback(self) -> None:
        """Undo the transaction, if there still is one."""

    def savepoint(self) -> None:
        """Begin a part of the transaction that `undo` can take back alone."""

    def check_transaction(self) -> None:
        """Refuse to go on if a statement failed in a way that leaves nothing to commit, and the job kept silent."""

    def release(self) -> None:
        """Keep the part begun by `savepoint`."""

    def undo(self) -> None:
        """Take back the part begun by `savepoint`, and only that."""

    def close(self) -> None:
        """Give the connection back; a statement another thread is running ends first."""


class Database(Protocol):
    """One place that holds a store: it opens sessions and copies itself."""

    url: str

    def session(self) -> Session:
        """A new connection of its own."""

    def backup(self, path: str) -> None:
        """Write a copy of the current state to `path`."""

    def close(self) -> None:
        """Give back whatever is not a session."""


# Numbered migrations: the schema of a store, brought up to date when it is opened.
#
# Rule: a migration is a file `migrations/NNNN_name.sql`, or `NNNN_name.DIALECT.sql` for one database alone, that
# never changes once released; all that a store lacks run in one transaction under the store's write lock, so that two
# processes may open a new store at the same moment.


# All that differs between the two databases in the language of the migrations.
WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "sqlite": {
            "blob": "BLOB",
            "text_key": "TEXT",
            "without_rowid": "WITHOUT ROWID",
            "sequence": "INTEGER PRIMARY KEY AUTOINCREMENT",
            "counter": "INTEGER PRIMARY KEY",
            "tables": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
        },
        "postgresql": {
            "blob": "BYTEA",
            "text_key": 'TEXT COLLATE "C"',
            "without_rowid": "",
            "sequence": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            "counter": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            "tables": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
        },
    }
)

_FILE = re.compile(r"(\d{4})_\w+(?:\.(sqlite|postgresql))?\.sql")
_COMMENT = re.compile(r"--.*")


@cache
def scripts() -> tuple[tuple[int, str, str], ...]:
    """Number, dialect ("" for all) and text of every migration, in order."""
    folder = files(__package__).joinpath("migrations")
    found = ((_FILE.fullmatch(file.name), file) for file in folder.iterdir())
    return tuple(sorted((int(match[1]), match[2] or "", file.read_text("utf-8")) for match, file in found if match))


LATEST = max(number for number, *_ in scripts())


def migrate(session: Session, dialect: str, place: str) -> None:
    """Bring the store at `place` to `LATEST`; refuse one that is newer, or that is not ours."""
    words = WORDS[dialect]
    if _version(session, words, place) == LATEST:
        return
    session.begin_write()
    try:
        version = _version(session, words, place)
        if version == 0:
            session.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
            session.execute("INSERT INTO schema_version VALUES (0)")
        for number, only, text in scripts():
            if number > version and only in ("", dialect):
                for statement in _statements(text, words):
                    session.execute(statement)
        session.execute("UPDATE schema_version SET version = ?", (LATEST,))
        session.commit()
    except BaseException:
        session.rollback()
        raise


def _version(connection: Connection, words: Mapping[str, str], place: str) -> int:
    tables = {row[0] for row in connection.execute(words["tables"])}
    if "schema_version" not in tables:
        if tables:
            raise StoreError(f"{place} holds tables that are not Signalbook's ({', '.join(sorted(tables)[:5])})")
        return 0
    row: tuple[Any, ...] | None = connection.one("SELECT version FROM schema_version")
    version = int(row[0]) if row else 0
    if version > LATEST:
        raise StoreError(
            f"{place} has schema version {version}, and this Signalbook knows versions up to {LATEST}: "
            "it was written by a newer one; upgrade, or restore an older backup"
        )
    return version


def _statements(text: str, words: Mapping[str, str]) -> list[str]:
    plain = _COMMENT.sub("", text).format_map(words)
    return [statement.strip() for statement in plain.split(";\n") if statement.strip()]
