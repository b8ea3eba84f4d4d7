"""The commands around a catalog: backup, restore, version, completion."""

from __future__ import annotations

import platform
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from signalbook import __version__
from signalbook.cli import options
from signalbook.cli.output import print_json, say
from signalbook.errors import StoreError, UsageError
from signalbook.registry.store import sqlite as copies
from signalbook.spec import versions

__all__ = ["backup", "completion", "restore", "version"]

SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/signalbook.fish"}


@click.command(
    short_help="Copy a SQLite store while it is in use.",
    epilog="Example: signalbook backup monday.db --store signalbook.db",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@options.store
def backup(file: Path, force: bool, store: str) -> None:
    """Copy a SQLite store to FILE as it is at one moment, while it may be read and written."""
    if file.exists() and not force:
        raise UsageError(f"'{file}' already exists; choose another name or use --force")
    source = _sqlite_path(store)
    if not source.is_file():
        raise StoreError(f"there is no store '{source}' to copy")
    copies.backup(source, file, force=force)
    say(f"wrote {file} ({file.stat().st_size:,} bytes)")


@click.command(
    short_help="Make a store from a backup.",
    epilog="Example: signalbook restore monday.db --store signalbook.db --force",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace an existing store.")
@options.store
def restore(file: Path, force: bool, store: str) -> None:
    """Make a SQLite store from the backup in FILE.

    A store that is there is replaced in one transaction, so its servers may go on: they see the old state or the new.
    """
    target = _sqlite_path(store)
    if not file.is_file():
        raise StoreError(f"there is no backup '{file}'")
    if target.exists() and not force:
        raise UsageError(f"the store '{target}' already exists; use --force to replace it")
    if target.exists() and target.samefile(file):
        raise UsageError("the backup and the store are the same file")
    copies.restore(file, target, force=force)
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
