"""The commands match and validate: what messages are, by a catalog.

Rule 1: one answer a message, in the order they came; a batch has one for each of its events.
Rule 2: standard output has the answers and nothing else; the counts go to standard error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

import click

from signalbook.cli.catalog import FILE, LARGEST_LINE, Line, as_json_lines, lines, on_catalog, print_line
from signalbook.cli.failures import Exit
from signalbook.cli.output import say

if TYPE_CHECKING:
    from signalbook.messages.answer import Answer
    from signalbook.messages.catalog import Catalog

__all__ = ["match", "validate"]

Judge = Callable[[bytes], "list[Answer]"]


@click.command(
    short_help="Find the definitions of messages.",
    epilog="Example: signalbook match --catalog samples --json < messages.jsonl",
)
@FILE
@click.option(
    "--within",
    metavar="XID",
    multiple=True,
    help="Look only among the messages of this group or endpoint; may be repeated.",
)
@as_json_lines
@on_catalog
def match(catalog: Catalog, file: IO[bytes], within: tuple[str, ...], as_json: bool) -> int:
    """Find the definition of each message, with the values of its placeholders, or say why there is none.

    Messages are read one a line: CloudEvents in JSON, or messages on paper ("protocol", its fields, "payload"). The
    exit code is 1 where one of them is not matched. FILE is standard input unless it is named.
    """
    return _judge(file, lambda text: catalog.match_all(text, within), as_json)


@click.command(
    short_help="Check messages by their definitions.",
    epilog="Example: signalbook validate --catalog samples --definition XID messages.jsonl",
)
@FILE
@click.option(
    "--definition", metavar="XID", help="The definition to check all messages by; else the one that each matches."
)
@as_json_lines
@on_catalog
def validate(catalog: Catalog, file: IO[bytes], definition: str | None, as_json: bool) -> int:
    """Check each message, metadata and payload, and list everything that is wrong with it.

    Messages are read as `signalbook match` reads them. The exit code is 1 where something is wrong with one of them.
    """
    if definition is None:
        return _judge(file, catalog.match_all, as_json)
    return _judge(file, lambda text: catalog.validate_all(text, definition), as_json)


def _judge(file: IO[bytes], judge: Judge, as_json: bool) -> int:
    counts: Counter[str] = Counter()
    for line in lines(file):
        for answer in _answers(line, judge):
            counts[answer.outcome.value] += 1
            if as_json:
                print_line(answer.to_bytes())
            else:
                for text in _sentences(line.number, answer):
                    click.echo(text)
    total = sum(counts.values())
    found = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items(), key=lambda item: -item[1]))
    say(f"{total} message(s): {found or 'none'}")
    return Exit.OK if counts["matched"] == total else Exit.REFUSED


def _answers(line: Line, judge: Judge) -> list[Answer]:
    if not line.whole:
        from signalbook.errors import Problem
        from signalbook.messages.answer import Answer, Outcome

        words = f"the line is longer than {LARGEST_LINE:,} bytes"
        return [Answer(Outcome.MALFORMED, problems=(Problem("", "malformed", words),))]
    return judge(line.text)


def _sentences(number: int, answer: Answer) -> Iterator[str]:
    """An answer for a person: what, why, and what comes near."""
    context = ", ".join(f"{name}={value}" for name, value in answer.context.items())
    what = " ".join(part for part in (answer.outcome.value, answer.definition or "") if part)
    yield f"line {number}: {what}" + (f" ({context})" if context else "")
    for problem in answer.problems:
        yield f"  {problem.path or '/'}: {problem.message} [{problem.code}]"
    for candidate in answer.candidates:
        wrong = "; ".join(f"{one.path or '/'}: {one.message}" for one in candidate.problems[:3])
        yield f"  near: {candidate.definition}" + (f" ({wrong})" if wrong else "")
