"""Catalog documents of older dialects in a registry: every example of the older texts loads."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from signalbook.dialects.convert import convert, detect, meaning, read
from signalbook.errors import UsageError
from signalbook.registry import changes
from signalbook.registry.registry import Registry
from signalbook.sources import parts
from signalbook.sources.documents import Raw, in_canonical
from signalbook.sources.lint import check
from signalbook.spec.dialects import DIALECTS
from tests.cases import Case, read_cases


def load(registry: Registry, document: Any, group: str = "") -> None:
    """Write a document of any dialect into a registry, as `signalbook load` does."""
    documents, _ = in_canonical(Raw("a document", document), group=group)
    for one in documents:
        for part in parts(one.content, registry.get("/model")):
            registry.post(f"{part.path}?ignore=epoch", part.body)


def named(document: Any) -> Any:
    """An example with an id, which those of 0.5 leave out."""
    return document if "messagegroups" in document or "id" in document else {"id": "example", **document}


@pytest.mark.parametrize(
    "case", [one for seed in ("seed03", "seed04") for one in read_cases(f"dialects/{seed}")], ids=lambda case: case.name
)
def test_the_examples_of_the_older_texts_load(case: Case, store_url: str) -> None:
    """Each example passes the model and the rules, is stored, and is exported with equal meaning."""
    document = named(case.given["document"])
    dialect = detect(document).dialect
    documents, _ = in_canonical(Raw("example", copy.deepcopy(document)), group="examples")
    assert [] == [finding for finding in check(documents) if finding.severity == "error"]
    with Registry.open(store_url) as registry:
        load(registry, document, "examples")
        exported = registry.export()
        whole = {"messagegroups": registry.get("/messagegroups?inline=messages")}
    wanted = meaning(documents[-1].content)["messagegroups"]
    shown = meaning(read(whole, DIALECTS["1.0-rc2"]).content)["messagegroups"]
    for groupid, group in wanted.items():
        for messageid, message in group.get("messages", {}).items():
            stored = shown[groupid]["messages"][messageid]
            written = {name: value for name, value in message.items() if name not in ("versionid", "versions")}
            if "xref" not in written.get("meta", {}):
                assert written == {name: value for name, value in stored.items() if name in written}, messageid
    back = convert(exported, dialect, DIALECTS["1.0-rc2"])
    assert dialect.name == detect(back.content).dialect.name
    plain = convert(whole, dialect, DIALECTS["1.0-rc2"])
    written = [meaning(read(one, dialect).content) for one in (back.content, plain.content)]
    assert list(written[0]["messagegroups"]) == list(written[1]["messagegroups"])


def test_older_versions_become_history(store_url: str) -> None:
    """The versions of a definition of 0.1 are written one after the other, so that the log has them all."""
    case = next(one for one in read_cases("dialects/seed04") if one.name == "a definition with two versions")
    with Registry.open(store_url) as registry:
        load(registry, case.given["document"], "g")
        xid = f"/messagegroups/g/messages/{case.given['document']['id']}"
        found = changes.listing(registry.store.reader(), xid, 0, 10)
        assert [1, 2] == [one.number for one in found]
        assert [False, True] == ["subject" in one.attrs["envelopemetadata"] for one in found]


def test_a_lone_definition_needs_a_group() -> None:
    """Who loads a definition by itself has to say which group it goes into; one without an id goes nowhere."""
    with pytest.raises(UsageError, match="--group"):
        in_canonical(Raw("it", {"id": "m", "binding": "Kafka"}))
    with pytest.raises(UsageError, match="without an id"):
        in_canonical(Raw("it", {"binding": "Kafka"}), group="g")
    with pytest.raises(UsageError, match="one JSON object"):
        in_canonical(Raw("it", 7))


def test_a_document_of_today_is_left_alone() -> None:
    """What needs no conversion goes into the registry as it stands."""
    document = {"specversion": "1.0-rc2", "messagegroups": {"g": {"epoch": 3}}}
    found, notes = in_canonical(Raw("it", document))
    assert (document, ()) == (found[0].content, notes)
    assert found[0].content is document
