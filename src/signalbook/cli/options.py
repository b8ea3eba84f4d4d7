"""The options that several commands share, each written once.

Rule: an option that means the same has the same name, the same environment variable and the same words everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from signalbook.errors import UsageError
from signalbook.spec import versions

__all__ = ["as_json", "ca", "model", "on_target", "read_secret", "schemas", "specversion", "store"]

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_STORE = "signalbook.db"


def _no_folder(context: click.Context, parameter: click.Parameter, store: str) -> str:
    from signalbook.cli.target import refuse_folder

    refuse_folder(store)
    return store


store = click.option(
    "--store",
    callback=_no_folder,
    metavar="STORE",
    default=DEFAULT_STORE,
    envvar="SIGNALBOOK_STORE",
    show_default=True,
    show_envvar=True,
    help="The database: a SQLite file, memory:, or postgresql://user@host/name.",
)
model = click.option(
    "--model",
    metavar="builtin|empty|FILE",
    default="builtin",
    show_default=True,
    help="The model of a store that is new: message, schema and endpoint registries, none, or a model document.",
)
specversion = click.option(
    "--specversion",
    metavar="VERSION",
    default=None,
    help=f"The xRegistry version to speak: {' or '.join(v.name for v in versions.VERSIONS.values())}.",
)
ca = click.option(
    "--ca",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="SIGNALBOOK_CA",
    show_envvar=True,
    help="The certificates (PEM) to trust, if the server's is not signed by a known authority.",
)
schemas = click.option(
    "--schemas",
    type=click.Choice(["optional", "required"]),
    default="optional",
    show_default=True,
    help="What becomes of messages whose payload schema lies elsewhere or is of a format that is not supported: their "
    "metadata decide and the payload stays unchecked, or they do not conform.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")

_SERVER = click.option(
    "--server",
    metavar="URL",
    envvar="SIGNALBOOK_SERVER",
    show_envvar=True,
    help="Work on a running registry instead of a store.",
)
_TOKEN = click.option(
    "--token", metavar="TOKEN", envvar="SIGNALBOOK_TOKEN", show_envvar=True, help="The token to send to the server."
)
_TOKEN_FILE = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the token from the first line of a file.",
)


def on_target(command: Command) -> Command:
    """Give a command the options --store, --server, --token and --ca, and an open `Target` as its first argument.

    A store that is not there is made only for a command that also has the option --model.
    """

    @functools.wraps(command)
    def run(
        *args: Any,
        store: str,
        server: str | None,
        token: str | None,
        token_file: Path | None,
        ca: Path | None,
        **kw: Any,
    ) -> Any:
        from signalbook.cli.target import open_target

        context = click.get_current_context()
        said = context.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE
        if server and said and context.get_parameter_source("server") is click.core.ParameterSource.COMMANDLINE:
            raise UsageError("--store and --server name two different catalogs; give one of them")
        address = None if said else server
        secret = read_secret("--token", token, token_file)
        with open_target(store, address, token=secret, ca=ca, model=kw.pop("model", None)) as target:
            return command(target, *args, **kw)

    decorated: Any = run
    for option in (ca, _TOKEN_FILE, _TOKEN, _SERVER, store):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def read_secret(name: str, value: str | None, file: Path | None) -> str:
    """A token given as a value or as a file, or the empty text."""
    if value:
        return value
    if file is None:
        return ""
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise UsageError(f"{name}-file '{file}' is empty; its first line must be the token")
    return lines[0].strip()
