"""What loading documents on trial tells; what a load refuses at all is proved by `tests/cli/test_documents_lint.py`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from signalbook.app import store_client
from signalbook.sources import rehearsal
from signalbook.sources.documents import Raw
from signalbook.sources.lint import Finding
from signalbook.sources.rehearsal import rehearse

PLACE = "/messagegroups/g/messages"


def messages(*names: str, **more: Any) -> Raw:
    """A catalog whose messages have a time that is none."""
    return Raw("a.json", {"messagegroups": {"g": {**more, "messages": {name: {"createdat": "x"} for name in names}}}})


def shown(*raws: Raw, **options: Any) -> list[tuple[str, str, str]]:
    """The findings: source, error and place."""
    return [
        (one.source, one.code, one.xid)
        for one in rehearse(raws, open_client=partial(store_client, "memory:"), **options)
    ]


def test_a_group_has_few_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one group only so many refusals are told, for each is one more load of it."""
    monkeypatch.setattr(rehearsal, "MOST_OF_A_GROUP", 2)
    expected = [("a.json", "invalid_attribute", f"{PLACE}/{name}/versions/1") for name in "ab"]
    assert expected == shown(messages("a", "b", "c"))


def test_a_group_that_is_refused_is_one_refusal() -> None:
    """Where the group itself is refused, its resources are not looked at."""
    assert [("a.json", "invalid_attribute", "/messagegroups/g")] == shown(messages("a", "b", modifiedat="x"))


def test_what_was_told_is_not_told_again() -> None:
    """An error that another check found at a resource stays out, wherever in the resource a load sees it."""
    told = [Finding("a.json", "error", f"{PLACE}/a", "invalid_attribute", "wrong")]
    assert [("a.json", "invalid_attribute", f"{PLACE}/b/versions/1")] == shown(messages("a", "b"), known=told)


def test_references_that_wait_are_told_of_the_file_that_holds_them() -> None:
    """What is refused last, when all is there, names the file of the entity."""
    wrong = {"format": "JsonSchema/draft-07", "schema": {"type": "strin"}}
    raws = [
        Raw("a.json", {"schemagroups": {"g": {"schemas": {"s": wrong}}}}),
        Raw("b.json", {"schemagroups": {"h": {}}}),
    ]
    assert [("a.json", "format_violation", "/schemagroups/g/schemas/s/versions/1")] == shown(*raws)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([1], "unreadable_document"),
        ({"messagegroup": {}}, "unreadable_document"),
        ({"id": "m", "format": "NATS", "definition": {}}, "unreadable_document"),
        ({"id": "g", "specversion": "0.1", "format": "NATS", "definitions": 5}, "invalid_attribute"),
        ({"id": "g", "format": "NATS", "definitions": [{"id": "a", "relatedto": "", "definition": {}}]},
         "invalid"),
    ],
)  # fmt: skip
def test_what_is_no_catalog(value: Any, code: str) -> None:
    """What a load would not even begin with is one finding, and other documents are loaded all the same."""
    found = shown(Raw("b.json", value), messages("a"))
    assert [("b.json", code), ("a.json", "invalid_attribute")] == [one[:2] for one in found]


def test_a_model_that_is_refused() -> None:
    """A document's own model that a registry refuses is one finding."""
    raw = Raw("a.json", {"modelsource": {"groups": {"DIRS": {}}}, "DIRS": {}})
    ((source, code, _),) = shown(raw, model="document")
    assert ("a.json", "model_error") == (source, code)
