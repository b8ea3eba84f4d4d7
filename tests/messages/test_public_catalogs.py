"""The catalogs of the public xregistry/spec scenarios and xregistry/codegen samples, from a local copy.

SIGNALBOOK_PUBLIC_CATALOGS names a folder that holds checkouts of both, or of one; nothing of them is kept here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from signalbook.sources import open_source
from signalbook.sources.lint import lint

FOLDER = os.environ.get("SIGNALBOOK_PUBLIC_CATALOGS", "")
CATALOGS = sorted(
    path
    for pattern in ("**/cloudevents/samples/scenarios/*.xreg.json", "**/samples/**/*.xreg.json")
    for path in (Path(FOLDER).glob(pattern) if FOLDER else ())
    # A dump of schemastore.org: schemas by the thousand, and no message.
    if "schemastore" not in path.name
)
# Findings that say why a message cannot be told apart, or cannot be made at all.
HINDRANCES = {"schema-unavailable", "never-matches", "no-sample", "definition-unusable"}

pytestmark = pytest.mark.skipif(not CATALOGS, reason="SIGNALBOOK_PUBLIC_CATALOGS names no folder with public catalogs")


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
