"""What is set for a subject, for a context, or for all: the configuration, above all the compatibility, and the mode.

Rule 1: the nearer counts: a subject's own, else its context's, else that of all, else the default of the server.
Rule 2: the level of a subject that is there is also the `compatibility` of the schema, so that both APIs hold to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from signalbook.registry import schema_ids
from signalbook.registry.schema_ids import split_name
from signalbook.registry.store import Connection
from signalbook.server.confluent.calls import ConfluentError

__all__ = ["GLOBAL", "LEVELS", "MODES", "Scope", "delete_scope", "find_config", "find_mode", "in_force", "load", "save"]

LEVELS = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
DEFAULT_LEVEL, DEFAULT_MODE = "BACKWARD", "READWRITE"
LEVEL = "compatibilityLevel"

# A context and a subject; a context alone has no subject, and all contexts have neither.
Scope = tuple[str, str]
GLOBAL: Scope = ("", "")

_FLAGS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS = ("alias", "compatibilityPolicy", "compatibilityGroup")
_OBJECTS = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")


def scope_of(name: str, around: str) -> Scope:
    """The scope that a name after `/config` or `/mode` means; without one it is the context that the path is in."""
    context, subject = split_name(name, around)
    if context == ".__GLOBAL" or (context == schema_ids.DEFAULT and not subject):
        return GLOBAL
    return context, subject


def load(db: Connection, scope: Scope) -> tuple[dict[str, Any], str]:
    """What is set for a scope itself: its configuration and its mode, empty where nothing is."""
    found = db.one("SELECT config, mode FROM schema_scopes WHERE context = ? AND subject = ?", scope)
    return (orjson.loads(found[0]), found[1]) if found is not None else ({}, "")


def save(db: Connection, scope: Scope, config: Mapping[str, Any], mode: str) -> None:
    """Set configuration and mode of a scope; where both are empty nothing is kept."""
    db.execute("DELETE FROM schema_scopes WHERE context = ? AND subject = ?", scope)
    if config or mode:
        text = orjson.dumps(config).decode()
        db.execute(
            "INSERT INTO schema_scopes (context, subject, config, mode) VALUES (?, ?, ?, ?)", (*scope, text, mode)
        )


def delete_scope(db: Connection, scope: Scope) -> None:
    """Forget what is set for a scope."""
    save(db, scope, {}, "")


def _around(scope: Scope) -> list[Scope]:
    """A scope and those around it, the nearest first."""
    context, subject = scope
    found = [scope] if subject else []
    return [*found, *([(context, "")] if context else []), GLOBAL]


def find_mode(db: Connection, scope: Scope) -> str:
    """The mode in force for a scope."""
    return next((mode for one in _around(scope) if (mode := load(db, one)[1])), DEFAULT_MODE)


def find_config(db: Connection, scope: Scope) -> dict[str, Any]:
    """The configuration in force for a scope."""
    own = load(db, scope)[0] if scope[1] else {}
    wider: dict[str, Any] = {}
    for one in reversed(_around((scope[0], ""))):
        wider.update(load(db, one)[0])
    if not own:
        return {LEVEL: DEFAULT_LEVEL, **wider}
    kept = {name: value for name, value in wider.items() if name in _FLAGS}
    return {LEVEL: DEFAULT_LEVEL, **kept, **own}


def in_force(db: Connection, context: str, subject: str) -> tuple[dict[str, Any], str]:
    """Configuration and mode in force for a subject."""
    return find_config(db, (context, subject)), find_mode(db, (context, subject))


def read_config(body: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a configuration that a request sets, `None` for those that it clears."""
    found: dict[str, Any] = {}
    for name in ("compatibility", LEVEL):
        if name in body:
            found[LEVEL] = read_level(body[name])
    for names, kind, words in ((_FLAGS, bool, "true or false"), (_TEXTS, str, "a text"), (_OBJECTS, dict, "an object")):
        for name in names:
            if name in body:
                if body[name] is not None and not isinstance(body[name], kind):
                    raise ConfluentError(400, f"'{name}' must be {words}")
                found[name] = body[name]
    return found


def read_level(value: object) -> str | None:
    """A level in capitals."""
    if value is None:
        return None
    if not isinstance(value, str) or value.upper() not in LEVELS:
        words = f"Invalid compatibility level. Valid values are {', '.join(level.lower() for level in LEVELS)}"
        raise ConfluentError(42203, words)
    return value.upper()


def read_mode(value: object) -> str:
    """A mode in capitals."""
    if not isinstance(value, str) or value.upper() not in MODES:
        raise ConfluentError(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
    return value.upper()
