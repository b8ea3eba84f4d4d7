"""How a registry is set up: its capabilities, its model and its id, as the table `settings` holds them.

Rule 1: `Offer` is the server's and fixed when it starts; `Capabilities` is the registry's, and always within the offer.
Rule 2: a client's request passes `update`, which refuses what the offer lacks by the specification's error names.
Rule 3: names are held and shown in lower case and in order; `*` in a request becomes the names it stands for (CAP-11).
Rule 4: the compiled setup is kept until the store says that it changed, in this process or another. What tells is a
random name (`generation`) that is read with every request: a number could come twice where a commit fails.

core/spec.md 1.0-rc4 "Registry Capabilities"; 1.0-rc2 has `stickyversions` besides, which this server always has.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import orjson

from signalbook.errors import RegistryError, StoreError
from signalbook.jsontext import AROUND_SETTING, export_text
from signalbook.model.model import Model, read_model, spell_options
from signalbook.registry import rows
from signalbook.registry.rows import EntityRow
from signalbook.registry.store import Connection
from signalbook.registry.urls import FLAGS, IGNORES, PAGING, InlineShape, registry_shape
from signalbook.schemas import COMPATIBILITIES, FORMATS
from signalbook.spec.versions import RC2, RC4, SpecVersion, find

__all__ = [
    "AVAILABLE", "OFFER", "SUBJECT", "Capabilities", "Choice", "Offer", "Setup", "create_setup", "generation",
    "load_setup", "save_setup", "update",
]  # fmt: skip

SUBJECT = "/capabilities"
BOTH = (False, True)


@dataclass(frozen=True, slots=True)
class Choice:
    """A boolean that a client may set to one of `choices`, and what it is at the start."""

    initial: bool
    choices: tuple[bool, ...] = BOTH


AVAILABLE: Mapping[str, Choice] = {
    ".xregistry": Choice(False, (False,)),
    "capabilities": Choice(True),
    "capabilitiesoffered": Choice(False),
    "entities": Choice(True),
    "export": Choice(False, (False,)),
    "model": Choice(False, (False,)),
    "modelsource": Choice(True),
}

# What each version of the specification has beyond 1.0-rc4; the values cannot be changed.
_BEYOND: Mapping[str, Mapping[str, bool]] = {RC2.name: {"stickyversions": True}}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a registry is set to do; `available` says of each kind of data whether a client may change it."""

    available: Mapping[str, bool]
    compatibilities: Mapping[str, frozenset[str]]
    flags: frozenset[str]
    formats: frozenset[str]
    ignores: frozenset[str]
    pagination: bool
    shortself: bool
    specversions: frozenset[str]
    versionmodes: frozenset[str]

    @property
    def parameters(self) -> frozenset[str]:
        """The query parameters that requests may use: the flags, and those of pagination where it is on."""
        return self.flags | PAGING if self.pagination else self.flags

    def is_mutable(self, name: str) -> bool:
        """True where a client may change this kind of data."""
        return self.available.get(name, False)

    def read_only(self) -> Capabilities:
        """The same, with nothing that a client may change."""
        return replace(self, available=dict.fromkeys(self.available, False))

    def to_dict(self, spec: str = RC4.name) -> dict[str, Any]:
        """The capabilities as the specification version called `spec` shows them."""
        shown: dict[str, Any] = {
            **_BEYOND.get(spec, {}),
            "available": {name: {"mutable": mutable} for name, mutable in self.available.items()},
            "compatibilities": {format_: sorted(rules) for format_, rules in self.compatibilities.items()},
            "pagination": self.pagination,
            "shortself": self.shortself,
            **{name: sorted(getattr(self, name)) for name in _LISTS},
        }
        return dict(sorted(shown.items()))

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Capabilities:
        """The capabilities that `to_dict` gave; not for what a client sends."""
        return cls(
            available={name: entry["mutable"] for name, entry in stored["available"].items()},
            compatibilities={name: frozenset(rules) for name, rules in stored["compatibilities"].items()},
            pagination=stored["pagination"],
            shortself=stored["shortself"],
            **{name: frozenset(stored[name]) for name in _LISTS},
        )

    def to_json(self) -> str:
        """The text to store."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Capabilities:
        """The capabilities that `to_json` stored."""
        return cls.from_dict(json.loads(text))


_NAMES = frozenset(entry.name for entry in fields(Capabilities))
_LISTS = ("flags", "formats", "ignores", "specversions", "versionmodes")


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server can do: the values that a client may choose from, and those that it must keep.

    `formats` maps each schema format that the server can check to the compatibility rules it knows for it. `current` is
    the specification version, `mandatory` the kinds of data that a request must name, `implied` those that are always
    available whether it does or not (CAP-2). With `trust_unknown` a compatibility that cannot be decided is taken for
    one that holds.
    """

    available: Mapping[str, Choice] = field(default_factory=lambda: AVAILABLE)
    formats: Mapping[str, Iterable[str]] = field(
        default_factory=lambda: {row.name.lower(): COMPATIBILITIES for row in FORMATS}
    )
    flags: frozenset[str] = FLAGS
    ignores: frozenset[str] = IGNORES
    pagination: Choice = Choice(True)
    shortself: Choice = Choice(False)
    specversions: frozenset[str] = frozenset({RC2.name, RC4.name})
    versionmodes: frozenset[str] = frozenset({"createdat", "manual", "modifiedat", "semver"})
    current: str = RC4.name
    mandatory: tuple[str, ...] = ("capabilities",)
    implied: Mapping[str, bool] = field(default_factory=lambda: {"entities": True, "model": False})
    trust_unknown: bool = False

    def names(self, capability: str) -> frozenset[str]:
        """The values that the list called `capability` may hold."""
        return frozenset(getattr(self, capability))

    def rules(self, format_: str) -> frozenset[str]:
        """The compatibility rules known for a format."""
        return frozenset(self.formats.get(format_, ()))

    def initial(self) -> Capabilities:
        """A new registry's capabilities: everything that is offered, booleans as they start."""
        return Capabilities(
            available={name: choice.initial for name, choice in sorted(self.available.items())},
            compatibilities={name: self.rules(name) for name in sorted(self.formats) if self.rules(name)},
            pagination=self.pagination.initial,
            shortself=self.shortself.initial,
            **{name: self.names(name) for name in _LISTS},
        )

    def reset(self) -> Capabilities:
        """The specification's default for each capability, which stands for one that a PUT leaves out (CAP-13)."""
        nothing: frozenset[str] = frozenset()
        return Capabilities(
            available={"capabilities": False, "entities": True, "model": False},
            compatibilities={},
            flags=nothing,
            formats=nothing,
            ignores=nothing,
            pagination=False,
            shortself=False,
            specversions=frozenset({self.current}),
            versionmodes=frozenset({"manual"}),
        )

    def to_dict(self, spec: str = RC4.name) -> dict[str, Any]:
        """What `GET /capabilitiesoffered` shows (CAP-16)."""
        beyond = {name: Choice(value, (value,)) for name, value in _BEYOND.get(spec, {}).items()}
        booleans = {"pagination": self.pagination, "shortself": self.shortself, **beyond}
        shown: dict[str, Any] = {
            "available": _object({name: _object({"mutable": _boolean(c)}) for name, c in self.available.items()}),
            "compatibilities": _object({name: _list(self.rules(name)) for name in self.formats if self.rules(name)}),
            **{name: _boolean(choice) for name, choice in booleans.items()},
            **{name: _list(self.names(name)) for name in _LISTS},
        }
        return dict(sorted(shown.items()))


OFFER = Offer()


def _object(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "attributes": dict(sorted(attributes.items()))}


def _boolean(choice: Choice) -> dict[str, Any]:
    """A boolean's offer: where both values may be chosen there is nothing to list."""
    return {"type": "boolean"} if choice.choices == BOTH else {"type": "boolean", "enum": list(choice.choices)}


def _list(names: Iterable[str]) -> dict[str, Any]:
    return {"type": "array", "enum": sorted(names), "item": {"type": "string"}}


def update(current: Capabilities, body: Any, *, replace: bool, offer: Offer = OFFER) -> Capabilities:
    """The capabilities after a client sent `body`: with `replace` (PUT) what it leaves out is reset, else kept.

    A capability that is null is reset either way.
    """
    if not isinstance(body, Mapping):
        raise _error("the capabilities must be an object")
    reset = offer.reset()
    base = reset if replace else current
    values = {name: getattr(base, name) for name in _NAMES}
    for name, given in body.items():
        if name in _FIXED:
            _require(name, given, Choice(True, (True,)))
        elif name not in _NAMES:
            raise RegistryError("capability_unknown", SUBJECT, field=name)
        elif given is None:
            values[name] = getattr(reset, name)
        elif name != "compatibilities":
            values[name] = _READERS[name](name, given, offer)
    if body.get("compatibilities") is not None:  # last, because it depends on the formats
        values["compatibilities"] = _compatibilities(body["compatibilities"], values["formats"], offer)
    else:
        kept = values["compatibilities"]
        values["compatibilities"] = {name: rules for name, rules in kept.items() if name in values["formats"]}
    return Capabilities(**values)


_FIXED = frozenset(name for beyond in _BEYOND.values() for name in beyond)


def _require(name: str, given: Any, choice: Choice) -> bool:
    if not isinstance(given, bool) or given not in choice.choices:
        raise _bad_value(name, given, (json.dumps(value) for value in choice.choices))
    return given


def _available(name: str, given: Any, offer: Offer) -> dict[str, bool]:
    if not isinstance(given, Mapping):
        raise _bad_value(name, given, offer.available)
    read: dict[str, bool] = {}
    for key, entry in given.items():
        kind = key.lower()
        choice = offer.available.get(kind)
        if choice is None:
            raise _bad_value(name, key, offer.available)
        mutable = entry.get("mutable", False) if isinstance(entry, Mapping) and entry.keys() <= {"mutable"} else None
        if not isinstance(mutable, bool):
            raise _error(f'"{kind}" in "{name}" must be an object with a boolean "mutable"')
        if mutable not in choice.choices:
            raise _error(f'"{kind}" in "{name}" cannot be mutable')
        read[kind] = mutable
    for kind in offer.mandatory:
        _contain(name, read, kind)
    for kind, mutable in offer.implied.items():
        read.setdefault(kind, mutable)
    return dict(sorted(read.items()))


def _names_in(name: str, given: Any, offered: frozenset[str]) -> frozenset[str]:
    """The names in a list, `*` alone being all that are offered; they may still be unknown."""
    if not isinstance(given, list) or not all(isinstance(value, str) for value in given):
        raise _bad_value(name, given, offered)
    if "*" in given:
        if len(given) > 1:
            raise RegistryError("capability_wildcard", SUBJECT, field=name)
        return offered
    return frozenset(value.lower() for value in given)


def _read_list(name: str, given: Any, offer: Offer) -> frozenset[str]:
    offered = offer.names(name)
    names = _names_in(name, given, offered)
    for unknown in sorted(names - offered):
        raise _bad_value(name, unknown, offered)
    return names


def _formats(name: str, given: Any, offer: Offer) -> frozenset[str]:
    offered = offer.names(name)
    names = _names_in(name, given, offered)
    for unknown in sorted(names - offered):
        raise _error(f'the format "{unknown}" is not offered')
    return names


def _specversions(name: str, given: Any, offer: Offer) -> frozenset[str]:
    names = {str(find(text) or text) for text in _names_in(name, given, offer.specversions)}  # patch numbers go
    _contain(name, read := _read_list(name, sorted(names), offer), offer.current)
    return read


def _versionmodes(name: str, given: Any, offer: Offer) -> frozenset[str]:
    _contain(name, read := _read_list(name, given, offer), "manual")
    return read


def _compatibilities(given: Any, formats: frozenset[str], offer: Offer) -> dict[str, frozenset[str]]:
    if not isinstance(given, Mapping):
        raise _bad_value("compatibilities", given, formats)
    read: dict[str, frozenset[str]] = {}
    for key, rules in given.items():
        format_ = key.lower()
        if format_ not in formats:
            raise _error(f'"compatibilities" has the format "{key}", which "formats" lacks')
        read[format_] = _names_in(f"compatibilities[{format_}]", rules, offer.rules(format_))
        for unknown in sorted(read[format_] - offer.rules(format_)):
            raise _error(f'the compatibility rule "{unknown}" is not offered for the format "{format_}"')
    return dict(sorted(read.items()))


_READERS: Mapping[str, Callable[[str, Any, Offer], Any]] = {
    "available": _available,
    "flags": _read_list,
    "formats": _formats,
    "ignores": _read_list,
    "pagination": lambda name, given, offer: _require(name, given, offer.pagination),
    "shortself": lambda name, given, offer: _require(name, given, offer.shortself),
    "specversions": _specversions,
    "versionmodes": _versionmodes,
}


def _contain(name: str, values: Iterable[str], needed: str) -> None:
    if needed not in values:
        raise RegistryError("capability_missing_value", SUBJECT, name=name, value=needed)


def _bad_value(field_: str, value: Any, allowed: Iterable[str]) -> RegistryError:
    text = value if isinstance(value, str) else json.dumps(value)
    return RegistryError("capability_value", SUBJECT, value=text[:200], field=field_, list=",".join(sorted(allowed)))


def _error(detail: str) -> RegistryError:
    return RegistryError("capability_error", SUBJECT, error_detail=detail)


# The setup as it is stored: id, model and capabilities.


@dataclass(frozen=True)
class Setup:
    """A registry's id, model and capabilities as they were at one generation."""

    registryid: str
    generation: str
    source: str
    model: Model
    capabilities: Capabilities
    _full: dict[str, str] = field(default_factory=dict)

    @cached_property
    def shape(self) -> InlineShape:
        """What requests to the registry may inline."""
        return registry_shape(self.model)

    def full_model(self, spec: SpecVersion) -> str:
        """Return `GET /model` as JSON text."""
        if spec.name not in self._full:
            full = spell_options(self.model.full(spec.name, spec.attributes), spec)
            self._full[spec.name] = orjson.dumps(full).decode()
        return self._full[spec.name]


def generation(db: Connection) -> str:
    """Return the name that is another with every change of model or capabilities."""
    found = db.one("SELECT value FROM settings WHERE name = 'generation'")
    return str(found[0]) if found else ""


def load_setup(db: Connection) -> Setup:
    """Read and compile a registry's setup."""
    stored: dict[str, str] = dict(db.execute("SELECT name, value FROM settings"))
    try:
        return Setup(
            stored["registryid"], stored["generation"], stored["modelsource"],
            read_model(orjson.loads(stored["resolved"])), Capabilities.from_json(stored["capabilities"]),
        )  # fmt: skip
    except KeyError as missing:
        raise StoreError(f'the store holds no registry: "{missing.args[0]}" is missing') from None


def save_setup(db: Connection, values: Mapping[str, str]) -> None:
    """Write settings under a new generation."""
    for name, value in {**values, "generation": secrets.token_hex(8)}.items():
        db.execute(
            "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )


def create_setup(db: Connection, registryid: str, source: Any, capabilities: Capabilities, now: str) -> None:
    """Make an empty registry in a store that has none.

    The id by which other catalogs know it is made with it, so that every backup has it.
    """
    read_model(source)
    text = export_text(source, "/modelsource", AROUND_SETTING)
    save_setup(
        db,
        {
            "registryid": registryid, "catalogid": secrets.token_hex(12), "modelsource": text, "resolved": text,
            "capabilities": capabilities.to_json(),
        },
    )  # fmt: skip
    rows.save(db, EntityRow(rows.REGISTRY_KEY, "/", "registry", 1, now, now))
