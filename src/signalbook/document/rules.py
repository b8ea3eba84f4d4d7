"""Asking the named rules about an entity.

Rule 1: a rule belongs to types that state its domain in `modelcompatiblewith`, whoever wrote their model.
Rule 2: findings are values; the caller decides whether the first one refuses a write or all are shown.

The rules themselves are in `rule_table`; docs/reference/rules.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from signalbook.document.rule import Level, Rule, Severity, Subject
from signalbook.document.rule_table import RULES
from signalbook.document.spelling import PROTOCOLS
from signalbook.errors import Problem

__all__ = ["RULES", "Rule", "Subject", "check", "rereads", "rules_for"]


def check(domain: str, level: Level, subject: Subject, severity: Severity | None = None) -> Iterator[Problem]:
    """The findings of all rules of a domain and level about one entity, in the order of the table."""
    attrs = subject.attrs
    for on, rule in _applicable(domain, level, severity, PROTOCOLS.get(str(attrs.get("protocol")).lower(), "")):
        if on in attrs or not on:
            for path, words in rule.check(subject):
                yield rule.problem(path, words)


@lru_cache(maxsize=256)  # a domain is a text of a model, so of a client
def rules_for(domain: str, level: Level, severity: Severity | None = None) -> tuple[Rule, ...]:
    """The rules for entities of a type, of one severity or of both."""
    return tuple(
        rule for rule in RULES if (rule.domain, rule.level) == (domain, level) and severity in (None, rule.severity)
    )


@lru_cache(maxsize=256)
def _applicable(domain: str, level: Level, severity: Severity | None, protocol: str) -> tuple[tuple[str, Rule], ...]:
    rules = rules_for(domain, level, severity)
    return tuple((rule.on, rule) for rule in rules if not rule.protocols or protocol in rule.protocols)


@lru_cache(maxsize=256)
def rereads(domain: str) -> frozenset[str]:
    """The attributes of a group that rules about its resources look at: if one changes, they are checked again."""
    return frozenset(name for rule in RULES if rule.domain == domain and rule.level == "version" for name in rule.reads)
