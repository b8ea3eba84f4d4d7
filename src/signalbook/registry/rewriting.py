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
from signalbook.registry.flags import Flags
from signalbook.registry.reads import Page
from signalbook.registry.targets import Target
from signalbook.spec.dialects import DIALECTS
from signalbook.spec.dialects.dialect import CANONICAL
from signalbook.spec.versions import RC4

__all__ = ["rewritten", "with_meta"]

Json = dict[str, Any]


def rewritten(page: Page, target: Target, dialect: str) -> Page:
    """A page of 1.0-rc4 as a dialect has it."""
    if target.kind == "meta":
        raise RegistryError("not_found", target.path, detail=f'There is no "meta" in "{dialect}".')
    shape = _SHAPES.get(target.kind)
    if shape is None:
        return page
    content = shape(orjson.loads(page.text), target, dialect)
    return replace(page, text=orjson.dumps(content).decode())


def with_meta(flags: Flags, target: Target) -> Flags:
    """The flags of a read that is to be rewritten: what 1.0 has in a resource's meta, older dialects have beside it."""
    if target.kind in ("resource", "resources"):
        return replace(flags, inline=(*flags.inline, "meta"))
    if target.kind == "registry":
        paths = [f"{plural}.{resource}" for plural, (_, resources) in CANONICAL.items() for resource in resources]
    else:
        paths = list(target.group_type.resources) if target.kind in ("group", "groups") else []
    shown = [path for path in paths if any(one == path or one.startswith(f"{path}.") for one in flags.inline)]
    return replace(flags, inline=(*flags.inline, *(f"{path}.meta" for path in shown)))


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
