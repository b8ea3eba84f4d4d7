"""The command show: a definition as it is once its bases are merged into it, each value with where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signalbook.cli.catalog import on_catalog
from signalbook.cli.failures import Exit
from signalbook.cli.output import one_line, print_json, say

if TYPE_CHECKING:
    from signalbook.messages.catalog import Catalog
    from signalbook.messages.definition import Definition

__all__ = ["show"]


@click.command(
    short_help="Show a definition as materialised.",
    epilog="Example: signalbook show --catalog samples /messagegroups/com.example.fleet.mqtt/messages/...",
)
@click.argument("xid", metavar="XID")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
@on_catalog
def show(catalog: Catalog, xid: str, as_json: bool) -> int:
    """Show a definition with its bases merged into it, and for each value the definition that it comes from.

    The exit code is 1 where the definition cannot be used.
    """
    definition = catalog.definition(xid)
    if as_json:
        print_json(_value(definition), compact=True)
    else:
        for line in _lines(definition):
            click.echo(one_line(line))
    for problem in (*definition.problems, *definition.notes) if not as_json else ():
        say(one_line(f"signalbook: {problem.path}: {problem.message} [{problem.code}]"))
    return Exit.REFUSED if definition.problems else Exit.OK


def _value(definition: Definition) -> dict[str, Any]:
    return {
        "xid": definition.xid,
        **({"xref": definition.target} if definition.target else {}),
        "definition": dict(definition.document),
        "bases": list(definition.derives_from),
        "origins": definition.origins(),
        "notes": [{"path": one.path, "code": one.code, "message": one.message} for one in definition.notes],
        "problems": [{"path": one.path, "code": one.code, "message": one.message} for one in definition.problems],
    }


def _lines(definition: Definition) -> list[str]:
    """A line for each value: its place, the value, and whose it is."""
    import orjson

    found = []
    for path, origin in definition.origins().items():
        value: Any = definition.document
        for step in path.split("/")[1:]:
            value = value[step.replace("~1", "/").replace("~0", "~")]
        found.append((path, orjson.dumps(value).decode(), origin))
    width = max((len(path) for path, _, _ in found), default=0)
    return [f"{path:<{width}}  {value}  <- {origin}" for path, value, origin in found]
