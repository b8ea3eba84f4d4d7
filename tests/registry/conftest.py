"""A registry's HTTP API in this process: what a client sees, without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from signalbook import app
from signalbook.server import problems
from signalbook.server.dispatch import joined
from signalbook.server.http import Request
from signalbook.settings import Settings

BASE = "http://registry.test"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; None where there is none."""
        return orjson.loads(self.body) if self.body else None

    @property
    def error(self) -> str:
        """The name of the error that the body holds, or an empty text."""
        return str(self.json["type"]).rpartition("#")[2] if self.status >= 400 else ""


class Api:
    """Sends requests to one registry; a body that is not bytes is sent as JSON."""

    def __init__(self, settings: Settings) -> None:
        self.service = app.service(settings)

    def __call__(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, base: str = BASE
    ) -> Reply:
        """Send one request."""
        path, _, query = path.partition("?")
        content = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        request = Request(method, path, query, joined((headers or {}).items()), content, base)
        try:
            response = self.service.quick(request) or self.service.answer(request)
        except Exception as error:
            response = problems.respond(error, path)
        return Reply(response.status, {name.lower(): text for name, text in response.headers}, response.body)


MakeApi = Callable[..., Api]


@pytest.fixture
def make_api(store_url: str) -> Iterator[MakeApi]:
    """Make a registry with settings of the test's choice: `make_api(model="empty", specversion="1.0-rc4")`."""
    made: list[Api] = []

    def make(**settings: Any) -> Api:
        api = Api(Settings(**{"store": store_url, **settings}))
        made.append(api)
        return api

    yield make
    for api in made:
        api.service.close()


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A new registry with the built-in model, speaking 1.0-rc2."""
    return make_api()


@pytest.fixture
def empty_api(make_api: MakeApi) -> Api:
    """A new registry with an empty model, speaking 1.0-rc4."""
    return make_api(model="empty", specversion="1.0-rc4")
