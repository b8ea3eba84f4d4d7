"""Metadata and rules beside a schema: checked, merged with what the configuration adds, and kept; clients run them.

Rule: a rule set is refused only for what no client could make sense of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from signalbook.server.confluent.compatibility import Candidate, Finding
from signalbook.server.confluent.errors import ConfluentError

__all__ = ["check_rules", "merged_metadata", "merged_rules", "reserved_findings"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MIGRATION = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_DOMAIN = frozenset({"WRITE", "READ", "WRITEREAD"})
_PARTS = {"migrationRules": _MIGRATION, "domainRules": _DOMAIN, "encodingRules": _DOMAIN}
_RESERVED = "confluent:reserved"


def check_rules(rules: Mapping[str, Any] | None) -> None:
    """Refuse a rule set that is not one."""
    for part, modes in _PARTS.items():
        names: set[str] = set()
        for rule in (rules or {}).get(part) or ():
            if not isinstance(rule, dict):
                raise _invalid(f"'{part}' must be a list of objects")
            name = rule.get("name")
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise _invalid(f"a rule's name begins with a letter and has at most 64 characters, not '{name}'")
            if name in names:
                raise _invalid(f"the rule name '{name}' is there twice")
            names.add(name)
            if not rule.get("type"):
                raise _invalid(f"the rule '{name}' has no type")
            mode = rule.get("mode")
            if mode is not None and mode not in modes:
                raise _invalid(f"the mode '{mode}' of the rule '{name}' is not one of {', '.join(sorted(modes))}")
            for action in ("onSuccess", "onFailure"):
                given = rule.get(action)
                if isinstance(given, str) and "," in given and mode not in ("UPDOWN", "WRITEREAD"):
                    raise _invalid(f"'{action}' of the rule '{name}' has two actions, and its mode is a single one")


def _invalid(words: str) -> ConfluentError:
    return ConfluentError(42210, f"Invalid rule set: {words}")


def merged_metadata(*parts: Mapping[str, Any] | None) -> dict[str, Any]:
    """Metadata of several sources, of which the later counts for what both have."""
    made: dict[str, Any] = {}
    for part in parts:
        for name, value in (part or {}).items():
            if isinstance(value, dict):
                made[name] = {**made.get(name, {}), **value}
            elif isinstance(value, list):
                made[name] = [*dict.fromkeys([*made.get(name, ()), *value])]
            elif value is not None:
                made[name] = value
    return made


def merged_rules(*parts: Mapping[str, Any] | None) -> dict[str, Any]:
    """Rules of several sources, of which the later counts for those of one name."""
    made: dict[str, Any] = {}
    for part in parts:
        for name, value in (part or {}).items():
            if isinstance(value, list):
                before = {rule.get("name"): rule for rule in made.get(name, ()) if isinstance(rule, dict)}
                before.update({rule.get("name"): rule for rule in value if isinstance(rule, dict)})
                made[name] = list(before.values())
            elif value is not None:
                made[name] = value
    return made


def reserved_findings(newer: Candidate, older: Sequence[Candidate]) -> list[Finding]:
    """What speaks against a schema by the field names that metadata reserve."""
    from signalbook.schemas.canonical import read_schema

    reserved = _reserved(newer)
    found = []
    if older:
        for name in sorted(_reserved(older[0]) - reserved):
            words = f"reserved field {name} removed: a name that is reserved stays reserved"
            found.append(Finding("RESERVED_FIELD_REMOVED", f"/{name}", words, older[0]))
    schema = read_schema(newer.content.type, newer.content.text, newer.texts)
    for name in sorted(reserved & _fields(schema)):
        words = f"the schema has a field that conflicts with the reserved field {name}"
        found.append(Finding("FIELD_CONFLICTS_WITH_RESERVED_FIELD", f"/{name}", words, (older or [newer])[0]))
    return found


def _reserved(one: Candidate) -> set[str]:
    text = ((one.content.metadata or {}).get("properties") or {}).get(_RESERVED)
    return {name.strip() for name in text.split(",") if name.strip()} if isinstance(text, str) else set()


def _fields(schema: Any) -> set[str]:
    """The names of the fields at the top of a schema."""
    if hasattr(schema, "node"):
        return {field.name for field in getattr(schema.node, "fields", ())}
    if hasattr(schema, "file"):
        return {field.name for message in schema.file.message_types_by_name.values() for field in message.fields}
    root = schema.index.root.schema
    return set(root.get("properties") or ()) if isinstance(root, dict) else set()
