"""The commands around a catalog: backup, restore, version, completion.

Rule: a backup or a restore is whole or not there; it is written beside its place and then put there at once.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sqlite3
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from signalbook import __version__
from signalbook.cli import options
from signalbook.cli.output import print_json, say
from signalbook.errors import StoreError, UsageError
from signalbook.spec import versions

__all__ = ["backup", "completion", "restore", "version"]

SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/signalbook.fish"}
# All pages in one step: a reader stops no writer of a store, while a copy in steps begins again at every write.
PAGES = -1


@click.command(
    short_help="Copy a SQLite store while it is in use.",
    epilog="Example: signalbook backup monday.db --store signalbook.db",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@options.store
def backup(file: Path, force: bool, store: str) -> None:
    """Copy a SQLite store to FILE as it is at one moment, while it may be read and written."""
    if file.exists() and not force:
        raise UsageError(f"'{file}' is there already; choose another name or say --force")
    source = _sqlite_path(store)
    if not source.is_file():
        raise StoreError(f"there is no store '{source}' to copy")
    with contextlib.ExitStack() as stack:
        if file.exists():
            _alone(file, stack)  # it may be a store that somebody serves
        _copy(source, file)
    say(f"wrote {file} ({file.stat().st_size:,} bytes)")


@click.command(
    short_help="Make a store from a backup.",
    epilog="Example: signalbook restore monday.db --store signalbook.db --force",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace a store that is there.")
@options.store
def restore(file: Path, force: bool, store: str) -> None:
    """Make a SQLite store from the backup in FILE; stop the servers of that store first."""
    target = _sqlite_path(store)
    if not file.is_file():
        raise StoreError(f"there is no backup '{file}'")
    if target.exists() and not force:
        raise UsageError(f"the store '{target}' is there already; say --force to replace it")
    if target.exists() and target.samefile(file):
        raise UsageError("the backup and the store are the same file")
    _check(file)
    with contextlib.ExitStack() as stack:
        if target.exists():
            _alone(target, stack)
        _copy(file, target)
    say(f"restored {target} from {file}")


@click.command(short_help="Print the version.", epilog="Example: signalbook version --json")
@options.as_json
def version(as_json: bool) -> None:
    """Print the version of Signalbook and the specification versions it speaks."""
    spoken = [spec.name for spec in versions.VERSIONS.values()]
    if as_json:
        print_json(
            {"signalbook": __version__, "python": platform.python_version(), "specversions": spoken}, compact=True
        )
    else:
        click.echo(f"signalbook {__version__} (xRegistry {', '.join(spoken)}; Python {platform.python_version()})")


@click.command(
    short_help="Print a shell's completion script.", epilog="Example: signalbook completion bash >> ~/.bashrc"
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in SHELL; append it to the shell's start file.

    That is ~/.bashrc for bash, ~/.zshrc for zsh, ~/.config/fish/completions/signalbook.fish for fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "signalbook", "_SIGNALBOOK_COMPLETE").source())


def _sqlite_path(store: str) -> Path:
    if "://" in store:
        raise UsageError("backup and restore are for SQLite stores; use pg_dump and pg_restore for PostgreSQL")
    if store.startswith("memory:"):
        raise UsageError("a store in memory lives only in its server; use export to keep what it holds")
    return Path(store.removeprefix("sqlite:"))


def _copy(source: Path, target: Path) -> None:
    """Copy a database through SQLite's own backup, then put the copy in its place at once."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as reading,
            contextlib.closing(sqlite3.connect(part)) as writing,
        ):
            reading.backup(writing, pages=PAGES)
            # Ready to be opened anywhere: no log beside it, everything on the disk.
            writing.execute("PRAGMA journal_mode=DELETE")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        part.replace(target)
    except sqlite3.Error as error:
        raise StoreError(f"'{source}' cannot be copied: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def _check(file: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute("PRAGMA quick_check(1)").fetchone()
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise StoreError(f"'{file}' is not a backup: {error}") from None
    if found is None or found[0] != "ok":
        raise StoreError(f"'{file}' is damaged: {found[0] if found else 'it is empty'}")
    if "entities" not in tables:
        raise StoreError(f"'{file}' is a database, but not one of Signalbook's")


def _alone(target: Path, stack: contextlib.ExitStack) -> None:
    """Hold the store for ourselves, or say that it is in use."""
    try:
        database = stack.enter_context(contextlib.closing(sqlite3.connect(target, timeout=1, isolation_level=None)))
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        raise StoreError(f"'{target}' is in use; stop its servers and repeat") from None
    except sqlite3.DatabaseError:
        return  # What is there is no database, and --force was said.
