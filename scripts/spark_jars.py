"""Spark's Kafka connector for tests, fetched once with Maven as it is set up on this machine.

    python -m scripts.spark_jars        prints what `--conf spark.jars=` takes

PySpark brings no connector. Where Maven Central can be reached directly, Spark fetches it by itself; this is for all
other places.
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
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>signalbook</groupId><artifactId>spark-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId>
    <version>{pyspark.__version__}</version>
  </dependency></dependencies>
</project>
"""
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
        project, jars = Path(work) / "pom.xml", Path(work) / "jars"
        project.write_text(POM, encoding="utf-8")
        command = [maven, "-q", "-B", "-f", str(project), COPY, f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise Unfetched(f"Maven could not fetch Spark's Kafka connector: {(done.stdout + done.stderr)[-500:]}")
        jars.rename(folder)


if __name__ == "__main__":
    try:
        print(kafka_connector())
    except Unfetched as reason:
        sys.exit(str(reason))
