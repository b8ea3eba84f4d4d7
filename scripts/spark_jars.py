"""Spark's Kafka connector for tests, fetched once with Maven as it is set up on this machine.

    python -m scripts.spark_jars        prints what `--conf spark.jars=` takes

PySpark brings no connector. Maven is told to refuse what does not have the sum that its repository states (`-C`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

__all__ = ["Unfetched", "kafka_connector"]

CACHE = Path(__file__).resolve().parent.parent / ".cache"
SECONDS = 900
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
GROUP = "org.apache.spark"
# Which of the connector's own parts is taken from an older Spark where a repository lacks it: delegation tokens, whose
# classes the connector only looks at, and which a test without Kerberos never has.
TOKENS, OLDER = "spark-token-provider-kafka-0-10_2.13", "4.0.0"
_version = re.compile(r"-[0-9].*")


class Unfetched(Exception):
    """Why the connector cannot be had."""


def kafka_connector() -> str:
    """The jars of the connector that PySpark does not have, separated by commas."""
    folder = CACHE / f"spark-kafka-{pyspark.__version__}"
    if not folder.is_dir():
        _fetch(folder)
    own = {_version.sub("", jar.name) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if _version.sub("", jar.name) not in own)


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unfetched("Spark's Kafka connector is fetched with Maven, which is not installed")
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="spark-") as work:
        wrong = _copy(maven, Path(work), _pom())
        if wrong and TOKENS in wrong:
            print(f"{TOKENS} {pyspark.__version__} could not be fetched; its {OLDER} takes its place", file=sys.stderr)
            wrong = _copy(maven, Path(work), _pom(OLDER))
        if wrong:
            raise Unfetched(f"Maven could not fetch Spark's Kafka connector: {wrong}")
        (Path(work) / "jars").rename(folder)


def _copy(maven: str, work: Path, project: str) -> str:
    """Have Maven copy a project's jars; what went wrong, if something did."""
    (work / "pom.xml").write_text(project, encoding="utf-8")
    jars = f"-DoutputDirectory={work / 'jars'}"
    command = [maven, "-q", "-B", "-C", "-f", str(work / "pom.xml"), COPY, jars, "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return (done.stdout + done.stderr)[:500] if done.returncode != 0 else ""


def _pom(tokens: str = "") -> str:
    """A project that needs the connector, with its part for tokens as it comes or from another Spark."""
    connector = _dependency("spark-sql-kafka-0-10_2.13", pyspark.__version__, GROUP, TOKENS if tokens else "")
    older = _dependency(TOKENS, tokens, "*", "*") if tokens else ""
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>signalbook</groupId><artifactId>spark-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{connector}{older}</dependencies>
</project>
"""


def _dependency(artifact: str, version: str, group: str, left_out: str) -> str:
    without = (
        f"<exclusion><groupId>{group}</groupId><artifactId>{left_out}</artifactId></exclusion>" if left_out else ""
    )
    return (
        f"<dependency><groupId>{GROUP}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<exclusions>{without if left_out else ''}</exclusions></dependency>"
    )


if __name__ == "__main__":
    try:
        print(kafka_connector())
    except Unfetched as reason:
        sys.exit(str(reason))
