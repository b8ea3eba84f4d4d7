"""How names and shapes are written: every accepted spelling in, one canonical form inside, a version's spelling out.

Rule 1: what differs is a row in a table here or a field of a `SpecVersion`; no function knows a version.
Rule 2: nothing is changed in place, and what needs no change is returned as the same object.
Rule 3: metadata and options are respelled only where the entity's own envelope or protocol is one of the
specification's; those of others, and of an entity that names none, stay as they are.
Rule 4: two spellings of one thing may agree; where they contradict each other, neither is dropped: that is an error.
Rule 5: `to_canonical` is idempotent. A partial document (PATCH) goes through `named` as it came, and through
`to_canonical` merged with what is stored (`Normaliser.patched`).

Which spelling is canonical, and why, is in docs/decisions/0005-builtin-model-is-the-union.md; every respelling is
listed in docs/reference/dialects.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from signalbook.errors import RegistryError
from signalbook.protocols.message import OPTIONS, PROTOCOLS, find_protocol
from signalbook.protocols.values import PropertySection
from signalbook.spec.builtin import ENDPOINT, MESSAGE
from signalbook.spec.versions import VERSIONS, SpecVersion

__all__ = [
    "KEYED",
    "PROPERTY",
    "Normaliser",
    "aligned",
    "canonical_members",
    "canonical_name",
    "differences",
    "error_in_version",
    "from_canonical",
    "is_event",
    "keyed",
    "listed",
    "normaliser_for",
    "properties",
    "respelled",
    "spelled_members",
    "to_canonical",
]

# The properties that a message declares by name: their definitions, and the keys that names have in a map.
#
# Rule 1: a key is in lower case (ID-9) and a name need not be: where a name cannot be its key, the key is derived
# from it (`_stem`), and the member `name` holds the name. A second name with the same derived key gets `-2` after it,
# a third `-3`.
# Rule 2: nothing is changed in place, and what needs no change is returned as the same object.


# The options of a message that are maps of named properties, by protocol.
KEYED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        protocol: tuple(
            name for name, place in options.items() if isinstance(place, PropertySection) and place.is_keyed
        )
        for protocol, options in OPTIONS.items()
    }
)
# The text of September 2025 has `urireference`; in that of May 2026 `uri` takes absolute and relative ones.
_OLD_TYPES = {"urireference": "uri", "uri-reference": "uri"}
PROPERTY = frozenset({"description", "name", "required", "specurl", "type", "value"})
_KEY = re.compile(r"[a-z0-9][a-z0-9:_.\-]{0,62}")


def properties(value: Any) -> Any:
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


def listed(value: Any) -> Any:
    """Named properties as an array; a map of them names each by its key."""
    if isinstance(value, dict):
        value = [{"name": name, **_defined(member)} for name, member in value.items() if member is not None]
    return properties(value)


def keyed(value: Any) -> Any:
    """Named properties as a map; a name that cannot be a key (ID-9) becomes the member `name` of a key like it."""
    if isinstance(value, list) and all(isinstance(m, dict) and isinstance(m.get("name"), str) for m in value):
        pairs: Any = [(member["name"], member) for member in value]
    elif isinstance(value, dict):
        if all(isinstance(member, dict) and _KEY.fullmatch(name) for name, member in value.items()):
            return properties(value)
        pairs = value.items()
    else:
        return value
    return properties(dict(_keys(pairs)))


def _keys(pairs: Collection[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    taken: set[str] = {name for name, _ in pairs if _KEY.fullmatch(name)}
    used: set[str] = set()
    for name, member in pairs:
        key = name
        if not _KEY.fullmatch(name) or name in used:
            if member is None:
                continue
            key = _free(_stem(name), taken | used)
            member = {"name": name, **_defined(member)}
        elif not isinstance(member, dict):
            member = member if member is None else {"value": member}
        elif member.get("name") == name:
            member = {part: value for part, value in member.items() if part != "name"}
        used.add(key)
        yield key, member


def _stem(name: str) -> str:
    """The key that a name has by itself: in lower case, with `_` for what a key cannot have."""
    return (re.sub(r"[^a-z0-9:_.\-]", "_", name.lower()).lstrip(":_.-") or "name")[:56]


def _free(stem: str, taken: Collection[str]) -> str:
    """The stem, or the first of `stem-2`, `stem-3` and so on that is not taken."""
    key, count = stem, 1
    while key in taken:
        count += 1
        key = f"{stem}-{count}"
    return key


def aligned(base: Mapping[str, Any], nearer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message `nearer` with keys of named properties that fit those of its `base`.

    Names that differ by case alone can have one key, each in its own definition; merged they are two properties.
    """
    protocol = find_protocol(nearer.get("protocol") or base.get("protocol"))
    ours, theirs = nearer.get("protocoloptions"), base.get("protocoloptions")
    if protocol is None or not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
        return nearer
    changed = {
        name: _rekeyed(theirs[name], ours[name])
        for name in KEYED.get(protocol, ())
        if isinstance(ours.get(name), Mapping) and isinstance(theirs.get(name), Mapping)
    }
    return {**nearer, "protocoloptions": {**ours, **changed}} if changed else nearer


def _rekeyed(base: Mapping[str, Any], nearer: Mapping[str, Any]) -> dict[str, Any]:
    keys = {_name(key, member): key for key, member in base.items()}
    found: dict[str, Any] = {}
    second: list[tuple[str, Any]] = []
    for key, member in nearer.items():
        name = _name(key, member)
        other = _name(key, base[key]) if key in base else name
        if name in keys:
            found[keys[name]] = member
        elif name != other and _stem(name) == _stem(other) == key:
            second.append((name, member))
        else:
            found[key] = member
    for name, member in second:
        if member is not None:  # it would take away what is not there
            found[_free(_stem(name), base.keys() | found.keys())] = {"name": name, **_defined(member)}
    return found


def _name(key: str, member: Any) -> str:
    name = member.get("name") if isinstance(member, Mapping) else None
    return name if isinstance(name, str) else key


Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Normaliser:
    """What is normalised in one kind of entity: accepted names, and the shapes to make canonical, in this order."""

    aliases: Mapping[str, str]
    shapes: tuple[tuple[str, Callable[[Any, Attributes], Any]], ...] = ()
    moves: Callable[[Attributes], Attributes] | None = None
    outward: Callable[[Attributes, SpecVersion], Attributes] | None = None
    names: frozenset[str] = field(default_factory=frozenset)

    def to_canonical(self, attrs: Attributes, subject: str = "") -> Attributes:
        """`attrs` with every name and shape in canonical form."""
        try:
            return self._with_shapes(_renamed(attrs, self.aliases))
        except _Contradiction as error:
            raise RegistryError("invalid_attribute", subject, name=error.name, error_detail=error.words) from None

    def named(self, attrs: Attributes, subject: str = "") -> Attributes:
        """`attrs` of a partial document with canonical names; their shapes wait until the whole is known."""
        try:
            renamed: Attributes = _renamed(attrs, self.aliases)
        except _Contradiction as error:
            raise RegistryError("invalid_attribute", subject, name=error.name, error_detail=error.words) from None
        return renamed

    def _with_shapes(self, attrs: Attributes) -> Attributes:
        if self.moves is not None:
            attrs = self.moves(attrs)
        for name, shape in self.shapes:
            value = attrs.get(name)
            if value is not None:
                canonical = shape(value, attrs)
                if canonical is not value:
                    attrs = {**attrs, name: canonical}
        return attrs

    def read_request(self, attrs: Attributes, subject: str, *, patch: bool) -> Attributes:
        """What a request says of an entity: canonical, but for shapes of a PATCH, which is not the whole of it."""
        return self.named(attrs, subject) if patch else self.to_canonical(attrs, subject)

    def patched(self, stored: Attributes, given: Attributes, spec: SpecVersion, subject: str) -> Attributes:
        """What is stored of an entity, with what a PATCH says of it laid over, in canonical form.

        Options whose protocol goes are first as a client of `spec` reads them: their canonical names are that
        protocol's.
        """
        whole = {**stored, **given}
        kept = "protocoloptions" in stored and "protocoloptions" not in given
        if kept and self.outward is not None and find_protocol(whole.get("protocol")) != stored.get("protocol"):
            whole["protocoloptions"] = self.outward(stored, spec)["protocoloptions"]
        return self.to_canonical(whole, subject)

    def from_canonical(self, attrs: Attributes, spec: SpecVersion) -> Attributes:
        """`attrs`, which are canonical, as `spec` spells them."""
        for name, spelled in spec.attributes.items():
            if name in attrs and name in self.names:
                attrs = {(spelled if key == name else key): value for key, value in attrs.items()}
        return attrs if self.outward is None else self.outward(attrs, spec)


def to_canonical(domain: str, attrs: Attributes, subject: str = "", *, group: bool = False) -> Attributes:
    """`attrs` of an entity of a type with this `modelcompatiblewith`, with every name and shape in canonical form."""
    return _normaliser(domain, group).to_canonical(attrs, subject)


def from_canonical(domain: str, attrs: Attributes, spec: SpecVersion, *, group: bool = False) -> Attributes:
    """`attrs`, which are canonical, as `spec` spells them."""
    return _normaliser(domain, group).from_canonical(attrs, spec)


def spelled_members(attrs: Mapping[str, Any], spec: SpecVersion) -> Mapping[str, Any]:
    """`attrs` of a group or meta with the names that `spec` has for the members of its attributes."""
    for name, names in spec.members.items():
        value = attrs.get(name)
        if isinstance(value, dict):
            spelled = {one: other for one, other in names.items() if one in value and other not in value}
            attrs = {**attrs, name: {spelled.get(key, key): member for key, member in value.items()}}
    return attrs


def canonical_members(attrs: Mapping[str, Any], spec: SpecVersion, subject: str) -> Mapping[str, Any]:
    """Attributes of a group or meta, as `spec` has them, with the canonical names of their members."""
    for name, names in spec.members.items():
        for one, spelled in names.items():
            value = attrs.get(name)
            if not isinstance(value, dict) or spelled not in value:
                continue
            if value.get(one, value[spelled]) != value[spelled]:
                words = f'is another spelling of "{name}.{one}", which has a different value'
                raise RegistryError("invalid_attribute", subject, name=f"{name}.{spelled}", error_detail=words)
            attrs = {**attrs, name: {(one if key == spelled else key): member for key, member in value.items()}}
    return attrs


def error_in_version(error: RegistryError, spec: SpecVersion) -> RegistryError:
    """The error with the attributes it is about named as `spec` names them."""
    names = {"ancestorid": spec.ancestor}
    for name, members in spec.members.items():
        names |= {f"{name}.{one}": f"{name}.{spelled}" for one, spelled in members.items()}
    for place in ("name", "list"):
        if place in error.args_:
            error.args_[place] = ",".join(names.get(one, one) for one in error.args_[place].split(","))
    return error


def canonical_name(domain: str, name: str) -> str:
    """The canonical name of a top-level attribute of a resource, as a filter or a header may spell it."""
    return _normaliser(domain, False).aliases.get(name, name)


def normaliser_for(domain: str, declared: Collection[str], *, group: bool = False) -> Normaliser:
    """The normaliser for a type of a model: a name that the model declares itself is not an alias."""
    found = _normaliser(domain, group)
    own = found.aliases.keys() & set(declared)
    if not own:
        return found
    return replace(
        found,
        aliases={alias: name for alias, name in found.aliases.items() if alias not in own},
        names=found.names - {found.aliases[alias] for alias in own},
    )


@lru_cache(maxsize=256)  # a domain is a text of a model, so of a client
def _normaliser(domain: str, group: bool) -> Normaliser:
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
        protocol: tuple(
            (name, keyed if place.is_keyed else properties if place.named else listed)
            for name, place in options.items()
            if isinstance(place, PropertySection) and not place.plain
        )
        for protocol, options in OPTIONS.items()
    }
)
# Other names of options, by protocol.
_OPTION_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        protocol: {
            spelled: name for spec in VERSIONS.values() for name, spelled in spec.options.get(protocol, {}).items()
        }
        | dict(row.option_aliases)
        for protocol, row in PROTOCOLS.items()
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
    names = PROTOCOLS[protocol].endpoint_aliases
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
_CORE = Normaliser(aliases=MappingProxyType(_CORE_ALIASES), names=frozenset({"ancestorid"}))
_PLAIN = Normaliser(aliases=MappingProxyType({}))
_SELECTORS = (("envelope", _envelope), ("protocol", _protocol))

_RESOURCES: Mapping[str, Normaliser] = MappingProxyType(
    {
        MESSAGE: Normaliser(
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
_GROUPS: Mapping[str, Normaliser] = MappingProxyType(
    {
        MESSAGE: Normaliser(aliases=MappingProxyType({}), shapes=_SELECTORS),
        ENDPOINT: Normaliser(
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


# What of an entity or a document is spelled otherwise than it was given, for the reports of lint and convert.
#
# Rule: both sides mean the same, so what differs is a spelling; each place is one of what was given.


def respelled(domain: str, attrs: Attributes, spec: SpecVersion, *, group: bool = False) -> Iterator[tuple[str, str]]:
    """Each place of an entity that is stored in another spelling than it and `spec` have, with words about it."""
    try:
        canonical = to_canonical(domain, attrs, group=group)
    except RegistryError:  # a contradiction, which a check tells
        return
    yield from differences(attrs, from_canonical(domain, canonical, spec, group=group))


def differences(given: Any, shown: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Each place of `given` that `shown`, which means the same, has otherwise, with words that follow a verb."""
    if given is shown or given == shown:
        return
    if isinstance(given, list) and isinstance(shown, list) and len(given) == len(shown):
        for number, (member, other) in enumerate(zip(given, shown, strict=True)):
            yield from differences(member, other, f"{at}/{number}")
    elif isinstance(given, dict) and isinstance(shown, dict):
        added = {name: value for name, value in shown.items() if name not in given}
        for name, value in given.items():
            if name in shown:
                yield from differences(value, shown[name], f"{at}/{name}")
            elif value is not None:
                yield f"{at}/{name}", _where(value, added)
    else:
        plain = isinstance(given, str | int | float) and isinstance(shown, str | int | float)
        yield at, f'as "{shown}"' if plain else "in another form"


def _where(value: Any, added: Attributes) -> str:
    """Words about a member that has another name now, or stands elsewhere; `added` are the new ones beside it."""
    same = [name for name, other in added.items() if other == value]
    if same:
        return f'as "{same[0]}"'
    names = ", ".join(f'"{name}"' for name in added)
    return f"in another form, under {names}" if names else "in another place"
