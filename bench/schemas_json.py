"""Payload checks of JSON Schema against the bare calls of orjson and jsonschema-rs, and against Python validators.

Rule: a check may cost 1.3 times the bare call, or one microsecond more: the limit of each ratio is the larger of both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import jsonschema_rs
import orjson

from bench.figures import Figure, call_seconds, check_limit
from signalbook import schemas

__all__ = ["figures"]

_DRAFTS = {
    "draft-07": ("JsonSchema/draft-07", jsonschema_rs.Draft7Validator),
    "2020-12": ("JsonSchema/draft/2020-12", jsonschema_rs.Draft202012Validator),
}

LINE = {
    "type": "object",
    "required": ["sku"],
    "properties": {
        "sku": {"type": "string", "pattern": "^A[0-9]+$"},
        "count": {"type": "integer", "minimum": 0},
        "price": {"type": "number"},
    },
}
ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "placed", "total"],
    "properties": {
        "id": {"type": "string", "minLength": 36},
        "placed": {"type": "string", "format": "date-time"},
        "total": {"type": "number", "minimum": 0},
        "lines": {"type": "array", "items": LINE},
        "customer": {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"}}},
    },
}
PAYLOAD: dict[str, Any] = {
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "placed": "2024-05-01T12:00:00Z",
    "total": 12.5,
    "lines": [{"sku": f"A{number}", "count": number, "price": number * 1.25} for number in range(6)],
    "customer": {"name": "Jane Doe", "email": "jane@example.com", "vip": True},
    "note": "leave it with the neighbour, please. " * 3,
}
PAYLOADS = {
    "a small payload": {"id": PAYLOAD["id"], "placed": PAYLOAD["placed"], "total": 1},
    "a payload of half a kilobyte": PAYLOAD,
    "a payload of eight kilobytes": {**PAYLOAD, "lines": PAYLOAD["lines"] * 25},
}


def _figure(name: str, ours: float, bare: float, anchor: str) -> Figure:
    limit = check_limit(bare)
    note = f"{ours * 1e6:.2f} µs to {bare * 1e6:.2f}: {1 / ours:,.0f} checks a second"
    return Figure(name, ours / bare, limit, anchor, note=note)


def _bare(validator: jsonschema_rs.Validator, payload: bytes) -> bool:
    return validator.is_valid(orjson.loads(payload))


def _checks() -> list[Figure]:
    found = []
    for draft, (name, validator) in _DRAFTS.items():
        ours, bare = schemas.read(name, ORDER), validator(ORDER)
        for words, value in PAYLOADS.items():
            payload = orjson.dumps(value)
            assert not ours.check(payload).problems
            # Rounds of some milliseconds, many of them: the best is one that nothing else on the machine fell into.
            calls = [partial(_bare, bare, payload), partial(ours.check, payload)]
            spent = call_seconds(calls, rounds=150, times=200_000 // len(payload))
            title = f"JSON Schema {draft}: {words}"
            found.append(_figure(title, spent[1], spent[0], "times orjson and jsonschema-rs"))
    return found


def _python() -> list[Figure]:
    import fastjsonschema
    import jsonschema

    payload = orjson.dumps(PAYLOAD)
    ours = schemas.read("JsonSchema/draft-07", ORDER)
    slow = jsonschema.Draft7Validator(ORDER)
    compiled = fastjsonschema.compile({**ORDER, "$schema": "http://json-schema.org/draft-07/schema#"})
    calls: list[Callable[[], object]] = [
        lambda: ours.check(payload),
        lambda: slow.is_valid(json.loads(payload)),
        lambda: compiled(json.loads(payload)),
    ]
    spent = call_seconds(calls, rounds=10, times=50)
    return [
        Figure(
            "JSON Schema: checks a second, to jsonschema", spent[1] / spent[0], 20, "times jsonschema", at_least=True
        ),
        Figure("JSON Schema: checks a second, to fastjsonschema", spent[2] / spent[0], None, "times fastjsonschema"),
    ]


def _work() -> list[Figure]:
    """What else a schema is for, without limits."""
    ours = schemas.read("JsonSchema/draft-07", ORDER)
    newer = schemas.read("JsonSchema/draft-07", {**ORDER, "required": ["id"]})
    value = ours.check(orjson.dumps(PAYLOAD)).value
    wrong = orjson.dumps({**PAYLOAD, "total": "x"})
    ours.columns()
    spent = call_seconds(
        [
            lambda: schemas.read("JsonSchema/draft-07", ORDER),
            lambda: list(schemas.compatible([ours, newer], "full")),
            lambda: ours.convert(value),  # type: ignore[attr-defined]
            lambda: ours.check(wrong),
        ],
        rounds=10,
        times=20,
    )
    names = ("read", "compare", "convert to a row", "check of a payload with a problem")
    return [Figure(f"JSON Schema: {name}", one * 1e6, None, "µs") for name, one in zip(names, spent, strict=True)]


def figures() -> list[Figure]:
    """The figures of JSON Schema."""
    return [*_checks(), *_python(), *_work()]


if __name__ == "__main__":
    from bench.figures import show

    raise SystemExit(not show(figures()))
