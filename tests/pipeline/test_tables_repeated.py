"""A value as a column, made once."""

from typing import Any

import pyarrow as pa
import pytest

from signalbook.pipeline.tables import Repeated


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
