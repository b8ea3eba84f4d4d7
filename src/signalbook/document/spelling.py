"""How names and shapes are written: every accepted spelling in, one canonical form inside, a version's spelling out.

Rule 1: what differs is a row in a table here or a field of a `SpecVersion`; no function knows a version.
Rule 2: nothing is changed in place, and what needs no change is returned as the same object.
Rule 3: metadata and options are respelled only where the entity's own envelope or protocol is one of the
specification's; those of others, and of an entity that names none, stay as they are.
Rule 4: two spellings of one thing may agree; where they contradict each other, neither is dropped: that is an error.
Rule 5: `to_canonical` is idempotent. A partial document (PATCH) goes through `named` as it came, and through
`to_canonical` merged with what is stored (`registry.spellings.patched`).

Which spelling is canonical, and why, is in docs/decisions/0005-builtin-model-is-the-union.md; every respelling is
listed in docs/reference/dialects.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from signalbook.document.property_names import KEYED, PROPERTY, keyed, listed, properties
from signalbook.errors import RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE
from signalbook.spec.protocols import find_protocol
from signalbook.spec.versions import VERSIONS, SpecVersion

__all__ = [
    "Spelling",
    "canonical_name",
    "from_canonical",
    "is_event",
    "spelled_members",
    "spelling_for",
    "to_canonical",
]

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
        try:
            return self._spelled(_renamed(attrs, self.aliases))
        except _Contradiction as error:
            raise RegistryError("invalid_attribute", subject, name=error.name, error_detail=error.words) from None

    def named(self, attrs: Attributes, subject: str = "") -> Attributes:
        """`attrs` of a partial document with canonical names; their shapes wait until the whole is known."""
        try:
            renamed: Attributes = _renamed(attrs, self.aliases)
        except _Contradiction as error:
            raise RegistryError("invalid_attribute", subject, name=error.name, error_detail=error.words) from None
        return renamed

    def _spelled(self, attrs: Attributes) -> Attributes:
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


def to_canonical(domain: str, attrs: Attributes, subject: str = "", *, group: bool = False) -> Attributes:
    """`attrs` of an entity of a type with this `modelcompatiblewith`, with every name and shape in canonical form."""
    return _spelling(domain, group).to_canonical(attrs, subject)


def from_canonical(domain: str, attrs: Attributes, spec: SpecVersion, *, group: bool = False) -> Attributes:
    """`attrs`, which are canonical, as `spec` spells them."""
    return _spelling(domain, group).from_canonical(attrs, spec)


def spelled_members(attrs: Mapping[str, Any], spec: SpecVersion) -> Mapping[str, Any]:
    """`attrs` of a group or meta with the names that `spec` has for the members of its attributes."""
    for name, names in spec.members.items():
        value = attrs.get(name)
        if isinstance(value, dict):
            spelled = {one: other for one, other in names.items() if one in value and other not in value}
            attrs = {**attrs, name: {spelled.get(key, key): member for key, member in value.items()}}
    return attrs


def canonical_name(domain: str, name: str) -> str:
    """The canonical name of a top-level attribute of a resource, as a filter or a header may spell it."""
    return _spelling(domain, False).aliases.get(name, name)


def spelling_for(domain: str, declared: Collection[str], *, group: bool = False) -> Spelling:
    """The spellings for a type of a model: a name that the model declares itself is no alias."""
    spelling = _spelling(domain, group)
    own = spelling.aliases.keys() & set(declared)
    if not own:
        return spelling
    return replace(
        spelling,
        aliases={alias: name for alias, name in spelling.aliases.items() if alias not in own},
        names=spelling.names - {spelling.aliases[alias] for alias in own},
    )


@lru_cache(maxsize=256)  # a domain is a text of a model, so of a client
def _spelling(domain: str, group: bool) -> Spelling:
    return _GROUPS.get(domain, _PLAIN) if group else _RESOURCES.get(domain, _CORE)


class _Contradiction(Exception):  # it becomes a RegistryError, which has the entity's name
    """Two spellings of one thing that say something different: the place of the second, and words about the first."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(name, words)
        self.name, self.words = name, words


def _renamed(attrs: Attributes, aliases: Mapping[str, str], at: str = "") -> Any:
    if aliases.keys().isdisjoint(attrs):
        return attrs
    said: dict[str, str] = {}
    for key in attrs:
        name = aliases.get(key, key)
        other = said.setdefault(name, key)
        if attrs[other] != attrs[key]:
            spelled, beside = (key, other) if key in aliases else (other, key)
            words = f'is another spelling of "{name}", and "{beside}" has a different value; give one of them'
            raise _Contradiction(at + spelled, words)
    return {name: attrs[key] for name, key in said.items()}


def _joined(outer: Mapping[str, Any], inner: Mapping[str, Any], at: str, beside: str) -> dict[str, Any]:
    """Members that stand in two places, in one; `inner` were at the place `at`, `outer` at `beside`."""
    for name, member in inner.items():
        if member is not None and outer.get(name) is not None and outer[name] != member:
            words = f'says something different from "{beside}.{name}"; give one of them'
            raise _Contradiction(f"{at}.{name}", words)
    return {**inner, **{name: member for name, member in outer.items() if member is not None or name not in inner}}


# --- names of protocols and envelopes ---------------------------------------------------------------------------

_EVENT = "CloudEvents/1.0"


def is_event(envelope: object) -> bool:
    """Whether an `envelope` is the one that the specification defines, in any case."""
    return isinstance(envelope, str) and envelope.lower() == "cloudevents/1.0"


def _envelope(value: Any, _: Attributes) -> Any:
    return _EVENT if value != _EVENT and is_event(value) else value


def _protocol(value: Any, _: Attributes) -> Any:
    found = find_protocol(value)
    return value if found is None or found == value else found


# --- messages ---------------------------------------------------------------------------------------------------


def _pointer(value: Any, _: Attributes) -> Any:
    """A reference into the same document, as 0.5 wrote it, as an xid."""
    return value[1:] if isinstance(value, str) and value.startswith("#/") else value


def _event(attrs: Attributes) -> Attributes:
    """A message with the attributes of its event in one place.

    The text has an inner level `attributes` too, which its examples lack; its overview has them in `envelopeoptions`.
    """
    if not is_event(attrs.get("envelope")):
        return attrs
    metadata = attrs.get("envelopemetadata")
    if metadata is None or isinstance(metadata, dict):
        flat = properties(_flat(metadata or {}))
        options = attrs.get("envelopeoptions")
        moved = _constraints(options) if isinstance(options, dict) else {}
        if moved:
            left = {name: member for name, member in options.items() if name not in moved}  # type: ignore[union-attr]
            flat = _joined(flat, properties(moved), "envelopeoptions", "envelopemetadata")
            rest = {name: value for name, value in attrs.items() if name != "envelopeoptions"}
            return {**rest, "envelopemetadata": flat, **({"envelopeoptions": left} if left else {})}
        if metadata is not None and flat is not metadata:
            return {**attrs, "envelopemetadata": flat}
    return attrs


def _flat(metadata: dict[str, Any]) -> dict[str, Any]:
    inner = metadata.get("attributes")
    if not isinstance(inner, dict) or not any(isinstance(member, dict) for member in inner.values()):
        return metadata  # an attribute of that name
    if not all(member is None or isinstance(member, dict) for member in inner.values()):
        return metadata
    outer = {name: member for name, member in metadata.items() if name != "attributes"}
    return _joined(outer, inner, "envelopemetadata.attributes", "envelopemetadata")


def _constraints(options: dict[str, Any]) -> dict[str, Any]:
    """What of the options of an envelope are property definitions."""
    return {
        name: member
        for name, member in options.items()
        if isinstance(member, dict) and member and member.keys() <= PROPERTY and name not in ("mode", "format")
    }


_Shapes = tuple[tuple[str, Callable[[Any], Any]], ...]
# Shapes of `protocoloptions` by protocol. Endpoints have plain values, so this is for messages only.
_MESSAGE_SHAPES: Mapping[str, _Shapes] = MappingProxyType(
    {
        "HTTP": (("headers", listed), ("query", listed)),
        "AMQP/1.0": (("properties", properties), *((name, keyed) for name in KEYED["AMQP/1.0"])),
        "MQTT/5.0": (("user_properties", listed),),
        "KAFKA": tuple((name, keyed) for name in KEYED["KAFKA"]),
        "NATS": (("headers", listed),),
    }
)
# Other names of options. The text's prose has `user-properties`, its table the underscore.
_OPTION_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        protocol: {
            spelled: name for spec in VERSIONS.values() for name, spelled in spec.options.get(protocol, {}).items()
        }
        | ({"user-properties": "user_properties"} if protocol == "MQTT/5.0" else {})
        for protocol in _MESSAGE_SHAPES
    }
)


def _message_options(value: Any, attrs: Attributes) -> Any:
    protocol = find_protocol(attrs.get("protocol"))
    if protocol is None or not isinstance(value, dict):
        return value
    return _shaped(
        _renamed(value, _OPTION_NAMES.get(protocol, {}), "protocoloptions."), _MESSAGE_SHAPES.get(protocol, ())
    )


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

_AMQP_LINKS: Mapping[str, str] = MappingProxyType(
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
    return _each(value, lambda member: _renamed(member, {"url": "uri"}, "protocoloptions.endpoints."))


def _each(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    if not isinstance(value, list):
        return value
    changed = [change(member) if isinstance(member, dict) else member for member in value]
    return value if all(one is other for one, other in zip(value, changed, strict=True)) else changed


_ENDPOINT_SHAPES: _Shapes = (("endpoints", _addresses), ("authorization", _in_array))


def _endpoint_options(value: Any, attrs: Attributes) -> Any:
    protocol = find_protocol(attrs.get("protocol"))
    if protocol is None or not isinstance(value, dict):
        return value
    names = _AMQP_LINKS if protocol == "AMQP/1.0" else {}
    return _shaped(_renamed(value, names, "protocoloptions."), _ENDPOINT_SHAPES)


def _deprecated(value: Any, _: Attributes) -> Any:
    return _renamed(value, {"docs": "documentation"}, "deprecated.") if isinstance(value, dict) else value


def _pointers(value: Any, attrs: Attributes) -> Any:
    if isinstance(value, list) and any(isinstance(member, str) and member.startswith("#/") for member in value):
        return [_pointer(member, attrs) for member in value]
    return value


def _endpoint_outward(attrs: Attributes, spec: SpecVersion) -> Attributes:
    options = attrs.get("protocoloptions")
    if spec.address == "uri" or not isinstance(options, dict) or find_protocol(attrs.get("protocol")) is None:
        return attrs
    addresses = options.get("endpoints")
    spelled = _each(addresses, lambda member: _renamed(member, {"uri": spec.address}))
    return attrs if spelled is addresses else {**attrs, "protocoloptions": {**options, "endpoints": spelled}}


# --- the table --------------------------------------------------------------------------------------------------

_CORE_ALIASES = {"ancestor": "ancestorid"}
_CORE = Spelling(aliases=MappingProxyType(_CORE_ALIASES), names=frozenset({"ancestorid"}))
_PLAIN = Spelling(aliases=MappingProxyType({}))
_SELECTORS = (("envelope", _envelope), ("protocol", _protocol))

_RESOURCES: Mapping[str, Spelling] = MappingProxyType(
    {
        MESSAGE: Spelling(
            aliases=MappingProxyType(
                {**_CORE_ALIASES, "basemessageuri": "basemessage", "basemessageurl": "basemessage"}
            ),
            shapes=(*_SELECTORS, ("basemessage", _pointer), ("protocoloptions", _message_options)),
            moves=_event,
            outward=_message_outward,
            names=frozenset({"ancestorid", "basemessage"}),
        )
    }
)
# A group has no ancestor, no base and no options of a message: such names are attributes of its owner's.
_GROUPS: Mapping[str, Spelling] = MappingProxyType(
    {
        MESSAGE: Spelling(aliases=MappingProxyType({}), shapes=_SELECTORS),
        ENDPOINT: Spelling(
            aliases=MappingProxyType({}),
            shapes=(
                *_SELECTORS,
                ("usage", _in_array),
                ("deprecated", _deprecated),
                ("messagegroups", _pointers),
                ("protocoloptions", _endpoint_options),
            ),
            outward=_endpoint_outward,
        ),
    }
)
