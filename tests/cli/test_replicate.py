"""The command replicate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbook import Registry, app
from signalbook.cli import main
from signalbook.replication.replicate import Replication
from signalbook.replication.target import ReplicationReport
from signalbook.settings import Settings
from tests.replication.catalog01_server import CatalogServer

MESSAGE = "/messagegroups/g/messages/m"


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A store with one message."""
    path = tmp_path / "source.db"
    with Registry.open(path) as registry:
        registry.put(MESSAGE, {"description": "x"})
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """Run `replicate` and give its exit code and its report."""
    code = main(["replicate", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out or "null")


@pytest.mark.parametrize("way", ["pull", "push"])
def test_from_store_to_store(way: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Either way brings the target up to date, which is made where it is missing."""
    target = str(tmp_path / "target.db")
    code, report = run(capsys, way, "--from", source, "--to", target)
    assert (0, {"written": 2}, True) == (code, report["outcomes"], report["compared"])
    code, report = run(capsys, way, "--from", source, "--to", target)
    assert (0, {}, False) == (code, report["outcomes"], report["compared"])
    with Registry.open(target) as registry:
        assert registry.get(MESSAGE)["authority"].startswith("urn:signalbook:catalog:")


def test_a_store_states_the_base_that_its_server_was_given(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy that is pulled from the store itself has the URIs that the catalog's server states."""
    app.service(Settings(store=source, base_url="https://public.example/")).close()
    target = str(tmp_path / "target.db")
    assert 0 == run(capsys, "pull", "--from", source, "--to", target)[0]
    with Registry.open(target) as registry:
        assert "https://public.example/messagecatalog" == registry.get(MESSAGE)["authority"]


def test_conflicts_are_findings(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A conflict is told in words and by exit code 1."""
    target = tmp_path / "target.db"
    with Registry.open(target) as registry:
        registry.put(MESSAGE, {"description": "y"})
    assert 1 == main(["replicate", "pull", "--from", source, "--to", str(target)])
    told = capsys.readouterr().err
    assert f"conflict: {MESSAGE}: there is one of this catalog's own" in told
    assert "--on-conflict keep-both keeps" in told


def test_a_conflict_is_told_again(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So it is by the next run, until it has ended."""
    target = tmp_path / "target.db"
    with Registry.open(target) as registry:
        registry.put(MESSAGE, {"description": "y"})
    for _ in range(2):
        code, report = run(capsys, "pull", "--from", source, "--to", str(target))
        assert (1, [MESSAGE]) == (code, [problem["xid"] for problem in report["problems"]])
    with Registry.open(target) as registry:
        registry.delete(MESSAGE)
    assert 0 == run(capsys, "pull", "--from", source, "--to", str(target))[0]


def test_following_tells_what_is_wrong_once(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A problem that stays is told when it comes, not with every look at the source; one that comes again is."""

    def reports(self: Replication, every: float, **_: Any) -> Iterator[ReplicationReport]:
        for wrong in (True, True, True, False, True):
            report = ReplicationReport()
            report.add([{"xid": MESSAGE, "outcome": "conflict", "detail": "it differs"}] if wrong else [])
            yield report

    monkeypatch.setattr(Replication, "follow", reports)
    main(["replicate", "follow", "--from", source, "--to", str(tmp_path / "target.db")])
    assert 2 == capsys.readouterr().err.count(f"conflict: {MESSAGE}: it differs")


def test_a_misspelt_scope(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scope that the source does not have is told, also by the next run."""
    arguments = ["replicate", "pull", "--from", source, "--to", str(tmp_path / "b.db"), "--scope", "/messagegroups/q"]
    for _ in range(2):
        assert 1 == main(arguments)
        assert "has no /messagegroups/q" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--from", "nothing.db", "--to", "b.db"], 3),
        (["--from", "http://127.0.0.1:1", "--to", "b.db"], 3),
        (["--from", "http://127.0.0.1:1", "--to", "b.db", "--scope", "x"], 2),
        (["--from", "http://127.0.0.1:1", "--to", "b.db", "--map-group", "x"], 2),
        (["--from", "http://127.0.0.1:1", "--to", "b.db", "--map-group", "x=z", "--map-group", "y=z"], 2),
        (["--from", "http://127.0.0.1:1", "--to", "b.db", "--authority", "not a uri"], 2),
        (["--from", "a.db"], 2),
    ],
)
def test_wrong_usage(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot work ends with a sentence and the exit code for it."""
    monkeypatch.chdir(tmp_path)
    assert code == main(["replicate", "pull", *arguments])
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--from", "http://127.0.0.1:1", "--to", "b.db", "--sink", "https://x.example"],
        ["--from", "http://127.0.0.1:1", "--to", "b.db", "--listen", "x"],
        ["--from", "source.db", "--to", "b.db", "--listen", "127.0.0.1:0"],
        ["--from", "http://127.0.0.1:1", "--to", "b.db", "--every", "0"],
    ],
)
def test_wrong_usage_of_follow(
    arguments: list[str], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """What cannot be followed is said at once."""
    monkeypatch.chdir(tmp_path)
    assert 2 == main(["replicate", "follow", *arguments])
    assert "Traceback" not in capsys.readouterr().err


@pytest.fixture
def catalog() -> Iterator[CatalogServer]:
    """A server that speaks the 0.1 API alone."""
    made = CatalogServer()
    yield made
    made.close()


@pytest.mark.parametrize("suffix", ["", "/", "/messagecatalog"])
def test_a_catalog_of_01(
    catalog: CatalogServer, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Push and pull find out that a peer speaks 0.1 alone, by its root or by its catalog's own address."""
    stores = [str(tmp_path / name) for name in ("a.db", "b.db")]
    with Registry.open(stores[0]) as registry:
        registry.put("/messagegroups/g", {"envelope": "CloudEvents/1.0"})
        registry.put(MESSAGE, {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "m"}}})
    code, report = run(capsys, "push", "--from", stores[0], "--to", catalog.address + suffix)
    assert (0, {"written": 2}) == (code, report["outcomes"])
    code, report = run(capsys, "pull", "--from", catalog.address + suffix, "--to", stores[1])
    assert (0, {"written": 2}) == (code, report["outcomes"])
    with Registry.open(stores[1]) as registry:
        assert registry.get(MESSAGE)["authority"].startswith("urn:signalbook:catalog:")


def test_a_number_that_differs_is_a_note(
    catalog: CatalogServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told in words, and nothing is wrong."""
    store = str(tmp_path / "a.db")
    with Registry.open(store) as registry:
        for _ in range(2):
            registry.put(MESSAGE, {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "m"}}})
            registry.delete(MESSAGE)
        registry.put(MESSAGE, {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "m"}}})
        registry.patch("/messagegroups/g", {"envelope": "CloudEvents/1.0"})
    assert 0 == main(["replicate", "push", "--from", store, "--to", catalog.address])
    assert f"note: {MESSAGE}: the source's version 3 is version 1 at the target" in capsys.readouterr().err


def test_both_are_kept_where_that_is_said(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--on-conflict keep-both ends with exit code 0 and two messages."""
    target = str(tmp_path / "target.db")
    with Registry.open(target) as registry:
        registry.put(MESSAGE, {"description": "y"})
    assert 1 == run(capsys, "pull", "--from", source, "--to", target)[0]
    assert 0 == run(capsys, "pull", "--from", source, "--to", target, "--on-conflict", "keep-both")[0]
    with Registry.open(target) as registry:
        assert {"x", "y"} == {one["description"] for one in registry.get("/messagegroups/g/messages").values()}
