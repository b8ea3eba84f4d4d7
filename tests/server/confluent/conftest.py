"""Clients of Confluent's API, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest

from tests.in_process import in_process
from tests.registry.conftest import make_api

__all__ = ["PING", "PONG", "Registered", "confluent", "make_api"]

PING = {"type": "record", "name": "Ping", "fields": [{"name": "at", "type": "long"}]}
PONG = {"type": "record", "name": "Pong", "fields": [{"name": "of", "type": "string"}]}


class Registered:
    """A client of one server: the paths of Confluent's API, and those of the registry."""

    def __init__(self, http: httpx.Client, root: str = "/confluent") -> None:
        self.http = http
        self.root = root

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request below the API's path, and return what the answer holds."""
        answer = self.http.request(method, self.root + path, json=body, **more)
        return orjson.loads(answer.content) if answer.content else None

    def code(self, method: str, path: str, body: Any = None, **more: Any) -> int:
        """Send a request that fails, and return the code of the error; 0 where it does not."""
        found = self(method, path, body, **more)
        return int(found.get("error_code", 0)) if isinstance(found, dict) else 0

    def register(self, subject: str, schema: Any, **more: Any) -> Any:
        """Register a schema, given as text or as JSON."""
        text = schema if isinstance(schema, str) else orjson.dumps(schema).decode()
        return self("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": text, **more})


@pytest.fixture
def confluent() -> Iterator[Registered]:
    """A client of a server with an empty catalog."""
    with in_process(deliver=False) as http:
        yield Registered(http)
