"""The command serve: a registry over HTTP.

Rule 1: this module only turns options into `Settings`; what cannot work is refused there.
Rule 2: a token that is given and empty is a variable that was not set, and no wish for a server without tokens.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from signalbook.cli import options
from signalbook.cli.options import read_secret, secret_options
from signalbook.errors import UsageError
from signalbook.server.access import tokens
from signalbook.settings import MEBIBYTE, OPTIONAL_PATHS, Settings
from signalbook.spec import versions

__all__ = ["serve"]

_UNITS = {"": 1, "k": 1024, "m": MEBIBYTE, "g": 1024 * MEBIBYTE}


def size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Bytes from a text such as 16m; k, m and g are 1024, 1024² and 1024³."""
    number = text.lower().removesuffix("b").removesuffix("i")
    unit = number[-1:] if number[-1:] in ("k", "m", "g") else ""
    digits = number.removesuffix(unit)
    if not digits.isdigit():
        raise click.BadParameter(f"'{text}' is not a size; write bytes, or a number with k, m or g, such as 16m")
    return int(digits) * _UNITS[unit]


def _secret(name: str, value: str | None, file: Path | None) -> str:
    """The tokens of an option, its file or the environment; the empty text where none of them is given."""
    upper = "SIGNALBOOK_" + name.upper().replace("-", "_")
    if value is None and file is None:  # click takes a variable that is empty for none
        for variable in (upper, f"{upper}_FILE"):
            if variable in os.environ:
                raise UsageError(f"{variable} is set but empty; set a value, or unset it to serve without this token")
    secret = read_secret(f"--{name}", value, file) if value != "" else ""
    if not tokens(secret) and (value is not None or file is not None):
        raise UsageError(f"--{name} is given but empty; give a token, or leave the option out")
    return secret


_READ_TOKEN, _READ_TOKEN_FILE = secret_options("read-token", "A client that reads must send this token.")
_WRITE_TOKEN, _WRITE_TOKEN_FILE = secret_options("write-token", "A client that writes must send this token.")


@click.command(
    short_help="Serve a registry over HTTP.", epilog="Example: signalbook serve --store signalbook.db --port 8080"
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    metavar="N",
    help="The port to listen at; 0 takes a free one.",
)
@click.option("--registry-id", default="signalbook", show_default=True, metavar="ID", help="The registry's own id.")
@options.store
@options.model
@click.option(
    "--specversion",
    metavar="VERSION",
    default=versions.DEFAULT.name,
    show_default=True,
    help="The xRegistry version to speak where a request names none.",
)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Processes.")
@click.option(
    "--store-connections",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="Connections to PostgreSQL that a worker reads by; it has one more, which writes.",
)
@_READ_TOKEN
@_READ_TOKEN_FILE
@_WRITE_TOKEN
@_WRITE_TOKEN_FILE
@click.option("--read-only", is_flag=True, help="Refuse every write.")
@click.option("--open", "is_open", is_flag=True, help="Listen at a public address even without a token.")
@click.option("--cert", type=click.Path(path_type=Path), metavar="FILE", help="A certificate (PEM): serve HTTPS.")
@click.option("--key", type=click.Path(path_type=Path), metavar="FILE", help="The certificate's key (PEM).")
@click.option(
    "--max-body", callback=size, default="16m", show_default=True, metavar="SIZE", help="The largest request body."
)
@click.option(
    "--max-steps",
    type=int,
    default=10_000_000,
    show_default=True,
    metavar="STEPS",
    help="The most work for one request; a step is some microseconds.",
)
@click.option("--base-url", default="", metavar="URL", help="The registry's public address, if it is behind a proxy.")
@click.option("--trust-proxy", is_flag=True, help="Take that address from the proxy's X-Forwarded- headers instead.")
@click.option(
    "--body-timeout",
    type=float,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a client may take to send its request.",
)
@click.option(
    "--head-timeout",
    type=float,
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a connection may be idle, and a client may take to send the head of a request.",
)
@click.option(
    "--answer-timeout",
    type=float,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a client may leave an answer unread; it has a second more for every 16 KiB that it took.",
)
@click.option(
    "--max-answers",
    callback=size,
    default="1g",
    show_default=True,
    metavar="SIZE",
    help="What the large answers that a worker is sending may take in temporary files.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="Connections that a worker holds at a time; further ones wait.",
)
@click.option(
    "--max-client-connections",
    type=click.IntRange(min=0),
    default=2048,
    show_default=True,
    metavar="N",
    help="Connections that one address may have to a worker; 0 for no such limit, behind a proxy.",
)
@click.option(
    "--max-waiting",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Requests of one client that may wait for changes at a worker, as long polls or streams.",
)
@click.option(
    "--include-from",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Let a model that a client sends include documents of this folder; without it nothing is included.",
)
@click.option(
    "--trust-unknown",
    is_flag=True,
    help="Accept schemas whose compatibility cannot be decided; otherwise they are refused.",
)
@options.schemas
@click.option(
    "--without",
    type=click.Choice(sorted(OPTIONAL_PATHS)),
    multiple=True,
    help="Leave out a path of the server itself, so that a model may use its name for a group type; may be repeated.",
)
@click.option(
    "--confluent-root",
    is_flag=True,
    help="Serve the API of Confluent's Schema Registry at the root too, not only below /confluent.",
)
@click.option(
    "--confluent-group",
    default="confluent",
    show_default=True,
    metavar="ID",
    help="The schema group that is the default context of that API.",
)
@click.option(
    "--confluent-contexts",
    type=click.Choice(["named", "all"]),
    default="named",
    show_default=True,
    help="Which other schema groups are contexts of it: those that say so, or all.",
)
@click.option(
    "--confluent-associations",
    type=click.Choice(["catalog", "stored"]),
    default="catalog",
    show_default=True,
    help="Let the catalog say which subject a topic belongs to, or only what clients stored.",
)
@click.option(
    "--keep-changes",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="How long changes are kept for /changes; 0 keeps them all.",
)
@click.option(
    "--allow-sink",
    multiple=True,
    metavar="NETWORK",
    help="Allow sinks in this network, although it is not public; may be repeated.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST",
    help="Answer requests for this Host too, where only this machine is served; may be repeated.",
)
@click.option("--log/--no-log", default=True, show_default=True, help="Log each request as a line on standard error.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The format of the request log.",
)
def serve(
    host: str,
    port: int,
    registry_id: str,
    store: str,
    model: str,
    specversion: str,
    workers: int,
    store_connections: int,
    read_token: str | None,
    read_token_file: Path | None,
    write_token: str | None,
    write_token_file: Path | None,
    read_only: bool,
    is_open: bool,
    cert: Path | None,
    key: Path | None,
    max_body: int,
    max_steps: int,
    base_url: str,
    trust_proxy: bool,
    body_timeout: float,
    head_timeout: float,
    answer_timeout: float,
    max_answers: int,
    max_connections: int,
    max_client_connections: int,
    max_waiting: int,
    include_from: Path | None,
    trust_unknown: bool,
    schemas: str,
    without: tuple[str, ...],
    confluent_root: bool,
    confluent_group: str,
    confluent_contexts: str,
    confluent_associations: str,
    keep_changes: float,
    allow_sink: tuple[str, ...],
    allow_host: tuple[str, ...],
    log: bool,
    log_format: str,
) -> None:
    """Serve a registry over HTTP until it is stopped (Ctrl+C or SIGTERM); requests that have begun are finished."""
    settings = Settings(
        store=store,
        registryid=registry_id,
        model=model,
        specversion=specversion,
        host=host,
        port=port,
        workers=workers,
        store_connections=store_connections,
        read_token=_secret("read-token", read_token, read_token_file),
        write_token=_secret("write-token", write_token, write_token_file),
        read_only=read_only,
        open=is_open,
        cert=cert,
        key=key,
        max_body=max_body,
        max_steps=max_steps,
        base_url=base_url,
        trust_proxy=trust_proxy,
        body_timeout=body_timeout,
        head_timeout=head_timeout,
        answer_timeout=answer_timeout,
        max_answers=max_answers,
        max_connections=max_connections,
        max_client_connections=max_client_connections,
        max_waiting=max_waiting,
        include_from=include_from,
        trust_unknown=trust_unknown,
        schemas=schemas,
        without=frozenset(without),
        confluent_root=confluent_root,
        confluent_group=confluent_group,
        confluent_contexts=confluent_contexts,
        confluent_associations=confluent_associations,
        keep_changes=keep_changes,
        allow_sinks=allow_sink,
        allow_hosts=allow_host,
        log=log,
        log_format=log_format,
    ).checked()
    from signalbook import app

    app.serve(settings)
