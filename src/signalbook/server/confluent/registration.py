"""Registering a schema: found in its subject, or judged and added as a new version.

Rule 1: registering what is there writes nothing, and needs nobody's turn.
Rule 2: a schema is read and compared before the registry's turn to write; only where somebody else wrote to the subject
meanwhile is that done again within it.
Rule 3: the order of the checks: what can be read of the request, what is there already, the mode, the schema itself,
its compatibility.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signalbook.registry import schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import HIGHEST, SubjectVersion, name_in
from signalbook.registry.store import Connection
from signalbook.schemas.canonical import Content, read_schema
from signalbook.server.confluent import compatibility, scopes
from signalbook.server.confluent.calls import ConfluentError
from signalbook.server.confluent.compatibility import ComparedSchema
from signalbook.server.confluent.subjects import Sent, SubjectView, check_subject, invalid
from signalbook.server.confluent.writing import SubjectWriter

__all__ = ["Registration"]


@dataclass(slots=True)
class _Plan:
    """What a registration comes to, and the state that it was found in."""

    state: tuple[Any, ...]
    found: SubjectVersion | None = None
    content: Content | None = None
    number: int = 0
    id: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    imports: bool = False


class Registration:
    """Registers schemas in one registry."""

    def __init__(self, requests: Requests, subjects: SubjectView) -> None:
        self._requests = requests
        self._subjects = subjects

    def register(
        self, context: str, subject: str, sent: Sent, *, normalise: bool, force: bool, base: str
    ) -> dict[str, Any]:
        """Register a schema under a subject, or find it there; the answer."""
        check_subject(subject)
        _check_rules(sent.rules)
        store = self._requests.store
        plan = store.read(lambda db: self._plan(db, context, subject, sent, normalise, force))
        if plan.found is not None:
            return store.read(lambda db: self._registered(db, plan.found))

        def job(db: Connection) -> dict[str, Any]:
            now = plan
            if self._state(db, context, subject) != plan.state:
                now = self._plan(db, context, subject, sent, normalise, force)
                if now.found is not None:
                    return self._registered(db, now.found)
            assert now.content is not None
            writer = SubjectWriter(self._requests, db, base)
            return self._registered(db, writer.add(context, subject, now.content, now.number, now.id))

        return self._requests.write(job, several=True)

    def _registered(self, db: Connection, version: SubjectVersion | None) -> dict[str, Any]:
        assert version is not None
        shown = self._subjects.shown(db, version)
        del shown["subject"]
        return shown

    def _state(self, db: Connection, context: str, subject: str) -> tuple[Any, ...]:
        """What a plan rests on: who wrote meanwhile to the subject or its surroundings has changed it."""
        scoped = [scopes.load(db, one) for one in ((context, subject), (context, ""), scopes.GLOBAL)]
        return (schema_ids.versions(db, context, subject), scoped)

    def _plan(self, db: Connection, context: str, subject: str, sent: Sent, normalise: bool, force: bool) -> _Plan:
        config, mode = scopes.in_force(db, context, subject)
        every = schema_ids.versions(db, context, subject)
        live = [one for one in every if not one.deleted]
        plan = _Plan(self._state(db, context, subject), config=config, imports=mode == "IMPORT")
        if not sent.text.strip():
            sent = self._without_text(db, live, sent)
        given = sent
        sent = self._completed(db, live, sent, config)
        normalise = normalise or bool(config.get("normalize"))
        content = self._subjects.content_sent(db, context, sent, live, normalise=normalise)
        if not (plan.imports and given.id) and given.version != -1:
            plan.found = self._subjects.match(db, live, content, given)
            if plan.found is not None and given.id in (0, plan.found.id):
                if given.version in (0, plan.found.number):
                    return plan
                plan.found = None
            else:
                plan.found = None
        if mode not in ("READWRITE", "IMPORT"):
            raise ConfluentError(42205, f"Subject {name_in(context, subject)} is in {mode.lower()} mode")
        plan.number = self._next(db, context, subject, every)
        if plan.imports:
            self._plan_import(db, context, subject, content, given, plan, every)
            return plan
        if given.id:
            raise ConfluentError(42205, f"Subject {name_in(context, subject)} is not in import mode; leave 'id' out")
        if given.version > 0 and given.version != plan.number:
            raise invalid(f"version {given.version} is not one more than the previous version")
        self._check_type(db, every, content)
        self._subjects.check_readable(db, context, content)
        if not force:
            self._check_level(db, context, subject, content, live[-1:] if given.version == -1 else live, config)
        plan.content = _with_version(content, plan.number, given.version == -1)
        return plan

    def _without_text(self, db: Connection, live: Sequence[SubjectVersion], sent: Sent) -> Sent:
        """A request without a schema means that of the latest version, with other metadata."""
        if not live or (sent.metadata is None and sent.rules is None):
            raise invalid("the schema is empty")
        latest = self._subjects.entry(db, live[-1]).content
        return replace(sent, text=latest.text, type=latest.type, references=latest.references)

    def _completed(self, db: Connection, live: Sequence[SubjectVersion], sent: Sent, config: Mapping[str, Any]) -> Sent:
        """A request with the metadata and rules that it takes over, or that the configuration adds."""
        metadata, rules = sent.metadata, sent.rules
        if live and (metadata is None or rules is None):
            latest = self._subjects.entry(db, live[-1]).content
            metadata = metadata if metadata is not None else latest.metadata
            rules = rules if rules is not None else latest.rules
        metadata = _merged_metadata(config.get("defaultMetadata"), metadata, config.get("overrideMetadata"))
        rules = _merged_rules(config.get("defaultRuleSet"), rules, config.get("overrideRuleSet"))
        return replace(sent, metadata=metadata or None, rules=rules or None)

    def _plan_import(
        self, db: Connection, context: str, subject: str, content: Content, sent: Sent, plan: _Plan,
        every: Sequence[SubjectVersion],
    ) -> None:  # fmt: skip
        if not 0 < sent.id <= HIGHEST:
            words = f"Subject {name_in(context, subject)} is in import mode: the request must name a valid 'id'"
            raise ConfluentError(42205, words)
        held = schema_ids.by_id(db, context, sent.id)
        if held is not None and (held.content.text, held.content.references) != (content.text, content.references):
            raise ConfluentError(42205, f"Overwrite new schema with id {sent.id} is not permitted")
        number = sent.version if sent.version > 0 else plan.number
        for one in every:
            if one.number == number:
                if one.id == sent.id and not one.deleted:
                    plan.found = one
                    return
                raise ConfluentError(42205, f"Version {number} of {name_in(context, subject)} is there already")
        self._check_type(db, every, content)
        if not sent.version:
            plan.found = next((one for one in every if one.id == sent.id and not one.deleted), None)
        plan.number, plan.id, plan.content = number, sent.id, content

    def _check_type(self, db: Connection, every: Sequence[SubjectVersion], content: Content) -> None:
        held = self._subjects.entry(db, every[-1]).content.type if every else content.type
        if held != content.type:
            words = "all versions of a subject have one schemaType in this registry"
            raise invalid(f"{words}, and those of this one are {held}; register it under another subject")

    def _next(self, db: Connection, context: str, subject: str, every: Sequence[SubjectVersion]) -> int:
        xid = schema_ids.subject_of(db, context, subject)
        known = schema_ids.subject_at(db, xid) if xid is not None else None
        return max([known[2] if known is not None else 0, *(one.number for one in every)]) + 1

    def candidates(
        self, db: Connection, versions: Sequence[SubjectVersion], content: Content, config: Mapping[str, Any]
    ) -> list[ComparedSchema]:
        """The schemas that one is compared with, the newest first; of its compatibility group, where there is one."""
        found = []
        group = config.get("compatibilityGroup")
        for one in reversed(versions):
            entry = self._subjects.entry(db, one)
            if group and _property(entry.content, group) != _property(content, group):
                continue
            texts = schema_ids.texts_of(db, entry.context, entry.content.references)
            found.append(ComparedSchema(entry.content, texts, one.number))
        return found

    def findings(
        self, db: Connection, context: str, content: Content, live: Sequence[SubjectVersion],
        config: Mapping[str, Any],
    ) -> list[compatibility.Incompatibility]:  # fmt: skip
        """What speaks against a schema after these versions, by the configuration."""
        older = self.candidates(db, live, content, config)
        newer = ComparedSchema(content, schema_ids.texts_of(db, context, content.references))
        found = compatibility.compare_all(config[scopes.LEVEL], newer, older)
        if config.get("validateFields"):
            found += _reserved_findings(newer, older)
        return found

    def _check_level(
        self, db: Connection, context: str, subject: str, content: Content, live: Sequence[SubjectVersion],
        config: Mapping[str, Any],
    ) -> None:  # fmt: skip
        found = self.findings(db, context, content, live, config)
        if found:
            details = ", ".join(compatibility.messages(found, config[scopes.LEVEL]))
            words = "Schema being registered is incompatible with an earlier schema for subject"
            raise ConfluentError(40901, f'{words} "{name_in(context, subject)}", details: [{details}]')


def _property(content: Content, name: str) -> Any:
    return ((content.metadata or {}).get("properties") or {}).get(name)


def _with_version(content: Content, number: int, anew: bool) -> Content:
    """A content whose metadata says its version, where it did, or where an older schema comes back."""
    properties = (content.metadata or {}).get("properties") or {}
    if not anew and "confluent:version" not in properties:
        return content
    metadata = {**(content.metadata or {}), "properties": {**properties, "confluent:version": str(number)}}
    return replace(content, metadata=metadata)


# ---- metadata and rules: checked, merged with what the configuration adds, and kept; clients run them

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MIGRATION = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_DOMAIN = frozenset({"WRITE", "READ", "WRITEREAD"})
_PARTS = {"migrationRules": _MIGRATION, "domainRules": _DOMAIN, "encodingRules": _DOMAIN}
_RESERVED = "confluent:reserved"
_CONFLICT = "FIELD_CONFLICTS_WITH_RESERVED_FIELD"


def _check_rules(rules: Mapping[str, Any] | None) -> None:
    """Refuse a rule set that is not one."""
    for part, modes in _PARTS.items():
        names: set[str] = set()
        for rule in (rules or {}).get(part) or ():
            if not isinstance(rule, dict):
                raise _invalid_rules(f"'{part}' must be a list of objects")
            name = rule.get("name")
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise _invalid_rules(f"a rule's name begins with a letter and has at most 64 characters, not '{name}'")
            if name in names:
                raise _invalid_rules(f"the rule name '{name}' is there twice")
            names.add(name)
            if not rule.get("type"):
                raise _invalid_rules(f"the rule '{name}' has no type")
            mode = rule.get("mode")
            if mode is not None and mode not in modes:
                raise _invalid_rules(f"the mode '{mode}' of the rule '{name}' is not one of {', '.join(sorted(modes))}")
            for action in ("onSuccess", "onFailure"):
                given = rule.get(action)
                if isinstance(given, str) and "," in given and mode not in ("UPDOWN", "WRITEREAD"):
                    raise _invalid_rules(
                        f"'{action}' of the rule '{name}' has two actions, and its mode is a single one"
                    )


def _invalid_rules(words: str) -> ConfluentError:
    return ConfluentError(42210, f"Invalid rule set: {words}")


def _merged_metadata(*parts: Mapping[str, Any] | None) -> dict[str, Any]:
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


def _merged_rules(*parts: Mapping[str, Any] | None) -> dict[str, Any]:
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


def _reserved_findings(newer: ComparedSchema, older: Sequence[ComparedSchema]) -> list[compatibility.Incompatibility]:
    """What speaks against a schema by the field names that metadata reserve."""
    reserved = _reserved(newer)
    found = []
    if older:
        for name in sorted(_reserved(older[0]) - reserved):
            words = f"reserved field {name} removed: a name that is reserved stays reserved"
            found.append(compatibility.Incompatibility("RESERVED_FIELD_REMOVED", f"/{name}", words, older[0]))
    schema = read_schema(newer.content.type, newer.content.text, newer.texts)
    for name in sorted(reserved & _fields(schema)):
        words = f"the schema has a field that conflicts with the reserved field {name}"
        found.append(
            compatibility.Incompatibility(
                "FIELD_CONFLICTS_WITH_RESERVED_FIELD", f"/{name}", words, (older or [newer])[0]
            )
        )
    return found


def _reserved(one: ComparedSchema) -> set[str]:
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
