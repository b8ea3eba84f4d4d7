from signalbook.server.conditional import coded, matches, not_modified
from tests.cases import Case, cases


@cases("server/if_match")
def test_comparison(case: Case) -> None:
    """`If-Match` compares strongly, `If-None-Match` weakly (RFC 9110 section 8.8.3.2)."""
    header, etag = case.given["header"], case.given["etag"]
    assert case.expect == [matches(header, etag), matches(header, etag, weak=True)]


def test_not_modified() -> None:
    """Without `If-None-Match` a read is always answered in full."""
    assert not not_modified(None, '"7"')
    assert not_modified('W/"7"', '"7"')


def test_a_coding_is_part_of_the_tag() -> None:
    """A coded response has a tag of its own, which is taken back for the entity's."""
    assert '"7-gzip"' == coded('"7"', "gzip")
    assert "odd" == coded("odd", "gzip")
    assert matches(coded('"7"', "zstd"), '"7"')
