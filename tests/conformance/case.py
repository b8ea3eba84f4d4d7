"""A conformance case: requests in order, and what each must be answered with.

`tests/cases/conformance/<area>.json` is a list of cases:
  {"name", "rules": [ids], "model"?: a name of models.json | a modelsource | "builtin", "specversion"?, "settings"?,
   "steps": [{"method", "path", "body"?: JSON | "content"?: text, "headers"?, "expect"}]}
`expect` holds "status" and any of
  "error", "subject", "args"   an error's name and subject, and the arguments that it must have
  "body"                       JSON that the body must hold; members of an object that are not named are free
  "whole"                      JSON that the body must be
  "absent"                     places that the body must not have, such as "meta.labels"
  "text"                       the body, letter by letter
  "headers"                    headers with their values; null for one that must not be there
In an expected value "<any>" is anything, "<stamp>" a timestamp in UTC, "<same x>" the value that x stood for before
(anything, the first time), "<other x>" a value that differs from x's, "<like r>" a text that the regular expression r
matches. A path may hold "<same x>", for a URL that was shown. A name that is not listed here is a mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "cases" / "conformance"
# Data besides the cases: the models that cases share, the rules, and what the page says beyond the cases.
DATA = {"models", "rules", "answers", "recorded"}
STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z")
PLACEHOLDER = re.compile(r"<(any|stamp|same|other|like)(?: ([^>]+))?>")
CASE = {"name", "rules", "model", "specversion", "settings", "steps"}
STEP = {"method", "path", "body", "content", "headers", "expect"}
EXPECT = {"status", "error", "subject", "args", "body", "whole", "absent", "text", "headers"}


def read(name: str) -> Any:
    """The JSON of one file of the folder."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def read_cases() -> dict[str, dict[str, Any]]:
    """Every case by its id, `area/name`."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.json")):
        for case in [] if file.stem in DATA else read(file.stem):
            key = f"{file.stem}/{case['name']}"
            assert key not in found, f"two cases are named {key}"
            assert case["rules"], f"{key} shows no rule"
            assert case.keys() <= CASE, f"{key}: {case.keys() - CASE}"
            for step in case["steps"]:
                assert step.keys() <= STEP, f"{key}: {step.keys() - STEP}"
                assert step["expect"].keys() <= EXPECT, f"{key}: {step['expect'].keys() - EXPECT}"
            found[key] = case
    return found


def differences(expected: Any, actual: Any, known: dict[str, Any], *, whole: bool, at: str = "") -> Iterator[str]:
    """Yield each place where `actual` is not as expected; `known` holds what the placeholders stand for."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in expected:
            if name in actual:
                yield from differences(expected[name], actual[name], known, whole=whole, at=f"{at}/{name}")
            else:
                yield f"{at}/{name} is missing"
        yield from (f"{at}/{name} is there" for name in actual if whole and name not in expected)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(one, other, known, whole=whole, at=f"{at}/{index}")
    elif isinstance(expected, str) and (placeholder := PLACEHOLDER.fullmatch(expected)):
        if not _stands_for(placeholder[1], placeholder[2], actual, known):
            yield f"{at} is {actual!r}, expected {expected} of {known}"
    elif expected != actual or type(expected) is not type(actual):
        yield f"{at} is {actual!r}, expected {expected!r}"


def _stands_for(kind: str, name: str | None, actual: Any, known: dict[str, Any]) -> bool:
    if kind == "stamp":
        return isinstance(actual, str) and STAMP.fullmatch(actual) is not None
    if kind == "like":
        return isinstance(actual, str) and re.fullmatch(str(name), actual) is not None
    if kind == "same":
        return bool(known.setdefault(str(name), actual) == actual)
    return kind == "any" or bool(known[str(name)] != actual)


def has(body: Any, place: str) -> bool:
    """Whether a body has a place such as `meta.labels`."""
    for name in place.split("."):
        if not isinstance(body, dict) or name not in body:
            return False
        body = body[name]
    return True
