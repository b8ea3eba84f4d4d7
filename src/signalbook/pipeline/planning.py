"""Which table each message of a catalog goes to, and which messages a table refuses.

Rule: the plan is made before anything is judged, from the catalog and from the tables that are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from signalbook.errors import Problem
from signalbook.messages.catalog import Catalog
from signalbook.pipeline.delta import TableState, table_state
from signalbook.pipeline.files import Folder
from signalbook.pipeline.tables import grown, layout_of, table_names

__all__ = ["Plan", "Tables"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The table of each message, and why a message's table does not take it."""

    tables: dict[str, str]
    refused: dict[str, str]


@dataclass(slots=True)
class Tables:
    """What is known of a lake's tables; asked anew where a batch found something else."""

    lake: Folder
    _known: dict[str, TableState] = field(default_factory=dict)

    def plan(self, catalog: Catalog) -> Plan:
        """The plan for a catalog."""
        self._look()
        owners = {path: state.owner for path, state in self._known.items() if state.owner is not None}
        usable = [xid for xid, definition in catalog.definitions.items() if not definition.problems]
        tables = table_names(usable, owners)
        return Plan(tables, dict(self._refused(catalog, tables)))

    def forget(self) -> None:
        """Ask again next time."""
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
            change = next(grown(state.schema, layout_of(catalog, xid).schema), None)
            if change is not None:
                refused.append((xid, f"{change[1]}; it goes to no table until the definition fits again"))
        return refused
