"""What commands print: JSON that a person or a program reads.

Rule 1: data goes to standard output, everything else to standard error.
Rule 2: what a message or a catalog holds cannot end a line of text or steer a terminal.
"""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import click
import msgspec
import orjson

__all__ = ["one_line", "print_bytes", "print_json", "print_text", "say"]

# Control and format characters (bidirectional ones among them), halves of surrogate pairs, line and paragraph ends.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


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


def one_line(text: str) -> str:
    r"""The text with every character that is not to be seen, a line's end too, written as an escape.

    >>> print(one_line("a\nb\x1b[31m"))
    a\nb\u001b[31m
    """
    if text.isprintable():
        return text
    return "".join(_escape(one) if unicodedata.category(one) in _UNSEEN else one for one in text)


def _escape(character: str) -> str:
    return repr(character)[1:-1] if character in "\n\r\t" else f"\\u{ord(character):04x}"


def say(text: str) -> None:
    """A remark for the person at the terminal."""
    click.echo(text, err=True)
