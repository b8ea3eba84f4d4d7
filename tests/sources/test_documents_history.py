"""The documents of an older dialect as one."""

from __future__ import annotations

import pytest

from signalbook.dialects.convert import convert
from signalbook.registry import changes
from signalbook.registry.registry import Registry
from signalbook.sources.documents import Document, Raw, in_canonical, with_history
from signalbook.spec.dialects import DIALECTS


def test_a_history_is_one_document() -> None:
    """Each message has its versions, the oldest first; one that has a single version says what it says."""
    versions = [{"version": number, "description": text, "definition": {}} for number, text in ((5, "new"), (2, "old"))]
    definitions = [{"id": "a", "description": "alone", "definition": {}}, {"id": "b", "versions": versions}]
    group = {"id": "g", "specversion": "0.1", "format": "NATS", "definitions": definitions}
    found = with_history(in_canonical(Raw("it", group))[0])
    messages = found.content["messagegroups"]["g"]["messages"]
    assert ("it", ["a", "b"]) == (found.source, list(messages))
    assert ("alone", False) == (messages["a"]["description"], "versions" in messages["a"])
    told = {key: (one["description"], one["ancestorid"]) for key, one in messages["b"]["versions"].items()}
    assert ("new", {"1": ("old", "1"), "2": ("new", "1")}) == (messages["b"]["description"], told)


def test_one_document_stays_as_it_is() -> None:
    """A document without older versions is left alone; of 0.1 without the times that the registry gives anew."""
    content = {"messagegroups": {"g": {"messages": {"m": {"createdat": "2022-03-01T00:00:00Z", "name": "n"}}}}}
    document = Document("it", content)
    assert document is with_history([document])
    assert {"m": {"name": "n"}} == with_history([document], anew=True).content["messagegroups"]["g"]["messages"]
    empty = Document("it", {})
    assert empty is with_history([empty], anew=True)


@pytest.mark.parametrize("target", ["1.0-rc2", "1.0-rc4"])
def test_a_converted_history_is_the_same(target: str, store_url: str) -> None:
    """A definition with many versions that was converted to 1.0 first has the same history, in the same order."""
    texts = [f"version {number}" for number in range(1, 13)]
    versions = [{"version": number, "description": text, "definition": {}} for number, text in enumerate(texts, 1)]
    group = {"id": "g", "specversion": "0.1", "format": "NATS", "definitions": [{"id": "d", "versions": versions}]}
    converted = convert(group, DIALECTS[target]).content
    xid = "/messagegroups/g/messages/d"
    with Registry.open(store_url) as registry:
        for document in (group, converted):
            found = with_history(in_canonical(Raw("it", document))[0])
            registry.post("/?ignore=epoch", {"messagegroups": found.content["messagegroups"]})
            log = changes.listing(registry.store.reader(), xid, 0, 100)
            assert texts == [one.attrs["description"] for one in log]
            assert texts[-1] == registry.get(xid)["description"]
        registry.delete("/messagegroups/g")
        registry.post("/?ignore=epoch", {"messagegroups": converted["messagegroups"]})
        log = changes.listing(registry.store.reader(), xid, 0, 100)
        assert texts == [one.attrs["description"] for one in log]
