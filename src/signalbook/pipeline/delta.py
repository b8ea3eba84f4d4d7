"""Delta tables: which table each message has, and how tables are created, extended and given the files of a batch.

Rule 1: the plan of tables is made before anything is matched, from the catalog and from the tables that are there.
Rule 2: each commit carries (run, batch) as its transaction; a table that has it already is left alone.
Rule 3: a table says in its description which definition it belongs to; another definition never writes there.
Rule 4: a commit that another one overtook is tried again on the newer state.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from signalbook.errors import Problem
from signalbook.messages.catalog import Catalog
from signalbook.pipeline.files import Folder, PipelineError
from signalbook.pipeline.tables import layout_of, table_names, type_changes

__all__ = [
    "KnownTables",
    "Replaced",
    "TableChanged",
    "TablePlan",
    "TableState",
    "commit",
    "compact",
    "files_of",
    "prepare",
    "table_state",
]

Done = TypeVar("Done")
_TRIES = 30


class TableChanged(Exception):
    """Another run has changed a table since the batch was planned."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it is: the definition it belongs to and its columns."""

    owner: str | None
    schema: pa.Schema


def table_state(lake: Folder, table: str) -> TableState | None:
    """The table of that path, or None."""
    found = _open_table(lake, table)
    return None if found is None else _state(found)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file of a table that others take the place of."""

    table: str
    path: str
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON value."""
        return {"table": self.table, "path": self.path, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The table of each message, and why a message's table does not take it."""

    tables: dict[str, str]
    refused: dict[str, str]


@dataclass(slots=True)
class KnownTables:
    """The tables of a lake as they were last read; `forget` makes the next plan read them again."""

    lake: Folder
    _known: dict[str, TableState] = field(default_factory=dict)

    def plan(self, catalog: Catalog) -> TablePlan:
        """The plan for a catalog."""
        self._look()
        owners = {path: state.owner for path, state in self._known.items() if state.owner is not None}
        usable = [xid for xid, definition in catalog.definitions.items() if not definition.problems]
        tables = table_names(usable, owners)
        return TablePlan(tables, dict(self._refused(catalog, tables)))

    def forget(self) -> None:
        """Read the tables again for the next plan."""
        self._known.clear()

    def _look(self) -> None:
        for schema in self.lake.folders():
            if schema.startswith(("_", ".")):
                continue
            for table in self.lake.below(schema).folders():
                path = f"{schema}/{table}"
                if path not in self._known:
                    state = table_state(self.lake, path)
                    if state is not None:
                        self._known[path] = state

    def _refused(self, catalog: Catalog, tables: Mapping[str, str]) -> list[tuple[str, str]]:
        refused = []
        for xid, path in tables.items():
            state = self._known.get(path)
            if state is None or isinstance(catalog.schema(xid), Problem):
                continue
            change = next(type_changes(state.schema, layout_of(catalog, xid).schema), None)
            if change is not None:
                refused.append((xid, f"{change[1]}; it goes to no table until the definition fits again"))
        return refused


def prepare(lake: Folder, table: str, owner: str, schema: pa.Schema) -> None:
    """Make a table, or let it grow, so that files of this schema can be added; raises `TableChanged`."""

    def once() -> None:
        found = _open_table(lake, table)
        if found is None:
            DeltaTable.create(
                lake.place(table),
                schema=schema,
                mode="ignore",
                name=table.replace("/", "."),
                description=owner,
            )
            found = _open_table(lake, table)
            assert found is not None
        state = _state(found)
        if state.owner != owner:
            raise TableChanged(f"the table {table} belongs to {state.owner}")
        if next(type_changes(state.schema, schema), None) is not None:
            raise TableChanged(f"the table {table} has changed its columns meanwhile")
        missing = [one for one in Schema.from_arrow(schema).fields if not _holds(state.schema, schema.field(one.name))]
        if missing:
            found.alter.add_columns(missing)

    _retry(once, table)


def commit(
    lake: Folder,
    table: str,
    transaction: tuple[str, int],
    files: Sequence[Mapping[str, Any]],
    replaced: Sequence[Replaced] = (),
) -> bool:
    """Add files to a table, and take away those they replace; whether it was not done before."""
    app, version = transaction

    def once() -> bool:
        found = _open_table(lake, table)
        if found is None:
            raise PipelineError(f"the table {table} is gone from {lake.uri}; a batch that was begun needs it")
        done = found.transaction_version(app)
        if done is not None and done >= version:
            return False
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file["path"], file["bytes"], {}, now, True, orjson.dumps({"numRecords": file["rows"]}).decode())
            for file in files
        ]
        actions += [RemoveAction(one.path, True, now, one.bytes, {}) for one in replaced]
        properties = CommitProperties(app_transactions=[Transaction(app, version)])
        found.create_write_transaction(actions, "append", found.schema(), commit_properties=properties)
        return True

    return _retry(once, table)


def compact(lake: Folder, table: str) -> int:
    """Join small files of a table while others append to it; return how many fewer there are."""
    found = _open_table(lake, table)
    if found is None or len(found.file_uris()) < 2:
        return 0
    try:
        metrics = found.optimize.compact()
    except CommitFailedError:
        return 0
    return int(metrics["numFilesRemoved"]) - int(metrics["numFilesAdded"])


def files_of(lake: Folder, table: str) -> list[dict[str, Any]]:
    """The files that a table consists of now: path below it, rows, bytes."""
    found = _open_table(lake, table)
    if found is None:
        return []
    actions = pa.table(found.get_add_actions(flatten=True)).to_pylist()
    return [{"path": one["path"], "rows": one["num_records"], "bytes": one["size_bytes"]} for one in actions]


def _open_table(lake: Folder, table: str) -> DeltaTable | None:
    try:
        return DeltaTable(lake.place(table))
    except TableNotFoundError:
        return None


def _state(table: DeltaTable) -> TableState:
    return TableState(table.metadata().description, pa.schema(table.schema().to_arrow()))


def _holds(schema: pa.Schema, wanted: pa.Field) -> bool:
    """Whether a table has all members of a column."""
    at = schema.get_field_index(wanted.name)
    return at >= 0 and _covers(schema.field(at).type, wanted.type)


def _covers(held: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(wanted):
        return all(
            held.get_field_index(one.name) >= 0 and _covers(held.field(held.get_field_index(one.name)).type, one.type)
            for one in wanted
        )
    if pa.types.is_map(wanted):
        return _covers(held.item_type, wanted.item_type)
    return _covers(held.value_type, wanted.value_type) if pa.types.is_list(wanted) else True


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _retry(step: Callable[[], Done], table: str) -> Done:
    for attempt in range(_TRIES):
        try:
            return step()
        except CommitFailedError:
            time.sleep(random.uniform(0, min(0.02 * 2**attempt, 1)))
        except (DeltaError, OSError) as error:
            words = " ".join(_COLOUR.sub("", str(error)).split())
            raise PipelineError(f"the table {table} cannot be changed: {words}") from None
    raise PipelineError(f"the table {table} is changed by so many others that {_TRIES} tries were not enough")
