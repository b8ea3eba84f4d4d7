import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from signalbook.pipeline.tables import DEAD_LETTER_SCHEMA, layout_of
from signalbook.pipeline.writers import MOST_OPEN, parquet_options
from tests.pipeline.conftest import ROOT
from tests.pipeline.lakes import MOVED, packed

MOST_BYTES = 512 << 20


@pytest.mark.parametrize(
    ("types", "messages"), [(300, 3000), pytest.param(2000, 80_000, marks=pytest.mark.slow)], ids=["300", "2000"]
)
def test_many_types_in_one_task(tmp_path: Path, types: int, messages: int) -> None:
    """One task lands messages of many types with 64 open files at most, in less than 512 MB, and counts them all."""
    command = [sys.executable, "-m", "tests.pipeline.many_types", str(tmp_path), str(types), str(messages)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (messages, messages - messages // 100, messages // 100) == (found["input"], found["landed"], found["dead"])
    assert (MOST_OPEN, 64) == (found["open"], MOST_OPEN)
    assert found["memory"] < MOST_BYTES


def written(schema: pa.Schema) -> dict[str, tuple[str, bool]]:
    """How each column of a file with one row of nulls is compressed, and whether it has a dictionary."""
    file = io.BytesIO()
    row = pa.Table.from_pylist([{}], schema)
    with pq.ParquetWriter(file, schema, **parquet_options(schema)) as writer:
        writer.write_table(row)
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {one.path_in_schema: (one.compression, one.has_dictionary_page) for one in columns}


def test_every_column_has_its_options() -> None:
    """No column of a message's table or of the dead letters, however deep, is forgotten: each is compressed."""
    schema = layout_of(packed(deep={"type": "array", "items": {"type": "object"}}).catalog(), MOVED).schema
    for one in (schema, DEAD_LETTER_SCHEMA):
        assert {"SNAPPY", "ZSTD"} == {compression for compression, _ in written(one).values()}


def test_text_and_numbers() -> None:
    """Texts are in dictionaries, what is long is compressed well, what is never the same has no dictionary."""
    found = written(layout_of(packed(note={"type": "string"}).catalog(), MOVED).schema)
    wanted = {
        "id": ("ZSTD", False),
        "type": ("SNAPPY", True),
        "source": ("SNAPPY", True),
        "time": ("SNAPPY", False),
        "extensions.key_value.key": ("SNAPPY", True),
        "data._additional": ("SNAPPY", False),
        "data.km": ("SNAPPY", False),
        "data.note": ("ZSTD", True),
        "payload": ("ZSTD", False),
        "judged.position": ("SNAPPY", False),
    }
    assert wanted == {name: found[name] for name in wanted}
