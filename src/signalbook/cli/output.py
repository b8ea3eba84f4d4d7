"""What commands print: JSON that a person or a program reads.

Rule: data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec
import orjson

__all__ = ["print_bytes", "print_json", "print_text", "say"]


def print_json(value: Any, *, compact: bool = False) -> None:
    """The value as one line where `compact`, else indented, and in colour on a terminal."""
    print_text(orjson.dumps(value).decode(), compact=compact)


def print_text(text: str, *, compact: bool = False) -> None:
    """JSON text as one line where `compact`, else indented; every number and string as it is written."""
    if not compact:
        text = _indented(text)
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
    """The bytes as they are."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """A remark for the person at the terminal."""
    click.echo(text, err=True)
