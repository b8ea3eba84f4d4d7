from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages.observe import Observed
from signalbook.pipeline.tables import (
    DEAD_LETTERS,
    CellError,
    Repeated,
    gives_back,
    layout_of,
    moment,
    table_names,
    transport_cells,
    type_changes,
)
from signalbook.pipeline.worker import PackedCatalog
from signalbook.protocols import Message
from tests.cases import Case, cases
from tests.pipeline.lakes import MOVED, STOPPED, document, packed

TOP = ["specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time"]


def test_the_top_level_is_fixed() -> None:
    """A table has the attributes, the structs, the payload, and how it was matched; what would be empty is left out."""
    catalog = packed().catalog()
    moved, stopped = layout_of(catalog, MOVED).schema, layout_of(catalog, STOPPED).schema
    rest = ["transport", "data", "payload", "judged"]
    assert [*TOP, "priority", "extensions", "context", *rest] == moved.names
    assert [*TOP, "extensions", "transport", "payload", "judged"] == stopped.names
    assert pa.int32() == moved.field("priority").type
    assert pa.struct([("vin", pa.string())]) == moved.field("context").type


def test_an_attribute_does_not_take_the_name_of_a_column() -> None:
    """An extension attribute called `context` has a column beside the struct of that name."""
    given = document()
    given["messagegroups"]["fleet"]["messages"]["moved"]["envelopemetadata"]["context"] = {"type": "string"}
    names = layout_of(PackedCatalog.of(given).catalog(), MOVED).schema.names
    assert len(names) == len({name.lower() for name in names})
    assert {"context", "~63ontext"} < set(names)


def test_a_schema_that_does_not_say_what_a_payload_is() -> None:
    """Of two messages in a Protobuf text nothing says which is meant: there is a table, without `data`."""
    given = document()
    moved = given["messagegroups"]["fleet"]["messages"]["moved"]
    moved |= {"dataschemaformat": "Protobuf/3", "dataschema": 'syntax = "proto3"; message A {} message B {}'}
    layout = layout_of(PackedCatalog.of(given).catalog(), MOVED)
    assert (False, None) == ("data" in layout.schema.names, layout.convert)


TYPES = {
    "int": pa.int64(),
    "text": pa.string(),
    "struct a": pa.struct([("a", pa.int64())]),
    "struct a b": pa.struct([("a", pa.int64()), ("b", pa.string())]),
    "struct a text": pa.struct([("a", pa.string())]),
    "list int": pa.list_(pa.int64()),
    "list text": pa.list_(pa.string()),
    "map int": pa.map_(pa.string(), pa.int64()),
    "map text": pa.map_(pa.string(), pa.string()),
}


@cases("pipeline/growth")
def test_growth(case: Case) -> None:
    """Columns may come and go; none may change its type."""
    held, wanted = ({name: TYPES[kind] for name, kind in columns.items()} for columns in case.given)
    found = [path for path, _ in type_changes(pa.schema(list(held.items())), pa.schema(list(wanted.items())))]
    assert case.expect == found


def test_every_sample_has_columns(samples: PackedCatalog) -> None:
    """Each definition of the samples has a table that Delta can hold."""
    deltalake = pytest.importorskip("deltalake")
    catalog = samples.catalog()
    for xid in catalog.definitions:
        assert deltalake.Schema.from_arrow(layout_of(catalog, xid).schema).fields


@cases("pipeline/moments")
def test_moments(case: Case) -> None:
    """A timestamp is a moment in UTC, and a column can give its text back or not."""
    at = moment(case.given)
    assert case.expect == [at.isoformat(), gives_back(case.given, at)]


def test_a_moment_before_all_moments() -> None:
    """What the type cannot hold is told."""
    with pytest.raises(CellError, match="0000-01-01"):
        moment("0000-01-01T00:00:00Z")


@cases("pipeline/transport")
def test_transport(case: Case) -> None:
    """What the transport said stands in columns, and what has none in `fields`."""
    cells = transport_cells(Observed(Message.from_json(case.given), None), None)
    assert cells is not None
    assert case.expect == {name: value for name, value in cells.items() if value is not None}


def test_a_kafka_record() -> None:
    """A record's key is bytes, its time a moment."""
    message = Message("KAFKA", {"topic": "t", "key": b"\0k", "partition": 3, "offset": 9, "timestamp": 1500})
    cells = transport_cells(Observed(message, None), 7)
    assert cells is not None
    assert (b"\0k", 3, 9, 7) == (cells["key"], cells["partition"], cells["offset"], cells["schemaid"])
    assert datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC) == cells["timestamp"]


XIDS = st.sets(
    st.builds("/messagegroups/{}/messages/{}".format, st.sampled_from("gG-"), st.text("aA._-~:@1", min_size=1)),
    max_size=12,
)


@cases("pipeline/names")
def test_names(case: Case) -> None:
    """A message's table has the name that the rule gives it."""
    assert case.expect == table_names(case.given)


@given(XIDS)
def test_names_never_clash(xids: set[str]) -> None:
    """Two messages never share a table, and none has that of the dead letters."""
    names = table_names(xids)
    assert len(xids) == len({*names.values(), DEAD_LETTERS}) - 1
    assert all(
        part.isascii() and part == part.lower() and part[0] != "_"
        for part in "/".join(names.values()).split("/")
        if part
    )


def test_who_has_a_table_keeps_it() -> None:
    """A newcomer of the same name does not take the table of a message that is in the lake."""
    old, new = "/messagegroups/g/messages/b.c", "/messagegroups/g/messages/B.c"
    names = table_names([new, old], owners={"g/b_c": old})
    assert ("g/b_c", True) == (names[old], names[new].startswith("g/b_c_"))


def test_a_long_id_is_cut() -> None:
    """A name fits into every file system."""
    (name,) = table_names(["/messagegroups/g/messages/" + "a" * 500]).values()
    assert len(name) < 120


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a", pa.string()),
        (5, pa.int64()),
        (None, pa.struct([("a", pa.string())])),
        (None, pa.map_(pa.string(), pa.string())),
    ],
    ids=str,
)
def test_as_often_as_it_is_asked_for(value: Any, kind: pa.DataType) -> None:
    """Longer or shorter than before, a column is as long as it has to be, and holds the value alone."""
    repeated = Repeated(value, kind)
    for count in (3, 2000, 0, 5):
        column = repeated.of(count)
        assert (kind, [value] * count) == (column.type, column.to_pylist())
