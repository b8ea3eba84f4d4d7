"""JSON Schema draft-07, 2019-09 and 2020-12: documents read, payloads checked, on jsonschema-rs.

Rule 1: the name of the format says which draft; a `$schema` that says otherwise is a problem.
Rule 2: numbers are exact (`jsontext`), and nothing outside the catalog is asked (`references`).
Rule 3: `format` and `contentEncoding` are asserted in draft-07, where the specification wants them checked, and are
annotations in 2019-09 and 2020-12 unless the metaschema in use asks for the format-assertion vocabulary.
Rule 4: all problems of a payload are listed while that is cheap, at most 100; else the first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import jsonschema_rs

from signalbook.budget import Budget, TooMuch, spend
from signalbook.errors import Problem
from signalbook.jsontext import DIGIT_RUNS, LONG_NUMBER, JsonError, decode_exact, decode_fast, decode_json
from signalbook.schemas.format import REFERENCE, Checked, References, SchemaError, Text, base_of, pointer, unusable
from signalbook.schemas.json_schema.places import (
    DATA,
    DYNAMIC,
    MAPS,
    MOST_COMPILED,
    PATTERNS,
    DraftRules,
    Index,
    Subschema,
    applied,
    join,
    multiplies,
    subschemas,
)
from signalbook.schemas.references import ROOT, Library, read_json

if TYPE_CHECKING:
    import pyarrow

    from signalbook.schemas.json_schema.columns import Columns, TypedReader

__all__ = [
    "DEEPEST",
    "DRAFTS",
    "MOST_WORK",
    "Draft",
    "JsonSchema",
    "read_any_draft",
    "read_draft_07",
    "read_draft_2019_09",
    "read_draft_2020_12",
    "too_deep",
]

MOST_PROBLEMS = 100
# Values times evaluations up to which the engine is asked for all problems; it makes each before it returns the first.
_CHEAP = 20_000
# So few ways to one value never make many problems of one.
_FEW_WAYS = 100
UNLISTED = "the payload does not match its schema, whose alternatives multiply: what is wrong is not listed"
_LONGEST_MESSAGE = 300
_LINK = "urn:signalbook:link"
# Makes the answer about a good payload, without the Python call that a named tuple's own constructor is.
_make_tuple = tuple.__new__


@dataclass(frozen=True, slots=True)
class Draft:
    """One edition: the format's name, its `$schema`, the engine's class and number for it, and what it asserts."""

    format: str
    metaschema: str
    validator: type[jsonschema_rs.Validator]
    number: int
    dialect: DraftRules
    asserts: frozenset[str] = frozenset()

    def names(self, uri: str) -> bool:
        """Tell whether a `$schema` is this draft's; http for https and an empty fragment make no difference."""
        return _normalised_uri(uri) == _normalised_uri(self.metaschema)


DRAFT_07 = Draft(
    "JsonSchema/draft-07",
    "http://json-schema.org/draft-07/schema#",
    jsonschema_rs.Draft7Validator,
    jsonschema_rs.Draft7,
    DraftRules(
        ref_stands_alone=True,
        tuples="items",
        ignores=frozenset(
            {
                "dependentRequired",
                "dependentSchemas",
                "unevaluatedProperties",
                "unevaluatedItems",
                "prefixItems",
                "minContains",
                "maxContains",
                "$dynamicRef",
                "$recursiveRef",
            }
        ),
    ),
    frozenset({"format", "contentEncoding", "contentMediaType"}),
)
DRAFT_2019_09 = Draft(
    "JsonSchema/draft/2019-09",
    "https://json-schema.org/draft/2019-09/schema",
    jsonschema_rs.Draft201909Validator,
    jsonschema_rs.Draft201909,
    DraftRules(ref_stands_alone=False, tuples="items", ignores=frozenset({"prefixItems", "$dynamicRef"})),
)
DRAFT_2020_12 = Draft(
    "JsonSchema/draft/2020-12",
    "https://json-schema.org/draft/2020-12/schema",
    jsonschema_rs.Draft202012Validator,
    jsonschema_rs.Draft202012,
    DraftRules(ref_stands_alone=False, tuples="prefixItems", ignores=frozenset({"additionalItems", "$recursiveRef"})),
)
DRAFTS = (DRAFT_07, DRAFT_2019_09, DRAFT_2020_12)


def _normalised_uri(uri: str) -> str:
    return uri.strip().rstrip("#").removeprefix("https://").removeprefix("http://").lower()


def _fetch_nothing(uri: str) -> Any:
    raise LookupError(f"nothing is fetched: {uri}")


# `$ref` and not the document itself, so that the engine's own copy is used; made once, as every document needs one.
_METASCHEMAS = {
    draft.format: draft.validator({"$ref": draft.metaschema}, retriever=_fetch_nothing, pattern_options=PATTERNS)
    for draft in DRAFTS
}


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A JSON Schema, or the part of one that a deep link leads to."""

    draft: Draft
    index: Index
    place: Subschema
    library: Library
    validator: jsonschema_rs.Validator
    work: int
    link: str = ""
    _accepts: Callable[[Any], bool] = field(init=False, repr=False)
    _columns: list[Columns] = field(default_factory=list, repr=False)
    _recursive: list[bool] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_accepts", self.bounded(self.validator.is_valid))

    @property
    def format(self) -> str:
        """The canonical name of its draft."""
        return self.draft.format

    @property
    def standard(self) -> bool:
        """Whether all of it has the draft's own metaschema, so that each keyword means what the draft says."""
        return all(self.draft.names(uri) for uri in self.index.metaschemas)

    @property
    def accepts(self) -> Callable[[Any], bool]:
        """What tells whether a value is right that was read exactly; it raises ValueError where the engine gives up."""
        return self._accepts

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a JSON text, and the value it holds."""
        try:
            value = decode_exact(payload) if payload.translate(DIGIT_RUNS).count(LONG_NUMBER) else decode_fast(payload)
            if self._accepts(value):
                return _make_tuple(Checked, ((), value))
        except (ValueError, RecursionError):
            try:
                value = decode_json(payload)
            except JsonError as error:
                return Checked((Problem("", "payload", f"the payload is not JSON: {error}"),), None)
        return self._look_closer(payload, value)

    def _look_closer(self, payload: bytes, value: Any) -> Checked:
        """The answer about a payload that may be wrong."""
        try:
            return Checked(() if self._accepts(value) else self._problems(payload, value), value)
        except ValueError as error:  # the engine gave up: nested too deep for it, or a pattern took too long
            return Checked((Problem("", "payload", f"the payload cannot be checked: {_shortened(str(error))}"),), value)

    def bounded(self, accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
        """The same judgement, which raises ValueError where patterns would go through long texts too often."""
        documents = [one for one in (self.index.root.schema, *self.library.documents()) if isinstance(one, dict)]
        looking = sum(1 for document in documents for pattern in _patterns(document) if _LOOKING(pattern))
        if not looking:
            return accepts

        def within_bounds(value: Any) -> bool:
            if looking * squares(value) > MOST_LOOKED:
                raise ValueError("it has long texts, and the schema has patterns that look around in them")
            return accepts(value)

        return within_bounds

    def multiplies(self, value: Any) -> bool:
        """Whether the problems of a value may be too many for the engine to be asked for them.

        It says what is wrong anew for each way through the schema that leads to a value. Where two alternatives refer
        back to the whole, the ways double with each level of the value. Only a yes or no it remembers.
        """
        if self.work <= _FEW_WAYS and not self._recurs():
            return False
        try:
            Ways(self.index).count(self.place, value)
        except (TooMuch, RecursionError):
            return True
        return False

    def _recurs(self) -> bool:
        if not self._recursive:
            self._recursive.append(recurs(self.index, self.place))
        return self._recursive[0]

    def _problems(self, payload: bytes, value: Any) -> tuple[Problem, ...]:
        if self.multiplies(value):
            return (Problem("", "payload", UNLISTED),)
        if (payload.count(b",") + 1) * self.work > _CHEAP:
            try:
                self.validator.validate(value)
            except jsonschema_rs.ValidationError as error:
                return (_problem(error),)
        found = tuple(_problem(error) for error in islice(self.validator.iter_errors(value), MOST_PROBLEMS))
        return found or (Problem("", "payload", "the payload does not match its schema"),)

    def at(self, fragment: str) -> JsonSchema:
        """The schema at a JSON Pointer into the document, after `#` or not, percent-encoded or not, or at an anchor."""
        fragment = unquote(fragment.removeprefix("#"))
        root = self.index.root
        place = self.index.at(root, fragment) if fragment[:1] in ("", "/") else self.index.follow(root, "#" + fragment)
        if place is None:
            raise unusable(f"{fragment} does not lead to a schema", fragment)
        if place.schema is self.place.schema:
            return self
        validator = _compile_bundled(self.draft, self.index, place)
        if validator is None:
            validator = _compile_part(self.draft, self.index.root, fragment, self.library)
        return JsonSchema(self.draft, self.index, place, self.library, validator, self.work, fragment)

    def columns(self) -> pyarrow.StructType:
        """The Arrow struct that holds every payload which the check accepts."""
        return self._table().type

    def convert(self, value: Any) -> dict[str, Any]:
        """A checked value as that struct holds it."""
        return self._table().convert(value)

    def restore(self, row: dict[str, Any]) -> Any:
        """The value that a struct was made of."""
        return self._table().restore(row)

    def typed_reader(self, columns: pyarrow.DataType) -> TypedReader | None:
        """The reader of payloads into these columns, many at once; None where the schema is not plain enough."""
        from signalbook.schemas.json_schema.columns import reader_of

        return reader_of(self.place.schema, columns) if self.standard else None

    def _table(self) -> Columns:
        if not self._columns:
            from signalbook.schemas.json_schema.columns import columns_of

            self._columns.append(columns_of(self.index, self.place if self.standard else Subschema(True, "")))
        return self._columns[0]


def _problem(error: jsonschema_rs.ValidationError) -> Problem:
    return Problem(pointer(error.instance_path), "payload", _shortened(error.message))


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


def _compile_part(draft: Draft, root: Subschema, fragment: str, library: Library) -> jsonschema_rs.Validator:
    """A validator for a part of a document, which stays whole behind it: the part may refer to the rest."""

    def documents(uri: str) -> Any:
        return root.schema if uri.partition("#")[0] == root.base else library(uri)

    encoded = "".join(one if one.isalnum() or one in "/~_-.$" else _percent(one) for one in fragment)
    return _compile(draft, {"allOf": [{"$ref": f"{root.base}#{encoded}"}]}, documents, base_uri=_LINK)


def _compile_bundled(draft: Draft, index: Index, start: Subschema) -> jsonschema_rs.Validator | None:
    """A validator for a schema whose parts the engine would compile ever again; None where it would not."""
    if not multiplies(index, start):
        return None
    document = bundled(index, start) if all(draft.names(uri) for uri in index.metaschemas) else None
    if document is not None:
        return _compile(draft, document, _fetch_nothing, base_uri=_LINK)
    if multiplies(index, start, MOST_COMPILED):
        raise unusable("its references from document to document multiply: too many ways lead to the same part")
    return None


def _percent(one: str) -> str:
    return "".join(f"%{byte:02X}" for byte in one.encode())


def _compile(draft: Draft, document: Any, retriever: Any, **options: Any) -> jsonschema_rs.Validator:
    try:
        return draft.validator(document, retriever=retriever, pattern_options=PATTERNS, **options)
    except jsonschema_rs.ValidationError as error:
        raise unusable(_shortened(error.message), pointer(error.instance_path)) from error
    except (ValueError, LookupError, jsonschema_rs.ReferencingError) as error:
        raise unusable(_shortened(str(error))) from error


def read_draft_07(text: Text, references: References | None = None) -> JsonSchema:
    """The schema of a draft-07 document; `SchemaError` with every problem where it is none."""
    return _read_document((DRAFT_07,), text, references)


def read_draft_2019_09(text: Text, references: References | None = None) -> JsonSchema:
    """The schema of a 2019-09 document; `SchemaError` with every problem where it is none."""
    return _read_document((DRAFT_2019_09,), text, references)


def read_draft_2020_12(text: Text, references: References | None = None) -> JsonSchema:
    """The schema of a 2020-12 document; `SchemaError` with every problem where it is none."""
    return _read_document((DRAFT_2020_12,), text, references)


def read_any_draft(text: Text, references: References | None = None) -> JsonSchema:
    """The schema of a document whose `$schema` says which draft it is; draft-07 where it does not."""
    return _read_document(DRAFTS, text, references)


def _read_document(drafts: tuple[Draft, ...], text: Text, references: References | None) -> JsonSchema:
    document, _ = read_json(text)
    if not isinstance(document, dict | bool):
        raise unusable("a JSON Schema is an object or a boolean")
    if isinstance(document, dict) and too_deep(document):
        raise unusable("the document is nested too deep")
    library = Library(references)
    draft = _draft(drafts, document, library)
    _raise_problems(too_many_patterns([document] if isinstance(document, dict) else []))
    _raise_problems(
        _problem_of_schema(error) for error in islice(_METASCHEMAS[draft.format].iter_errors(document), MOST_PROBLEMS)
    )
    base = ROOT + base_of(references).removeprefix("/")
    index = Index(document, base, library, draft.dialect)
    spent = work(index, index.root)
    if spent > MOST_WORK:
        raise unusable(f"its references multiply: one value could be judged more than {MOST_WORK:,} times")
    _raise_problems(too_many_patterns(library.documents()))
    try:
        validator = _compile_bundled(draft, index, index.root) or _compile(draft, document, library, base_uri=base)
    except SchemaError as error:
        refused = dict(islice(library.refused.items(), MOST_PROBLEMS))
        where = index.first_uses(refused) if refused else {}
        _raise_problems(Problem(where.get(uri, ""), REFERENCE, why) for uri, why in refused.items())
        if library.documents() and not index.lost():
            raise SchemaError(replace(problem, code=REFERENCE) for problem in error.problems) from error
        raise
    return JsonSchema(draft, index, index.root, library, validator, spent)


def _problem_of_schema(error: jsonschema_rs.ValidationError) -> Problem:
    return Problem(pointer(error.instance_path), "schema", _shortened(error.message))


def _raise_problems(problems: Iterable[Problem]) -> None:
    found = tuple(problems)
    if found:
        raise SchemaError(found)


def _draft(drafts: tuple[Draft, ...], document: Any, library: Library) -> Draft:
    """The draft of a document: the one that `$schema` names, and it must be one of these."""
    stated = document.get("$schema") if isinstance(document, dict) else None
    if stated is None:
        return drafts[0]
    if not isinstance(stated, str):
        raise unusable("$schema is not a text", "/$schema")
    for draft in drafts:
        if draft.names(stated):
            return draft
    other = next((draft.format for draft in DRAFTS if draft.names(stated)), "")
    if other:
        raise unusable(f"$schema says {other}, the format says {drafts[0].format}", "/$schema")
    try:
        library(stated)  # a metaschema of the catalog's own, with vocabularies that the engine knows
    except LookupError:
        known = ", ".join(draft.metaschema for draft in drafts)
        raise unusable(f"$schema is {_shortened(stated)}, which is not one of {known}", "/$schema") from None
    return drafts[-1]


# How much work a JSON Schema can make, judged before it is compiled.
#
# Rule 1: no schema nests deeper than `DEEPEST`, has more than `MOST_PATTERNS` different regular expressions, or more
# than `MOST_LARGE_PATTERNS` whose compiled form is large.
# Rule 2: references that lead to references multiply: a few lines of `allOf` can ask for 2**30 evaluations of one
# value. The evaluations of a single value are counted over the graph of references, each once, and held to
# `MOST_WORK`. Recursion counts once: the engine remembers it.


DEEPEST = 128
MOST_PATTERNS = 5_000
MOST_LARGE_PATTERNS = 100
MOST_SECONDS = 5.0
MOST_WORK = 1_000_000
# A pattern with look-around or a back reference goes on from each character of a text to its end: so many characters,
# a fraction of a second, they all may pass in one value. Other patterns are linear.
MOST_LOOKED = 100_000_000
_LOOKING = re.compile(r"\(\?[=!<>(]|\\[1-9kKgG]|[*+?}]\+").search

_SMALL = jsonschema_rs.FancyRegexOptions(backtrack_limit=50_000, size_limit=16 * 1024, dfa_size_limit=1024 * 1024)


def too_deep(document: Any) -> bool:
    """Tell whether a document nests deeper than is read."""
    level = [document]
    for _ in range(DEEPEST):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def too_many_patterns(documents: Iterable[Any]) -> Iterator[Problem]:
    """Yield a problem where compiling the regular expressions would take too much; what is not a pattern is skipped."""
    patterns = {pattern for document in documents for pattern in _patterns(document)}
    if len(patterns) > MOST_PATTERNS:
        yield Problem("", "schema", f"more than {MOST_PATTERNS:,} different patterns")
        return
    large, until = 0, time.monotonic() + MOST_SECONDS
    for pattern in patterns:
        large += not _compiles(pattern)
        if large > MOST_LARGE_PATTERNS:
            yield Problem("", "schema", f"more than {MOST_LARGE_PATTERNS} patterns that are very large or broken")
            return
        if time.monotonic() > until:
            yield Problem("", "schema", "patterns that take too long to compile")
            return


def _patterns(document: Any) -> Iterator[str]:
    stack = [document]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(pattern := node.get("pattern"), str):
                yield pattern
            if isinstance(named := node.get("patternProperties"), dict):
                yield from named
            stack.extend(child for child in node.values() if isinstance(child, dict | list))
        else:
            stack.extend(child for child in node if isinstance(child, dict | list))


def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_SMALL)
    except ValueError:
        return False
    return True


def work(index: Index, start: Subschema) -> int:
    """The most evaluations that one value and one path of values below it can cause, at most `MOST_WORK` + 1."""
    known: dict[int, int] = {}
    under_way: set[int] = set()
    # Depth first with a stack of its own: references can make a chain longer than Python's.
    stack: list[tuple[Subschema, bool]] = [(start, False)]
    while stack:
        place, done = stack.pop()
        spend()
        key = id(place.schema)
        if not isinstance(place.schema, dict) or (key in known and not done):
            continue
        if done:
            under_way.discard(key)
            known[key] = _sum(index, place, known)
        elif key not in under_way:
            under_way.add(key)
            stack.append((place, True))
            stack.extend((child, False) for _, _, child in _applied(index, place) if id(child.schema) not in under_way)
    return known.get(id(start.schema), 1)


def _applied(index: Index, place: Subschema) -> Iterator[tuple[str, str, Subschema]]:
    for keyword, name, child in subschemas(place):
        if keyword not in ("definitions", "$defs"):
            yield keyword, name, child
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        reference = place.schema.get(keyword)
        if isinstance(reference, str):
            target = index.follow(place, reference)
            if target is not None:
                yield keyword, "", target


def _sum(index: Index, place: Subschema, known: dict[int, int]) -> int:
    """One for itself, all that applies to the value or to any member, and the worst of the named members."""
    total, worst = 1, 0
    for keyword, _, child in _applied(index, place):
        cost = known.get(id(child.schema), 1)
        if keyword == "properties":
            worst = max(worst, cost)
        else:
            total += cost
    return min(total + worst, MOST_WORK + 1)


# How many ways lead through a schema to the parts of a value.
#
# Rule: ways are counted, not walked: what a schema does to a value is looked at once, and the ways to it multiplied.


# The steps that counting may take, and the ways that may be found.
_MOST_COUNTED = 50_000
_MOST_WAYS = 20_000
_OF_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})
_OF_ITEMS = frozenset({"items", "additionalItems", "contains", "unevaluatedItems", "prefixItems"})


class Ways:
    """Counts the ways through one schema; `TooMuch` where they are too many, or too many to be counted."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[tuple[int, int], int] = {}
        self._budget = Budget(_MOST_COUNTED, "Counting what is wrong")
        self._ways = Budget(_MOST_WAYS, "Listing what is wrong")
        self._applied: dict[int, list[tuple[str, str, Subschema]]] = {}

    def count(self, place: Subschema, value: Any) -> int:
        """How many evaluations of the value and its parts there are."""
        if not isinstance(place.schema, dict):
            return 1
        key = (id(place.schema), id(value))
        known = self._known.get(key)
        if known is not None:
            return known
        self._known[key] = 1  # while it is under way: a schema that refers to itself
        applied = self._applied.get(key[0])
        if applied is None:
            applied = self._applied[key[0]] = list(_applied(self._index, place))
        found = 1
        for keyword, name, child in applied:
            for part in _parts(keyword, name, value):
                self._budget.spend()
                found += self.count(child, part)
                if found > _MOST_WAYS:
                    raise TooMuch(self._ways)
        self._known[key] = found
        return found


def _parts(keyword: str, name: str, value: Any) -> Iterable[Any]:
    """The parts of a value that a keyword's schema is applied to, or may be."""
    if keyword == "properties":
        return (value[name],) if isinstance(value, dict) and name in value else ()
    if keyword in _OF_MEMBERS:
        return value.values() if isinstance(value, dict) else ()
    if keyword in _OF_ITEMS:
        return value if isinstance(value, list) else ()
    return () if keyword == "propertyNames" else (value,)


def recurs(index: Index, start: Subschema) -> bool:
    """Whether a schema, or one that it refers to, refers back to itself."""
    done: set[int] = set()
    under_way: set[int] = set()
    stack: list[tuple[Subschema, bool]] = [(start, False)]
    while stack:
        place, left = stack.pop()
        key = id(place.schema)
        if left:
            under_way.discard(key)
            done.add(key)
        elif key in under_way:
            return True
        elif key not in done and isinstance(place.schema, dict):
            under_way.add(key)
            stack.append((place, True))
            stack.extend((child, False) for _, _, child in _applied(index, place))
    return False


def squares(value: Any) -> int:
    """The sum of the squares of the lengths of all texts in a value.

    >>> squares({"ab": ["abc", 1, {"": "a"}]})
    14
    """
    total, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            total += len(one) ** 2
        elif isinstance(one, dict):
            total += sum(len(name) ** 2 for name in one)
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    return total


# A schema of several documents as one.
#
# Rule: without dynamic references it makes no difference by which documents a part is reached. The schema is then
# written as one document in which each part that is referred to stands once: it accepts the same values.


_OWN_NAMES = frozenset({"$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})


def bundled(index: Index, start: Subschema) -> dict[str, Any] | None:
    """A schema and all that it refers to as one document; None where references depend on the documents."""
    targets: dict[int, tuple[str, Subschema]] = {}
    seen: set[int] = set()
    stack = [start]
    while stack:
        place = index.known(stack.pop())
        if not isinstance(place.schema, dict) or id(place.schema) in seen:
            continue
        spend()
        seen.add(id(place.schema))
        if any(keyword in place.schema for keyword in DYNAMIC):
            return None
        if index.dialect.ref_stands_alone and {"$ref", "$id"} <= place.schema.keys():
            return None  # the name counts for nothing beside a reference, but `index` goes by it
        stack.extend(applied(place))
        reference = place.schema.get("$ref")
        target = index.follow(place, reference) if isinstance(reference, str) else None
        if target is not None:
            targets.setdefault(id(target.schema), (f"t{len(targets)}", target))
            stack.append(target)
    named = {key: name for key, (name, _) in targets.items()}
    where = "definitions" if index.dialect.ref_stands_alone else "$defs"
    definitions = {name: _written(index, target, named, where) for name, target in targets.values()}
    return {where: definitions, "allOf": [_written(index, start, named, where)]}


def _written(index: Index, place: Subschema, named: dict[int, str], where: str) -> Any:
    """A part without names of its own, its references to parts by their place in the one document."""
    schema = index.known(place).schema
    if not isinstance(schema, dict):
        return schema
    spend()

    def below(child: Any) -> Any:
        if isinstance(child, list):
            return [below(one) for one in child]
        if not isinstance(child, dict):
            return child
        if id(child) in named:
            return {"$ref": f"#/{where}/{named[id(child)]}"}
        return _written(index, place.below(child), named, where)

    written: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in DATA:
            written[keyword] = value
        elif keyword == "$ref" and isinstance(value, str):
            target = index.follow(place, value)
            absolute = join(place.base, value)
            written[keyword] = absolute if target is None else f"#/{where}/{named[id(target.schema)]}"
        elif keyword in MAPS and isinstance(value, dict):
            if keyword not in ("$defs", "definitions"):
                written[keyword] = {name: below(child) for name, child in value.items()}
        elif keyword not in _OWN_NAMES:
            written[keyword] = below(value)
    return written
