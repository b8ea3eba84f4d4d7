from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook import Registry
from signalbook.errors import RegistryError
from signalbook.registry import filters
from signalbook.registry.filters import Clause, Comparand, Filter, matches_pieces, parse, query, split, terms
from signalbook.registry.read.queries import Search
from tests.cases import Case, cases

TEXTS = st.one_of(
    st.text(max_size=6),
    st.text(alphabet="aAbB*\\,5.0é", max_size=6),
    st.sampled_from(
        ["true", "TRUE", "5", "5.0", "-0", "1e3", "2024-01-01T12:00:00.50Z", "2024-01-01T13:00:00.5+01:00"]
    ),
)
SCALARS = st.one_of(TEXTS, st.booleans(), st.integers(-9, 1100), st.floats(allow_nan=False, allow_infinity=False))
ATTRS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), SCALARS),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(SCALARS, inner, st.lists(SCALARS, max_size=2))),
    max_leaves=6,
)
PATHS = st.sampled_from(["a", "b", "a.b", "a.b.c", "a.*", "b[*]", "b[0]"])


def one(text: str) -> Clause:
    """The only clause of an expression."""
    ((clause,),) = parse([text], "/").alternatives
    return clause


@cases("registry/filters")
def test_cases(case: Case) -> None:
    """An expression holds or does not hold for an entity's attributes."""
    (clauses,) = parse([unquote(case.given["filter"])], "/").alternatives
    assert case.expect is all(clause.holds(case.given["attrs"]) for clause in clauses)


@cases("registry/filter_errors")
def test_errors(case: Case) -> None:
    """Invalid filter expressions generate `bad_filter` with the offending value and what is wrong with it."""
    with pytest.raises(RegistryError) as caught:
        parse(case.given, "/?filter=x")
    assert ("bad_filter", "/?filter=x", case.expect) == (
        caught.value.name,
        caught.value.subject,
        caught.value.args_,
    )


def test_bounds() -> None:
    """A request's filters have a greatest length and number together."""
    with pytest.raises(RegistryError) as caught:
        parse(["a=" + "x" * filters.MAX_TEXT], "/")
    assert "longer than 8192 characters" == caught.value.args_["error_detail"]
    assert 70 > len(caught.value.args_["value"])
    with pytest.raises(RegistryError) as caught:
        parse([",".join(["a=1"] * filters.MAX_CLAUSES), "b=2"], "/")
    assert {"value": "b=2", "error_detail": "more than 64 expressions"} == caught.value.args_


def test_alternatives() -> None:
    """A comma is AND, another parameter is OR, and parameters without an expression say nothing."""
    found = parse(["a=1,b=2", "", "c"], "/")
    assert [["a=1", "b=2"], ["c"]] == [[clause.text for clause in clauses] for clauses in found.alternatives]
    assert found
    assert Filter.NONE is parse([], "/")
    assert not parse([""], "/")


def test_excludeall() -> None:
    """`excludeall` alone asks for nothing."""
    found = parse(["excludeall"], "/")
    assert Filter(excludeall=True) == found
    assert found


def test_head_and_tail() -> None:
    """A clause gives up its steps from the left, and its text with them."""
    clause = one("dirs.files.labels['a.b']=1elif")
    assert ("dirs", "files.labels['a.b']=1elif") == (clause.head, clause.tail().text)
    assert ("labels", "['a.b']=1elif") == (clause.tail().tail().head, clause.tail().tail().tail().text)
    assert one("[0]=x").head is None
    assert one("dirs").tail().head is None
    assert one("dirs").tail().holds({})


def test_split() -> None:
    """Clauses are about the entity itself or about the members of one of its collections."""
    (clauses,) = parse(["name=a,files.name=b,files.versions.x,[0]=c"], "/").alternatives
    own, nested = split(clauses, {"files"}.__contains__)
    assert ["name=a", "[0]=c"] == [clause.text for clause in own]
    assert {"files": ["name=b", "versions.x"]} == {
        name: [clause.text for clause in members] for name, members in nested.items()
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["labels.file1=1elif"], "filter=labels.file1=1elif"),
        (["labels.file1"], "filter=labels.file1"),
        (["a=1,b!=2", "c=null"], "filter=a=1,b!=2&filter=c=null"),
        (["a=x y&z+1%#,b<2"], "filter=a=x%20y%26z%2B1%25%23,b%3C2"),
        (["a['b c'][0]=\\,"], "filter=a%5B'b%20c'%5D%5B0%5D=%5C,"),
    ],
)
def test_query(values: list[str], expected: str) -> None:
    """A filter is written into a URL so that a query to it selects the same entities."""
    alternatives = parse(values, "/").alternatives
    assert expected == query(alternatives)
    assert alternatives == parse([unquote(part[7:]) for part in expected.split("&")], "/").alternatives


@given(st.lists(st.sampled_from(["", "a", "b", "ab", "ba"]), min_size=2, max_size=5), st.text("ab", max_size=12))
def test_wildcards_match_anything_between(pieces: list[str], text: str) -> None:
    """The presence of a wildcard indicates that any number of characters may appear at that location."""
    assert bool(re.fullmatch(".*".join(pieces), text)) is matches_pieces(pieces, text)


def test_wildcards_are_quick() -> None:
    """A pattern that makes backtracking explode is answered at once."""
    assert not one("a=" + "a*" * 4000 + "b").holds({"a": "a" * 4000})


@given(PATHS, TEXTS.filter(lambda text: not text.startswith(("=", ">"))), ATTRS)
def test_not_equal_is_the_opposite_of_equal(path: str, value: str, attrs: dict[str, Any]) -> None:
    """`!=` is semantically equivalent to `NOT(<ATTRIBUTE>=<VALUE>)`."""
    value = value.replace(",", "")
    assert one(f"{path}={value}").holds(attrs) is not one(f"{path}!={value}").holds(attrs)
    assert one(f"{path}<>{value}").holds(attrs) is one(f"{path}!={value}").holds(attrs)


@given(PATHS, st.text(alphabet="ab5.0é", max_size=4), ATTRS)
def test_ordering_agrees_with_equality(path: str, value: str, attrs: dict[str, Any]) -> None:
    """Where one value is compared, `<=` is `<` or `=`, and `>=` is `>` or `=`."""
    holds = {sign: one(path + sign + value).holds(attrs) for sign in ("=", "<", "<=", ">", ">=")}
    assert (holds["<"] or holds["="]) is holds["<="]
    assert (holds[">"] or holds["="]) is holds[">="]


@given(PATHS, TEXTS, ATTRS)
def test_an_index_answers_exactly(path: str, value: str, attrs: dict[str, Any]) -> None:
    """A clause holds for an entity exactly where its index term is among the entity's terms."""
    clause = one(f"{path}={value}") if "," not in value else one(path)
    term = clause.index_term()
    if term is not None:
        assert clause.holds(attrs) is (term in set(terms(attrs)))


def test_terms() -> None:
    """The terms of an entity are its scalar values by path; arrays and nulls have none."""
    attrs = {"name": "A", "n": 5.0, "on": True, "labels": {"a.b": "C", "d": None}, "list": ["x"], "empty": {}}
    assert [("name", "a"), ("n", "5"), ("on", "true"), ("labels['a.b']", "c")] == list(terms(attrs))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name=ABC", ("name", "abc")),
        ("labels.Stage=Dev", ("labels.Stage", "dev")),
        ("epoch=5", ("epoch", "5")),
        ("a=", ("a", "")),
        ("at=2024-01-01T13:00:00.50+01:00", ("at", "2024-01-01t12:00:00.5")),
        ("epoch=5.0", None),
        ("on=true", ("on", "true")),
        ("on=TRUE", None),
        ("labels['a.b']=x", ("labels['a.b']", "x")),
        ("a=x*", None),
        ("a!=x", None),
        ("a", None),
        ("a=null", None),
        ("l[0]=x", None),
        ("l.*=x", None),
    ],
)
def test_index_term(text: str, expected: tuple[str, str] | None) -> None:
    """An index can answer equality with plain text at a path of names."""
    assert expected == one(text).index_term()


def test_a_comparand_keeps_its_text() -> None:
    """A value is read once: as text, number and boolean."""
    assert Comparand("5", "5", 5, None, None) == Comparand.from_text("5")
    assert Comparand("true", "true", None, True, None) == Comparand.from_text("true")
    assert Comparand("A*", "", None, None, ("a", "")) == Comparand.from_text("A*")


ARRAYS = {
    "endpoints": {
        "e": {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": {"endpoints": [{"uri": "http://x"}]}},
        "f": {"usage": ["consumer"], "protocol": "Foo", "protocoloptions": {"endpoints": "x"}, "tags": ["a"]},
    },
    "messagegroups": {
        "g": {
            "messages": {
                "m": {
                    "protocol": "HTTP",
                    "protocoloptions": {"headers": [{"name": "A", "value": "b"}]},
                    "tags": ["a", "b"],
                    "deep": {"tags": [{"a": 1}]},
                },
                "n": {
                    "tags": "c",
                    "labels": {"x": "y"},
                    "nest": [[1, 2], [3]],
                    "mixed": [{"a": 1}, [2], 5],
                    "rows": [[{"a": 1}]],
                    "object": {"a": 1},
                },
            }
        },
        "k": {"messages": {"m": {"protocol": "KAFKA", "protocoloptions": {"headers": {"name": {"value": "b"}}}}}},
    },
}


@pytest.fixture(scope="module")
def arrays() -> Iterator[Registry]:
    """A registry with arrays in every place that a path can lead to."""
    with Registry.open() as registry:
        registry.patch("/", ARRAYS)
        yield registry


@cases("registry/filter_arrays")
def test_an_array_that_is_taken_for_a_value(case: Case, arrays: Registry) -> None:
    """A clause that takes an array for one value is refused with what to write where it cannot be answered rightly."""
    path, sign, text = case.given.partition("?filter=")
    wanted = f"{path}{sign}{quote(text)}"
    if isinstance(case.expect, list):
        found = arrays.get(wanted)
        assert case.expect == (sorted(found) if path.count("/") % 2 and path != "/" else [found["xid"]])
        return
    with pytest.raises(RegistryError) as caught:
        arrays.get(wanted)
    assert ("bad_filter", text) == (caught.value.name, caught.value.args_["value"])
    assert case.expect == caught.value.args_["error_detail"]


def test_looking_for_arrays_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the index knows of nothing, a bounded number of entities is looked at for arrays; for labels none is."""
    looked: list[str] = []
    original = Search.resource

    def counted(self: Search, kind: Any, row: Any, default: Any, alternatives: Any) -> Any:
        looked.append(row.xid)
        return original(self, kind, row, default, alternatives)

    monkeypatch.setattr(Search, "resource", counted)
    with Registry.open() as registry:
        many = {f"m{number}": {"labels": {"a": "b"}} for number in range(150)}
        registry.patch("/", {"messagegroups": {name: {"messages": many} for name in ("g", "h", "i")}})
        assert {} == registry.get("/messagegroups/g/messages?filter=labels.a=c")
        assert [] == looked
        with pytest.raises(RegistryError, match="not_found"):
            registry.get("/?filter=messagegroups.messages.extra=c")
        assert 200 == len(looked)
