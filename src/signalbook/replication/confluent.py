"""A registry that speaks Confluent's API, copied to another with every id, number and setting, once or again and again.

Rule 1: both sides speak the same API, so that the way in and the way out are one. The target takes ids and numbers in
mode IMPORT, which a subject is in only while it is written; its mode is set back also where the copy breaks off.
Rule 2: what is there already is not written again, so a copy that was broken off goes on when it is made again. What a
target has otherwise is a conflict, and is only replaced in a mirror.
Rule 3: a version comes after those that it refers to, and is hidden before them. What refers in a circle is refused.
Rule 4: nothing is removed from a target unless the source, asked for it by name, does not have it.
Rule 5: while a copy follows its source it is READONLY: an id that it gave itself could be another's at the source.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import quote

import orjson

from signalbook.client import DEEPEST_REPLY, Call, RegistryReply, RemoteError, Transport
from signalbook.errors import StoreError
from signalbook.jsontext import Json, is_deeper
from signalbook.registry.schema_ids import DEFAULT, HIGHEST, split_name
from signalbook.replication.target import ReplicationReport
from signalbook.schemas.canonical import TYPES, Content, Reference, canonical_text
from signalbook.schemas.format import SchemaError

__all__ = ["ROOT", "ConfluentCopy", "ConfluentPeer", "ConfluentState", "VersionCopy"]

ROOT = "/confluent"
"""Where a Signalbook has the API."""

_MEDIA = "application/vnd.schemaregistry.v1+json"
_MOST_VERSIONS = 1_000_000
_MANY = 100  # entries of a list that may be a part of it
_STEP = 100  # versions between two words about progress
_LONGEST = 500
_MOST_NAMED = 10  # versions of a circle
_LEVEL = "compatibilityLevel"
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_NO_CONFIG, _NO_MODE = (40408, _NO_SUBJECT), (40409, _NO_SUBJECT)
_NOT_OFFERED = (404, 405, 501)
_REMEDIES = {
    401: "give its credentials",
    403: "its credentials may not do that",
    404: "is it the root of a Schema Registry? That of a Signalbook ends in /confluent",
}

Key = tuple[str, int]
Progress = Callable[[str], None]


class ConfluentRefusal(RemoteError):
    """An error that a registry states, with its code."""

    def __init__(self, words: str, status: int, code: int) -> None:
        super().__init__(words, status=status)
        self.code = code

    @property
    def is_about_one(self) -> bool:
        """Whether others may be taken where this one was not."""
        return 400 <= self.status < 500 and self.status not in (401, 403, 408, 429)


@dataclass(frozen=True, slots=True)
class VersionCopy:
    """A version of a subject, as a registry answers it; references name their subjects in full."""

    subject: str
    number: int
    id: int
    content: Content
    guid: str
    deleted: bool

    @property
    def key(self) -> Key:
        """The subject and the number."""
        return self.subject, self.number

    @property
    def context(self) -> str:
        """The context of the subject."""
        return split_name(self.subject)[0]

    def needs(self) -> list[Key]:
        """The versions that it refers to."""
        found = (split_name(one.subject, self.context) for one in self.content.references)
        return [(_full(*name), one.version) for name, one in zip(found, self.content.references, strict=True)]

    def is_like(self, other: VersionCopy) -> bool:
        """Whether another has the same id and the same content, however its text is spelled."""
        mine, its = self.content, other.content
        beside = (mine.type, self._named(), mine.metadata, mine.rules)
        if (self.id, *beside) != (other.id, its.type, other._named(), its.metadata, its.rules):
            return False
        return mine.text == its.text or _spelled(mine) == _spelled(its)

    def _named(self) -> list[tuple[str, Key]]:
        return [(one.name, key) for one, key in zip(self.content.references, self.needs(), strict=True)]


@dataclass(slots=True)
class ConfluentState:
    """What a registry holds: versions, and what is set for a subject or a context itself; `""` is for all."""

    contexts: list[str] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)
    versions: dict[Key, VersionCopy] = field(default_factory=dict)
    configs: dict[str, Json] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    lost: list[Key] = field(default_factory=list)  # listed, but not shown; of a whole subject the number is 0


# ---- one registry


class ConfluentPeer:
    """The operations of Confluent's API at one registry; `root` is where it has them."""

    def __init__(self, transport: Transport, root: str = "", *, credentials: str = "") -> None:
        self._transport = transport
        self._root = root
        self._headers = {"accept": f"{_MEDIA}, application/json"}
        if credentials:
            basic = base64.b64encode(credentials.encode()).decode() if ":" in credentials else ""
            self._headers["authorization"] = f"Basic {basic}" if basic else f"Bearer {credentials}"

    @property
    def name(self) -> str:
        """What messages call the registry."""
        return self._transport.name

    def ask(self, method: str, path: str, body: Any = None, *, absent: Collection[int] = ()) -> Any:
        """The answer to a request; None where it has no content, or one of the codes that mean so."""
        headers = self._headers
        content = None
        if body is not None:
            content, headers = orjson.dumps(body), {**headers, "content-type": _MEDIA}
        reply = self._transport.answer(Call(method, self._root + path, content, headers))
        if reply.status < 300:
            return _value(reply, path) if reply.content else None
        refusal = _refusal(reply, path)
        if isinstance(refusal, ConfluentRefusal) and refusal.code in absent:
            return None
        raise refusal

    # ---- reading

    def contexts(self) -> list[str]:
        """The contexts; a server that does not know them has the default one."""
        try:
            found = self._list("/contexts", str)
        except RemoteError as error:
            if error.status not in _NOT_OFFERED:
                raise
            found = []
        return [DEFAULT, *sorted({one for one in found if one.startswith(".") and ":" not in one} - {DEFAULT})]

    def subjects(self) -> list[str]:
        """The names of all subjects in full, those whose versions are all hidden too."""
        return self._list("/subjects?deleted=true", str, always=True)

    def numbers(self, subject: str) -> dict[int, bool]:
        """The numbers of a subject's versions, and of each whether it is hidden."""
        path = f"/subjects/{_segment(subject)}/versions"
        every = self._list(f"{path}?deleted=true", int)
        live = set(self._list(path, int)) if every else set()
        return {number: number not in live for number in sorted(every)}

    def version(self, subject: str, number: int, deleted: bool | None = None) -> VersionCopy | None:
        """A version; None where it is not there. `deleted` is what a list says, which every server's answer does not.

        A server looks for a name that it does not have in other contexts; that is another subject.
        """
        path = f"/subjects/{_segment(subject)}/versions/{number}?deleted=true"
        found = self.ask("GET", path, absent=(_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA))
        if found is None or self._stated(found, "subject", str, path) != subject:
            return None
        if deleted is None:
            deleted = found.get("deleted") is True
        if self._stated(found, "version", int, path) != number:
            raise RemoteError(f"{self.name} answered {path} with version {found['version']}")
        id_ = self._stated(found, "id", int, path)
        if not 0 < id_ <= HIGHEST:
            raise RemoteError(f"{self.name} answered {path} with the id {id_}, which is not one of a schema")
        return VersionCopy(subject, number, id_, self._content(found, path), str(found.get("guid") or ""), deleted)

    def text_of_id(self, context: str, id_: int) -> str | None:
        """The text that an id stands for in a context; None where it stands for none."""
        inside = "" if context == DEFAULT else f"/contexts/{_segment(context)}"
        path = f"{inside}/schemas/ids/{id_}"
        found = self.ask("GET", path, absent=(_NO_SCHEMA,))
        return None if found is None else str(self._stated(found, "schema", str, path))

    def config(self, scope: str, *, effective: bool = False) -> Json:
        """What is set for a subject, a context or all; `effective` is with what is set around it."""
        return self._setting("config", scope, _NO_CONFIG, effective=effective)

    def mode(self, scope: str, *, effective: bool = False) -> str:
        """The mode of a subject, a context or all; empty where none is set."""
        return str(self._setting("mode", scope, _NO_MODE, effective=effective).get("mode") or "")

    def _setting(self, kind: str, scope: str, absent: Collection[int], *, effective: bool) -> Json:
        flag = "?defaultToGlobal=true" if effective and scope else ""
        path = f"/{kind}/{_segment(scope)}{flag}" if scope else f"/{kind}"
        try:
            found = self.ask("GET", path, absent=absent)
        except RemoteError as error:
            if error.status not in _NOT_OFFERED:
                raise
            return {}
        if found is not None and not isinstance(found, dict):
            raise RemoteError(f"{self.name} answered {path} with something other than an object")
        return {name: value for name, value in (found or {}).items() if value is not None}

    def _list(self, path: str, kind: type, *, always: bool = False) -> list[Any]:
        """A list, which a server may give in parts; one that does not know parts gives the same again."""
        found: dict[Any, None] = {}
        while True:
            before = len(found)
            joint = "&" if "?" in path else "?"
            part = self.ask("GET", f"{path}{joint}offset={before}" if before else path, absent=(_NO_SUBJECT,))
            if part is None:
                return list(found)
            if not isinstance(part, list) or not all(type(one) is kind for one in part):
                raise RemoteError(f"{self.name} answered {path} with something other than a list of its kind")
            found.update(dict.fromkeys(part))
            if len(found) > _MOST_VERSIONS:
                raise RemoteError(f"{self.name} lists more than {_MOST_VERSIONS:,} entries at {path}")
            if len(found) == before or (len(part) < _MANY and not always):
                return list(found)

    def _stated(self, found: Any, name: str, kind: type, path: str) -> Any:
        value = found.get(name) if isinstance(found, dict) else None
        if type(value) is not kind:
            raise RemoteError(f"{self.name} answered {path} without '{name}', or with one that is not valid")
        return value

    def _content(self, found: Json, path: str) -> Content:
        kind = found.get("schemaType") or "AVRO"
        text = self._stated(found, "schema", str, path)
        references = []
        given = found.get("references") or []
        for one in given if isinstance(given, list) else [None]:
            stated = [self._stated(one, name, type_, path) for name, type_ in _REFERENCE]
            references.append(Reference(*stated))
        beside = [found.get(name) or None for name in ("metadata", "ruleSet")]
        if kind not in TYPES.values() or not all(one is None or isinstance(one, dict) for one in beside):
            raise RemoteError(f"{self.name} answered {path} with a schema that is not of a known form")
        return Content(str(kind), text, tuple(references), *map(_filled, beside))

    # ---- all of it

    def read(self, before: ConfluentState, subjects: Iterable[str] | None, progress: Progress) -> ConfluentState:
        """What the registry holds; versions of subjects that are as they were before are not read again.

        Those subjects are meant whose numbers and whose newest version are the same.
        """
        state = ConfluentState(self.contexts(), self.subjects())
        wanted = state.subjects if subjects is None else sorted(set(subjects) & set(state.subjects))
        state.contexts += sorted({split_name(one)[0] for one in state.subjects} - set(state.contexts))
        for scope in ["", *map(_scope, state.contexts[1:]), *wanted]:
            state.configs[scope] = self.config(scope)
            state.modes[scope] = self.mode(scope)
        for subject in wanted:
            for one in self._versions(subject, before, state.lost):
                state.versions[one.key] = one
                if len(state.versions) > _MOST_VERSIONS:
                    raise RemoteError(f"{self.name} has more than {_MOST_VERSIONS:,} versions")
                if len(state.versions) % _STEP == 0:
                    progress(f"read {len(state.versions):,} versions of {self.name}")
        return state

    def _versions(self, subject: str, before: ConfluentState, lost: list[Key]) -> Iterator[VersionCopy]:
        numbers = self.numbers(subject)
        if not numbers:
            lost.append((subject, 0))
        newest: VersionCopy | None = None
        same = False
        if numbers:
            last = max(numbers)
            newest, known = self.version(subject, last, numbers[last]), before.versions.get((subject, last))
            same = newest is not None and known is not None and newest.is_like(known)
        for number, deleted in numbers.items():
            one = before.versions.get((subject, number)) if same else None
            if newest is not None and number == newest.number:
                yield newest
            elif one is not None and one.deleted == deleted:
                yield one
            elif (found := self.version(subject, number, deleted)) is not None:
                yield found
            else:
                lost.append((subject, number))

    # ---- writing

    def set_mode(self, scope: str, mode: str) -> None:
        """Set the mode of a subject, a context or all; an empty one takes it away."""
        path = f"/mode/{_segment(scope)}" if scope else "/mode"
        if mode:
            self.ask("PUT", f"{path}?force=true" if mode == "IMPORT" else path, {"mode": mode})
        else:
            self.ask("DELETE", path, absent=_NO_MODE)

    def set_config(self, scope: str, wanted: Json, now: Json) -> None:
        """Set what is set for a subject, a context or all, which is something else now."""
        path = f"/config/{_segment(scope)}" if scope else "/config"
        if not wanted:
            self.ask("DELETE", path, absent=_NO_CONFIG)
            return
        body: Json = {**dict.fromkeys(now), **wanted}
        if _LEVEL in body:
            body["compatibility"] = body.pop(_LEVEL)
        self.ask("PUT", path, body)

    def add(self, one: VersionCopy) -> int:
        """Add a version with its id and its number; the id that it has then."""
        content = one.content
        body = {"schema": content.text, "schemaType": content.type, "id": one.id, "version": one.number}
        beside = {"references": [each.shown() for each in content.references], "metadata": content.metadata,
                  "ruleSet": content.rules}  # fmt: skip
        body.update({name: value for name, value in beside.items() if value})
        path = f"/subjects/{_segment(one.subject)}/versions"
        return int(self._stated(self.ask("POST", path, body), "id", int, path))

    def delete(self, key: Key, *, permanent: bool = False) -> None:
        """Hide a version, or take it away for good."""
        flag = "?permanent=true" if permanent else ""
        gone = (_NO_SUBJECT, _NO_VERSION)
        self.ask("DELETE", f"/subjects/{_segment(key[0])}/versions/{key[1]}{flag}", absent=gone)


_REFERENCE: tuple[tuple[str, type], ...] = (("name", str), ("subject", str), ("version", int))


def _segment(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


def _scope(context: str) -> str:
    return f":{context}:"


def _full(context: str, subject: str) -> str:
    return subject if context == DEFAULT else f":{context}:{subject}"


def _filled(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Metadata or rules without the members that are empty, which some servers answer and others leave out."""
    return {name: one for name, one in (value or {}).items() if one not in (None, [], {}, "")} or None


def _spelled(content: Content) -> str:
    try:
        return canonical_text(content.type, content.text)
    except SchemaError:
        return content.text


def _value(reply: RegistryReply, path: str) -> Any:
    try:
        value = orjson.loads(reply.content)
    except orjson.JSONDecodeError:
        words = f"{reply.name} answered {path} with something other than JSON; is it the root of a Schema Registry?"
        raise RemoteError(words) from None
    if is_deeper(value, DEEPEST_REPLY):
        raise RemoteError(f"{reply.name} answered {path} with JSON that is nested deeper than {DEEPEST_REPLY} levels")
    return value


def _refusal(reply: RegistryReply, path: str) -> RemoteError:
    said = f"{reply.name} answered {reply.status} at {path.partition('?')[0]}"
    try:
        stated = orjson.loads(reply.content)
        code, words = int(stated["error_code"]), str(stated.get("message") or "")[:_LONGEST]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        remedy = "it redirects, which is not followed" if reply.status < 400 else _REMEDIES.get(reply.status)
        return RemoteError(f"{said}; {remedy or 'is it a Schema Registry?'}", status=reply.status)
    remedy = _REMEDIES.get(reply.status) if code in (401, 403, 404) else None
    said = f"{said}: {words.rstrip('.')} ({code})" + (f"; {remedy}" if remedy else "")
    return ConfluentRefusal(said, reply.status, code)


# ---- from one to another


class ConfluentCopy:
    """The copy of a registry in another.

    In a `mirror` the target loses what the source does not have, or has otherwise. A `guarded` copy is READONLY, where
    the modes of the source do not come along.
    """

    def __init__(
        self, source: ConfluentPeer, target: ConfluentPeer, *, mirror: bool = False, guarded: bool = False,
        progress: Progress = lambda words: None,
    ) -> None:  # fmt: skip
        self._source = source
        self._target = target
        self._mirror = mirror
        self._guarded = guarded
        self._progress = progress
        self._read = ConfluentState()
        self._held = ConfluentState()
        self._verified: set[tuple[str, int]] = set()

    def run(self) -> ReplicationReport:
        """Bring the target up to date, once."""
        return _Run(self).run()

    def follow(self, every: float, pause: Callable[[float], None] = time.sleep) -> Iterator[ReplicationReport]:
        """Bring it up to date again and again; a registry that does not answer is asked again later.

        A refusal of the first run is raised, because the next would be refused too.
        """
        reached = False
        while True:
            try:
                report = self.run()
                reached = True
            except (RemoteError, StoreError) as error:
                if not reached and (isinstance(error, StoreError) or 300 <= error.status < 500):
                    raise
                report = ReplicationReport(failure=str(error))
            yield report
            pause(every)


class _Run:
    """One run of a copy."""

    def __init__(self, copy: ConfluentCopy) -> None:
        self._copy = copy
        self._source, self._target = copy._source, copy._target
        self._opened: dict[str, None] = {}  # the subjects of the target that are in mode IMPORT
        self._report = ReplicationReport(compared=True)
        self._written: set[Key] = set()
        self._from = self._to = ConfluentState()

    def run(self) -> ReplicationReport:
        copy = self._copy
        try:
            self._from = self._source.read(copy._read, None, copy._progress)
            self._to = self._target.read(copy._held, None if copy._mirror else self._from.subjects, copy._progress)
            if copy._guarded and self._to.modes[""] != "READONLY":
                self._target.set_mode("", "READONLY")
            try:
                self._copy_versions()
                self._copy_configs()
            finally:
                self._close()
            self._copy_modes()
            self._verify()
        except RemoteError as error:
            done = f"versions written in this run: {len(self._written):,}; what is there is whole"
            raise RemoteError(f"{error}; {done}, run it again to go on", status=error.status) from None
        copy._read = self._from
        return self._report

    # ---- versions

    def _copy_versions(self) -> None:
        held = self._to.versions
        for key in self._from.lost:
            said = "it is listed" if key[1] else "the subject is listed"
            self._trouble("refused", key, f"{said} by {self._source.name}, which does not answer it when it is asked")
        new: dict[Key, VersionCopy] = {}
        for key, one in self._from.versions.items():
            other = held.get(key)
            if other is not None and one.is_like(other) and (one.deleted or not other.deleted):
                continue
            if other is None or self._copy._mirror:
                new[key] = one
            else:
                self._trouble("conflict", key, _difference(one, other))
        self._remove([key for key in held if key in new or (self._copy._mirror and key not in self._from.versions)])
        order, circle = _in_order(new)
        for key in order:
            if self._add(new[key]) and len(self._written) % _STEP == 0:
                self._copy._progress(f"wrote {len(self._written):,} of {len(new):,} versions to {self._target.name}")
        if circle:
            said = " → ".join(map(_words, circle[:_MOST_NAMED])) + (" → …" if len(circle) > _MOST_NAMED else "")
            for key in new.keys() - set(order):
                self._trouble("refused", key, f"it refers to a circle, which cannot be read, or is in it: {said}")
        self._hide()

    def _add(self, one: VersionCopy) -> bool:
        lacking = next((key for key in one.needs() if key not in self._to.versions), None)
        if lacking is not None:
            lost = "was not copied" if lacking in self._from.versions else f"{self._source.name} does not have"
            self._trouble("refused", one.key, f"it refers to {_words(lacking)}, which {lost}")
            return False
        given: list[int] = []
        if not self._write(_path(one.key), one.subject, lambda: given.append(self._target.add(one))):
            return False
        if given != [one.id]:
            self._trouble("refused", one.key, f"{self._target.name} gave it the id {given[0]} instead of {one.id}")
        self._to.versions[one.key] = replace(one, id=given[0], deleted=False)
        self._written.add(one.key)
        self._report.outcomes["written"] += 1
        return True

    def _hide(self) -> None:
        """Hide what is hidden at the source, those that refer to others before these."""
        held = self._to.versions
        wanted = {
            key: one
            for key, one in self._from.versions.items()
            if one.deleted and key in held and not held[key].deleted
        }
        for key in reversed(_in_order(wanted)[0]):
            if self._take(key, permanent=False):
                self._report.outcomes["deleted"] += 1

    def _remove(self, keys: Sequence[Key]) -> None:
        """Take versions away for good, those that refer to others before these; Rule 4."""
        held = self._to.versions
        for key in reversed(_in_order({key: held[key] for key in keys})[0]):
            if key not in self._from.versions and self._source.version(*key) is not None:
                continue  # it came while the source was read
            hidden = held[key].deleted or self._take(key, permanent=False)
            if hidden and self._take(key, permanent=True):
                del held[key]
                self._report.outcomes["removed"] += 1

    def _take(self, key: Key, *, permanent: bool) -> bool:
        return self._write(_path(key), key[0], lambda: self._target.delete(key, permanent=permanent))

    def _write(self, path: str, subject: str, write: Callable[[], None]) -> bool:
        """Write to a subject, or elsewhere; a refusal is reported, and others may still be taken."""
        try:
            if subject:
                self._open(subject)
            write()
        except ConfluentRefusal as error:
            if not error.is_about_one:
                raise
            self._report.add([{"xid": path, "outcome": "refused", "detail": str(error)}])
            return False
        return True

    # ---- settings

    def _copy_configs(self) -> None:
        """Set what is set at the source; of contexts also what is in force, since servers inherit differently."""
        for scope in self._scopes:
            wanted = self._from.configs[scope]
            now = self._to.configs[scope] if scope in self._to.configs else self._target.config(scope)
            if not wanted and scope in self._contexts:
                force = self._source.config(scope, effective=True)
                wanted = now if force == self._target.config(scope, effective=True) else force
            if wanted != now and (wanted or scope):
                self._set_config(scope, wanted, now)

    def _set_config(self, scope: str, wanted: Json, now: Json) -> None:
        subject = "" if scope in self._contexts else scope
        if not subject and self._target.mode(scope, effective=True).startswith("READONLY"):
            self._target.set_mode(scope, "READWRITE")  # until the modes are set
        if self._write(f"/config/{scope}", subject, lambda: self._target.set_config(scope, wanted, now)):
            self._report.outcomes["configured"] += 1

    def _copy_modes(self) -> None:
        for scope in self._scopes:
            wanted, wide = self._wanted_mode(scope), not scope or scope in self._contexts
            now = self._target.mode(scope) if wide else self._to.modes.get(scope, "")
            if scope and wide and not wanted and not self._copy._guarded:
                force = self._source.mode(scope, effective=True)
                wanted = now if force == self._target.mode(scope, effective=True) else force
            if wanted != now:
                self._target.set_mode(scope, wanted)
                self._report.outcomes["configured"] += 1

    def _wanted_mode(self, scope: str) -> str:
        if self._copy._guarded:
            return "" if scope else "READONLY"
        return self._from.modes.get(scope, "") or ("" if scope else "READWRITE")

    @cached_property
    def _contexts(self) -> dict[str, None]:
        """The contexts of the source as scopes, without the default one."""
        return dict.fromkeys(map(_scope, self._from.contexts[1:]))

    @cached_property
    def _scopes(self) -> list[str]:
        return ["", *self._contexts, *self._from.subjects]

    def _open(self, subject: str) -> None:
        if subject not in self._opened:
            if self._to.modes.get(subject) != "IMPORT":
                self._target.set_mode(subject, "IMPORT")
            self._opened[subject] = None

    def _close(self) -> None:
        """Set the modes of the subjects that were written; all of them, whatever fails on the way."""
        failure: RemoteError | None = None
        for subject in self._opened:
            try:
                self._target.set_mode(subject, self._wanted_mode(subject))
                self._to.modes[subject] = self._wanted_mode(subject)
            except RemoteError as error:
                failure = error
                if not isinstance(error, ConfluentRefusal):
                    break
        if failure is not None:
            raise failure

    # ---- what came of it

    def _verify(self) -> None:
        """Compare the target, version by version and id by id, with the source."""
        copy = self._copy
        held = self._to
        if self._report.outcomes:  # else it is as it was read
            held = self._target.read(copy._held, self._from.subjects, copy._progress)
        copy._held = held
        for key, one in self._from.versions.items():
            other = held.versions.get(key)
            path = _path(key)
            if path in self._report.problems:
                continue
            if other is None or not one.is_like(other) or one.deleted != other.deleted:
                self._trouble("conflict", key, _difference(one, other))
                continue
            if one.guid and other.guid and one.guid != other.guid:
                words = f"its guid is {one.guid} at the source and {other.guid} here, so payloads that are framed"
                self._report.note(path, f"{words} by guid do not find it")
            self._verify_id(one)
        for scope in self._scopes:
            wanted = self._from.configs[scope]
            there = held.configs[scope] if scope in held.configs else self._target.config(scope)
            if wanted and wanted != there and f"/config/{scope}" not in self._report.problems:
                detail = f"the settings of '{scope or 'all'}' are others at {self._target.name}"
                self._report.add([{"xid": f"/config/{scope}", "outcome": "conflict", "detail": detail}])

    def _verify_id(self, one: VersionCopy) -> None:
        id_ = (one.context, one.id)
        if id_ in self._copy._verified:
            return
        text = self._target.text_of_id(*id_)
        if text is None or (
            text != one.content.text and _spelled(Content(one.content.type, text)) != _spelled(one.content)
        ):
            self._trouble("conflict", one.key, f"the id {one.id} stands for another schema at {self._target.name}")
            return
        self._copy._verified.add(id_)
        self._report.outcomes["verified"] += 1
        if self._report.outcomes["verified"] % _STEP == 0:
            self._copy._progress(f"verified {self._report.outcomes['verified']:,} ids of {self._target.name}")

    def _trouble(self, outcome: str, key: Key, detail: str) -> None:
        self._report.add([{"xid": _path(key), "outcome": outcome, "detail": detail}])


def _path(key: Key) -> str:
    return f"/subjects/{key[0]}/versions/{key[1]}"


def _words(key: Key) -> str:
    return f"version {key[1]} of '{key[0]}'"


def _difference(one: VersionCopy, other: VersionCopy | None) -> str:
    """What differs between a version at the source and the one of its number at the target."""
    if other is None:
        return "it is not at the target"
    if one.id != other.id:
        return f"it has the id {one.id} at the source and {other.id} at the target"
    if not one.is_like(other):
        return "the target has another schema under its id and number"
    return f"it is {'deleted' if one.deleted else 'there'} at the source and not so at the target"


def _in_order(found: Mapping[Key, VersionCopy]) -> tuple[list[Key], list[Key]]:
    """Versions so that each comes after those that it refers to; and a circle, where some refer to each other in one.

    What is in a circle, or refers to one, is left out.
    """
    sorter = TopologicalSorter({key: [each for each in one.needs() if each in found] for key, one in found.items()})
    circle: list[Key] = []
    try:
        sorter.prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1]))
    ordered: list[Key] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=lambda key: (found[key].id, key))
        ordered += ready
        sorter.done(*ready)
    return ordered, circle
