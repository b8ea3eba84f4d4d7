"""The catalogs of public repositories, from a local copy: scenarios and samples of xregistry, and public feeds.

SIGNALBOOK_PUBLIC_CATALOGS names a folder that holds checkouts of xregistry/spec, xregistry/codegen and
clemensv/real-time-sources, or of some of them; nothing of them is kept here.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from signalbook.app import store_client
from signalbook.cli.output import sentence
from signalbook.errors import SignalbookError
from signalbook.messages.answer import Answer
from signalbook.messages.catalog import Catalog
from signalbook.messages.definition import Definition
from signalbook.sources import open_source
from signalbook.sources.documents import read_raw
from signalbook.sources.lint import lint
from signalbook.sources.loading import Loading, loadable

FOLDER = os.environ.get("SIGNALBOOK_PUBLIC_CATALOGS", "")
CATALOGS = sorted(
    path
    for pattern in ("**/cloudevents/samples/scenarios/*.xreg.json", "**/samples/**/*.xreg.json")
    for path in (Path(FOLDER).glob(pattern) if FOLDER else ())
    # A dump of schemastore.org: schemas by the thousand, and no message.
    if "schemastore" not in path.name
)
# Findings that say why a message cannot be distinguished, or cannot be made at all.
HINDRANCES = {"schema-unavailable", "never-matches", "no-sample", "definition-unusable"}

FEEDS = sorted(
    path
    for pattern in ("**/feeders/*/xreg/*.xreg.json", "**/tools/*/fabric/*.xreg.json")
    for path in (Path(FOLDER).glob(pattern) if FOLDER else ())
)
# Of 118 feeds so many load at least. The rules by which others are refused, each read in the text.
LOADED = 95 / 118
RULES = {
    # "If the type property has the value uritemplate, value MAY contain placeholders"; a timestamp has none.
    "a placeholder in a timestamp": r"envelopemetadata\.time\.value.* must be of type timestamp.* \[message-property\]",
    # AMQP sections are spelled application-properties and message-annotations.
    "not a section of AMQP": r"unknown attribute \(protocoloptions\.(application|message)_(properties|annotations)\)",
    # RFC 8259: names within an object are unique, or what they mean is not known.
    "a name given twice": r"the name \"\w+\" appears more than once in one object",
}


@pytest.mark.skipif(not CATALOGS, reason="SIGNALBOOK_PUBLIC_CATALOGS names no folder with public catalogs")
@pytest.mark.parametrize("path", CATALOGS or [None], ids=lambda path: getattr(path, "name", ""))
def test_each_message_is_found_again(path: Path) -> None:
    """A catalog loads, is linted without a crash, and `sample | match` finds each message again.

    A message whose payload cannot be had is found by its key, as `nonconformant`; of two that lint calls alike, both
    are named as candidates. What a registry would refuse need not be found.
    """
    findings = list(lint([str(path)]))
    hindered = {finding.xid for finding in findings if finding.rule in HINDRANCES}
    refused = {finding.xid for finding in findings if finding.severity == "error" and finding.rule not in HINDRANCES}
    alike = any(finding.rule == "definitions-overlap" for finding in findings)
    with open_source(str(path)) as source:
        catalog = source.catalog()
    for xid, definition in catalog.definitions.items():
        made = catalog.message(xid).sample()
        message: Any = made.message or made.cloudevent
        if message is None:
            assert xid in hindered, made.problems
            continue
        answer = catalog.match(message)
        if made.ok and answer.outcome.value == "ambiguous":
            assert alike
            assert definition.identity in [candidate.definition for candidate in answer.candidates]
        elif made.ok:
            assert ("matched", definition.identity) == (answer.outcome.value, answer.definition)
        else:
            assert xid in hindered
            named = [answer.definition, *(candidate.definition for candidate in answer.candidates)]
            assert definition.identity in named or xid in refused


def refusal(path: Path) -> str:
    """Why a registry does not take a catalog; empty where it does."""
    with store_client("memory:") as client:
        loading = Loading(client)
        try:
            for raw in read_raw(str(path)):
                loading.load(loadable(raw))
            loading.finish()
        except SignalbookError as error:
            return sentence(error)
    return ""


@pytest.mark.skipif(not FEEDS, reason="SIGNALBOOK_PUBLIC_CATALOGS names no folder with public feeds")
def test_public_feeds_load_or_break_a_rule_of_the_text() -> None:
    """Most public feeds load, and each other one is refused by a rule that stands in the text."""
    refused = {str(path): words for path in FEEDS if (words := refusal(path))}
    unknown = {path: words for path, words in refused.items() if not any(re.search(r, words) for r in RULES.values())}
    assert {} == unknown
    assert len(FEEDS) - len(refused) >= len(FEEDS) * LOADED


@pytest.mark.skipif(not FEEDS, reason="SIGNALBOOK_PUBLIC_CATALOGS names no folder with public feeds")
def test_each_message_of_a_public_feed_is_found_again() -> None:
    """Every definition of a feed that loads has a sample, and the sample matches it.

    Definitions that say the same of their messages cannot be distinguished; then all of them are named.
    """
    wrong = []
    for path in FEEDS:
        if refusal(path):
            continue
        with open_source(str(path)) as source:
            catalog = source.catalog()
        for xid, definition in catalog.definitions.items():
            made = catalog.message(xid).sample()
            message: Any = made.message or made.cloudevent
            answer = catalog.match(message) if made.ok else None
            found = answer is not None and (answer.outcome.value, answer.definition) == ("matched", definition.identity)
            if not found and not (answer is not None and alike(catalog, definition, answer)):
                wrong.append((path.name, xid, made.problems or answer))
    assert [] == wrong


def alike(catalog: Catalog, definition: Definition, answer: Answer) -> bool:
    """Whether an ambiguous answer names a definition beside others that say the same of their messages."""
    named = [catalog.definition(one.definition) for one in answer.candidates]
    said = {json.dumps(stated(one.document), sort_keys=True) for one in named if one.identity != definition.identity}
    mine = json.dumps(stated(definition.document), sort_keys=True)
    return (
        answer.outcome.value == "ambiguous" and definition.identity in [one.identity for one in named] and mine in said
    )


def stated(document: Any) -> dict[str, Any]:
    """What a definition says of its messages: fixed values as they are, placeholders by any name."""
    names = ("envelope", "protocol", "envelopemetadata", "protocoloptions", "dataschemauri")

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items() if key not in ("description", "name", "type")}
        return re.sub(r"\{\w+\}", "{}", value) if isinstance(value, str) else value

    return {name: plain({"": document.get(name)}) if name != "envelopemetadata" else
            {key: plain(value) for key, value in (document.get(name) or {}).items()} for name in names}  # fmt: skip
