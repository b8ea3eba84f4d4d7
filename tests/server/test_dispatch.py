from signalbook.server.dispatch import coded, matches, unchanged
from tests.cases import Case, cases


@cases("server/if_match")
def test_comparison(case: Case) -> None:
    """`If-Match` compares strongly, `If-None-Match` weakly (RFC 9110 section 8.8.3.2)."""
    header, etag = case.given["header"], case.given["etag"]
    assert case.expect == [matches(header, etag), matches(header, etag, weak=True)]


def test_unchanged() -> None:
    """A client that has what it asks for gets a 304 with the tag it knows it by, compressed or not."""
    assert unchanged(None, '"7"') is None
    assert unchanged('"8"', '"7"') is None
    for known, shown in (('W/"7"', '"7"'), ("*", '"7"'), ('"7-gzip"', '"7-gzip"'), ('"6", "7-zstd"', '"7-zstd"')):
        response = unchanged(known, '"7"')
        assert response is not None
        assert (304, [("etag", shown)]) == (response.status, response.headers)


def test_a_coding_is_part_of_the_tag() -> None:
    """A coded response has a tag of its own, which is taken back for the entity's."""
    assert '"7-gzip"' == coded('"7"', "gzip")
    assert "odd" == coded("odd", "gzip")
    assert matches(coded('"7"', "zstd"), '"7"')
