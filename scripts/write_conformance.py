"""Write docs/reference/conformance.md from the rules, the cases that show them, and what is answered otherwise.

`make docs` runs it and a test keeps it current. The data is in tests/cases/conformance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.case import read, read_cases

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "conformance.md"
# The recorded steps: about anything but the formats of schemas, and about those.
STEPS, FORMAT_STEPS = 1345, 138
OPENING = """\
# Conformance

How far Signalbook keeps to the [xRegistry](https://github.com/xregistry/spec) specification, version 1.0-rc4: every
rule of its core, with the tests that show it. This page is written by `make docs` from the same data that the tests
run, so a rule cannot be claimed without a test. Under 1.0-rc2, the default, the same rules hold and some names are
spelt otherwise. What the message, schema and endpoint specifications add is listed in [rules](rules.md).

| answer | rules |
|---|---|
{counts}

A name such as `epoch/every update makes it larger` is a case in
[tests/cases/conformance](../../tests/cases/conformance): requests in order, and what each is answered with. To run
those of an area:

```text
.venv/bin/python -m pytest tests/conformance/test_rules.py -k epoch/
```
"""
RECORDED = """
## Recorded cases

{steps} requests with the responses of the public reference server, in 99 sequences that each begin with an empty
registry, are replayed by [tests/conformance/test_replay.py](../../tests/conformance/test_replay.py) where they lie
beside the project, and against a server that is really started by their own program:

```text
../shared/conformance/replay.py ../shared/conformance/xregistry-http.jsonl \\
  --start 'signalbook serve --port {{port}} --registry-id {{registryid}} \\
           --store memory: --model empty --specversion 1.0-rc4'
```

{passed} of {general} steps are answered as recorded, and {formats_passed} of {formats} more that are about the formats
of schemas. The others, by sequence and step:

| sequence | steps | why they are answered otherwise |
|---|---|---|
{rows}
"""


def answers() -> dict[str, dict[str, Any]]:
    """What the page says of each rule: `answer`, `reason`, and in `shown` the cases and tests that show it."""
    cases: dict[str, list[str]] = {}
    for key, case in read_cases().items():
        for rule in case["rules"]:
            cases.setdefault(rule, []).append(key)
    notes: Mapping[str, Mapping[str, Any]] = read("answers")
    return {
        rule: {"answer": "yes", "reason": "", **note, "shown": [*cases.get(rule, ()), *note.get("tests", ())]}
        for area in read("rules").values()
        for rule in area["rules"]
        for note in [notes.get(rule, {})]
    }


def page() -> str:
    """The whole page."""
    found = answers()
    counts = {name: sum(row["answer"] == name for row in found.values()) for name in ("yes", "partly", "no")}
    opening = OPENING.format(counts="\n".join(f"| {name} | {count} |" for name, count in counts.items()))
    return opening + "".join(_areas(found)) + _recorded()


def _areas(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, area in read("rules").items():
        yield f"\n## {name}: {area['title']}\n\n| rule | | what | shown by | remark |\n|---|---|---|---|---|\n"
        for rule, text in area["rules"].items():
            row = found[rule]
            shown = "<br>".join(_cell(f"`{one}`") for one in row["shown"])
            yield f"| {rule} | {row['answer']} | {_cell(text)} | {shown} | {_cell(row['reason'])} |\n"


def _recorded() -> str:
    rows = read("recorded")
    about_formats = sum(len(row["steps"]) for row in rows if row["group"].startswith("TestFormat"))
    others = sum(len(row["steps"]) for row in rows) - about_formats
    return RECORDED.format(
        steps=f"{STEPS + FORMAT_STEPS:,}",
        general=f"{STEPS:,}",
        passed=f"{STEPS - others:,}",
        formats=FORMAT_STEPS,
        formats_passed=FORMAT_STEPS - about_formats,
        rows="\n".join(f"| {row['group']} | {', '.join(map(str, row['steps']))} | {row['reason']} |" for row in rows),
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
