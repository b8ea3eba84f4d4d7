"""How much a definition can match by itself: nothing at all, where that is certain; anything; or all of one kind.

Rule 1: a definition is looked at as it is matched: by its plan for each kind of message over each protocol.
Rule 2: what is said is proved. A message without a payload satisfies any payload schema (matching.md, "Payloads"), so
no schema makes a definition one that never matches.
"""

from __future__ import annotations

from collections.abc import Iterator

from signalbook.messages.compiled import Compiled, Plan, compile_definition
from signalbook.messages.constraint import Constraint
from signalbook.messages.definition import Definition
from signalbook.messages.entities import Entities
from signalbook.messages.observed import Kind
from signalbook.messages.protocols import PROTOCOLS
from signalbook.messages.schema_library import SchemaLibrary

__all__ = ["why_never", "without_constraints"]

_NO_SCHEMAS = SchemaLibrary(Entities())
# Every event has them, so that to require them says nothing.
_ALWAYS = frozenset(f"/envelopemetadata/{name}" for name in ("id", "source", "specversion", "type"))
_ANY_TEXT = frozenset({"any", "string", "uritemplate"})


def why_never(definition: Definition) -> str:
    """Why no message can match the definition; empty where one might."""
    reasons = [_why_not(plan) for plan in _plans(compile_definition(definition, _NO_SCHEMAS))]
    if not all(reasons):
        return ""
    # Of a message that would be of the right kind, the reason lies in the definition's own values.
    return next((reason for reason in reasons if reason and reason.startswith("the value of")), reasons[-1])


def without_constraints(definition: Definition) -> bool:
    """Whether the definition says nothing of its messages but their envelope and protocol."""
    compiled = compile_definition(definition, _NO_SCHEMAS)
    if compiled.payload.schema is not None:
        return False
    fitting = [plan for plan in _plans(compiled) if plan.misfit is None]
    return bool(fitting) and not any(_constrains(test) for plan in fitting for test in plan.tests)


def _plans(compiled: Compiled) -> Iterator[Plan]:
    """How the definition tests each kind of message, over each protocol."""
    yield compiled.plan(Kind.BARE, None)
    for protocol in PROTOCOLS:
        yield compiled.plan(Kind.EVENT, protocol)
        yield compiled.plan(Kind.NATIVE, protocol)


def _why_not(plan: Plan) -> str:
    """Why no message of a plan's kind can hold; empty where one might."""
    compiled, misfit = plan.compiled, plan.misfit
    if misfit is not None:
        if misfit.code == "protocol":
            return f"no message is known to come over {compiled.protocol}"
        return f"no message is known to have the envelope {compiled.envelope}"
    for test in plan.tests:
        needed = test.required or test in plan.key or test.path in _ALWAYS
        if needed and test.fault is not None:
            return f"the value of {test.path} {test.fault}"
    return ""


def _constrains(test: Constraint) -> bool:
    return (
        (test.required and test.path not in _ALWAYS)
        or test.constant is not None
        or test.template is not None
        or test.needed is not None
        or test.type not in _ANY_TEXT
    )
