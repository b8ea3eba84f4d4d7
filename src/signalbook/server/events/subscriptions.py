"""`/subscriptions`: the CloudEvents Subscriptions API (subscriptions/spec.md on cloudevents/spec main, 0.1-wip).

Rule 1: a sink has to agree before anything is sent to it: the validation handshake of cloudevents/http-webhook.md
section 4. It is asked when a subscription is made, and again when its sink changes or it was parked.
Rule 2: a subscription begins with what changes after it was made.
Rule 3: while a sink is asked, nobody but the client waits: neither a thread nor a connection to the store is held.
Rule 4: the headers that a delivery carries may be keys to its sink: their names are shown, their values never.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from signalbook.errors import RegistryError
from signalbook.jsontext import Json, parse_json
from signalbook.registry.changes import Position, latest
from signalbook.registry.store import Connection, Store
from signalbook.server import http
from signalbook.server.events.changes import expand
from signalbook.server.events.sinks import SinkError, Sinks, split_sink
from signalbook.server.http import JSON, Request, Response, WaitContext
from signalbook.server.problems import not_supported

__all__ = [
    "MASK",
    "MOST_SUBSCRIPTIONS",
    "Filter",
    "Subscription",
    "Subscriptions",
    "active",
    "count",
    "delete",
    "every",
    "find",
    "progress",
    "read_filters",
    "read_subscription",
    "save",
]

# Filters of the CloudEvents Subscriptions API: which events a subscriber wants.
#
# Rule 1: a filter is an object with one member, its dialect; a dialect is a row of `_DIALECTS`. One that is not there
# refuses the subscription (subscriptions/spec.md 3.2.1, `filters`).
# Rule 2: attributes are compared as their canonical strings, with regard to case. An attribute that an event does not
# have satisfies neither `exact` nor `prefix` nor `suffix`, and so satisfies their `not`.
# Rule 3: what a client sends is bounded: in depth, in the number of filters, in the length of names and values.


Filter = Callable[[Mapping[str, str]], bool]

_MOST_DEPTH = 16
_MOST_FILTERS = 256
_MOST_TEXT = 2048


def read_filters(filters: list[Any], subject: str) -> Filter:
    """Return the filter that holds where all of these hold; raise `bad_filter` where one is not valid."""
    reader = _Reader(subject)
    return _all([reader.read(one, 1) for one in filters])


class _Reader:
    """Reads the filters of one subscription."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._left = _MOST_FILTERS

    def read(self, value: Any, depth: int) -> Filter:
        """The filter that an object states."""
        self._left -= 1
        if depth > _MOST_DEPTH or self._left < 0:
            raise self.wrong(value, f"at most {_MOST_FILTERS} filters, {_MOST_DEPTH} deep, are read")
        if not isinstance(value, dict) or len(value) != 1:
            raise self.wrong(value, "a filter is an object with one member, its dialect")
        ((name, content),) = value.items()
        dialect = _DIALECTS.get(name)
        if dialect is None:
            known = ", ".join(sorted(_DIALECTS))
            why = "the dialect sql is not supported" if name == "sql" else f"the dialect {name!r} is unknown"
            raise self.wrong(value, f"{why}; there are {known}")
        return dialect(self, content, depth)

    def wrong(self, value: Any, detail: str) -> RegistryError:
        """The error for a filter that is not valid."""
        return RegistryError("bad_filter", self._subject, value=repr(value)[:100], error_detail=detail)


def _all(filters: list[Filter]) -> Filter:
    return lambda event: all(one(event) for one in filters)


def _any(filters: list[Filter]) -> Filter:
    return lambda event: any(one(event) for one in filters)


def _compared(holds: Callable[[str, str], bool]) -> Callable[[_Reader, Any, int], Filter]:
    """A dialect that compares attributes with texts: every one that is named has to fit."""

    def dialect(reader: _Reader, content: Any, depth: int) -> Filter:
        if not isinstance(content, dict) or not content:
            raise reader.wrong(content, "it has to be an object of attributes with their values, and not empty")
        for name, text in content.items():
            if not name or not isinstance(text, str) or not 0 < len(text) <= _MOST_TEXT or len(name) > _MOST_TEXT:
                detail = f"names and values are texts of 1 to {_MOST_TEXT} characters"
                raise reader.wrong(content, detail)
        wanted = tuple(content.items())
        return lambda event: all(name in event and holds(event[name], text) for name, text in wanted)

    return dialect


def _combined(combine: Callable[[list[Filter]], Filter]) -> Callable[[_Reader, Any, int], Filter]:
    """A dialect that combines filters."""

    def dialect(reader: _Reader, content: Any, depth: int) -> Filter:
        if not isinstance(content, list) or not content:
            raise reader.wrong(content, "it has to be an array of filters, and not empty")
        return combine([reader.read(one, depth + 1) for one in content])

    return dialect


def _not(reader: _Reader, content: Any, depth: int) -> Filter:
    inner = reader.read(content, depth + 1)
    return lambda event: not inner(event)


_DIALECTS: Mapping[str, Callable[[_Reader, Any, int], Filter]] = {
    "exact": _compared(str.__eq__),
    "prefix": _compared(str.startswith),
    "suffix": _compared(str.endswith),
    "all": _combined(_all),
    "any": _combined(_any),
    "not": _not,
}


# Subscriptions in the store: what was asked for, how far it was delivered, and how that goes.


_COLUMNS = "id, base, body, secret, rate, seq, done, name, state, delivered, failures, failingsince, nextattempt, error"
_SELECT = f"SELECT {_COLUMNS} FROM subscriptions"
_UPSERT = (
    f"INSERT INTO subscriptions ({_COLUMNS}) VALUES ({', '.join('?' * 14)}) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
)


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription; times are milliseconds since 1970, `rate` is deliveries a minute, 0 for any number."""

    id: str
    base: str
    body: Json
    secret: Json = field(repr=False)
    rate: int = 0
    position: Position = field(default_factory=Position)
    state: Literal["active", "parked"] = "active"
    delivered: int = 0
    failures: int = 0
    failingsince: int = 0
    nextattempt: int = 0
    error: str = ""

    def shown(self) -> Json:
        """What a client sees: all but the secrets."""
        status: Json = {"state": self.state, "delivered": self.delivered, "cursor": str(self.position)}
        if self.failures:
            status |= {"failures": self.failures, "failingsince": _time(self.failingsince), "error": self.error}
            if self.state == "active":
                status["nextattempt"] = _time(self.nextattempt)
        return {"id": self.id, **self.body, "status": status}

    def renewed(self, body: Json, secret: Json, rate: int) -> Subscription:
        """The same subscription with other wishes, and with its failures forgotten."""
        return replace(
            self, body=body, secret=secret, rate=rate, state="active", failures=0, failingsince=0, nextattempt=0,
            error="",
        )  # fmt: skip


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _subscription_from_row(row: tuple[Any, ...]) -> Subscription:
    id_, base, body, secret, rate, seq, done, name, *rest = row
    return Subscription(id_, base, orjson.loads(body), orjson.loads(secret), rate, Position(seq, done, name), *rest)


def every(db: Connection) -> list[Subscription]:
    """All subscriptions, by their ids."""
    return [_subscription_from_row(row) for row in db.execute(f"{_SELECT} ORDER BY id")]


def active(db: Connection) -> list[tuple[str, Position, int]]:
    """Id, place that was delivered up to, and time of the next attempt of those that are not parked."""
    found = db.execute("SELECT id, seq, done, name, nextattempt FROM subscriptions WHERE state = 'active'")
    return [(row[0], Position(*row[1:4]), row[4]) for row in found]


def count(db: Connection) -> int:
    """How many there are."""
    found = db.one("SELECT COUNT(*) FROM subscriptions")
    return int(found[0]) if found is not None else 0


def find(db: Connection, id_: str) -> Subscription | None:
    """One subscription."""
    row = db.one(f"{_SELECT} WHERE id = ?", (id_,))
    return _subscription_from_row(row) if row is not None else None


def save(db: Connection, one: Subscription) -> None:
    """Write a subscription with all there is to it."""
    at = one.position
    db.execute(
        _UPSERT,
        (
            one.id, one.base, orjson.dumps(one.body).decode(), orjson.dumps(one.secret).decode(), one.rate, at.seq,
            at.done, at.name, one.state, one.delivered, one.failures, one.failingsince, one.nextattempt, one.error,
        ),
    )  # fmt: skip


def progress(db: Connection, one: Subscription) -> None:
    """Write down how the delivery goes; what the client asked for stays as it is there."""
    at = one.position
    db.execute(
        "UPDATE subscriptions SET seq = ?, done = ?, name = ?, state = ?, delivered = ?, failures = ?,"
        " failingsince = ?, nextattempt = ?, error = ? WHERE id = ?",
        (
            at.seq, at.done, at.name, one.state, one.delivered, one.failures, one.failingsince, one.nextattempt,
            one.error, one.id,
        ),
    )  # fmt: skip


def delete(db: Connection, id_: str) -> None:
    """Forget a subscription."""
    db.execute("DELETE FROM subscriptions WHERE id = ?", (id_,))


# A subscription as a client writes it: checked, made plain, and parted from its secrets.
#
# Rule 1: what is kept and shown is what will be done (the realised object, subscriptions/spec.md 3.2.5.1). What
# cannot be
# done is refused, never ignored.
# Rule 2: the form of the 0.1 message catalog (seed 004, section 5.5: `filter`, `HTTPS`) is the same subscription.
# Rule 3: secrets leave the body here and are stored apart; nothing shows them again.


_MEMBERS = frozenset(
    {"id", "source", "types", "config", "filters", "filter", "sink", "sinkcredential", "protocol", "protocolsettings"}
    | {"status"}
)
_MODES = ("structured", "binary")
_METHODS = ("POST", "PUT")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# What a delivery says itself, and what belongs into sinkcredential.
_OWN_HEADERS = re.compile(
    r"ce-.*|host|content-.*|transfer-encoding|connection|te|upgrade|authorization|webhook-.*", re.I
)


def read_subscription(body: Any, base: str, path: str) -> tuple[Json, Json]:
    """The subscription that a client asks for at the registry `base`, and its secrets; what cannot be is refused."""
    if not isinstance(body, dict):
        raise _wrong(path, "a subscription is an object")
    for name in body.keys() - _MEMBERS:
        raise _wrong(path, f'"{name}" is not an attribute of a subscription')
    protocol, sink = _transport(body, path)
    found: Json = {"protocol": protocol, "sink": sink}
    if body.get("source") is not None:
        if str(body["source"]).rstrip("/") != base.rstrip("/"):
            raise _wrong(path, f'"source" must be the root of this catalog, {base}, for all events come from it')
        found["source"] = base
    if body.get("types") is not None:
        found["types"] = _texts(body["types"], path)
    filters = _filters(body, path)
    if filters:
        read_filters(filters, path)
        found["filters"] = filters
    found["config"] = _config(body.get("config"), path)
    found["protocolsettings"] = _settings(body.get("protocolsettings"), path)
    credential, secret = _credential(body.get("sinkcredential"), path)
    if credential:
        found["sinkcredential"] = credential
    return found, secret


def _wrong(path: str, detail: str) -> RegistryError:
    return RegistryError("bad_request", path, error_detail=detail)


def _transport(body: Json, path: str) -> tuple[str, str]:
    protocol, sink = body.get("protocol"), body.get("sink")
    if protocol not in ("HTTP", "HTTPS"):
        raise _wrong(path, f'"protocol" is {protocol!r}; only "HTTP" is delivered to, over http:// or https://')
    if not isinstance(sink, str):
        raise _wrong(path, '"sink" is missing: the address that events are sent to')
    try:
        scheme = split_sink(sink).scheme
    except SinkError as error:
        raise RegistryError("sink_refused", path, sink=sink[:200], error_detail=error) from None
    if protocol == "HTTPS" and scheme != "https":
        raise _wrong(path, '"protocol" is "HTTPS", but "sink" does not begin with https://')
    return "HTTP", sink


def _texts(value: Any, path: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and 0 < len(one) <= 500 for one in value):
        raise _wrong(path, '"types" must be an array of texts that are not empty')
    if len(value) > 100:
        raise _wrong(path, '"types" must have at most 100 entries')
    return list(value)


def _filters(body: Json, path: str) -> list[Any]:
    if body.get("filter") is not None and body.get("filters") is not None:
        raise _wrong(path, '"filter" and "filters" mean the same; give one of them')
    if body.get("filter") is not None:
        return [body["filter"]]
    filters = body.get("filters") or []
    if not isinstance(filters, list):
        raise _wrong(path, '"filters" must be an array')
    return filters


def _config(value: Any, path: str) -> Json:
    config = {} if value is None else value
    if not isinstance(config, dict) or config.keys() - {"mode"} or config.get("mode", "structured") not in _MODES:
        raise _wrong(path, f'"config" may hold "mode", one of {", ".join(_MODES)}')
    return {"mode": config.get("mode", "structured")}


def _settings(value: Any, path: str) -> Json:
    settings = {} if value is None else value
    if not isinstance(settings, dict) or settings.keys() - {"method", "headers"}:
        raise _wrong(path, '"protocolsettings" may hold "method" and "headers"')
    method, headers = settings.get("method", "POST"), settings.get("headers") or {}
    if method not in _METHODS:
        raise _wrong(path, f'"method" must be one of {", ".join(_METHODS)}')
    if not isinstance(headers, dict) or len(headers) > 32:
        raise _wrong(path, '"headers" must be an object of at most 32 texts')
    for name, text in headers.items():
        if not _HEADER.fullmatch(name) or not isinstance(text, str) or not re.fullmatch(r"[\x20-\x7e]{0,1000}", text):
            raise _wrong(path, f'the header "{name[:50]}" cannot be sent')
        if _OWN_HEADERS.fullmatch(name):
            raise _wrong(path, f'the header "{name}" is set by the delivery itself; for secrets use "sinkcredential"')
    return {"method": method, **({"headers": headers} if headers else {})}


# ---- secrets


def _credential(value: Any, path: str) -> tuple[Json, Json]:
    """What is shown of a credential, and the header that is sent."""
    if value is None:
        return {}, {}
    kind = value.get("credentialtype") if isinstance(value, dict) else None
    read = _CREDENTIALS.get(str(kind))
    if read is None:
        known = ", ".join(_CREDENTIALS)
        raise _wrong(path, f'"sinkcredential" has the credentialtype {kind!r}; there are {known}')
    return read(value, path)


def _secret(value: Json, name: str, path: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not re.fullmatch(r"[\x21-\x7e]{1,4000}", text):
        raise _wrong(path, f'"sinkcredential" needs "{name}", a text without blanks')
    return text


def _plain_credentials(value: Json, path: str) -> tuple[Json, Json]:
    identifier, secret = _secret(value, "identifier", path), _secret(value, "secret", path)
    header = "Basic " + b64encode(f"{identifier}:{secret}".encode()).decode()
    return {"credentialtype": "PLAIN", "identifier": identifier}, {"authorization": header}


def _access_token(value: Json, path: str) -> tuple[Json, Json]:
    token = _secret(value, "accesstoken", path)
    if str(value.get("accesstokentype", "bearer")).lower() != "bearer":
        raise _wrong(path, '"accesstokentype" must be "bearer"')
    shown = {name: value[name] for name in ("accesstokenexpiresutc",) if isinstance(value.get(name), str)}
    return (
        {"credentialtype": "ACCESSTOKEN", "accesstokentype": "bearer", **shown},
        {"authorization": f"Bearer {token}"},
    )


_CREDENTIALS: Mapping[str, Callable[[Json, str], tuple[Json, Json]]] = {
    "PLAIN": _plain_credentials,
    "ACCESSTOKEN": _access_token,
}


MOST_SUBSCRIPTIONS = 1000
HANDSHAKE_SECONDS = 10.0
MOST_HANDSHAKES = 64
MASK = "********"
"""What stands for a value that is not shown; sent back, it leaves the value as it is."""

_ALL, _ONE = "GET, OPTIONS, POST", "DELETE, GET, OPTIONS, PUT"


@dataclass(frozen=True, slots=True)
class _Wish:
    """A subscription to be written; without a rate, its sink is to be asked first."""

    id: str
    body: Json
    secret: Json = field(repr=False)
    rate: int | None = None


class Subscriptions:
    """Answers `/subscriptions` and what is below for one store."""

    def __init__(self, store: Store, sinks: Sinks, may_write: Callable[[Request], bool] = lambda request: True) -> None:
        self._store = store
        self._sinks = sinks
        self._may_write = may_write
        self._asked = 0  # sinks that are being asked now

    async def wait(self, request: Request, waiting: WaitContext) -> Response:
        """Answer a request that may have to ask a sink."""
        found = await waiting.run(self._begin, request)
        if isinstance(found, Response):
            return found
        if found.rate is None:
            found = replace(found, rate=await self._handshake(request, found))
        answer: Response = await waiting.run(lambda wish: self._save(request, wish), found)
        return answer

    def answer(self, request: Request) -> Response:
        """Answer one request in this thread, also where it has to ask a sink."""
        found = self._begin(request)
        if isinstance(found, Response):
            return found
        if found.rate is None:
            found = replace(found, rate=asyncio.run(self._handshake(request, found)))
        return self._save(request, found)

    def _begin(self, request: Request) -> Response | _Wish:
        """Return the answer, or what is to be written."""
        _, _, id_ = request.path.strip("/").partition("/")
        allow = _ONE if id_ else _ALL
        if request.method == "OPTIONS":
            return http.options(request, allow)
        if request.method not in allow.split(", "):
            raise not_supported(request.path, request.method, allow)
        if request.method == "POST":
            return self._read_new(request)
        if not id_:
            whole = self._may_write(request)
            return _json(200, [_shown(one, whole=whole) for one in every(self._store.reader())])
        if request.method == "PUT":
            return self._read_update(request, id_)
        if request.method == "DELETE":
            return self._delete(request, id_)
        whole = self._may_write(request)
        return _json(200, _shown(self._find(self._store.reader(), request, id_), whole=whole))

    def _find(self, db: Connection, request: Request, id_: str) -> Subscription:
        found = find(db, id_)
        if found is None:
            raise RegistryError("not_found", request.path)
        return found

    def _read_new(self, request: Request) -> _Wish:
        body, secret = read_subscription(_body(request), request.base, request.path)
        _unmask(body, {}, request.path)
        if count(self._store.reader()) >= MOST_SUBSCRIPTIONS:
            detail = f"there are {MOST_SUBSCRIPTIONS} subscriptions, which is the maximum"
            raise RegistryError("bad_request", request.path, error_detail=detail)
        return _Wish("", body, secret)

    def _read_update(self, request: Request, id_: str) -> _Wish:
        before = self._find(self._store.reader(), request, id_)
        body, secret = read_subscription(_body(request), request.base, request.path)
        if "sinkcredential" not in body and body["sink"] == before.body["sink"]:
            secret = before.secret  # what is not shown cannot be sent back; another sink never gets it
            body |= {name: before.body[name] for name in ("sinkcredential",) if name in before.body}
        _unmask(body, before.body if body["sink"] == before.body["sink"] else {}, request.path)
        asks = body["sink"] != before.body["sink"] or before.state == "parked"
        return _Wish(id_, body, secret, None if asks else before.rate)

    def _save(self, request: Request, wish: _Wish) -> Response:
        rate = wish.rate or 0

        def create(db: Connection) -> Subscription:
            one = Subscription(secrets.token_hex(12), request.base, wish.body, wish.secret, rate, latest(db, expand))
            save(db, one)
            return one

        def update(db: Connection) -> Subscription:
            one = self._find(db, request, wish.id).renewed(wish.body, wish.secret, rate)
            save(db, one)
            return one

        if wish.id:
            return _json(200, _shown(self._store.write(update)))
        made = self._store.write(create)
        response = _json(201, _shown(made))
        response.headers.append(("location", f"{request.base}/subscriptions/{made.id}"))
        return response

    def _delete(self, request: Request, id_: str) -> Response:
        def job(db: Connection) -> Subscription:
            found = self._find(db, request, id_)
            delete(db, id_)
            return found

        return _json(200, _shown(self._store.write(job)))

    async def _handshake(self, request: Request, wish: _Wish) -> int:
        """Ask a sink whether it wants deliveries from here, and return how many a minute, 0 for any number."""
        origin, sink = urlsplit(request.base).netloc, wish.body["sink"]
        if self._asked >= MOST_HANDSHAKES:
            raise RegistryError("server_busy", request.path)
        self._asked += 1
        connection = self._sinks.open(sink)
        try:
            headers = {"WebHook-Request-Origin": origin, **wish.secret}
            reply = await connection.send("OPTIONS", headers, b"", HANDSHAKE_SECONDS)
        except SinkError as error:
            raise RegistryError("sink_refused", request.path, sink=sink, error_detail=error) from None
        finally:
            self._asked -= 1
            await connection.close()
        allowed = reply.headers.get("webhook-allowed-origin", "").strip().lower()
        if not 200 <= reply.status < 300 or allowed not in ("*", origin.lower()):
            detail = (
                f"it answered {reply.status} to the validation request (OPTIONS with WebHook-Request-Origin: {origin}) "
                "and did not agree with WebHook-Allowed-Origin"
            )
            raise RegistryError("sink_refused", request.path, sink=sink, error_detail=detail)
        rate = reply.headers.get("webhook-allowed-rate", "*").strip()
        return min(int(rate), 1_000_000) if rate.isascii() and rate.isdigit() and len(rate) < 10 else 0


def _shown(one: Subscription, *, whole: bool = True) -> Json:
    """What a client sees of a subscription; one that may not write sees of the sink only its host.

    The path and the query of a sink are often the key to it.
    """
    shown = one.shown()
    if not whole:
        parts = urlsplit(shown["sink"])
        hidden = f"/{MASK}" if parts.path.strip("/") or parts.query else ""
        shown = {**shown, "sink": f"{parts.scheme}://{parts.netloc}{hidden}"}
    settings = shown.get("protocolsettings") or {}
    if "headers" not in settings:
        return shown
    return {**shown, "protocolsettings": {**settings, "headers": dict.fromkeys(settings["headers"], MASK)}}


def _unmask(body: Json, before: Json, path: str) -> None:
    """Put the values that a subscription has in the places where they are masked; another sink never gets them."""
    headers = body["protocolsettings"].get("headers", {})
    known = before.get("protocolsettings", {}).get("headers", {})
    for name in [name for name, value in headers.items() if value == MASK]:
        if name not in known:
            detail = f'the header "{name}" has the value that stands for one that is not shown; give its own'
            raise RegistryError("bad_request", path, error_detail=detail)
        headers[name] = known[name]


def _body(request: Request) -> Any:
    if not request.body:
        raise RegistryError("missing_body", request.path)
    return parse_json(request.body, request.path)


def _json(status: int, value: Any) -> Response:
    return Response(status, [JSON, ("cache-control", "no-store")], orjson.dumps(value))
