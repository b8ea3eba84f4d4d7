"""Write docs/reference/conformance.md, and the pages beside it about the five source texts, from the data of the tests.

`make docs` runs it and tests keep the pages current. The data is in tests/cases/conformance: the rules, the cases that
show them, and what is answered otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.case import read, read_cases
from tests.conformance.statement import ANSWERS, read_seeds, rows_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "conformance.md"
# The recorded steps: about anything but the formats of schemas, and about those.
STEPS, FORMAT_STEPS = 1345, 138
OPENING = """\
# Conformance

How far Signalbook keeps to the [xRegistry](https://github.com/xregistry/spec) specification, version 1.0-rc4: every
rule of its core, with the tests that show it. This page is written by `make docs` from the same data that the tests
run, so a rule cannot be claimed without a test. Under 1.0-rc2, the default, the same rules hold and some names are
spelt otherwise. What the message, schema and endpoint specifications add is listed in [rules](rules.md). The texts that
Signalbook began with have pages of their own, with a row for each of their statements:

{seeds}

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

The same requests and responses are replayed in 1.0-rc2, the default of the server, put into its words by the table of
that version (`ancestor`, `deprecated.docs`, the label itself). {older_passed} of {general} steps are answered so;
besides those above these are not:

| sequence | steps | why they are answered otherwise |
|---|---|---|
{older}
"""
SEED = """\
# Conformance: {title}

{text}

The statements are ours, in our words and numbered by us; the line is that of the text. This page is written by
`make docs` from [the data](../../tests/cases/conformance/seeds) that the tests run, so no statement is answered by yes
without a case or a test that fails where it is broken. To run the cases of one:

```text
.venv/bin/python -m pytest tests/conformance/test_seeds.py -k {letter}-1/
```

| answer | statements |
|---|---|
{counts}
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
    opening = OPENING.format(
        counts="\n".join(f"| {name} | {count} |" for name, count in counts.items()),
        seeds="\n".join(f"- [{seed['title']}]({seed['page']})" for seed in _pages().values()),
    )
    return opening + "".join(_areas(found)) + _recorded()


def seed_pages() -> dict[Path, str]:
    """The pages about the source texts, by their place."""
    return {PAGE.parent / name: _seed_page(seed) for name, seed in _pages().items()}


def _pages() -> dict[str, Any]:
    return {seed["page"]: seed for seed in read_seeds().values()}


def _seed_page(seed: Mapping[str, Any]) -> str:
    rows = list(rows_of(seed))
    letter = rows[0]["id"].partition("-")[0]
    counts = "\n".join(f"| {name} | {sum(row['answer'] == name for row in rows)} |" for name in ANSWERS)
    parts = [SEED.format(title=seed["title"], text=seed["text"], letter=letter, counts=counts)]
    found = {row["id"]: row for row in rows}
    for title, members in seed["sections"].items():
        parts.append(f"\n## {title}\n\n| | line | | what | shown by | remark |\n|---|---|---|---|---|---|\n")
        parts += [_seed_row(found[row["id"]]) for row in members]
    return "".join(parts)


def _seed_row(row: Mapping[str, Any]) -> str:
    count = len(row["cases"])
    cases = [f"{count} case{'s' if count > 1 else ''}"] if count else []
    shown = "<br>".join([*cases, *(f"`{test}`" for test in row["tests"])])
    cells = (row["id"], str(row["line"]), row["answer"], row["text"], shown, row["remark"])
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _areas(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, area in read("rules").items():
        yield f"\n## {name}: {area['title']}\n\n| rule | | what | shown by | remark |\n|---|---|---|---|---|\n"
        for rule, text in area["rules"].items():
            row = found[rule]
            shown = "<br>".join(_cell(f"`{one}`") for one in row["shown"])
            yield f"| {rule} | {row['answer']} | {_cell(text)} | {shown} | {_cell(row['reason'])} |\n"


def _recorded() -> str:
    every = read("recorded")
    rows = [row for row in every if "version" not in row]
    older = [row for row in every if "version" in row]
    about_formats = sum(len(row["steps"]) for row in rows if row["group"].startswith("TestFormat"))
    others = sum(len(row["steps"]) for row in rows) - about_formats
    return RECORDED.format(
        steps=f"{STEPS + FORMAT_STEPS:,}",
        general=f"{STEPS:,}",
        passed=f"{STEPS - others:,}",
        formats=FORMAT_STEPS,
        formats_passed=FORMAT_STEPS - about_formats,
        rows=_steps(rows),
        older_passed=f"{STEPS - others - sum(len(row['steps']) for row in older):,}",
        older=_steps(older),
    )


def _steps(rows: list[dict[str, Any]]) -> str:
    return "\n".join(f"| {row['group']} | {', '.join(map(str, row['steps']))} | {row['reason']} |" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    for path, text in {PAGE: page(), **seed_pages()}.items():
        path.write_text(text, encoding="utf-8")
