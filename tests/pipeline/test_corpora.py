"""The fast path lands what the general path lands of every message that is kept, from files and from Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest

from signalbook.messages.fast import FastPath
from signalbook.messages.observe import Observed, observe
from signalbook.pipeline.read.records import Record, inputs_of, records_of
from signalbook.pipeline.tables import Layout
from signalbook.pipeline.worker import PackedCatalog, Task
from tests.corpora import Corpus, corpora
from tests.pipeline.kafka_batches import batch, binary, row, structured
from tests.pipeline.lakes import job

ALL = {corpus.name: corpus for corpus in corpora()}


def book_of(corpus: Corpus) -> PackedCatalog:
    """The catalog of a corpus."""
    return PackedCatalog.of(*corpus.documents, roots=corpus.roots)


def land(folder: Path, corpus: Corpus, inputs: Iterable[Any]) -> tuple[dict[str, Any], list[str]]:
    """A task's counts, and all rows that it wrote."""
    report = Task(job(folder, book_of(corpus), within=corpus.within)).run(inputs)
    for problem in report["problems"]:
        del problem["samples"]  # a few of many, and not the same few
    report["problems"].sort(key=str)
    rows = []
    for file in report.pop("files"):
        found = pq.ParquetFile(folder / file["table"] / file["path"]).read().to_pylist()
        rows += [f"{file['table']} {one}" for one in found]
    return report, sorted(rows)


def rows_of(corpus: Corpus) -> list[dict[str, Any]]:
    """The records of Kafka that carry the messages of a corpus: events in both modes, and what is Kafka's on paper."""
    found = []
    for line in corpus.lines:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict) and "specversion" in value:
            texts = all(isinstance(one, str) for name, one in value.items() if name != "data")
            found += [structured(value), binary(value)] if texts and "data_base64" not in value else [structured(value)]
        for one in observe(line):
            if isinstance(one, Observed) and one.message is not None and one.message.protocol == "KAFKA":
                fields = one.message.fields
                kept = {name: fields.get(name) for name in ("topic", "key", "partition")}
                found.append(row(one.message.payload, fields.get("headers", ()), **kept))
    return found


def one_by_one(made: mock.Mock) -> int:
    """How many rows were made one by one since it was asked last."""
    found = made.call_count
    made.reset_mock()
    return int(found)


def compare(folder: Path, corpus: Corpus) -> int:
    """Land the messages of a corpus both ways; how many rows the fast path made."""
    lines = [Record(line, "given", number) for number, line in enumerate(corpus.lines)]
    with mock.patch.object(Layout, "row", autospec=True, side_effect=Layout.row) as made:
        with mock.patch.object(FastPath, "parts", return_value=None):
            expected = land(folder / "general", corpus, lines)
        general = one_by_one(made)
        assert expected == land(folder / "fast", corpus, lines), corpus.name
        fast = general - one_by_one(made)
        if rows := rows_of(corpus):
            records = list(records_of([batch(rows)], "here"))
            expected = land(folder / "general-kafka", corpus, records)
            general = one_by_one(made)
            assert expected == land(folder / "fast-kafka", corpus, inputs_of([batch(rows)], "here")), corpus.name
            fast += general - one_by_one(made)
    return fast


@pytest.mark.parametrize(("name", "least"), [("samples", 10), ("demo", 30)])
def test_messages_that_are_made(tmp_path: Path, name: str, least: int) -> None:
    """The samples of definitions, and the traffic of the demo."""
    assert compare(tmp_path, ALL[name]) >= least


@pytest.mark.parametrize("file", sorted({name.partition(":")[0] for name in ALL if ":" in name}))
def test_messages_of_cases(tmp_path: Path, file: str) -> None:
    """Every case of matching in which an event or a record of Kafka holds; nothing else has a fast path."""
    for number, (name, corpus) in enumerate(ALL.items()):
        if name.startswith(f"{file}:") and rows_of(corpus):
            catalog = book_of(corpus).catalog()
            if any(answer.matched for answer in catalog.match_all(corpus.lines[0], corpus.within)):
                compare(tmp_path / str(number), corpus)
