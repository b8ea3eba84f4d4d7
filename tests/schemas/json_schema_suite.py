"""The official JSON Schema Test Suite, read from the source distribution of the package `jsonschema`.

The suite is published in no wheel, so `make test` downloads that archive (requirements-suites.lock); it is read where
it lies. SIGNALBOOK_JSON_SCHEMA_SUITE names another archive.
"""

import json
import os
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "suites"
REMOTE = "http://localhost:1234/"


class Test(NamedTuple):
    """One test: a group's schema, a payload of it, and whether it is valid."""

    file: str
    group: str
    name: str
    schema: Any
    payload: bytes
    valid: bool

    __test__ = False

    @property
    def id(self) -> str:
        """How a failing test is named."""
        return f"{self.file}: {self.group}: {self.name}"


@cache
def _archive() -> dict[str, bytes]:
    """All files of the suite, by their path in it."""
    stated = os.environ.get("SIGNALBOOK_JSON_SCHEMA_SUITE")
    found = [Path(stated)] if stated else sorted(FOLDER.glob("jsonschema-*.tar.gz"))
    if not found:
        pytest.skip("the JSON Schema Test Suite is not here: make tests downloads it")
    files = {}
    with tarfile.open(found[-1]) as archive:
        for member in archive:
            path = member.name.partition("/json/")[2]
            if member.isfile() and path.endswith(".json") and path.startswith(("tests/", "remotes/")):
                opened = archive.extractfile(member)
                assert opened is not None
                files[path] = opened.read()
    return files


def remote(uri: str) -> bytes | None:
    """The suite's own document at a URI, as a catalog would give it."""
    return _archive().get("remotes/" + uri.removeprefix(REMOTE)) if uri.startswith(REMOTE) else None


def tests(draft: str, *folders: str) -> Iterator[Test]:
    """The tests of a draft: the required ones, or those in a folder such as `optional`."""
    prefix = "/".join(["tests", draft, *folders]) + "/"
    for path, content in sorted(_archive().items()):
        name = path.removeprefix(prefix)
        if path.startswith(prefix) and "/" not in name:
            for group in json.loads(content):
                for test in group["tests"]:
                    payload = json.dumps(test["data"]).encode()
                    yield Test(name, group["description"], test["description"], group["schema"], payload, test["valid"])
