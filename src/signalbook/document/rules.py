"""Asking the named rules about an entity.

Rule 1: a rule belongs to types that state its domain in `modelcompatiblewith`, whoever wrote their model.
Rule 2: findings are values; the caller decides whether the first one refuses a write or all are shown.
Rule 3: a message definition is judged by the envelope and the protocol that it has in effect, be they its own, its
base's or its group's, and with all that it inherits.

The rules themselves are in `rule_table`; docs/reference/rules.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from signalbook.document.inherited import SELECTORS, whole
from signalbook.document.rule import Level, Rule, Severity, Subject
from signalbook.document.rule_table import RULES
from signalbook.document.spelling import to_canonical
from signalbook.errors import Problem, RegistryError
from signalbook.spec.builtin import MESSAGE
from signalbook.spec.protocols import find_protocol

__all__ = ["RULES", "Rule", "Subject", "check", "rereads", "rules_for"]


def check(domain: str, level: Level, subject: Subject, severity: Severity | None = None) -> Iterator[Problem]:
    """The findings of all rules of a domain and level about one entity, in the order of the table."""
    if domain == MESSAGE and level == "version":
        try:
            found = whole(subject.xid, subject.attrs, subject.group, subject.lookup)
        except RegistryError as error:  # what comes together cannot be spelled in one way
            if severity != "warning":
                yield Problem("", error.name, str(error), {key: str(value) for key, value in error.args_.items()})
            return
        if found is not subject.attrs:
            subject = replace(subject, inherited=found)
            if severity != "warning":
                yield from _by_model(subject)
    attrs = subject.whole
    for on, rule in _applicable(domain, level, severity, find_protocol(attrs.get("protocol")) or ""):
        if on in attrs or not on:
            for path, words in rule.check(subject):
                yield rule.problem(path, words)


def _by_model(subject: Subject) -> Iterator[Problem]:
    """What a model finds in a definition once it knows which metadata are for which envelope and protocol."""
    own, found = subject.attrs, subject.whole
    named = {
        name: found[name]
        for selector, metadata in SELECTORS
        for name in (selector, *metadata)
        if name in found and found[name] != own.get(name)
    }
    if named and subject.by_model is not None:
        yield from subject.by_model(to_canonical(MESSAGE, {**own, **named}, subject.xid), subject.xid)


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
