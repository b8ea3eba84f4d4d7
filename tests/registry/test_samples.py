"""The sample catalogs go into a server and come out again."""

import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.registry.store.connection import StoreLost
from signalbook.registry.store.store import WriteGroups

FOLDER = Path(__file__).resolve().parent.parent.parent / "samples"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.xreg.json")), ids=lambda file: file.name)
def test_a_sample_is_served_as_it_was_written(file: Path, api: Any) -> None:
    """Every attribute of a sample is read back as it stands in the file, schemas and meta included."""
    sample = json.loads(file.read_text(encoding="utf-8"))
    written = api("POST", "/", sample)
    assert written.status == 200, written.json
    shown = api("GET", "/?inline=*").json
    assert [] == list(missing(sample, shown))


def test_all_samples_fit_into_one_registry(api: Any) -> None:
    """The three together are one catalog, which a second load leaves as it is."""
    for _ in range(2):
        for file in sorted(FOLDER.glob("*.xreg.json")):
            assert api("POST", "/", json.loads(file.read_text(encoding="utf-8"))).status == 200
    counts = api("GET", "/").json
    assert (9, 3, 8) == (counts["messagegroupscount"], counts["schemagroupscount"], counts["endpointscount"])


def test_samples_whose_connection_is_lost(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that is run twice, because its connection was lost, writes what it would have written at once."""
    plain, again = WriteGroups._first, [False]

    def first(groups: WriteGroups, queued: Any, kept: Any) -> None:
        plain(groups, queued, kept)
        again[0] = not again[0]
        if again[0]:
            raise StoreLost("the connection was lost")

    monkeypatch.setattr(WriteGroups, "_first", first)
    for file in sorted(FOLDER.glob("*.xreg.json")):
        sample = json.loads(file.read_text(encoding="utf-8"))
        assert 200 == api("POST", "/", sample).status
        assert [] == list(missing(sample, api("GET", "/?inline=*").json))
    assert 4 == api("GET", "/").json["epoch"]


def missing(expected: Any, actual: Any, path: str = "") -> Any:
    """The paths at which `actual` has not what `expected` has."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            yield from missing(value, actual.get(key), f"{path}/{key}")
    elif expected != actual:
        yield f"{path}: {expected!r} is {actual!r}"
