"""What commands print: JSON that a person or a program reads.

Rule: data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
from typing import Any

import click
import orjson

__all__ = ["print_bytes", "print_json", "say"]


def print_json(value: Any, *, compact: bool = False) -> None:
    """The value as one line where `compact`, else indented, and in colour on a terminal."""
    text = orjson.dumps(value, option=0 if compact else orjson.OPT_INDENT_2).decode()
    if not compact and sys.stdout.isatty():
        from rich.console import Console
        from rich.syntax import Syntax

        Console(highlight=False).print(Syntax(text, "json", background_color="default", word_wrap=True))
    else:
        click.echo(text)


def print_bytes(content: bytes) -> None:
    """The bytes as they are."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """A remark for the person at the terminal."""
    click.echo(text, err=True)
