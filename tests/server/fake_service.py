"""A service with one path for each thing an edge must cope with, and a program that serves it."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from signalbook.errors import RegistryError, StoreError
from signalbook.server import http
from signalbook.server.dispatch import unchanged
from signalbook.server.http import JSON, Request, Response
from signalbook.server.run import serve
from signalbook.settings import Settings

DOCUMENT = json.dumps({"description": "a body worth coding " * 100}).encode()


class FakeService:
    """Answers by path."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.closed = False

    def quick(self, request: Request) -> Response | None:
        """`/quick` and `/document` at once."""
        if request.path == "/quick":
            return Response(200, [JSON], json.dumps({"base": request.base, "method": request.method}).encode())
        if request.path == "/document":
            if unchanged(request.headers.get("if-none-match"), '"7"') is not None:
                return Response(304, [("etag", '"7"')])
            return Response(200, [JSON, ("etag", '"7"')], DOCUMENT)
        if request.path == "/quick-failure":
            raise ValueError("a secret of the service")
        return None

    def answer(self, request: Request) -> Response:
        """The rest, in a thread."""
        if request.method == "OPTIONS":
            return http.options(request, "GET, OPTIONS, PUT")
        if request.path == "/failure":
            raise ValueError("a secret of the service")
        if request.path == "/busy":
            raise StoreError("the database is locked")
        if request.path == "/missing":
            raise RegistryError("not_found", "/missing")
        if request.path.startswith("/sleep/"):
            time.sleep(float(request.path.removeprefix("/sleep/")))
        if request.path.startswith("/until/"):
            while not Path(request.path.removeprefix("/until")).exists():
                time.sleep(0.01)
        told = {"method": request.method, "size": len(request.body), "headers": dict(request.headers.items())}
        return Response(200, [JSON], json.dumps(told).encode())

    def health(self) -> str:
        """What the test wants."""
        return self.failing

    def measures(self) -> Mapping[str, float]:
        """One figure."""
        return {"write_groups_total": 3}

    def close(self) -> None:
        """Remember it."""
        self.closed = True


def make(settings: Settings) -> FakeService:
    """The factory that a worker calls."""
    return FakeService()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    serve(make, Settings(**{name: Path(value) if name in ("cert", "key") else value for name, value in given.items()}))
