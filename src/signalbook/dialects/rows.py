"""The row engine: one entity from a dialect to the canonical form, or back, by the rows of a table.

Rule 1: a row takes its value out of the source and puts what its form makes of it into the target; what no row names is
carried over as it is.
Rule 2: nothing is dropped without a word: what goes into a label is noted as `held`, what goes nowhere as `lost`, what
a server assigns anew as `assigned`, and what means something else than before as `changed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

import orjson

from signalbook.errors import Problem, RegistryError
from signalbook.jsontext import Json
from signalbook.model.xids import ID, MAP_KEY, kept_of
from signalbook.spec.dialects.dialect import Dialect, DialectRow, DialectTable

__all__ = [
    "MISSING",
    "NOW",
    "PLAIN_FORMS",
    "PROPERTY",
    "SEGMENT",
    "ConversionForm",
    "ConversionForms",
    "ConversionStep",
    "from_id",
    "has_placeholder",
    "inward",
    "is_beyond_level_one",
    "is_same_in_both",
    "is_template",
    "may_become",
    "names_in",
    "note_template",
    "outward",
    "renamed",
    "template_text",
    "to_id",
    "unwrapped",
    "wrapped",
]

# Ids of 0.1 in the 1.0 view: a character that 1.0 does not allow is `~` and two hex digits a byte, reversibly.
#
# 0.1 section 2.1.1: an id is a `segment-nz-nc` of RFC 3986, so it may hold sub-delims and percent-encoded characters.
# The two spellings `my%20id` and `my id` are one id, as a server sees them in a path. The end of a kept copy's id (`~`
# and eight hex digits, see `model.xids`) is the same in both. Each id of 1.0 has one of its own in 0.1.


# RFC 3986 section 3.3: segment-nz-nc = 1*( unreserved / pct-encoded / sub-delims / "@" ).
SEGMENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+")
# What 1.0 does not allow, and the tilde itself, which begins an escape.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.\-:@]")
_ESCAPES = re.compile(r"(?:~[0-9a-f]{2})+")
# 1.0 wants a letter, a digit or an underscore first; an id that begins so by itself has an escape there.
_START = "_~"
# In front of an id of 1.0 that no id of 0.1 becomes, such as one with a tilde that is not an escape.
_AS_IT_IS = "~~"


def to_id(text: str) -> str:
    """The 1.0 id of a 0.1 id."""
    plain = unquote(text)
    if plain.startswith(_AS_IT_IS):
        as_it_is = plain[len(_AS_IT_IS) :]
        if ID.fullmatch(as_it_is) and _to_id(_unescape_id(as_it_is)) != as_it_is:
            return as_it_is
    return _to_id(plain)


def _to_id(plain: str) -> str:
    own = kept_of(plain)
    escaped = _escaped(plain if own is None else own)
    if own is not None:
        escaped += plain[len(own) :]
    elif kept_of(escaped) is not None:  # an escape that would end like a kept copy's id goes one character on
        escaped = f"{escaped[:-6]}~{ord(escaped[-6]):02x}{escaped[-5:]}"
    first = escaped[:1]
    if escaped.startswith(_START + "~"):
        return f"_~7e{escaped[2:]}"
    if first in ("", "_") or first.isalnum():
        return escaped
    if first != "~":
        escaped = f"~{ord(first):02x}{escaped[1:]}"
    return _START + escaped


def _escaped(plain: str) -> str:
    return _ILLEGAL.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), plain)


def from_id(id_: str) -> str:
    """The 0.1 id that a 1.0 id stands for, from which `to_id` makes it again."""
    text = _unescape_id(id_)
    return quote(text if to_id(text) == id_ else _AS_IT_IS + id_, safe="!$&'()*+,;=@~")


def _unescape_id(id_: str) -> str:
    if id_.startswith(_START + "~"):
        id_ = id_[len(_START) :]
    own = kept_of(id_)
    end = "" if own is None else id_[len(own) :]
    plain = id_ if own is None else own
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode("utf-8", "replace"), plain) + end


# Names in templates: 0.1 has ones with hyphens in its own examples, which RFC 6570 and 1.0 do not allow.


_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"\+?[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_HYPHENATED = re.compile(r"(\+?)([A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)+)")


def names_in(value: Any) -> Iterator[str]:
    """Every name that a placeholder in a value, or in anything it holds, has and may keep."""
    if isinstance(value, str):
        yield from (found[1].lstrip("+") for found in _EXPRESSION.finditer(value) if _NAME.fullmatch(found[1]))
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from names_in(member)


def has_placeholder(text: str) -> bool:
    """Whether a text has an expression that 1.0 takes for one."""
    return any(_NAME.fullmatch(found[1]) for found in _EXPRESSION.finditer(text))


def is_template(text: str) -> bool:
    """Whether a text has placeholders, and no braces that 1.0 takes for text."""
    literals = _EXPRESSION.sub(lambda found: "" if _NAME.fullmatch(found[1]) else found[0], text)
    return has_placeholder(text) and not re.search("[{}]", literals)


def is_beyond_level_one(text: str) -> bool:
    """Whether a text has an expression that RFC 6570 allows, and 1.0 takes for plain text."""
    return any(
        found[1] and not _NAME.fullmatch(found[1]) and not _HYPHENATED.fullmatch(found[1])
        for found in _EXPRESSION.finditer(text)
    )


def may_become(text: str, fits: Callable[[str], Any], samples: Iterable[str]) -> bool:
    """Whether a text fits with its placeholders filled by a part of a sample; where it has none, by itself."""
    literals = _EXPRESSION.split(text)[::2]
    parts = {
        sample[at:end] for sample in samples for at in range(len(sample)) for end in range(at + 1, len(sample) + 1)
    }
    return any(fits(part.join(literals)) for part in parts)


def is_same_in_both(text: str) -> bool:
    """Whether a text means in 0.1 what it means in 1.0: the empty one does not, nor a hyphen between braces."""
    return bool(text) and not any(_HYPHENATED.fullmatch(found[1]) for found in _EXPRESSION.finditer(text))


def renamed(text: str, names: dict[str, str], note: Callable[[str, str], None]) -> str:
    """The text with each hyphen in a name as an underscore; `names` says which name became which, and which stay."""

    def rename(found: re.Match[str]) -> str:
        hyphenated = _HYPHENATED.fullmatch(found[1])
        if hyphenated is None:
            return found[0]
        old = hyphenated[2]
        if old not in names:
            name, count = old.replace("-", "_"), 1
            while name in names.values():
                count += 1
                name = f"{old.replace('-', '_')}_{count}"
            names[old] = name
            note(old, name)
        return f"{{{hyphenated[1]}{names[old]}}}"

    return _EXPRESSION.sub(rename, text)


MISSING: Final = object()
LABELS: Final = "labels/"
MAX_LABEL: Final = 4096  # core/spec.md: the name and the value of a scalar together


@dataclass(slots=True)
class ConversionStep:
    """One entity on its way: what is left of the source, what there is of the target, and the notes of the way.

    `protocol` and `envelope` are the canonical ones of the entity, or of its group; `rests` are members of property
    definitions that the other side keeps apart, by place; `kept` is where this step puts those that its own target has
    no member for.
    """

    dialect: Dialect
    notes: list[Problem]
    at: str
    source: Json
    target: Json = field(default_factory=dict)
    protocol: str = ""
    envelope: str = ""
    rests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kept: dict[str, Json] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # placeholders that had to be renamed
    row: DialectRow | None = None  # the one that is read just now
    aside: Mapping[str, Any] = field(default_factory=dict)  # extension attributes that were held in labels
    said: dict[str, str] = field(default_factory=dict)  # the place in the source of what stands in the target

    def note(self, code: str, place: str, message: str) -> None:
        """Add a note about a place of the source, be it given as one of the target."""
        if self.row is not None:
            place = _there(self.row, place)
        self.notes.append(Problem(f"{self.at}/{place}" if place else self.at, code, message))

    def take(self, place: str) -> Any:
        """Take the value at a place out of the source; return MISSING where there is none."""
        return _take(self.source, place.split("/")) if place else MISSING

    def peek(self, place: str) -> Any:
        """The value at a place of the source, or MISSING."""
        value: Any = self.source
        for name in place.split("/"):
            value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        return value

    def put(self, place: str, value: Any) -> None:
        """Set a value in the target; an object joins the one that is there."""
        if place.startswith(LABELS):
            self._label(place[len(LABELS) :], value)
            return
        *path, last = place.split("/")
        target = self.target
        for name in path:
            inner = target.get(name)
            target[name] = target = dict(inner) if isinstance(inner, dict) else {}
        present = target.get(last)
        both = isinstance(present, dict) and isinstance(value, dict)
        target[last] = {**present, **value} if both else value  # type: ignore[dict-item]

    def hold(self, name: str, value: Any, place: str = "") -> None:
        """Keep a value in the target's label `name`, as text or else as JSON, and note it."""
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        if self._label(name, text):
            self.note("held", place, f"is kept in the label '{name}'")

    def _label(self, name: str, value: Any) -> bool:
        if len(name.encode()) + len(str(value).encode()) > MAX_LABEL or not MAP_KEY.fullmatch(name):
            self.note("lost", "", f"'{name}' has no place, and is too long for a label")
            return False
        labels = self.target.get("labels")
        self.target["labels"] = {**labels, name: value} if isinstance(labels, dict) else {name: value}
        return True


Convert = Callable[[Any, ConversionStep, DialectRow], Any]


@dataclass(frozen=True, slots=True)
class ConversionForm:
    """How a value is converted into the canonical form and out of it; MISSING leaves it out."""

    inward: Convert
    outward: Convert


ConversionForms = Mapping[str, ConversionForm]


def inward(step: ConversionStep, rows: Iterable[DialectRow], forms: ConversionForms) -> Json:
    """The canonical attributes of the step's entity."""
    step.rests = _popped(step.source, "1.0.properties")
    rows = tuple(rows)
    _put_back(step, "1.0", _only_there(step, rows))
    for row in _expanded(step, rows, "out"):
        value = step.take(row.there)
        if value is MISSING and row.there:
            continue
        step.row = row
        made = forms[row.form].inward(value, step, row)
        if made is not MISSING:
            if row.here.startswith(LABELS):
                step.hold(row.here[len(LABELS) :], made, row.there)
            else:
                _refuse_other(step, row.here, made, row.there, whole=row.form == "same" and row.here in step.said)
                step.put(row.here, made)
            step.said.setdefault(row.here, row.there)
    step.row = None
    _put_aside(step, step.dialect.prefix, _only_here(step, rows))
    for name, value in step.source.items():
        _refuse_other(step, name, value, name)
    _carry_over(step)
    if step.kept:
        step.hold(f"{step.dialect.prefix}.properties", step.kept)
    return step.target


def _refuse_other(step: ConversionStep, here: str, value: Any, there: str, *, whole: bool = False) -> None:
    """Refuse what contradicts another member of the source, which says the same; objects are joined, unless `whole`."""
    known: Any = step.target
    for name in here.split("/"):
        known = known.get(name) if isinstance(known, dict) else None
    pairs = [("", known, value)]
    if isinstance(known, dict) and isinstance(value, dict) and not whole:
        pairs = [(f"/{name}", known.get(name), member) for name, member in value.items()]
    for below, one, other in pairs:
        if one is not None and other is not None and one != other:
            beside = step.said.get(here + below) or step.said.get(here, here)
            words = f'says something different from "{beside}", which means the same; give one of them'
            raise RegistryError("invalid_attribute", step.at or "/", name=there + below, error_detail=words)


def _there(row: DialectRow, place: str) -> str:
    """A place of what a row reads, by the names of the dialect."""
    if place.startswith(row.there):
        return place
    if row.here and place.startswith(row.here):
        return row.there + place[len(row.here) :]
    return place if row.here else row.there


def outward(step: ConversionStep, rows: Iterable[DialectRow], forms: ConversionForms, table: DialectTable) -> Json:
    """The attributes of the step's entity, which is canonical, as the dialect has them."""
    step.rests = _popped(step.source, f"{step.dialect.prefix}.properties")
    rows = tuple(rows)
    _put_back(step, step.dialect.prefix, _only_here(step, rows))
    gone = sorted(table.assigned & step.source.keys())
    for name in gone:
        del step.source[name]
    for row in _expanded(step, rows, "in"):
        value = step.take(row.here)
        if value is MISSING and row.here:
            if row.here in step.rests and row.there:  # it said something, only no value
                step.put(row.there, dict(step.rests[row.here]))
            continue
        made = forms[row.form].outward(value, step, row)
        if made is not MISSING:
            if row.there.startswith(LABELS):
                step.hold(row.there[len(LABELS) :], made, row.here)
            else:
                step.put(row.there, made)
    _put_aside(step, "1.0", _only_there(step, rows))
    _carry_over(step)
    if step.kept:
        step.hold("1.0.properties", step.kept)
    if gone:
        step.note("assigned", "", f"left out, for a server assigns them: {', '.join(gone)}")
    return step.target


def _expanded(step: ConversionStep, rows: Iterable[DialectRow], other: str) -> Iterator[DialectRow]:
    """The rows of one direction; in front of one for all options, those for each option of the entity's protocol."""
    for row in rows:
        if row.only == other:
            continue
        if row.form == "options":
            protocol = step.protocol or str(step.target.get("protocol", ""))
            for option in step.dialect.options.get(protocol, ()):
                if option.only != other:
                    yield _within(row, option)
        yield row


def _within(row: DialectRow, option: DialectRow) -> DialectRow:
    there = f"{row.there}/{option.there}" if option.there else ""
    here = f"{row.here}/{option.here}" if option.here else ""
    return DialectRow(there, here, option.form, option.only)


@lru_cache(maxsize=64)
def _one_sided(rows: tuple[DialectRow, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of attributes that only the dialect has, and those that only the canonical form has.

    On the other side such a name is one of an extension. A registry's own members are left alone.
    """
    there = _tops(row.there for row in rows)
    here = _tops(row.here for row in rows if row.only != "in")  # what is only read may have its own name there too
    ids = {name for name in here if name.endswith("id") and name != "dataschemaxid"}  # they are what their map says
    return (frozenset(), frozenset()) if "registryid" in here else (there - here, here - there - ids)


def _tops(places: Iterable[str]) -> frozenset[str]:
    return frozenset(place.partition("/")[0] for place in places if place) - {"labels"}


def _only_there(step: ConversionStep, rows: tuple[DialectRow, ...]) -> frozenset[str]:
    """The names that mean something in the dialect, and are those of extensions in the canonical form."""
    return _one_sided(rows)[0] | step.dialect.members if step.dialect.prefix else frozenset()


def _only_here(step: ConversionStep, rows: tuple[DialectRow, ...]) -> frozenset[str]:
    """The names that mean something in the canonical form, and are those of extensions in the dialect."""
    return _one_sided(rows)[1] if step.dialect.prefix and step.dialect.form == "registry" else frozenset()


def _put_aside(step: ConversionStep, prefix: str, names: frozenset[str]) -> None:
    """Hold in labels the extension attributes that have a meaning of their own on the other side."""
    for name in sorted(names & step.source.keys()):
        step.hold(f"{prefix}.{name}", orjson.dumps(step.source.pop(name)).decode(), name)


def _put_back(step: ConversionStep, prefix: str, names: frozenset[str]) -> None:
    """Take the extension attributes out of the labels that hold them; they are the last to be carried over."""
    labels = step.source.get("labels")
    if not isinstance(labels, dict):
        return
    step.aside = {
        name: parsed(labels[f"{prefix}.{name}"]) for name in names if isinstance(labels.get(f"{prefix}.{name}"), str)
    }
    for name in step.aside:
        _take(step.source, ["labels", f"{prefix}.{name}"])


def _carry_over(step: ConversionStep) -> None:
    labels = step.source.pop("labels", None)
    for name, value in {**step.source, **step.aside}.items():
        step.put(name, value)
    if isinstance(labels, dict):
        step.target["labels"] = {**labels, **step.target.get("labels", {})}
    elif labels is not None:
        step.target["labels"] = labels


def _take(source: Json, path: list[str]) -> Any:
    name, *rest = path
    if name not in source:
        return MISSING
    if not rest:
        return source.pop(name)
    inner = source[name]
    if not isinstance(inner, dict):
        return MISSING
    inner = source[name] = dict(inner)
    value = _take(inner, rest)
    if value is not MISSING and not inner:
        del source[name]
    return value


def _popped(source: Json, label: str) -> Mapping[str, Mapping[str, Any]]:
    """The members of property definitions that a label of the source holds; the label goes."""
    labels = source.get("labels")
    if not isinstance(labels, dict) or label not in labels:
        return {}
    rests = parsed(labels[label])
    if not isinstance(rests, dict) or not all(isinstance(rest, dict) for rest in rests.values()):
        return {}
    _take(source, ["labels", label])
    return rests


def parsed(text: Any) -> Any:
    """What a label's text holds as JSON, or the text itself."""
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError):
        return text


# A property definition and the plain value that 1.0 has for some of them: what is left over is kept apart.


NOW = "0000-01-01T00:00:00Z"
PROPERTY = frozenset({"description", "name", "required", "specurl", "type", "value"})


def unwrapped(value: Any, step: ConversionStep, place: str) -> Any:
    """The plain value of a property definition; its other members are kept for the way back."""
    held = step.rests.get(place, {})
    if "value" in held and held["value"] == (value.get("value") if isinstance(value, dict) else value):
        return held["value"]
    if not isinstance(value, dict):
        return _filled(value, step, place)
    plain = _filled(value.get("value", MISSING), step, place)
    rest = {name: member for name, member in value.items() if name != "value" or plain is MISSING}
    if rest:
        step.kept[place] = rest
    return plain


def _filled(value: Any, step: ConversionStep, place: str) -> Any:
    """A template's text in names that 1.0 takes; the empty one of 0.1 stands for any content."""
    if step.dialect.formats and isinstance(value, str):
        return template_text(value, step, place) if value else MISSING
    return MISSING if value is None else value


def template_text(value: str, step: ConversionStep, place: str) -> str:
    """A template of 0.1 with names that 1.0 takes; what it takes for something else is noted."""
    if is_beyond_level_one(value):
        step.note("changed", place, f"'{value}' has an expression that 1.0 takes for plain text")

    def note(old: str, new: str) -> None:
        step.note("changed", place, f"the placeholder '{old}' is called '{new}'")

    return renamed(value, step.names, note)


def note_template(value: str, step: ConversionStep, place: str) -> None:
    """Note a text of 1.0 that is a template in 0.1, for it has expressions there."""
    if is_beyond_level_one(value):
        step.note("changed", place, f"'{value}' has braces that are text in 1.0, and an expression in 0.1")


def wrapped(value: Any, step: ConversionStep, place: str) -> Any:
    """The property definition of a plain value, with what was kept of it."""
    if step.dialect.formats and isinstance(value, str):
        if not is_same_in_both(value):
            step.kept[place] = {"value": value}
        else:
            note_template(value, step, place)
    elif step.dialect.formats:
        value = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return {**step.rests.get(place, {}), "value": value}


def _inward(read: Callable[[Any], Any]) -> Callable[[Any, ConversionStep, DialectRow], Any]:
    def convert(value: Any, step: ConversionStep, row: DialectRow) -> Any:
        plain = unwrapped(value, step, row.here)
        made = plain if plain is MISSING else read(plain)
        if made is MISSING and plain is not MISSING:  # a template where 1.0 has a number or a flag
            step.kept[row.here] = {**step.kept.get(row.here, {}), "value": plain}
        return made

    return convert


def _outward(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return wrapped(value, step, row.here)


def _bare(value: Any, step: ConversionStep, row: DialectRow) -> Any:
    return wrapped(value, step, row.here) if row.here in step.rests else value


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else MISSING
    return value


def _boolean(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.lower(), MISSING) if isinstance(value, str) else value


PLAIN_FORMS = {
    "plain": ConversionForm(_inward(lambda value: value), _outward),
    "bare": ConversionForm(_inward(lambda value: value), _bare),
    "integer": ConversionForm(_inward(_integer), _outward),
    "boolean": ConversionForm(_inward(_boolean), _outward),
}
