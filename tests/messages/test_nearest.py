"""The definitions nearest to a message that none expects, and how like texts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.messages import Catalog, nearest
from signalbook.messages.compile import Judged, MatchPlan, judge
from signalbook.messages.nearest import edits, segments, shared
from signalbook.messages.observe import Observed
from signalbook.messages.schema_library import SchemaLibrary

NOUNS = ("order", "crane", "berth", "pilot", "cargo", "truck", "gate", "yard", "vessel", "port")
VERBS = ("created", "changed", "deleted", "moved", "sent", "held", "freed", "seen", "lost", "found")
TYPES = [f"com.acme.svc{n}.{noun}.{verb}" for n in range(100) for noun in NOUNS for verb in VERBS]
EVENT = {"specversion": "1.0", "id": "1", "source": "/s"}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """Ten thousand types of which none has a rare word but the service."""
    messages = {name: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}}} for name in TYPES}
    return Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})


def near(catalog: Catalog, name: str) -> list[str]:
    """The types that are listed for one that is not there."""
    answer = catalog.match({**EVENT, "type": name})
    assert "unexpected" == answer.outcome
    return [one.definition.rpartition("/")[2] for one in answer.candidates]


@pytest.mark.parametrize(
    ("misspelt", "first"),
    [
        ("com.acme.svc7.order.craeted", "com.acme.svc7.order.created"),
        ("com.acme.svc7.ordr.created", "com.acme.svc7.order.created"),
        ("com.acme.svc777.order.created", "com.acme.svc77.order.created"),
        ("com.acme.Svc7.Order.Created", "com.acme.svc7.order.created"),
        ("com.acm.svc7.order.created", "com.acme.svc7.order.created"),
    ],
)
def test_the_likest_is_first(catalog: Catalog, misspelt: str, first: str) -> None:
    """A misspelt type lists the one that was meant first, and five at most."""
    found = near(catalog, misspelt)
    assert first == found[0]
    assert len(found) <= 5


def test_of_one_service_those_with_the_same_noun(catalog: Catalog) -> None:
    """With equally many problems, those come first that share more words."""
    assert {"com.acme.svc7.order"} == {name.rpartition(".")[0] for name in near(catalog, "com.acme.svc7.order.x")}


def test_where_all_words_are_common(catalog: Catalog) -> None:
    """Where no word is rare, those are listed that begin alike; where none does, nothing."""
    assert all(name.startswith("com.acme.") for name in near(catalog, "com.acme.a.order.x"))
    assert [] == near(catalog, "org.other.thing")


def test_few_are_judged(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large catalog a few definitions are judged."""
    judged: list[MatchPlan] = []

    def counted(plan: MatchPlan, observed: Observed, library: SchemaLibrary) -> Judged:
        judged.append(plan)
        return judge(plan, observed, library)

    monkeypatch.setattr(nearest, "judge", counted)
    near(catalog, "com.acme.svc7.order.craeted")
    assert 0 < len(judged) <= 16


def test_the_order_of_a_small_catalog() -> None:
    """A small catalog is judged whole: fewest problems first, then the likest."""
    names = ("order.created", "crane.created", "order.deleted")
    messages = {n: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": n}}} for n in names}
    messages["a"] = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "order.craeteda"}, "subject": {"required": True}},
    }
    small = Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})
    assert ["order.created", "order.deleted", "crane.created", "a"] == near(small, "order.craeted")


def _edits_by_table(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for above, left in enumerate(one, 1):
        before, row[0] = row[0], above
        for at, right in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (left != right))
    return row[-1]


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_edits(one: str, other: str) -> None:
    """As many characters are changed as the table of all prefixes says, whichever text is first."""
    assert _edits_by_table(one, other) == edits(one, other) == edits(other, one)


def test_long_texts_are_cut() -> None:
    """What differs is looked at over 64 characters."""
    assert 64 == edits("a" * 100_000, "b" * 100_000)
    assert 64 == edits("x" * 1000, "x" * 1000 + "y" * 1000)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("com.acme.order.created", "com.acme.order.craeted", 3),
        ("com.acme.order.created", "com.acme.ordr.created", 3),
        ("com.acme.order.created", "com.acme.created", 3),
        ("a.b", "a.b", 2),
        ("a.b", "c.d", 0),
        ("Com.Acme", "com-acme", 2),
        ("", "a", 0),
    ],
)
def test_shared_words(one: str, other: str, expected: int) -> None:
    """Words count that two texts have alike from the beginning or from the end, without case."""
    assert expected == shared(segments(one), segments(other))
