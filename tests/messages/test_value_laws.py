"""Laws of values: a write accepts in a definition what a match can apply and a build can send, and nothing else."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from signalbook import Catalog, Registry, RegistryError
from signalbook.protocols.message import BINDINGS, OPTIONS
from signalbook.protocols.values import ENVELOPE, PropertyPlace, PropertySection
from signalbook.spec.builtin import builtin_modelsource

GROUP, BASES = "/messagegroups/g", "/messagegroups/h"
XID = f"{GROUP}/messages/m"
TEXTS = [
    *("a", "", "a b", "x_1", "a-b", "5", "-7", "1.5", "1e3", "2147483648", "true", "True", "YQ==", "YQ", "PT1H", "P"),
    *("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01", "noon", "0000-01-01T00:00:00Z", "é", "a\nb"),
    *("/a/b", "https://example.com/a", "https://h:x/", "http://[x", "application/json", "text/plain; charset=utf-8"),
    *("6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "404", "999", "1.0", "a.b", "a..b", "*", "a/+", "a/#", ">", "%41", "%"),
    *("{name}", "a/{name}", "/a/{name}", "a_{name}", "https://{host}:{port}/a", "{+rest}", "/{+rest}", "a{b}c{d}e"),
    *("application/{kind}", "{name} b", "é{name}", "4{rest}"),
    *("{my-name}", "{", "}", "{}", "{a b}", "{a,b}", "{#a}", "{a*}", "{?a}", "{{a}}", "a{b", "/{my-name}", "/a{"),
]
JSON: list[Any] = [
    *(0, 1, 2, 3, -1, 255, 256, 2147483647, 2147483648, 4294967295, 4294967296, 2**64 - 1, 1.0, 1.5, True, False),
    *([], {}, ["a"], {"value": "a"}),
]
TYPES: list[Any] = [
    *("any", "binary", "boolean", "duration", "integer", "number", "string", "symbol", "timestamp", "ulong", "uri"),
    *("uritemplate", "uuid"),
]
# What a property of a type can be, and a field of a protocol.
FITTING: dict[str, list[Any]] = {
    **{"any": ["a", 5, "{name}"], "binary": ["YQ=="], "boolean": [True, False], "duration": ["PT1H"], "uint": [0, 5]},
    **{"integer": [1, 5, 1.0, "5"], "number": [1.5, "1e3", 5], "string": ["a", "{name}", "a-{name}", "{", "a{b c}"]},
    **{"symbol": ["x_1", "a_{name}"], "timestamp": ["2026-01-01T00:00:00Z", "0000-01-01T00:00:00Z"], "ulong": [1, "5"]},
    **{"uri": ["/a/b", "https://example.com/a"], "uritemplate": ["a", "{name}", "a/{name}", "{+rest}"]},
    **{"uuid": ["6f9619ff-8b86-4d01-b42d-00cf4fc964ff"], "ascii": ["application/json", "application/{kind}", "{name}"]},
    **{"bit": [0, 1], "qos": [1, 1.0], "ubyte": [255], "partition": [3]},
    **{
        "path": ["/a", "/a/{name}", "/{+rest}"],
        "method": ["POST"],
        "status": ["404", "4{rest}"],
        "topic": ["a.{name}"],
        "correlation_data": ["YQ==", "{name}", "a-{name}"],
    },
    **{
        "time": ["2026-01-01T00:00:00Z"],
        "specversion": ["1.0"],
        "dataschema": ["https://example.com/{name}", "{name}", "{name}:x", "{+rest}/x"],
    },
}
# What a property of a type cannot be, though it looks alike.
BRACES = ["{my-name}", "{", "a}", "{}", "{a b}", "{a,b}", "{#a}", "{a*}", "{?a}", "{{a}}"]
ALIKE: dict[str, list[Any]] = {
    **{"any": [[], {"a": 1}], "binary": ["YQ", "{name}", 5], "boolean": ["True", 1, "{name}"], "duration": ["P", "1h"]},
    **{"integer": [2147483648, "2147483648", 1.5, "x", "{name}", True], "number": ["x", "{name}", True]},
    **{
        "string": ["", "a\nb", 5, True, "a b", "é"],
        "symbol": ["a-b", "", "{name}-b", "é"],
        "ulong": [-1, 1.5, "x", 2**64 - 1],
    },
    **{"timestamp": ["2026-01-01T00:00:00", "noon", "2026-01-01", "{name}"], "uuid": ["x", "6f9619ff"]},
    **{"uri": ["a b", "https://h:x/", "{name} b"], "uritemplate": ["a b", "", "{name} b", *BRACES]},
    **{"ascii": ["é", "json", "", "é{name}"], "uint": [-1, 4294967296, "5", "x"], "bit": [2, "1"], "qos": [3, "1"]},
    **{"ubyte": [256, "5"], "partition": [-1, 2147483648, "3"]},
    **{"path": ["a", "/a b", "/{my-name}", "/{?a}"], "method": ["G T", ""], "status": ["999", "x", 404, "9{rest}"]},
    **{
        "topic": ["a b", "", "..", "{name} b"],
        "topic_name": ["a/#", "a/+", "", *BRACES],
        "reply": ["a..b", "*", "a b"],
        "correlation_data": ["YQ", "a-b", "{", "{a b}", 5],
    },
    **{
        "subject": ["a..b", ">", "a b", "", 5, "a\nb"],
        "specversion": ["2.0", 1.0],
        "dataschema": ["a b", "{?a}", "rel/x", "/x", "{name}/x", "{name}{other}", "x{name}"],
    },
}
NAMES = [*["ext", "Ext-1"] * 4, "", "a b", "é", "a:b", "a\nb", "content-type"]
# Attributes of an event that may stand in a property of its message as well, and what can be there.
CARRIED: dict[str, list[str]] = {
    "type": ["t", "t", "u", "{name}", "u-{name}"],
    "source": ["/s", "/a/{name}", "{name}"],
    "subject": ["a", "a b", "a%20b", "{name}"],
    "time": ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "noon"],
    "dataschema": ["https://example.com/a", "https://example.com/{name}", "rel/x", "{name}/x"],
    "specversion": ["1.0", "2.0"],
    "ext": ["a", "5", "true", "a-{name}", "b-{name}", "1e3", "YQ=="],
}
# What 0.5 and 0.1 can state, and a write of today has no place for.
ONLY_OLD = {"timestamp", "body"}
# What stands beside another only, or excludes it.
ALONE = {"key_base64": "key", "status": "method"}
# What stands on paper under another name where a definition states it in Base64, which has no placeholders.
ON_PAPER = {"correlation_data": "correlation_data_base64"}
# What is tried in the place of placeholders.
FILLINGS = ("x", "1", "urn:x", "04", "404", "2026-01-01T00:00:00Z", "a/x", "https://example.com/x")
_placeholder = re.compile(r"\{\+?[A-Za-z0-9_]+\}")


@dataclass(frozen=True)
class Stated:
    """One property that a definition states: where, and how; `name` is None where the field has one value."""

    protocol: str
    field: str
    name: str | None
    how: Any

    @property
    def value(self) -> Any:
        """What a message is asked to have, if anything."""
        is_plain = self.name is None or self.field == "header" or not isinstance(self.how, dict)
        return self.how if is_plain else self.how.get("value")

    @property
    def as_definition(self) -> dict[str, Any]:
        """A definition that states it and nothing else."""
        if not self.protocol:
            metadata = {"type": {"value": "t"}} | {self.name: self.how}
            return {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}
        return {"protocol": self.protocol, "protocoloptions": {self.field: self.as_option}}

    @property
    def as_option(self) -> Any:
        """What it adds to the options of its protocol."""
        if self.name is None:
            return self.how
        if self.field == "header" or not isinstance(self.how, dict) or self.name.islower():
            return {self.name: self.how}
        return {f"k{self.name.encode().hex()}": {"name": self.name, **self.how}}  # a key of a map is in lower case


@st.composite
def members(draw: st.DrawFn, name: str, place: PropertyPlace) -> Any:
    """How a property is stated: mostly as it can be, else with another type or value, or not as a definition."""
    odd = draw(st.integers(0, 20))
    if odd == 20:
        return draw(st.sampled_from(["v", 5, []]))
    if odd < 18:
        kind = draw(st.sampled_from([None, *sorted(place.types)]))
        member = {"value": draw(st.sampled_from((FITTING if odd < 11 else ALIKE)[known(odd < 11, name, place, kind)]))}
    else:
        kind = draw(st.sampled_from([None, *TYPES, "urn", "", 5]))
        member = {"value": draw(st.sampled_from(TEXTS) | st.sampled_from(JSON))}
    required = draw(st.sampled_from([None] * 20 + [True, False, True, False, "yes"]))
    return member | ({} if kind is None else {"type": kind}) | ({} if required is None else {"required": required})


def known(fits: bool, name: str, place: PropertyPlace, kind: str | None = None) -> str:
    """The row of the tables above for a place, where a type is stated, or None."""
    return name if name in (FITTING if fits else ALIKE) and kind in (None, "string") else kind or place.type


def plain(name: str, place: PropertyPlace) -> st.SearchStrategy[Any]:
    """A value that stands for itself: mostly one that can be there, or looks like one."""
    fitting = st.sampled_from(FITTING[known(True, name, place)])
    return st.one_of(fitting, fitting, st.sampled_from(ALIKE[known(False, name, place)]), st.sampled_from(JSON))


@st.composite
def properties(draw: st.DrawFn, protocol: str) -> Stated:
    """A property of an event, or of a protocol's message."""
    if not protocol:
        name = draw(st.sampled_from([*ENVELOPE.named, "ext"]))
        how = draw(members(name, ENVELOPE.place(name)))
        if name in ("id", "source", "specversion", "type") and isinstance(how, dict) and how.get("required") is False:
            how.pop("required")  # a rule of its own
        return Stated("", "", name, how)
    field = draw(st.sampled_from([*sorted(OPTIONS[protocol].keys() - ONLY_OLD), "nothing"]))
    place = OPTIONS[protocol].get(field, PropertyPlace())
    if not isinstance(place, PropertySection):
        return Stated(protocol, field, None, draw(plain(field, place)))
    name = draw(st.sampled_from(sorted(place.named) or NAMES))
    return Stated(protocol, field, name, draw((plain if place.plain else members)(name, place.place(name))))


@st.composite
def carried(draw: st.DrawFn, protocol: str, prefix: str) -> Stated:
    """A property of a message that is an attribute of a binary event."""
    binding = BINDINGS[protocol]
    name = prefix + draw(st.sampled_from(sorted(CARRIED)))
    value = draw(st.sampled_from(CARRIED[attribute_in(protocol, binding.attributes_in, name)]))
    return Stated(protocol, binding.attributes_in, name, {"value": value})


def attribute_in(protocol: str, field: str, name: str | None) -> str:
    """The attribute of an event that a property of a binary message is, or an empty text."""
    binding = BINDINGS.get(protocol)
    if name is None or binding is None or binding.attributes_in != field or "binary" not in binding.modes:
        return ""
    prefix = next((one for one in binding.prefixes if name.startswith(one)), None)
    return name.removeprefix(prefix) if prefix is not None else ""


@st.composite
def definitions_of_events(draw: st.DrawFn) -> list[Stated]:
    """Properties of an event, and of the message that carries it, some of which are the same attribute."""
    protocol = draw(st.sampled_from([name for name in OPTIONS if name in BINDINGS]))
    in_binary = "binary" in BINDINGS[protocol].modes
    prefix = draw(st.sampled_from(BINDINGS[protocol].prefixes))  # a message has one for all
    found = {}
    for number in range(draw(st.integers(1, 3))):
        other = properties(draw(st.sampled_from(["", protocol])))
        one = draw(carried(protocol, prefix) if in_binary and draw(st.booleans()) else other)
        attribute = attribute_in(one.protocol, one.field, one.name)
        if in_binary and attribute in CARRIED and draw(st.booleans()):  # and in the envelope, alike or not
            value = draw(st.sampled_from([one.value, *CARRIED[attribute]]))
            kind = draw(st.sampled_from([None, "string", "integer", "number", "boolean", "binary"]))
            how = {"value": value} | ({"type": kind} if attribute == "ext" and kind else {})
            found[f".{attribute}"] = Stated("", "", attribute, _renamed(how, number + 10))
        key = ALONE.get(one.field, one.field) if one.name is None else f"{one.field}.{attribute or one.name}"
        if not re.search("content[-_]?type$", key) and one.name != "id":
            found.setdefault(key, Stated(one.protocol, one.field, one.name, _renamed(one.how, number)))
    return list(found.values())


@st.composite
def definitions(draw: st.DrawFn) -> list[Stated]:
    """Up to three properties of one definition, each with placeholders of its own."""
    protocol = draw(st.sampled_from(["", *OPTIONS]))
    kinds = [protocol] if not protocol else draw(st.sampled_from([[protocol], [protocol], [protocol, ""]]))
    found: dict[str, Stated] = {}
    for number in range(draw(st.sampled_from([1, 1, 2, 3]))):
        one = draw(properties(draw(st.sampled_from(kinds))))
        # What content types have to do with each other, and what excludes each other, is for rules of their own.
        alone = ALONE.get(one.field, one.field)
        key = alone if one.name is None else f"{one.field}.{one.name}"
        key = ".ext" if key == "user_properties.ext" else key  # MQTT has there what an event's attribute says
        key = "content type" if re.search("content[-_]?type$", key) else key
        found.setdefault(key, Stated(one.protocol, one.field, one.name, _renamed(one.how, number)))
    return list(found.values())


def _renamed(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(member, number) for name, member in value.items()}
    return re.sub(r"\{(\+?[a-z]+)\}", rf"{{\g<1>{number}}}", value) if isinstance(value, str) else value


def together(stated: list[Stated]) -> dict[str, Any]:
    """The definition that states all of them."""
    whole: dict[str, Any] = {}
    for one in stated:
        definition = one.as_definition
        metadata = "protocoloptions" if one.protocol else "envelopemetadata"
        known = whole.get(metadata, {})
        inner = definition.pop(metadata)
        for name, value in inner.items():
            before = known.get(name)
            both = isinstance(before, dict) and isinstance(value, dict) and bool(one.protocol) and one.name is not None
            known[name] = {**before, **value} if both else value
        whole = {**whole, **definition, metadata: known}
    for one in stated:  # `type` has a value, unless it is what is stated
        if not one.protocol and one.name == "type":
            whole["envelopemetadata"]["type"] = one.how
    return whole


WAYS = ("own", "group", "base", "options of a base", "base with all", "group of a base", "group of a bare base")


def documents(definition: dict[str, Any], way: str) -> dict[str, Any]:
    """Groups with the definition, which has its envelope and its protocol from itself, from a group or from a base."""
    selectors = {name: definition[name] for name in ("envelope", "protocol") if name in definition}
    rest = {name: value for name, value in definition.items() if name not in selectors}
    base = {"basemessage": f"{BASES}/messages/b"}
    group, other, own, below = {
        "own": ({}, {}, definition, None),
        "group": (selectors, {}, rest, None),
        "base": ({}, {}, {**rest, **base}, selectors),
        "options of a base": ({}, {}, {**selectors, **base}, rest),
        "base with all": ({}, {}, base, definition),
        "group of a base": ({}, selectors, base, rest),
        "group of a bare base": ({}, selectors, {**rest, **base}, {"name": "bare"}),
    }[way]
    found = {"g": {**group, "messages": {"m": own}}}
    return {"h": {**other, "messages": {"b": below}}, **found} if below is not None else found


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
        yield from (_placeholder.sub(text, value) for text in FILLINGS)
    else:
        yield "true" if value is True else "false" if value is False else str(value)
        if isinstance(value, float) and value.is_integer():
            yield from (int(value), str(int(value)))


def message_with(values: list[tuple[Stated, Any]]) -> dict[str, Any]:
    """A message, or a bare event, that has the values where a definition has them."""
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    fields: dict[str, Any] = {}
    for one, value in values:
        if not one.protocol:
            attributes[str(one.name)] = value
        elif one.name is None:
            is_text = isinstance(one.value, str) and bool(_placeholder.search(one.value))
            fields[one.field if is_text else ON_PAPER.get(one.field, one.field)] = value
        elif one.protocol == "AMQP/1.0":
            fields[one.field] = fields.get(one.field, {}) | {one.name: value}
        else:
            fields[one.field] = [*fields.get(one.field, []), [one.name, value]]
    protocol = next((one.protocol for one, _ in values if one.protocol), "")
    return {"protocol": protocol, **fields} if protocol else attributes


def witness(one: Stated) -> Any:
    """What a message can have so that a match finds the property as it is stated; `...` where there is nothing."""
    catalog = Catalog.from_documents({"messagegroups": documents(one.as_definition, "own")})
    for value in candidates(one.value):
        typed = ({"type": kind, "value": value} for kind in ("ulong", "uuid"))
        for way in [value] if one.protocol != "AMQP/1.0" else [value, *typed]:
            if catalog.validate(message_with([(one, way)]), XID).outcome.value == "matched":
                return way
    return ...


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    """A registry with the built-in model."""
    with Registry.open() as opened:
        yield opened


def refusal(registry: Registry, groups: dict[str, Any]) -> str:
    """Why a write does not take the groups, of which nothing stays; an empty text where it does."""
    try:
        with registry.transaction() as tx:
            for name, group in groups.items():
                tx.put(f"/messagegroups/{name}", group)
            for name in groups:
                tx.delete(f"/messagegroups/{name}")
    except RegistryError as error:
        return str(error)
    return ""


def is_accepted(registry: Registry, groups: dict[str, Any]) -> bool:
    """Whether a write takes the groups."""
    return not refusal(registry, groups)


def faults(catalog: Catalog) -> list[str]:
    """What is wrong with the constraints that the definition is compiled to."""
    compiled = catalog.compiled(XID)
    constraints = (*compiled.on_envelope, *compiled.on_protocol, *compiled.on_data, *compiled.on_transport)
    return [one.fault for one in constraints if one.fault is not None]


# The rules about values: what breaks one is wrong with a constraint, too.
OF_VALUES = ("[message-property]", "[cloudevents-binding-agrees]")


@given(definitions(), st.sampled_from(WAYS))
@settings(max_examples=800)
def test_a_write_accepts_what_a_match_can_apply(registry: Registry, stated: list[Stated], way: str) -> None:
    """A write accepts a definition if and only if a match can apply every constraint in it; one can be built, too."""
    definition = together(stated)
    groups = documents(definition, way)
    found = [(one, witness(one)) for one in stated]
    applies = all(value is not ... for _, value in found)
    event(f"{'accepted' if applies else 'refused'}, {way}")
    assert applies == is_accepted(registry, groups), (groups, found)
    if not applies:
        return
    catalog = Catalog.from_documents({"messagegroups": groups})
    assert not faults(catalog)
    if len({one.protocol for one in stated}) == 1:
        answer = catalog.validate(message_with(found), XID)
        assert answer.outcome.value == "matched", (groups, found, answer.problems)
    built = catalog.message(XID).sample()
    assert not built.problems, (groups, built.problems)


@given(definitions_of_events(), st.sampled_from(WAYS))
@settings(max_examples=600)
def test_a_write_accepts_what_a_message_with_an_event_can_have(
    registry: Registry, stated: list[Stated], way: str
) -> None:
    """A write, a compile and a match agree about an event and the message that carries it.

    A definition is accepted if and only if there is a message that has all that it states.
    """
    definition = together(stated)
    metadata = {"id": {"description": "any"}} | definition.get("envelopemetadata", {})
    groups = documents(definition | {"envelope": "CloudEvents/1.0", "envelopemetadata": metadata}, way)
    catalog = Catalog.from_documents({"messagegroups": groups})
    words = refusal(registry, groups)
    applies = any(catalog.validate(one, XID).outcome.value == "matched" for one in binary_messages(stated))
    event(f"{'accepted' if applies else 'refused'}, {way}")
    assert applies == (not words), f"{groups} {words}"
    assert not (applies and faults(catalog)), groups
    assert faults(catalog) or not any(name in words for name in OF_VALUES), (groups, words)


def binary_messages(stated: list[Stated]) -> Iterator[dict[str, Any]]:
    """Messages that have every property and an event, in binary mode, or in structured where there is no other."""
    protocol = next((one.protocol for one in stated if one.protocol), "HTTP")
    both = {attribute_in(one.protocol, one.field, one.name): one for one in stated if one.protocol}
    alone = [one for one in stated if one not in both.values() or not attribute_in(one.protocol, one.field, one.name)]
    alone = [one for one in alone if one.protocol or one.name not in both]
    found = [(one, witness(one)) for one in alone]
    if any(value is ... for _, value in found):
        return
    shared = {attribute: one for attribute, one in both.items() if attribute}
    own = {one.name: one.value for one in stated if not one.protocol}
    tried = [list(texts_for(one.value, own.get(attribute))) for attribute, one in shared.items()]
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    attributes |= {str(one.name): value for one, value in found if not one.protocol}
    for texts in itertools.product(*tried):
        fields = [(one, value) for one, value in found if one.protocol]
        fields += zip(shared.values(), texts, strict=True)
        message = {"protocol": protocol} | (message_with(fields) if fields else {})
        yield with_event(message, {name: value for name, value in attributes.items() if name not in shared})


def texts_for(*values: Any) -> Iterator[str]:
    """Texts that a property may have where values are stated of it."""
    for value in dict.fromkeys(
        str(one).lower() if isinstance(one, bool) else str(one) for one in values if one is not None
    ):
        yield from dict.fromkeys(str(one) for one in (*candidates(value), quote(value, safe="/:")))


def with_event(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    """The message with an event in it, as far as it does not have it."""
    binding = BINDINGS[message["protocol"]]
    if "binary" not in binding.modes:
        return message | {"payload_json": attributes}
    known = message.get(binding.attributes_in, [])
    prefix = next((one for one in binding.prefixes if any(name.startswith(one) for name in dict(known))), None)
    pairs = []
    for name, value in attributes.items():
        written = binding.write_value(value)
        named = (binding.prefixes[0] if prefix is None else prefix) + name
        pairs.append([named, written.decode() if isinstance(written, bytes) else written])
    is_map = message["protocol"] == "AMQP/1.0"
    return message | {binding.attributes_in: dict(known) | dict(pairs) if is_map else [*known, *pairs]}


def test_every_place(registry: Registry) -> None:
    """A write accepts what looks like a value of a place if and only if a match can apply it, whatever the place is."""
    wrong = [
        (one, accepted)
        for one in every_place()
        if (accepted := is_accepted(registry, documents(one.as_definition, "own"))) != (witness(one) is not ...)
    ]
    assert not wrong


def every_place() -> Iterator[Stated]:
    """Values that are right and values that look alike at every place, and of every type where any can be stated."""
    sections: list[tuple[str, str, PropertySection]] = [("", "", ENVELOPE)]
    for protocol, fields in OPTIONS.items():
        for field, place in fields.items():
            if isinstance(place, PropertySection):
                sections.append((protocol, field, place))
            elif field not in ONLY_OLD:
                for value in (*FITTING[known(True, field, place)], *ALIKE[known(False, field, place)]):
                    yield Stated(protocol, field, None, value)
    for protocol, field, section in sections:
        for name in (*section.named, *(() if section.plain or field == "properties" else ("ext",))):
            place = section.place(name)
            for kind in [None] if section.plain else [None, *sorted(place.types)]:
                for value in (*FITTING[known(True, name, place, kind)], *ALIKE[known(False, name, place, kind)]):
                    member = {"value": value} | ({} if kind is None else {"type": kind})
                    yield Stated(protocol, field, name, value if section.plain else member)


def test_the_model_knows_the_types_of_the_table() -> None:
    """The types that a property can be given by the built-in model are those by which matches judge it."""
    model = builtin_modelsource()["groups"]["messagegroups"]["resources"]["messages"]["attributes"]
    of_event = model["envelope"]["ifvalues"]["CloudEvents/1.0"]["siblingattributes"]["envelopemetadata"]
    amqp = model["protocol"]["ifvalues"]["AMQP/1.0"]["siblingattributes"]["protocoloptions"]
    properties_ = OPTIONS["AMQP/1.0"]["properties"]
    assert isinstance(properties_, PropertySection)
    for section, attributes in (
        (ENVELOPE, of_event["attributes"]),
        (properties_, amqp["attributes"]["properties"]["attributes"]),
    ):
        assert section.named.keys() == attributes.keys() - {"*"}
        for name, attribute in attributes.items():
            assert set(attribute["attributes"]["type"]["enum"]) == section.place(name).types, name
