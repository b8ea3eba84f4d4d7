"""Catalogs, messages and lakes for tests of the pipeline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from signalbook.pipeline import delta
from signalbook.pipeline.ddl import table_paths
from signalbook.pipeline.files import Folder
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.tables import DEAD_LETTERS, Stamp, table_names
from signalbook.pipeline.worker import Job, PackedCatalog

# What a module marks itself with whose tests use Spark: one process runs them all, hence one session.
on_spark = [pytest.mark.filterwarnings("ignore")]
MOVED = "/messagegroups/fleet/messages/moved"
STOPPED = "/messagegroups/fleet/messages/stopped"


def document(**schema: Any) -> dict[str, Any]:
    """A catalog of two messages; the payload of `moved` has these properties beside `km`."""
    return {
        "messagegroups": {
            "fleet": {
                "messages": {
                    "moved": {
                        "envelope": "CloudEvents/1.0",
                        "envelopemetadata": {
                            "type": {"value": "moved"},
                            "source": {"value": "/cars/{vin}"},
                            "priority": {"type": "integer"},
                        },
                        "dataschemaformat": "JsonSchema/draft-07",
                        "dataschema": {
                            "type": "object",
                            "properties": {"km": {"type": "integer"}, **schema},
                            "required": ["km"],
                        },
                    },
                    "stopped": {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "stopped"}}},
                }
            }
        }
    }


def packed(**schema: Any) -> PackedCatalog:
    """That catalog, ready to travel."""
    return PackedCatalog.of(document(**schema))


def event(number: int, **members: Any) -> bytes:
    """A good `moved`, with other members where they are given."""
    value = {"specversion": "1.0", "id": f"e{number}", "type": "moved", "source": "/cars/A1", "data": {"km": number}}
    return json.dumps({**value, **members}).encode()


def job(folder: Path, catalog: PackedCatalog, **more: Any) -> Job:
    """What a task is told."""
    tables = table_names(catalog.catalog().definitions)
    return Job(catalog, Folder.at(folder), Stamp(catalog.digest, "20260101T000000-00000000", 0), tables, **more)


def write_lines(path: Path, lines: Iterable[bytes]) -> Path:
    """A file of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def rows(folder: Path | str, table: str) -> list[dict[str, Any]]:
    """Every row that a table of a lake consists of."""
    lake = Folder.at(folder)
    files = [lake.below(table).place(file["path"]) for file in delta.files_of(lake, table)]
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def places(folder: Path | str) -> Counter[tuple[str, int]]:
    """How often each input is in the tables of a lake, by where it came from."""
    found: Counter[tuple[str, int]] = Counter()
    for table in table_paths(Lake.open(str(folder))):
        found.update((row["judged"]["origin"], row["judged"]["position"]) for row in rows(folder, table))
    return found


def dead(folder: Path | str) -> list[dict[str, Any]]:
    """The dead letters of a lake."""
    return rows(folder, DEAD_LETTERS)


def data_files(folder: Path) -> set[str]:
    """The data files that lie in a lake, committed or not."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def write_parquet(path: Path, columns: dict[str, Any], **more: Any) -> str:
    """The path of a Parquet file of such columns."""
    pq.write_table(pa.table(columns), path, **more)
    return str(path)


def write_damaged_parquet(path: Path, groups: int, group: int) -> bytes:
    """A Parquet file whose footer is good, and one row group of which is not."""
    write_parquet(
        path, {"value": [event(number) for number in range(10 * groups)]}, row_group_size=10, use_dictionary=False
    )
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset : column.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(content)
    return bytes(content)
