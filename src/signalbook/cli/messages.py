"""The commands on single messages: match and validate, show, build and sample.

Rule 1: one answer a message, in the order they came; a batch has one for each of its events.
Rule 2: standard output has the answers, messages or results and nothing else; the counts go to standard error, and with
them what made the answers less than they could be.
Rule 3: values that make no message are answered with all that is missing or wrong.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

import click
import orjson

from signalbook.cli import catalog as catalogs
from signalbook.cli import options
from signalbook.cli.catalog import (
    FILE,
    LARGEST_LINE,
    Broken,
    Line,
    as_json_lines,
    lines,
    numbered,
    on_catalog,
    print_line,
    with_numbers,
)
from signalbook.cli.output import Exit, one_line, print_json, say
from signalbook.cloudevents import encode
from signalbook.errors import Problem, UsageError
from signalbook.protocols import FIELDS, find_protocol

if TYPE_CHECKING:
    from signalbook.messages.answer import Answer
    from signalbook.messages.carry import Built
    from signalbook.messages.catalog import Catalog
    from signalbook.messages.definition import Definition

__all__ = ["build", "match", "sample", "show", "validate"]

Judge = Callable[[bytes], "list[Answer]"]
_MOST_SHOWN = 3
# A captured value that cannot be taken for anything else in a list of them.
_PLAIN = re.compile(r"""[^\s,()="'\\]+""")


@click.command(
    short_help="Find the definitions of messages.",
    epilog="Example: signalbook match --catalog samples --json < messages.jsonl",
)
@FILE
@catalogs.within
@as_json_lines
@with_numbers
@on_catalog
def match(catalog: Catalog, file: IO[bytes], within: tuple[str, ...], as_json: bool, number: bool) -> int:
    """Find the definition of each message, with the values of its placeholders, or say why there is none.

    Messages are read one a line: CloudEvents in JSON, or messages of a protocol written as JSON ("protocol", its
    fields, "payload"). The exit code is 1 where one of them is not matched. FILE is standard input unless it is named.
    """
    return _judge(catalog, file, lambda text: catalog.match_all(text, within), as_json, number)


@click.command(
    short_help="Check messages by their definitions.",
    epilog="Example: signalbook validate --catalog samples --definition XID messages.jsonl",
)
@FILE
@click.option(
    "--definition", metavar="XID", help="The definition to check all messages by; else the one that each matches."
)
@catalogs.within
@as_json_lines
@with_numbers
@on_catalog
def validate(
    catalog: Catalog, file: IO[bytes], definition: str | None, within: tuple[str, ...], as_json: bool, number: bool
) -> int:
    """Check each message, metadata and payload, and list everything that is wrong with it.

    Messages are read as `signalbook match` reads them. The exit code is 1 where something is wrong with one of them.
    """
    if definition is None:
        return _judge(catalog, file, lambda text: catalog.match_all(text, within), as_json, number)
    if within:
        raise UsageError("--definition already names the only definition to check by; leave --within out")
    catalog.definition(definition)  # which has to be there, whatever the lines say
    return _judge(catalog, file, lambda text: catalog.validate_all(text, definition), as_json, number)


def _judge(catalog: Catalog, file: IO[bytes], judge: Judge, as_json: bool, number: bool) -> int:
    if number and not as_json:
        raise UsageError("--number works only with --json; without --json each answer already has its line")
    counts: Counter[str] = Counter()
    broken, alone = Broken(), _Alone(catalog)
    for line in lines(file):
        for answer in _answers(line, judge):
            counts[answer.outcome.value] += 1
            alone.see(answer)
            if answer.outcome.value == "malformed":
                broken.see(line)
            if as_json:
                print_line(numbered(answer.to_bytes(), line, number))
            else:
                for text in _sentences(line.number, answer):
                    click.echo(one_line(text))
    for hint in (broken.hint(), *alone.hints()):
        if hint:
            say(one_line(hint))
    total = sum(counts.values())
    found = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items(), key=lambda item: -item[1]))
    say(f"{total} message(s): {found or 'none'}")
    return Exit.OK if counts["matched"] == total else Exit.REFUSED


def _answers(line: Line, judge: Judge) -> list[Answer]:
    if not line.whole:
        from signalbook.messages.answer import Answer, Outcome

        words = f"the line is longer than {LARGEST_LINE:,} bytes"
        return [Answer(Outcome.MALFORMED, problems=(Problem("", "malformed", words),))]
    return judge(line.text)


def _sentences(number: int, answer: Answer) -> Iterator[str]:
    """An answer for a person: what, why, and what comes near."""
    context = ", ".join(f"{name}={_shown(value)}" for name, value in answer.context.items())
    what = " ".join(part for part in (answer.outcome.value, answer.definition or "") if part)
    left = f"; unchecked: {', '.join(answer.unchecked)}" if answer.unchecked else ""
    yield f"line {number}: {what}" + (f" ({context})" if context else "") + left
    for problem in answer.problems:
        yield f"  {problem.path or '/'}: {problem.message} [{problem.code}]"
    what = "holds" if answer.outcome.value == "ambiguous" else "near"
    for candidate in answer.candidates:
        wrong = [f"{one.path or '/'}: {one.message}" for one in candidate.problems[:_MOST_SHOWN]]
        further = len(candidate.problems) - len(wrong)
        wrong += [f"... {further} more"] if further else []
        yield f"  {what}: {candidate.definition}" + (f" ({'; '.join(wrong)})" if wrong else "")


def _shown(value: str) -> str:
    """A captured value, in quotes where it could be taken for something else."""
    if _PLAIN.fullmatch(value):
        return value
    return orjson.dumps(value.encode(errors="replace").decode()).decode()


def _remedy(definition: Definition) -> str:
    """What fetches the base that a definition lacks, where it lies at an address."""
    from signalbook.sources.catalogs import place_of

    furthest = definition.bases[-1][1] if definition.bases else definition.own
    place = place_of(str(furthest.get("basemessage") or ""))
    return f"; --resolve {place} fetches it" if place else ""


class _Alone:
    """The definitions of answers that were judged without a base of theirs, which says what else they demand."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[str, str] = {}

    def see(self, answer: Answer) -> None:
        """Take note of the definitions that an answer names."""
        for xid in (answer.definition, *(one.definition for one in answer.candidates)):
            if xid is None or xid in self._found:
                continue
            definition = self._catalog.definition(xid)
            for note in definition.notes:
                self._found[xid] = note.message + _remedy(definition)

    def hints(self) -> Iterator[str]:
        """A remark for each, the first of them."""
        for xid, words in itertools.islice(self._found.items(), _MOST_SHOWN):
            yield f"signalbook: {xid} was checked without its base: {words}"
        if len(self._found) > _MOST_SHOWN:
            yield f"signalbook: so were {len(self._found) - _MOST_SHOWN:,} more"


# The command show: a definition as it is once its bases are merged into it, each value with where it comes from.


@click.command(
    short_help="Show a definition with its bases merged in.",
    epilog="Example: signalbook show --catalog samples /messagegroups/com.example.fleet.mqtt/messages/...",
)
@click.argument("xid", metavar="XID")
@options.as_json
@on_catalog
def show(catalog: Catalog, xid: str, as_json: bool) -> int:
    """Show a definition with its bases merged into it, and for each value the definition that it comes from.

    The exit code is 1 where the definition cannot be used.
    """
    definition = catalog.definition(xid)
    if as_json:
        print_json(_definition_to_json(definition), compact=True)
    else:
        for line in _definition_lines(definition):
            click.echo(one_line(line))
    for problem in (*definition.problems, *definition.notes) if not as_json else ():
        say(one_line(f"signalbook: {problem.path}: {problem.message} [{problem.code}]"))
    return Exit.REFUSED if definition.problems else Exit.OK


def _definition_to_json(definition: Definition) -> dict[str, Any]:
    return {
        "xid": definition.xid,
        **({"xref": definition.target} if definition.target else {}),
        "definition": dict(definition.document),
        "bases": list(definition.derives_from),
        "origins": definition.origins(),
        "notes": [{"path": one.path, "code": one.code, "message": one.message} for one in definition.notes],
        "problems": [{"path": one.path, "code": one.code, "message": one.message} for one in definition.problems],
    }


def _definition_lines(definition: Definition) -> list[str]:
    """A line for each value: its place, the value, and whose it is."""
    found = []
    for path, origin in definition.origins().items():
        value: Any = definition.document
        for step in path.split("/")[1:]:
            value = value[step.replace("~1", "/").replace("~0", "~")]
        found.append((path, orjson.dumps(value).decode(), origin))
    width = max((len(path) for path, _, _ in found), default=0)
    return [f"{path:<{width}}  {value}  <- {origin}" for path, value, origin in found]


# The commands build and sample: messages from values, and examples.


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
        result = _build_line(catalog, line, {"definition": definition, "protocol": protocol})
        made, wrong = made + result.ok, wrong + (not result.ok)
        if not result.ok:
            broken.see(line)
        if as_json:
            print_line(numbered(result.to_bytes(), line, number))
        else:
            _show_built(result, f"line {line.number}")
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
            _show_built(result, xid)
        if result.carrier and not as_json:
            say(f"signalbook: {xid}: has no protocol, so it matches any; the example is one of {result.carrier}")
    say(f"{made} message(s) made, {wrong} not")
    return Exit.REFUSED if wrong else Exit.OK


def _build_line(catalog: Catalog, line: Line, unless_said: Mapping[str, str | None]) -> Built:
    from signalbook.messages.build import read_values
    from signalbook.messages.carry import Built
    from signalbook.messages.catalog import CatalogError

    try:
        values = {**unless_said, **read_values(line.text if line.whole else b"")}
        return catalog.message(str(values.pop("definition"))).build(**values)
    except (UsageError, CatalogError) as error:
        return Built(problems=(Problem("", "malformed", str(error)),))


def _show_built(result: Built, place: str) -> None:
    if result.ok and result.message is not None:
        print_line(result.message.to_bytes())
    elif result.ok and result.cloudevent is not None:
        print_line(encode(result.cloudevent))
    for problem in result.problems:
        say(one_line(f"signalbook: {place}: {problem.path or '/'}: {problem.message} [{problem.code}]"))
