"""The documents are true: commands are documented, links lead somewhere, and the examples run as printed."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import signalbook
from scripts.write_cli_reference import PAGE, reference
from signalbook.app import RESERVED
from signalbook.cli import COMMANDS
from signalbook.jsontext import MAX_DEPTH
from signalbook.registry import filters, urls
from signalbook.registry.read import reads
from signalbook.registry.read.reads import Limits
from signalbook.registry.registry import Transaction
from signalbook.registry.urls import FLAGS, IGNORES, PAGING
from signalbook.registry.write.operations import ALLOWED
from signalbook.settings import MEBIBYTE, Settings
from signalbook.spec.error_types import ERROR_TYPES
from signalbook.spec.versions import VERSIONS
from tests.patience import LONG, answers, until

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# A console block is run; a block that names a file after its language is saved under that name.
BLOCK = re.compile(r"^```(?:console|\w+ (?P<file>[\w.-]+))\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = "```console\n"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PART = re.compile(r"\]\(([^)#\s:]+\.md)#([^)]+)\)")
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


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading of a page, without marks of code, its own heading left out."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    table = re.search(r"^\|.*?\n\n", text + "\n\n", re.MULTILINE | re.DOTALL)
    assert table is not None, f"{page} has no table below '{heading}'"
    lines = table[0].strip().splitlines()[2:]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")] for line in lines]


HTTP = "docs/reference/http.md"


def test_every_route_is_documented() -> None:
    """The table of paths has each level of the registry with exactly the methods it allows."""
    assert dict(ALLOWED) == {level: methods for _, level, methods in rows(HTTP, "## Paths and methods")}


def test_every_flag_is_documented() -> None:
    """The table of flags has each flag, and `ignore` names all it may hold."""
    table = {name: meaning for name, _, meaning in rows(HTTP, "## Flags")}
    assert FLAGS | PAGING == set(table)
    assert sorted(IGNORES) == re.findall("[a-z]+", table["ignore"].partition(":")[2].partition(";")[0])


def test_every_status_is_documented() -> None:
    """The table of status codes has that of each error, and those of success."""
    documented = {int(status) for status, _ in rows(HTTP, "## Status codes")}
    assert {200, 201, 204, 303, 304} | {row.status for row in ERROR_TYPES.values()} == documented


def test_every_error_is_documented() -> None:
    """Each error is in the list, and the HTTP page names none that is not."""
    listed = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [] == [name for name in ERROR_TYPES if f"`{name}`" not in listed]
    told = {name for _, _, name in rows(HTTP, "## Limits") if re.fullmatch("[a-z]+_[a-z_]+", name)}
    assert set() == told - ERROR_TYPES.keys()


def test_our_own_paths_are_documented() -> None:
    """Each path that a model may not take is named."""
    text = (ROOT / HTTP).read_text(encoding="utf-8")
    assert [] == sorted(path for path in RESERVED if f"`/{path}`" not in text)


def test_limits_are_documented_as_they_are() -> None:
    """The figures in the table of limits are those of the code."""
    table = {name: limit for name, limit, _ in rows(HTTP, "## Limits")}
    settings, limits = Settings(), Limits()
    assert f"{settings.max_body // MEBIBYTE} MiB, --max-body" == table["request body"]
    assert table["time for a request's body"].startswith(f"{settings.body_timeout:g} s")
    assert f"{MAX_DEPTH} levels" == table["JSON nesting"]
    assert f"{limits.page:,}" == table["entries of one page"]
    assert f"{limits.size >> 20} Mi characters" == table["one answer"]
    filtering = f"{filters.MAX_TEXT:,} characters, {filters.MAX_CLAUSES} expressions, {limits.filtering:,} steps"
    assert filtering == table["filters"]
    assert f"{urls.MAX_TEXT:,} characters, {urls.MAX_PATHS} paths" == table["inline"]
    assert f"{reads.MAX_TEXT:,} characters" == table["sort"]


def test_differing_spellings_are_documented() -> None:
    """The table of versions has every name that a version spells in its own way."""
    text = "\n".join(" ".join(row) for row in rows(HTTP, "## Versions of the specification"))
    for version in VERSIONS.values():
        spelled = [*version.attributes.values(), *(name for row in version.options.values() for name in row.values())]
        assert [] == [name for name in spelled if name not in text]


def test_the_python_page_has_every_public_name() -> None:
    """Each public name of the package and each method of `Registry` and of a transaction is on the page."""
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    names = [f"signalbook.{name}" for name in signalbook.__all__ if not name.startswith("_")]
    assert [] == [name for name in names if name not in text]
    methods = {name for kind in (signalbook.Registry, Transaction) for name in dir(kind) if not name.startswith("_")}
    assert [] == sorted(name for name in methods - {"open"} if not re.search(rf"`{name}[(`]", text))


def test_every_package_is_explained() -> None:
    """The page on architecture has each layer that the import contract lists."""
    contract = re.search(r"^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S)
    assert contract is not None
    packages = {name for name in re.findall(r"[a-z_]+", contract[1]) if name not in ("__main__", "demo")}
    page = "docs/explanation/architecture.md"
    explained = {row[0] for row in rows(page, "## Layers")}
    picture = (ROOT / "docs/images/packages.svg").read_text(encoding="utf-8")
    assert packages == explained
    assert packages == set(re.findall(r"/><text [^>]*>([a-z]+)</text>", picture))


def test_the_page_on_architecture_names_files_that_exist() -> None:
    """Each path of a file or a folder in code or in a walk is in the project, or in the package."""
    text = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    walks = re.findall(r"^([a-z_0-9/]+\.py) ", text, re.MULTILINE)
    named = re.findall(r"`([a-z_0-9/]+\.(?:py|toml)|(?:src|tests|docs|scripts|examples)/[a-z_0-9/]+)`", text)
    assert len(walks) > 50
    assert [] == sorted(set(_missing([*walks, *named])))


def _missing(paths: Iterable[str]) -> Iterator[str]:
    """The paths that neither the project nor the package has; one without a folder may be in any package."""
    package = ROOT / "src" / "signalbook"
    for path in paths:
        places = [ROOT / path, package / path]
        if not any(place.exists() for place in places) and ("/" in path or not any(package.rglob(path))):
            yield path


def test_every_page_is_in_the_index() -> None:
    """docs/README.md leads to each page."""
    index = ROOT / "docs" / "README.md"
    links = {(index.parent / link).resolve() for link in LINK.findall(index.read_text(encoding="utf-8"))}
    assert [] == [named(page) for page in (ROOT / "docs").rglob("*.md") if page not in links | {index}]


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=named)
def test_decisions_have_one_form(page: Path) -> None:
    """A decision has its number, status and date, a context, a decision and a measurement, on at most 40 lines."""
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert re.search(r"^Status: \w+\. Date: \d{4}-\d\d-\d\d\.$", text, re.MULTILINE)
    assert [] == [part for part in ("Context", "Decision", "Measured") if f"\n## {part}\n" not in text]
    assert 40 >= len(text.splitlines())


def test_the_changelog_has_this_version() -> None:
    """The newest entry is that of the version in the package."""
    newest = re.search(r"^## (\S+) - ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert signalbook.__version__ == newest[1]


def test_the_readme_is_short() -> None:
    """The README has fewer than 120 lines."""
    assert 120 > len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the project finds it."""
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [] == [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_headings(page: Path) -> None:
    """Every link to a part of one of the pages names a heading that it has."""
    for link, part in PART.findall(page.read_text(encoding="utf-8")):
        titles = re.findall(r"^#+ (.*)$", (page.parent / link).read_text(encoding="utf-8"), re.MULTILINE)
        assert part in [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles], f"{link}#{part}"


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


@dataclass(frozen=True, slots=True)
class File:
    """A block that the reader saves."""

    name: str
    text: str


def steps(text: str) -> Iterator[Command | File]:
    """What a page tells its reader to do, in order."""
    for block in BLOCK.finditer(text):
        if block["file"]:
            yield File(block["file"], block["text"])
            continue
        found: list[Command] = []
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            else:
                found[-1].expected.append(line)
        yield from found


@pytest.mark.parametrize("page", [page for page in PAGES if CONSOLE in page.read_text(encoding="utf-8")], ids=named)
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
        for command in steps(text):
            if isinstance(command, File):
                (tmp_path / command.name).write_text(command.text, encoding="utf-8")
                continue
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
                timeout=LONG,
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
        server.wait(timeout=LONG)


def wait_for(port: int) -> None:
    """Wait until something listens at the port."""
    assert until(lambda: answers(port)), f"nothing listens at port {port}"


# ---- the page of all limits

LIMITS = ROOT / "docs/explanation/limits.md"
HELD = "in the code"
UNITS = {
    "": 1, "s": 1, "days": 86_400, "levels": 1, "steps": 1,
    "KiB": 1 << 10, "MiB": 1 << 20, "Mi": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip
# Names of bounds on what comes from outside; those with an underscore are details of one module.
BOUND = re.compile(r"(?:MOST|MAX|LARGEST|LONGEST|DEEPEST)(?:_[A-Z_]+)?")


def limits() -> list[tuple[str, str, str]]:
    """What each row of the page bounds, by how much, and where in the code that stands."""
    found = []
    columns: list[str] = []
    for line in LIMITS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line[1:-1].split("|")] if line.startswith("|") else []
        if not cells or not columns:
            columns = cells
        elif HELD in columns and not line.startswith("|---"):
            found.append((cells[0], cells[columns.index("default")], cells[columns.index(HELD)].strip("`")))
    return found


def held_at(place: str) -> object:
    """The value of a constant, of a field's default, or of a parameter's, below `signalbook`."""
    steps = place.split(".")
    for at in range(len(steps) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["signalbook", *steps[:at]]))
        except ModuleNotFoundError:
            continue
        for step in steps[at:]:
            if isinstance(found, type) and step in (parameters := inspect.signature(found).parameters):
                found = parameters[step].default
            else:
                found = getattr(found, step)
        return found
    raise AssertionError(f"{place} is not in the code")


def test_the_page_of_limits_has_the_limits_of_the_code() -> None:
    """Every row that names a place in the code has its value; other rows say it in words."""
    rows = [row for row in limits() if row[2]]
    assert 80 < len(rows)
    for what, default, place in rows:
        number = re.findall(r"([0-9][0-9,.]*) ?([A-Za-z]*)", default)[-1 if "and 1 MiB" in default else 0]
        value = float(number[0].replace(",", "")) * UNITS[number[1]]
        found: Any = held_at(place)
        assert (what, value) == (what, float(found))


def test_every_limit_is_on_the_page() -> None:
    """A public constant whose name says that it is a bound has a row on the page of limits."""
    root = ROOT / "src/signalbook"
    page = LIMITS.read_text(encoding="utf-8")
    missing = []
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            missing += [
                f"{module}.{name}" for name in names if BOUND.fullmatch(name) and f"`{module}.{name}`" not in page
            ]
    assert [] == missing
