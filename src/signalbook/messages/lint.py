"""The rules of `signalbook lint` about a whole catalog: its definitions once their bases are merged, and its endpoints.

Rule 1: a rule is a row of `RULES`: a name, a severity, a sentence, and a check. `lint` is the one walk over them.
Rule 2: an error is a definition that cannot do what it says; a warning is likely a mistake; a note is good to know.
Rule 3: every finding is yielded. What is wrong with one entity by itself is a named rule of `model`; that a reference
leads nowhere is found where documents are checked, in `sources.lint`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations, product
from typing import Any, Literal, NamedTuple

from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES
from signalbook.messages.compile import Compiled, MatchPlan, compile_definition
from signalbook.messages.constraint import PropertyConstraint
from signalbook.messages.definition import Definition, Entities
from signalbook.messages.fill import NOW, Slot, envelope_slots, protocol_slots, template_of
from signalbook.messages.observe import MessageKind
from signalbook.messages.schema_library import SchemaLibrary
from signalbook.model.xids import kept_of
from signalbook.protocols.message import OPTIONS, PROTOCOLS, find_protocol
from signalbook.protocols.protocol import pointer
from signalbook.protocols.values import canonical
from signalbook.template import NAME_IN_BRACES, Template

__all__ = [
    "RULES",
    "CatalogFound",
    "DefinitionFinding",
    "LintRule",
    "Overlaps",
    "Severity",
    "Subjects",
    "lint",
    "why_never",
    "without_constraints",
]

Severity = Literal["error", "warning", "note"]
# What a check of one definition yields: the path in the definition, and words.
Found = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DefinitionFinding:
    """One finding: the rule that made it, how bad it is, about what, where in it, and in words."""

    rule: str
    severity: Severity
    xid: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Subjects:
    """What is linted: definitions and endpoints by xid, and what a catalog knows about a definition.

    `schema_problem` says why a definition's payload schema cannot be had, `schema_unchecked` why it is not applied, and
    `sample_problem` why no message could be made that the definition matches; each is empty where there is nothing to
    say.
    """

    definitions: Mapping[str, Definition]
    endpoints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    schema_problem: Callable[[str], str] = lambda _: ""
    sample_problem: Callable[[str], str] = lambda _: ""
    schema_unchecked: Callable[[str], str] = lambda _: ""


class CatalogFound(NamedTuple):
    """What a check of a whole catalog yields; `severity` is set where it is not that of the rule."""

    xid: str
    path: str
    message: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule: a check of each definition by itself, or a check of the whole catalog."""

    name: str
    severity: Severity
    text: str
    check_definition: Callable[[Subjects, Definition], Iterator[Found]] | None = None
    check_catalog: Callable[[Subjects], Iterator[CatalogFound]] | None = None


def lint(subjects: Subjects, only: Collection[str] | None = None) -> Iterator[DefinitionFinding]:
    """Every finding about a catalog: first about each definition, then about several definitions and endpoints.

    `only` names the rules that are run, where not all are.
    """
    rules = [rule for rule in RULES if only is None or rule.name in only]
    for definition in subjects.definitions.values() if rules else ():
        if definition.target is None:  # an alias is judged where it leads
            for rule in rules:
                for path, words in rule.check_definition(subjects, definition) if rule.check_definition else ():
                    yield DefinitionFinding(rule.name, rule.severity, definition.xid, path, words)
    for rule in rules:
        for found in rule.check_catalog(subjects) if rule.check_catalog else ():
            yield DefinitionFinding(rule.name, found.severity or rule.severity, found.xid, found.path, found.message)


# Rules about one definition -------------------------------------------------------------------------------------------


def _unusable(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    for problem in definition.problems:
        yield problem.path, f"{problem.message}, so the definition never matches"


def _external_base(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    yield from ((note.path, note.message) for note in definition.notes if note.code == "external")


def _unknown_protocol(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if definition.protocol is not None and find_protocol(definition.protocol) is None:
        yield "/protocol", f'"{definition.protocol}" is not a protocol whose messages can be matched'


def _schema_unavailable(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (why := subjects.schema_problem(definition.xid)):
        path = next((f"/{name}" for name in _SCHEMA if name in definition.document), "/dataschemaformat")
        yield path, f"the payload schema cannot be used: {why}"


def _schema_unchecked(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (why := subjects.schema_unchecked(definition.xid)):
        path = next((f"/{name}" for name in _SCHEMA if name in definition.document), "/dataschemaformat")
        yield path, f"payloads are not checked: {why}"


def _never_matches(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (why := why_never(definition)):
        yield "", f"no message can match it: {why}"


def _no_sample(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    usable = not definition.problems and not why_never(definition) and not subjects.schema_problem(definition.xid)
    if usable and (why := subjects.sample_problem(definition.xid)):
        yield "", f"no example of it could be made: {why}"


def _matches_anything(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and not (definition.envelope or definition.protocol) and without_constraints(definition):
        yield "", "it says nothing of its messages, so any message that no other definition knows matches it"


def _matches_any_of_a_kind(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    if not definition.problems and (definition.envelope or definition.protocol) and without_constraints(definition):
        kind = " and ".join(one for one in (definition.envelope, definition.protocol) if one)
        yield "", f"any message of {kind} that no other definition knows matches it"


def _adjacent(subjects: Subjects, definition: Definition) -> Iterator[Found]:
    for slot in _slots(definition):
        template = template_of(slot) if isinstance(slot.value, str) and "}{" in slot.value else None
        if template is not None and template.adjacent:
            yield slot.path, f"two placeholders stand side by side in {template.text}; it is not known where one ends"


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
                    f'the braces in "{slot.value}" are text: {NAME_IN_BRACES}',
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
    known = OPTIONS.get(find_protocol(definition.protocol or "") or "", {})
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
    """The known name that a name is likely a slip of; empty where it is like none."""
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


# How much a definition can match by itself: nothing at all, where that is certain; anything; or all of one kind.
#
# Rule 1: a definition is looked at as it is matched: by its plan for each kind of message over each protocol.
# Rule 2: what is said is proved. A message without a payload satisfies any payload schema (matching.md, "Payloads"), so
# no schema makes a definition one that never matches.


_NO_SCHEMAS = SchemaLibrary(Entities())
# Every event has them, so that to require them says nothing.
_ALWAYS = frozenset(f"/envelopemetadata/{name}" for name in ("id", "source", "specversion", "type"))
_ANY_TEXT = frozenset({"any", "string", "uritemplate"})


def why_never(definition: Definition) -> str:
    """Why no message can match the definition; empty where one might."""
    reasons = [_why_not(plan) for plan in _plans(compile_definition(definition))]
    if not all(reasons):
        return ""
    # Of a message that would be of the right kind, the reason lies in the definition's own values.
    return next((reason for reason in reasons if reason and reason.startswith("the value of")), reasons[-1])


def without_constraints(definition: Definition) -> bool:
    """Whether the definition says nothing of its messages but their envelope and protocol."""
    compiled = compile_definition(definition)
    if compiled.payload.schema(_NO_SCHEMAS) is not None:
        return False
    fitting = [plan for plan in _plans(compiled) if plan.misfit is None]
    return bool(fitting) and not any(_constrains(test) for plan in fitting for test in plan.tests)


def _plans(compiled: Compiled) -> Iterator[MatchPlan]:
    """How the definition tests each kind of message, over each protocol."""
    yield compiled.plan(MessageKind.BARE, None)
    for protocol in PROTOCOLS:
        yield compiled.plan(MessageKind.EVENT, protocol)
        yield compiled.plan(MessageKind.NATIVE, protocol)


def _why_not(plan: MatchPlan) -> str:
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


def _constrains(test: PropertyConstraint) -> bool:
    return (
        (test.required and test.path not in _ALWAYS)
        or test.constant is not None
        or test.template is not None
        or test.needed is not None
        or test.type not in _ANY_TEXT
    )


# Rules about several definitions, and about endpoints -----------------------------------------------------------------


def _unread(subjects: Subjects) -> Iterator[CatalogFound]:
    """Metadata and options that nothing reads: neither the definition nor one derived from it says whose they are."""
    definitions = [one for one in subjects.definitions.values() if one.target is None and not one.problems]
    for selector, metadata in (("envelope", "envelopemetadata"), ("protocol", "protocoloptions")):
        stating = [one for one in definitions if one.document.get(selector)]
        read = {base for one in stating for base in one.derives_from}
        for one in definitions:
            if one.document.get(metadata) and not one.document.get(selector) and one.xid not in read:
                words = f"is ignored, because neither the definition, nor a base, nor its group states the {selector}"
                yield CatalogFound(one.xid, f"/{metadata}", words)


def _contradicted_endpoints(subjects: Subjects) -> Iterator[CatalogFound]:
    by_group: dict[str, list[Definition]] = {}
    for definition in subjects.definitions.values():
        if not definition.problems:
            by_group.setdefault(definition.group, []).append(definition)
    for xid, endpoint in subjects.endpoints.items():
        for group in _carried(xid, endpoint):
            for definition in by_group.get(group, ()):
                for severity, path, words in _contradictions(endpoint, definition):
                    yield CatalogFound(xid, path, words, severity)


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
    here, there = PROTOCOLS[protocol].endpoint_address, PROTOCOLS[protocol].address
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


def _overlaps(subjects: Subjects) -> Iterator[CatalogFound]:
    pairs = Overlaps(subjects.definitions.values())
    for one, other in pairs:
        yield CatalogFound(one, "", f"a message could also match {other}, and nothing decides between the two")
    if not pairs.complete:
        yield CatalogFound("/", "", "so many definitions are alike that not all were compared", "note")


# Pairs of definitions that the same message could satisfy, with nothing to decide between them.
#
# Rule 1: two definitions are apart where a property that a message must have for one of them has no value for both.
# Rule 2: a pair is skipped where a match would decide: the one derives from the other, they are aliases, or just one is
# bound to a protocol or has a payload schema (matching.md, "Several hold").
# Rule 3: only definitions whose keys can meet are compared, and of those a bounded number. Those without a key are
# compared with each other, where they have the same payload schema or none; each is reported with the first that it
# meets.


_MOST_PAIRS = 500_000
_MOST_STEPS = 32
_SCHEMA = ("dataschema", "dataschemauri", "dataschemaxid")
# What is the same in many messages is not a key (matching.md, "key").
_NO_KEYS = frozenset({"specversion", "datacontenttype", "content-type"})


@dataclass(frozen=True, slots=True)
class _Comparable:
    """A definition as a comparison needs it: its properties by place, and those that a message must have."""

    definition: Definition
    protocol: str
    event: bool
    templates: Mapping[tuple[str, str], Template]
    needed: frozenset[tuple[str, str]]
    key: tuple[tuple[str, str], Template] | None
    by_constants: bool = False


class Overlaps:
    """Each pair that could be ambiguous, as xids; `complete` is false once there were too many to compare."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        usable = (one for one in definitions if one.target is None and not one.problems and not why_never(one))
        shapes = [_comparable(one) for one in usable]
        self._shapes = [shape for shape in shapes if shape.key is not None]
        self._keyless = [shape for shape in shapes if shape.key is None]
        self._left = _MOST_PAIRS
        self.complete = True

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self._left = _MOST_PAIRS
        for one, other in _meeting(self._shapes):
            if not self._may_compare():
                return
            if not _decided(one.definition, other.definition) and not _apart(one, other):
                yield one.definition.xid, other.definition.xid
        for same in _alike(self._keyless):
            for at, one in enumerate(same):
                for other in same[at + 1 :]:
                    if not self._may_compare():
                        return
                    if not _decided(one.definition, other.definition) and not _apart(one, other):
                        yield one.definition.xid, other.definition.xid
                        break

    def _may_compare(self) -> bool:
        self._left -= 1
        self.complete = self.complete and self._left >= 0
        return self.complete


_Keyed = tuple[_Comparable, list[str]]


def _comparable(definition: Definition) -> _Comparable:
    protocol = find_protocol(definition.protocol or "") or ""
    event = (definition.envelope or "").lower().startswith("cloudevents/")
    slots = list(envelope_slots(definition.document)) if event else []
    slots += protocol_slots(protocol, definition.document) if protocol else ()
    templates = {_place(slot): _stated_template(slot) for slot in slots if slot.value is not None and slot.value != NOW}
    key = _key(protocol, event, templates)
    constants = {
        place for place, template in templates.items() if template.literal and place[1].lower() not in _NO_KEYS
    }
    needed = {_place(slot) for slot in slots if slot.required} | ({key[0]} if key is not None else constants)
    return _Comparable(definition, protocol, event, templates, frozenset(needed), key, key is None and bool(constants))


def _place(slot: Slot) -> tuple[str, str]:
    return slot.field, slot.name


def _stated_template(slot: Slot) -> Template:
    return template_of(slot) or Template.parse(canonical(slot.value).replace("{", "%7B"))


def _key(
    protocol: str, event: bool, templates: Mapping[tuple[str, str], Template]
) -> tuple[tuple[str, str], Template] | None:
    places = (("", "type"),) if event else ()
    for place in (*places, *(PROTOCOLS[protocol].keys if protocol else ())):
        template = templates.get(place)
        if template is not None and template.has_literal_text:
            return place, template
    return None


def _meeting(shapes: list[_Comparable]) -> Iterator[tuple[_Comparable, _Comparable]]:
    """Pairs whose keys a message could satisfy both, as far as their steps show."""
    by_place: dict[tuple[str, tuple[str, str]], list[_Comparable]] = {}
    for shape in shapes:
        assert shape.key is not None
        # An event's type is the same key whatever protocol carries it.
        by_place.setdefault(("" if shape.key[0][0] == "" else shape.protocol, shape.key[0]), []).append(shape)
    for found in by_place.values():
        loose = [shape for shape in found if _crosses(shape)]
        by_length: dict[int, list[_Keyed]] = {}
        for shape in found:
            if not _crosses(shape):
                steps = _key_template(shape).text.split("/", _MOST_STEPS)
                by_length.setdefault(len(steps), []).append((shape, steps))
        for length, keyed in by_length.items():
            yield from _within(keyed, 0, length)
        yield from combinations(loose, 2)
        yield from ((one, other) for one in loose for other in found if not _crosses(other))


def _key_template(shape: _Comparable) -> Template:
    assert shape.key is not None
    return shape.key[1]


def _crosses(shape: _Comparable) -> bool:
    """Whether a key has any number of steps."""
    return any(part.reserved for part in _key_template(shape).placeholders)


def _within(keyed: list[_Keyed], at: int, length: int) -> Iterator[tuple[_Comparable, _Comparable]]:
    """Pairs of one list whose steps from one on can be the same."""
    if len(keyed) < 2:
        return
    if at == length:
        yield from combinations((shape for shape, _ in keyed), 2)
        return
    fixed, open_ = _split(keyed, at)
    for same in fixed.values():
        yield from _within(same, at + 1, length)
        yield from _across(same, open_, at + 1, length)
    yield from _within(open_, at + 1, length)


def _across(
    ones: list[_Keyed], others: list[_Keyed], at: int, length: int
) -> Iterator[tuple[_Comparable, _Comparable]]:
    """Pairs of two lists whose steps from one on can be the same."""
    if not ones or not others:
        return
    if at == length:
        yield from product((shape for shape, _ in ones), (shape for shape, _ in others))
        return
    fixed, open_ = _split(ones, at)
    other_fixed, other_open = _split(others, at)
    for step, same in fixed.items():
        yield from _across(same, other_fixed.get(step, []), at + 1, length)
        yield from _across(same, other_open, at + 1, length)
    yield from _across(open_, others, at + 1, length)


def _split(keyed: list[_Keyed], at: int) -> tuple[dict[str, list[_Keyed]], list[_Keyed]]:
    """By a step that is fixed, and those whose step is open."""
    fixed: dict[str, list[_Keyed]] = {}
    open_: list[_Keyed] = []
    for one in keyed:
        step = one[1][at]
        (open_ if "{" in step else fixed.setdefault(step, [])).append(one)
    return fixed, open_


def _alike(shapes: list[_Comparable]) -> Iterable[list[_Comparable]]:
    """Definitions without a property to route by: those with constants apart, and by what they say about payloads.

    Constants together are a key, and a key goes before none; whether other payloads distinguish them is not looked at.
    """
    found: dict[tuple[bool, str], list[_Comparable]] = {}
    for shape in shapes:
        said = repr([shape.definition.document.get(name) for name in (*_SCHEMA, "datacontenttype")])
        found.setdefault((shape.by_constants, said), []).append(shape)
    return found.values()


def _apart(one: _Comparable, other: _Comparable) -> bool:
    """Whether no message can satisfy both."""
    if one.protocol and other.protocol and one.protocol != other.protocol:
        return True
    if one.event != other.event and not (one.protocol and other.protocol):
        return True
    for place in sorted(one.templates.keys() & other.templates.keys()):
        needed = place in one.needed or place in other.needed
        if needed and not _can_meet(one.templates[place], other.templates[place]):
            return True
    return False


def _can_meet(one: Template, other: Template) -> bool:
    """Whether a value could fit both; for two templates, judged by how they begin and end."""
    if one.literal:
        return other.match(one.text) is not None
    if other.literal:
        return one.match(other.text) is not None
    return _compatible(one.literals[0], other.literals[0], str.startswith) and (
        _compatible(one.literals[-1], other.literals[-1], str.endswith) and _same_steps(one, other)
    )


def _compatible(one: str, other: str, test: object) -> bool:
    assert callable(test)
    return bool(test(one, other) or test(other, one))


def _same_steps(one: Template, other: Template) -> bool:
    """Whether both have as many steps, each of which could be the other's; `{+name}` has any number."""
    if any(part.reserved for part in (*one.placeholders, *other.placeholders)):
        return True
    steps, others = one.text.split("/"), other.text.split("/")
    return len(steps) == len(others) and all(
        "{" in left or "{" in right or left == right for left, right in zip(steps, others, strict=True)
    )


def _decided(one: Definition, other: Definition) -> bool:
    """Whether a match that both satisfy would be decided by who they are."""
    if one.identity == other.identity or other.xid in one.derives_from or one.xid in other.derives_from:
        return True
    if kept_of(one.xid) == other.xid or kept_of(other.xid) == one.xid:  # a copy that is kept beside the other
        return True
    return (one.protocol is None) != (other.protocol is None) or _has_schema(one) != _has_schema(other)


def _has_schema(definition: Definition) -> bool:
    return any(name in definition.document for name in _SCHEMA)


# The table ------------------------------------------------------------------------------------------------------------


RULES: tuple[LintRule, ...] = (
    LintRule(
        "definition-unusable",
        "error",
        "The bases and aliases of a definition form no loop, and every base can be merged.",
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
        _schema_unavailable,
    ),
    LintRule(
        "schema-unchecked",
        "note",
        "The payload schema is in the catalog and of a supported format, so that payloads are checked by it.",
        _schema_unchecked,
    ),
    LintRule(
        "never-matches",
        "warning",
        "The definition can be matched; said only where it certainly cannot.",
        _never_matches,
    ),
    LintRule("no-sample", "note", "An example message can be made.", _no_sample),
    LintRule("matches-anything", "warning", "The definition says something of its messages.", _matches_anything),
    LintRule(
        "matches-any-of-a-kind",
        "note",
        "The definition says more of its messages than their envelope and protocol.",
        _matches_any_of_a_kind,
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
    LintRule(
        "metadata-unread",
        "warning",
        "Where there is `envelopemetadata`, an `envelope` is stated; where there are `protocoloptions`, a `protocol`.",
        check_catalog=_unread,
    ),
    LintRule(
        "definitions-overlap",
        "warning",
        "No message can satisfy two definitions between which nothing decides.",
        check_catalog=_overlaps,
    ),
    LintRule(
        "endpoint-contradicted",
        "error",
        "The messages of an endpoint have its protocol, envelope, mode and address.",
        check_catalog=_contradicted_endpoints,
    ),
)
