"""The command replicate: what one catalog has authority over, copied to another.

Rule: `pull`, `push` and `follow` are the same way from a source to a target; they differ in who is asked for a token by
default, and in whether they end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import orjson

from signalbook.cli import options
from signalbook.cli.output import Exit, print_json, say
from signalbook.errors import UsageError
from signalbook.replication.peers import Answer, HttpPeer, Peer, refusal
from signalbook.replication.replicate import Replication
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.target import ReplicationReport
from signalbook.replication.webhook import check_place

__all__ = ["replicate"]


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
    for option in (
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
        click.option("--to-token-file", type=click.Path(path_type=Path), metavar="FILE", help="The same from a file."),
        click.option(
            "--to-token", metavar="TOKEN", envvar="SIGNALBOOK_TO_TOKEN", show_envvar=True, help="For writing."
        ),
        click.option(
            "--from-token-file", type=click.Path(path_type=Path), metavar="FILE", help="The same from a file."
        ),
        click.option(
            "--from-token", metavar="TOKEN", envvar="SIGNALBOOK_FROM_TOKEN", show_envvar=True, help="For reading."
        ),
        click.option("--to", "target", required=True, metavar="URL|STORE", help="The catalog to write to."),
        click.option("--from", "source", required=True, metavar="URL|STORE", help="The catalog to read."),
    ):
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
        return _tell(replication.run(compare=compare), as_json=as_json)


@replicate.command(
    short_help="The same, from the source's side.",
    epilog="Example: signalbook replicate push --from signalbook.db --to https://hub.example.com",
)
@_COMPARE
@_shared
def push(compare: bool, as_json: bool, **named: Any) -> int:
    """Write what changed at a source, such as a store of this machine, to a target."""
    with _replication(**named) as replication:
        return _tell(replication.run(compare=compare), as_json=as_json)


@replicate.command(
    short_help="Keep a target up to date.",
    epilog="Example: signalbook replicate follow --from https://a.example.com --to http://127.0.0.1:8080",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to compare a source that has no change feed, and to poll one that sends events.",
)
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

    With --listen the source is subscribed to, which takes a token for writing there. Where it cannot call here, its
    change feed is waited at.
    """
    if sink and not listen:
        raise UsageError("--sink is the address at which the source reaches --listen; give --listen too")
    if listen:
        check_place(listen)
    with _replication(**named) as replication, ExitStack() as stack:
        if listen and not replication.source.address:
            raise UsageError("--listen needs a source that is a server; a store does not send events")
        told: object = None
        reports = replication.follow(every, listen=(listen, sink) if listen else None)
        stack.callback(getattr(reports, "close", lambda: None))
        for report in reports:
            wrong = (report.problems, report.failure) if report.problems or report.failure else None
            if report.changed or (wrong is not None and wrong != told):
                _tell(report, as_json=as_json)
            told = wrong


def _tell(report: ReplicationReport, *, as_json: bool) -> int:
    if as_json:
        print_json(report.to_dict(), compact=True)
    else:
        for problem in report.problems.values():
            say(f"{problem.code}: {problem.path}: {problem.message}")
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
        origin = _peer(source, tokens[0], ca, stack, must_exist=True)
        copy = _peer(target, tokens[1], ca, stack, must_exist=False)
        yield Replication(
            origin, copy, chosen, authority=authority, keep_both=on_conflict == "keep-both", apis=(from_api, to_api)
        )


def _peer(place: str, token: str, ca: Path | None, stack: ExitStack, *, must_exist: bool) -> Peer:
    if place.lower().startswith(("http://", "https://")):
        root = place.rstrip("/").removesuffix("/messagecatalog")  # also where the 0.1 API itself is named
        peer = HttpPeer(root, token, ca)
        stack.callback(peer.close)
        return peer
    if must_exist:
        from signalbook.cli.target import check_exists

        check_exists(place)
    return _LocalPeer(place, stack)


class _LocalPeer:
    """A catalog in a store that this process opens."""

    address = ""

    def __init__(self, store: str, stack: ExitStack) -> None:
        from signalbook import app
        from signalbook.settings import Settings

        self._name = store
        self._service = app.service(Settings(store=store, deliver=False))
        stack.callback(self._service.close)

    def request(
        self, method: str, path: str, body: Any = None, wait: float = 0, media: str = "application/json"
    ) -> Answer:
        from signalbook.server import problems
        from signalbook.server.http import Request

        plain, _, query = path.partition("?")
        content = b"" if body is None else orjson.dumps(body)
        try:
            response = self._service.answer(Request(method, plain, query, {}, content, ""))
        except Exception as error:
            response = problems.respond(error, plain)
        if response.status >= 300:
            raise refusal(self._name, path, response.status, response.body)
        value = orjson.loads(response.body) if response.body else None
        return Answer(value, {name.lower(): text for name, text in response.headers})
