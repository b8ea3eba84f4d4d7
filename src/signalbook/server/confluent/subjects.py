"""What calls of Confluent's API are about: a call and its answer, subjects and their versions, what is set for them.

Rule 1: parameters and members that are not known are passed over. An error has a code, whose first three digits are the
status: clients go by it. The message is for people, and says what to do where that helps.
Rule 2: a context is a schema group, a subject a schema, a version a version (`registry.schema_ids`).
Rule 3: what a request sends is the schema of a version where their contents are the same, or differ only in what does
not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson

from signalbook.budget import Cancelled, TooMuch
from signalbook.errors import RegistryError, StoreError
from signalbook.jsontext import JsonError, decode_json
from signalbook.registry import schema_ids
from signalbook.registry.formats import keep_read
from signalbook.registry.schema_ids import DEFAULT, HIGHEST, SchemaEntry, SubjectVersion, name_in, split_name
from signalbook.registry.store import Connection
from signalbook.schemas.canonical import (
    TYPES,
    Content,
    Reference,
    canonical_text,
    format_of,
    is_reworded,
    read_schema,
    serialised,
    written_out,
)
from signalbook.schemas.format import SchemaError
from signalbook.server import problems
from signalbook.server.http import Request, Response
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = [
    "DEFAULT_LEVEL", "DEFAULT_MODE", "GLOBAL", "LEVEL", "LEVELS", "MEDIA", "MEDIA_TYPES", "MODES", "ConfluentCall",
    "ConfluentError", "SchemaText", "Scope", "Sent", "SubjectView", "accepted", "answered", "check_rules",
    "check_subject", "context_of", "delete_scope", "find_config", "find_mode", "in_force", "invalid", "load_scope",
    "merged_metadata", "merged_rules", "no_subject", "read_config", "read_level", "read_mode", "read_request",
    "read_version", "respond", "save_scope", "scope_of",
]  # fmt: skip

MEDIA = "application/vnd.schemaregistry.v1+json"
MEDIA_TYPES = (MEDIA, "application/vnd.schemaregistry+json", "application/json")


class ConfluentError(Exception):
    """What a request is answered with instead of what it asked for."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The status of the answer."""
        return int(str(self.code)[:3])


def answered(status: int, value: Any, media: str = MEDIA) -> Response:
    """An answer in JSON."""
    return Response(status, [("content-type", media)], orjson.dumps(value))


# What an error of the registry is called here, where its status does not say enough.
_CODES = {"readonly": 42205, "not_found": 40401, "format_violation": 42201, "server_busy": 50002, "server_error": 50001}


def respond(error: BaseException, path: str, media: str = MEDIA) -> Response:
    """The answer for whatever went wrong."""
    if isinstance(error, ConfluentError):
        return answered(error.status, {"error_code": error.code, "message": error.message}, media)
    if isinstance(error, TooMuch) and not isinstance(error, Cancelled):
        return answered(422, {"error_code": 42209, "message": f"The schema is too large: {error}"}, media)
    if isinstance(error, RegistryError):
        status = ERROR_TYPES[error.name].status
        words = " ".join(part for part in (title(error), error.detail) if part)
        code = _CODES.get(error.name) or {503: 50002, 500: 50001}.get(status, status)
        made = answered(int(str(code)[:3]), {"error_code": code, "message": words}, media)
        basic = [("www-authenticate", 'Basic realm="signalbook"')] if status == 401 else []
        return Response(made.status, [*made.headers, *basic], made.body)
    told = problems.respond(error, path)  # which writes it to the log
    code = 50002 if isinstance(error, StoreError) else 50001
    shown = orjson.loads(told.body)
    words = f"The server failed; its log has more under {shown.get('instance', 'the time of this request')}"
    return answered(500, {"error_code": code, "message": words}, media)


@dataclass(slots=True)
class ConfluentCall:
    """One request: what its path names, its parameters, and the context that it is made in."""

    request: Request
    parts: tuple[str, ...] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    context: str = DEFAULT

    def text(self, name: str, default: str = "") -> str:
        """A parameter; the first where it is repeated."""
        return next(iter(self.query.get(name, ())), default)

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.text(name).lower() == "true"

    def body(self) -> dict[str, Any]:
        """The JSON object that the request holds."""
        given = self.request.body
        if not given.strip():
            raise ConfluentError(422, "The request has no body; send a JSON object")
        try:
            body = decode_json(given)
        except JsonError as error:
            raise ConfluentError(400, f"The body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise ConfluentError(400, "The body must be a JSON object")
        return body

    def page(self, found: list[Any], most: int = 0) -> list[Any]:
        """The part of a list that was asked for."""
        offset, limit = (_whole(self.text(name), default) for name, default in (("offset", 0), ("limit", -1)))
        start = max(offset, 0)
        size = limit if limit > 0 and (not most or limit <= most) else most
        return found[start : start + size] if size else found[start:]


def _whole(text: str, default: int) -> int:
    try:
        return int(text) if text else default
    except ValueError:
        raise ConfluentError(404, "HTTP 404 Not Found") from None


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema by itself."""

    text: str


def context_of(name: str) -> str:
    """The context that a part of a path means: `name`, `.name` or `:.name:`."""
    if name.startswith(":.") and name.endswith(":"):
        name = name[1:-1]
    if ":" in name:
        raise ConfluentError(400, f"'{name}' is not a valid context: it has a colon")
    return name if name.startswith(".") else f".{name}"


def accepted(accept: str) -> str:
    """The type of the answer that a client accepts."""
    wanted = [one.partition(";")[0].strip().lower() for one in accept.split(",") if one.strip()]
    if not wanted or MEDIA in wanted or "*/*" in wanted or "application/*" in wanted:
        return MEDIA
    for one in wanted:
        if one in MEDIA_TYPES:
            return one
    raise ConfluentError(406, "HTTP 406 Not Acceptable")


# ---- subjects and their versions

GROUPS = schema_ids.GROUPS
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_VERSION = re.compile(r"-?[0-9]+")
_LARGEST = 10 * 1024 * 1024
_LONGEST_SUBJECT = 1000
_MOST_REFERENCES = 1000


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


class SubjectView:
    """The subjects of one registry."""

    # ---- names

    def resolve(self, db: Connection, name: str, around: str) -> tuple[str, str]:
        """Context and subject that a name in a path means; an alias leads to another subject."""
        context, subject = split_name(name, around)
        if not schema_ids.versions(db, context, subject):
            alias = load_scope(db, (context, subject))[0].get("alias")
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
            raise no_subject(context, subject)
        return found

    def version(self, db: Connection, context: str, subject: str, number: int, deleted: bool) -> SubjectVersion:
        """One version of a subject."""
        every = schema_ids.versions(db, context, subject)
        found = [one for one in every if deleted or not one.deleted]
        if not found:
            raise no_subject(context, subject)
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
        return {
            "guid": entry.guid,
            "schemaType": entry.content.type,
            **beside,
            "schema": self.text(db, entry, form),
            "ts": _milliseconds(entry.createdat),
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
        return self.match(db, every, content, sent)

    def match(
        self, db: Connection, every: Sequence[SubjectVersion], content: Content, sent: Sent
    ) -> SubjectVersion | None:
        """The newest of these versions that is a content, as a request sent it."""
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
        differ = _without_version(other.metadata, content.metadata) != (content.metadata or None)
        if differ and sent.metadata is not None:
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
            raise invalid(f"the schemaType '{sent.type}' is not one of {', '.join(TYPES.values())}")
        if len(sent.text) > _LARGEST:
            raise ConfluentError(42209, f"The schema is larger than {_LARGEST} characters")
        if len(sent.references) > _MOST_REFERENCES:
            raise invalid(
                f"it has {len(sent.references):,} references, more than the {_MOST_REFERENCES:,} that are read"
            )
        references = tuple(self._reference(db, context, one) for one in sent.references)
        if normalise:
            references = tuple(sorted(set(references), key=lambda one: (one.name, one.subject, one.version)))
        texts = schema_ids.texts_of(db, context, references)
        try:
            text = canonical_text(sent.type, sent.text, texts, normalise=normalise)
        except SchemaError as error:
            raise invalid(str(error)) from None
        return Content(sent.type, text, references, sent.metadata, sent.rules)

    def _reference(self, db: Connection, context: str, one: Reference) -> Reference:
        where, subject = split_name(one.subject, context)
        found = [each for each in schema_ids.versions(db, where, subject) if not each.deleted]
        if one.version == -1 and found:
            return replace(one, version=found[-1].number)
        if not any(each.number == one.version for each in found):
            raise invalid(
                f"the reference '{one.name}' names version {one.version} of '{one.subject}', which is not there"
            )
        return one

    def check_readable(self, db: Connection, context: str, content: Content) -> None:
        """Refuse a schema that cannot be read with what it refers to."""
        try:
            schema = read_schema(content.type, content.text, schema_ids.texts_of(db, context, content.references))
        except SchemaError as error:
            raise invalid(str(error)) from None
        if not content.references and not is_reworded(content.type, content.text):
            # The registry would read it again, while others wait.
            keep_read(format_of(content.type, content.text), content.text.encode("utf-8", "surrogatepass"), schema)


def check_subject(subject: str) -> None:
    """Refuse a name that no subject may have."""
    if not subject or subject in ("__GLOBAL", "__EMPTY") or _CONTROL.search(subject):
        raise ConfluentError(42208, f"The specified subject '{subject!r}' is not a valid subject name")
    if len(subject) > _LONGEST_SUBJECT:
        raise ConfluentError(42208, f"A subject has at most {_LONGEST_SUBJECT} characters")


def no_subject(context: str, subject: str) -> ConfluentError:
    """The error for a subject that is not there."""
    return ConfluentError(40401, f"Subject '{name_in(context, subject)}' not found.")


def invalid(words: str) -> ConfluentError:
    """The error for a schema that is not one."""
    return ConfluentError(42201, f"Invalid schema: {words}")


def _milliseconds(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def _without_version(metadata: Mapping[str, Any] | None, sent: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Metadata without the version in it, which a request may leave out."""
    if not metadata or "confluent:version" in ((sent or {}).get("properties") or {}):
        return metadata
    properties = {k: v for k, v in (metadata.get("properties") or {}).items() if k != "confluent:version"}
    left = {**metadata, "properties": properties}
    return {name: value for name, value in left.items() if value} or None


# ---- what is set for a subject, a context, or all: the configuration, above all the compatibility, and the mode
#
# Rule 1: the nearer counts: a subject's own, else its context's, else that of all, else the default of the server.
# Rule 2: the level of a subject that is there is also the `compatibility` of the schema, so that both APIs hold to it.

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


def load_scope(db: Connection, scope: Scope) -> tuple[dict[str, Any], str]:
    """What is set for a scope itself: its configuration and its mode, empty where nothing is."""
    found = db.one("SELECT config, mode FROM schema_scopes WHERE context = ? AND subject = ?", scope)
    return (orjson.loads(found[0]), found[1]) if found is not None else ({}, "")


def save_scope(db: Connection, scope: Scope, config: Mapping[str, Any], mode: str) -> None:
    """Set configuration and mode of a scope; where both are empty nothing is kept."""
    db.execute("DELETE FROM schema_scopes WHERE context = ? AND subject = ?", scope)
    if config or mode:
        text = orjson.dumps(config).decode()
        db.execute(
            "INSERT INTO schema_scopes (context, subject, config, mode) VALUES (?, ?, ?, ?)", (*scope, text, mode)
        )


def delete_scope(db: Connection, scope: Scope) -> None:
    """Forget what is set for a scope."""
    save_scope(db, scope, {}, "")


def _around(scope: Scope) -> list[Scope]:
    """A scope and those around it, the nearest first."""
    context, subject = scope
    found = [scope] if subject else []
    return [*found, *([(context, "")] if context else []), GLOBAL]


def find_mode(db: Connection, scope: Scope) -> str:
    """The mode in force for a scope."""
    return next((mode for one in _around(scope) if (mode := load_scope(db, one)[1])), DEFAULT_MODE)


def find_config(db: Connection, scope: Scope) -> dict[str, Any]:
    """The configuration in force for a scope."""
    own = load_scope(db, scope)[0] if scope[1] else {}
    wider: dict[str, Any] = {}
    for one in reversed(_around((scope[0], ""))):
        wider.update(load_scope(db, one)[0])
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


# ---- metadata and rules: checked, merged with what the configuration adds, and kept; clients run them

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MIGRATION = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_DOMAIN = frozenset({"WRITE", "READ", "WRITEREAD"})
_PARTS = {"migrationRules": _MIGRATION, "domainRules": _DOMAIN, "encodingRules": _DOMAIN}


def check_rules(rules: Mapping[str, Any] | None) -> None:
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
