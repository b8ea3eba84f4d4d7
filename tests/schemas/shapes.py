"""Schema documents of any size: for each format, the shapes in which a hostile one can grow.

Rule: a shape is a function of a size and of a variant; two variants of one size differ, so that a comparison of both
has something to find. What a document holds is in proportion to its size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["REFUSED", "SHAPES", "Shape"]

Shape = Callable[[int, int], bytes]

_XS = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'


def _json(**members: Any) -> bytes:
    return json.dumps(members).encode()


def _structure(**members: Any) -> bytes:
    about = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://x.example/a", "name": "A"}
    return json.dumps({**about, **members}).encode()


def _record(fields: list[Any]) -> bytes:
    return _json(type="record", name="R", fields=fields)


def _proto(text: str) -> bytes:
    return f'syntax = "proto3"; {text}'.encode()


def _many(size: int, make: Callable[[int], str]) -> str:
    return "".join(map(make, range(size)))


def _xsd(text: str) -> bytes:
    return f"{_XS}{text}</xs:schema>".encode()


def _of_root(text: str) -> bytes:
    return _xsd(f'<xs:element name="r"><xs:complexType>{text}</xs:complexType></xs:element>')


def _of_values(text: str) -> bytes:
    return _xsd(f'<xs:element name="r"><xs:simpleType>{text}</xs:simpleType></xs:element>')


def _nested(size: int, inner: Any, around: Callable[[Any], Any]) -> Any:
    """Many pieces that nest as deep as a format takes, side by side."""
    found = inner
    for _ in range(10):
        found = around(found)
    return {f"p{number}": found for number in range(1 + size // 10)}


JSON_SCHEMA: dict[str, Shape] = {
    "fields": lambda n, v: _json(
        type="object",
        properties={f"p{i}": {"type": "string", "maxLength": 9 + v} for i in range(n)},
        required=[f"p{i}" for i in range(n)],
    ),
    "renamed fields": lambda n, v: _json(
        properties={f"p{v}_{i}": {"type": "string"} for i in range(n)}, additionalProperties=False
    ),
    "references": lambda n, v: _json(
        properties={f"p{i}": {"$ref": f"#/definitions/d{i}"} for i in range(n)},
        definitions={f"d{i}": {"type": "integer", "maximum": v} for i in range(n)},
    ),
    "a chain of references": lambda n, v: _json(
        properties={"a": {"$ref": "#/definitions/d0"}},
        definitions={**{f"d{i}": {"$ref": f"#/definitions/d{i + 1}"} for i in range(n)}, f"d{n}": {"maximum": v}},
    ),
    "anchors": lambda n, v: _json(
        definitions={f"d{i}": {"$id": f"#a{i}", "maximum": v} for i in range(n)},
        properties={f"p{i}": {"$ref": f"#a{i}"} for i in range(n)},
    ),
    "an enum": lambda n, v: _json(enum=[f"v{v}s{i}" for i in range(n)]),
    "an enum of numbers": lambda n, v: _json(enum=[i + v + 0.5 for i in range(n)]),
    "an enum of objects": lambda n, v: _json(enum=[{"a": i + v} for i in range(n)]),
    "a tuple": lambda n, v: _json(items=[{"type": "integer", "minimum": i + v} for i in range(n)]),
    "dependencies": lambda n, v: _json(dependencies={f"p{i}": [f"q{v}"] for i in range(n)}),
    "nesting": lambda n, v: _json(properties=_nested(n, {"maximum": v}, lambda one: {"properties": {"a": one}})),
}

AVRO: dict[str, Shape] = {
    "fields": lambda n, v: _record([{"name": f"f{i}", "type": "int", "default": v} for i in range(n)]),
    "renamed fields": lambda n, v: _record([{"name": f"f{v}_{i}", "type": "int"} for i in range(n)]),
    "aliases": lambda n, v: _record([{"name": "f", "type": "int", "aliases": [f"a{v}_{i}" for i in range(n)]}]),
    "an enum": lambda n, v: _json(type="enum", name="E", symbols=[f"S{v}_{i}" for i in range(n)]),
    "the same enum": lambda n, v: _json(type="enum", name="E", symbols=[f"S{i}" for i in range(n)]),
    "defaults of an enum": lambda n, v: _record(
        [
            {
                "name": f"f{i}",
                "default": f"S{n - 1}",
                "type": "E" if i else {"type": "enum", "name": "E", "symbols": [f"S{j}" for j in range(n)]},
            }
            for i in range(n)
        ]
    ),
    "a union": lambda n, v: json.dumps(
        [{"type": "record", "name": f"R{i}", "fields": [{"name": f"a{v}", "type": "int"}]} for i in range(n)]
    ).encode(),
    "a union of others": lambda n, v: json.dumps(
        [{"type": "record", "name": f"R{v}_{i}", "fields": []} for i in range(n)]
    ).encode(),
    "references": lambda n, v: _record(
        [{"name": "a", "type": {"type": "record", "name": "T", "fields": []}}]
        + [{"name": f"f{i}", "type": "T"} for i in range(n)]
    ),
    "records": lambda n, v: _record(
        [
            {
                "name": f"f{i}",
                "type": {"type": "record", "name": f"T{i}", "fields": [{"name": "a", "type": "int" if v else "long"}]},
            }
            for i in range(n)
        ]
    ),
    "nesting": lambda n, v: _record(
        [
            {"name": name, "type": one}
            for name, one in _nested(n, "int" if v else "long", lambda one: {"type": "array", "items": one}).items()
        ]
    ),
}

PROTOBUF: dict[str, Shape] = {
    "fields": lambda n, v: _proto(f"message M {{ {_many(n, lambda i: f'int{64 if v else 32} f{i} = {i + 1};')} }}"),
    "renamed fields": lambda n, v: _proto(
        f"message M {{ {_many(n, lambda i: f'int32 f{v}_{i} = {i + 1 + 50_000 * v};')} }}"
    ),
    "an enum": lambda n, v: _proto(f"message M {{ E e = 1; }} enum E {{ {_many(n, lambda i: f'A{v}_{i} = {i};')} }}"),
    "fields of an enum": lambda n, v: _proto(
        f"message M {{ {_many(n, lambda i: f'E f{i} = {i + 1};')} }}"
        f"enum E {{ {_many(n, lambda i: f'A{v}_{i} = {i};')} }}"
    ),
    "messages": lambda n, v: _proto(
        f"message M {{ {_many(n, lambda i: f'T{i} f{i} = {i + 1};')} }}"
        + _many(n, lambda i: f"message T{i} {{ int32 a{v} = {1 + v}; }}")
    ),
    "a oneof": lambda n, v: _proto(
        f"message M {{ oneof o {{ {_many(n, lambda i: f'int32 f{i} = {i + 1 + 50_000 * v};')} }} }}"
    ),
    "reserved numbers": lambda n, v: _proto(
        f"message M {{ reserved {', '.join(str(4 * i + 1 + 2 * v) for i in range(n))}; }}"
    ),
    "nesting": lambda n, v: _proto(
        f"message M {{ {_many(1 + n // 10, lambda i: f'N{i} f{i} = {i + 1};')} }}"
        + _many(1 + n // 10, lambda i: f"message N{i} {{ {'message T { ' * 10} int32 a{v} = {1 + v}; {'}' * 11}")
    ),
}

XSD: dict[str, Shape] = {
    "elements": lambda n, v: _xsd(_many(n, lambda i: f'<xs:element name="e{i}" type="xs:{"int" if v else "long"}"/>')),
    "fields": lambda n, v: _of_root(
        "<xs:sequence>"
        + _many(n, lambda i: f'<xs:element name="e{i}" type="xs:{"int" if v else "long"}"/>')
        + "</xs:sequence>"
    ),
    "one field more": lambda n, v: _of_root(
        "<xs:sequence>" + _many(n + v, lambda i: f'<xs:element name="e{i}" type="xs:int"/>') + "</xs:sequence>"
    ),
    "fields in any order": lambda n, v: _of_root(
        "<xs:all>" + _many(n + v, lambda i: f'<xs:element name="e{i}" type="xs:int"/>') + "</xs:all>"
    ),
    "a choice": lambda n, v: _of_root(
        '<xs:choice maxOccurs="unbounded">' + _many(n, lambda i: f'<xs:element name="e{v}_{i}"/>') + "</xs:choice>"
    ),
    "an enumeration": lambda n, v: _of_values(
        '<xs:restriction base="xs:string">'
        + _many(n, lambda i: f'<xs:enumeration value="v{v}_{i}"/>')
        + "</xs:restriction>"
    ),
    "a union": lambda n, v: _of_values(
        "<xs:union>"
        + _many(
            n,
            lambda i: (
                '<xs:simpleType><xs:restriction base="xs:int">'
                f'<xs:minInclusive value="{i + v}"/></xs:restriction></xs:simpleType>'
            ),
        )
        + "</xs:union>"
    ),
    "attributes": lambda n, v: _of_root(_many(n, lambda i: f'<xs:attribute name="e{v}_{i}" type="xs:int"/>')),
    "types": lambda n, v: _xsd(
        _many(
            n,
            lambda i: (
                f'<xs:complexType name="t{i}"><xs:sequence><xs:element name="a{v}" type="xs:int"/></xs:sequence>'
                f'</xs:complexType><xs:element name="e{i}" type="t{i}"/>'
            ),
        )
    ),
    "keys": lambda n, v: _xsd(
        '<xs:element name="r"><xs:complexType/>'
        + _many(n, lambda i: f'<xs:key name="k{i}"><xs:selector xpath="a"/><xs:field xpath="@b{v}"/></xs:key>')
        + "</xs:element>"
    ),
    "nesting": lambda n, v: _xsd(
        _many(
            1 + n // 10,
            lambda i: (
                f'<xs:element name="e{i}"><xs:complexType><xs:sequence>{"<xs:sequence>" * 10}'
                f'<xs:element name="a{v}" type="xs:int"/>{"</xs:sequence>" * 11}</xs:complexType></xs:element>'
            ),
        )
    ),
}

JSON_STRUCTURE: dict[str, Shape] = {
    "fields": lambda n, v: _structure(
        type="object", properties={f"p{i}": {"type": "int32" if v else "int16"} for i in range(n)}
    ),
    "renamed fields": lambda n, v: _structure(
        type="object", properties={f"p{v}_{i}": {"type": "int32"} for i in range(n)}
    ),
    "references": lambda n, v: _structure(
        type="object",
        properties={f"p{i}": {"type": {"$ref": f"#/definitions/d{i}"}} for i in range(n)},
        definitions={
            f"d{i}": {"name": f"d{i}", "type": "object", "properties": {f"a{v}": {"type": "int32"}}} for i in range(n)
        },
    ),
    "an enum": lambda n, v: _structure(type="string", enum=[f"v{v}_{i}" for i in range(n)]),
    "a union": lambda n, v: _structure(
        type="object",
        properties={"u": {"type": [{"$ref": f"#/definitions/d{i}"} for i in range(n)]}},
        definitions={
            f"d{i}": {"name": f"d{i}", "type": "object", "properties": {f"a{v}_{i}": {"type": "int32"}}}
            for i in range(n)
        },
    ),
    "a choice": lambda n, v: _structure(type="choice", choices={f"c{v}_{i}": {"type": "int32"} for i in range(n)}),
    "a tuple": lambda n, v: _structure(
        type="tuple",
        properties={f"p{i}": {"type": "int32" if v else "int16"} for i in range(n)},
        tuple=[f"p{i}" for i in range(n)],
    ),
    "bases": lambda n, v: _structure(
        type="object",
        properties={f"p{i}": {"type": {"$ref": f"#/definitions/d{i}"}} for i in range(n)},
        definitions={
            "b": {"name": "b", "abstract": True, "type": "object", "properties": {"q": {"type": "int32"}}},
            **{
                f"d{i}": {
                    "name": f"d{i}", "type": "object", "$extends": "#/definitions/b",
                    "properties": {f"a{v}": {"type": "int32"}},
                }
                for i in range(n)
            },
        },
    ),
    "nesting": lambda n, v: _structure(
        type="object",
        properties=_nested(
            n,
            {"type": "int32" if v else "int16"},
            lambda one: {"type": "object", "properties": {"a": one}, "name": "N"},
        ),
    ),
}  # fmt: skip

SHAPES: dict[str, dict[str, Shape]] = {
    "JsonSchema/draft-07": JSON_SCHEMA,
    "Avro/1.12.0": AVRO,
    "Protobuf/3": PROTOBUF,
    "XSD/1.0": XSD,
    "JsonStructure/draft-04": JSON_STRUCTURE,
}

# What cannot be read, however large: each fault is found at a cost in proportion.
REFUSED: dict[str, dict[str, Shape]] = {
    "JsonSchema/draft-07": {
        "references to others": lambda n, v: _json(properties={f"p{i}": {"$ref": f"x{i}"} for i in range(n)}),
        "references to nothing": lambda n, v: _json(properties={f"p{i}": {"$ref": f"#/d/{i}"} for i in range(n)}),
        "types": lambda n, v: _json(properties={f"p{i}": {"type": "nonsense"} for i in range(n)}),
    },
    "Avro/1.12.0": {
        "references": lambda n, v: _record([{"name": f"f{i}", "type": f"T{i}"} for i in range(n)]),
        "references with defaults": lambda n, v: _record(
            [{"name": f"f{i}", "type": ["null", f"T{i}"], "default": None} for i in range(n)]
        ),
        "defaults": lambda n, v: _record([{"name": f"f{i}", "type": "int", "default": "x"} for i in range(n)]),
        "endless records": lambda n, v: _record(
            [
                {"name": f"f{i}", "type": {
                    "type": "record", "name": f"T{i}", "fields": [{"name": "a", "type": f"T{i}"}]
                }}
                for i in range(n)
            ]
        ),
    },
    "Protobuf/3": {
        "types": lambda n, v: _proto(f"message M {{ {_many(n, lambda i: f'T{i} f{i} = {i + 1};')} }}"),
        "numbers": lambda n, v: _proto(f"message M {{ {_many(n, lambda i: f'int32 f{i} = 1;')} }}"),
        "imports": lambda n, v: _proto(_many(n, lambda i: f'import "a{i}.proto";')),
    },
    "XSD/1.0": {
        "types": lambda n, v: _xsd(_many(n, lambda i: f'<xs:element name="e{i}" type="T{i}"/>')),
        "bases": lambda n, v: _xsd(
            _many(n, lambda i: f'<xs:simpleType name="s{i}"><xs:restriction base="T{i}"/></xs:simpleType>')
        ),
        "names": lambda n, v: _xsd('<xs:element name="e" type="xs:int"/>' * n),
        "values": lambda n, v: _of_values(
            '<xs:restriction base="xs:int">'
            + _many(n, lambda i: f'<xs:enumeration value="x{i}"/>')
            + "</xs:restriction>"
        ),
    },
    "JsonStructure/draft-04": {
        "references": lambda n, v: _structure(
            type="object", properties={f"p{i}": {"type": {"$ref": f"#/definitions/d{i}"}} for i in range(n)}
        ),
        "types": lambda n, v: _structure(
            type="object", properties={f"p{i}": {"type": "nonsense"} for i in range(n)}
        ),
    },
}  # fmt: skip
