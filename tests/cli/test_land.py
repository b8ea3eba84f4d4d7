import json
from pathlib import Path

import pytest

from signalbook.cli import Exit, main
from signalbook.pipeline import land_files, session
from signalbook.pipeline.land import LandingResult
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
        (Exit.USAGE, ["--from", "events:{}/in.jsonl", "--stream", "--once"], "--stream runs until it is stopped"),
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


def test_what_is_left_out(
    catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hidden files are counted beside the result, whose line stays as it is."""
    monkeypatch.setattr(session, "open_session", lambda settings: None)
    monkeypatch.setattr(session, "check_executors", lambda spark, lake: None)
    monkeypatch.setattr(land_files, "land_files", lambda *given, **more: LandingResult(1, 1, 0))
    for name in ("a.jsonl", ".b.jsonl", "_c/d.jsonl"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).touch()
    given = ["land", "--catalog", catalog, "--to", str(tmp_path / "lake"), "--json", "--from"]
    expected = '{"input":1,"landed":1,"dead":0,"outcomes":{},"messages":{},"unchecked":0}\n'
    for source, said in (("in", "left out: 2 file(s)"), ("in/a.jsonl", "")):
        assert Exit.OK == main([*given, f"events:{tmp_path / source}"])
        printed = capsys.readouterr()
        assert (expected, said) == (printed.out, printed.err.partition(" whose")[0])


def test_a_redrive_is_told_too(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A group that is not there is told before Spark is started."""
    (tmp_path / "lake/_signalbook").mkdir(parents=True)
    options = ["--lake", str(tmp_path / "lake"), "--within", "/messagegroups/nope"]
    assert Exit.ABSENT == main(["redrive", "--catalog", catalog, *options])
    assert "/messagegroups/nope" in capsys.readouterr().err
