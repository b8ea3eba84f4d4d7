import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.template import Template
from tests.schemas.bounds import bounded

MATCHES = [
    ("{a}-{b}", "x-y-z", {"a": "x", "b": "y-z"}),
    ("{a}.json", "x.json.json", {"a": "x.json"}),
    ("{a}{b}", "xyz", {"a": "x", "b": "yz"}),
    ("{a}{b}", "x", None),
    ("/a/{b}", "/a/", None),
    ("/a/{b}/c", "/a/x/c", {"b": "x"}),
    ("/a/{b}/c", "/a/x?c", None),
    ("{a}-{b}.c", "x-y.c", {"a": "x", "b": "y"}),
    ("{a}-{b}/{c}", "x-y-z/w", {"a": "x", "b": "y-z", "c": "w"}),
    ("{+a}", "x/y?z#w", {"a": "x/y?z#w"}),
    ("{+a}", "", None),
    ("{+a}/{b}", "x/y/z", {"a": "x/y", "b": "z"}),
    ("{+a}/{b}", "x", None),
    ("/{+a}.json", "/x/y.json.json", {"a": "x/y.json"}),
    ("{+a}-{b}/{c}", "x/y-z-w/q", {"a": "x/y", "b": "z-w", "c": "q"}),
    ("{x}/{+a}/end", "1/2/3/end", {"x": "1", "a": "2/3"}),
    ("/{+a}/x/{+b}", "/1/2/x/3/4", {"a": "1/2", "b": "3/4"}),
    ("/{+a}/x-{n}/{+b}", "/1/x-2/3/4", {"a": "1", "n": "2", "b": "3/4"}),
    ("/{+a}/x/{+b}", "/1/2/3", None),
    ("{a}", "a%2Fb", {"a": "a/b"}),
    ("{+a}", "a%2Fb", {"a": "a%2Fb"}),
    ("{a}", "50%", {"a": "50%"}),
    ("{a}", "%E2%82%AC%E2%82", {"a": "€%E2%82"}),
    ("{a}/{a}", "x%20y/x y", {"a": "x y"}),
    ("{a}/{a}", "x/y", None),
    ("{a b}", "{a b}", {}),
    ("plain", "plain", {}),
    ("plain", "plainer", None),
    ("{a}", "line\nbreak", {"a": "line\nbreak"}),
]


@pytest.mark.parametrize(("text", "value", "expected"), MATCHES)
def test_match(text: str, value: str, expected: dict[str, str] | None) -> None:
    """A value matches as matching.md says, and gives what each name stands for."""
    assert expected == Template.parse(text).match(value)


def test_what_a_template_says_about_itself() -> None:
    """Names stand once each in their order; text and placeholders are distinguished."""
    template = Template.parse("/{a}/{+b}{a}")
    assert ("a", "b") == template.names
    assert ["{a}", "{+b}", "{a}"] == [str(one) for one in template.placeholders]
    assert (False, True, True) == (template.literal, template.has_literal_text, template.adjacent)
    plain = Template.parse("{not valid}")
    assert (True, True, False) == (plain.literal, plain.has_literal_text, plain.adjacent)
    assert not Template.parse("{a}").has_literal_text


def test_expand() -> None:
    """Level 1 encodes all but unreserved characters; reserved expansion keeps what a URI may hold."""
    template = Template.parse("/{a}/{+b}")
    assert "/x%20y%2Fz/x%20y/z?%25" == template.expand({"a": "x y/z", "b": "x y/z?%"})
    assert "/%E2%82%AC/%20%41" == template.expand({"a": "€", "b": " %41"})
    with pytest.raises(KeyError):
        template.expand({"a": "x"})


NAMES = st.sampled_from(["a", "b", "c", "d"])
PIECES = st.lists(st.one_of(st.sampled_from(["/", "-", ".json", "x", "?q="]), NAMES.map("{{{}}}".format)), max_size=8)


@given(PIECES, st.dictionaries(NAMES, st.text("abxyz/ -.%€", min_size=1), min_size=4, max_size=4))
def test_what_matches_its_own_expansion_expands_to_it_again(pieces: list[str], values: dict[str, str]) -> None:
    """What `match` gives of an expansion, `expand` makes the same text of; one name a segment gives the values back."""
    template = Template.parse("".join(pieces))
    text = template.expand(values)
    found = template.match(text)
    if found is not None and not template.adjacent:
        assert text == template.expand(found)
    if all(len(segment) <= 2 for run in template._runs for segment in run.segments):
        assert {name: values[name] for name in template.names} == found


@given(PIECES, st.text("ab-/x.json?q=", max_size=30))
def test_the_pattern_and_the_walk_agree(pieces: list[str], value: str) -> None:
    """A pattern captures what the step by step matching captures."""
    template = Template.parse("".join(pieces))
    walked: list[str] = []
    holds = template._walk(value, walked)
    assert (walked if holds else None) == (list(found) if (found := template.captures(value)) is not None else None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a}-{b}-{c}-{d}x", "-".join(["a"] * 500_000)),
        ("{+a}/{b}x", "/" * 5_000_000),
        ("/{+a}/x-{n}/{+b}", "/x-" * 1_000_000),
        ("{+a}" + "/{b}" * 500, "/" * 3_000_000),
        ("-".join(f"{{p{n}}}" for n in range(1000)), "-" * 3_000_000),
        ("{a}" + "a" * 1000 + "b", "a" * 5_000_000),
    ],
)
def test_matching_is_linear(text: str, value: str) -> None:
    """Whatever the template, a value of megabytes takes no more than seconds; nothing backtracks."""
    with bounded(10):
        Template.parse(text).match(value)
