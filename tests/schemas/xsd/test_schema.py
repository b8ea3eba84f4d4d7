"""XML Schemas: what is read, which documents they take, their deep links, their columns, and hostile ones."""

from __future__ import annotations

import random
import re
import threading
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import xmlschema

from signalbook.schemas import SchemaError, read
from signalbook.schemas.xsd.pattern import danger
from signalbook.schemas.xsd.schema import XsdSchema
from signalbook.schemas.xsd.schema import read as read_xsd
from tests.cases import Case, cases, read_cases
from tests.schemas.arrow_types import assert_tabular
from tests.schemas.bounds import bounded
from tests.schemas.xsd_documents import WRAP, document

ORDER = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o" xmlns="urn:o"
  elementFormDefault="qualified">
<xs:element name="order"><xs:complexType><xs:sequence>
  <xs:element name="item" type="Item" maxOccurs="unbounded"/>
  <xs:element name="note" type="xs:string" minOccurs="0"/>
  <xs:element name="paid" type="xs:boolean" default="true"/>
  <xs:element name="sign" type="xs:base64Binary" minOccurs="0"/>
  <xs:element name="free" minOccurs="0"><xs:complexType mixed="true"><xs:sequence>
    <xs:element name="b" minOccurs="0"/></xs:sequence></xs:complexType></xs:element>
  </xs:sequence><xs:attribute name="id" type="xs:unsignedLong" use="required"/></xs:complexType></xs:element>
<xs:complexType name="Item"><xs:simpleContent><xs:extension base="Price"><xs:attribute name="sku" type="xs:token"/>
  </xs:extension></xs:simpleContent></xs:complexType>
<xs:simpleType name="Price"><xs:restriction base="xs:decimal"><xs:totalDigits value="10"/><xs:fractionDigits value="2"/>
  </xs:restriction></xs:simpleType>
</xs:schema>"""
GOOD = (
    b'<order xmlns="urn:o" id="18446744073709551615"><item sku="a">1.50</item><item>-3</item><paid/>'
    b"<sign>AAEC</sign><free>some <b/> text</free></order>"
)


@cases("schemas/xsd-read")
def test_read(case: Case) -> None:
    """A schema is read, or refused with where and why."""
    text = case.given
    if not text.startswith(("<schema", "<order", "{")) and text:
        text = f'<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema">{text}</x:schema>'
    if case.expect is None:
        assert "XSD/1.0" == read_xsd(text).format
    else:
        with pytest.raises(SchemaError) as caught:
            read_xsd(text)
        assert case.expect in str(caught.value)
        assert {problem.code for problem in caught.value.problems} <= {"schema", "reference"}


@pytest.mark.parametrize("text", [{"type": "object"}, True])
def test_no_text(text: Any) -> None:
    """A JSON value is no XML Schema."""
    with pytest.raises(SchemaError, match="not a JSON value"):
        read_xsd(text)


def test_encodings() -> None:
    """The bytes of a schema may be in any encoding; a text is itself, whatever its declaration says."""
    text = '<?xml version="1.0" encoding="UTF-16"?>' + WRAP.format('<xs:element name="é" type="xs:int"/>')
    for given in (text, text.encode("utf-16")):
        assert () == read_xsd(given).check("<é>1</é>".encode()).problems


@pytest.mark.parametrize(
    ("payload", "path", "words"),
    [
        (GOOD, None, ""),
        (GOOD.replace(b"-3", b"x"), "/item/1", "not a valid value"),
        (GOOD.replace(b' sku="a"', b' skew="a"'), "/item/0", "not allowed"),
        (GOOD.replace(b' id="18446744073709551615"', b""), "", "required but missing"),
        (GOOD.replace(b"<paid/>", b""), "/sign", "not expected"),
        (b"<order/>", "", "No matching global declaration"),
        (b"<order", "", "not well-formed"),
        (b"", "", "not well-formed"),
        (b"\xff\xfe\x00", "", "not well-formed"),
    ],
)
def test_check(payload: bytes, path: str | None, words: str) -> None:
    """A document is taken, or its problems are named with their places below the root."""
    problems = read_xsd(ORDER).check(payload).problems
    assert ([] if path is None else [path]) == [problem.path for problem in problems][:1]
    assert words in "".join(problem.message for problem in problems)


def test_references() -> None:
    """Documents are included and imported from the catalog, relative to one another, also in a circle."""
    catalog = {
        "/g/types": WRAP.format('<xs:include schemaLocation="more"/><xs:simpleType name="T">'
                                '<xs:restriction base="xs:int"/></xs:simpleType>'),
        "/g/more": WRAP.format('<xs:include schemaLocation="types"/><xs:element name="extra" type="T"/>'),
    }  # fmt: skip
    text = (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a" xmlns="urn:a">'
        '<xs:include schemaLocation="/g/types"/><xs:element name="a" type="T"/></xs:schema>'
    )
    schema = read_xsd(text, catalog.get)
    assert () == schema.check(b'<a xmlns="urn:a">1</a>').problems
    assert () == schema.check(b'<extra xmlns="urn:a">1</extra>').problems
    assert pa.struct([("a", pa.int32()), ("extra", pa.int32())]) == schema.columns()
    with pytest.raises(SchemaError, match="the catalog has no schema /g/types"):
        read_xsd(text)


@pytest.mark.parametrize(
    "link", ["/xs:schema/xs:element[@name='a']", '#//xs:element[@name="a"]', "/*/*[1]", "/xs:schema/xs:element[ 1 ]"]
)
def test_deep_link(link: str) -> None:
    """An XPath to the declaration of an element makes it the only root."""
    schema = read_xsd(WRAP.format('<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:int"/>'))
    found = schema.at(link)
    assert ("a", schema) == (found.root, schema.at("/xs:schema"))
    assert () == found.check(b"<a>1</a>").problems
    assert ["the root element is b, not a"] == [problem.message for problem in found.check(b"<b>1</b>").problems]
    assert pa.struct([("_VALUE", pa.int32())]) == found.columns()
    assert {"_VALUE": 7} == found.convert(found.check(b"<a>7</a>").value)


@pytest.mark.parametrize("link", ["//xs:element[@name='z']", "/*/*[9]", "//*[//*[//*]]", "a", "count(//*)"])
def test_deep_link_to_nowhere(link: str) -> None:
    """A link that leads to no element is refused; no XPath is ever run."""
    with pytest.raises(SchemaError):
        read_xsd(WRAP.format('<xs:element name="a"/>')).at(link)


def test_columns() -> None:
    """Children, attributes and values are columns of exact types; mixed content is XML text; a default is filled in."""
    schema = read_xsd(ORDER)
    item = pa.struct([("_sku", pa.string()), ("_VALUE", pa.decimal128(12, 2))])
    fields = [
        ("_id", pa.decimal128(20, 0)), ("item", pa.list_(item)), ("note", pa.string()), ("paid", pa.bool_()),
        ("sign", pa.binary()), ("free", pa.string()),
    ]  # fmt: skip
    assert pa.struct(fields) == schema.columns()
    assert {
        "_id": Decimal(2**64 - 1),
        "item": [{"_sku": "a", "_VALUE": Decimal("1.50")}, {"_sku": None, "_VALUE": Decimal(-3)}],
        "note": None,
        "paid": True,
        "sign": b"\0\1\2",
        "free": '<free xmlns="urn:o">some <b/> text</free>',
    } == schema.convert(schema.check(GOOD).value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<xs:element name="a"/>', pa.string()),
        ('<xs:element name="a" type="xs:integer"/>', pa.string()),
        ('<xs:element name="a" type="xs:unsignedInt"/>', pa.int64()),
        ('<xs:element name="a" type="xs:dateTime"/>', pa.string()),
        ('<xs:element name="a" type="xs:NMTOKENS"/>', pa.list_(pa.string())),
        ('<xs:element name="a"><xs:complexType/></xs:element>', pa.string()),
        ('<xs:element name="a" type="T"/><xs:complexType name="T"><xs:sequence>'
         '<xs:element name="b" type="T" minOccurs="0"/></xs:sequence></xs:complexType>', [("b", pa.string())]),
        ('<xs:element name="a"><xs:complexType><xs:choice maxOccurs="9"><xs:element name="b"/><xs:element name="c"/>'
         "</xs:choice></xs:complexType></xs:element>", pa.string()),
        ('<xs:element name="a"><xs:complexType><xs:sequence><xs:element name="b" nillable="true" minOccurs="0"/>'
         "</xs:sequence></xs:complexType></xs:element>", [("b", pa.string())]),
        ('<xs:element name="a"><xs:complexType><xs:sequence><xs:element name="b" type="xs:int"/></xs:sequence>'
         '<xs:attribute name="b" type="xs:boolean"/></xs:complexType></xs:element>',
         [("_b", pa.bool_()), ("b", pa.int32())]),
    ],
)  # fmt: skip
def test_constructs(body: str, expected: Any) -> None:
    """Each construct has its column; what a struct would lose is text."""
    expected = [("_VALUE", expected)] if isinstance(expected, pa.DataType) else expected
    assert pa.struct(expected) == read_xsd(WRAP.format(body)).columns()


SCHEMAS = [case.given[which] for case in read_cases("schemas/compatibility-xsd") for which in ("older", "newer")]


@pytest.mark.parametrize("body", sorted(set(SCHEMAS)))
def test_columns_hold_every_document(body: str) -> None:
    """What the check accepts fits the columns, and comes out of Arrow as it went in."""
    schema = read_xsd(WRAP.format(body))
    assert_tabular(schema.columns())
    chance = random.Random(body)
    values = [schema.convert(schema.check(document(schema, chance)).value) for _ in range(10)]
    back = pa.array(values, schema.columns()).to_pylist()
    assert [str(_whole(schema.columns(), value)) for value in values] == [str(value) for value in back]


def _whole(kind: Any, value: Any) -> Any:
    """The value with null for what it leaves out, and decimals with all their digits."""
    if pa.types.is_struct(kind) and value is not None:
        return {field.name: _whole(field.type, value.get(field.name)) for field in kind}
    if pa.types.is_list(kind) and value is not None:
        return [_whole(kind.value_type, one) for one in value]
    return value


# What a validator has to remember, look ahead for or look up while it reads.
REMEMBERED = [
    '<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" maxOccurs="9"><xs:complexType><xs:attribute'
    ' name="k"/><xs:attribute name="of"/></xs:complexType></xs:element></xs:sequence></xs:complexType>'
    '<xs:key name="K"><xs:selector xpath="a"/><xs:field xpath="@k"/></xs:key>'
    '<xs:keyref name="R" refer="K"><xs:selector xpath="a"/><xs:field xpath="@of"/></xs:keyref></xs:element>',
    '<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" nillable="true" type="xs:anyType"'
    ' maxOccurs="9"/></xs:sequence><xs:anyAttribute processContents="lax"/></xs:complexType></xs:element>'
    '<xs:complexType name="T"><xs:sequence><xs:element name="b" type="xs:int" fixed="7"/></xs:sequence>'
    "</xs:complexType>",
    '<xs:element name="r"><xs:complexType mixed="true"><xs:sequence><xs:element name="a" type="I" maxOccurs="9"/>'
    '</xs:sequence></xs:complexType></xs:element><xs:complexType name="I"><xs:simpleContent><xs:extension'
    ' base="xs:string"><xs:attribute name="k" type="Id"/><xs:attribute name="of" type="xs:IDREF"/></xs:extension>'
    '</xs:simpleContent></xs:complexType><xs:simpleType name="Id"><xs:restriction base="xs:ID"/></xs:simpleType>',
]
_XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
PIECES = [
    *(
        '<a k="1" of="1"/>',
        '<a k="2" of="1"/>',
        '<a k=" x "/>',
        '<a k="x"/>',
        '<a k="y" of="x"/>',
        '<a of="z"/>',
        "<a/>",
    ),
    *('<a xsi:nil="true"/>', '<a xsi:nil="true">1</a>', '<a xsi:type="T"><b>7</b></a>', '<a xsi:type="T"><b>8</b></a>'),
    *('<a xsi:type="U"/>', "<a>t<!-- c -->e<![CDATA[x]]>t</a>", "<a><b/>t</a>", "<b/>", "text", "<!-- c -->"),
]


def _read_as_large(schema: XsdSchema, payload: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """The problems that are found where the document is validated while it is read."""
    with monkeypatch.context() as patch:
        patch.setattr("signalbook.schemas.xsd.schema._SMALL", 0)
        patch.setattr("signalbook.schemas.xsd.schema.MOST_PATHS", 0)
        return schema.check(payload).problems


@pytest.mark.parametrize("body", sorted({*SCHEMAS, *REMEMBERED}))
def test_large_documents_are_checked_alike(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A document that is validated while it is read has the same problems as in its tree."""
    schema = read_xsd(WRAP.format(body))
    chance = random.Random(body)
    for _ in range(40):
        if body in REMEMBERED:
            some = (chance.choice(PIECES) for _ in range(chance.randrange(6)))
            payload = f"<r {_XSI}>{''.join(some)}</r>".encode()
        else:
            payload = document(schema, chance)
            if chance.random() < 0.7:
                payload = _mutilated(payload, chance)
        assert schema.check(payload).problems == _read_as_large(schema, payload, monkeypatch), payload


def _mutilated(payload: bytes, chance: random.Random) -> bytes:
    """The document with a text, a name or an element changed."""
    places = [found.start() for found in re.finditer(rb"[>\w]", payload)]
    place = chance.choice(places) if places else 0
    return (
        payload[: place + 1] + chance.choice([b"x", b"9", b"<z/>", b"", b" "]) + payload[place + chance.randrange(3) :]
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "utf-7", "cp037", "utf-32"])
def test_large_documents_in_any_encoding(encoding: str) -> None:
    """How many errors a document may have is known in every encoding, or it is validated while it is read."""
    schema = read_xsd(WRAP.format(_INTEGERS))
    payload = f'<?xml version="1.0" encoding="{encoding}"?><r>{"<a>x</a>" * 3000}</r>'.encode(encoding)
    problems = schema.check(payload).problems
    assert len(problems) in (1, 100)  # one where libxml2 does not know the encoding


_INTEGERS = (
    '<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int" maxOccurs="unbounded"/>'
    "</xs:sequence></xs:complexType></xs:element>"
)


@pytest.mark.parametrize("body", sorted(set(SCHEMAS)))
def test_the_same_as_another_validator(body: str) -> None:
    """xmlschema, which is written in Python, takes the same documents and refuses the same mutilated ones."""
    schema, other = read_xsd(WRAP.format(body)), xmlschema.XMLSchema10(WRAP.format(body))
    chance = random.Random(body)
    for _ in range(4):
        payload = document(schema, chance)
        for text in (payload, payload.replace(b"id>", b"ix>"), payload.replace(b">", b">7", 1)):
            try:
                expected = other.is_valid(text.decode())
            except xmlschema.XMLSchemaException:
                expected = False
            assert expected is (not schema.check(text).problems), text


def test_threads() -> None:
    """Threads share a schema: each gets the problems of its own document."""
    schema = read_xsd(ORDER)
    wrong: list[str] = []

    def work(number: int) -> None:
        for _ in range(50):
            payload = GOOD.replace(b"-3", b"x%d" % number)
            messages = [problem.message for problem in schema.check(payload).problems]
            if not any(f"'x{number}'" in message for message in messages) or schema.check(GOOD).problems:
                wrong.append(str(messages))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


# ---- hostile input


LAUGHS = (
    '<!DOCTYPE a [<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12)) + "]>"
)

EXTENDS = (
    '<xs:complexType name="t{0}"><xs:complexContent><xs:extension base="t{1}"><xs:attribute name="a{0}"/>'
    "</xs:extension></xs:complexContent></xs:complexType>"
)
VALUES = "".join(f'<xs:enumeration value="v{number}"/>' for number in range(30_000)) + "</xs:restriction>"
ENUMERATED = f'<xs:simpleType name="t"><xs:restriction base="xs:string">{VALUES}</xs:simpleType>'


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS + '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" id="&l11;"/>',
        LAUGHS + '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">&l11;</xs:schema>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><xs:schema '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema">&x;</xs:schema>',
        "<a>" * 100_000,
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>" + " " * 11_000_000 + "</xs:schema>",
        WRAP.format("<xs:annotation><xs:appinfo>" + "<a>" * 3000 + "</a>" * 3000 + "</xs:appinfo></xs:annotation>"),
        WRAP.format('<xs:complexType name="a"><xs:sequence>'
                    + "".join(f'<xs:element name="f{n}" minOccurs="0"/>' for n in range(100_000))
                    + "</xs:sequence></xs:complexType>"),
        WRAP.format("".join(f'<xs:group name="g{n}"><xs:sequence><xs:group ref="g{n - 1}"/><xs:group ref="g{n - 1}"/>'
                            "</xs:sequence></xs:group>" for n in range(1, 60))
                    + '<xs:group name="g0"><xs:sequence><xs:element name="e"/></xs:sequence></xs:group>'
                    + '<xs:complexType name="t"><xs:group ref="g59"/></xs:complexType>'),
        WRAP.format("".join(f'<xs:group name="g{n}"><xs:sequence><xs:group ref="g{n - 1}"/></xs:sequence></xs:group>'
                            for n in range(1, 5000))
                    + '<xs:group name="g0"><xs:sequence><xs:element name="e"/></xs:sequence></xs:group>'
                    + '<xs:complexType name="t"><xs:group ref="g4999"/></xs:complexType>'),
        WRAP.format('<xs:complexType name="t0"/>' + "".join(EXTENDS.format(n, n - 1) for n in range(1, 4000))),
        WRAP.format("".join(EXTENDS.format(n, n - 1) for n in range(4000, 0, -1)) + '<xs:complexType name="t0"/>'),
        WRAP.format('<xs:attributeGroup name="g">' + "".join(f'<xs:attribute name="a{n}"/>' for n in range(2000))
                    + "</xs:attributeGroup>"
                    + "".join(f'<xs:complexType name="t{n}"><xs:attributeGroup ref="g"/></xs:complexType>'
                              for n in range(4000))),
        WRAP.format(f'{ENUMERATED}<xs:simpleType name="u"><xs:restriction base="t">{VALUES}</xs:simpleType>'),
        WRAP.format('<xs:simpleType name="u"><xs:restriction><xs:simpleType><xs:union memberTypes="xs:int t"/>'
                    f"</xs:simpleType>{VALUES}</xs:simpleType>{ENUMERATED}"),
    ],
    ids=["laughs in an attribute", "laughs", "external subset", "external entity", "deep", "large", "deep inside",
         "100,000 fields", "groups of groups", "a chain of groups", "a chain of types", "a chain of types backwards",
         "attributes in all types", "an enumeration of another", "an enumeration of a union"],
)  # fmt: skip
def test_hostile_schemas(text: str) -> None:
    """A hostile schema is refused in bounded time and memory."""
    with bounded(10), pytest.raises(SchemaError):
        read("XSD/1.0", text)


@pytest.mark.parametrize(
    "payload",
    [
        LAUGHS.encode() + b"<a>&l11;</a>",
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b"<a>" * 100_000,
        b"<a " + b"x" * 11_000_000 + b'=""/>',
        b"<a>" + b"b" * 11_000_000 + b"</a>",
    ],
    ids=["laughs", "external entity", "deep", "long name", "long text"],
)
def test_hostile_documents(payload: bytes) -> None:
    """A hostile document is a problem, found in bounded time and memory."""
    schema = read_xsd(WRAP.format('<xs:element name="a" type="xs:int"/>'))
    with bounded(10):
        assert schema.check(payload).problems


def test_a_schema_location_is_not_followed() -> None:
    """What a document says about where its schema lies is not looked at."""
    schema = read_xsd(WRAP.format('<xs:element name="a" type="xs:int"/>'))
    payload = (
        b'<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        b'xsi:noNamespaceSchemaLocation="http://127.0.0.1:1/x.xsd">1</a>'
    )
    assert () == schema.check(payload).problems


@pytest.mark.parametrize(
    "pattern",
    [
        "[A-Z]{3}", r"\d{4}-\d{2}", "[A-Z]{1,3}[0-9]{2,8}", r"(\+|-)?\d+(\.\d+)?", r"[a-z]+(\.[a-z]+)*", ".{1,50}",
        r"[^@]+@[^@]+\.[^@]+", r".*\S.*", r"[\i-[:]][\c-[:]]*", r"\p{L}+", "([0-9A-F]{2}:){5}[0-9A-F]{2}",
        "[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
        r"((25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)",
    ],
)  # fmt: skip
def test_usual_patterns(pattern: str) -> None:
    """The patterns of real schemas are taken, and matched quickly whatever the value."""
    assert "" == danger(pattern)
    body = f'<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="{pattern}"/>'
    schema = read_xsd(WRAP.format(body + "</xs:restriction></xs:simpleType></xs:element>"))
    with bounded(2):
        for text in (b"a" * 500 + b"!", b"1" * 500 + b"!", b"a." * 250 + b"@", b"A1" * 250 + b"\t", b" " * 500):
            schema.check(b"<a>" + text + b"</a>")


@pytest.mark.parametrize(
    "pattern",
    ["(a|aa)+", "(a|a)*b", "(a|b|ab)*c", "a*a*a*a*b", "(a{1,100}){1,100}", "a?" * 30, "(a|aa){30}", "x" * 3000,
     "(" * 100 + "a" + ")" * 100, "a{1,30}a{1,30}a{1,30}a{1,30}b"],
)  # fmt: skip
def test_patterns_that_blow_up(pattern: str) -> None:
    """A pattern that libxml2 could need ages for is refused."""
    with bounded(2):
        assert danger(pattern)


def test_names() -> None:
    """The row is found by the names of real catalogs."""
    for name in ("XSD/1.0", "xsd", "XMLSchema", "xmlschema/1.0"):
        assert isinstance(read(name, ORDER), XsdSchema)
