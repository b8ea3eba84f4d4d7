"""Schema versions by number: the ids of payloads, and the subjects, versions and references of Confluent's registry.

Rule 1: an id stands for one content in its context, for ever. Rows of `schema_ids` are added and never change: whoever
reads a payload years later finds the writer's schema, whatever became of the version.
Rule 2: a context is a schema group: the default one, one that says so (`confluentcontext`), or all. Every version in it
of Avro, JSON Schema or Protobuf that can be read has its row with the write that brings it, from whichever API.
Rule 3: version numbers are not given again while the schema is there.
Rule 4: what a version says for Confluent's registry are attributes of it, so that they travel with it: an id that it
brings is kept where it is free, or stands for that content already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import orjson

from signalbook.errors import RegistryError
from signalbook.model.model import GroupType
from signalbook.model.xids import ID
from signalbook.registry import rows
from signalbook.registry.store import Connection
from signalbook.registry.work import KEEP, GroupState, ResourceState, VersionState, Work
from signalbook.schemas.canonical import Content, NamedReferences, Reference, canonical_text, content_of, type_of
from signalbook.schemas.format import SchemaError

__all__ = [
    "DEFAULT", "DEFAULT_GROUP", "HIGHEST", "Contexts", "SchemaEntry", "SubjectVersion", "all_contexts", "are_entered",
    "assign", "by_guid", "by_id", "context_of", "contexts_of", "free_id", "group_of", "highest_id", "holders", "id_of",
    "ids_of_content", "name_in", "own_attributes", "referrers", "save_contexts", "split_name", "stated_references",
    "subject_at", "subject_of", "subjects", "texts_of", "version_of", "versions",
]  # fmt: skip

DEFAULT = "."
DEFAULT_GROUP = "confluent"
HIGHEST = 2**31 - 1
GROUPS, SCHEMAS = "schemagroups", "schemas"
_MOST_TEXTS = 1000
_SMALL = 64 * 1024  # documents up to this size are kept with their canonical text


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """What an id stands for in a context."""

    context: str
    id: int
    guid: str
    content: Content
    createdat: str


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject: its number, the key of the entity, its id, and whether it is hidden."""

    context: str
    subject: str
    number: int
    key: str
    id: int
    deleted: bool


# ---- looking up

_ENTRY = "SELECT context, id, guid, type, document, beside, createdat FROM schema_ids"
_VERSION = "SELECT context, subject, number, key, id, deleted FROM schema_versions"


def by_id(db: Connection, context: str, number: int) -> SchemaEntry | None:
    """What an id stands for, also where no version has it any more."""
    found = db.one(f"{_ENTRY} WHERE context = ? AND id = ?", (context, number))
    return _entry(found) if found is not None else None


def by_guid(db: Connection, guid: str) -> list[SchemaEntry]:
    """The ids of a content, in all contexts, the oldest first."""
    return [_entry(found) for found in db.execute(f"{_ENTRY} WHERE guid = ? ORDER BY createdat, context, id", (guid,))]


def ids_of_content(db: Connection, context: str, content: Content) -> list[int]:
    """The ids that a content has in a context, the lowest first.

    The guid only proposes: it is made of texts without a mark between them, so different ones can have the same.
    """
    found = db.execute(f"{_ENTRY} WHERE guid = ? AND context = ? ORDER BY id", (content.guid, context))
    return [one.id for one in map(_entry, found) if one.content == content]


def id_of(db: Connection, xid: str) -> int | None:
    """The id of the version with this xid; None where it has none."""
    found = db.one("SELECT id FROM schema_versions WHERE key = ?", (rows.VERSION + xid.lower(),))
    return found[0] if found is not None else None


def highest_id(db: Connection, context: str) -> int:
    """The highest id that a context has given; 0 before the first."""
    found = db.one("SELECT MAX(id) FROM schema_ids WHERE context = ?", (context,))
    return (found and found[0]) or 0


def versions(db: Connection, context: str, subject: str) -> list[SubjectVersion]:
    """All versions of a subject in the order of their numbers, hidden ones too."""
    found = db.execute(f"{_VERSION} WHERE context = ? AND subject = ? ORDER BY number", (context, subject))
    return [_subject_version(one) for one in found]


def version_of(db: Connection, key: str) -> SubjectVersion | None:
    """The version of a subject that an entity's key names."""
    found = db.one(f"{_VERSION} WHERE key = ?", (key,))
    return _subject_version(found) if found is not None else None


def holders(db: Connection, context: str, number: int) -> list[SubjectVersion]:
    """The versions that have an id, hidden ones too."""
    sql = f"{_VERSION} WHERE context = ? AND id = ? ORDER BY subject, number"
    return [_subject_version(one) for one in db.execute(sql, (context, number))]


def subjects(db: Connection, context: str | None = None) -> list[tuple[str, str, bool]]:
    """Context and name of every subject, and whether all its versions are hidden; of one context, or of all."""
    where = "" if context is None else " WHERE context = ?"
    sql = f"SELECT context, subject, MIN(deleted) FROM schema_versions{where} GROUP BY context, subject"
    found = db.execute(f"{sql} ORDER BY context, subject", () if context is None else (context,))
    return [(one, name, bool(deleted)) for one, name, deleted in found]


def referrers(db: Connection, context: str, subject: str, number: int | None = None) -> list[SubjectVersion]:
    """The versions that refer to a version of a subject, or to any of them."""
    sql = (
        "SELECT v.context, v.subject, v.number, v.key, v.id, v.deleted FROM schema_referrers r"
        " JOIN schema_versions v ON v.key = r.key WHERE r.context = ? AND r.subject = ?"
    )
    params: tuple[Any, ...] = (context, subject)
    if number is not None:
        sql, params = f"{sql} AND r.number = ?", (*params, number)
    return [_subject_version(one) for one in db.execute(f"{sql} ORDER BY v.context, v.subject, v.number", params)]


def all_contexts(db: Connection) -> list[str]:
    """The contexts that there are; the default one always."""
    found = {context for (context,) in db.execute("SELECT context FROM schema_contexts")}
    return [DEFAULT, *sorted(found - {DEFAULT})]


def group_of(db: Connection, context: str) -> str | None:
    """The xid of the group that is a context."""
    found = db.one("SELECT xid FROM schema_contexts WHERE context = ?", (context,))
    return found[0] if found is not None else None


def context_of(db: Connection, group: str) -> str | None:
    """The context that the group with this xid is."""
    found = db.one("SELECT context FROM schema_contexts WHERE xid = ?", (group,))
    return found[0] if found is not None else None


def subject_of(db: Connection, context: str, subject: str) -> str | None:
    """The xid of the schema that is a subject."""
    found = db.one("SELECT xid FROM schema_subjects WHERE context = ? AND subject = ?", (context, subject))
    return found[0] if found is not None else None


def subject_at(db: Connection, xid: str) -> tuple[str, str, int] | None:
    """Context and name of the subject that a schema is, and the highest number of its versions ever."""
    found = db.one("SELECT context, subject, last FROM schema_subjects WHERE xid = ?", (xid,))
    return (found[0], found[1], found[2]) if found is not None else None


def texts_of(db: Connection, context: str, references: Sequence[Reference]) -> dict[str, str]:
    """The texts that references mean, by name, and after them those that these refer to; the first of a name counts."""
    found: dict[str, str] = {}
    waiting = [(context, one) for one in references]
    seen: set[tuple[str, str, int]] = set()
    while waiting:
        here, one = waiting.pop(0)
        where, subject = split_name(one.subject, here)
        if (where, subject, one.version) in seen and one.name in found:
            continue
        seen.add((where, subject, one.version))
        row = db.one(
            "SELECT i.document, i.beside, i.type FROM schema_versions v"
            " JOIN schema_ids i ON i.context = v.context AND i.id = v.id"
            " WHERE v.context = ? AND v.subject = ? AND v.number = ?",
            (where, subject, one.version),
        )
        if row is None or len(found) >= _MOST_TEXTS:
            continue
        found.setdefault(one.name, row[0])
        inner = content_of(row[2], "", orjson.loads(row[1]).get("references")).references
        waiting.extend((where, other) for other in inner if other.name not in found)
    return found


def stated_references(db: Connection, group: str, attrs: Mapping[str, Any]) -> NamedReferences:
    """What a version in a group means by the names of the references that it states."""
    if not attrs.get("confluentreferences"):
        return NamedReferences("")
    found = db.one("SELECT context FROM schema_contexts WHERE xid = ?", (group,))
    type_ = type_of(attrs.get("format") or "")
    stated = content_of(type_, "", attrs.get("confluentreferences")).references
    return NamedReferences(type_, texts_of(db, found[0] if found is not None else DEFAULT, stated))


def _entry(row: Sequence[Any]) -> SchemaEntry:
    context, number, guid, type_, document, beside, createdat = row
    more = orjson.loads(beside)
    content = content_of(type_, document, more.get("references"), more.get("metadata"), more.get("ruleSet"))
    return SchemaEntry(context, number, guid, content, createdat)


def _subject_version(row: Sequence[Any]) -> SubjectVersion:
    context, subject, number, key, id_, deleted = row
    return SubjectVersion(context, subject, number, key, id_, bool(deleted))


# ---- names


def split_name(name: str, around: str = DEFAULT) -> tuple[str, str]:
    """The context and the plain name of a subject, as it is written within a context.

    >>> split_name(":.dock:orders-value"), split_name("orders-value"), split_name(":.dock:"), split_name(":.:a")
    (('.dock', 'orders-value'), ('.', 'orders-value'), ('.dock', ''), ('.', 'a'))
    """
    if name.startswith(":."):
        context, colon, rest = name[1:].partition(":")
        return (context, rest) if colon else (context, "")
    return around, name


def name_in(context: str, subject: str) -> str:
    """The name of a subject in full.

    >>> name_in(".", "a"), name_in(".dock", "a")
    ('a', ':.dock:a')
    """
    return subject if context == DEFAULT else f":{context}:{subject}"


def free_id(name: str, is_taken: Any) -> str:
    """The id of the entity that stands for a name: the name itself where it can be one and is free.

    >>> free_id("orders-value", lambda id: False), free_id("yard/part.proto", lambda id: False)
    ('orders-value', 'yard~2fpart.proto')
    """
    if ID.fullmatch(name) and not is_taken(name):
        return name
    plain = "-._~:@"
    made = "".join(
        one if one.isascii() and (one.isalnum() or one in plain) else "".join(f"~{byte:02x}" for byte in one.encode())
        for one in name
    )
    if not made[:1].isalnum() and not made.startswith("_"):
        made = f"_{made}"
    if ID.fullmatch(made) and made != name and not is_taken(made):
        return made
    return f"{made[:115]}~{sha256(name.encode()).hexdigest()[:12]}"


# ---- which groups are contexts

_SETTING = "confluent"


@dataclass(frozen=True, slots=True)
class Contexts:
    """Which schema groups are contexts, beside those that say so: the default one, and perhaps all."""

    group: str = DEFAULT_GROUP
    all: bool = False

    def name(self, groupid: str, attrs: Mapping[str, Any]) -> str | None:
        """The context that a group is; None where it is none."""
        if groupid == self.group:
            return DEFAULT
        stated = attrs.get("confluentcontext")
        if isinstance(stated, str) and stated.startswith(".") and stated != DEFAULT and ":" not in stated:
            return stated
        return f".{groupid}" if self.all else None


def contexts_of(db: Connection) -> Contexts:
    """What the store says about contexts."""
    found = db.one("SELECT value FROM settings WHERE name = ?", (_SETTING,))
    return _contexts(found[0]) if found is not None else Contexts()


@lru_cache(maxsize=8)
def _contexts(text: str) -> Contexts:
    return Contexts(**orjson.loads(text))


def are_entered(db: Connection, chosen: Contexts) -> bool:
    """Tell whether every schema group that is to be a context is one, and no other."""
    if contexts_of(db) != chosen:
        return False
    entered = {xid: context for context, xid in db.execute("SELECT context, xid FROM schema_contexts")}
    wanted = {}
    for xid, doc in db.execute(
        "SELECT xid, doc FROM entities WHERE key > ? AND key < ?", rows.range_of(rows.GROUP, f"/{GROUPS}")
    ):
        context = chosen.name(xid.rpartition("/")[2], orjson.loads(doc))
        if context is not None:
            wanted[xid] = context
    return entered == wanted


def save_contexts(db: Connection, chosen: Contexts) -> None:
    """Choose which groups are contexts; the caller sees to it that they are entered."""
    value = orjson.dumps({"group": chosen.group, "all": chosen.all}).decode()
    db.execute(
        "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_SETTING, value),
    )


# ---- writing down


def assign(work: Work) -> None:
    """Give the schema versions of a request their ids, and take out what the request removes."""
    kind = work.model.groups.get(GROUPS)
    if kind is None or SCHEMAS not in kind.resources or not any(_is_about(kind, work)):
        return
    chosen = contexts_of(work.db)
    for group in list(work.groups.values()):
        if group is not None and group.type is kind:
            _assign_group(work, kind, group, chosen)


def _is_about(kind: GroupType, work: Work) -> Iterator[bool]:
    for group in work.groups.values():
        yield group is not None and group.type is kind and (group.touched or group.deleted or group.refreshed)
    for state in work.resources.values():
        yield state is not None and state.group.type is kind and _is_written(state)


def _is_written(state: ResourceState) -> bool:
    own = state.touched or state.deleted or state.xref_written or bool(state.gone)
    return own or any(version.touched for version in state.versions.values())


def _assign_group(work: Work, kind: GroupType, group: GroupState, chosen: Contexts) -> None:
    db = work.db
    found = db.one("SELECT context FROM schema_contexts WHERE xid = ?", (group.xid,))
    before = found[0] if found is not None else None
    context = None if group.deleted else chosen.name(group.id, group.attrs)
    if context != before:
        if before is not None:
            _forget_context(db, before)
        if context is not None:
            other = group_of(db, context)
            if other is not None:
                detail = f"names the context '{context}', which is {other} already"
                raise RegistryError("invalid_attribute", group.xid, name="confluentcontext", error_detail=detail)
            db.execute("INSERT INTO schema_contexts (context, xid) VALUES (?, ?)", (context, group.xid))
            for state in list(work.resources_of(group, kind.resources[SCHEMAS])):
                work.complete(state)
                _assign_schema(work, context, state, whole=True)
        return
    if context is None:
        return
    for one in list(work.resources.values()):
        if one is not None and one.group is group and one.type.plural == SCHEMAS and _is_written(one):
            _assign_schema(work, context, one)


def _forget_context(db: Connection, context: str) -> None:
    db.execute(
        "DELETE FROM schema_referrers WHERE key IN (SELECT key FROM schema_versions WHERE context = ?)", (context,)
    )
    for table in ("schema_versions", "schema_subjects", "schema_contexts"):
        db.execute(f"DELETE FROM {table} WHERE context = ?", (context,))


def _forget_version(db: Connection, key: str) -> None:
    one = version_of(db, key)
    if one is not None:
        gone = sorted({*_gone(db, one.context, one.subject), one.number})
        db.execute(
            "UPDATE schema_subjects SET gone = ? WHERE context = ? AND subject = ?",
            (orjson.dumps(gone).decode(), one.context, one.subject),
        )
    for table in ("schema_referrers", "schema_versions"):
        db.execute(f"DELETE FROM {table} WHERE key = ?", (key,))


def _gone(db: Connection, context: str, subject: str) -> list[int]:
    found = db.one("SELECT gone FROM schema_subjects WHERE context = ? AND subject = ?", (context, subject))
    return orjson.loads(found[0]) if found is not None else []


def _forget_schema(db: Connection, xid: str) -> None:
    low, high = rows.range_of(rows.VERSION, xid)
    for table in ("schema_referrers", "schema_versions"):
        db.execute(f"DELETE FROM {table} WHERE key > ? AND key < ?", (low, high))
    db.execute("DELETE FROM schema_subjects WHERE xid = ?", (xid,))


def _assign_schema(work: Work, context: str, state: ResourceState, *, whole: bool = False) -> None:
    db = work.db
    if state.deleted or state.xref is not None:
        if state.row is not None:
            _forget_schema(db, state.xid)
        return
    for version in state.gone.values():
        _forget_version(db, rows.version_key(state.xid, version.versionid))
    written = [one for one in state.versions.values() if one.touched or whole]
    found = [(version, content) for version in written if (content := _content(work, state, version)) is not None]
    readable = {version.versionid for version, _ in found}
    for version in written:
        if version.versionid not in readable:
            _forget_version(db, rows.version_key(state.xid, version.versionid))
            _show(version, {})
    known = subject_at(db, state.xid)
    subject = known[1] if known is not None else _subject(db, context, state) if found else None
    if subject is None:
        return
    if state.touched:
        _keep_level(db, context, subject, state)
    for version, content in sorted(found, key=lambda one: _in_line(one[0])):
        _assign_version(work, context, subject, state, version, content)


def _keep_level(db: Connection, context: str, subject: str, state: ResourceState) -> None:
    """Set the level of a subject to the compatibility that its schema states, where the request changes that."""
    before = orjson.loads(state.row.doc).get("compatibility") if state.row is not None else None
    stated = state.attrs.get("compatibility")
    if stated == before:
        return
    sql = "SELECT config, mode FROM schema_scopes WHERE context = ? AND subject = ?"
    config, mode = db.one(sql, (context, subject)) or ("{}", "")
    known = orjson.loads(config)
    if isinstance(stated, str):
        level: str | None = stated.upper()
    else:  # which is what a level of NONE looks like on the schema
        level = "NONE" if known.get("compatibilityLevel") == "NONE" else None
    if known.get("compatibilityLevel") != level:
        made = {name: value for name, value in known.items() if name != "compatibilityLevel"}
        made |= {"compatibilityLevel": level} if level is not None else {}
        db.execute("DELETE FROM schema_scopes WHERE context = ? AND subject = ?", (context, subject))
        db.execute(
            "INSERT INTO schema_scopes (context, subject, config, mode) VALUES (?, ?, ?, ?)",
            (context, subject, orjson.dumps(made).decode(), mode),
        )


def _in_line(version: VersionState) -> tuple[int, str, str]:
    number = _number(version.versionid)
    return (number or HIGHEST + 1, version.createdat, version.versionid)


def _number(versionid: str) -> int | None:
    if not (versionid.isascii() and versionid.isdigit()) or versionid[0] == "0" or len(versionid) > 10:
        return None
    number = int(versionid)
    return number if number <= HIGHEST else None


def _content(work: Work, state: ResourceState, version: VersionState) -> Content | None:
    """The content of a version; None where Confluent's registry has no such schemas, or it cannot be read."""
    attrs = version.attrs
    type_ = type_of(attrs.get("format") or "")
    document = _document(work, state, version) if type_ else None
    if not document:
        return None
    try:
        text = _canonical(type_, document) if len(document) <= _SMALL else canonical_text(type_, document.decode())
    except (SchemaError, UnicodeDecodeError):
        return None
    parts = (attrs.get(f"confluent{name}") for name in ("references", "metadata", "ruleset"))
    return content_of(type_, text, *parts)


def _document(work: Work, state: ResourceState, version: VersionState) -> bytes | None:
    if isinstance(version.content, bytes):
        return version.content
    stored = version.content is KEEP and version.row is not None
    return rows.load_content(work.db, rows.version_key(state.xid, version.versionid)) if stored else None


@lru_cache(maxsize=64)
def _canonical(type_: str, document: bytes) -> str:
    return canonical_text(type_, document.decode())


def _subject(db: Connection, context: str, state: ResourceState) -> str | None:
    """Enter the subject that a new schema is, and return its name; None where the name is another's."""
    stated = (one.attrs.get("confluentsubject") for one in state.versions.values())
    names = [name for name in stated if isinstance(name, str) and name]
    for name in (*names[:1], state.id):
        if subject_of(db, context, name) is None:
            db.execute(
                "INSERT INTO schema_subjects (context, subject, xid, last, gone) VALUES (?, ?, ?, 0, '[]')",
                (context, name, state.xid),
            )
            return name
    return None


def _assign_version(
    work: Work, context: str, subject: str, state: ResourceState, version: VersionState, content: Content
) -> None:
    db, attrs = work.db, version.attrs
    key = rows.version_key(state.xid, version.versionid)
    before = version_of(db, key)
    number = before.number if before is not None else _free_number(db, context, subject, version)
    id_ = _id(work, context, content, before, attrs.get("confluentid"))
    deleted = int(attrs.get("confluentdeleted") is True)
    db.execute("DELETE FROM schema_versions WHERE key = ?", (key,))
    db.execute(
        "INSERT INTO schema_versions (context, subject, number, key, id, deleted) VALUES (?, ?, ?, ?, ?, ?)",
        (context, subject, number, key, id_, deleted),
    )
    db.execute(
        "UPDATE schema_subjects SET last = ? WHERE context = ? AND subject = ? AND last < ?",
        (number, context, subject, number),
    )
    db.execute("DELETE FROM schema_referrers WHERE key = ?", (key,))
    targets = {(*split_name(one.subject, context), one.version, key) for one in content.references}
    if targets:
        sql = "INSERT INTO schema_referrers (context, subject, number, key) VALUES (?, ?, ?, ?)"
        db.executemany(sql, sorted(targets))
    shown: dict[str, Any] = {"confluentid": id_, "confluentguid": content.guid}
    if str(number) != version.versionid:
        shown["confluentversion"] = number
    _show(version, shown)


_OWN = ("confluentid", "confluentguid", "confluentversion")


def own_attributes(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a version that the server keeps here, as far as it has them."""
    return {name: attrs[name] for name in _OWN if name in attrs}


def _show(version: VersionState, shown: Mapping[str, Any]) -> None:
    """Let a version show what the server knows of it here."""
    if own_attributes(version.attrs) != shown:
        version.attrs = {**{name: value for name, value in version.attrs.items() if name not in _OWN}, **shown}
        version.refreshed = True


def _free_number(db: Connection, context: str, subject: str, version: VersionState) -> int:
    """The number of a new version: the one it states, or its id where that is one and was never given, or the next."""
    taken = {one.number for one in versions(db, context, subject)}
    stated = version.attrs.get("confluentversion")
    if isinstance(stated, int) and not isinstance(stated, bool) and 0 < stated <= HIGHEST and stated not in taken:
        return stated
    number = _number(version.versionid)
    if number is not None and number not in taken and number not in _gone(db, context, subject):
        return number
    found = db.one("SELECT last FROM schema_subjects WHERE context = ? AND subject = ?", (context, subject))
    return max(found[0] if found is not None else 0, *taken, 0) + 1


def _id(work: Work, context: str, content: Content, before: SubjectVersion | None, stated: object) -> int:
    """The id of a content: the one that the version has, or brings, or the content has, or a new one."""
    known = ids_of_content(work.db, context, content)
    if before is not None and before.id in known:
        return before.id
    if isinstance(stated, int) and not isinstance(stated, bool) and 0 < stated <= HIGHEST:
        if stated in known:
            return stated
        if by_id(work.db, context, stated) is None:
            _enter(work, context, stated, content)
            return stated
    if known:
        return known[0]
    number = highest_id(work.db, context) + 1
    if number > HIGHEST:
        raise RegistryError("bad_request", "/", error_detail=f"the context '{context}' has no ids left")
    _enter(work, context, number, content)
    return number


def _enter(work: Work, context: str, number: int, content: Content) -> None:
    work.db.execute(
        "INSERT INTO schema_ids (context, id, guid, type, document, beside, createdat) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (context, number, content.guid, content.type, content.text, orjson.dumps(content.beside()).decode(), work.now),
    )
