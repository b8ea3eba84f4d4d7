import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.model.values import from_text
from signalbook.server.dispatch import joined
from signalbook.server.headers import (
    decode_attributes,
    decode_value,
    encode_attributes,
    encode_value,
    refuse_headers,
    repeated,
)
from tests.cases import Case, cases

# Everything JSON text can hold but the NUL character, which `parse_json` refuses.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@cases("server/encode_attributes")
def test_encoding(case: Case) -> None:
    """Scalars and maps of scalars become headers, all else stays out."""
    assert [tuple(pair) for pair in case.expect] == encode_attributes(case.given, singular="file")


@cases("server/decode_attributes")
def test_decoding(case: Case) -> None:
    """Headers become attributes with PATCH semantics."""
    has_body = case.given.get("body", False)
    assert case.expect == decode_attributes(case.given["headers"], "/d/f", singular="file", has_body=has_body)


@cases("server/decode_errors")
def test_what_is_refused(case: Case) -> None:
    """A header that cannot be meant so is an error with its name."""
    has_body = case.given.get("body", False)
    with pytest.raises(RegistryError) as caught:
        decode_attributes(case.given["headers"], "/d/f", singular="file", has_body=has_body)
    assert case.expect == [caught.value.name, caught.value.args_]
    assert "/d/f" == caught.value.subject


def test_a_repeated_header_of_an_attribute_is_no_list() -> None:
    """Repeated headers are joined by commas, save those of attributes, whose value may have a comma itself."""
    given = [("Accept", "a"), ("accept", "b"), ("xRegistry-name", "a"), ("xregistry-Name", "b")]
    headers = joined(given)
    assert "a, b" == headers["accept"]
    assert {"name": "a"} == decode_attributes(headers, "/d/f", singular="file", has_body=False)
    fault = repeated(headers, "/d/f")
    assert fault is not None
    assert ("header_error", "/d/f", "xRegistry-name") == (fault.name, fault.subject, fault.args_["name"])
    assert repeated(joined([("accept", "a"), ("accept", "b"), ("xRegistry-name", "a")]), "/d/f") is None


def test_metadata_in_the_body_forbids_headers() -> None:
    """A request whose metadata is in its body must have no xRegistry header."""
    refuse_headers(["host", "content-type"], "/d")
    with pytest.raises(RegistryError) as caught:
        refuse_headers(["host", "xregistry-versionid"], "/d/f$details")
    assert {
        "name": "xregistry-versionid",
        "error_detail": 'including "xRegistry" HTTP headers when "$details" is used is not allowed',
    } == caught.value.args_


@given(TEXTS)
def test_a_text_comes_back(text: str) -> None:
    """Decoding what was encoded gives the same text, and the header is printable ASCII without spaces."""
    header = encode_value(text)
    assert all("\x21" <= character <= "\x7e" for character in header)
    assert header != "null"
    assert text == decode_value(header)


@given(st.dictionaries(st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,20}", fullmatch=True), TEXTS, min_size=1))
def test_labels_come_back(labels: dict[str, str]) -> None:
    """A map that was sent in headers is the same map when it is read back."""
    headers = {name.lower(): value for name, value in encode_attributes({"labels": labels}, singular="file")}
    assert {"labels": labels} == decode_attributes(headers, "/", singular="file", has_body=False)


@given(st.text(max_size=60))
def test_any_value_is_decoded_or_refused(text: str) -> None:
    """No header value does anything but decode or raise the specification's error."""
    attributes, name = {"name": None}, "header_error"
    try:
        attributes = decode_attributes({"xregistry-name": text}, "/", singular="file", has_body=False)
    except RegistryError as error:
        name = error.name
    assert "header_error" == name
    assert attributes["name"] is None or "\0" not in attributes["name"]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("true", "boolean", True),
        ("false", "boolean", False),
        ("TRUE", "boolean", "TRUE"),
        ("7", "uinteger", 7),
        ("-7", "integer", -7),
        ("7.5", "integer", "7.5"),
        ("7" * 30, "integer", "7" * 30),
        ("7", "decimal", 7),
        ("-7.25", "decimal", -7.25),
        ("1e3", "decimal", 1000.0),
        ("1e999", "decimal", "1e999"),
        ("nan", "decimal", "nan"),
        ("7", "string", "7"),
        ("2024-01-01T00:00:00Z", "timestamp", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_text_means_a_value_of_its_type(text: str, kind: str, expected: object) -> None:
    """A header's text becomes the value of its attribute's type, or stays for the model to refuse."""
    assert (expected, type(expected)) == (from_text(kind, text), type(from_text(kind, text)))


def test_no_header_can_be_broken_by_half_a_character() -> None:
    """Even text without a UTF-8 form is encoded."""
    assert "%3F" == encode_value("\ud800")
