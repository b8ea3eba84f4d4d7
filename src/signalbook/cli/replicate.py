"""The commands that copy a catalog: replicate, between catalogs; import and export, from and to another registry.

Rule: `pull`, `push` and `follow` are the same way from a source to a target; they differ in who is asked for a token by
default, and in whether they end. `import confluent` and `export confluent` are one way too, in two directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from signalbook.cli import options
from signalbook.cli.output import Exit, print_json, say
from signalbook.client import Client, Refusal, RemoteError, Transport, connect, is_address, transport_to
from signalbook.errors import UsageError
from signalbook.replication.confluent import ROOT, ConfluentCopy, ConfluentPeer
from signalbook.replication.replicate import Replication
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.target import ReplicationReport
from signalbook.replication.webhook import check_place

__all__ = ["export_confluent", "import_", "replicate"]


@click.group(
    short_help="Copy a catalog to another and keep it up to date.",
    epilog="Example: signalbook replicate pull --from https://a.example.com --to signalbook.db",
)
def replicate() -> None:
    """Copy what one catalog has authority over to another: once (pull, push) or as it changes (follow).

    What is copied is read-only at the target and names its authority. What the target owns itself is never overwritten:
    conflicts are reported. A run may be interrupted at any time; the next goes on where it ended.
    """


_APIS = click.Choice(["auto", "xregistry", "0.1"])


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that all of them have."""
    shared: tuple[options.Decorator, ...] = (
        options.as_json,
        click.option("--to-api", type=_APIS, default="auto", show_default=True, help="What the target speaks."),
        click.option("--from-api", type=_APIS, default="auto", show_default=True, help="What the source speaks."),
        click.option(
            "--on-conflict",
            type=click.Choice(["report", "keep-both"]),
            default="report",
            show_default=True,
            help="If two origins have a resource of one name: report the second, or keep both under different names.",
        ),
        options.ca,
        click.option(
            "--authority", default="", metavar="URI", help="The authority of the source, if it is not its address."
        ),
        click.option(
            "--map-group", multiple=True, metavar="A=B", help="Name the group A of the source B at the target."
        ),
        click.option(
            "--scope", default="/", show_default=True, metavar="XID", help="Copy only this and what is below."
        ),
        *reversed(options.secret_options("to-token", "The token to send to the target; it has to allow writing.")),
        *reversed(options.secret_options("from-token", "The token to send to the source.")),
        click.option("--to", "target", required=True, metavar="URL|STORE", help="The catalog to write to."),
        click.option("--from", "source", required=True, metavar="URL|STORE", help="The catalog to read."),
    )
    for option in shared:
        command = option(command)
    return command


_COMPARE = click.option("--compare", is_flag=True, help="Read everything, regardless of cursor and epochs.")


@replicate.command(
    short_help="Bring a target up to date, once.",
    epilog="Example: signalbook replicate pull --from https://a.example.com --to signalbook.db",
)
@_COMPARE
@_shared
def pull(compare: bool, as_json: bool, **named: Any) -> int:
    """Read what changed at a source, and write it to a target."""
    with _replication(**named) as replication:
        return _print_report(replication.run(compare=compare), named["on_conflict"], as_json=as_json)


@replicate.command(
    short_help="The same, from the source's side.",
    epilog="Example: signalbook replicate push --from signalbook.db --to https://hub.example.com",
)
@_COMPARE
@_shared
def push(compare: bool, as_json: bool, **named: Any) -> int:
    """Write what changed at a source, such as a store of this machine, to a target."""
    with _replication(**named) as replication:
        return _print_report(replication.run(compare=compare), named["on_conflict"], as_json=as_json)


def _every(words: str) -> options.Decorator:
    return click.option(
        "--every", type=click.FloatRange(min=0.1), default=30.0, show_default=True, metavar="SECONDS", help=words
    )


@replicate.command(
    short_help="Keep a target up to date.",
    epilog="Example: signalbook replicate follow --from https://a.example.com --to http://127.0.0.1:8080",
)
@_every("How often to compare a source that has no change feed, and to poll one that sends events.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Subscribe at the source and receive its events at this address; otherwise poll its change feed.",
)
@click.option(
    "--sink", metavar="URL", default="", help="The address at which the source reaches --listen, if it is another."
)
@_shared
def follow(every: float, listen: str | None, sink: str, as_json: bool, **named: Any) -> None:
    """Write what changes at a source to a target as it changes, until stopped (Ctrl+C).

    With --listen the source is subscribed to, which takes a token for writing there. If the source
    cannot reach that address, its change feed is polled instead.
    """
    if sink and not listen:
        raise UsageError("--sink is the address at which the source reaches --listen; give --listen too")
    if listen:
        check_place(listen)
    with _replication(**named) as replication, ExitStack() as stack:
        if listen and not replication.source.address:
            raise UsageError("--listen needs a source that is a server; a store does not send events")
        reported: object = None
        reports = replication.follow(every, listen=(listen, sink) if listen else None)
        stack.callback(getattr(reports, "close", lambda: None))
        for report in reports:
            wrong = (report.problems, report.failure) if report.problems or report.failure else None
            if report.changed or (wrong is not None and wrong != reported):
                _print_report(report, named["on_conflict"], as_json=as_json)
            reported = wrong


def _print_report(report: ReplicationReport, on_conflict: str, *, as_json: bool) -> int:
    if as_json:
        print_json(report.to_dict(), compact=True)
    else:
        for problem in report.problems.values():
            say(f"{problem.code}: {problem.path}: {problem.message}")
        conflicts = (one.path for one in report.problems.values() if one.code == "conflict")
        if on_conflict == "report" and any(path.count("/") == 4 for path in conflicts):
            say("signalbook: --on-conflict keep-both keeps the source's beside the target's, under a name of its own")
        for xid, words in report.notes:
            say(f"note: {xid}: {words}")
        counted = ", ".join(f"{number} {outcome}" for outcome, number in sorted(report.outcomes.items()))
        say(f"signalbook: {report.failure or counted or 'nothing changed'}")
    return Exit.REFUSED if report.problems or report.failure else Exit.OK


@contextmanager
def _replication(
    source: str, target: str, scope: str, map_group: tuple[str, ...], authority: str, from_token: str | None,
    from_token_file: Path | None, to_token: str | None, to_token_file: Path | None, on_conflict: str, ca: Path | None,
    from_api: str, to_api: str,
) -> Iterator[Replication]:  # fmt: skip
    chosen = ReplicationScope.parse(scope, map_group)
    tokens = (
        options.read_secret("--from-token", from_token, from_token_file),
        options.read_secret("--to-token", to_token, to_token_file),
    )
    with ExitStack() as stack:
        origin = stack.enter_context(_open_peer(source, tokens[0], ca, must_exist=True))
        copy = stack.enter_context(_open_peer(target, tokens[1], ca, must_exist=False))
        try:
            yield Replication(
                origin, copy, chosen, authority=authority, keep_both=on_conflict == "keep-both", apis=(from_api, to_api)
            )
        except Refusal as error:  # of two catalogs: the words say which of them refused
            raise RemoteError(str(error), status=error.status) from None


def _open_peer(place: str, token: str, ca: Path | None, *, must_exist: bool) -> Client:
    if is_address(place):
        root = place.rstrip("/").removesuffix("/messagecatalog")  # also where the 0.1 API itself is named
        return connect(root, token, ca)
    from signalbook.app import peer_client

    if must_exist:
        options.check_exists(place)
    return peer_client(place)


# ---- from and to a registry that speaks Confluent's API


@click.group(
    "import",
    short_help="Copy another registry to this catalog.",
    epilog="Example: signalbook import confluent http://127.0.0.1:8081 --store signalbook.db",
)
def import_() -> None:
    """Copy a registry of another kind to this catalog, and keep the copy up to date."""


def _confluent(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what both directions have."""
    words = "What to send to the registry at URL: a user with a password, or a token."
    credentials = options.secret_options("credentials", words, "USER:PASSWORD|TOKEN")
    mirror = "Also delete for good, at the target, what the source does not have, and replace what it has otherwise."
    shared: tuple[options.Decorator, ...] = (
        options.as_json, *reversed(credentials), click.option("--mirror", is_flag=True, help=mirror),
        click.argument("url"),
    )  # fmt: skip
    for option in shared:
        command = option(command)
    return command


@import_.command(
    "confluent",
    short_help="Copy a Schema Registry, with every id.",
    epilog="Example: signalbook import confluent http://127.0.0.1:8081 --store signalbook.db",
)
@click.option("--follow", "follows", is_flag=True, help="Keep the copy up to date, and READONLY, until stopped.")
@_every("How often --follow asks the registry.")
@_confluent
@options.on_every_path(makes_store=True)
def import_confluent(
    target: Transport, url: str, ca: Path | None, follows: bool, every: float, mirror: bool, as_json: bool, **named: Any
) -> int:
    """Copy the Schema Registry at URL, one that speaks Confluent's API, to this catalog's own (/confluent).

    Contexts, subjects and versions, the deleted ones too, come with their ids and numbers, and so do references,
    metadata, rules, compatibility levels and modes. At the end every id is compared. What is there already is not
    written again, so the command can be run again at any time: it goes on where it was broken off.

    With --follow it goes on until stopped (Ctrl+C), and this catalog's API is READONLY: an id that it gave itself could
    be given to another schema at the source. Run it once more without --follow to take over the modes of the source.
    """
    with _registry(url, ca, **named) as source:
        ours = ConfluentPeer(target, ROOT)
        copy = ConfluentCopy(source, ours, mirror=mirror, guarded=follows, progress=_say_progress)
        if not follows:
            return _print_report(copy.run(), "", as_json=as_json)
        reported: object = None
        for report in copy.follow(every):
            wrong = (report.problems, report.failure) if report.problems or report.failure else None
            if report.outcomes.keys() - {"conflict", "refused"} or (wrong is not None and wrong != reported):
                _print_report(report, "", as_json=as_json)
            reported = wrong
    return Exit.OK


@click.command(
    "confluent",
    short_help="Copy the schemas to a Schema Registry, with every id.",
    epilog="Example: signalbook export confluent http://127.0.0.1:8081 --store signalbook.db",
)
@_confluent
@options.on_every_path(makes_store=False)
def export_confluent(source: Transport, url: str, ca: Path | None, mirror: bool, as_json: bool, **named: Any) -> int:
    """Copy what this catalog has at /confluent to the Schema Registry at URL, one that speaks Confluent's API.

    It is the way of `import confluent` in the other direction. The registry has to allow the mode IMPORT, in which each
    subject is while it is written; its modes are then those of this catalog.
    """
    with _registry(url, ca, **named) as target:
        copy = ConfluentCopy(ConfluentPeer(source, ROOT), target, mirror=mirror, progress=_say_progress)
        return _print_report(copy.run(), "", as_json=as_json)


@contextmanager
def _registry(
    url: str, ca: Path | None, credentials: str | None, credentials_file: Path | None
) -> Iterator[ConfluentPeer]:
    secret = options.read_secret("--credentials", credentials, credentials_file)
    with closing(transport_to(url, "", ca)) as transport:
        _check_root(url)
        yield ConfluentPeer(transport, credentials=secret)


def _check_root(url: str) -> None:
    """Refuse a URL that cannot be the root of a registry."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise UsageError("the URL of a registry has no credentials in it; give them with --credentials")
    if parts.query or parts.fragment:
        raise UsageError("the URL of a registry ends with its path; leave out what begins with '?' or '#'")


def _say_progress(words: str) -> None:
    say(f"signalbook: {words}")
