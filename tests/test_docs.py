"""The documents are true: commands are documented, links lead somewhere, and the examples run as printed."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts.write_cli_reference import PAGE, reference
from signalbook.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PORT = "8080"
# `...` stands for any text, also across lines.
COMPARE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def named(path: Path) -> str:
    """A page's name in a test's id."""
    return str(path.relative_to(ROOT))


def test_the_command_line_reference_is_current() -> None:
    """docs/reference/cli.md is what `make docs` would write."""
    assert reference() == PAGE.read_text(encoding="utf-8")


def test_every_command_is_documented() -> None:
    """Each command has its section in the reference."""
    text = PAGE.read_text(encoding="utf-8")
    assert [] == [name for name in COMMANDS if f"\n## signalbook {name}\n" not in text]


def test_the_readme_is_short() -> None:
    """The README has fewer than 120 lines."""
    assert 120 > len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the project finds it."""
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [] == [link for link in links if not (page.parent / link).exists()]


def test_every_target_of_the_makefile_is_there() -> None:
    """What README and CONTRIBUTING tell to make can be made."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    told = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    assert set() == set(re.findall(r"(?:^|`)make ([a-z]+)", told, re.MULTILINE)) - targets


@dataclass(frozen=True, slots=True)
class Command:
    """One line after a `$`, and what should come back."""

    line: str
    expected: list[str] = field(default_factory=list)


def commands(text: str) -> Iterator[Command]:
    """The commands of a page's console blocks, in order."""
    for block in BLOCK.findall(text):
        found: list[Command] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            else:
                found[-1].expected.append(line)
        yield from found


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))], ids=named)
def test_the_console_examples_run(page: Path, tmp_path: Path, free_port: int) -> None:
    """Each command of a page, run in order in an empty folder with the samples, prints what the page shows."""
    text = page.read_text(encoding="utf-8").replace(PORT, str(free_port))
    if "$ curl" in text and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    place = {name: value for name, value in os.environ.items() if not name.startswith("SIGNALBOOK_")}
    place["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{place['PATH']}"
    server: subprocess.Popen[bytes] | None = None
    try:
        for command in commands(text):
            if command.line.endswith("&"):
                stop(server)
                line = f"exec {command.line.removesuffix('&')} --port {free_port}"
                server = subprocess.Popen(["bash", "-c", line], cwd=tmp_path, env=place, stderr=subprocess.DEVNULL)
                wait_for(free_port)
                continue
            done = subprocess.run(
                ["bash", "-c", command.line],
                cwd=tmp_path,
                env=place,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
            )
            expected = "\n".join(command.expected) + "\n"
            agreed = doctest.OutputChecker().check_output(expected, done.stdout, COMPARE)
            assert agreed or not command.expected, f"$ {command.line}\n{done.stdout}\nexpected:\n{expected}"
    finally:
        stop(server)


def stop(server: subprocess.Popen[bytes] | None) -> None:
    """End a server that the page started."""
    if server is not None and server.poll() is None:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=15)


def wait_for(port: int) -> None:
    """Wait until something listens at the port."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens at port {port}")
