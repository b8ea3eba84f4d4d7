"""A registry in a store: one read or write at a time, each in a transaction of its own.

Rule 1: a write is one unit: read the request into the work, check the whole, commit, show; any error undoes all of it
(HTTP-7), also one that comes while the answer is made.
Rule 2: clock, ids and include loader are given from outside.
Rule 3: schemas are checked while others write (`formats`): a write whose checks take long gives its turn back, makes
them, and is tried again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import local
from typing import Any, TypeVar

import orjson

from signalbook.dialects.convert import read, write
from signalbook.errors import RegistryError, UsageError
from signalbook.jsontext import Json
from signalbook.model.normalise import error_in_version
from signalbook.model.xids import ID, must_match
from signalbook.registry import changes, filters, rows, schema_ids
from signalbook.registry.capabilities import OFFER, Offer, Setup, create_setup, generation, load_setup
from signalbook.registry.changes import Snapshot
from signalbook.registry.formats import AT_WORST, IN_TURN, TURNS, Postponed, Readings
from signalbook.registry.read.reads import Page, read_target
from signalbook.registry.read.render import Limits, ReadContext
from signalbook.registry.rows import Ahead
from signalbook.registry.store import Connection, Job, Store, StoreBusy
from signalbook.registry.urls import Flags, RequestTarget, find_target, parse_flags
from signalbook.registry.work import Work
from signalbook.registry.write.checks import check_work
from signalbook.registry.write.commit import commit, leave_same, open_load, refuse_other
from signalbook.registry.write.operations import WriteOutcome, perform, show
from signalbook.registry.write.versions import Ask
from signalbook.spec import versions
from signalbook.spec.builtin import RECORDED
from signalbook.spec.dialects import DIALECTS
from signalbook.spec.dialects.dialect import CANONICAL
from signalbook.spec.versions import RC4, SpecVersion

__all__ = ["RequestResult", "Requests", "Write", "newest_snapshot", "now", "rewritten", "with_log", "with_meta"]

T = TypeVar("T")

# An answer in an older dialect: read as today's, and rewritten as a whole.
#
# Rule: what the dialect has no word for (a model's own types, a resource's meta) is shown as it is, or not at all.


def rewritten(page: Page, target: RequestTarget, dialect: str) -> Page:
    """A page of 1.0-rc4 as a dialect has it."""
    if target.kind == "meta":
        raise RegistryError("not_found", target.path, detail=f'There is no "meta" in "{dialect}".')
    shape = _SHAPES.get(target.kind)
    if shape is None:
        return page
    content = shape(orjson.loads(page.text), target, dialect)
    return replace(page, text=orjson.dumps(content).decode())


def with_meta(flags: Flags, target: RequestTarget) -> Flags:
    """The flags of a read that is to be rewritten: what 1.0 has in a resource's meta, older dialects have beside it."""
    if target.kind in ("resource", "resources"):
        return replace(flags, inline=(*flags.inline, "meta"))
    if target.kind == "registry":
        paths = [f"{plural}.{resource}" for plural, (_, resources) in CANONICAL.items() for resource in resources]
    else:
        paths = list(target.group_type.resources) if target.kind in ("group", "groups") else []
    shown = [path for path in paths if any(one == path or one.startswith(f"{path}.") for one in flags.inline)]
    return replace(flags, inline=(*flags.inline, *(f"{path}.meta" for path in shown)))


def newest_snapshot(db: Connection, xid: str, entity: Json) -> Snapshot:
    """The newest snapshot of a message; one that shows another's content (xref) has no log of its own."""
    return changes.latest_snapshot(db, xid) or Snapshot(1, entity.get("modifiedat", ""), _authored(entity))


def with_log(db: Connection, xid: str, entity: Json) -> Json:
    """A message as its newest snapshot has it, and with its log for versions, each under its number."""
    line = changes.listing(db, xid, 0, 1 << 31) or [newest_snapshot(db, xid, entity)]
    versions = {str(one.number): {**one.attrs, "versionid": str(one.number), "createdat": one.at} for one in line}
    return {**versions[str(line[-1].number)], "versions": versions}


def _authored(message: Json) -> Json:
    """What of a message its author controls."""
    left = {"self", "xid", "epoch", "isdefault", "ancestor", "ancestorid", "metaurl", "meta", "versionsurl"}
    left |= {"versionscount", "createdat", "modifiedat", "versionid", "messageid", "shortself"}
    return {name: value for name, value in message.items() if name not in left}


def _rewrite(entity: Json, level: str, dialect: str) -> Any:
    reading = read(entity, DIALECTS[RC4.name], level)
    return write(reading, DIALECTS[dialect])[0]


def _level(target: RequestTarget) -> str:
    """The level of what is addressed, or of a collection's members; empty where it is another model's."""
    level, resources = CANONICAL.get(target.group_type.plural, ("", {}))
    if target.resource is None:
        return level if target.kind in ("groups", "group") else ""
    return resources.get(target.resource.plural, "")


def _one(content: Json, target: RequestTarget, dialect: str) -> Any:
    level = _level(target)
    return _rewrite(content, level, dialect) if level else content


def _map(content: Json, target: RequestTarget, dialect: str) -> Any:
    level = _level(target)
    return {key: _rewrite(entity, level, dialect) for key, entity in content.items()} if level else content


def _registry(content: Json, target: RequestTarget, dialect: str) -> Any:
    return _rewrite(content, "registry", dialect)


_SHAPES: Mapping[str, Callable[[Json, RequestTarget, str], Any]] = {
    "registry": _registry,
    "export": _registry,
    "groups": _map,
    "group": _one,
    "resources": _map,
    "resource": _one,
    "versions": _map,
    "version": _one,
}


def now() -> str:
    """Return this instant as the registry writes it."""
    return datetime.now(UTC).isoformat()[:-6] + "Z"


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What a request leads to."""

    target: RequestTarget
    spec: SpecVersion
    page: Page | None = None
    outcome: WriteOutcome | None = None
    correlation: str = ""
    # Of a part of a load: how many groups and resources in it were new or changed.
    written: tuple[int, int] | None = None
    # The number of the change that a write made; None where it changed nothing.
    sequence: int | None = None


@dataclass(slots=True)
class Write:
    """A write that has begun: its method, what it addresses, how it is answered, and its entities in memory."""

    method: str
    context: ReadContext
    work: Work
    correlation: str


class Requests:
    """The operations of one registry, as the HTTP server and the Python API share them."""

    def __init__(
        self, store: Store, spec: SpecVersion, *, offer: Offer = OFFER, limits: Limits | None = None,
        clock: Callable[[], str] = now, load_include: Callable[[str], Any] | None = None,
        reserved: frozenset[str] = frozenset(), recorded: frozenset[str] = RECORDED, read_only: bool = False,
    ) -> None:  # fmt: skip
        self.store = store
        self.spec = spec
        self.offer = replace(offer, current=spec.name)  # the version that answers without a flag are in
        self.limits = limits or Limits()
        self._clock = clock
        self._load_include = load_include
        self._reserved = reserved
        self._recorded = recorded
        self.read_only = read_only  # somebody else sees to it; here it is only shown
        self._setup: Setup | None = None
        self._threads = local()

    def create(self, registryid: str, source: Any) -> None:
        """Make the registry where the store has none yet; a store keeps the id and the model it has."""
        if not ID.fullmatch(registryid):
            raise UsageError(f"'{registryid}' cannot be a registry's id: an id {must_match(ID)}")

        def job(db: Connection) -> None:
            if rows.load(db, rows.REGISTRY_KEY) is None:
                create_setup(db, registryid, source, self.offer.initial(), self._clock())

        if self.store.reader().one("SELECT 1 FROM settings WHERE name = 'registryid'") is None:
            self.store.write(job)

    def release(self, names: frozenset[str]) -> None:
        """Let a model have group types of names that were reserved."""
        self._reserved -= names

    def enter_contexts(self, chosen: schema_ids.Contexts) -> None:
        """Choose which schema groups are contexts, and give the schemas that are in them ids where they have none."""

        def job(db: Connection) -> None:
            schema_ids.save_contexts(db, chosen)
            setup = self.setup(db)
            work = Work(db, setup.model, setup.capabilities, setup.registryid, self._clock(), self.offer)
            for group in work.groups_of(setup.model.groups[schema_ids.GROUPS]):
                group.refreshed = True
            commit(work, self.correlation())

        db = self.store.reader()
        if not schema_ids.are_entered(db, chosen):
            self.store.write(job)

    @property
    def known(self) -> Setup | None:
        """The setup as this process last saw it."""
        return self._setup

    def correlation(self) -> str:
        """Return a new name for one interaction: EVENTS-5."""
        return secrets.token_hex(8)

    def setup(self, db: Connection) -> Setup:
        """Return the setup that is in force in the store now."""
        known = self._setup
        if known is None or known.generation != generation(db):
            known = self._setup = load_setup(db)
        return known

    def version(self, flags: Flags, setup: Setup, path: str) -> SpecVersion:
        """Return the specification version that a request is answered in: FLAGS-8."""
        if flags.specversion is None:
            return self.spec
        found = versions.find(flags.specversion)
        if found is None or found.name not in setup.capabilities.specversions:
            known = ",".join(sorted(setup.capabilities.specversions))
            raise RegistryError("unsupported_specversion", path, specversion=flags.specversion, list=known)
        return found

    def shown_version(self, flags: Flags, setup: Setup, path: str) -> SpecVersion:
        """Return the version that a read is answered in, which may be an older one."""
        older = versions.find_older(flags.specversion) if flags.specversion is not None else None
        if older is None or (older.logged and path != "/export"):
            return self.version(flags, setup, path)
        return older

    def flags(self, query: str | Flags, setup: Setup, path: str) -> Flags:
        """Return the flags of a query, of which only those count that the registry has switched on."""
        if isinstance(query, Flags):
            return query
        if not query:
            return Flags.EMPTY
        capabilities = setup.capabilities
        subject = path.rstrip("/") or "/"
        return parse_flags(query, capabilities.parameters, path=subject, ignores=capabilities.ignores)

    def read(self, path: str, query: str | Flags, base: str) -> RequestResult:
        """Answer a GET of metadata; flags that are given, not parsed, count whatever the registry has switched on."""
        return self.store.read(lambda db: self.read_in(db, path, query, base))

    def read_in(self, db: Connection, path: str, query: str | Flags, base: str) -> RequestResult:
        """Answer a GET within a transaction that is open already."""
        setup = self.setup(db)
        target = find_target(setup.model, path)
        flags = self.flags(query, setup, path)
        spec = self.shown_version(flags, setup, target.path)
        return RequestResult(target, spec, self.page(ReadContext(db, setup, target, flags, spec, base, self.limits)))

    def page(self, context: ReadContext) -> Page:
        """Return what a GET shows, within a transaction."""
        target, spec, setup = context.target, context.spec, context.setup
        if spec.dialect:
            flags = with_meta(context.flags, target)
            page = self.page(replace(context, flags=flags, spec=versions.RC4, piecewise=False))
            return self._logged(context, page) if spec.logged else rewritten(page, target, spec.dialect)
        kind = target.kind
        if self.read_only and kind in _SHOW_CAPABILITIES:
            setup = replace(setup, capabilities=setup.capabilities.read_only())
            context = replace(context, setup=setup)
        if kind in _DOCUMENTS:
            if kind not in setup.capabilities.available:
                raise RegistryError("not_available", kind)
            if kind != "export":
                return Page(_DOCUMENTS[kind](self, setup, spec))
            flags = context.flags.as_export(setup.capabilities.available)
            context = replace(context, flags=flags)
        return read_target(context)

    def _logged(self, context: ReadContext, page: Page) -> Page:
        """Return an export in a dialect whose messages have their log for versions."""
        reading = read(orjson.loads(page.text), DIALECTS[RC4.name], "registry")
        room = self.limits.size
        for groupid, group in (reading.content.get("messagegroups") or {}).items():
            for messageid in group.get("messages") or {}:
                target = find_target(context.setup.model, f"/messagegroups/{groupid}/messages/{messageid}")
                shown = self.page(replace(context, target=target, flags=Flags.EMPTY, spec=RC4, piecewise=False))
                group["messages"][messageid] = with_log(context.db, target.xid, orjson.loads(shown.text))
                room -= len(orjson.dumps(group["messages"][messageid]))
                if room < 0:
                    raise RegistryError("too_large", "/export")
        return replace(page, text=orjson.dumps(write(reading, DIALECTS[context.spec.dialect])[0]).decode())

    def write(self, job: Job[T], *, several: bool = False) -> T:
        """Return what a job returns that writes, once, or `several` times, in a transaction of its own.

        The job is run again where schemas are checked meanwhile, and where they have changed since.
        """
        made: list[Readings] = []  # only where the write has a schema to check

        def ask(steps: int) -> Readings:
            if not made:
                made.append(Readings())
                made[0].begin(steps)
            return made[0]

        def turn(steps: int, db: Connection) -> T:
            for readings in made:
                readings.begin(steps)
            self._threads.readings, self._threads.several = partial(ask, steps), several
            try:
                result = job(db)
            finally:
                self._threads.readings = None
            if any(readings.is_postponed for readings in made):
                raise Postponed
            return result

        for number in range(TURNS):
            try:
                return self.store.write(partial(turn, IN_TURN if number < TURNS - 1 else AT_WORST))
            except Postponed:
                self.store.read(made[0].catch_up)
        raise StoreBusy("schemas that the request depends on are changed as fast as they are checked: send it again")

    def begin_write(
        self, db: Connection, method: str, path: str, query: str | Flags, base: str, correlation: str, *,
        recorded: bool = True, judged: bool = False,
    ) -> Write:  # fmt: skip
        """Begin a write within a transaction: read what it addresses and its flags, so that its body can be read.

        With `recorded` false it takes no snapshot for the log, which has what it brings or gets that itself. With
        `judged` true the caller has decided about formats and compatibility: what the registry finds is noted.
        """
        setup, target, ahead = self._begin(db, path)
        flags = self.flags(query, setup, path)
        spec = self.version(flags, setup, target.path)
        if flags.filters:
            filters.parse(flags.filters, f"{target.path}?{flags.raw}")  # it shapes no write, but must be one
        work = Work(
            db, setup.model, setup.capabilities, setup.registryid, self._clock(), self.offer, flags.ignore, spec,
            load_include=self._load_include, reserved=self._reserved,
            recorded=self._recorded if recorded else frozenset(), ahead=ahead, judged=judged,
            ask_readings=getattr(self._threads, "readings", None) or Readings,
        )  # fmt: skip
        return Write(method, ReadContext(db, setup, target, flags, spec, base, self.limits), work, correlation)

    def finish_write(self, begun: Write, body: Any, ask: Ask) -> RequestResult:
        """Do what a write asks for with its body: read it into the work, check the whole, commit, show."""
        work, context = begun.work, begun.context
        target, db = context.target, context.db
        load = open_load(db, ask.load, work.now) if ask.load else None
        written: tuple[int, int] | None = None
        if load is not None:
            work.now = load.at
        try:
            outcome = perform(work, begun.method, target, body, context.flags, ask)
            check_work(work)
        except RegistryError as error:
            raise error_in_version(error, context.spec) from None
        if work.readings is not None and work.readings.is_postponed and not self._threads.several:
            raise Postponed
        if load is not None:
            if isinstance(body, dict) and begun.method == "POST":
                refuse_other(work, body, work.groups.get(rows.group_key(target.xid)) if target.group else None)
            written = leave_same(work, load)
        sequence = commit(work, begun.correlation)
        if work.new_settings:
            setup = load_setup(db)
            if target.kind != "registry" or target.group is not None:
                target = find_target(setup.model, target.path)
            context = replace(context, setup=setup, target=target)
        page = self._written(work, context) if outcome.shown == "resource" and not context.flags.raw else None
        if page is None:
            page = show(self, context, outcome)
        return RequestResult(target, context.spec, page, outcome, begun.correlation, written, sequence)

    def _begin(self, db: Connection, path: str) -> tuple[Setup, RequestTarget, Ahead | None]:
        """Return the setup in force, what a path addresses, and what is stored there where that is one resource.

        The last setup seen is taken for the one in force until what is read with its help says otherwise, so that one
        statement does for all.
        """
        known = self._setup
        with suppress(RegistryError):  # by the setup in force it may be another, or none
            target = find_target(known.model, path) if known is not None else None
            if known is not None and target is not None and target.rid:
                ahead = rows.load_ahead(db, target.group_xid, target.resource_xid)
                if ahead is not None and ahead.generation == known.generation:
                    return known, target, ahead
        setup = self.setup(db)
        return setup, find_target(setup.model, path), None

    def _written(self, work: Work, context: ReadContext) -> Page | None:
        """Return the resource just written from the rows at hand; None where they are not all there."""
        key = rows.resource_key(context.target.xid)
        state = work.resources.get(key)
        row = work.saved.get(key) or (state.row if state is not None else None)
        default = work.saved.get(row.link or "") if row is not None else None
        if row is None or default is None:
            return None
        return Page(context.view().resource(context.target.resource_type, row, default))


def latest_change(db: Connection) -> str:
    """Return a name for the state of the whole store: the latest change's number and name.

    Numbers alone come again where an older copy of a store is put in its place.
    """
    found = db.one("SELECT seq, correlation FROM changes ORDER BY seq DESC LIMIT 1")
    return f"{found[0]}.{found[1]}" if found is not None else "0"


# An export shows the capabilities that are stored, as it may be loaded elsewhere.
_SHOW_CAPABILITIES = frozenset({"capabilities", "registry"})

_DOCUMENTS: dict[str, Callable[[Requests, Setup, SpecVersion], str]] = {
    "capabilities": lambda requests, setup, spec: orjson.dumps(setup.capabilities.to_dict(spec.name)).decode(),
    "capabilitiesoffered": lambda requests, setup, spec: orjson.dumps(requests.offer.to_dict(spec.name)).decode(),
    "export": lambda requests, setup, spec: "",
    "model": lambda requests, setup, spec: setup.full_model(spec),
    "modelsource": lambda requests, setup, spec: setup.source,
}


def spec_version(name: str) -> SpecVersion:
    """Return a version by its name, or say which there are."""
    found = versions.find(name)
    if found is None:
        raise UsageError(f"specversion '{name}' is not one of {', '.join(sorted(versions.VERSIONS))}")
    return found
