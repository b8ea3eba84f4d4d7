"""What an operator can decide about a running server, as one frozen value.

Rule 1: a setting that cannot work is refused here, in words, before anything is opened.
Rule 2: the server listens to this machine only, unless a token is set or `open` is said.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from signalbook.errors import UsageError
from signalbook.model.xids import ID, must_match
from signalbook.spec import versions

__all__ = ["MEBIBYTE", "OPTIONAL_PATHS", "Settings", "is_loopback"]

MEBIBYTE = 1024 * 1024
# RFC 3986 section 3.2.2: a name or an address, without a port.
_HOST = re.compile(r"[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\]")
# The server's own paths that a model may take, where they are switched off.
OPTIONAL_PATHS = frozenset({"match", "validate", "build", "messagecatalog", "messagedefinition", "confluent"})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server; `checked` gives the same value or says what cannot work.

    `model` is `builtin`, `empty`, or the path of a model source document; it is used when a new store is made.
    The limits of connections and answers are those of one worker, timeouts are in seconds. `keep_changes` is in days;
    `deliver` is whether this server sends events to subscribers; `allow_hosts` are further names of a server that only
    this machine reaches; by `store_connections` a worker reads from PostgreSQL. `confluent_contexts` is `named` or
    `all`: which schema groups are contexts of Confluent's API; `confluent_associations` is `catalog` or `stored`:
    whether the catalog says which subject a topic's values belong to.
    """

    store: str = "signalbook.db"
    registryid: str = "signalbook"
    model: str = "builtin"
    specversion: str = versions.DEFAULT.name
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    read_token: str = field(default="", repr=False)
    write_token: str = field(default="", repr=False)
    read_only: bool = False
    open: bool = False
    cert: Path | None = None
    key: Path | None = None
    max_body: int = 16 * MEBIBYTE
    body_timeout: float = 30.0
    max_steps: int = 10_000_000
    head_timeout: float = 5.0
    answer_timeout: float = 30.0
    max_answers: int = 1024 * MEBIBYTE
    max_connections: int = 4096
    max_client_connections: int = 2048
    max_waiting: int = 100
    base_url: str = ""
    trust_proxy: bool = False
    log: bool = True
    log_format: str = "text"
    include_from: Path | None = None
    trust_unknown: bool = False
    schemas: str = "optional"
    without: frozenset[str] = frozenset()
    keep_changes: float = 30.0
    allow_sinks: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    deliver: bool = True
    store_connections: int = 16
    confluent_root: bool = False
    confluent_group: str = "confluent"
    confluent_contexts: str = "named"
    confluent_associations: str = "catalog"

    @property
    def takes_writes(self) -> bool:
        """Whether there is anybody who may write."""
        return not self.read_only and (self.open or bool(self.write_token) or not self.read_token)

    @property
    def is_private(self) -> bool:
        """Whether everybody on this machine may read, and nobody else.

        Web pages of other origins are nobody, too: a browser sends what they ask for from this machine.
        """
        return is_loopback(self.host) and not self.read_token and not self.open

    @property
    def hosts(self) -> frozenset[str]:
        """The names in `Host` by which this server is known besides those of this machine, in lower case."""
        base = urlsplit(self.base_url).hostname or ""
        return frozenset(host.lower().strip("[]") for host in (*self.allow_hosts, base) if host)

    def checked(self) -> Settings:
        """The same settings; raises `UsageError` with the remedy where they cannot work."""
        if versions.find(self.specversion) is None:
            known = ", ".join(version.name for version in versions.VERSIONS.values())
            raise UsageError(f"specversion '{self.specversion}' is not one of {known}")
        _one_of("--without", sorted(self.without), sorted(OPTIONAL_PATHS))
        self._check_changes()
        self._check_confluent()
        self._check_workers()
        self._check_limits()
        if not self.open and not self.read_token and not is_loopback(self.host):
            raise UsageError(
                f"'{self.host}' can be reached from other machines and anyone could read the catalog; "
                "set --read-token and --write-token, or say --open to serve it without"
            )
        if not self.open and not self.write_token and not self.read_only and not is_loopback(self.host):
            raise UsageError(
                f"'{self.host}' can be reached from other machines and anyone who may read could write; "
                "set --write-token or --read-only, or say --open"
            )
        if (self.cert is None) != (self.key is None):
            raise UsageError("--cert and --key belong together; give both or neither")
        for name, path in (("--cert", self.cert), ("--key", self.key)):
            if path is not None and not path.is_file():
                raise UsageError(f"{name} names '{path}', which is not a file")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise UsageError(f"--base-url '{self.base_url}' must begin with http:// or https://")
        return self

    def _check_workers(self) -> None:
        if self.workers < 1:
            raise UsageError("at least one worker is needed; give --workers 1 or more")
        if self.workers > 1 and self.store.startswith("memory:"):
            raise UsageError("a store in memory cannot be shared by several workers; give a file with --store")
        if self.store_connections < 1:
            raise UsageError("--store-connections is how many connections a worker reads by, and must be above 0")

    def _check_limits(self) -> None:
        for value, words in (
            (self.body_timeout, "--body-timeout is the seconds a client may take for its body"),
            (self.max_body, "--max-body is the largest request body in bytes"),
            (self.max_steps, "--max-steps is the steps of work that one request may take"),
            (self.head_timeout, "--head-timeout is the seconds a connection may be idle"),
            (self.answer_timeout, "--answer-timeout is the seconds a client may leave an answer unread"),
            (self.max_connections, "--max-connections is the connections of one worker"),
            (self.max_waiting, "--max-waiting is how many requests of one client may wait"),
        ):
            if value <= 0:
                raise UsageError(f"{words} and must be above 0")
        if self.max_answers < MEBIBYTE:
            raise UsageError("--max-answers is what all large answers may hold together and must be at least 1m")
        if self.max_client_connections < 0:
            raise UsageError("--max-client-connections is the connections of one address, and 0 for no such limit")

    def _check_changes(self) -> None:
        if self.keep_changes < 0:
            raise UsageError("--keep-changes is the days that changes are kept, and 0 for ever")
        for network in self.allow_sinks:
            _check_network(network)
        for host in self.allow_hosts:
            if not _HOST.fullmatch(host):
                raise UsageError(f"--allow-host '{host}' is not the name of a host; write it without scheme and port")

    def _check_confluent(self) -> None:
        _one_of("--confluent-contexts", [self.confluent_contexts], ["named", "all"])
        _one_of("--confluent-associations", [self.confluent_associations], ["catalog", "stored"])
        if not ID.fullmatch(self.confluent_group):
            raise UsageError(
                f"--confluent-group '{self.confluent_group}' cannot be a group's id: an id {must_match(ID)}"
            )

    @property
    def address(self) -> str:
        """The URL to reach this server by, without a slash at the end."""
        scheme = "https" if self.cert else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.base_url or f"{scheme}://{host}:{self.port}").rstrip("/")


def _one_of(name: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse what is not known."""
    unknown = [one for one in given if one not in known]
    if unknown:
        raise UsageError(f"{name} '{unknown[0]}' is not one of {', '.join(known)}")


def _check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise UsageError(f"--allow-sink '{text}' is not a network; write it as 10.0.0.0/8 or 127.0.0.1") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
