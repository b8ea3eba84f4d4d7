"""Writes of Confluent's API on the registry: a schema is registered, or a version deleted.

Rule 1: every write is one of the registry's, all of one request in one transaction and under one name, so that events,
replication and the other APIs see it. Schemas are judged here; what the registry itself would say of them it notes.
Rule 2: registering what is there writes nothing, and needs nobody's turn. A schema is read and compared before the turn
to write; only where somebody else wrote to the subject meanwhile is that done again within it.
Rule 3: the order of the checks: what can be read of the request, what is there already, the mode, the schema itself,
its compatibility.
Rule 4: verdicts are those of Confluent's registry: the comparison is the product's own (`schemas`), and where Confluent
decides otherwise it is followed. What cannot be decided within bounds is not compatible.
Rule 5: to delete is to hide, here alone: messages may refer to the version. To delete for good is to delete on the
registry, and is refused while other schemas or messages refer to it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import orjson

from signalbook import schemas
from signalbook.errors import RegistryError
from signalbook.jsontext import decode_json, encode_json
from signalbook.registry import rows, schema_ids
from signalbook.registry.requests import Requests
from signalbook.registry.schema_ids import DEFAULT, HIGHEST, SubjectVersion, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.registry.write.versions import Ask
from signalbook.schemas.canonical import Content, Reference, format_of, read_schema
from signalbook.schemas.format import Difference, Direction, SchemaError, StepBudget
from signalbook.server.confluent import subjects
from signalbook.server.confluent.subjects import (
    ConfluentError,
    Sent,
    SubjectView,
    check_rules,
    check_subject,
    invalid,
    merged_metadata,
    merged_rules,
    no_subject,
)

__all__ = [
    "ComparedSchema", "Incompatibility", "Registration", "SubjectWriter", "breaks", "compare_all", "messages",
]  # fmt: skip


# ---- verdicts

_MOST = 20
_STEPS = 200_000
_DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "NONE": (), "BACKWARD": ("backward",), "FORWARD": ("forward",), "FULL": ("backward", "forward"),
}  # fmt: skip
# The names of Avro's own findings, and of some of JSON Schema's; any other is its own name in capitals.
_NAMES = {
    "field_added": "READER_FIELD_MISSING_DEFAULT_VALUE",
    "field_removed": "READER_FIELD_MISSING_DEFAULT_VALUE",
    "symbol_removed": "MISSING_ENUM_SYMBOLS",
    "symbol_added": "MISSING_ENUM_SYMBOLS",
    "member_removed": "MISSING_UNION_BRANCH",
    "member_added": "MISSING_UNION_BRANCH",
    "name_changed": "NAME_MISMATCH",
    "size_changed": "FIXED_SIZE_MISMATCH",
    "type_changed": "TYPE_MISMATCH",
    "format_changed": "TYPE_MISMATCH",
    "required_added": "REQUIRED_ATTRIBUTE_ADDED",
    "type_narrowed": "TYPE_NARROWED",
    "enum_narrowed": "ENUM_ARRAY_NARROWED",
    "enum_changed": "ENUM_ARRAY_CHANGED",
    "union_narrowed": "SUM_TYPE_NARROWED",
}


# What the policy LENIENT lets pass of JSON Schema: optional properties that come, and additional ones that go.
_LENIENT = frozenset({
    "PROPERTY_ADDED_TO_OPEN_MODEL", "PROPERTY_REMOVED_FROM_OPEN_MODEL", "ADDITIONAL_PROPERTIES_REMOVED",
    "ADDITIONAL_PROPERTIES_ADDED",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedSchema:
    """A schema to compare with: its content, the texts that it refers to, and the number of its version."""

    content: Content
    texts: Mapping[str, str]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """What breaks a level, and against which version."""

    name: str
    path: str
    message: str
    older: ComparedSchema


def compare_all(level: str, newer: ComparedSchema, older: Sequence[ComparedSchema]) -> list[Incompatibility]:
    """What breaks a level between a schema and those before it, which are given with the newest first."""
    name, _, transitive = level.partition("_")
    wanted = older if transitive else older[:1]
    found: list[Incompatibility] = []
    budget = StepBudget(_STEPS)
    for one in wanted:
        found.extend(breaks(_DIRECTIONS[name], one, newer, budget))
        if found:
            break
    return found


def breaks(
    directions: Iterable[Direction], older: ComparedSchema, newer: ComparedSchema, budget: StepBudget
) -> list[Incompatibility]:
    """What breaks a promise between two schemas."""
    wanted = frozenset(directions)
    if not wanted or older.content == newer.content:
        return []
    if older.content.type != newer.content.type:
        words = f"the type changes from {older.content.type} to {newer.content.type}"
        return [Incompatibility("TYPE_MISMATCH", "/", words, older)]
    kind = newer.content.type
    try:
        one, two = (_read(each) for each in (older, newer))
    except SchemaError as error:
        return [Incompatibility("UNREADABLE_SCHEMA", "/", str(error), older)]
    if kind == "PROTOBUF":
        from signalbook.schemas.protobuf.compare import confluent_breaks  # with the compiler, where there is one

        given = islice(confluent_breaks(one, two, wanted), _MOST)
        return [Incompatibility(name, path, words, older) for name, path, words in given]
    return [
        Incompatibility(_NAMES.get(one.kind, one.kind.upper()), one.path or "/", one.message, older)
        for one in islice(_broken(kind, one, two, wanted, budget), _MOST)
    ]


def _broken(
    kind: str, older: Any, newer: Any, wanted: frozenset[Direction], budget: StepBudget
) -> Iterator[Difference]:
    for one in schemas.compatible([older, newer], "full", budget=budget):
        broken = one.breaks & wanted
        if kind == "AVRO" and one.kind == "logical_type_changed":
            continue
        if kind == "JSON" and one.kind in _REQUIRED:
            reader = newer if broken == {"backward"} else older
            if len(broken) == 1 and _has_default(reader.index.root.schema, one.path):
                continue
        if broken:
            yield one


_REQUIRED = ("required_added", "required_removed")
# What stands in a schema without being one.
_DATA = frozenset({"enum", "const", "default", "examples", "required"})


def _read(one: ComparedSchema) -> Any:
    """A schema as it is compared: for JSON, whether one alternative or several hold makes no difference."""
    content = one.content
    if content.type != "JSON" or '"oneOf"' not in f"{content.text}{''.join(one.texts.values())}":
        return read_schema(content.type, content.text, one.texts)
    texts = {name: _with_any_of(text) for name, text in one.texts.items()}
    return read_schema(content.type, _with_any_of(content.text), texts)


def _with_any_of(text: str) -> str:
    return encode_json(_any_of(decode_json(text.encode())))


def _any_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_any_of(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: one if name in _DATA else _any_of(one) for name, one in value.items()}
    if isinstance(made.get("oneOf"), list):
        branches = made.pop("oneOf")
        if "anyOf" not in made:
            made["anyOf"] = branches
        else:
            more = made.get("allOf") if isinstance(made.get("allOf"), list) else []
            made["allOf"] = [*(more or []), {"anyOf": branches}]
    return made


def _has_default(root: Any, path: str) -> bool:
    """Tell whether the property at a path of a JSON Schema has a default; local references are followed."""
    at = root
    for step in path.split("/")[1:]:
        at = _followed(root, at)
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list):
            at = at[int(name)] if name.isdigit() and int(name) < len(at) else None
        else:
            at = at.get(name) if isinstance(at, dict) else None
    at = _followed(root, at)
    return isinstance(at, dict) and "default" in at


def _followed(root: Any, at: Any) -> Any:
    for _ in range(20):
        link = at.get("$ref") if isinstance(at, dict) else None
        if not isinstance(link, str) or not link.startswith("#/") or "default" in at:
            return at
        at = root
        for step in link[2:].split("/"):
            at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at


def messages(found: Sequence[Incompatibility], level: str, policy: str = "") -> list[str]:
    """The findings as tools show them, with the version that they are about and the level."""
    if not found:
        return []
    lines = [
        f"{{errorType:'{one.name}', description:'{one.message}, at path {one.path}', additionalInfo:''}}"
        for one in found
    ]
    older = found[0].older
    lines += [f"{{oldSchemaVersion: {older.number}}}", f"{{oldSchema: '{older.content.text}'}}"]
    return [*lines, f"{{validateFields: 'false', compatibility: '{level}'}}"]


_RESERVED = "confluent:reserved"
_CONFLICT = "FIELD_CONFLICTS_WITH_RESERVED_FIELD"


def _reserved_findings(newer: ComparedSchema, older: Sequence[ComparedSchema]) -> list[Incompatibility]:
    """What speaks against a schema by the field names that metadata reserve."""
    reserved = _reserved(newer)
    found = []
    if older:
        for name in sorted(_reserved(older[0]) - reserved):
            words = f"reserved field {name} removed: a name that is reserved stays reserved"
            found.append(Incompatibility("RESERVED_FIELD_REMOVED", f"/{name}", words, older[0]))
    schema = read_schema(newer.content.type, newer.content.text, newer.texts)
    for name in sorted(reserved & _fields(schema)):
        words = f"the schema has a field that conflicts with the reserved field {name}"
        found.append(Incompatibility("FIELD_CONFLICTS_WITH_RESERVED_FIELD", f"/{name}", words, (older or [newer])[0]))
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


# ---- writing


class SubjectWriter:
    """The writes of one request."""

    def __init__(self, requests: Requests, db: Connection, base: str) -> None:
        self._requests = requests
        self._db = db
        self._base = base
        self._correlation = requests.correlation()

    def add(self, context: str, subject: str, content: Content, number: int, id_: int = 0) -> SubjectVersion:
        """Add a version to a subject, with an id of its own where one is given."""
        db = self._db
        xid = schema_ids.subject_of(db, context, subject) or self._new_schema(context, subject)
        every = schema_ids.versions(db, context, subject)
        before = [one for one in every if one.number < number]
        ancestor = ([one for one in before if not one.deleted] or before)[-1:]
        body: dict[str, Any] = {
            "format": format_of(content.type, content.text),
            "schemabase64": base64.b64encode(content.text.encode("utf-8", "surrogatepass")).decode(),
            "contenttype": "text/plain" if content.type == "PROTOBUF" else "application/json",
            self._requests.spec.ancestor: _versionid(ancestor[0]) if ancestor else str(number),
        }
        if xid.rpartition("/")[2] != subject:
            body["confluentsubject"] = subject
        if content.references:
            body["confluentreferences"] = [self._stored(context, one) for one in content.references]
        if content.metadata:
            body["confluentmetadata"] = content.metadata
        if content.rules:
            body["confluentruleset"] = content.rules
        if id_:
            body["confluentid"] = id_
        path = f"{xid}/versions/{self._free_versionid(xid, number)}"
        if id_ or not path.endswith(f"/{number}"):
            body["confluentversion"] = number
        self.put("PUT", path, body)
        after = next((one for one in every if one.number > number), None)
        if after is not None:
            changed = {self._requests.spec.ancestor: path.rpartition("/")[2]}
            self.put("PATCH", f"{xid}/versions/{_versionid(after)}", changed)
        if not every:
            self.set_level(context, subject, subjects.load_scope(db, (context, subject))[0].get(subjects.LEVEL))
        found = schema_ids.version_of(db, rows.VERSION + path.lower())
        if found is None or found.number != number:
            raise ConfluentError(50001, f"the schema was not entered at {path}")
        return found

    def _free_versionid(self, xid: str, number: int) -> str:
        """The id of a new version: its number, unless a version of another number has that."""
        if rows.load(self._db, rows.version_key(xid, str(number))) is None:
            return str(number)
        return f"{number}-{schema_ids.DEFAULT_GROUP}"

    def _stored(self, context: str, one: Reference) -> dict[str, Any]:
        db = self._db
        where, subject = split_name(one.subject, context)
        found = next((each for each in schema_ids.versions(db, where, subject) if each.number == one.version), None)
        row = rows.load(db, found.key) if found is not None else None
        return {**one.shown(), **({"xid": row.xid} if row is not None else {})}

    def _new_schema(self, context: str, subject: str) -> str:
        """The xid of the schema that a new subject will be; its group is made where it is not there."""
        db = self._db
        group = schema_ids.group_of(db, context)
        if group is None:
            chosen = schema_ids.contexts_of(db)

            def is_group(id_: str) -> bool:
                return rows.load(db, rows.group_key(f"/{schema_ids.GROUPS}/{id_}")) is not None

            if context == DEFAULT:
                group = f"/{schema_ids.GROUPS}/{chosen.group}"
                self.put("PUT", group, {})
            else:
                group = f"/{schema_ids.GROUPS}/{schema_ids.free_id(context, is_group)}"
                self.put("PUT", group, {"confluentcontext": context})

        def is_schema(id_: str) -> bool:
            return rows.load(db, rows.resource_key(f"{group}/{schema_ids.SCHEMAS}/{id_}")) is not None

        return f"{group}/{schema_ids.SCHEMAS}/{schema_ids.free_id(subject, is_schema)}"

    def put(self, method: str, path: str, body: Any) -> None:
        """One write of the registry, which leaves the judgement of schemas to this API."""
        requests = self._requests
        begun = requests.begin_write(self._db, method, path, "", self._base, self._correlation, judged=True)
        try:
            requests.finish_write(begun, body, Ask(method == "PATCH", None, begun.context.target.kind == "meta"))
        except RegistryError as error:
            if error.name == "mismatched_version_attribute":
                words = "all versions of a subject have one format in this registry, and this one is in another"
                raise invalid(f"{words}: register it under another subject") from None
            raise

    def set_level(self, context: str, subject: str, level: str | None) -> None:
        """Let the schema state the level of its subject, where that is there."""
        db = self._db
        xid = schema_ids.subject_of(db, context, subject)
        if xid is None:
            return
        row = rows.load(db, rows.resource_key(xid))
        wanted = level.lower() if level and level != "NONE" else None
        stated = orjson.loads(row.doc).get("compatibility") if row is not None else None
        if row is not None and stated != wanted:
            self.put("PATCH", f"{xid}/meta", {"compatibility": wanted})

    # ---- deleting

    def delete(self, context: str, subject: str, permanent: bool) -> list[int]:
        """Hide all versions of a subject, or take it away for good; the numbers of the versions."""
        db = self._db
        every = schema_ids.versions(db, context, subject)
        if not every:
            raise no_subject(context, subject)
        live = [one for one in every if not one.deleted]
        self._check_mode(context, subject)
        name = name_in(context, subject)
        if not permanent:
            if not live:
                words = f"Subject '{name}' was soft deleted. Set permanent=true to delete permanently"
                raise ConfluentError(40404, words)
            self._check_references(live, own=(context, subject), every=False)
            for one in live:
                self._hide(one)
            return [one.number for one in live]
        if live:
            raise ConfluentError(40405, f"Subject '{name}' was not deleted first before being permanently deleted")
        self._check_references(every, own=(context, subject), every=True)
        self._check_messages(every)
        xid = schema_ids.subject_of(db, context, subject)
        self.put("DELETE", xid or "", None)
        subjects.delete_scope(db, (context, subject))
        return [one.number for one in every]

    def delete_version(self, context: str, subject: str, number: int, permanent: bool) -> int:
        """Hide a version, or take it away for good; its number."""
        db = self._db
        every = schema_ids.versions(db, context, subject)
        if not every or (number == -1 and all(one.deleted for one in every)):
            raise no_subject(context, subject)
        live = [one for one in every if not one.deleted]
        found = live[-1] if number == -1 else next((one for one in every if one.number == number), None)
        if found is None:
            raise ConfluentError(40402, f"Version {number} not found.")
        self._check_mode(context, subject)
        name = f"Subject '{name_in(context, subject)}' Version {found.number}"
        if not permanent:
            if found.deleted:
                raise ConfluentError(40406, f"{name} was soft deleted. Set permanent=true to delete permanently")
            self._check_references([found], own=None, every=False)
            self._hide(found)
            return found.number
        if not found.deleted:
            raise ConfluentError(40407, f"{name} was not deleted first before being permanently deleted")
        self._check_references([found], own=None, every=True)
        self._check_messages([found])
        row = rows.load(db, found.key)
        assert row is not None
        if len(every) == 1:
            self.put("DELETE", "/".join(row.xid.split("/")[:5]), None)
            subjects.delete_scope(db, (context, subject))
        else:
            self.put("DELETE", row.xid, None)
        return found.number

    def _hide(self, version: SubjectVersion) -> None:
        row = rows.load(self._db, version.key)
        assert row is not None
        self.put("PATCH", row.xid, {"confluentdeleted": True})

    def _check_mode(self, context: str, subject: str) -> None:
        mode = subjects.find_mode(self._db, (context, subject))
        if mode not in ("READWRITE", "IMPORT"):
            raise ConfluentError(42205, f"Subject {name_in(context, subject)} is in {mode.lower()} mode")

    def _check_references(self, found: Sequence[SubjectVersion], own: tuple[str, str] | None, every: bool) -> None:
        for one in found:
            for other in schema_ids.referrers(self._db, one.context, one.subject, one.number):
                if (every or not other.deleted) and (other.context, other.subject) != own:
                    named = f"{{magic=1,keytype=SCHEMA,subject={one.subject},version={one.number}}}"
                    by = f"version {other.number} of {name_in(other.context, other.subject)}"
                    raise ConfluentError(42206, f"One or more references exist to the schema {named}: {by}")

    def _check_messages(self, found: Sequence[SubjectVersion]) -> None:
        """Refuse to take away what messages of the catalog refer to."""
        keys = [one.key for one in found]
        users = _users_of(self._db, keys)
        if users:
            named = ", ".join(users[:5])
            raise ConfluentError(42206, f"One or more references exist to the schema: messages refer to it: {named}")


def _users_of(db: Connection, keys: Sequence[str]) -> list[str]:
    """The xids of the messages that refer to one of these versions of a schema, or to the schema."""
    schema = "/".join(keys[0][1:].split("/")[:5])
    wanted = (schema, *(key[1:] for key in keys))
    found: dict[str, None] = {}
    for plural in ("messagegroups", "endpoints"):
        low, high = rows.range_of(rows.VERSION, f"/{plural}")
        sql = "SELECT xid, doc FROM entities WHERE key > ? AND key < ? AND lower(doc) LIKE ? ORDER BY key"
        for xid, doc in db.execute(sql, (low, high, f"%{schema}%")):
            attrs = orjson.loads(doc)
            for name in ("dataschemaxid", "dataschemauri"):
                stated = str(attrs.get(name) or "").partition("#")[0].lower()
                if stated.endswith(wanted):
                    found[xid.rpartition("/versions/")[0]] = None
    return list(found)


def _versionid(version: SubjectVersion) -> str:
    return version.key.rpartition("/")[2]


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
        scoped = [subjects.load_scope(db, one) for one in ((context, subject), (context, ""), subjects.GLOBAL)]
        return (schema_ids.versions(db, context, subject), scoped)

    def _plan(self, db: Connection, context: str, subject: str, sent: Sent, normalise: bool, force: bool) -> _Plan:
        config, mode = subjects.in_force(db, context, subject)
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
    ) -> list[Incompatibility]:  # fmt: skip
        """What speaks against a schema after these versions, by the configuration."""
        older = self.candidates(db, live, content, config)
        newer = ComparedSchema(content, schema_ids.texts_of(db, context, content.references))
        found = compare_all(config[subjects.LEVEL], newer, older)
        if str(config.get("compatibilityPolicy")).upper() == "LENIENT":
            found = [one for one in found if content.type != "JSON" or one.name not in _LENIENT]
        if config.get("validateFields"):
            found += _reserved_findings(newer, older)
        return found

    def _check_level(
        self, db: Connection, context: str, subject: str, content: Content, live: Sequence[SubjectVersion],
        config: Mapping[str, Any],
    ) -> None:  # fmt: skip
        found = self.findings(db, context, content, live, config)
        if found:
            details = ", ".join(messages(found, config[subjects.LEVEL]))
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
