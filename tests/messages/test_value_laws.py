"""Laws of values: a write accepts in a definition what a match can apply and a build can send, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook import Catalog, Registry, RegistryError
from signalbook.document.property_places import ENVELOPE, PROTOCOLS, Section

XID = "/messagegroups/g/messages/m"
TEXTS = [
    *("a", "", "a b", "x_1", "a-b", "5", "-7", "1.5", "1e3", "2147483648", "true", "True", "YQ==", "YQ", "PT1H", "P"),
    *("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01", "noon", "0000-01-01T00:00:00Z", "é", "a\nb"),
    *("/a/b", "https://example.com/a", "https://h:x/", "http://[x", "application/json", "text/plain; charset=utf-8"),
    *("6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "404", "999", "1.0"),
    *("{name}", "a/{name}", "a_{name}", "https://{host}:{port}/a", "{+rest}", "a{b}c{d}e", "application/{kind}"),
    *("{my-name}", "{", "}", "{}", "{a b}", "{a,b}", "{#a}", "{a*}", "{?a}", "{{a}}", "a{b", "4{rest}"),
]
JSON: list[Any] = [0, 1, 2, 3, -1, 255, 256, 2147483647, 2147483648, 4294967295, 4294967296, 1.5, True, False]
TYPES = [
    *("any", "binary", "boolean", "duration", "integer", "number", "string", "symbol", "timestamp", "ulong", "uri"),
    *("uritemplate", "uuid"),
]
# What 0.5 can state, and a write of today has no place for.
ONLY_OLD = {"timestamp"}
# What is tried in the place of placeholders.
FILLINGS = ("x", "1", "04", "404", "2026-01-01T00:00:00Z", "a/x", "https://example.com/x")


@st.composite
def definitions(draw: st.DrawFn) -> tuple[dict[str, Any], str, str, str, Any]:
    """A definition of one property: with its protocol, its section, its name and its value."""
    protocol = draw(st.sampled_from(["", *PROTOCOLS]))
    value = draw(st.sampled_from(TEXTS) | st.sampled_from(JSON))
    if not protocol:
        name = draw(st.sampled_from([*ENVELOPE.named, "datacontenttype", "ext"]))
        stated = draw(st.sampled_from([None, *TYPES])) if name == "ext" else None
        member = {"value": value} | ({"type": stated} if stated else {})
        metadata = {"type": {"value": "t"}} | {name: member}
        return {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}, "", "", name, value
    field = draw(st.sampled_from(sorted(PROTOCOLS[protocol].keys() - ONLY_OLD)))
    place = PROTOCOLS[protocol][field]
    options: Any
    name = ""
    if not isinstance(place, Section):
        options = {field: value}
        # A plain value is one of JSON, not the text of one.
        if place.name in ("integer", "boolean") and isinstance(value, str):
            options, value = {field: "x"}, "x"
    elif place.plain:
        name = draw(st.sampled_from(sorted(place.named)))
        value = "x" if isinstance(value, str) else value
        options = {field: {name: value}}
    else:
        named = [*place.named, *([place.content_type] if place.content_type else [])]
        name = draw(st.sampled_from(sorted(named) if field == "properties" else [*sorted(named), "ext"]))
        stated = draw(st.sampled_from([None, *TYPES])) if name == "ext" else None
        member = {"value": value} | ({"type": stated} if stated else {})
        options = {field: {name: member}}
    return {"protocol": protocol, "protocoloptions": options}, protocol, field, name, value


def candidates(value: Any) -> Iterator[Any]:
    """What a message may have where a definition says this."""
    yield value
    if isinstance(value, str):
        yield f"https://example.com/{value.lstrip('/')}"
        if value == "0000-01-01T00:00:00Z":
            yield "2026-01-01T00:00:00Z"
        for one in (int, float, {"true": True, "false": False}.__getitem__):
            try:
                yield one(value)  # type: ignore[operator]
            except (KeyError, ValueError):
                continue
        for text in FILLINGS:
            filled = value
            for name in ("name", "host", "port", "b", "d", "kind", "a", "rest", "+rest"):
                filled = filled.replace(f"{{{name}}}", text)
            yield filled
    else:
        yield "true" if value is True else "false" if value is False else str(value)


def message_with(protocol: str, field: str, name: str, value: Any) -> dict[str, Any]:
    """A message that has the value where the definition has it."""
    if not protocol:
        event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
        return {**event, name: value}
    inner: Any = value
    if name:
        inner = {name: value} if protocol == "AMQP/1.0" else [[name, value]]
    return {"protocol": protocol, field: inner}


def applies(definition: dict[str, Any], protocol: str, field: str, name: str, value: Any) -> bool:
    """Whether a match finds some message that has what the definition says."""
    catalog = Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": definition}}}})
    for one in candidates(value):
        ways = [one] if protocol != "AMQP/1.0" else [one, *({"type": kind, "value": one} for kind in ("ulong", "uuid"))]
        for way in ways:
            answer = catalog.validate(message_with(protocol, field, name, way), XID)
            if answer.outcome.value == "matched":
                return True
    return False


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    """A registry with the built-in model."""
    with Registry.open() as opened:
        yield opened


@given(definitions())
@settings(max_examples=500)
def test_a_write_accepts_what_a_match_can_apply(registry: Registry, drawn: tuple[Any, ...]) -> None:
    """A write accepts a definition if and only if a match can apply every constraint in it; one can be built, too."""
    definition = drawn[0]
    try:
        registry.put(XID, definition)
    except RegistryError:
        accepted = False
    else:
        accepted = True
    assert accepted == applies(*drawn), definition
    if accepted and drawn[3] != "dataschema":  # one that is relative is made absolute by where the registry is
        built = Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": definition}}}}).message(XID).sample()
        assert not built.problems, (definition, built.problems)
