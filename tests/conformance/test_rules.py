"""The core rules of the specification, each by the requests that would be answered otherwise if it were broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from signalbook.spec.error_types import ERROR_TYPES
from tests.conformance import case as cases
from tests.registry.conftest import BASE, Api, MakeApi, Reply

CASES = cases.read_cases()
MODELS = cases.read("models")


@pytest.mark.parametrize("case", [pytest.param(case, id=key) for key, case in CASES.items()])
def test_case(case: dict[str, Any], make_api: MakeApi) -> None:
    """Each request of the case is answered as the rule says."""
    known: dict[str, Any] = {}
    api = registry(case, make_api)
    for number, step in enumerate(case["steps"], 1):
        body = step["content"].encode() if "content" in step else step.get("body")
        path = cases.PLACEHOLDER.sub(lambda shown: known[shown[2]].removeprefix(BASE), step["path"])
        reply = api(step["method"], path, body, step.get("headers"))
        wrong = list(found(step["expect"], reply, known))
        assert not wrong, f"step {number}, {step['method']} {step['path']}: {'; '.join(wrong)}\n{reply.body[:2000]!r}"


def registry(case: dict[str, Any], make_api: MakeApi) -> Api:
    """A new registry with the case's model; an empty one where it has none."""
    model = case.get("model", {})
    settings = {"specversion": case.get("specversion", "1.0-rc4"), **case.get("settings", {})}
    if model == "builtin":
        return make_api(**settings)
    api = make_api(**{"model": "empty", "registryid": "reg", **settings})
    if source := MODELS[model] if isinstance(model, str) else model:
        reply = api("PUT", "/modelsource", source)
        assert reply.status == 200, reply.body
    return api


def found(expect: dict[str, Any], reply: Reply, known: dict[str, Any]) -> Iterator[str]:
    """What is not as the step expects."""
    if expect["status"] != reply.status:
        yield f"status {reply.status}, expected {expect['status']}"
        return
    if reply.status >= 400:
        row, args = ERROR_TYPES[reply.error], reply.json.get("args", {})
        if set(row.args) != set(args) or any(f"<{one}>" in reply.json["title"] for one in row.args):  # ERR-4
            yield f"the arguments {sorted(args)} and the title {reply.json['title']!r}, expected those of {row.title!r}"
        yield from cases.differences(
            {name: expect[name] for name in ("error", "subject", "args") if name in expect},
            {"error": reply.error, "subject": reply.json.get("subject"), "args": reply.json.get("args", {})},
            known,
            whole=False,
        )
    for name in ("body", "whole"):
        if name in expect:
            yield from cases.differences(expect[name], reply.json, known, whole=name == "whole")
    yield from (f"{place} is there" for place in expect.get("absent", ()) if cases.has(reply.json, place))
    if "text" in expect and expect["text"] != reply.body.decode():
        yield f"the body is not {expect['text']!r}"
    for name, value in expect.get("headers", {}).items():
        if value is None and name.lower() in reply.headers:
            yield f"header {name} is there"
        elif value is not None:
            yield from cases.differences(value, reply.headers.get(name.lower()), known, whole=True, at=name)
