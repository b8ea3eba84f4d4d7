"""The named rules: each has cases that break it and cases that satisfy it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from signalbook.model.message_rules import MAX_CHAIN, Rule, Subject
from signalbook.model.rules import RULES, check, rereads, rules_for
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA

FOLDER = Path(__file__).parent.parent / "cases" / "rules"
CASES = [row for file in sorted(FOLDER.glob("*.json")) for row in json.loads(file.read_text(encoding="utf-8"))]
BY_NAME = {rule.name: rule for rule in RULES}


def subject_of(case: dict[str, Any]) -> Subject:
    """The entity of a case, among the others it mentions."""
    xid = case.get("xid", "/messagegroups/g/messages/m")
    return Subject(xid, case["given"], case.get("group", {}), case.get("others", {}).get)


def found_by(rule: Rule, subject: Subject) -> list[str]:
    """The attributes that one rule complains about, found the way a write and lint find them."""
    problems = check(rule.domain, rule.level, subject)
    return [problem.args["name"] for problem in problems if problem.message.endswith(f"[{rule.name}]")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['name']}")
def test_a_rule_finds_what_breaks_it(case: dict[str, Any]) -> None:
    """A rule complains about the attributes that break it, and about nothing else."""
    assert case["expect"] == found_by(BY_NAME[case["rule"]], subject_of(case))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": True}}},
            'value (true) must be of type string; state a "type" where it is meant to be another [message-property]',
        ),
        # A type that could be stated there is one of a text.
        (
            {"protocol": "HTTP", "protocoloptions": {"query": [{"name": "a", "value": 5}]}},
            "value (5) must be of type string [message-property]",
        ),
    ],
)
def test_a_value_is_told_as_json_has_it(given: dict[str, Any], words: str) -> None:
    """A value that is not of its type is shown as in the request, with a way out where there is one."""
    (problem,) = check(MESSAGE, "version", subject_of({"given": given}))
    assert problem.message.endswith(words)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_both_kinds_of_case(rule: Rule) -> None:
    """Every rule has a case that breaks it and one that satisfies it."""
    kinds = Counter(bool(case["expect"]) for case in CASES if case["rule"] == rule.name)
    assert kinds[True] >= 1
    assert kinds[False] >= 1


def test_names_are_unique() -> None:
    """A name means one rule."""
    assert len(BY_NAME) == len(RULES)


def test_a_problem_is_the_specifications_error() -> None:
    """A finding carries the arguments of `invalid_attribute` and the rule's name."""
    attrs = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"id": {"required": False}}}
    (problem,) = check(MESSAGE, "version", Subject("/messagegroups/g/messages/m", attrs), "error")
    assert problem.code == "invalid_attribute"
    assert problem.path == "/envelopemetadata/id/required"
    assert problem.args == {"name": "envelopemetadata.id.required", "error_detail": problem.message}
    assert problem.message.endswith("[cloudevents-required]")


def test_severities_can_be_asked_for_alone() -> None:
    """Errors and warnings together are all rules of a domain and level."""
    for domain, level in ((MESSAGE, "group"), (MESSAGE, "version"), (ENDPOINT, "group"), (SCHEMA, "version")):
        both = (*rules_for(domain, level, "error"), *rules_for(domain, level, "warning"))
        assert set(both) == set(rules_for(domain, level))
        assert rules_for(domain, level)


def test_an_unknown_domain_has_no_rules() -> None:
    """A type that claims no domain is judged by its model alone."""
    assert () == rules_for("", "version")
    assert [] == list(check("https://example.com/model.json", "group", Subject("/dirs/d", {"usage": []})))


def test_what_a_group_must_recheck() -> None:
    """Messages are judged again when their group's envelope or protocol changes."""
    assert rereads(MESSAGE) == {"envelope", "protocol"}
    assert rereads(SCHEMA) == frozenset()


def test_a_chain_is_walked_so_far() -> None:
    """A chain of definitions ends, or is refused, after a bounded number of steps."""

    def endless(xid: str) -> dict[str, str]:
        if xid == "/messagegroups/g":
            return {}
        return {"basemessage": f"/messagegroups/g/messages/{int(xid.rpartition('/')[2]) + 1}"}

    subject = Subject("/messagegroups/g/messages/0", endless("/0"), {}, endless)
    (problem,) = check(MESSAGE, "version", subject, "error")
    assert f"more than {MAX_CHAIN}" in problem.message


SHAPES = [None, 5, "", "text", [], [None], [[]], {}, {"a": None}, {"a": "b"}, {"a": {"type": []}}, [{"name": 5}], True]
TOP = sorted({rule.on for rule in RULES if rule.on} | {"dataschemauri", "protocol"})
INNER = ("headers", "query", "properties", "endpoints", "authorization", "status", "method", "qos", "topic", "subject")


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize(("domain", "level"), sorted({(rule.domain, rule.level) for rule in RULES}))
@pytest.mark.parametrize("protocol", ["HTTP", "KAFKA", "MQTT/5.0", "NATS", "AMQP/1.0", "other"])
def test_no_shape_makes_a_rule_fail(domain: str, level: Any, protocol: str, shape: Any) -> None:
    """Whatever another model lets through, the rules answer."""
    attrs = dict.fromkeys(TOP, shape)
    inner = {name: dict.fromkeys(INNER, shape) for name in ("protocoloptions", "envelopemetadata", "envelopeoptions")}
    deeper = {"endpoints": [{"uri": shape, "bootstrap.servers": shape}], "authorization": [{"type": shape}]}
    for given in (attrs, {**attrs, "protocol": protocol}, {"protocol": protocol, **inner}, {"protocoloptions": deeper}):
        subject = Subject("/messagegroups/g/messages/m", given, {"envelope": shape, "protocol": shape})
        list(check(domain, level, subject))
