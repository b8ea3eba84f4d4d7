"""Registries that speak Confluent's API, in this process, as the two sides of a copy; and one that is not a friend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import orjson

from signalbook.app import StoreTransport, service
from signalbook.client import Call, RegistryReply, RemoteError
from signalbook.replication.confluent import ROOT, ConfluentPeer, ConfluentState
from signalbook.settings import Settings

__all__ = ["FakeRegistry", "Served", "segment"]


def segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


class Served:
    """A registry in a store; `before` is called with each request and may raise or answer it."""

    address = ""

    def __init__(self, store: str, name: str = "registry") -> None:
        self.name = name
        self.before: Callable[[Call], RegistryReply | None] = lambda call: None
        self.calls: list[tuple[str, str]] = []
        self._inner = StoreTransport(name, lambda: service(Settings(store=store, deliver=False)))

    @property
    def peer(self) -> ConfluentPeer:
        """The registry as a side of a copy."""
        return ConfluentPeer(self, ROOT)

    def answer(self, call: Call) -> RegistryReply:
        """The reply to one call."""
        self.calls.append((call.method, call.path))
        return self.before(call) or self._inner.answer(call)

    def writes(self) -> list[str]:
        """The requests that were to write, so far."""
        return [f"{method} {path}" for method, path in self.calls if method != "GET"]

    def close(self) -> None:
        """Give the store back."""
        self._inner.close()

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request below the API's path, and return what the answer holds."""
        content = None if body is None else orjson.dumps(body)
        reply = self._inner.answer(Call(method, f"{ROOT}{path}", content))
        return orjson.loads(reply.content) if reply.content else None

    def register(self, subject: str, schema: Any, **more: Any) -> Any:
        """Register a schema."""
        text = schema if isinstance(schema, str) else orjson.dumps(schema).decode()
        found = self("POST", f"/subjects/{segment(subject)}/versions", {"schema": text, **more})
        assert "id" in found, found
        return found

    def state(self) -> ConfluentState:
        """All that the registry holds."""
        return self.peer.read(ConfluentState(), None, lambda words: None)


class FakeRegistry:
    """Answers what a test wrote down by method and path; everything else is not there."""

    address = ""
    name = "http://fake.test"

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {"GET /subjects?deleted=true": [], "GET /config": {"compatibilityLevel": "BACKWARD"}, **answers}

    def answer(self, call: Call) -> RegistryReply:
        """The reply to one call."""
        found = self.answers.get(f"{call.method} {call.path}")
        if isinstance(found, RemoteError):
            raise found
        if isinstance(found, bytes):
            return RegistryReply(self.name, 200, {}, found)
        if found is None:
            body = orjson.dumps({"error_code": 40401, "message": "not there"})
            return RegistryReply(self.name, 404, {}, body)
        return RegistryReply(self.name, 200, {}, orjson.dumps(found))

    def close(self) -> None:
        """There is nothing to close."""
