"""Payloads judged by schemas, in words."""

from __future__ import annotations

from typing import Any

import pytest

from signalbook.messages import Catalog

AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HINT = "as JSON it would need the content type application/avro+json"


@pytest.mark.parametrize(
    ("more", "hinted"),
    [
        ({"data": {"a": 1}}, [True]),
        ({"data": {"a": 1}, "datacontenttype": "application/json"}, [True]),
        ({"data": {"a": 1}, "datacontenttype": "application/avro+json"}, []),
        ({"data": {"a": "x"}, "datacontenttype": "application/avro+json"}, [False]),
        ({"data_base64": "gICAgA==", "datacontenttype": "application/avro"}, [False]),
    ],
)
def test_json_under_an_avro_schema(more: dict[str, Any], hinted: list[bool]) -> None:
    """JSON that is judged as Avro's binary form is rejected with the content type that it would need."""
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}},
        "dataschemaformat": "Avro/1.11.0",
        "dataschema": AVRO,
    }
    catalog = Catalog.from_documents({"messagegroups": {"g": {"messages": {"m": definition}}}})
    assert hinted == [HINT in one.message for one in catalog.match({**EVENT, **more}).problems]
