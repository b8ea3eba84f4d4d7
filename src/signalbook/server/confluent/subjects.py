"""Subjects and their versions on the registry: what a request registers, looks up, reads and deletes.

Rule 1: a context is a schema group, a subject a schema, a version a version; every write is one of the registry's, in
one transaction, so that events, replication and the other APIs see it.
Rule 2: registering what is there writes nothing, and needs nobody's turn.
Rule 3: a schema is read and compared before the registry's turn to write; only where somebody else wrote meanwhile is
that done again within it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from signalbook.errors import RegistryError
from signalbook.registry import rows, schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import DEFAULT, HIGHEST, SchemaEntry, SubjectVersion, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.registry.write.versions import Ask
from signalbook.schemas.canonical import (
    TYPES,
    Content,
    Reference,
    canonical_text,
    format_of,
    read_schema,
    serialised,
    written_out,
)
from signalbook.schemas.format import SchemaError
from signalbook.server.confluent import compatibility, scopes
from signalbook.server.confluent.compatibility import Candidate
from signalbook.server.confluent.errors import ConfluentError
from signalbook.server.confluent.rules import check_rules, merged_metadata, merged_rules, reserved_findings

__all__ = ["Sent", "Subjects", "read_request", "read_version"]

GROUPS = schema_ids.GROUPS
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_VERSION = re.compile(r"-?[0-9]+")
_LARGEST = 10 * 1024 * 1024
_LONGEST_SUBJECT = 1000


@dataclass(frozen=True, slots=True)
class Sent:
    """A schema as a request has it."""

    text: str = ""
    type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rules: Mapping[str, Any] | None = None
    id: int = 0
    version: int = 0


def read_request(body: Mapping[str, Any]) -> Sent:
    """The schema of a request's body; a member of another kind is refused, an unknown one passed over."""
    references = []
    for one in _typed(body, "references", list, "a list") or ():
        if not isinstance(one, dict):
            raise ConfluentError(400, "'references' must be a list of objects")
        name, subject = (_typed(one, key, str, "a text") or "" for key in ("name", "subject"))
        number = _typed(one, "version", int, "a number")
        if not name or not subject or number is None:
            raise ConfluentError(42201, "Invalid schema: a reference needs 'name', 'subject' and 'version'")
        references.append(Reference(name, subject, number))
    metadata = _cleaned(_typed(body, "metadata", dict, "an object"))
    rules = _cleaned(_typed(body, "ruleSet", dict, "an object"))
    return Sent(
        _typed(body, "schema", str, "a text") or "",
        _typed(body, "schemaType", str, "a text") or "AVRO",
        tuple(references),
        metadata or None,
        rules or None,
        _typed(body, "id", int, "a number") or 0,
        _typed(body, "version", int, "a number") or 0,
    )


def _typed(body: Mapping[str, Any], name: str, kind: type, words: str) -> Any:
    value = body.get(name)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise ConfluentError(400, f"'{name}' must be {words}")
    return value


def _cleaned(value: Any) -> Any:
    """The same without members that are null."""
    if isinstance(value, dict):
        return {name: _cleaned(one) for name, one in value.items() if one is not None}
    return [_cleaned(one) for one in value] if isinstance(value, list) else value


def read_version(text: str) -> int:
    """The number of a version in a path; -1 is the latest."""
    if text.lower() == "latest":
        return -1
    number = int(text) if _VERSION.fullmatch(text) and len(text) <= 11 else 0
    if number != -1 and not 0 < number <= HIGHEST:
        words = f"The specified version '{text}' is not a valid version id. Allowed values are between [1, 2^31-1]"
        raise ConfluentError(42202, f'{words} and the string "latest"')
    return number


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


class Subjects:
    """The subjects of one registry."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    # ---- names

    def resolve(self, db: Connection, name: str, around: str) -> tuple[str, str]:
        """Context and subject that a name in a path means; an alias leads to another subject."""
        context, subject = split_name(name, around)
        if not schema_ids.versions(db, context, subject):
            alias = scopes.load(db, (context, subject))[0].get("alias")
            if alias:
                return split_name(alias, context)
        return context, subject

    def elsewhere(self, db: Connection, name: str, context: str, subject: str) -> tuple[str, str]:
        """The same, in the other contexts where a plain name is not in the default one."""
        if context != DEFAULT or name.startswith(":") or schema_ids.versions(db, context, subject):
            return context, subject
        for other in schema_ids.all_contexts(db)[1:]:
            if schema_ids.versions(db, other, subject):
                return other, subject
        return context, subject

    # ---- reading

    def listed(self, db: Connection, prefix: str, deleted: bool, only: bool) -> list[str]:
        """The names of subjects with a prefix."""
        anywhere = prefix.startswith(":*:")
        context, start = (None, prefix[3:]) if anywhere else split_name(prefix)
        names = []
        for one, subject, hidden in schema_ids.subjects(db, context):
            if subject.startswith(start) and (hidden if only else deleted or not hidden):
                names.append(name_in(one, subject))
        return sorted(names)

    def live(self, db: Connection, context: str, subject: str) -> list[SubjectVersion]:
        """The versions that are not hidden; the subject is not found where there is none."""
        found = [one for one in schema_ids.versions(db, context, subject) if not one.deleted]
        if not found:
            raise _no_subject(context, subject)
        return found

    def version(self, db: Connection, context: str, subject: str, number: int, deleted: bool) -> SubjectVersion:
        """One version of a subject."""
        every = schema_ids.versions(db, context, subject)
        found = [one for one in every if deleted or not one.deleted]
        if not found:
            raise _no_subject(context, subject)
        if number == -1:
            return ([one for one in found if not one.deleted] or found)[-1]
        for one in found:
            if one.number == number:
                return one
        raise ConfluentError(40402, f"Version {number} not found.")

    def entry(self, db: Connection, version: SubjectVersion) -> SchemaEntry:
        """What a version's id stands for."""
        found = schema_ids.by_id(db, version.context, version.id)
        assert found is not None
        return found

    def shown(
        self, db: Connection, version: SubjectVersion, form: str = "", *, qualified: bool = False
    ) -> dict[str, Any]:
        """The answer that shows a version."""
        entry = self.entry(db, version)
        named = {"subject": name_in(version.context, version.subject), "version": version.number, "id": version.id}
        return {**named, **self.content(db, entry, form, version, qualified=qualified)}

    def content(
        self, db: Connection, entry: SchemaEntry, form: str, version: SubjectVersion | None, *, qualified: bool = False
    ) -> dict[str, Any]:
        """The answer that shows what an id stands for."""
        beside = entry.content.beside()
        if qualified and "references" in beside:
            for one in beside["references"]:
                one["subject"] = name_in(*split_name(one["subject"], entry.context))
        row = rows.load(db, version.key) if version is not None else None
        return {
            "guid": entry.guid,
            "schemaType": entry.content.type,
            **beside,
            "schema": self.text(db, entry, form),
            "ts": _milliseconds(row.createdat if row is not None else entry.createdat),
            "deleted": version.deleted if version is not None else False,
        }

    def text(self, db: Connection, entry: SchemaEntry, form: str) -> str:
        """The text of a schema in a form that was asked for."""
        content = entry.content
        if form == "resolved" and content.type == "AVRO" and content.references:
            return written_out(content, schema_ids.texts_of(db, entry.context, content.references))
        if form == "serialized" and content.type == "PROTOBUF":
            return serialised(content.text, schema_ids.texts_of(db, entry.context, content.references))
        return content.text

    # ---- finding a schema in a subject

    def find(
        self, db: Connection, context: str, subject: str, sent: Sent, *, normalise: bool, deleted: bool
    ) -> SubjectVersion | None:
        """The version of a subject that is the schema of a request; the newest where there are several."""
        every = [one for one in schema_ids.versions(db, context, subject) if deleted or not one.deleted]
        content = self.content_sent(db, context, sent, every, normalise=normalise)
        return self._match(db, every, content, sent)

    def _match(
        self, db: Connection, every: Sequence[SubjectVersion], content: Content, sent: Sent
    ) -> SubjectVersion | None:
        ids = set(schema_ids.ids_of_content(db, every[0].context, content)) if every else set()
        for one in reversed(every):
            if one.id in ids:
                return one
        for one in reversed(every):
            if self._is_same(db, self.entry(db, one), content, sent):
                return one
        return None

    def _is_same(self, db: Connection, stored: SchemaEntry, content: Content, sent: Sent) -> bool:
        """Tell whether a stored schema is the one that was sent, in other words."""
        other = stored.content
        if other.type != content.type:
            return False
        if _without_version(other.metadata, content.metadata) != (content.metadata or None):
            if sent.metadata is not None:
                return False
        if sent.rules is not None and (other.rules or None) != (content.rules or None):
            return False
        if other.text == content.text and other.references == content.references:
            return True
        if content.type == "AVRO" and not content.references and other.references:
            texts = schema_ids.texts_of(db, stored.context, other.references)
            return written_out(other, texts) == content.text
        return False

    def content_sent(
        self, db: Connection, context: str, sent: Sent, every: Sequence[SubjectVersion], *, normalise: bool
    ) -> Content:
        """The content of a request: its text in canonical form, references with numbers; refused where it has none."""
        if sent.type not in TYPES.values():
            raise _invalid(f"the schemaType '{sent.type}' is not one of {', '.join(TYPES.values())}")
        if len(sent.text) > _LARGEST:
            raise ConfluentError(42209, f"The schema is larger than {_LARGEST} characters")
        references = tuple(self._reference(db, context, one) for one in sent.references)
        if normalise:
            references = tuple(sorted(set(references), key=lambda one: (one.name, one.subject, one.version)))
        texts = schema_ids.texts_of(db, context, references)
        try:
            text = canonical_text(sent.type, sent.text, texts, normalise=normalise)
        except SchemaError as error:
            raise _invalid(str(error)) from None
        return Content(sent.type, text, references, sent.metadata, sent.rules)

    def _reference(self, db: Connection, context: str, one: Reference) -> Reference:
        where, subject = split_name(one.subject, context)
        found = [each for each in schema_ids.versions(db, where, subject) if not each.deleted]
        if one.version == -1 and found:
            return replace(one, version=found[-1].number)
        if not any(each.number == one.version for each in found):
            raise _invalid(f"the reference '{one.name}' names version {one.version} of '{one.subject}', which is not there")
        return one

    def check_readable(self, db: Connection, context: str, content: Content) -> None:
        """Refuse a schema that cannot be read with what it refers to."""
        try:
            read_schema(content.type, content.text, schema_ids.texts_of(db, context, content.references))
        except SchemaError as error:
            raise _invalid(str(error)) from None

    # ---- registering

    def register(
        self, context: str, subject: str, sent: Sent, *, normalise: bool, force: bool, base: str
    ) -> dict[str, Any]:
        """Register a schema under a subject, or find it there; the answer."""
        check_subject(subject)
        check_rules(sent.rules)
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
            return self._write(db, context, subject, now, base)

        return store.write(job)

    def _registered(self, db: Connection, version: SubjectVersion | None) -> dict[str, Any]:
        assert version is not None
        shown = self.shown(db, version)
        del shown["subject"]
        return shown

    def _state(self, db: Connection, context: str, subject: str) -> tuple[Any, ...]:
        """What a plan rests on: who wrote meanwhile to the subject or its surroundings has changed it."""
        scoped = [scopes.load(db, one) for one in ((context, subject), (context, ""), scopes.GLOBAL)]
        return (schema_ids.versions(db, context, subject), scoped)

    def _plan(
        self, db: Connection, context: str, subject: str, sent: Sent, normalise: bool, force: bool
    ) -> _Plan:
        config, mode = scopes.in_force(db, context, subject)
        every = schema_ids.versions(db, context, subject)
        live = [one for one in every if not one.deleted]
        plan = _Plan(self._state(db, context, subject), config=config, imports=mode == "IMPORT")
        if not sent.text.strip():
            sent = self._without_text(db, live, sent)
        given = sent
        sent = self._completed(db, live, sent, config)
        normalise = normalise or bool(config.get("normalize"))
        content = self.content_sent(db, context, sent, live, normalise=normalise)
        if not (plan.imports and given.id) and given.version != -1:
            plan.found = self._match(db, live, content, given)
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
            raise _invalid(f"version {given.version} is not one more than the previous version")
        if every and any(self.entry(db, one).content.type != content.type for one in every[-1:]):
            words = "all versions of a subject have one schemaType here"
            raise _invalid(f"{words}: this one has {self.entry(db, every[-1]).content.type}; register another subject")
        self.check_readable(db, context, content)
        if not force:
            self._check_level(db, context, subject, content, live[-1:] if given.version == -1 else live, config)
        plan.content = _with_version(content, plan.number, given.version == -1)
        return plan

    def _without_text(self, db: Connection, live: Sequence[SubjectVersion], sent: Sent) -> Sent:
        """A request without a schema means that of the latest version, with other metadata."""
        if not live or (sent.metadata is None and sent.rules is None):
            raise _invalid("the schema is empty")
        latest = self.entry(db, live[-1]).content
        return replace(sent, text=latest.text, type=latest.type, references=latest.references)

    def _completed(
        self, db: Connection, live: Sequence[SubjectVersion], sent: Sent, config: Mapping[str, Any]
    ) -> Sent:
        """A request with the metadata and rules that it takes over, or that the configuration adds."""
        metadata, rules = sent.metadata, sent.rules
        if live and (metadata is None or rules is None):
            latest = self.entry(db, live[-1]).content
            metadata = metadata if metadata is not None else latest.metadata
            rules = rules if rules is not None else latest.rules
        metadata = merged_metadata(config.get("defaultMetadata"), metadata, config.get("overrideMetadata"))
        rules = merged_rules(config.get("defaultRuleSet"), rules, config.get("overrideRuleSet"))
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
        if every and self.entry(db, every[-1]).content.type != content.type:
            raise _invalid("all versions of a subject have one schemaType here")
        if not sent.version:
            plan.found = next((one for one in every if one.id == sent.id and not one.deleted), None)
        plan.number, plan.id, plan.content = number, sent.id, content

    def _next(self, db: Connection, context: str, subject: str, every: Sequence[SubjectVersion]) -> int:
        xid = schema_ids.subject_of(db, context, subject)
        known = schema_ids.subject_at(db, xid) if xid is not None else None
        return max([known[2] if known is not None else 0, *(one.number for one in every)]) + 1

    def candidates(
        self, db: Connection, versions: Sequence[SubjectVersion], content: Content, config: Mapping[str, Any]
    ) -> list[Candidate]:
        """The schemas that one is compared with, the newest first; of its compatibility group, where there is one."""
        found = []
        group = config.get("compatibilityGroup")
        for one in reversed(versions):
            entry = self.entry(db, one)
            if group and _property(entry.content, group) != _property(content, group):
                continue
            texts = schema_ids.texts_of(db, entry.context, entry.content.references)
            found.append(Candidate(entry.content, texts, one.number))
        return found

    def findings(
        self, db: Connection, context: str, content: Content, live: Sequence[SubjectVersion],
        config: Mapping[str, Any],
    ) -> list[compatibility.Finding]:  # fmt: skip
        """What speaks against a schema after these versions, by the configuration."""
        older = self.candidates(db, live, content, config)
        newer = Candidate(content, schema_ids.texts_of(db, context, content.references))
        found = compatibility.compare_all(config[scopes.LEVEL], newer, older)
        if config.get("validateFields"):
            found += reserved_findings(newer, older)
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

    # ---- writing

    def _write(self, db: Connection, context: str, subject: str, plan: _Plan, base: str) -> dict[str, Any]:
        content = plan.content
        assert content is not None
        xid = schema_ids.subject_of(db, context, subject) or self._new_schema(db, context, subject, base)
        every = schema_ids.versions(db, context, subject)
        before = [one for one in every if one.number < plan.number]
        ancestor = ([one for one in before if not one.deleted] or before)[-1:]
        body: dict[str, Any] = {
            "format": format_of(content.type, content.text),
            "schemabase64": base64.b64encode(content.text.encode("utf-8", "surrogatepass")).decode(),
            "contenttype": "text/plain" if content.type == "PROTOBUF" else "application/json",
            self._requests.spec.ancestor: _versionid(ancestor[0]) if ancestor else str(plan.number),
        }
        if xid.rpartition("/")[2] != subject:
            body["confluentsubject"] = subject
        if content.references:
            body["confluentreferences"] = [self._stored(db, context, one) for one in content.references]
        if content.metadata:
            body["confluentmetadata"] = content.metadata
        if content.rules:
            body["confluentruleset"] = content.rules
        if plan.id:
            body["confluentid"] = plan.id
        path = f"{xid}/versions/{self._free_versionid(db, xid, plan.number)}"
        if not path.endswith(f"/{plan.number}"):
            body["confluentversion"] = plan.number
        self.put(db, "PUT", path, body, base)
        after = next((one for one in every if one.number > plan.number), None)
        if after is not None:
            changed = {self._requests.spec.ancestor: path.rpartition("/")[2]}
            self.put(db, "PATCH", f"{xid}/versions/{_versionid(after)}", changed, base)
        if not every:
            self.set_level(db, context, subject, scopes.load(db, (context, subject))[0].get(scopes.LEVEL), base)
        found = schema_ids.version_of(db, rows.VERSION + path.lower())
        if found is None or found.number != plan.number:
            raise ConfluentError(50001, f"the schema was not entered at {path}")
        return self._registered(db, found)

    def _free_versionid(self, db: Connection, xid: str, number: int) -> str:
        """The id of a new version: its number, unless a version of another number has that."""
        if rows.load(db, rows.version_key(xid, str(number))) is None:
            return str(number)
        return f"{number}-{schema_ids.DEFAULT_GROUP}"

    def _stored(self, db: Connection, context: str, one: Reference) -> dict[str, Any]:
        where, subject = split_name(one.subject, context)
        found = next((each for each in schema_ids.versions(db, where, subject) if each.number == one.version), None)
        row = rows.load(db, found.key) if found is not None else None
        return {**one.shown(), **({"xid": row.xid} if row is not None else {})}

    def _new_schema(self, db: Connection, context: str, subject: str, base: str) -> str:
        """The xid of the schema that a new subject will be; its group is made where it is not there."""
        group = schema_ids.group_of(db, context)
        if group is None:
            chosen = schema_ids.contexts_of(db)

            def is_group(id_: str) -> bool:
                return rows.load(db, rows.group_key(f"/{GROUPS}/{id_}")) is not None

            if context == DEFAULT:
                group = f"/{GROUPS}/{chosen.group}"
                self.put(db, "PUT", group, {}, base)
            else:
                group = f"/{GROUPS}/{schema_ids.free_id(context, is_group)}"
                self.put(db, "PUT", group, {"confluentcontext": context}, base)

        def is_schema(id_: str) -> bool:
            return rows.load(db, rows.resource_key(f"{group}/{schema_ids.SCHEMAS}/{id_}")) is not None

        return f"{group}/{schema_ids.SCHEMAS}/{schema_ids.free_id(subject, is_schema)}"

    def put(self, db: Connection, method: str, path: str, body: Any, base: str) -> None:
        """One write of the registry, which leaves the judgement of schemas to this API."""
        requests = self._requests
        begun = requests.begin_write(db, method, path, "", base, requests.correlation(), judged=True)
        try:
            requests.finish_write(begun, body, Ask(method == "PATCH", None, begun.context.target.kind == "meta"))
        except RegistryError as error:
            if error.name == "mismatched_version_attribute":
                words = "all versions of a subject have one format in this registry, and this one is in another"
                raise _invalid(f"{words}: register it under another subject") from None
            raise

    def set_level(self, db: Connection, context: str, subject: str, level: str | None, base: str) -> None:
        """Let the schema state the level of its subject, where that is there."""
        xid = schema_ids.subject_of(db, context, subject)
        if xid is None:
            return
        row = rows.load(db, rows.resource_key(xid))
        wanted = level.lower() if level and level != "NONE" else None
        stated = _json(row.doc).get("compatibility") if row is not None else None
        if row is not None and stated != wanted:
            self.put(db, "PATCH", f"{xid}/meta", {"compatibility": wanted}, base)

    # ---- deleting

    def delete(self, db: Connection, context: str, subject: str, permanent: bool, base: str) -> list[int]:
        """Hide all versions of a subject, or take it away for good; the numbers of the versions."""
        every = schema_ids.versions(db, context, subject)
        if not every:
            raise _no_subject(context, subject)
        live = [one for one in every if not one.deleted]
        self._check_mode(db, context, subject)
        name = name_in(context, subject)
        if not permanent:
            if not live:
                words = f"Subject '{name}' was soft deleted. Set permanent=true to delete permanently"
                raise ConfluentError(40404, words)
            self._check_references(db, live, own=(context, subject), every=False)
            for one in live:
                self._hide(db, one, base)
            return [one.number for one in live]
        if live:
            raise ConfluentError(40405, f"Subject '{name}' was not deleted first before being permanently deleted")
        self._check_references(db, every, own=(context, subject), every=True)
        self._check_messages(db, every)
        xid = schema_ids.subject_of(db, context, subject)
        self.put(db, "DELETE", xid or "", None, base)
        scopes.delete_scope(db, (context, subject))
        return [one.number for one in every]

    def delete_version(
        self, db: Connection, context: str, subject: str, number: int, permanent: bool, base: str
    ) -> int:
        """Hide a version, or take it away for good; its number."""
        every = schema_ids.versions(db, context, subject)
        if not every or (number == -1 and all(one.deleted for one in every)):
            raise _no_subject(context, subject)
        live = [one for one in every if not one.deleted]
        found = live[-1] if number == -1 else next((one for one in every if one.number == number), None)
        if found is None:
            raise ConfluentError(40402, f"Version {number} not found.")
        self._check_mode(db, context, subject)
        name = f"Subject '{name_in(context, subject)}' Version {found.number}"
        if not permanent:
            if found.deleted:
                raise ConfluentError(40406, f"{name} was soft deleted. Set permanent=true to delete permanently")
            self._check_references(db, [found], own=None, every=False)
            self._hide(db, found, base)
            return found.number
        if not found.deleted:
            raise ConfluentError(40407, f"{name} was not deleted first before being permanently deleted")
        self._check_references(db, [found], own=None, every=True)
        self._check_messages(db, [found])
        row = rows.load(db, found.key)
        assert row is not None
        if len(every) == 1:
            self.put(db, "DELETE", "/".join(row.xid.split("/")[:5]), None, base)
            scopes.delete_scope(db, (context, subject))
        else:
            self.put(db, "DELETE", row.xid, None, base)
        return found.number

    def _hide(self, db: Connection, version: SubjectVersion, base: str) -> None:
        row = rows.load(db, version.key)
        assert row is not None
        self.put(db, "PATCH", row.xid, {"confluentdeleted": True}, base)

    def _check_mode(self, db: Connection, context: str, subject: str) -> None:
        mode = scopes.find_mode(db, (context, subject))
        if mode not in ("READWRITE", "IMPORT"):
            raise ConfluentError(42205, f"Subject {name_in(context, subject)} is in {mode.lower()} mode")

    def _check_references(
        self, db: Connection, found: Sequence[SubjectVersion], own: tuple[str, str] | None, every: bool
    ) -> None:
        for one in found:
            for other in schema_ids.referrers(db, one.context, one.subject, one.number):
                if (every or not other.deleted) and (other.context, other.subject) != own:
                    named = f"{{magic=1,keytype=SCHEMA,subject={one.subject},version={one.number}}}"
                    by = f"version {other.number} of {name_in(other.context, other.subject)}"
                    raise ConfluentError(42206, f"One or more references exist to the schema {named}: {by}")

    def _check_messages(self, db: Connection, found: Sequence[SubjectVersion]) -> None:
        """Refuse to take away what messages of the catalog refer to."""
        keys = [one.key for one in found]
        users = self.users_of(db, keys)
        if users:
            named = ", ".join(users[:5])
            raise ConfluentError(42206, f"One or more references exist to the schema: messages refer to it: {named}")

    def users_of(self, db: Connection, keys: Sequence[str]) -> list[str]:
        """The xids of the messages that refer to one of these versions, or to their schema."""
        wanted: dict[str, None] = {}
        for key in keys:
            wanted[key[1:]] = None
            wanted["/".join(key[1:].split("/")[:5])] = None
        found: list[str] = []
        for (xid, doc) in db.execute(
            "SELECT xid, doc FROM entities WHERE type IN ('messagegroups/messages/versions',"
            " 'endpoints/messages/versions') AND doc LIKE '%dataschema%' ORDER BY key"
        ):
            attrs = _json(doc)
            for name in ("dataschemaxid", "dataschemauri"):
                stated = str(attrs.get(name) or "").partition("#")[0].lower()
                if any(stated == one or stated.endswith(one) for one in wanted if stated):
                    found.append(xid.rpartition("/versions/")[0])
                    break
        return list(dict.fromkeys(found))


def check_subject(subject: str) -> None:
    """Refuse a name that no subject may have."""
    if not subject or subject in ("__GLOBAL", "__EMPTY") or _CONTROL.search(subject):
        raise ConfluentError(42208, f"The specified subject '{subject!r}' is not a valid subject name")
    if len(subject) > _LONGEST_SUBJECT:
        raise ConfluentError(42208, f"A subject has at most {_LONGEST_SUBJECT} characters")


def _no_subject(context: str, subject: str) -> ConfluentError:
    return ConfluentError(40401, f"Subject '{name_in(context, subject)}' not found.")


def _invalid(words: str) -> ConfluentError:
    return ConfluentError(42201, f"Invalid schema: {words}")


def _versionid(version: SubjectVersion) -> str:
    return version.key.rpartition("/")[2]


def _json(text: str) -> dict[str, Any]:
    import orjson

    value: dict[str, Any] = orjson.loads(text)
    return value


def _milliseconds(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def _property(content: Content, name: str) -> Any:
    return ((content.metadata or {}).get("properties") or {}).get(name)


def _without_version(metadata: Mapping[str, Any] | None, sent: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Metadata without the version in it, which a request may leave out."""
    if not metadata or "confluent:version" in ((sent or {}).get("properties") or {}):
        return metadata
    properties = {k: v for k, v in (metadata.get("properties") or {}).items() if k != "confluent:version"}
    left = {**metadata, "properties": properties}
    return {name: value for name, value in left.items() if value} or None


def _with_version(content: Content, number: int, anew: bool) -> Content:
    """A content whose metadata says its version, where it did, or where an older schema comes back."""
    properties = (content.metadata or {}).get("properties") or {}
    if not anew and "confluent:version" not in properties:
        return content
    metadata = {**(content.metadata or {}), "properties": {**properties, "confluent:version": str(number)}}
    return replace(content, metadata=metadata)
