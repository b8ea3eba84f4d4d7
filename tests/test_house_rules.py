"""The habits that a machine can hold: sizes, names, opening words, what a file must not say."""

import ast
import importlib
import itertools
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import signalbook
from signalbook.clients import MissingLibrary

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CATCH_ALLS = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "misc", "impl"}
LOCKS = ("requirements.lock", "requirements-amqp.lock")
# Modules that are run rather than imported.
PROGRAMS = {"__main__"}
# Longer than 700 lines: one reader of JSON text for everybody; all that lint and load find in documents.
LONG_SUBJECTS = {"src/signalbook/jsontext.py", "src/signalbook/sources/lint.py"}
HTTPX = {f"httpx.{name}" for name in ("get", "head", "options", "post", "put", "patch", "delete", "request", "Client")}


def ids(path: Path) -> str:
    """A file's name in a test's id."""
    return str(path.relative_to(ROOT))


def test_a_module_is_one_thing() -> None:
    """A module has at most 700 lines, unless its subject is named here; a folder has at most 20 files."""
    lengths = {ids(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {} == {name: length for name, length in lengths.items() if length > 700 and name not in LONG_SUBJECTS}
    folders = Counter(str(module.parent.relative_to(ROOT)) for module in MODULES)
    assert {} == {folder: count for folder, count in folders.items() if count > 20}


def test_a_module_says_what_it_holds() -> None:
    """No module has a name that could hold anything, and each opens with what it owns in at most 20 lines."""
    assert [] == [ids(module) for module in MODULES if module.stem.strip("_").lower() in CATCH_ALLS]
    openings = {ids(module): ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) for module in MODULES}
    assert [] == [name for name, opening in openings.items() if not opening or len(opening.splitlines()) > 20]


def test_public_names_are_listed() -> None:
    """What `__all__` lists is there, once each."""
    wrong = []
    for module in MODULES:
        if module.stem in PROGRAMS or "__all__" not in module.read_text(encoding="utf-8"):
            continue
        dotted = ".".join(module.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        try:
            imported = importlib.import_module(dotted)
        except MissingLibrary:
            continue
        listed = list(imported.__all__)
        if sorted(set(listed)) != sorted(listed) or not all(hasattr(imported, name) for name in listed):
            wrong.append(dotted)
    assert [] == wrong


def test_the_public_names_of_the_package() -> None:
    """`import signalbook` gives these names and no others; a change here is a change for users."""
    classes = ["Answer", "Catalog", "Dispatcher", "Problem", "Registry", "SchemaPolicy"]
    errors = ["CatalogError", "RegistryError", "SignalbookError", "StoreError", "UsageError"]
    assert sorted(signalbook.__all__) == sorted([*classes, *errors, "__version__", "open_source"])


def test_a_version_is_compared_nowhere_else() -> None:
    """Outside `spec` no module compares specification versions."""
    pattern = re.compile(r"(spec(version)?(\.name)?|version)\s*(==|!=|is|is not|in)\s*[(\"']?(RC2|RC4|1\.0-rc)")
    found = [ids(m) for m in MODULES if "spec" not in m.parts and pattern.search(m.read_text(encoding="utf-8"))]
    assert [] == found


@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_names_no_place(name: str) -> None:
    """A lock holds names, versions and hashes, and no address of an index."""
    lock = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in lock
    assert "--hash=sha256:" in lock
    assert not re.search(r"--(extra-)?index|find-links", lock)


def test_the_lock_has_what_the_project_needs() -> None:
    """Every dependency that pyproject.toml names is locked."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [
        *project["project"]["dependencies"],
        *itertools.chain.from_iterable(project["project"]["optional-dependencies"].values()),
        *project["dependency-groups"]["dev"],
    ]
    lock = "\n".join((ROOT / name).read_text(encoding="utf-8").lower() for name in LOCKS)
    wanted = {re.split(r"[\[<>=!~ ]", name)[0].lower() for name in named}
    assert set() == {name for name in wanted if not re.search(rf"^{re.escape(name)}==", lock, re.MULTILINE)}


def test_the_changelog_knows_the_version() -> None:
    """The newest heading of the changelog is the version, or what is not released yet."""
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] in ("Unreleased", signalbook.__version__)


def test_no_file_names_a_machine() -> None:
    """No tracked text holds a path of the machine it was written on."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    pattern = re.compile(r"/" + r"work/(main|shared)|/" + r"home/[a-z]+/|/" + r"root/")
    found = []
    for name in listing:
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 2_000_000:
            text = path.read_bytes().decode("utf-8", "replace")
            if pattern.search(text):
                found.append(name)
    assert [] == found


def test_no_test_measures_time() -> None:
    """A busy machine fails no test: only `tests/patience.py` looks at the clock, to end what hangs."""
    clock = re.compile(r"\b(?:monotonic|perf_counter|time\.time)\(")
    assert ["tests/patience.py"] == [ids(path) for path in TESTS if clock.search(path.read_text(encoding="utf-8"))]


def test_no_test_is_in_a_hurry() -> None:
    """A request over a socket has as long as a busy machine needs, not the five seconds that httpx gives it."""
    hurried = []
    for path in TESTS:
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        for call in calls:
            if ast.unparse(call.func) in HTTPX and not {"timeout", "transport"} & {one.arg for one in call.keywords}:
                hurried.append(f"{ids(path)}:{call.lineno}")
    assert [] == hurried
