import json
from pathlib import Path

import pytest

from signalbook.cli import Exit, main
from signalbook.pipeline.lake import Lake
from tests.pipeline.lakes import document


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """A catalog document."""
    (tmp_path / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    return str(tmp_path / "catalog.json")


def test_ddl(catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables of a catalog are printed without a lake."""
    assert Exit.OK == main(["ddl", "--catalog", catalog])
    assert "CREATE TABLE IF NOT EXISTS `fleet`.`moved` (" in capsys.readouterr().out


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report of a new lake has zeros, as JSON and as a page; of no lake, it says so."""
    Lake.open(str(tmp_path / "lake"))
    page = tmp_path / "report.html"
    assert Exit.OK == main(["report", "--lake", str(tmp_path / "lake"), "--json", "--html", str(page)])
    assert 0 == json.loads(capsys.readouterr().out)["input"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert Exit.ABSENT == main(["report", "--lake", str(tmp_path / "none")])
    assert "is not a lake" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from", "nowhere"], "does not name a source"),
        (["--from", "events:in", "--stream", "--again"], "--again is for files"),
        (["--from", "events:in", "--conf", "x"], "NAME=VALUE"),
    ],
)
def test_wrong_usage(
    catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    """What is asked wrongly is told before Spark is started."""
    assert Exit.USAGE == main(["land", "--catalog", catalog, "--to", str(tmp_path / "lake"), *options])
    assert words in capsys.readouterr().err


def test_redrive_needs_a_lake(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made where there is not a lake."""
    assert Exit.ABSENT == main(["redrive", "--catalog", catalog, "--lake", str(tmp_path / "none")])
    assert "is not a lake" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
