from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from signalbook.pipeline.delta import Replaced, TableChanged, commit, files_of, prepare, table_state
from signalbook.pipeline.files import Folder, PipelineError

SCHEMA = pa.schema([("id", pa.string()), ("data", pa.struct([("a", pa.int64())]))])
GROWN = pa.schema(
    [("id", pa.string()), ("data", pa.struct([("a", pa.int64()), ("b", pa.string())])), ("c", pa.bool_())]
)


def file(folder: Folder, name: str) -> dict[str, Any]:
    """A data file that lies in the table."""
    path = Path(folder.place("g/t")) / name
    pq.write_table(pa.Table.from_pylist([{"id": name}], SCHEMA), path)
    return {"path": name, "rows": 1, "bytes": path.stat().st_size}


def test_a_batch_is_committed_once(tmp_path: Path) -> None:
    """The same transaction a second time changes nothing; the next one adds; one that replaces takes away."""
    lake = Folder.at(tmp_path)
    prepare(lake, "g/t", "/m", SCHEMA)
    first, second = file(lake, "1.parquet"), file(lake, "2.parquet")
    assert [True, False] == [commit(lake, "g/t", ("run", 0), [first]) for _ in range(2)]
    assert commit(lake, "g/t", ("run", 1), [second], [Replaced("g/t", "1.parquet", first["bytes"])])
    assert [second] == files_of(lake, "g/t")
    assert commit(lake, "g/t", ("other", 0), [first])
    assert 2 == len(files_of(lake, "g/t"))


def test_a_table_has_one_owner(tmp_path: Path) -> None:
    """A table grows for its definition, and for no other; a column's type stays."""
    lake = Folder.at(tmp_path)
    assert table_state(lake, "g/t") is None
    for schema in (SCHEMA, GROWN, SCHEMA):
        prepare(lake, "g/t", "/m", schema)
    state = table_state(lake, "g/t")
    assert state is not None
    assert ("/m", GROWN.names) == (state.owner, state.schema.names)
    assert ["a", "b"] == [one.name for one in state.schema.field("data").type]
    with pytest.raises(TableChanged, match="belongs to /m"):
        prepare(lake, "g/t", "/other", SCHEMA)
    with pytest.raises(TableChanged, match="changed its columns"):
        prepare(lake, "g/t", "/m", pa.schema([("id", pa.int64())]))


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    """A batch that was begun needs its tables."""
    with pytest.raises(PipelineError, match="is gone"):
        commit(Folder.at(tmp_path), "g/t", ("run", 0), [])
    assert [] == files_of(Folder.at(tmp_path), "g/t")
