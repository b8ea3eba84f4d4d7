"""The commands build and sample: messages made by their definitions.

Rule: one result a line, in the order they were asked for; what could not be made says all that is missing or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import click
import orjson

from signalbook.cli.catalog import FILE, Line, as_json_lines, lines, on_catalog, print_line
from signalbook.cli.failures import Exit
from signalbook.cli.output import say
from signalbook.cloudevents import encode
from signalbook.errors import Problem, UsageError

if TYPE_CHECKING:
    from signalbook.messages.build import Built
    from signalbook.messages.catalog import Catalog

__all__ = ["build", "sample"]


@click.command(
    short_help="Make messages by a definition.",
    epilog="Example: signalbook build --catalog samples --definition XID --json < values.jsonl",
)
@FILE
@click.option("--definition", metavar="XID", required=True, help="The definition to build by.")
@click.option("--protocol", metavar="NAME", help="The protocol to use where the definition names none.")
@as_json_lines
@on_catalog
def build(catalog: Catalog, file: IO[bytes], definition: str, protocol: str | None, as_json: bool) -> int:
    """Make a message of each line of values, as a CloudEvent and as its protocol's message.

    A line is {"context", "attributes", "data" or "data_base64", "protocol"}, each of which may be left out: the values
    of placeholders, those of properties by name, the payload, and the protocol; "definition" names another definition
    for its line. Without --json the messages alone are printed, ready for `signalbook match`; with it, results with all
    that is missing or wrong.
    """
    catalog.definition(definition)  # which has to be there, whatever the lines say
    made = wrong = 0
    for line in lines(file):
        result = _built(catalog, line, {"definition": definition, "protocol": protocol})
        made, wrong = made + result.ok, wrong + (not result.ok)
        _show(result, as_json, f"line {line.number}")
    say(f"{made} message(s) built, {wrong} not")
    return Exit.REFUSED if wrong else Exit.OK


@click.command(
    short_help="Make example messages.", epilog="Example: signalbook sample --catalog samples | signalbook match ..."
)
@click.option(
    "--definition", "definitions", metavar="XID", multiple=True, help="A definition to show; else all of them."
)
@as_json_lines
@on_catalog
def sample(catalog: Catalog, definitions: tuple[str, ...], as_json: bool) -> int:
    """Make an example message for definitions, payload included, one a line.

    Without --json the messages alone are printed, ready for `signalbook match`; with it, results as `signalbook build`
    has them, each with its definition.
    """
    made = wrong = 0
    for xid in definitions or tuple(catalog.definitions):
        result = catalog.message(xid).sample()
        made, wrong = made + result.ok, wrong + (not result.ok)
        if as_json:
            print_line(orjson.dumps({"definition": xid, **result.to_json()}))
        else:
            _show(result, as_json, xid)
    say(f"{made} message(s) made, {wrong} not")
    return Exit.REFUSED if wrong else Exit.OK


def _built(catalog: Catalog, line: Line, unless_said: Mapping[str, str | None]) -> Built:
    from signalbook.messages.build import Built
    from signalbook.messages.catalog import CatalogError
    from signalbook.messages.values import read_values

    try:
        values = {**unless_said, **read_values(line.text if line.whole else b"")}
        return catalog.message(str(values.pop("definition"))).build(**values)
    except (UsageError, CatalogError) as error:
        return Built(problems=(Problem("", "malformed", str(error)),))


def _show(result: Built, as_json: bool, place: str) -> None:
    if as_json:
        print_line(result.to_bytes())
    elif result.message is not None:
        print_line(result.message.to_bytes())
    elif result.cloudevent is not None:
        print_line(encode(result.cloudevent))
    for problem in result.problems if not as_json else ():
        say(f"signalbook: {place}: {problem.path or '/'}: {problem.message} [{problem.code}]")
