"""The commands on single entities and on the whole: get, put, delete, export.

Rule 1: an argument PATH is what comes after the registry's address: an xid, a collection, or a root path like /model.
Rule 2: a collection is printed whole; where an option cuts it, a line on standard error says that there is more.
"""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import orjson
from click.core import ParameterSource

from signalbook.cli import options
from signalbook.cli.output import print_bytes, print_json, print_text, say
from signalbook.client import Client, document_type
from signalbook.errors import UsageError
from signalbook.sources import read_documents
from signalbook.sources.documents import file_bytes, parse_value
from signalbook.spec import versions

__all__ = ["delete", "export", "get", "put"]

# What may stand unescaped in a flag's value; `&`, `#`, `+` and `%` may not.
_PLAIN = "=<>!*,.[]'\"/:@$()-_~"


def address(path: str, flags: Iterable[tuple[str, str | None]]) -> str:
    """The path with its flags; a flag whose value is the empty text stands alone, one that is None is left out.

    >>> address("messagegroups/g", [("inline", "messages"), ("doc", ""), ("sort", None)])
    '/messagegroups/g?inline=messages&doc'
    """
    said = [f"{name}={quote(value, safe=_PLAIN)}" if value else name for name, value in flags if value is not None]
    joined = "/" + path.lstrip("/")
    return joined + ("&" if "?" in joined else "?") + "&".join(said) if said else joined


@click.command(
    short_help="Print an entity or a collection.",
    epilog="Example: signalbook get /messagegroups/fleet --inline messages --filter 'messages.labels.team=a'",
)
@click.argument("path", default="/")
@click.option(
    "--inline", metavar="PATHS", multiple=True, help="Show these collections or attributes in full; * for all."
)
@click.option(
    "--filter", "filters", metavar="CLAUSES", multiple=True, help="Only what matches; give it twice for 'or'."
)
@click.option("--sort", metavar="ATTRIBUTE[=asc|desc]", help="The order of a collection.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most this many entries of a collection; without it, all of them.",
)
@click.option("--doc", is_flag=True, help="The document view: relative links, nothing twice.")
@click.option("--collections", is_flag=True, help="Show only the collections of an entity.")
@click.option("--binary", is_flag=True, help="Documents in base64.")
@click.option("--document", is_flag=True, help="The bytes of a resource's document instead of its metadata.")
@options.specversion
@options.as_json
@options.on_registry
def get(
    client: Client,
    path: str,
    inline: tuple[str, ...],
    filters: tuple[str, ...],
    sort: str | None,
    limit: int | None,
    doc: bool,
    collections: bool,
    binary: bool,
    document: bool,
    specversion: str | None,
    as_json: bool,
) -> None:
    """Print what is at PATH."""
    flags: list[tuple[str, str | None]] = [
        ("inline", ",".join(inline) or None),
        *(("filter", clauses) for clauses in filters),
        ("sort", sort),
        ("limit", str(limit) if limit else None),
        ("doc", "" if doc else None),
        ("collections", "" if collections else None),
        ("binary", "" if binary else None),
        ("specversion", specversion),
    ]
    if document:
        print_bytes(client.read_document(address(path, flags)))
    else:
        shown = client.show(address(path, flags))
        print_text(shown.text, compact=as_json)
        if shown.following:
            counted = f" ({shown.count:,} entries in all)" if shown.count is not None else ""
            say(
                f"signalbook: there is more{counted}; leave out the limit, or go on with {shlex.quote(shown.following)}"
            )


@click.command(
    short_help="Write an entity.",
    epilog="Example: signalbook put /messagegroups/fleet/messages/moved moved.json --server http://127.0.0.1:8080\n\n"
    "Example: signalbook put /schemagroups/fleet/schemas/position position.json --document",
)
@click.argument("path")
@click.argument("file", default="-")
@click.option("--data", metavar="JSON", help="The entity itself instead of a FILE.")
@click.option("--patch", "method", flag_value="PATCH", help="Change only the attributes that are given.")
@click.option("--post", "method", flag_value="POST", help="Add the entries of a map to a collection.")
@click.option("--document", is_flag=True, help="FILE is a resource's document, byte for byte, and not its metadata.")
@click.option(
    "--content-type",
    metavar="TYPE",
    help="The document's media type; by default application/json for a .json file, else none.",
)
@click.option("--epoch", type=int, metavar="N", help="Refuse if the entity's epoch has changed meanwhile.")
@options.model
@options.specversion
@options.as_json
@options.on_registry
def put(
    client: Client,
    path: str,
    file: str,
    data: str | None,
    method: str | None,
    document: bool,
    content_type: str | None,
    epoch: int | None,
    specversion: str | None,
    as_json: bool,
) -> None:
    """Write what FILE says (JSON or YAML; - is standard input) to PATH, and print what is there now.

    With --document the bytes of FILE become the document of the resource or version at PATH, whose other attributes
    stay as they are.
    """
    flags = [("specversion", specversion)]
    if document:
        if data is not None or method is not None:
            raise UsageError("--document writes the bytes of FILE; --data, --patch and --post do not go with it")
        kind = _media_type(file, content_type)
        written = client.write_document(address(path.removesuffix("$details"), flags), _file_bytes(file), kind, epoch)
    else:
        if content_type is not None:
            raise UsageError("--content-type is for documents; add --document, or set the attribute contenttype")
        body = _entity(file, data)
        if looks_like_schema(body) and _is_document(client, path, body):
            say(f"signalbook: this looks like a JSON Schema, but is written as metadata of {path}; use --document")
        written = client.write(
            method or "PUT", address(path, flags), body if epoch is None else {**body, "epoch": epoch}
        )
    print_text(written, compact=as_json)


@click.command(
    short_help="Delete an entity or a collection.",
    epilog="Example: signalbook delete /messagegroups/fleet/messages/moved --epoch 3",
)
@click.argument("path")
@click.option("--epoch", type=int, metavar="N", help="Refuse if the entity's epoch has changed meanwhile.")
@options.on_registry
def delete(client: Client, path: str, epoch: int | None) -> None:
    """Delete the entity, or every entity of the collection, at PATH."""
    client.write("DELETE", address(path, [("epoch", None if epoch is None else str(epoch))]))
    say(f"deleted {path}")


class _Export(click.Group):
    """A command by itself, and a group of those that export to somewhere, which are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["confluent"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "confluent":
            return None
        from signalbook.cli.replicate import export_confluent

        return export_confluent


def _by_itself(command: Callable[..., None]) -> Callable[..., None]:
    """The command where none of the group is given, which has the same options itself."""

    @functools.wraps(command)
    def run(**named: Any) -> None:
        context = click.get_current_context()
        part = context.invoked_subcommand
        if part is None:
            command(**named)
        elif any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in context.params):
            raise UsageError(f"put the options behind the whole command: signalbook export {part} URL --store …")

    return run


@click.group(
    cls=_Export,
    invoke_without_command=True,
    short_help="Print the whole registry, or copy it to another.",
    epilog="Example: signalbook export --store signalbook.db --output catalog.xreg.json",
)
@_by_itself
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write to a file."
)
@click.option(
    "--specversion",
    metavar="VERSION",
    default=None,
    help=f"The version to write: {', '.join(versions.VERSIONS)}, or an older one: {', '.join(versions.OLDER)}.",
)
@options.as_json
@options.on_registry
def export(client: Client, output: Path | None, specversion: str | None, as_json: bool) -> None:
    """Print the whole registry as one document, which `load --with-model --with-metadata` takes back.

    The documents of schemas come back byte for byte: those that JSON would not carry so stand as text or in base64.

    In 0.1 it is the message groups alone, one document or a list of several, and each definition has its log of
    versions, which `load` brings back. What breaks a rule of 0.1 or 0.5-wip, which `load` refuses, is reported on
    standard error.
    """
    document = client.export(specversion)
    older = versions.find_older(specversion or "")
    if older is not None and older.logged and (left := _left_out(client.get("/"))):
        say(f"signalbook: a catalog of {older} has message groups alone; left out: {', '.join(left)}")
    if output is None:
        print_json(document, compact=as_json)
    else:
        output.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        say(f"wrote {output}")
    if older is not None:
        _report_broken_rules(document, str(older))


def _report_broken_rules(document: Any, older: str) -> None:
    """Say what of an export is against the rules of its dialect, which has others than 1.0."""
    from signalbook.dialects.checks import check
    from signalbook.spec.dialects import DIALECTS

    for one in check(document, DIALECTS[older]):
        say(f"signalbook: changed: {one.path} is against the rules of {older}: {one.message}")


def _left_out(registry: dict[str, Any]) -> list[str]:
    """The groups of a registry that are not message groups, counted by their types."""
    plurals = [name.removesuffix("url") for name in registry if f"{name.removesuffix('url')}count" in registry]
    counts = {plural: registry[f"{plural}count"] for plural in plurals if plural != "messagegroups"}
    return [f"{count} {plural}" for plural, count in counts.items() if count]


def _entity(file: str, data: str | None) -> dict[str, Any]:
    if data is not None:
        if file != "-":
            raise UsageError(f"the entity is given twice, by --data and by '{file}'; leave one out")
        body = parse_value(data.encode(errors="surrogateescape"), "--data", yaml_allowed=False)
        if not isinstance(body, dict):
            raise UsageError("--data must be a JSON object")
        return body
    _announce(file)
    return next(read_documents(file)).content


def _file_bytes(file: str) -> bytes:
    _announce(file)
    return sys.stdin.buffer.read() if file == "-" else file_bytes(Path(file))


def _announce(file: str) -> None:
    if file == "-" and sys.stdin.isatty():
        say("reading from standard input; end with Ctrl+D")


def _media_type(file: str, given: str | None) -> str | None:
    if given is None:
        return "application/json" if file.lower().endswith(".json") else None
    if "/" not in given or not given.isascii() or not given.isprintable():
        raise UsageError(f"--content-type '{given}' is not a media type; write one such as application/json")
    return given


def looks_like_schema(body: Mapping[str, Any]) -> bool:
    """Whether an entity has what stands at the top of a JSON Schema.

    >>> [looks_like_schema(body) for body in ({"type": "object"}, {"name": "Position"})]
    [True, False]
    """
    return not {"$schema", "type", "properties"}.isdisjoint(body)


def _is_document(client: Client, path: str, body: Mapping[str, Any]) -> bool:
    """Whether a resource has documents and the body, but for a word that a schema has too, nothing of its metadata."""
    kind = document_type(client.get("/model"), path)
    return kind is not None and not (kind.attributes.keys() & body.keys()) - {"description"}
