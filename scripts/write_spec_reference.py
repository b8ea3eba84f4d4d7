"""Write docs/reference/rules.md and errors.md from their tables; `make docs` runs it and a test keeps them current."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from signalbook.model.message_rules import Rule
from signalbook.model.rules import RULES
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.error_types import ERROR_TYPES, ErrorType, type_uri

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases" / "rules"
WHOSE = {
    (MESSAGE, "group"): "Message groups",
    (MESSAGE, "version"): "Messages",
    (ENDPOINT, "group"): "Endpoints",
    (SCHEMA, "group"): "Schema groups",
    (SCHEMA, "version"): "Schemas",
}
RULES_OPENING = """\
# Named rules

This page is written by `make docs` from the table of rules; each example is a case of its test.

What the specification demands beyond the model language is a named rule. An **error** refuses a write with
`invalid_attribute`; the rule's name stands in brackets at the end of `args.error_detail`. A **warning** is shown by
`signalbook lint` only: the texts and the published models do not agree on it, or it is a recommendation.

A rule is for types whose model states the specification in `modelcompatiblewith`, as those of the built-in model do.
Examples are in canonical spelling; other spellings are made canonical before the rules see them.
"""
ERRORS_OPENING = """\
# Errors

This page is written by `make docs` from the table of errors.

Every refused request is answered with a JSON object:

| member | what it holds |
|---|---|
| `type` | a URI whose fragment is the error's name |
| `title` | the sentence below, with `subject` and `args` filled in |
| `subject` | the xid or the path that the error is about |
| `args` | the values named in the title, as strings |
| `detail` | more words, where there are any |
"""


def rules_page() -> str:
    """The page of named rules."""
    return RULES_OPENING + "".join(_rule_sections())


def _rule_sections() -> Iterator[str]:
    examples = _examples()
    for (domain, level), heading in WHOSE.items():
        yield f"\n## {heading}\n"
        for rule in RULES:
            if (rule.domain, rule.level) == (domain, level):
                yield f"\n### {rule.name}\n\n{rule.severity.capitalize()}. {rule.text}\n\n{_example(rule, examples)}"


def _examples() -> dict[str, dict[str, Any]]:
    """The first case that breaks each rule."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(CASES.glob("*.json")):
        for case in json.loads(file.read_text(encoding="utf-8")):
            if case["expect"]:
                found.setdefault(case["rule"], case)
    return found


def _example(rule: Rule, examples: dict[str, dict[str, Any]]) -> str:
    case = examples[rule.name]
    group = f", in a group with `{json.dumps(case['group'])}`" if "group" in case else ""
    where = f", at `{case['xid']}`" if "xid" in case else ""
    return f"Broken by {case['name']}{group}{where}:\n\n```json\n{json.dumps(case['given'])}\n```\n"


def errors_page() -> str:
    """The page of errors."""
    return ERRORS_OPENING + "".join(_error_sections())


def _error_sections() -> Iterator[str]:
    origins = {
        "specification": "The specification's",
        "reference": "The reference server's",
        "signalbook": "Signalbook's own",
    }
    for origin, heading in origins.items():
        yield f"\n## {heading}\n\n| name | status | args | title |\n|---|---|---|---|\n"
        for row in sorted(ERROR_TYPES.values(), key=lambda row: row.name):
            if row.origin == origin:
                yield _error_row(row)


def _error_row(row: ErrorType) -> str:
    name = f"[`{row.name}`]({type_uri(row.name)})" if row.origin == "specification" else f"`{row.name}`"
    args = ", ".join(f"`{arg}`" for arg in row.args) or "-"
    return f"| {name} | {row.status} | {args} | `{row.title}` |\n"


PAGES = {ROOT / "docs" / "reference" / "rules.md": rules_page, ROOT / "docs" / "reference" / "errors.md": errors_page}

if __name__ == "__main__":
    for page, write in PAGES.items():
        page.write_text(write(), encoding="utf-8")
