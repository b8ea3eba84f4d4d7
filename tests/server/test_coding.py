import gzip

import pytest
import zstandard

from signalbook.server.coding import choose, encode
from signalbook.server.http import JSON, Response
from tests.cases import Case, cases

BODY = b'{"a": "' + b"x" * 5000 + b'"}'


@cases("server/accept_encoding")
def test_the_choice(case: Case) -> None:
    """The coding with the greatest weight that this server has, zstd before gzip."""
    assert case.expect == choose(case.given)


@pytest.mark.parametrize(("coding", "decode"), [("gzip", gzip.decompress), ("zstd", zstandard.decompress)])
def test_a_coded_body(coding: str, decode: object) -> None:
    """A coded response holds the same bytes, names the coding and has a tag of its own."""
    plain = Response(200, [JSON, ("ETag", '"7"'), ("content-length", "9")], BODY)
    response = encode(plain, coding)
    assert [JSON, ("ETag", f'"7-{coding}"'), ("content-encoding", coding)] == response.headers
    assert len(response.body) < 200
    assert BODY == decode(response.body)  # type: ignore[operator]
    assert [JSON, ("ETag", '"7"'), ("content-length", "9")] == plain.headers


@pytest.mark.parametrize(
    "headers",
    [[("content-type", "image/png")], [], [JSON, ("content-encoding", "br")]],
    ids=["a picture", "no type", "already coded"],
)
def test_what_is_not_coded(headers: list[tuple[str, str]]) -> None:
    """What does not shrink, or is coded already, stays as it is."""
    response = Response(200, headers, BODY)
    assert encode(response, "gzip") is response


@pytest.mark.parametrize("kind", ["text/html", "application/schema+json", "application/vnd.a.b+xml; x=y"])
def test_what_is_coded(kind: str) -> None:
    """Text and its relatives are coded."""
    assert ("content-encoding", "gzip") in encode(Response(200, [("content-type", kind)], BODY), "gzip").headers
