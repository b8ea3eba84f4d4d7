import pyarrow as pa
import pytest

from signalbook.pipeline.catalog import Book
from signalbook.pipeline.tables import grown, layout_of
from tests.cases import Case, cases
from tests.pipeline.lakes import MOVED, STOPPED, book, document

TOP = ["specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time"]


def test_the_top_level_is_fixed() -> None:
    """A table has the attributes, the structs, the payload, and how it was judged; what would be empty is left out."""
    catalog = book().catalog()
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
    names = layout_of(Book.of(given).catalog(), MOVED).schema.names
    assert len(names) == len({name.lower() for name in names})
    assert {"context", "~63ontext"} < set(names)


def test_a_schema_that_does_not_say_what_a_payload_is() -> None:
    """Of two messages in a Protobuf text nothing says which is meant: there is a table, without `data`."""
    given = document()
    moved = given["messagegroups"]["fleet"]["messages"]["moved"]
    moved |= {"dataschemaformat": "Protobuf/3", "dataschema": 'syntax = "proto3"; message A {} message B {}'}
    layout = layout_of(Book.of(given).catalog(), MOVED)
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
    found = [path for path, _ in grown(pa.schema(list(held.items())), pa.schema(list(wanted.items())))]
    assert case.expect == found


def test_every_sample_has_columns(samples: Book) -> None:
    """Each definition of the samples has a table that Delta can hold."""
    deltalake = pytest.importorskip("deltalake")
    catalog = samples.catalog()
    for xid in catalog.definitions:
        assert deltalake.Schema.from_arrow(layout_of(catalog, xid).schema).fields
