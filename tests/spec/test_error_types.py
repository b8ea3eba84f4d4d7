"""The list of errors: names, statuses, arguments and titles."""

import re
from collections import Counter

import pytest

from signalbook.errors import RegistryError
from signalbook.spec.error_types import ERROR_TYPES, ErrorType, title, type_uri


def test_how_many() -> None:
    """The specification has 60 errors in its core and 6 in its HTTP binding; the others say whose they are."""
    kinds = Counter((row.origin, row.document) for row in ERROR_TYPES.values())
    assert kinds[("specification", "spec")] == 60
    assert kinds[("specification", "http")] == 6
    assert ["hasdocument_enable_violation"] == [row.name for row in ERROR_TYPES.values() if row.origin == "reference"]
    assert all(row.ours == (row.origin != "specification") for row in ERROR_TYPES.values())


@pytest.mark.parametrize("row", ERROR_TYPES.values(), ids=lambda row: row.name)
def test_a_title_is_a_sentence(row: ErrorType) -> None:
    """ERR-4, ERR-15: a title names its subject or arguments by valid names and ends with a period."""
    assert row.title.endswith(".")
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name) for name in row.args)
    assert "subject" not in row.args
    assert 400 <= row.status < 600


def test_title() -> None:
    """The title has the subject and the arguments in it; an argument that is missing leaves no mark."""
    error = RegistryError("mismatched_epoch", "/dirs/d1", bad_epoch=3, epoch=4)
    assert title(error) == 'The specified epoch value (3) for "/dirs/d1" does not match its current value (4).'
    assert title(RegistryError("bad_flag", "/")) == "The specified flag () is not allowed in this context: /."


def test_a_value_is_no_placeholder() -> None:
    """What an argument holds is put in as it is."""
    error = RegistryError("bad_request", "/x", error_detail="<subject>")
    assert title(error) == "<subject>."


def test_type_uri() -> None:
    """ERR-2: the type is a URI into the document that defines the error; the name is behind the hash."""
    assert type_uri("not_found") == "https://github.com/xregistry/spec/blob/main/core/spec.md#not_found"
    assert type_uri("missing_body") == "https://github.com/xregistry/spec/blob/main/core/http.md#missing_body"
    assert type_uri("forbidden") == "urn:signalbook:errors#forbidden"
    assert all(type_uri(name).partition("#")[2] == name for name in ERROR_TYPES)


def test_statuses_beyond_400() -> None:
    """The statuses that are not 400 are these."""
    others = {row.name: row.status for row in ERROR_TYPES.values() if row.status != 400 and not row.ours}
    assert others == {
        "action_not_supported": 405,
        "api_not_found": 404,
        "data_retrieval_error": 500,
        "details_required": 405,
        "not_found": 404,
        "server_busy": 503,
        "server_error": 500,
        "too_large": 406,
    }
