"""What every request needs of a registry before it looks at entities: its id, its model, its capabilities.

Rule: the compiled setup is kept until the store says that it changed, in this process or another. What tells is a
random name (`generation`) that is read with every request: a number could come twice where a commit fails.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import orjson

from signalbook.errors import RegistryError, StoreError
from signalbook.jsontext import AROUND_SETTING, export_text
from signalbook.model.model import GroupType, Model, ResourceType, read_model, spell_options
from signalbook.model.normalise import Spelling, spelling_for
from signalbook.protocols.message import find_protocol
from signalbook.registry import rows, urls
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.rows import EntityRow
from signalbook.registry.store import Connection
from signalbook.spec.versions import SpecVersion

__all__ = [
    "Setup",
    "canonical",
    "canonical_members",
    "create",
    "generation",
    "load_setup",
    "patched",
    "read_request",
    "save_setup",
    "spelled_error",
    "spelling_of",
]

# The spelling of each type of a model: what its documents' names and shapes are inside, and for a client.
#
# Rule: a type's spelling follows from its `modelcompatiblewith`, less the names that its model declares itself. Members
# of `deprecated`, which groups and metas of every type have, are named as the version of the request names them.


@lru_cache(maxsize=128)  # types of models that are gone fall out
def spelling_of(kind: GroupType | ResourceType) -> Spelling:
    """Return the spelling of a type."""
    return spelling_for(kind.modelcompatiblewith, kind.attributes.keys(), group=isinstance(kind, GroupType))


def canonical(kind: GroupType | ResourceType, attrs: Mapping[str, Any], subject: str = "") -> Mapping[str, Any]:
    """Return attributes of an entity of this type with every name and shape in canonical form."""
    return spelling_of(kind).to_canonical(attrs, subject)


def read_request(
    kind: GroupType | ResourceType, attrs: Mapping[str, Any], subject: str, *, patch: bool
) -> Mapping[str, Any]:
    """Return what a request says of an entity: canonical, but for shapes of a PATCH, which is not the whole of it."""
    spelling = spelling_of(kind)
    return spelling.named(attrs, subject) if patch else spelling.to_canonical(attrs, subject)


def patched(
    kind: GroupType | ResourceType, stored: Mapping[str, Any], given: Mapping[str, Any], spec: SpecVersion, subject: str
) -> Mapping[str, Any]:
    """Return what is stored of an entity, with what a PATCH says of it laid over, in canonical form.

    Options whose protocol goes are first as a client of `spec` reads them: their canonical names are that protocol's.
    """
    spelling, whole = spelling_of(kind), {**stored, **given}
    kept = "protocoloptions" in stored and "protocoloptions" not in given
    if kept and spelling.outward is not None and find_protocol(whole.get("protocol")) != stored.get("protocol"):
        whole["protocoloptions"] = spelling.outward(stored, spec)["protocoloptions"]
    return spelling.to_canonical(whole, subject)


def canonical_members(attrs: Mapping[str, Any], spec: SpecVersion, subject: str) -> Mapping[str, Any]:
    """Return attributes of a group or meta, as `spec` has them, with the canonical names of their members."""
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


def spelled_error(error: RegistryError, spec: SpecVersion) -> RegistryError:
    """Return the error with the attributes it is about named as `spec` names them."""
    names = {"ancestorid": spec.ancestor}
    for name, members in spec.members.items():
        names |= {f"{name}.{one}": f"{name}.{spelled}" for one, spelled in members.items()}
    for place in ("name", "list"):
        if place in error.args_:
            error.args_[place] = ",".join(names.get(one, one) for one in error.args_[place].split(","))
    return error


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
    def shape(self) -> urls.InlineShape:
        """What requests to the registry may inline."""
        return urls.registry_shape(self.model)

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


def create(db: Connection, registryid: str, source: Any, capabilities: Capabilities, now: str) -> None:
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
