"""Definitions of every protocol and values for them, for laws about building and matching."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

XID = "/messagegroups/g/messages/m"
NAMES = ("vin", "store_id", "deskId", "x1")
_LITERALS = st.sampled_from(["a", "orders", "x.y", "v-1", "a b", "%41", "é"])
_VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co")), min_size=1, max_size=8)
_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
# What a path, a subject and a topic can be sent with.
_SENT = st.sampled_from(["a", "orders", "x.y", "v-1"])


@dataclass(frozen=True)
class Given:
    """A definition, and what a message of it is to be built from."""

    definition: dict[str, Any]
    context: dict[str, str]
    attributes: dict[str, Any]
    data: Any


@st.composite
def templates(
    draw: st.DrawFn,
    separator: str = "/",
    starts: tuple[str, ...] = ("", "/"),
    literals: st.SearchStrategy[str] = _LITERALS,
) -> str:
    """A text with up to three placeholders, each in a step of its own or between literals."""
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        name = "{" + draw(st.sampled_from(["", "", "", "+"])) + draw(st.sampled_from(NAMES)) + "}"
        steps.append(draw(st.sampled_from([draw(literals), name, f"p-{name}", f"{name}.json"])))
    return draw(st.sampled_from(starts)) + separator.join(steps)


def _property(values: st.SearchStrategy[Any], kinds: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"value": values}, optional={"type": st.sampled_from(kinds), "required": st.booleans()}
    )


_TEXTS = st.one_of(_LITERALS.filter(lambda text: " " not in text), templates())
_PLAIN = _property(_TEXTS, ("string", "uritemplate"))
_NAMED = st.lists(
    st.builds(lambda name, rest: {"name": name, **rest}, st.sampled_from(["X-One", "X-Two", "Three"]), _PLAIN),
    max_size=3,
    unique_by=lambda member: member["name"],
)
_TYPED = st.one_of(
    _PLAIN,
    st.fixed_dictionaries({"type": st.just("integer"), "value": st.integers(-1000, 1000)}),
    st.fixed_dictionaries({"type": st.just("boolean"), "value": st.booleans()}),
)

_OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "HTTP": st.fixed_dictionaries(
        {"path": templates(starts=("/",), literals=_SENT)},
        optional={"method": st.sampled_from(["GET", "POST"]), "headers": _NAMED, "query": _NAMED},
    ),
    "AMQP/1.0": st.fixed_dictionaries(
        {},
        optional={
            "properties": st.fixed_dictionaries(
                {}, optional={"subject": _PLAIN, "to": _PLAIN, "correlation-id": _PLAIN, "message-id": st.just({})}
            ),
            "application-properties": st.dictionaries(st.sampled_from(["one", "two"]), _TYPED, max_size=2),
            "header": st.fixed_dictionaries({}, optional={"durable": st.booleans(), "priority": st.integers(0, 9)}),
        },
    ),
    "MQTT/5.0": st.fixed_dictionaries(
        {"topic_name": templates()},
        optional={"qos": st.integers(0, 2), "retain": st.booleans(), "user_properties": _NAMED},
    ),
    "MQTT/3.1.1": st.fixed_dictionaries({"topic_name": templates()}, optional={"qos": st.integers(0, 2)}),
    "KAFKA": st.fixed_dictionaries(
        {"topic": st.one_of(_SENT, templates(".", starts=("",), literals=_SENT))},
        optional={
            "key": templates("."),
            "partition": st.integers(0, 9),
            "headers": st.dictionaries(st.sampled_from(["one", "two"]), _TYPED, max_size=2),
        },
    ),
    "NATS": st.fixed_dictionaries(
        {"subject": templates(".", literals=_SENT)},
        optional={"reply": templates(".", literals=_SENT), "headers": _NAMED},
    ),
}


def _envelope() -> st.SearchStrategy[dict[str, Any]]:
    metadata = st.fixed_dictionaries(
        {"type": st.fixed_dictionaries({"value": st.one_of(_LITERALS, templates("."))})},
        optional={
            "source": _property(templates(), ("uritemplate", "string")),
            "subject": _property(st.one_of(_LITERALS, templates()), ("string", "uritemplate")),
            "time": st.fixed_dictionaries({}, optional={"required": st.booleans()}),
            "tenant": _TYPED,
        },
    )
    return st.builds(
        lambda known, options: {"envelope": "CloudEvents/1.0", "envelopemetadata": known, **options},
        metadata,
        st.sampled_from([{}, {"envelopeoptions": {"mode": "structured"}}]),
    )


def _protocol(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return _OPTIONS[name].map(lambda options: {"protocol": name, "protocoloptions": options})


@st.composite
def givens(draw: st.DrawFn) -> Given:
    """A definition with an envelope, a protocol or both, perhaps a schema; and values for it."""
    envelope = draw(st.one_of(st.just({}), _envelope()))
    protocols = st.sampled_from(sorted(_OPTIONS)).flatmap(_protocol)
    protocol = draw(protocols if not envelope else st.one_of(st.just({}), protocols))
    payload: dict[str, Any] = {}
    if draw(st.booleans()):
        payload = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": _SCHEMA}
    names = [name for name in NAMES if f"{name}}}" in json.dumps([envelope, protocol])]
    context = draw(st.dictionaries(st.sampled_from(names), _VALUES, max_size=4)) if names else {}
    attributes: dict[str, Any] = {}
    if envelope:
        attributes = draw(st.fixed_dictionaries({}, optional={"id": _VALUES, "source": st.just("/s")}))
    if "source" in envelope.get("envelopemetadata", {}):
        attributes.pop("source", None)
    data = {"n": draw(st.integers(-5, 5))}
    return Given({**envelope, **protocol, **payload}, context, attributes, data)
