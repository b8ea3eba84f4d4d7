"""Write docs/reference/cli.md from the commands' own --help; `make docs` runs it and a test keeps it current."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from signalbook.cli import COMMANDS, cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
WIDTH = 100
OPENING = """\
# Command line

This page is written by `make docs` from each command's `--help`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the registry refused the request, or the command has findings |
| 2 | the command was used wrongly: options that do not go together, a file that is not there or holds no catalog |
| 3 | what was named is not in the registry or the catalog, or a server or a store cannot be reached |
| 130 | interrupted with Ctrl+C |
| 143 | `land` or `redrive`, ended by SIGTERM |

Findings are a message that `match` or `validate` does not call matched, one that `build` or `sample` could not make, a
definition that `show` tells to be unusable, and what `lint`, `schema`, `event`, `replicate` and `convert --strict`
report.

Results go to standard output, everything else to standard error. A failure is one sentence on standard error; where a
registry refused, it ends with the error's name in brackets, as in the specification's list. A path such as
`/messagegroups/fleet` is what comes after the registry's address and may carry flags after `?`.

Where an option has an environment variable, the option wins. `--server` wins over the default store, and a `--store`
that is given wins over `SIGNALBOOK_SERVER`.
"""


def reference() -> str:
    """The whole page."""
    return OPENING + "".join(_sections())


def _sections() -> Iterator[str]:
    look: dict[str, Any] = {"terminal_width": WIDTH, "max_content_width": WIDTH, "help_option_names": ["-h", "--help"]}
    root = click.Context(cli, info_name="signalbook", **look)
    yield _section("signalbook", cli.get_help(root))
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=root, **look)
        yield _section(f"signalbook {name}", command.get_help(context))
        if isinstance(command, click.Group):
            for part in command.list_commands(context):
                inner = command.get_command(context, part)
                assert inner is not None
                below = click.Context(inner, info_name=part, parent=context, **look)
                yield _section(f"signalbook {name} {part}", inner.get_help(below))


def _section(title: str, text: str) -> str:
    return f"\n## {title}\n\n```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
