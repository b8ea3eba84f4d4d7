"""What every request needs of a registry before it looks at entities: its id, its model, its capabilities.

Rule: the compiled setup is kept until the store says that it changed, in this process or another. What tells is a
random name (`generation`) that is read with every request: a number could come twice where a commit fails.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from signalbook.document.json_text import AROUND_SETTING, export_text
from signalbook.document.model import Model
from signalbook.document.model_read import read_model
from signalbook.document.model_spelling import spell_options
from signalbook.errors import StoreError
from signalbook.registry import inlines, rows
from signalbook.registry.capabilities import Capabilities
from signalbook.registry.rows import Row
from signalbook.registry.store import Connection
from signalbook.spec.versions import SpecVersion

__all__ = ["Setup", "create", "generation", "load_setup", "save_setup"]


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
    def shape(self) -> inlines.Shape:
        """What requests to the registry may inline."""
        return inlines.registry_shape(self.model)

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
    rows.save(db, Row(rows.REGISTRY_KEY, "/", "registry", 1, now, now))
