from hypothesis import given
from hypothesis import strategies as st

from signalbook.pipeline.tables import DEAD_LETTERS, table_names
from tests.cases import Case, cases

XIDS = st.sets(
    st.builds("/messagegroups/{}/messages/{}".format, st.sampled_from("gG-"), st.text("aA._-~:@1", min_size=1)),
    max_size=12,
)


@cases("pipeline/names")
def test_names(case: Case) -> None:
    """A message's table has the name that the rule gives it."""
    assert case.expect == table_names(case.given)


@given(XIDS)
def test_names_never_clash(xids: set[str]) -> None:
    """Two messages never share a table, and none has that of the dead letters."""
    names = table_names(xids)
    assert len(xids) == len({*names.values(), DEAD_LETTERS}) - 1
    assert all(
        part.isascii() and part == part.lower() and part[0] != "_"
        for part in "/".join(names.values()).split("/")
        if part
    )


def test_who_has_a_table_keeps_it() -> None:
    """A newcomer of the same name does not take the table of a message that is in the lake."""
    old, new = "/messagegroups/g/messages/b.c", "/messagegroups/g/messages/B.c"
    names = table_names([new, old], owners={"g/b_c": old})
    assert ("g/b_c", True) == (names[old], names[new].startswith("g/b_c_"))


def test_a_long_id_is_cut() -> None:
    """A name fits into every file system."""
    (name,) = table_names(["/messagegroups/g/messages/" + "a" * 500]).values()
    assert len(name) < 120
