"""The answer about one message: by all definitions of a scope, or by one alone.

Rule 1: a definition holds where its key is there and every constraint and the payload hold.
Rule 2: a key that holds decides: a violation of such a definition is not hidden by one without a key.
Rule 3: where several hold, the steps of `_decide` decide in their order; what remains is ambiguous.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from signalbook.budget import BYTES, TooMuch
from signalbook.cloudevents import CloudEvent, CloudEventError, Data, Kind
from signalbook.cloudevents.attributes import format_timestamp, is_absolute_uri, is_timestamp
from signalbook.errors import Problem
from signalbook.jsontext import is_json_text
from signalbook.messages.answer import Answer, Candidate, Outcome
from signalbook.messages.compile import CLOUDEVENTS, TYPE, Compiled, Judged, MatchPlan, judge, key_holds, may_hold
from signalbook.messages.constraint import JUDGING, Context, PropertyConstraint, is_json, judging
from signalbook.messages.definition import Absolute, schema_address
from signalbook.messages.fast import MatchScope
from signalbook.messages.index import KeyIndex, SameKey
from signalbook.messages.nearest import MOST_JUDGED
from signalbook.messages.observe import Observed, Unreadable
from signalbook.messages.schema_library import SchemaLibrary
from signalbook.model.xids import kept_of
from signalbook.protocols import PROTOCOLS, Message, Typed
from signalbook.schemas import media_type

__all__ = ["answer", "answer_by_one", "mapped_event"]

# A native message as the CloudEvent that its definition makes of it.
#
# Rule 1: an attribute is what the envelope's constant or template says, its names filled from what the message
# captured; one that cannot be filled is left out, and without `type` or `source` there is no event.
# Rule 2: nothing is invented. `id` is the transport's own identity of the message, else a hash of it, so that the same
# message gets the same id again; `time` is the transport's timestamp or absent.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stated(reference: str) -> str | None:
    """The absolute form of a reference in a catalog without an address: itself where it is absolute."""
    return reference if is_absolute_uri(reference) else None


_SCHEMA = "/envelopemetadata/dataschema"


def mapped_event(
    compiled: Compiled, observed: Observed, context: Context, absolute: Absolute = stated
) -> CloudEvent | None:
    """The event that a native message is by its definition; None where the definition does not make one of it."""
    message = observed.message
    if compiled.envelope != CLOUDEVENTS or message is None:
        return None
    attributes: dict[str, Any] = {"specversion": "1.0"}
    for constraint in compiled.on_envelope:
        value = _attribute_value(constraint, context)
        if value is not None and (constraint.path != _SCHEMA or is_absolute_uri(str(value))):
            attributes[constraint.path.rpartition("/")[2]] = value
    attributes.setdefault("id", _message_identity(message))
    attributes.setdefault("time", _event_time(message))
    payload = observed.payload()
    if payload is not None:
        attributes["datacontenttype"] = _content_type(compiled, observed, attributes.get("datacontenttype"))
        attributes.setdefault("dataschema", _dataschema(compiled.definition.document, absolute))
    try:
        return CloudEvent(attributes, _event_data(payload, attributes.get("datacontenttype")))
    except CloudEventError:
        return None


def _attribute_value(constraint: PropertyConstraint, context: Context) -> Any:
    if constraint.template is not None:
        names = constraint.template.names
        return constraint.template.expand(context) if all(name in context for name in names) else None
    if constraint.constant is None:
        return None
    read = _FROM_TEXT.get(constraint.type)
    try:
        return constraint.constant if read is None else read(constraint.constant)
    except ValueError:
        return None


def _boolean(text: str) -> bool:
    return text == "true"


_FROM_TEXT: Mapping[str, Callable[[str], Any]] = {"integer": int, "boolean": _boolean}


def _message_identity(message: Message) -> str:
    """The message's identity in its transport, or a hash of all that was observed of it."""
    known = PROTOCOLS[message.protocol].identity(message.fields)
    if known:
        return known
    written = orjson.dumps(message.to_json(), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(written).hexdigest()


def _event_time(message: Message) -> str | None:
    moment = PROTOCOLS[message.protocol].moment(message.fields)
    if isinstance(moment, Typed):
        moment = moment.value
    if isinstance(moment, int) and not isinstance(moment, bool):
        try:
            return format_timestamp(_EPOCH + timedelta(milliseconds=moment))
        except OverflowError:
            return None
    return moment if isinstance(moment, str) and is_timestamp(moment) else None


def _content_type(compiled: Compiled, observed: Observed, stated: Any) -> str | None:
    """What the message says, else the definition, else what its schema format implies."""
    known = observed.transport_content_type() or stated or compiled.payload.content_type
    if known:
        return str(known)
    return media_type(str(compiled.definition.document.get("dataschemaformat", "")))


def _dataschema(document: Mapping[str, Any], absolute: Absolute) -> str | None:
    """The address of the schema, as a built event has it."""
    uri = schema_address(document, absolute)
    return uri if uri is not None and is_absolute_uri(uri) else None


def _event_data(payload: bytes | None, content_type: Any) -> Data | None:
    if payload is None:
        return None
    if content_type is not None and is_json(content_type) and is_json_text(payload):
        return Data(Kind.JSON, payload)
    return Data.binary(payload)


# So few definitions are asked without being counted.
_FEW = 8
# The steps to ask one definition, besides one for each thing that it says and those for the payload.
_A_DEFINITION = 5


class _Asked:
    """What it takes to ask many definitions about one message."""

    __slots__ = ("_budget", "_payload")

    def __init__(self, observed: Observed) -> None:
        self._budget = judging()
        self._payload = len(observed.payload() or b"") // BYTES

    def each(self, plans: Iterable[MatchPlan]) -> Iterator[MatchPlan]:
        """The plans one by one, each paid for."""
        for plan in plans:
            self._budget.spend(_A_DEFINITION + len(plan.tests) + self._payload)
            yield plan


def answer(scope: MatchScope, observed: Observed | Unreadable, absolute: Absolute = stated) -> Answer:
    """What the definitions of a scope say about a message; `absolute` is for references in an event made of it."""
    if isinstance(observed, Unreadable):
        return _malformed(scope, observed)
    try:
        return _answer(scope, observed, absolute)
    except TooMuch as error:
        if error.budget.what is not JUDGING:
            raise
        return Answer(Outcome.NONCONFORMANT, problems=(_too_much(error),), event=observed.event)


def _too_much(error: TooMuch) -> Problem:
    words = "its payload is too large, or too many definitions may be meant"
    return Problem("", "too_much", f"{error}: {words}")


def _answer(scope: MatchScope, observed: Observed, absolute: Absolute) -> Answer:
    index, library = scope.index(observed.kind, observed.protocol), scope.library
    found = index.find(observed)
    if found:
        keyed = _judged(_open_to(found, observed), observed, library)
        holding = [one for one in keyed if one.holds]
        if holding:
            holding += _preferred_without_key(index, observed, holding, library)
            return _held(observed, holding, absolute, library)
        keyed, left_off = _with_the_key(found, keyed, observed, library)
        if keyed:
            return _near_miss(observed, keyed, left_off)
    holding = _holding(index.keyless, observed, library)
    if holding:
        return _held(observed, holding, absolute, library)
    return Answer(Outcome.UNEXPECTED, candidates=index.neighbours.of(observed, library), event=observed.event)


def answer_by_one(
    compiled: Compiled, observed: Observed | Unreadable, library: SchemaLibrary, absolute: Absolute = stated
) -> Answer:
    """What one definition says about a message, whatever its key."""
    xid = compiled.definition.xid
    if isinstance(observed, Unreadable):
        return Answer(Outcome.MALFORMED, xid, problems=observed.problems)
    try:
        judged = judge(compiled.plan(observed.kind, observed.protocol), observed, library)
    except TooMuch as error:
        if error.budget.what is not JUDGING:
            raise
        return Answer(Outcome.NONCONFORMANT, xid, problems=(_too_much(error),), event=observed.event)
    problems = compiled.definition.problems or judged.problems
    if problems:
        return _nonconformant(observed, judged, problems)
    return _matched(observed, judged, absolute)


def _open_to(found: list[SameKey], observed: Observed) -> Collection[MatchPlan]:
    """The plans that may hold, of keys that may."""
    if len(found) == 1:
        return found[0].open_to(observed)
    return [plan for same in found for plan in same.open_to(observed)]


def _with_the_key(
    found: list[SameKey], keyed: list[Judged], observed: Observed, library: SchemaLibrary
) -> tuple[list[Judged], int]:
    """Where none holds, what the definitions say whose key does, and how many more there are.

    Of very many, those count that a message of its metadata may be one of; else those most like it.
    """
    if len(keyed) == sum(map(len, found)):
        return keyed, 0
    found = [same for same in found if same.first is not None and key_holds(same.first, observed)]
    total = sum(map(len, found))
    if total <= MOST_JUDGED:
        known = {one.plan for one in keyed}
        others = [plan for same in found for plan in same.plans if plan not in known]
        return keyed + _judged(others, observed, library), 0
    if not keyed:
        most_like = [plan for same in found for plan in same.nearest(observed)]
        keyed = _judged(most_like[:MOST_JUDGED], observed, library)
        return keyed, total - len(keyed)
    return keyed, 0


def _judged(plans: Collection[MatchPlan], observed: Observed, library: SchemaLibrary) -> list[Judged]:
    asked = plans if len(plans) <= _FEW else _Asked(observed).each(plans)
    return [one for plan in asked if (one := _judged_by_key(plan, observed, library)) is not None]


def _judged_by_key(plan: MatchPlan, observed: Observed, library: SchemaLibrary) -> Judged | None:
    """What a definition says that an index found; None where its key does not hold."""
    # A single constant is what the index went by: it is looked at again only where something is wrong.
    if not plan.is_single and not key_holds(plan, observed):
        return None
    judged = judge(plan, observed, library)
    return judged if judged.holds or not plan.is_single or key_holds(plan, observed) else None


def _malformed(scope: MatchScope, unreadable: Unreadable) -> Answer:
    """What cannot be read, with the definitions that its type would have meant."""
    hint = unreadable.hint
    meant: tuple[Candidate, ...] = ()
    if hint is not None:
        found = scope.index(hint.kind, hint.protocol).find(hint)
        named = [same for same in found if (one := same.first) and one.key[0].path == TYPE and key_holds(one, hint)]
        xids = sorted(plan.compiled.definition.xid for same in named for plan in same.plans)
        meant = tuple(Candidate(xid) for xid in xids)
    candidates, more = _listed(meant)
    return Answer(Outcome.MALFORMED, problems=(*unreadable.problems, *more), candidates=candidates)


def _holding(plans: Collection[MatchPlan], observed: Observed, library: SchemaLibrary) -> list[Judged]:
    asked = plans if len(plans) <= _FEW else _Asked(observed).each(plans)
    judged = (judge(plan, observed, library) for plan in asked if may_hold(plan, observed))
    return [one for one in judged if one.holds]


def _preferred_without_key(
    index: KeyIndex, observed: Observed, holding: list[Judged], library: SchemaLibrary
) -> list[Judged]:
    """Definitions without a key that hold and to which those that hold by their keys yield.

    They derive from one of them, or are bound to what carried the message where none of them is.
    """
    bases = {one.identity for one in holding}
    derived = [plan for plan in index.keyless_derived if not bases.isdisjoint(plan.derives_from)]
    if index.keyless_at_home and not any(one.plan.is_at_home for one in holding):
        derived += [plan for plan in index.keyless_at_home if plan not in derived]
    return _holding(derived, observed, library)


def _held(observed: Observed, holding: list[Judged], absolute: Absolute, library: SchemaLibrary) -> Answer:
    left = _decide(observed, holding, library)
    if len(left) == 1:
        return _matched(observed, left[0], absolute)
    candidates, more = _listed(_candidates(left))
    return Answer(Outcome.AMBIGUOUS, problems=more, candidates=candidates, event=observed.event)


def _matched(observed: Observed, judged: Judged, absolute: Absolute) -> Answer:
    event: CloudEvent | Callable[[], CloudEvent | None] | None = observed.event
    if event is None:
        compiled = judged.plan.compiled
        event = lambda: mapped_event(compiled, observed, judged.context, absolute)  # noqa: E731  # made when it is asked for
    return Answer(Outcome.MATCHED, judged.xid, judged.context, (), (), event, judged.checked, judged.unchecked)


def _nonconformant(observed: Observed, judged: Judged, problems: tuple[Problem, ...]) -> Answer:
    return Answer(
        Outcome.NONCONFORMANT,
        judged.xid,
        judged.context,
        problems,
        (),
        observed.event,
        judged.checked,
        judged.unchecked,
    )


def _candidates(judged: list[Judged]) -> tuple[Candidate, ...]:
    return tuple(one.candidate() for one in sorted(judged, key=lambda one: one.xid))


def _listed(candidates: tuple[Candidate, ...], left_off: int = 0) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    """As many candidates as an answer lists, and in words how many more there are."""
    left_off += max(0, len(candidates) - MOST_JUDGED)
    if not left_off:
        return candidates, ()
    words = f"{left_off:,} more definitions have the same key and are not listed"
    return candidates[:MOST_JUDGED], (Problem("", "value", words),)


def _near_miss(observed: Observed, keyed: list[Judged], left_off: int) -> Answer:
    """The answer where keys hold and nothing else does: the definition with the fewest problems, if that is one."""
    left = keyed
    if len(keyed) > 1:
        fewest = min(len(one.problems) for one in keyed)
        left = _without_bases(_without_kept(_one_each([one for one in keyed if len(one.problems) == fewest])))
    if len(left) > 1 or left_off:
        candidates, more = _listed(_candidates(left), left_off + len(keyed) - len(left) if left_off else 0)
        return Answer(Outcome.NONCONFORMANT, problems=more, candidates=candidates, event=observed.event)
    return _nonconformant(observed, left[0], left[0].problems)


def _decide(observed: Observed, holding: list[Judged], library: SchemaLibrary) -> list[Judged]:
    """Which of several that hold are left after each rule, in order, has preferred some of them."""
    left = _without_kept(_one_each(holding))
    if len(left) > 1:
        left = _preferred(left, lambda one: one.plan.is_at_home)
    if len(left) > 1:
        left = _without_bases(left)
    if len(left) > 1:
        left = _preferred(left, lambda one: bool(one.plan.key))
    if len(left) > 1 and observed.event is not None:
        left = _preferred(left, lambda one: one.plan.compiled.envelope is not None)
        named = observed.attributes.get("dataschema")
        if isinstance(named, str):
            left = _preferred(left, lambda one: one.plan.compiled.payload.is_named_by(named, library))
    if len(left) > 1:
        left = _preferred(left, lambda one: one.confirmed)
    return left


def _preferred(judged: list[Judged], better: Callable[[Judged], bool]) -> list[Judged]:
    return [one for one in judged if better(one)] or judged


def _without_bases(judged: list[Judged]) -> list[Judged]:
    """Those from which no other of them derives."""
    bases = {base for one in judged for base in one.plan.derives_from}
    return [one for one in judged if one.identity not in bases] or judged


def _without_kept(judged: list[Judged]) -> list[Judged]:
    """Those that are not kept beside another of them: who has the name outranks the copy of another origin."""
    if len(judged) < 2:
        return judged
    names = {one.xid for one in judged}
    return [one for one in judged if kept_of(one.xid) not in names]


def _one_each(judged: list[Judged]) -> list[Judged]:
    """One for each definition: it may be in scope under the limits of several endpoints."""
    return list({one.identity: one for one in judged}.values())
