"""The options that several commands share, each written once, and the registry that they name.

Rule: an option that means the same has the same name, the same environment variable and the same words everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import click

from signalbook.client import (
    MEBIBYTE,
    Client,
    RemoteError,
    ReplyBounds,
    Transport,
    Unanswered,
    connect,
    transport_to,
)
from signalbook.errors import StoreError, UsageError
from signalbook.spec import versions

__all__ = [
    "as_json",
    "ca",
    "check_exists",
    "model",
    "on_every_path",
    "on_registry",
    "read_secret",
    "schemas",
    "secret_options",
    "specversion",
    "store",
    "token",
    "token_file",
]

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_STORE = "signalbook.db"
# A person who waits can stop the command; what is read goes to a terminal, a pipe or a file.
_BOUNDS = ReplyBounds(timeout=120.0, largest=1024 * MEBIBYTE)


def _check_store(context: click.Context, parameter: click.Parameter, store: str) -> str:
    _refuse_folder(store)
    return store


def _refuse_folder(store: str) -> None:
    path = Path(store.removeprefix("sqlite:"))
    if "://" not in store and path.is_dir():
        raise UsageError(f"'{path}' is a folder; a store is a file: name one in it, such as {path}/signalbook.db")


def check_exists(store: str) -> None:
    """Refuse a file that is not there, so that a mistake in its name does not make a new store."""
    if "://" in store or store.startswith("memory:"):
        return
    _refuse_folder(store)
    path = Path(store.removeprefix("sqlite:"))
    if not path.is_file():
        raise StoreError(f"there is no store '{path}'; make one with: signalbook load FILE --store {path}")


store = click.option(
    "--store",
    callback=_check_store,
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
token = click.option(
    "--token", metavar="TOKEN", envvar="SIGNALBOOK_TOKEN", show_envvar=True, help="The token to send to the server."
)
token_file = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the token from the first line of a file.",
)


# In a function with parameters of these names.
_CA, _STORE, _TOKEN, _TOKEN_FILE = ca, store, token, token_file


def on_registry(command: Command) -> Command:
    """Give a command the options --store, --server, --token and --ca, and the `Client` as its first argument.

    A store that is not there is made only for a command that also has the option --model.
    """

    def opened(store: str, server: str, secret: str, ca: Path | None, kw: dict[str, Any]) -> Client:
        model = kw.pop("model", None)
        return connect(server, secret, ca, _BOUNDS) if server else _open_store(store, model)

    return _with_options(command, opened)


def on_every_path(*, makes_store: bool) -> Callable[[Command], Command]:
    """The same with the `Transport` as the first argument, for which the registry has every path of a server.

    The command also gets `ca`, as it may ask another server too.
    """

    def opened(store: str, server: str, secret: str, ca: Path | None, kw: dict[str, Any]) -> Transport:
        kw["ca"] = ca
        if server:
            return transport_to(server, secret, ca, _BOUNDS)
        from signalbook.app import peer_transport

        if not makes_store:
            check_exists(store)
        return peer_transport(store)

    return lambda command: _with_options(command, opened)


def _with_options(command: Command, opened: Callable[..., Client | Transport]) -> Command:
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
        context = click.get_current_context()
        said = context.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE
        if server and said and context.get_parameter_source("server") is click.core.ParameterSource.COMMANDLINE:
            raise UsageError("--store and --server name two different catalogs; give one of them")
        secret = read_secret("--token", token, token_file)
        with closing(opened(store, "" if said else server or "", secret, ca, kw)) as registry:
            try:
                return command(registry, *args, **kw)
            except Unanswered as error:
                raise RemoteError(f"{error}; start one with: signalbook serve") from None

    decorated: Any = run
    for option in (_CA, _TOKEN_FILE, _TOKEN, _SERVER, _STORE):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _open_store(store: str, model: str | None) -> Client:
    """The client of a store, which is opened, and if need be made, when it is first used: a mistake leaves none."""
    from signalbook.app import store_client

    if model is None:
        check_exists(store)
    return store_client(store, model or "builtin")


def secret_options(name: str, words: str, metavar: str = "TOKEN") -> tuple[Decorator, Decorator]:
    """The options of a token of this name: its value, and the file whose first line it is."""
    variable = f"SIGNALBOOK_{name.upper().replace('-', '_')}"
    value = click.option(f"--{name}", metavar=metavar, envvar=variable, show_envvar=True, help=words)
    file = click.option(
        f"--{name}-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        envvar=f"{variable}_FILE",
        show_envvar=True,
        help="The same from the first line of a file.",
    )
    return value, file


def read_secret(name: str, value: str | None, file: Path | None) -> str:
    """A token given as a value or as a file, or the empty text."""
    if value:
        return value
    if file is None:
        return ""
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise UsageError(f"{name}-file '{file}' is empty; its first line must be what {name} takes")
    return lines[0].strip()
