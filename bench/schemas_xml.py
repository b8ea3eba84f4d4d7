"""Payload checks of XSD and JSON Structure against what lies under them; `bench/schemas.py` prints the figures.

Rule: a check may cost 1.3 times the bare call, or one microsecond more. JSON Structure's own package judges payloads in
Python; our check is an engine's, so its anchor is only to be beaten.
"""

from __future__ import annotations

import json

from bench.figures import Figure, call_seconds, check_limit
from signalbook import schemas

__all__ = ["figures"]


XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="order"><xs:complexType><xs:sequence>
  <xs:element name="id" type="xs:string"/><xs:element name="placed" type="xs:dateTime"/>
  <xs:element name="line" maxOccurs="unbounded"><xs:complexType><xs:sequence>
    <xs:element name="sku" type="xs:string"/><xs:element name="count" type="xs:int"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:sequence></xs:complexType></xs:element></xs:schema>"""
ORDER = (
    "<order><id>550e8400</id><placed>2024-05-01T12:00:00Z</placed>"
    + "".join(f"<line><sku>A{number}</sku><count>{number}</count></line>" for number in range(8))
    + "</order>"
).encode()

STRUCTURE = {
    "$schema": "https://json-structure.org/meta/core/v0/#",
    "$id": "https://example.com/order",
    "name": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "placed": {"type": "datetime"},
        "total": {"type": "double"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "int32"}}},
        },
    },
    "required": ["id"],
}
PAYLOAD = json.dumps(
    {
        "id": "550e8400",
        "placed": "2024-05-01T12:00:00Z",
        "total": 12.5,
        "lines": [{"sku": f"A{number}", "count": number} for number in range(8)],
    }
).encode()


def _xsd() -> Figure:
    from lxml import etree

    ours = schemas.read("XSD/1.0", XSD)
    bare = etree.XMLSchema(etree.fromstring(XSD))
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    assert not ours.check(ORDER).problems
    calls = [lambda: ours.check(ORDER), lambda: bare.validate(etree.fromstring(ORDER, parser))]
    spent = call_seconds(calls, rounds=100, times=100)
    limit = check_limit(spent[1])
    note = f"{1 / spent[0]:,.0f} checks a second, {spent[0] * 1e6:.1f} µs; the bare calls {spent[1] * 1e6:.1f} µs"
    return Figure("XSD: check, to lxml", spent[0] / spent[1], limit, "times parse and validate", note=note)


def _structure() -> Figure:
    from json_structure import InstanceValidator

    ours = schemas.read("JsonStructure/draft-04", STRUCTURE)
    assert not ours.check(PAYLOAD).problems
    bare = InstanceValidator(STRUCTURE)
    assert not bare.validate_instance(json.loads(PAYLOAD))
    spent = call_seconds(
        [lambda: ours.check(PAYLOAD), lambda: bare.validate_instance(json.loads(PAYLOAD))], rounds=10, times=20
    )
    note = f"{1 / spent[0]:,.0f} checks a second, {spent[0] * 1e6:.1f} µs to {spent[1] * 1e6:.1f}"
    name = "JSON Structure: checks a second, to its package"
    return Figure(name, spent[1] / spent[0], 1, "times json_structure", at_least=True, note=note)


def figures() -> list[Figure]:
    """The figures of XSD and JSON Structure."""
    return [_xsd(), _structure()]


if __name__ == "__main__":
    from bench.figures import show

    raise SystemExit(not show(figures()))
