"""Real message brokers for tests, each on ports of its own, in a folder that is removed with it.

    with nats() as broker:
        ...                         # broker.address is "127.0.0.1:41234"

    with Fleet(["kafka", "nats"]) as fleet:
        fleet.get("kafka")          # they start side by side; this waits for one, or raises Unavailable

    python -m scripts.brokers nats kafka          # start them, print their addresses, until Ctrl+C

Rule 1: a broker that cannot be had raises `Unavailable` with the reason in words; nothing else is swallowed.
Rule 2: whoever starts one stops it: the process group is ended, and the folder removed, also after a failure.
Programs come from the system; where one is missing and we are root, from Debian's packages, Kafka from Maven Central.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["BROKERS", "Broker", "Fleet", "Unavailable", "kafka", "mosquitto", "nats", "rabbitmq"]

ROOT = Path(__file__).resolve().parent.parent
KAFKA_VERSION = "3.9.1"
KAFKA_JARS = ROOT / ".cache" / f"kafka-{KAFKA_VERSION}"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
HOST = "127.0.0.1"
START_SECONDS = 90
INSTALL_SECONDS = 600
STOP_SECONDS = 15
_installing = threading.Lock()


class Unavailable(Exception):
    """Why a broker cannot be had here."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs."""

    name: str
    port: int
    folder: Path

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"


@contextmanager
def mosquitto() -> Iterator[Broker]:
    """Mosquitto, for MQTT 5.0 and 3.1.1, open to anyone on this machine."""
    program = _program("mosquitto", package="mosquitto")
    with _folder("mosquitto") as folder:
        (port,) = _free_ports(1)
        settings = folder / "mosquitto.conf"
        settings.write_text(f"listener {port} {HOST}\nallow_anonymous true\npersistence false\n")
        with _running("mosquitto", [program, "-c", str(settings)], folder, port):
            yield Broker("mosquitto", port, folder)


@contextmanager
def nats() -> Iterator[Broker]:
    """A NATS server with JetStream."""
    program = _program("nats-server", package="nats-server")
    with _folder("nats") as folder:
        (port,) = _free_ports(1)
        command = [program, "--addr", HOST, "--port", str(port), "--jetstream", "--store_dir", str(folder / "store")]
        with _running("nats", command, folder, port):
            yield Broker("nats", port, folder)


@contextmanager
def rabbitmq() -> Iterator[Broker]:
    """RabbitMQ with AMQP 1.0; user and password are `guest`, a queue's address is `/queue/NAME`."""
    _program("rabbitmq-server", package="rabbitmq-server")
    # The wrapper in the path insists on a user and on folders of its own.
    program = _program("/usr/lib/rabbitmq/bin/rabbitmq-server", package="rabbitmq-server")
    epmd = _program("epmd", package="rabbitmq-server")
    with _folder("rabbitmq") as folder, ExitStack() as stack:
        port, dist_port, epmd_port = _free_ports(3)
        (folder / "plugins").write_text("[rabbitmq_amqp1_0].\n")
        (folder / "rabbitmq.conf").write_text("log.console = true\nlog.file = false\n")
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": f"signalbook{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(dist_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
        }
        # RabbitMQ would start a port mapper that outlives it, so it gets one that is ours.
        stack.enter_context(_running("epmd", [epmd], folder, epmd_port, environment))
        stack.enter_context(_running("rabbitmq", [program], folder, port, environment))
        yield Broker("rabbitmq", port, folder)


@contextmanager
def kafka() -> Iterator[Broker]:
    """Apache Kafka, one node that is broker and controller (KRaft); a topic is made when it is first used."""
    java = _program("java", package="default-jre-headless")
    jars = _kafka_jars()
    with _folder("kafka") as folder:
        port, controller = _free_ports(2)
        settings = folder / "server.properties"
        settings.write_text(_kafka_settings(port, controller, folder / "data"))
        run = [java, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        storage = [*run, "kafka.tools.StorageTool", "format", "-t", "c2lnbmFsYm9vay10ZXN0cw", "-c", str(settings)]
        _finish("kafka", storage, START_SECONDS)
        with _running("kafka", [*run, "kafka.Kafka", str(settings)], folder, port):
            yield Broker("kafka", port, folder)


BROKERS: Mapping[str, Callable[[], AbstractContextManager[Broker]]] = {
    "kafka": kafka,
    "mosquitto": mosquitto,
    "nats": nats,
    "rabbitmq": rabbitmq,
}


class Fleet:
    """Several brokers that start side by side, and stop together."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(set(names))
        self._pool = ThreadPoolExecutor(max(1, len(self._names)))
        self._stacks = {name: ExitStack() for name in self._names}
        self._started: dict[str, Future[Broker]] = {}

    def __enter__(self) -> Self:
        for name in self._names:
            self._started[name] = self._pool.submit(self._stacks[name].enter_context, BROKERS[name]())
        return self

    def get(self, name: str) -> Broker:
        """The broker once it runs; raises `Unavailable`."""
        return self._started[name].result()

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()
        with ThreadPoolExecutor(max(1, len(self._names))) as pool:
            list(pool.map(lambda stack: stack.close(), self._stacks.values()))


def _program(name: str, package: str) -> str:
    """Where a program is; installs its package where we may."""
    # A user's path lacks the folders that Debian has servers in.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        _install(package)
        found = shutil.which(name, path=path)
    if found is None:
        raise Unavailable(f"the package {package} has no {name}")
    return found


def _install(package: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"it is not installed (Debian: apt install {package})")
    with _installing, _no_services():
        print(f"brokers: installing {package}", file=sys.stderr, flush=True)
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        try:
            _finish(package, install, INSTALL_SECONDS, environment)
        except Unavailable:
            _finish(package, ["apt-get", "update", "-qq"], INSTALL_SECONDS, environment)
            _finish(package, install, INSTALL_SECONDS, environment)


@contextmanager
def _no_services() -> Iterator[None]:
    """Keep Debian from starting what it installs: we want the program, not a server of the machine's."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


def _kafka_jars() -> Path:
    """The folder with Kafka and what it needs, fetched once."""
    if KAFKA_JARS.is_dir():
        return KAFKA_JARS
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Kafka is fetched with Maven, which is not installed (Debian: apt install maven)")
    KAFKA_JARS.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KAFKA_JARS.parent, prefix="kafka-") as folder:
        project = Path(folder) / "pom.xml"
        project.write_text(_POM)
        print(f"brokers: fetching Kafka {KAFKA_VERSION}", file=sys.stderr, flush=True)
        jars = Path(folder) / "jars"
        _finish(
            "kafka", [maven, "-q", "-B", "-C", "-f", str(project), COPY, f"-DoutputDirectory={jars}"], INSTALL_SECONDS
        )
        jars.rename(KAFKA_JARS)
    return KAFKA_JARS


_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>signalbook</groupId><artifactId>brokers</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
  </dependency></dependencies>
</project>
"""


def _kafka_settings(port: int, controller: int, data: Path) -> str:
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{HOST}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}
advertised.listeners=PLAINTEXT://{HOST}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def _folder(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"signalbook-{name}-", ignore_cleanup_errors=True) as folder:
        # A server that gives up being root must still read its settings.
        Path(folder).chmod(0o755)
        yield Path(folder)


def _free_ports(count: int) -> list[int]:
    probes = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _finish(name: str, command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> None:
    """Run a program to its end."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not end within {seconds:.0f} seconds") from None
    if done.returncode != 0:
        raise Unavailable(f"{name}: {Path(command[0]).name} failed: {_last_words(done.stdout)}")


@contextmanager
def _running(
    name: str, command: Sequence[str], folder: Path, port: int, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server while the block runs; it begins when the port answers."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise Unavailable(f"{name} did not start: {_last_words(log.read_bytes())}")
            time.sleep(0.05)
        yield
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and what it has started: the group that is its own."""
    for end in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, end)
            process.wait(STOP_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((HOST, port)) == 0


def _last_words(output: bytes) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-3:]) or "it said nothing"


def _main(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in BROKERS]
    if unknown or not names:
        print(f"usage: python -m scripts.brokers {'|'.join(BROKERS)} …", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Fleet(names) as fleet:
        for name in names:
            try:
                print(f"{name} {fleet.get(name).address}", flush=True)
            except Unavailable as reason:
                print(f"{name} SKIPPED {reason}", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
