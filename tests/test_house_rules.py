"""The habits that a machine can hold: sizes, names, opening words, what a file must not say."""

import ast
import contextlib
import importlib
import itertools
import json
import re
import subprocess
from collections import Counter
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

import signalbook
from signalbook.clients import MissingLibrary

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CATCH_ALLS = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "misc", "impl"}
LOCKS = ("requirements.lock", "requirements-amqp.lock", "requirements-uv.lock")
# Modules that are run rather than imported.
PROGRAMS = {"__main__"}
# Longer than 700 lines: one reader of JSON text for everybody.
LONG_SUBJECTS = {"src/signalbook/jsontext.py"}
# Tests that are about no single module, by folder, by name wherever they are, or by file, with what they tell.
STORIES = {
    "conformance": "what the specification and the source texts say",
    "integration": "real brokers, clusters and object stores",
    "proofs": "kills, hostile requests and replication under load",
    "properties": "random requests against a simple model of the rules",
    "samples": "the sample catalogs",
    "corpora.py": "fast and general path agree on every corpus",
    "fuzz.py": "damaged input",
    "hostile.py": "input that would take all memory or time",
    "laws.py": "laws of a whole package",
    "suite.py": "a public suite of cases",
    "cli/test_messages.py": "what commands print when something is wrong",
    "cloudevents/test_bindings.py": "events through every binding",
    "cloudevents/test_carrying.py": "events on messages of every protocol",
    "cloudevents/test_conformance.py": "the cases of the official SDKs",
    "cloudevents/test_values.py": "values of every type of attribute",
    "dialects/test_conversions.py": "whole documents between the dialects",
    "messages/test_older_dialects.py": "documents of older dialects match as those of 1.0",
    "messages/test_public_catalogs.py": "catalogs that others have published",
    "messages/test_read_back.py": "a catalog matches the same from a file and from a registry",
    "messages/test_value_laws.py": "writes and matches agree about values",
    "pipeline/test_full_disk.py": "a disk that is full",
    "pipeline/test_kills.py": "landings that are killed",
    "pipeline/test_payload_values.py": "columns hold what payloads say, in every format",
    "pipeline/test_spark_api.py": "the functions of `signalbook.spark`",
    "protocols/test_one_place.py": "a protocol is spelled in one place",
    "registry/read/test_point_reads.py": "a point read is a read",
    "registry/test_bad_input.py": "requests that are wrong",
    "registry/test_builtin.py": "the built-in model, entity by entity",
    "registry/test_concurrency.py": "several writers at once",
    "registry/test_etags.py": "tags and what they promise",
    "registry/test_find.py": "searching and paging through the API",
    "registry/test_nesting.py": "catalogs in catalogs, and 0.1 in 1.0",
    "registry/test_preconditions.py": "If-Match and epochs",
    "registry/test_samples.py": "the samples are served as written",
    "registry/test_seeds.py": "the statements of the source texts about a registry",
    "registry/test_transaction.py": "several changes in one transaction",
    "replication/test_histories.py": "restored and forked catalogs",
    "schemas/json_schema/test_typed_reader.py": "the typed reader says what the engine says",
    "schemas/test_samples.py": "payloads made up, for every format",
    "sources/test_malformed.py": "files that are broken",
    "spec/test_reference_pages.py": "the pages that are written from tables",
    "test_coverage_gates.py": "scripts/coverage_gates.py",
    "test_demo.py": "examples/demo",
    "test_docs.py": "the documents",
    "test_house_rules.py": "this file",
    "test_walk.py": "scripts/walk.py",
}
HTTPX = {f"httpx.{name}" for name in ("get", "head", "options", "post", "put", "patch", "delete", "request", "Client")}


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


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
    openings = {ids(module): ast.get_docstring(parsed(module)) for module in MODULES}
    assert [] == [name for name, opening in openings.items() if not opening or len(opening.splitlines()) > 20]


def test_the_package_stays_small() -> None:
    """There are at most 200 modules besides the openings of packages."""
    assert 200 >= len([module for module in MODULES if module.name != "__init__.py"])


def test_a_class_name_means_one_thing() -> None:
    """A class of one name exists once, so that a name in a traceback or a search leads to one place."""
    found = Counter(
        node.name for module in MODULES for node in ast.walk(parsed(module)) if isinstance(node, ast.ClassDef)
    )
    assert set() == {name for name, count in found.items() if count > 1}


def test_json_is_typed_in_one_place() -> None:
    """No module has an alias of its own for values of JSON."""
    alias = re.compile(r"^_?Json\w*(?:: TypeAlias)? = ", re.MULTILINE)
    found = {ids(module) for module in MODULES if alias.search(module.read_text(encoding="utf-8"))}
    assert {"src/signalbook/jsontext.py"} == found


def test_tests_mirror_modules() -> None:
    """A file of tests begins with the name of a module or package in the same place, or tells a story named here."""
    package = ROOT / "src" / "signalbook"
    lone = set()
    for path in TESTS:
        place = path.relative_to(ROOT / "tests")
        words = path.stem.split("_")[1:]
        named = [package / place.parent / "_".join(words[:end]) for end in range(1, len(words) + 1)]
        if not any(one.is_dir() or one.with_suffix(".py").is_file() for one in named):
            lone.add(str(place))
    told = {one for one in lone if not Path(one).stem.startswith("test_") or one in STORIES}
    told |= {one for one in lone if one.partition("/")[0] in STORIES or one.rpartition("test_")[2] in STORIES}
    told |= {one for one in lone if Path(one).parent.name == Path(one).stem.removeprefix("test_")}  # the package itself
    assert set() == lone - told


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


def test_nothing_is_fetched_unchecked() -> None:
    """What sets up the project is held to hashes, and Maven to the sums of its repository."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    fetching = [line for line in makefile.splitlines() if re.search(r"pip (install|download)", line)]
    assert 4 < len(fetching)
    assert [] == [line for line in fetching if "--require-hashes" not in line and "--no-deps -e ." not in line]
    scripts = [path.read_text(encoding="utf-8") for path in (ROOT / "scripts").glob("*.py")]
    calls = [line for text in scripts for line in text.splitlines() if re.search(r"\[maven,", line)]
    assert [True, True] == ['"-C"' in line for line in calls]


def test_the_lock_of_npm_names_no_place() -> None:
    """The same for what npm fetches: a version and a hash of each package, and no address of one."""
    lock = json.loads((ROOT / "tests/integration/clients/package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert len(packages) > 100
    assert [] == [name for name, one in packages.items() if "resolved" in one or not one.get("integrity")]
    wanted = json.loads((ROOT / "tests/integration/clients/package.json").read_text(encoding="utf-8"))["dependencies"]
    assert wanted == {name: packages[f"node_modules/{name}"]["version"] for name in wanted}


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
        calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        for call in calls:
            if ast.unparse(call.func) in HTTPX and not {"timeout", "transport"} & {one.arg for one in call.keywords}:
                hurried.append(f"{ids(path)}:{call.lineno}")
    assert [] == hurried


# Licences that ask for no more than to be passed on with what is under them.
PERMISSIVE = re.compile(r"MIT|BSD|0BSD|Apache|Zlib|CC0")


def licence_of(package: Distribution) -> str:
    """What a package's metadata says of its licence."""
    said = package.metadata.get_all("Classifier") or []
    classified = " AND ".join(one.rpartition(" :: ")[2] for one in said if one.startswith("License ::"))
    return package.metadata["License-Expression"] or classified or package.metadata["License"] or ""


def needed(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """The packages that one brings along, with any of its extras, as far as they are installed."""
    for text in distribution(name).requires or ():
        inner = re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0].lower().replace("_", "-")
        if inner in found or ("extra ==" in text and name != "signalbook" and inner != "psycopg-binary"):
            continue
        with contextlib.suppress(PackageNotFoundError):
            found[inner] = distribution(inner)
            needed(inner, found)
    return found


def test_the_notice_names_what_needs_naming() -> None:
    """Each installed dependency with another licence than the usual ones, or with a notice of its own, is named."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    packages = needed("signalbook", {})
    assert {"lxml", "certifi"} <= packages.keys()
    named = {
        name
        for name, one in packages.items()
        if any(not PERMISSIVE.search(part) for part in re.split(r" (?:AND|OR) ", licence_of(one)))
        or any(Path(str(file)).name.startswith("NOTICE") and ".dist-info" in str(file) for file in one.files or ())
    }
    assert {"certifi", "orjson", "fastavro"} <= named
    assert [] == sorted(name for name in named if not re.search(rf"^{name} ", notice, re.MULTILINE))


def test_the_floor_of_lxml() -> None:
    """CVE-2026-41066: before 6.1 a parser of lxml may read files that an entity names."""
    floor = re.search(r'"lxml>=([0-9.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert floor is not None
    assert (6, 1) <= tuple(map(int, floor[1].split(".")))
