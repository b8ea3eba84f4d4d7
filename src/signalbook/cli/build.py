"""The commands build and sample: messages made by their definitions.

Rule: one result a line, in the order they were asked for; what could not be made says all that is missing or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import click

from signalbook.cli.catalog import (
    FILE,
    Broken,
    Line,
    as_json_lines,
    lines,
    numbered,
    on_catalog,
    print_line,
    with_numbers,
)
from signalbook.cli.output import Exit, one_line, say
from signalbook.cloudevents import encode
from signalbook.errors import Problem, UsageError
from signalbook.protocols import FIELDS, find_protocol

if TYPE_CHECKING:
    from signalbook.messages.carry import Built
    from signalbook.messages.catalog import Catalog

__all__ = ["build", "sample"]


@click.command(
    short_help="Build messages from a definition.",
    epilog="Example: signalbook build --catalog samples --definition XID --json < values.jsonl",
)
@FILE
@click.option("--definition", metavar="XID", required=True, help="The definition to build from.")
@click.option("--protocol", metavar="NAME", help="The protocol to use where the definition names none.")
@as_json_lines
@with_numbers
@on_catalog
def build(catalog: Catalog, file: IO[bytes], definition: str, protocol: str | None, as_json: bool, number: bool) -> int:
    """Build a message from each line of values, as a CloudEvent and as a message of its protocol.

    A line is {"context", "attributes", "data" or "data_base64", "protocol", "schemaid"}, each of which may be left out:
    the values of placeholders, those of properties by name, the payload, the protocol, and the id of the schema where
    payloads are framed; "definition" names another definition for its line. Without --json the messages alone are
    printed, ready for `signalbook match`; with it, results with all that is missing or wrong. The exit code is 1 where
    one of them could not be made.
    """
    # What the command names has to be there, whatever the lines say.
    catalog.definition(definition)
    if protocol is not None and find_protocol(protocol) is None:
        raise UsageError(f"--protocol '{protocol}' is not one of {', '.join(FIELDS)}")
    if number and not as_json:
        raise UsageError("--number works only with --json; leave it out, or add --json")
    made = wrong = 0
    broken = Broken()
    for line in lines(file):
        result = _built(catalog, line, {"definition": definition, "protocol": protocol})
        made, wrong = made + result.ok, wrong + (not result.ok)
        if not result.ok:
            broken.see(line)
        if as_json:
            print_line(numbered(result.to_bytes(), line, number))
        else:
            _show(result, f"line {line.number}")
    if broken.hint():
        say(broken.hint())
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
    has them, each with its definition. What cannot be made is reported on standard error, and the exit code is then 1.
    A definition without protocol and envelope matches messages of any protocol; its example is one of HTTP, as said on
    standard error and, with --json, by "carrier".
    """
    made = wrong = 0
    for xid in definitions or tuple(catalog.definitions):
        result = catalog.message(xid).sample()
        made, wrong = made + result.ok, wrong + (not result.ok)
        if as_json and result.ok:
            print_line(result.to_bytes(definition=xid))
        else:
            _show(result, xid)
        if result.carrier and not as_json:
            say(f"signalbook: {xid}: has no protocol, so it matches any; the example is one of {result.carrier}")
    say(f"{made} message(s) made, {wrong} not")
    return Exit.REFUSED if wrong else Exit.OK


def _built(catalog: Catalog, line: Line, unless_said: Mapping[str, str | None]) -> Built:
    from signalbook.messages.build import read_values
    from signalbook.messages.carry import Built
    from signalbook.messages.catalog import CatalogError

    try:
        values = {**unless_said, **read_values(line.text if line.whole else b"")}
        return catalog.message(str(values.pop("definition"))).build(**values)
    except (UsageError, CatalogError) as error:
        return Built(problems=(Problem("", "malformed", str(error)),))


def _show(result: Built, place: str) -> None:
    if result.ok and result.message is not None:
        print_line(result.message.to_bytes())
    elif result.ok and result.cloudevent is not None:
        print_line(encode(result.cloudevent))
    for problem in result.problems:
        say(one_line(f"signalbook: {place}: {problem.path or '/'}: {problem.message} [{problem.code}]"))
