"""The command line `signalbook`.

Rule 1: a command is a row in `COMMANDS`; its module is imported when the command is used, so starting stays quick.
Rule 2: every failure ends as one sentence on standard error and an exit code of `Exit`, never as a traceback.
"""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from collections.abc import Mapping, Sequence

import click

from signalbook import __version__
from signalbook.cli.output import Exit, missing_extra, report
from signalbook.errors import SignalbookError, one_line

__all__ = ["COMMANDS", "Exit", "cli", "main"]

COMMANDS: Mapping[str, str] = {
    "backup": "signalbook.cli.upkeep",
    "build": "signalbook.cli.messages",
    "completion": "signalbook.cli.upkeep",
    "convert": "signalbook.cli.documents",
    "ddl": "signalbook.cli.land",
    "delete": "signalbook.cli.entities",
    "event": "signalbook.cli.event",
    "export": "signalbook.cli.entities",
    "get": "signalbook.cli.entities",
    "import": "signalbook.cli.replicate",
    "land": "signalbook.cli.land",
    "lint": "signalbook.cli.documents",
    "load": "signalbook.cli.documents",
    "match": "signalbook.cli.messages",
    "put": "signalbook.cli.entities",
    "redrive": "signalbook.cli.land",
    "replicate": "signalbook.cli.replicate",
    "report": "signalbook.cli.land",
    "restore": "signalbook.cli.upkeep",
    "sample": "signalbook.cli.messages",
    "schema": "signalbook.cli.schema",
    "serve": "signalbook.cli.serve",
    "show": "signalbook.cli.messages",
    "spool": "signalbook.cli.land",
    "validate": "signalbook.cli.messages",
    "version": "signalbook.cli.upkeep",
}


class _Commands(click.Group):
    """A group whose commands are looked up in the table and imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), _attribute(cmd_name))
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 refused or findings, 2 wrong usage, 3 not found or not reachable.",
)
@click.version_option(__version__, "--version", prog_name="signalbook", message="%(prog)s %(version)s")
def cli() -> None:
    """A message and event catalog: serve it, load it, read it, check it.

    A command that works on a catalog takes --store (a database: a file, memory:, or postgresql://…) or --server (the
    URL of a running registry).
    """


def _attribute(command: str) -> str:
    """What a command is called in its module, where a word of Python cannot be a name."""
    return f"{command}_" if keyword.iskeyword(command) else command


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; the console script `signalbook` exits with it."""
    try:
        result = cli.main(args=args, prog_name="signalbook", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except click.ClickException as error:
        vars(error)["message"] = one_line(error.message)  # the name of a file is text from outside, too
        error.show()
        return Exit.USAGE
    except BrokenPipeError:
        # Who read us has left (`signalbook get / | head`). Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except ModuleNotFoundError as error:
        lacking = missing_extra(error, f"signalbook {_command(args)}")
        if lacking is None:
            raise
        return report(lacking)
    except (SignalbookError, OSError) as error:
        return report(error)
    return result if isinstance(result, int) else Exit.OK


def _command(args: Sequence[str] | None) -> str:
    """The command that was given, as far as one can tell."""
    words = list(sys.argv[1:] if args is None else args)
    name = next((word for word in words if word in COMMANDS), "")
    command = getattr(sys.modules.get(COMMANDS.get(name, "")), _attribute(name), None)
    if isinstance(command, click.Group):
        name = " ".join([name, *[word for word in words if word in command.commands][:1]])
    return name
