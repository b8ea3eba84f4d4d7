import io

import pyarrow as pa
import pyarrow.parquet as pq

from signalbook.pipeline.tables import SCHEMA, layout_of
from signalbook.pipeline.writers import parquet_options
from tests.pipeline.lakes import MOVED, book


def written(schema: pa.Schema) -> dict[str, tuple[str, bool]]:
    """How each column of a file with one row of nulls is compressed, and whether it has a dictionary."""
    file = io.BytesIO()
    row = pa.Table.from_pylist([{}], schema)
    with pq.ParquetWriter(file, schema, **parquet_options(schema)) as writer:
        writer.write_table(row)
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {one.path_in_schema: (one.compression, one.has_dictionary_page) for one in columns}


def test_every_column_is_told_how() -> None:
    """No column of a message's table or of the dead letters, however deep, is forgotten: each is compressed."""
    schema = layout_of(book(deep={"type": "array", "items": {"type": "object"}}).catalog(), MOVED).schema
    for one in (schema, SCHEMA):
        assert {"SNAPPY", "ZSTD"} == {compression for compression, _ in written(one).values()}


def test_text_and_numbers() -> None:
    """Texts are in dictionaries, what is long is compressed well, what is never the same has no dictionary."""
    found = written(layout_of(book(note={"type": "string"}).catalog(), MOVED).schema)
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
