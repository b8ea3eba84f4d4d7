"""Subscriptions in the store: what was asked for, how far it was delivered, and how that goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from signalbook.registry.change_feed import Position
from signalbook.registry.store import Connection

__all__ = ["Subscription", "active", "count", "delete", "every", "find", "progress", "save"]

Json = dict[str, Any]

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


def _read(row: tuple[Any, ...]) -> Subscription:
    id_, base, body, secret, rate, seq, done, name, *rest = row
    return Subscription(id_, base, orjson.loads(body), orjson.loads(secret), rate, Position(seq, done, name), *rest)


def every(db: Connection) -> list[Subscription]:
    """All subscriptions, by their ids."""
    return [_read(row) for row in db.execute(f"{_SELECT} ORDER BY id")]


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
    return _read(row) if row is not None else None


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
