"""An answer in an older dialect: read as today's, and rewritten as a whole.

Rule: what the dialect has no word for (a model's own types, a resource's meta) is shown as it is, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from signalbook.document.dialects import read, write
from signalbook.errors import RegistryError
from signalbook.registry.reads import Page
from signalbook.registry.targets import Target
from signalbook.spec.dialects import DIALECTS
from signalbook.spec.dialects.dialect import CANONICAL
from signalbook.spec.versions import RC4

__all__ = ["rewritten"]

Json = dict[str, Any]


def rewritten(page: Page, target: Target, dialect: str) -> Page:
    """A page of 1.0-rc4 as a dialect has it."""
    if target.kind == "meta":
        raise RegistryError("not_found", target.path, detail=f"There is no meta in {dialect}.")
    shape = _SHAPES.get(target.kind)
    if shape is None:
        return page
    content = shape(orjson.loads(page.text), target, dialect)
    return replace(page, text=orjson.dumps(content).decode())


def _rewrite(entity: Json, level: str, dialect: str) -> Any:
    reading = read(entity, DIALECTS[RC4.name], level)
    return write(reading, DIALECTS[dialect])[0]


def _level(target: Target) -> str:
    """The level of what is addressed, or of a collection's members; empty where it is another model's."""
    level, resources = CANONICAL.get(target.group_type.plural, ("", {}))
    if target.resource is None:
        return level if target.kind in ("groups", "group") else ""
    return resources.get(target.resource.plural, "")


def _one(content: Json, target: Target, dialect: str) -> Any:
    level = _level(target)
    return _rewrite(content, level, dialect) if level else content


def _map(content: Json, target: Target, dialect: str) -> Any:
    level = _level(target)
    return {key: _rewrite(entity, level, dialect) for key, entity in content.items()} if level else content


def _registry(content: Json, target: Target, dialect: str) -> Any:
    return _rewrite(content, "registry", dialect)


_SHAPES: Mapping[str, Callable[[Json, Target, str], Any]] = {
    "registry": _registry,
    "export": _registry,
    "groups": _map,
    "group": _one,
    "resources": _map,
    "resource": _one,
    "versions": _map,
    "version": _one,
}
