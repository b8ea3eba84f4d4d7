"""What only a whole catalog shows: the rules of `signalbook lint` about definitions as they are once materialised.

Rule 1: a rule is a row of `RULES`: a name, a severity, a sentence, and a check of one definition or endpoint.
Rule 2: an error is a definition that cannot do what it says; a warning is likely a mistake; a note is good to know.
Rule 3: every finding is yielded. What is wrong with one entity by itself is a named rule of `document`; that a
reference leads nowhere is said where documents are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES
from signalbook.document.property_places import PROTOCOLS
from signalbook.messages.definition import Definition
from signalbook.messages.filling import template_of
from signalbook.messages.lint_overlap import Overlaps
from signalbook.messages.lint_reach import why_never, without_constraints
from signalbook.messages.slots import Slot, envelope_slots, protocol_slots
from signalbook.wire import find_protocol
from signalbook.wire.fields import pointer

__all__ = ["RULES", "Finding", "LintRule", "Severity", "Subjects", "lint"]

Severity = Literal["error", "warning", "note"]
Found = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the rule that made it, how bad it is, about what, where in it, and in words."""

    rule: str
    severity: Severity
    xid: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Subjects:
    """What is linted: definitions and endpoints by xid, and what a catalog can tell about a definition.

    `schema_problem` says why a definition's payload schema cannot be had, `schema_unchecked` why it is not applied, and
    `sample_problem` why no message could be made that the definition matches; each is empty where there is nothing to
    say.
    """

    definitions: Mapping[str, Definition]
    endpoints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    schema_problem: Callable[[str], str] = lambda _: ""
    sample_problem: Callable[[str], str] = lambda _: ""
    schema_unchecked: Callable[[str], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule; `check` yields a path and words for each finding about a definition."""

    name: str
    severity: Severity
    text: str
    check: Callable[[Subjects, Definition], Iterator[Found]]


def lint(subjects: Subjects) -> Iterator[Finding]:
    """Every finding about a catalog: by definition, about what nothing reads, by pair, by endpoint."""
    for definition in subjects.definitions.values():
        if definition.target is None:  # an alias is judged where it leads
            for rule in RULES:
                for path, words in rule.check(subjects, definition):
                    yield Finding(rule.name, rule.severity, definition.xid, path, words)
    yield from _unread(subjects)
    yield from _overlaps(subjects)
    yield from _endpoints(subjects)


def _unread(subjects: Subjects) -> Iterator[Finding]:
    """Metadata and options that nothing reads: neither the definition nor one derived from it says whose they are."""
    definitions = [one for one in subjects.definitions.values() if one.target is None and not one.problems]
    for selector, metadata in (("envelope", "envelopemetadata"), ("protocol", "protocoloptions")):
        stating = [one for one in definitions if one.document.get(selector)]
        read = {base for one in stating for base in one.derives_from}
        for one in definitions:
            if one.document.get(metadata) and not one.document.get(selector) and one.xid not in read:
                words = f"is ignored, because neither the definition, nor a base, nor its group states the {selector}"
                yield Finding("metadata-unread", "warning", one.xid, f"/{metadata}", words)


def _overlaps(subjects: Subjects) -> Iterator[Finding]:
    pairs = Overlaps(subjects.definitions.values())
    for one, other in pairs:
        words = f"the same message could satisfy {other} too, and nothing decides"
        yield Finding("definitions-overlap", "warning", one, "", words)
    if not pairs.complete:
        yield Finding(
            "definitions-overlap", "note", "/", "", "so many definitions are alike that not all were compared"
        )


def _endpoints(subjects: Subjects) -> Iterator[Finding]:
    by_group: dict[str, list[Definition]] = {}
    for definition in subjects.definitions.values():
        if not definition.problems:
            by_group.setdefault(definition.group, []).append(definition)
    for xid, endpoint in subjects.endpoints.items():
        for group in _carried(xid, endpoint):
            for definition in by_group.get(group, ()):
                for severity, path, words in _contradictions(endpoint, definition):
                    yield Finding("endpoint-contradicted", severity, xid, path, words)


# Rules about one definition ------------------------------------------------------------------------------------------


def _unusable(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    for problem in definition.problems:
        yield problem.path, f"{problem.message}, so the definition never matches"


def _external_base(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    yield from ((note.path, note.message) for note in definition.notes if note.code == "external")


def _unknown_protocol(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if definition.protocol is not None and find_protocol(definition.protocol) is None:
        yield "/protocol", f'"{definition.protocol}" is not a protocol whose messages can be matched'


def _schema(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (why := subjects.schema_problem(definition.xid)):
        path = next((f"/{name}" for name in _SCHEMAS if name in definition.document), "/dataschemaformat")
        yield path, f"the payload schema cannot be had: {why}"


def _unchecked_schema(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (why := subjects.schema_unchecked(definition.xid)):
        path = next((f"/{name}" for name in _SCHEMAS if name in definition.document), "/dataschemaformat")
        yield path, f"payloads are not checked: {why}"


_SCHEMAS = ("dataschema", "dataschemauri", "dataschemaxid")


def _never_matches(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (why := why_never(definition)):
        yield "", f"no message can match it: {why}"


def _no_sample(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    usable = not definition.problems and not why_never(definition) and not subjects.schema_problem(definition.xid)
    if usable and (why := subjects.sample_problem(definition.xid)):
        yield "", f"no example of it could be made: {why}"


def _anything(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and not (definition.envelope or definition.protocol) and without_constraints(definition):
        yield "", "it says nothing of its messages, so any message that no other definition knows matches it"


def _any_of_a_kind(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (definition.envelope or definition.protocol) and without_constraints(definition):
        kind = " and ".join(one for one in (definition.envelope, definition.protocol) if one)
        yield "", f"any message of {kind} that no other definition knows matches it"


def _adjacent(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    for slot in _slots(definition):
        template = template_of(slot)
        if template is not None and template.adjacent:
            yield slot.path, f"two placeholders stand side by side in {template.text}; nothing tells where one ends"


def _reserved(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    for slot in _slots(definition):
        template = template_of(slot)
        for one in template.placeholders if template is not None else ():
            if one.reserved:
                yield slot.path, f"{one} is an extension of ours: other tools know {{{one.name}}} only"


def _braces(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    for slot in _slots(definition):
        template = template_of(slot)
        for text in template.literals if template is not None and slot.type != "uritemplate" else ():
            if "{" in text or "}" in text:
                yield (
                    slot.path,
                    f'the braces in "{slot.value}" are text: a placeholder holds letters, digits and _ only',
                )
                break


def _two_spellings(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    first: dict[str, tuple[str, str]] = {}
    for slot in _slots(definition):
        template = template_of(slot)
        for name in template.names if template is not None else ():
            known, path = first.setdefault(name.replace("_", "").lower(), (name, slot.path))
            if known != name:
                yield slot.path, f"{{{name}}} is spelled {{{known}}} at {path}; they are two placeholders"


def _misspelt(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if "xref" in definition.own:
        yield "/xref", "xref means nothing here; use meta.xref for a cross reference"
    for name in definition.own:
        if name != "xref" and name not in _ATTRIBUTES and (near := _near(name, _ATTRIBUTES)):
            yield pointer("", name), f"{name} means nothing here; is {near} meant?"
    metadata = definition.own.get("envelopemetadata")
    for name in metadata if isinstance(metadata, Mapping) else ():
        if name not in ATTRIBUTE_TYPES and (near := _near(name, ATTRIBUTE_TYPES)):
            yield pointer("/envelopemetadata", name), f"{name} is an attribute of its own; is {near} meant?"
    options = definition.own.get("protocoloptions")
    known = PROTOCOLS.get(find_protocol(definition.protocol or "") or "", {})
    for name in options if isinstance(options, Mapping) and known else ():
        if name not in known and (near := _near(name, known)):
            yield (
                pointer("/protocoloptions", name),
                f'"{name}" is not an option of "{definition.protocol}"; is "{near}" meant?',
            )


# The attributes of a message that mean something (message/spec.md and core/spec.md).
_ATTRIBUTES = (
    *("name", "description", "documentation", "icon", "labels", "deprecated", "format", "compatibility"),
    *("basemessage", "envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
    *("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid", "datacontenttype"),
    *("authority", "relatedto", "relatedvia", "relation", "documentationtext"),
)


def _near(name: str, known: Any) -> str:
    """The known name that a name is likely a slip of; empty where it is none."""
    plain = name.replace("_", "").replace("-", "").lower()
    same = next((one for one in known if one.replace("_", "").replace("-", "") == plain), "")
    # One letter more or less is a slip; more of them make another word (`subjectid` is not `subject`).
    alike = [one for one in known if abs(len(one) - len(name)) <= 1]
    return same or next(iter(get_close_matches(name.lower(), alike, 1, 0.8)), "")


def _slots(definition: Definition) -> Iterator[Slot]:
    """Every property that a definition declares."""
    yield from envelope_slots(definition.document)
    protocol = find_protocol(definition.protocol or "")
    if protocol is not None:
        yield from protocol_slots(protocol, definition.document)


RULES: tuple[LintRule, ...] = (
    LintRule(
        "definition-unusable",
        "error",
        "A definition leads to no loop of bases or aliases, and to no base that cannot be merged.",
        _unusable,
    ),
    LintRule(
        "base-external", "note", "A `basemessage` elsewhere is followed only where that is allowed.", _external_base
    ),
    LintRule("protocol-unknown", "warning", "The `protocol` is one whose messages can be matched.", _unknown_protocol),
    LintRule(
        "schema-unavailable",
        "error",
        "The payload schema exists, can be read, and says which of several Protobuf messages is meant.",
        _schema,
    ),
    LintRule(
        "schema-unchecked",
        "note",
        "The payload schema is in the catalog and of a supported format, so that payloads are checked by it.",
        _unchecked_schema,
    ),
    LintRule(
        "never-matches",
        "warning",
        "The definition can be matched; said only where it certainly cannot.",
        _never_matches,
    ),
    LintRule("no-sample", "note", "An example message can be made.", _no_sample),
    LintRule("matches-anything", "warning", "The definition says something of its messages.", _anything),
    LintRule(
        "matches-any-of-a-kind",
        "note",
        "The definition says more of its messages than their envelope and protocol.",
        _any_of_a_kind,
    ),
    LintRule("placeholders-adjacent", "error", "There is text between any two placeholders.", _adjacent),
    LintRule("braces-are-text", "note", "Braces in a string hold the name of a placeholder.", _braces),
    LintRule("placeholder-reserved", "note", "`{+name}` is known to this program only.", _reserved),
    LintRule(
        "placeholder-two-spellings", "warning", "A placeholder is spelled the same wherever it stands.", _two_spellings
    ),
    LintRule(
        "attribute-misspelt",
        "warning",
        "An attribute that means nothing is not nearly named like one that does.",
        _misspelt,
    ),
)

# The rules that look at more than one definition, for those who list or silence rules by name.
WHOLE: Mapping[str, tuple[Severity, str]] = {
    "metadata-unread": (
        "warning",
        "Where there is `envelopemetadata`, an `envelope` is stated; where there are `protocoloptions`, a `protocol`.",
    ),
    "definitions-overlap": ("warning", "No message can satisfy two definitions between which nothing decides."),
    "endpoint-contradicted": ("error", "The messages of an endpoint have its protocol, envelope, mode and address."),
}


# Endpoints -----------------------------------------------------------------------------------------------------------

# The option of an endpoint that says where its messages go, and that of a message.
_ADDRESSES: Mapping[str, tuple[str, str]] = {
    "KAFKA": ("topic", "topic"),
    "MQTT/3.1.1": ("topic", "topic_name"),
    "MQTT/5.0": ("topic", "topic_name"),
    "NATS": ("subject", "subject"),
}


def _carried(xid: str, endpoint: Mapping[str, Any]) -> Iterator[str]:
    """The groups whose messages an endpoint carries: its own, and those it names."""
    yield xid
    groups = endpoint.get("messagegroups")
    yield from (one for one in groups if isinstance(one, str)) if isinstance(groups, list) else ()


def _contradictions(endpoint: Mapping[str, Any], definition: Definition) -> Iterator[tuple[Severity, str, str]]:
    protocol, own = find_protocol(str(endpoint.get("protocol") or "")), find_protocol(definition.protocol or "")
    if protocol is not None and own is not None:
        if own != protocol:
            yield "error", "/protocol", f"is {protocol}, but {definition.xid} is of {own}"
        else:
            yield from _other_address(protocol, endpoint, definition)
    yield from _other_envelope(endpoint, definition)


def _other_envelope(endpoint: Mapping[str, Any], definition: Definition) -> Iterator[tuple[Severity, str, str]]:
    stated, own = endpoint.get("envelope"), definition.envelope
    if isinstance(stated, str) and own is not None and not own.lower().startswith(stated.lower()):
        yield "error", "/envelope", f"is {stated}, but {definition.xid} has {own}"
    mode, wanted = _mode(endpoint), _mode(definition.document)
    if mode and wanted and mode != wanted:
        yield "error", "/envelopeoptions/mode", f"is {mode}, but {definition.xid} is {wanted}"


def _other_address(
    protocol: str, endpoint: Mapping[str, Any], definition: Definition
) -> Iterator[tuple[Severity, str, str]]:
    here, there = _ADDRESSES.get(protocol, ("", ""))
    stated = _option(endpoint, here)
    if not stated or "{" in stated:
        return
    for slot in protocol_slots(protocol, definition.document):
        template = template_of(slot)
        if slot.field == there and template is not None and template.match(stated) is None:
            words = f"is {stated}, but {definition.xid} goes to {template.text}"
            yield "warning", f"/protocoloptions/{here}", words


def _option(document: Mapping[str, Any], name: str) -> str:
    options = document.get("protocoloptions")
    value = options.get(name) if isinstance(options, Mapping) else None
    return value if isinstance(value, str) else ""


def _mode(document: Mapping[str, Any]) -> str:
    options = document.get("envelopeoptions")
    value = options.get("mode") if isinstance(options, Mapping) else None
    return value if isinstance(value, str) else ""
