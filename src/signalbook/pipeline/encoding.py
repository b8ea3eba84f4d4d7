"""How the columns of a file are encoded: what a table of many small files costs is decided here.

Rule 1: what is long is compressed by zstd: payloads, records, their texts, ids; all else by snappy. A few hundred
numbers or texts of a dictionary gain nothing by zstd, and each column that it compresses costs about as much as writing
the column.
Rule 2: texts have a dictionary, except those that are hardly ever the same twice; nothing else has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from signalbook.schemas.json_schema_columns import ADDITIONAL

__all__ = ["parquet_options"]

# The columns that are long, and those below which every text is.
_LONG = frozenset({"id", "payload", "record", "transport.fields"})
_OPAQUE = frozenset({"payload", "record", "transport.fields"})
_LONG_BELOW = ("data.", "problems.", "candidates.")
_NEVER_THE_SAME = frozenset({"id", "sha256", "_additional", "fields", "message"})


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """What a Parquet writer is told about the columns of a schema."""
    leaves = [leaf for one in schema for leaf in _leaves(one.name, one.type)]
    zstd = [path for path, kind in leaves if _is_text(kind) and _is_long(path)]
    return {
        "compression": {path: "snappy" for path, _ in leaves} | dict.fromkeys(zstd, "zstd"),
        "compression_level": dict.fromkeys(zstd, 1),
        # What nobody asks for by its first and last value.
        "write_statistics": [path for path, _ in leaves if path not in _OPAQUE and not path.endswith(ADDITIONAL)],
        "use_dictionary": [
            path for path, kind in leaves if pa.types.is_string(kind) and path.rpartition(".")[2] not in _NEVER_THE_SAME
        ],
    }


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_long(path: str) -> bool:
    return path in _LONG or (path.startswith(_LONG_BELOW) and not path.endswith(ADDITIONAL))


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns below one, by the paths that Parquet gives them."""
    if pa.types.is_struct(kind):
        for one in kind:
            yield from _leaves(f"{path}.{one.name}", one.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind
