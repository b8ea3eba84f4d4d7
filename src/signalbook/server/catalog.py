"""The catalog that a registry holds, compiled and kept up to date while requests are answered by it.

Rule 1: of a write only what it changed is read and compiled, and what derives from that: milliseconds, however large
the catalog is. Where that cannot be known (another model, a record of changes that was trimmed) all is compiled anew.
Rule 2: what a small write changed, the request that finds it compiles itself. All else is compiled by one thread, for
all requests that wait. A request waits for the state that it found in the store; where a compile takes longer than
`PATIENCE`, it is answered by the catalog as it was before.
Rule 3: what an id of Confluent's stands for is asked of the store where no version has it any more: payloads outlive
schemas.
Rule 4: an answer says the number of the change that its catalog stands at. A request that demands a later one waits for
it, for `LONGEST` at most, and is then refused.
Rule 5: the store is read in pages, all in one snapshot, which ends before anything is compiled.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import orjson

from signalbook.budget import UNLIMITED, within
from signalbook.errors import RegistryError
from signalbook.messages.catalog import Catalog, CatalogError
from signalbook.messages.definition import Entities, addresses_of
from signalbook.messages.schema_library import KnownSchema, SchemaPolicy
from signalbook.registry import schema_ids
from signalbook.registry.read import queries
from signalbook.registry.requests import Requests
from signalbook.registry.store import Connection, Store
from signalbook.schemas.canonical import format_of
from signalbook.schemas.framing import Mark
from signalbook.spec import versions

__all__ = ["LONGEST", "PATIENCE", "AskedCatalog", "RegistryCatalog"]

PATIENCE = 1.0
"""The seconds that a compile may take before requests are answered by the catalog as it was before."""

LONGEST = 20.0
"""The seconds that a request waits for a catalog where there is none that it can be answered by."""

# Forms of one catalog that are kept, by the addresses that reach it.
_MOST_FORMS = 64
# More changed entities than this, or than a quarter of all, are compiled with all others.
_MOST_CHANGED = 1000
# So many changed entities, with so many definitions made of them and so many characters of JSON, are compiled by the
# request that finds them.
_FEW = 16
_FEW_DEFINITIONS = 64
_FEW_CHARACTERS = 1 << 18
# Where more definitions than this differ, indexes are made before the first request asks.
_MANY = 100
# So many requests may wait for longer than `PATIENCE`: each of them has a thread.
_MOST_WAITING = 8
_IDLE = 10.0
_COLLECTIONS = {"schemagroups": "schemas", "messagegroups": "messages", "endpoints": "messages"}
_NEWEST = (
    "SELECT value, seq, correlation FROM settings LEFT JOIN"
    " (SELECT seq, correlation FROM changes ORDER BY seq DESC LIMIT 1) AS newest ON 1 = 1 WHERE name = 'generation'"
)
_CHANGES = (
    "SELECT seq, correlation, events, (SELECT value FROM settings WHERE name = 'generation')"
    " FROM changes WHERE seq >= ? ORDER BY seq LIMIT ?"
)
_hosts = re.compile(r"https?://([^/\\\"#?\s]+)", re.IGNORECASE).findall

Documents = dict[str, dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class AskedCatalog:
    """A catalog, and the number of the change that it stands at."""

    catalog: Catalog
    sequence: int


@dataclass(frozen=True, slots=True)
class _State:
    """The catalog of one state of the store; `hosts` are those that stand in its documents.

    `forms` are the catalog as it is reached by addresses that stand in it; `older` are forms of a state before, each
    with what has changed since.
    """

    name: str
    sequence: int
    catalog: Catalog
    hosts: frozenset[str]
    forms: dict[tuple[str, ...], Catalog] = field(default_factory=dict)
    older: dict[tuple[str, ...], tuple[Catalog, Documents]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Changed:
    """What makes another state of one that is known: its name, and the JSON text of what differs (None: it is gone)."""

    name: str
    texts: dict[str, str | None]


class RegistryCatalog:
    """The catalog that a registry holds, by the state of its store.

    It has as many forms as addresses by which it is reached and which its own documents name: a schema that is named by
    such an address is one of its own. With `asks_store` the store is asked for schemas that wrote payloads and have no
    version any more; without, a catalog needs no store once it is made.
    """

    def __init__(
        self,
        store: Store,
        policy: SchemaPolicy = SchemaPolicy(),  # noqa: B008
        bases: tuple[str, ...] = (),
        *,
        asks_store: bool = True,
    ) -> None:
        self._store = store
        self._policy = replace(policy, kept=self._kept) if asks_store else policy
        self._bases = bases
        self._requests = Requests(store, versions.DEFAULT)
        self._known: _State | None = None
        self._compiling = threading.Lock()
        self._making_forms = threading.Lock()
        # Requests that wait for the thread that compiles: each has a number, and the thread says up to which it came.
        self._turn = threading.Condition()
        self._asked = self._done = 0
        self._began: float | None = None
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        self._waiting = 0

    def current(self) -> Catalog:
        """The catalog as the store has it now, compiled here; the same one where nothing was written since."""
        return self._compiled().catalog

    def reached_by(self, base: str, host: str = "") -> Catalog:
        """The catalog for a client that reaches the server by an address, and names a host."""
        return self.asked(base, host).catalog

    def asked(self, base: str, host: str = "", since: int = 0, path: str = "/") -> AskedCatalog:
        """The same, of a state that has the change of a number in it.

        Only where the documents name such an address is anything compiled for it: addresses are made up at will.
        """
        state = self._state(since, path)
        hosts = (f"http://{host}", f"https://{host}") if host else ()
        roots = tuple(dict.fromkeys(root for one in (base, *hosts, *self._bases) if one for root in addresses_of(one)))
        named = tuple(root for root in roots if _host(root) in state.hosts)
        catalog = self._form(state, named) if named else state.catalog
        return AskedCatalog(catalog.addressed(*roots), state.sequence)

    def _form(self, state: _State, named: tuple[str, ...]) -> Catalog:
        form = state.forms.get(named)
        if form is not None:
            return form
        # All requests that follow use it, so the one that came first neither pays for it nor ends it.
        with self._making_forms, within(UNLIMITED):
            form = state.forms.get(named)
            if form is None:
                before = state.older.pop(named, None)
                form = state.catalog.reached_by(*named) if before is None else before[0].changed(before[1])
                if len(state.forms) >= _MOST_FORMS:
                    state.forms.clear()
                state.forms[named] = form
            return form

    def _kept(self, group: str, mark: Mark) -> KnownSchema | None:
        """The schema that a payload was written with, in the context of a group, though no version has it any more."""
        db = self._store.reader()
        if mark.schemaid is None:
            found = next(iter(schema_ids.by_guid(db, mark.guid or "")), None)
        else:
            found = schema_ids.by_id(db, schema_ids.context_of(db, group) or schema_ids.DEFAULT, mark.schemaid)
        if found is None:
            return None
        content = found.content
        attributes = {
            "format": format_of(content.type, content.text),
            "schema": content.text,
            "confluentreferences": [one.shown() for one in content.references],
        }
        return KnownSchema(f"{schema_ids.group_of(db, found.context) or ''}/schemas/", attributes)

    # Waiting for the thread that compiles --------------------------------------------------------------------------

    def _state(self, since: int, path: str) -> _State:
        """The state of the store, or the one before where that is not compiled in time."""
        wanted = _name(self._store.reader())
        known = self._known
        if known is not None and known.name == wanted:
            found = known
        else:
            newest = _sequence(wanted)
            if since > newest:
                raise _unknown(since, newest, path)
            found = self._made_here(wanted) or self._awaited(wanted, since, path)
        if since > found.sequence:
            raise _unknown(since, found.sequence, path)
        return found

    def _made_here(self, wanted: str) -> _State | None:
        """The state of the store, where it is known already or a few changes make it of the one that is known."""
        if self._known is None or self._began is not None or not self._compiling.acquire(timeout=PATIENCE):
            return None
        try:
            with within(UNLIMITED):
                known = self._known
                if known.name == wanted:
                    return known
                read = self._store.read(lambda db: self._read_changes(db, known, few=True))
                if read is None:
                    return None
                self._known = made = self._updated(known, read)
                return made
        except CatalogError:  # it cannot be said what has changed
            return None
        finally:
            self._compiling.release()

    def _awaited(self, wanted: str, since: int, path: str) -> _State:
        asked = monotonic()
        with self._turn:
            self._asked += 1
            number = self._asked
            self._start()
            while self._done < number:
                known, now = self._known, monotonic()
                if known is not None and known.name == wanted:
                    return known
                is_enough = known is not None and known.sequence >= since
                until = (self._began or now) + PATIENCE if is_enough else asked + LONGEST
                if now >= until or (not is_enough and now >= asked + PATIENCE and self._waiting > _MOST_WAITING):
                    if known is not None and is_enough:
                        return known
                    raise _not_yet(known, since, path)
                self._waiting += 1
                self._turn.wait(min(until - now, PATIENCE))
                self._waiting -= 1
            known = self._known
            if known is None or (self._failure is not None and known.name != wanted):
                raise self._failure or _not_yet(known, since, path)
            return known

    def _start(self) -> None:
        """Wake the thread that compiles; the caller holds the turn."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="signalbook-catalog", daemon=True)
            self._thread.start()
        self._turn.notify_all()

    def _work(self) -> None:
        while True:
            with self._turn:
                if self._done == self._asked:
                    self._turn.wait(_IDLE)
                if self._done == self._asked:
                    self._thread = None
                    return
                number, self._began = self._asked, monotonic()
            failure: Exception | None = None
            try:
                self._compiled()
            except Exception as error:  # whoever waits is told
                failure = error
            with self._turn:
                self._done, self._began, self._failure = number, None, failure
                self._turn.notify_all()

    # Compiling -----------------------------------------------------------------------------------------------------

    def _compiled(self) -> _State:
        with self._compiling, within(UNLIMITED):
            self._known = state = self._of()
            return state

    def _of(self) -> _State:
        """The state that the store is in."""
        known = self._known
        if known is not None:
            read = self._store.read(lambda db: self._read_changes(db, known))
            if read is not None:
                try:
                    return self._updated(known, read)
                except CatalogError:  # it cannot be said what has changed
                    pass
        return self._anew(known, *self._store.read(self._read_all))

    def _read_all(self, db: Connection) -> tuple[str, Entities, set[str]]:
        """The name of the state that the store is in, all its entities, and the hosts that stand in them."""
        groups, hosts = self._requests.setup(db).model.groups, set[str]()

        def entries() -> Iterator[tuple[str, dict[str, Any]]]:
            for plural, resources in _COLLECTIONS.items():
                for xid, text in queries.all_of(db, groups[plural], resources) if plural in groups else ():
                    hosts.update(_hosts_in(text))
                    yield xid, orjson.loads(text)

        return _name(db), Entities.of_entries(entries()), hosts

    def _anew(self, known: _State | None, name: str, entities: Entities, hosts: set[str]) -> _State:
        if known is None:
            catalog = Catalog(entities, schemas=self._policy, lock=threading.RLock)
        else:
            catalog = known.catalog.updated_entities(entities).prepared_as(known.catalog)
        return _State(name, _sequence(name), catalog, frozenset(hosts))

    def _read_changes(self, db: Connection, known: _State, *, few: bool = False) -> _Changed | None:
        """What was written since a state; None where that cannot be known, or is too much."""
        recorded = _recorded(db, known)
        if recorded is None:
            return None
        name, xids = recorded
        most = _FEW if few else max(_MOST_CHANGED, len(known.catalog.definitions) // 4)
        if len(xids) > most or (few and known.catalog.count_made_of(xids) > _FEW_DEFINITIONS):
            return None
        texts: dict[str, str | None] = dict.fromkeys(xids)
        texts.update(self._texts(db, xids))
        if few and sum(len(text) for text in texts.values() if text is not None) > _FEW_CHARACTERS:
            return None
        return _Changed(name, texts)

    def _texts(self, db: Connection, xids: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
        """The entities of these xids that are there; each is given with whether it is a group."""
        groups = self._requests.setup(db).model.groups
        for plural, resources in _COLLECTIONS.items():
            kind, within_ = groups.get(plural), f"/{plural}/"
            if kind is None:
                continue
            if whole := [xid for xid, is_group in xids.items() if is_group and xid.startswith(within_)]:
                yield from queries.some_groups(db, whole)
            single = [xid for xid, is_group in xids.items() if not is_group and xid.startswith(within_)]
            if single and resources in kind.resources:
                yield from queries.some_resources(db, kind.resources[resources], single)

    def _updated(self, known: _State, read: _Changed) -> _State:
        changes: Documents = {xid: None if text is None else orjson.loads(text) for xid, text in read.texts.items()}
        hosts = known.hosts.union(*(_hosts_in(text) for text in read.texts.values() if text is not None))
        catalog = known.catalog.changed(changes)
        if len(changes) > _MANY:
            catalog.prepared_as(known.catalog)
        forms = {named: (form, dict[str, Any]()) for named, form in known.forms.items()}
        older = {named: (form, {**before, **changes}) for named, (form, before) in {**known.older, **forms}.items()}
        older = {named: row for named, row in older.items() if len(row[1]) <= _MOST_CHANGED}
        return _State(read.name, _sequence(read.name), catalog, hosts, older=older)


def _recorded(db: Connection, known: _State) -> tuple[str, dict[str, bool]] | None:
    """The name of the state that the store is in, and the xids of what was written since another.

    Each xid has whether it is a group's. None where that is not recorded.
    """
    rows = db.execute(_CHANGES, (known.sequence, _MOST_CHANGED + 2))
    if not rows or len(rows) > _MOST_CHANGED + 1:
        return None
    change, _, generation = known.name.partition(" ")
    last = rows[-1]
    if last[3] != generation:
        return None
    if known.sequence:
        if f"{rows[0][0]}.{rows[0][1]}" != change:
            return None
        rows = rows[1:]
    elif db.one("SELECT value FROM settings WHERE name = 'trimmed'") is not None:
        return None
    return f"{last[0]}.{last[1]} {generation}", _xids(row[2] for row in rows)


def _xids(changes: Iterable[str]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for text in changes:
        for _, subject, changed, *_ in orjson.loads(text):
            _, plural, *rest = subject.split("/")
            resources = _COLLECTIONS.get(plural)
            if resources is None or not rest:
                continue
            is_group = len(rest) < 3
            counted = {"epoch", "createdat", "modifiedat", resources, f"{resources}count"}
            if is_group and changed is not None and counted.issuperset(changed):
                continue  # only its resources are others
            found["/".join(("", plural, *rest[: 1 if is_group else 3]))] = is_group
    return found


def _name(db: Connection) -> str:
    """What is another with every write to entities, model or capabilities: the latest change, and their generation.

    A number alone comes again where an older copy of a store is put in its place, so a change has a name beside it.
    """
    found = db.one(_NEWEST)
    if found is None:
        return "0 "
    generation, seq, correlation = found
    return f"{seq}.{correlation} {generation}" if seq is not None else f"0 {generation}"


def _sequence(name: str) -> int:
    return int(name.partition(" ")[0].partition(".")[0])


def _hosts_in(text: str) -> frozenset[str]:
    return frozenset(_host(f"//{host}") for host in _hosts(text))


def _host(address: str) -> str:
    """The host of an address, and its port where that is not a usual one."""
    return address.partition("//")[2].partition("/")[0].lower().removesuffix(":80").removesuffix(":443")


def _unknown(since: int, newest: int, path: str) -> RegistryError:
    words = f"?since={since} names a change that this registry does not have; its newest is {newest}"
    return RegistryError("bad_request", path, error_detail=words)


def _not_yet(known: _State | None, since: int, path: str) -> RegistryError:
    words = "The catalog is being compiled"
    if known is not None:
        words += f"; it is at change {known.sequence}, and ?since={since} demands a later one"
    return RegistryError("server_busy", path, detail=f"{words}. Try again in a moment.")
