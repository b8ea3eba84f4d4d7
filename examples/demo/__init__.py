"""The whole story in a terminal: `make demo`.

Rule 1: everything shown really happens, by the commands that are shown.
Rule 2: what is not as the story says is a failure of the demo (exit code 1); nothing is left behind.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
from rich.console import Console
from rich.markup import escape

from examples.demo.landing import land_traffic
from examples.demo.walk import SAMPLES, Unexpected, walk_through
from signalbook.errors import SignalbookError

__all__ = ["main"]


def main() -> int:
    """Run the demo; return 0 where all was as it should be."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description="The whole story in a terminal.")
    parser.add_argument(
        "--messages", type=int, default=200_000, help="how many messages to land (default: %(default)s)"
    )
    messages: int = parser.parse_args().messages
    console = Console(width=None if sys.stdout.isatty() else 120)
    if not SAMPLES.is_dir():
        console.print("There is no folder 'samples' here; run the demo from the project's folder: make demo")
        return 1
    with tempfile.TemporaryDirectory(prefix="signalbook-demo-") as folder:
        try:
            walk_through(console, Path(folder))
            last = land_traffic(console, Path(folder), messages)
        except (Unexpected, SignalbookError, subprocess.CalledProcessError, httpx.HTTPError) as error:
            console.print(
                f"\n[bold red]The demo failed:[/bold red] {escape(str(error))}", highlight=False, soft_wrap=True
            )
            return 1
    console.print(
        "\n[bold]All as it should be.[/bold] Go on with:\n"
        "  make serve                          the same catalog at http://127.0.0.1:8080/, to try things on\n"
        "  .venv/bin/signalbook --help         the command line\n"
        "  README.md, docs/                    Python, Spark, tokens, PostgreSQL, every command\n",
        highlight=False,
    )
    console.print(f"[bold]{last}[/bold]", highlight=False)
    return 0
