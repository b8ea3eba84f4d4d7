import json
from pathlib import Path

import pytest

from signalbook.cli import Exit, main
from signalbook.pipeline import session
from tests.pipeline.lakes import document


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A catalog document, where Spark cannot be started."""

    def started(settings: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "open_session", started)
    (tmp_path / "catalog.json").write_text(json.dumps(document()), encoding="utf-8")
    (tmp_path / "in.jsonl").touch()
    return str(tmp_path / "catalog.json")


@pytest.mark.parametrize(
    ("code", "options", "words"),
    [
        (Exit.USAGE, ["--from", "events:{}/in.jsonl", "--stream", "--once"], "--stream goes on until stopped"),
        (Exit.ABSENT, ["--from", "events:{}/nowhere"], "nowhere' is neither a file nor a folder"),
        (Exit.ABSENT, ["--from", "events:{}/nowhere", "--stream"], "nowhere' is neither a file nor a folder"),
        (Exit.ABSENT, ["--from", "events:{}/in.jsonl", "--within", "/messagegroups/nope"], "/messagegroups/nope"),
    ],
)
def test_told_before_spark_is_started(
    catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: Exit, options: list[str], words: str
) -> None:
    """What is asked wrongly is told at once, and no lake is made."""
    given = [option.format(tmp_path) for option in options]
    assert code == main(["land", "--catalog", catalog, "--to", str(tmp_path / "lake"), *given])
    assert words in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_a_redrive_is_told_too(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A group that is not there is told before Spark is started."""
    (tmp_path / "lake/_signalbook").mkdir(parents=True)
    options = ["--lake", str(tmp_path / "lake"), "--within", "/messagegroups/nope"]
    assert Exit.ABSENT == main(["redrive", "--catalog", catalog, *options])
    assert "/messagegroups/nope" in capsys.readouterr().err
