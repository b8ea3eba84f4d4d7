"""Definitions of older dialects: what they demand holds for messages, and their texts' examples build and match."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from signalbook.dialects.convert import detect, read
from signalbook.errors import UsageError
from signalbook.messages import Catalog
from signalbook.pipeline.worker import PackedCatalog
from tests.cases import Case, cases, read_cases

VALUES = dict.fromkeys(("tenant", "module", "bar", "host", "queue", "container", "filepath"), "v") | dict.fromkeys(
    ("group_id", "messagedefinition_id", "version_id"), "v"
)
# The ways to make a catalog of documents that somebody wrote.
WAYS: dict[str, Callable[..., Catalog]] = {
    "a catalog": Catalog.from_documents,
    "another state of a catalog": lambda *documents: Catalog.from_documents().updated(*documents),
    "a catalog for a pipeline": lambda *documents: PackedCatalog.of(*documents).catalog(),
    "mappings that are not dictionaries": lambda *documents: Catalog.from_documents(*map(_frozen, documents)),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
GIVEN = {"type": "com.example.v", "source": "/s", "subject": "v", "message-id": "m1"}


def load(document: Any) -> tuple[Catalog, list[str]]:
    """A catalog of a document, which may be one definition, and the xids of its definitions."""
    reading = read(document, detect(document).dialect)
    whole = reading.content
    if reading.level == "message":
        whole = {"messagegroups": {"g": {"messages": {whole.get("messageid", "m"): whole}}}}
    xids = [
        f"/messagegroups/{groupid}/messages/{messageid}"
        for groupid, group in whole["messagegroups"].items()
        for messageid in group["messages"]
    ]
    return Catalog.from_canonical(whole), xids


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(member) for key, member in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@ways
@cases("messages/documents")
def test_a_document_is_read_by_its_dialect(case: Case, way: Callable[..., Catalog]) -> None:
    """A document of any dialect that is given to Python means what it means in a file."""
    answer = way(*case.given["documents"]).match(case.given["message"])
    assert case.expect == {"outcome": answer.outcome.value, "definition": answer.definition}


@ways
@cases("messages/documents_refused")
def test_a_document_of_none_is_refused(case: Case, way: Callable[..., Catalog]) -> None:
    """A document of no known dialect, or not of the dialect that it says, makes no catalog."""
    with pytest.raises(UsageError) as caught:
        way(*case.given)
    for words in case.expect:
        assert words in str(caught.value)


@cases("dialects/held")
def test_what_10_has_no_place_for_is_applied(case: Case) -> None:
    """A constraint that a label holds is one that messages are judged by, where they have such a field."""
    catalog, _ = load(case.given["document"])
    answer = catalog.match(case.given["message"])
    assert case.expect == [answer.outcome.value, *(problem.path for problem in answer.problems)]


@cases("dialects/held_built")
def test_what_10_has_no_place_for_is_built(case: Case) -> None:
    """What a label holds is filled in or asked for, and what is built matches."""
    catalog, (xid,) = load(case.given["document"])
    built = catalog.message(xid).build(attributes=case.given["attributes"], context=case.given["context"])
    if built.message is None:
        assert case.expect == list(built.missing)
    else:
        protocol = built.message.protocol
        assert {"protocol": protocol, **case.expect} == built.message.to_json()
        assert "matched" == catalog.match(built.message).outcome.value


@pytest.mark.parametrize(
    "case", [one for seed in ("seed03", "seed04") for one in read_cases(f"dialects/{seed}")], ids=lambda case: case.name
)
def test_the_examples_of_the_older_texts_build_and_match(case: Case) -> None:
    """Each definition of an example is built once its values are given, and what was built matches it."""
    catalog, xids = load(case.given["document"])
    for xid in xids:
        handle = catalog.message(xid)
        wanted = handle.build().missing
        attributes = {name: value for name, value in GIVEN.items() if name in wanted}
        context = {name: value for name, value in VALUES.items() if name in wanted}
        built = handle.build(attributes=attributes, context=context)
        assert () == built.problems
        answer = catalog.validate(built.message or built.cloudevent, xid)
        assert "matched" == answer.outcome.value
