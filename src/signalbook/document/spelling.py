"""How names and shapes are written: every accepted spelling in, one canonical form inside, a version's spelling out.

Rule 1: what differs is a row in a table here or a field of a `SpecVersion`; no function knows a version.
Rule 2: nothing is changed in place, and what needs no change is returned as the same object.
Rule 3: `to_canonical` is idempotent. A partial document (PATCH) goes through it twice: as it came, for the names, and
merged with what is stored, for the shapes that depend on `protocol`.

Which spelling is canonical, and why, is in docs/decisions/0005-builtin-model-is-the-union.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from signalbook.errors import RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE
from signalbook.spec.versions import VERSIONS, SpecVersion

__all__ = ["PROTOCOLS", "Spelling", "canonical_name", "from_canonical", "spelling_for", "to_canonical"]

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spellings of one kind of entity: accepted names, and the shapes to make canonical, in this order."""

    aliases: Mapping[str, str]
    shapes: tuple[tuple[str, Callable[[Any, Attributes], Any]], ...] = ()
    moves: Callable[[Attributes], Attributes] | None = None
    outward: Callable[[Attributes, SpecVersion], Attributes] | None = None
    names: frozenset[str] = field(default_factory=frozenset)

    def to_canonical(self, attrs: Attributes, subject: str = "") -> Attributes:
        """`attrs` with every name and shape in canonical form."""
        attrs = _renamed(attrs, self.aliases, subject)
        if self.moves is not None:
            attrs = self.moves(attrs)
        for name, shape in self.shapes:
            value = attrs.get(name)
            if value is not None:
                canonical = shape(value, attrs)
                if canonical is not value:
                    attrs = {**attrs, name: canonical}
        return attrs

    def from_canonical(self, attrs: Attributes, spec: SpecVersion) -> Attributes:
        """`attrs`, which are canonical, as `spec` spells them."""
        for name, spelled in spec.attributes.items():
            if name in attrs and name in self.names:
                attrs = {(spelled if key == name else key): value for key, value in attrs.items()}
        return attrs if self.outward is None else self.outward(attrs, spec)


def to_canonical(domain: str, attrs: Attributes, subject: str = "") -> Attributes:
    """`attrs` of an entity of a type with this `modelcompatiblewith`, with every name and shape in canonical form."""
    return _spelling(domain).to_canonical(attrs, subject)


def from_canonical(domain: str, attrs: Attributes, spec: SpecVersion) -> Attributes:
    """`attrs`, which are canonical, as `spec` spells them."""
    return _spelling(domain).from_canonical(attrs, spec)


def canonical_name(domain: str, name: str) -> str:
    """The canonical name of a top-level attribute, as a filter or a header may spell it."""
    return _spelling(domain).aliases.get(name, name)


def spelling_for(domain: str, declared: Collection[str]) -> Spelling:
    """The spellings for a type of a model: a name that the model declares itself is no alias."""
    spelling = _spelling(domain)
    own = spelling.aliases.keys() & set(declared)
    if not own:
        return spelling
    return replace(
        spelling,
        aliases={alias: name for alias, name in spelling.aliases.items() if alias not in own},
        names=spelling.names - {spelling.aliases[alias] for alias in own},
    )


@lru_cache(maxsize=256)  # a domain is a text of a model, so of a client
def _spelling(domain: str) -> Spelling:
    return _SPELLINGS.get(domain, _CORE)


def _renamed(attrs: Any, aliases: Mapping[str, str], subject: str = "") -> Any:
    if aliases.keys().isdisjoint(attrs):
        return attrs
    renamed: dict[str, Any] = {}
    for key, value in attrs.items():
        name = aliases.get(key, key)
        if name != key and attrs.get(name, value) != value:
            words = f'is another spelling of "{name}", which has a different value'
            raise RegistryError("invalid_attribute", subject, name=key, error_detail=words)
        renamed[name] = value
    return renamed


# --- names of protocols and envelopes ---------------------------------------------------------------------------

# endpoint/spec.md `protocol`: "HTTP" stands for all its versions, "AMQP" and "MQTT" for AMQP/1.0 and MQTT/5.0.
PROTOCOLS: Mapping[str, str] = MappingProxyType(
    {
        **{name.lower(): name for name in ("HTTP", "AMQP/1.0", "MQTT/3.1.1", "MQTT/5.0", "KAFKA", "NATS")},
        **{f"http/{version}": "HTTP" for version in ("1.0", "1.1", "2", "2.0", "3", "3.0")},
        "amqp": "AMQP/1.0",
        "mqtt": "MQTT/5.0",
        "mqtt/5": "MQTT/5.0",
        "mqtt/3": "MQTT/3.1.1",
    }
)
_ENVELOPES: Mapping[str, str] = MappingProxyType({"cloudevents/1.0": "CloudEvents/1.0"})


def _known(names: Mapping[str, str]) -> Callable[[Any, Attributes], Any]:
    canonical = frozenset(names.values())

    def shape(value: Any, _: Attributes) -> Any:
        return names.get(value.lower(), value) if isinstance(value, str) and value not in canonical else value

    return shape


# --- property definitions ---------------------------------------------------------------------------------------

# The text of September 2025 has `urireference`; in that of May 2026 `uri` takes absolute and relative ones.
_OLD_TYPES = {"urireference": "uri", "uri-reference": "uri"}
_PROPERTY = frozenset({"description", "name", "required", "specurl", "type", "value"})
_KEY = re.compile(r"[a-z0-9][a-z0-9:_.\-]{0,62}")


def _properties(value: Any) -> Any:
    """An object or array of property definitions, each with today's name of its type."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        if _has_old_type(member):
            break
    else:
        return value
    if isinstance(value, dict):
        return {name: _retyped(member) for name, member in value.items()}
    return [_retyped(member) for member in value]


def _has_old_type(member: Any) -> bool:
    return isinstance(member, dict) and isinstance(member.get("type"), str) and member["type"] in _OLD_TYPES


def _retyped(member: Any) -> Any:
    return {**member, "type": _OLD_TYPES[member["type"]]} if _has_old_type(member) else member


def _defined(value: Any) -> dict[str, Any]:
    """A property definition, also of a bare value."""
    return value if isinstance(value, dict) else {"value": value}


def _listed(value: Any) -> Any:
    """Named properties as an array; a map of them names each by its key."""
    if isinstance(value, dict):
        value = [{"name": name, **_defined(member)} for name, member in value.items() if member is not None]
    return _properties(value)


def _keyed(value: Any) -> Any:
    """Named properties as a map; a name that cannot be a key (ID-9) becomes the member `name` of a key like it."""
    if isinstance(value, list) and all(isinstance(m, dict) and isinstance(m.get("name"), str) for m in value):
        pairs: Any = [(member["name"], member) for member in value]
    elif isinstance(value, dict):
        if all(isinstance(member, dict) and _KEY.fullmatch(name) for name, member in value.items()):
            return _properties(value)
        pairs = value.items()
    else:
        return value
    return _properties(dict(_keys(pairs)))


def _keys(pairs: Collection[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    taken: set[str] = {name for name, _ in pairs if _KEY.fullmatch(name)}
    used: set[str] = set()
    for name, member in pairs:
        if member is None:
            continue
        key = name
        if not _KEY.fullmatch(name) or name in used:
            stem = (re.sub(r"[^a-z0-9:_.\-]", "_", name.lower()).lstrip(":_.-") or "name")[:56]
            key, count = stem, 1
            while key in taken or key in used:
                count += 1
                key = f"{stem}-{count}"
            member = {"name": name, **_defined(member)}
        elif not isinstance(member, dict):
            member = {"value": member}
        elif member.get("name") == name:
            member = {part: value for part, value in member.items() if part != "name"}
        used.add(key)
        yield key, member


# --- messages ---------------------------------------------------------------------------------------------------


def _pointer(value: Any, _: Attributes) -> Any:
    """A reference into the same document, as 0.5 wrote it, as an xid."""
    return value[1:] if isinstance(value, str) and value.startswith("#/") else value


def _flat(value: Any, _: Attributes) -> Any:
    """Envelope metadata without the level `attributes`, which the text describes and its examples do not have."""
    inner = value.get("attributes") if isinstance(value, dict) else None
    if isinstance(inner, dict) and inner and all(isinstance(member, dict) for member in inner.values()):
        value = {**{name: member for name, member in value.items() if name != "attributes"}, **inner}
    return _properties(value)


def _constraints_to_metadata(attrs: Attributes) -> Attributes:
    """What the overview puts into `envelopeoptions`, and the normative text into `envelopemetadata`."""
    options = attrs.get("envelopeoptions")
    if not isinstance(options, dict):
        return attrs
    moved = {
        name: member
        for name, member in options.items()
        if isinstance(member, dict) and member and member.keys() <= _PROPERTY and name not in ("mode", "format")
    }
    metadata = attrs.get("envelopemetadata") or {}
    if not moved or not isinstance(metadata, dict):
        return attrs
    left = {name: member for name, member in options.items() if name not in moved}
    rest = {name: value for name, value in attrs.items() if name not in ("envelopeoptions", "envelopemetadata")}
    return {**rest, "envelopemetadata": {**moved, **metadata}, **({"envelopeoptions": left} if left else {})}


_Shapes = tuple[tuple[str, Callable[[Any], Any]], ...]
# Shapes of `protocoloptions` by protocol. Endpoints have plain values, so this is for messages only.
_MESSAGE_SHAPES: Mapping[str, _Shapes] = MappingProxyType(
    {
        "HTTP": (("headers", _listed), ("query", _listed)),
        "AMQP/1.0": (
            ("properties", _properties),
            ("application-properties", _keyed),
            ("message-annotations", _keyed),
            ("delivery-annotations", _keyed),
            ("footer", _keyed),
        ),
        "MQTT/5.0": (("user_properties", _listed),),
        "KAFKA": (("headers", _keyed),),
        "NATS": (("headers", _listed),),
    }
)
_OLD_OPTIONS = {"user_properties": "user-properties"}  # the text's prose has the hyphen, its table the underscore
# Other names of options, which mean the same under whatever protocol they stand.
_MESSAGE_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        spelled: name
        for names in (*(row for spec in VERSIONS.values() for row in spec.options.values()), _OLD_OPTIONS)
        for name, spelled in names.items()
    }
)


def _message_options(value: Any, attrs: Attributes) -> Any:
    if not isinstance(value, dict):
        return value
    return _shaped(_renamed(value, _MESSAGE_OPTIONS), _MESSAGE_SHAPES.get(str(attrs.get("protocol")), ()))


def _shaped(value: dict[str, Any], shapes: _Shapes) -> dict[str, Any]:
    for name, shape in shapes:
        member = value.get(name)
        if member is not None and (canonical := shape(member)) is not member:
            value = {**value, name: canonical}
    return value


def _message_outward(attrs: Attributes, spec: SpecVersion) -> Attributes:
    renames = spec.options.get(str(attrs.get("protocol")))
    options = attrs.get("protocoloptions")
    if renames and isinstance(options, dict) and renames.keys() & options.keys():
        return {**attrs, "protocoloptions": {renames.get(name, name): value for name, value in options.items()}}
    return attrs


# --- endpoints --------------------------------------------------------------------------------------------------

_ENDPOINT_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "linkproperties": "link-properties",
        "link_properties": "link-properties",
        "connectionproperties": "connection-properties",
        "connection_properties": "connection-properties",
        "distributionmode": "distribution-mode",
        "distribution_mode": "distribution-mode",
    }
)


def _in_array(value: Any, _: Any = None) -> Any:
    return value if isinstance(value, list) else [value]


def _addresses(value: Any) -> Any:
    """Network addresses under `uri`, where 1.0-rc2 has `url`."""
    return _each(value, lambda member: _renamed(member, {"url": "uri"}))


def _each(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    if not isinstance(value, list):
        return value
    changed = [change(member) if isinstance(member, dict) else member for member in value]
    return value if all(one is other for one, other in zip(value, changed, strict=True)) else changed


_ENDPOINT_SHAPES: _Shapes = (("endpoints", _addresses), ("authorization", _in_array))


def _endpoint_options(value: Any, _: Attributes) -> Any:
    if not isinstance(value, dict):
        return value
    return _shaped(_renamed(value, _ENDPOINT_OPTIONS), _ENDPOINT_SHAPES)


def _deprecated(value: Any, _: Attributes) -> Any:
    return _renamed(value, {"docs": "documentation"}) if isinstance(value, dict) else value


def _pointers(value: Any, attrs: Attributes) -> Any:
    if isinstance(value, list) and any(isinstance(member, str) and member.startswith("#/") for member in value):
        return [_pointer(member, attrs) for member in value]
    return value


def _endpoint_outward(attrs: Attributes, spec: SpecVersion) -> Attributes:
    options = attrs.get("protocoloptions")
    if spec.address == "uri" or not isinstance(options, dict):
        return attrs
    addresses = options.get("endpoints")
    spelled = _each(addresses, lambda member: _renamed(member, {"uri": spec.address}))
    return attrs if spelled is addresses else {**attrs, "protocoloptions": {**options, "endpoints": spelled}}


# --- the table --------------------------------------------------------------------------------------------------

_CORE_ALIASES = {"ancestor": "ancestorid"}
_CORE = Spelling(aliases=MappingProxyType(_CORE_ALIASES), names=frozenset({"ancestorid"}))
_SELECTORS = (("envelope", _known(_ENVELOPES)), ("protocol", _known(PROTOCOLS)))

_SPELLINGS: Mapping[str, Spelling] = MappingProxyType(
    {
        MESSAGE: Spelling(
            aliases=MappingProxyType(
                {**_CORE_ALIASES, "basemessageuri": "basemessage", "basemessageurl": "basemessage"}
            ),
            shapes=(
                *_SELECTORS,
                ("basemessage", _pointer),
                ("envelopemetadata", _flat),
                ("protocoloptions", _message_options),
            ),
            moves=_constraints_to_metadata,
            outward=_message_outward,
            names=frozenset({"ancestorid", "basemessage"}),
        ),
        ENDPOINT: Spelling(
            aliases=MappingProxyType(_CORE_ALIASES),
            shapes=(
                *_SELECTORS,
                ("usage", _in_array),
                ("deprecated", _deprecated),
                ("messagegroups", _pointers),
                ("protocoloptions", _endpoint_options),
            ),
            outward=_endpoint_outward,
            names=frozenset({"ancestorid"}),
        ),
    }
)
