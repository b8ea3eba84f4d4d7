"""What the tests of columns share: which Arrow types a table may have, and values in a form that compares."""

import math
from typing import Any

import pyarrow as pa

__all__ = ["assert_tabular", "plain"]

PLAIN = {
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
}


def assert_tabular(kind: pa.DataType) -> None:
    """Delta and Spark both hold the type: no unsigned numbers, no times of day, no empty structs, names that differ."""
    if pa.types.is_struct(kind):
        assert kind.num_fields > 0
        names = [kind.field(number).name.lower() for number in range(kind.num_fields)]
        assert len(names) == len(set(names))
        for number in range(kind.num_fields):
            assert_tabular(kind.field(number).type)
    elif pa.types.is_list(kind):
        assert_tabular(kind.value_type)
    elif pa.types.is_map(kind):
        assert_tabular(kind.key_type)
        assert_tabular(kind.item_type)
    elif pa.types.is_decimal(kind):
        assert kind.precision <= 38
    else:
        assert kind in PLAIN


def plain(kind: pa.DataType, value: Any) -> Any:
    """A value in a form that compares: absent members as None, maps sorted, NaN as text."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        assert set(value) <= {field.name for field in fields}
        return {field.name: plain(field.type, value.get(field.name)) for field in fields}
    if pa.types.is_list(kind):
        return [plain(kind.value_type, one) for one in value]
    if pa.types.is_map(kind):
        return sorted(((plain(kind.key_type, key), plain(kind.item_type, one)) for key, one in value), key=repr)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value
