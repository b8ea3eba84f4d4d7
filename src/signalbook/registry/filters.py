"""The `filter` flag: expressions read once, then asked of one entity at a time.

Rule 1: a filter is an OR of ANDs of clauses; a clause is a path, an operator and a value (FILTER-1, FILTER-2).
Rule 2: a clause knows no model. Whoever walks the registry peels the names of collections off the paths with `split`
and asks `holds` of the entity that is reached; a resource's `meta` is one of the resource's attributes here.
Rule 3: the type of the attribute decides how it is compared, not the look of the value (FILTER-5).
Rule 4: what an index holds (`terms`) and what a clause asks of it (`index_term`) are folded by the same `fold`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias
from urllib.parse import quote

from signalbook.errors import RegistryError
from signalbook.registry.rows import fold, folded_text
from signalbook.registry.urls import Path, PathError, Wild, array_at, format_path, join_name, parse_path, values_at

__all__ = [
    "EXCLUDEALL",
    "MAX_CLAUSES",
    "MAX_TEXT",
    "Clause",
    "Clauses",
    "Comparand",
    "Filter",
    "collated",
    "matches_pieces",
    "number_in",
    "parse",
    "query",
    "split",
    "terms",
]

# How values compare: the one place that says when two are equal and which comes first.
#
# Rule 1: text is compared without regard to case, timestamps as instants, numbers as numbers (FILTER-5).
# Rule 2: `rows.fold` decides equality and may be stored; `collated` decides order and agrees with it on equality.
#
# core/spec.md 1.0-rc4 "Filter Flag" and "Sort Flag".


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_MAX_NUMBER = 400  # digits; longer text is not a number that JSON readers agree on


def number_in(text: str) -> int | float | None:
    """The number that `text` is in JSON, or None."""
    found = _NUMBER.fullmatch(text) if 0 < len(text) <= _MAX_NUMBER else None
    if found is None:
        return None
    return float(text) if found["fraction"] or found["exponent"] else int(text)


def collated(text: str) -> tuple[str, str]:
    """A key that sorts text as a reader of English expects: letters first, then accents, never case."""
    folded = fold(text)
    if folded.isascii():
        return folded, folded
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return plain, folded


MAX_TEXT = 8192  # of all expressions of a request together
MAX_CLAUSES = 64
EXCLUDEALL = "excludeall"


@dataclass(frozen=True, slots=True)
class Comparand:
    """A filter's value, read once as each of the types that an attribute may have."""

    text: str
    folded: str
    number: int | float | None
    boolean: bool | None
    pieces: tuple[str, ...] | None  # the folded text between wildcards, where there are any

    @classmethod
    def from_text(cls, raw: str) -> Comparand:
        r"""The value written as `raw`, in which `*` is a wildcard and `\*`, `\,` and `\\` are plain characters."""
        parts = _pieces(raw)
        text = "*".join(parts)
        if len(parts) > 1:
            return cls(text, "", None, None, tuple(folded_text(part) for part in parts))
        return cls(text, fold(text), number_in(text.strip()), _BOOLEANS.get(text.strip()), None)

    def equals(self, value: Any) -> bool:
        """True where `value`, compared by its own type, is this one or matches its wildcards."""
        if isinstance(value, str):
            if self.pieces is None:
                return fold(value) == self.folded
            return matches_pieces(self.pieces, folded_text(value))
        if isinstance(value, bool):
            return value is self.boolean
        return isinstance(value, int | float) and value == self.number

    def order(self, value: Any) -> int | None:
        """Below, at or above zero as `value` is below, equal to or above this one; None where they do not compare."""
        if isinstance(value, str):
            one, other = collated(value), collated(self.text)
            return (one > other) - (one < other)
        mine = self.boolean if isinstance(value, bool) else self.number
        if mine is None or not isinstance(value, int | float):
            return None
        return (value > mine) - (value < mine)


_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}
_ESCAPED = re.compile(r"\\([*,\\])|(\*)|([^*\\]+|\\)", re.DOTALL)


def _pieces(raw: str) -> list[str]:
    """The plain text between the wildcards of `raw`: one piece more than there are wildcards."""
    pieces = [""]
    for escaped, wildcard, plain in _ESCAPED.findall(raw):
        if wildcard:
            pieces.append("")
        else:
            pieces[-1] += escaped or plain
    return pieces


def matches_pieces(pieces: Sequence[str], text: str) -> bool:
    """True where `text` is the pieces in their order with anything between them; it never looks back."""
    first, *middle, last = pieces
    end = len(text) - len(last)
    if end < len(first) or not (text.startswith(first) and text.endswith(last)):
        return False
    position = len(first)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


# Each operator by its sign: what it makes of the values that a path leads to. "" is presence, "null" absence.
_OPERATORS: Mapping[str, Callable[[Comparand, Iterator[Any]], bool]] = {
    "": lambda _, values: any(True for _value in values),
    "null": lambda _, values: not any(True for _value in values),
    "=": lambda wanted, values: any(wanted.equals(value) for value in values),
    "!=": lambda wanted, values: not any(wanted.equals(value) for value in values),
    "<": lambda wanted, values: any((wanted.order(value) or 0) < 0 for value in values),
    "<=": lambda wanted, values: any(_or(wanted.order(value), 1) <= 0 for value in values),
    ">": lambda wanted, values: any((wanted.order(value) or 0) > 0 for value in values),
    ">=": lambda wanted, values: any(_or(wanted.order(value), -1) >= 0 for value in values),
}


def _or(order: int | None, otherwise: int) -> int:
    return otherwise if order is None else order


@dataclass(frozen=True, slots=True)
class Clause:
    """One expression: `operator` is a key of the operator table, `suffix` the operator and value as written.

    `above` are the steps that were taken off its path; `watched` says that its path may lead to an array, a map
    or an object.
    """

    path: Path
    operator: str
    value: Comparand
    suffix: str
    above: Path = field(default=(), compare=False)
    watched: bool = field(default=False, compare=False)

    @property
    def head(self) -> str | None:
        """The first step where it is a name: perhaps that of a collection."""
        return self.path[0] if self.path and isinstance(self.path[0], str) else None

    def tail(self) -> Clause:
        """The same question without the first step of its path, as asked of the members of a collection."""
        return replace(self, path=self.path[1:], above=(*self.above, self.path[0]))

    @property
    def compares(self) -> bool:
        """Whether it compares what its path leads to with a value."""
        return self.operator not in ("", "null")

    @property
    def negative(self) -> bool:
        """Whether it holds where its path leads to nothing."""
        return self.operator in ("!=", "null")

    @property
    def text(self) -> str:
        """The expression as it is written, relative to where the path now starts."""
        return format_path(self.path) + self.suffix

    def holds(self, attrs: Mapping[str, Any]) -> bool:
        """True where an entity with these attributes satisfies the expression."""
        return _OPERATORS[self.operator](self.value, values_at(self.path, attrs))

    def breadth(self, attrs: Mapping[str, Any]) -> int:
        """How many values of an entity the wildcards of the path lead to."""
        last = max((at for at, step in enumerate(self.path) if isinstance(step, Wild)), default=-1)
        return sum(1 for _ in values_at(self.path[: last + 1], attrs)) if last >= 0 else 0

    def array_in(self, attrs: Mapping[str, Any]) -> int | None:
        """How many steps of the path lead to what it takes for one value, and is an array, a map or an object."""
        return array_at(self.path, attrs, self.compares) if self.watched else None

    def stumbled(self, place: int, subject: str, attrs: Mapping[str, Any]) -> RegistryError:
        """The error about an expression that takes for one value what an entity has after `place` steps."""
        several = (found for found in values_at(self.path[:place], attrs) if isinstance(found, list | Mapping))
        return self.refused(place, subject, next(several, []))

    def refused(self, place: int, subject: str, example: Any) -> RegistryError:
        """The error about an expression that takes an array, a map or an object for one value; that is the example."""
        path = (*self.above, *self.path)
        before, after = path[: len(path) - len(self.path) + place], self.path[place:]
        kind = "an array" if isinstance(example, list) else "a map or an object"
        if after[:1] == (Wild.MEMBERS,):
            after = after[1:]
        steps: Path = ()
        inner = example
        while isinstance(inner, list):
            steps, inner = (*steps, Wild.ITEMS), _plainest(inner)
        whole, hint = format_path((*before, *steps, *after)), ""
        if not after and isinstance(inner, Mapping):
            whole, hint = f"{whole}.MEMBER", f", with the name of a member{' of its items' if steps else ''}"
        detail = f'"{format_path(before)}" is {kind}, not one value; write {whole}{self.suffix}{hint}'
        return _bad(subject, format_path(path) + self.suffix, detail)

    def refused_whole(self, subject: str) -> RegistryError:
        """The error about an expression that takes a collection, or a resource's meta, for one value."""
        name = format_path((*self.above, *self.path))
        detail = (
            f'"{name}" holds entities, not one value; write {name}.ATTRIBUTE{self.suffix}, with an attribute of them'
        )
        return _bad(subject, name + self.suffix, detail)

    def index_term(self) -> tuple[str, str] | None:
        """The (path, folded value) among the `terms` of every entity that satisfies this clause, and of no other.

        None where an index of terms cannot give the exact answer.
        """
        value = self.value
        if self.operator != "=" or value.pieces is not None or not self.path:
            return None
        if value.number is not None and fold(value.number) != value.text:
            return None  # `5.0` equals the number 5 and the text "5.0", which fold differently
        if value.folded in _BOOLEANS and value.folded != value.text:
            return None  # `TRUE` equals the text "true", not the boolean
        return (format_path(self.path), value.folded) if all(isinstance(step, str) for step in self.path) else None


def _plainest(items: list[Any]) -> Any:
    """The item of an array that is one value, else one that is an array, else any; None where there is none."""
    return min((item for item in items if item is not None), key=_plainness, default=None)


def _plainness(item: Any) -> int:
    return 2 if isinstance(item, Mapping) else 1 if isinstance(item, list) else 0


Clauses: TypeAlias = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """What a request asks for: entities for which all clauses of one alternative hold, or none at all."""

    NONE: ClassVar[Filter]

    alternatives: tuple[Clauses, ...] = ()
    excludeall: bool = False

    def __bool__(self) -> bool:
        return self.excludeall or bool(self.alternatives)


Filter.NONE = Filter()

# One expression up to the next comma that is not part of a quoted name or escaped in a value. Possessive: no way back.
_EXPRESSION = re.compile(
    r"""(?P<path>(?:[^=<>!,\[]|\['[^']*'\]|\["[^"]*"\]|\[|!(?!=))*+)
        (?:(?P<operator>!=|<>|<=|>=|<|>|=)(?P<value>(?:[^,\\]|\\.|\\)*+))?(?:,|$)""",
    re.VERBOSE | re.DOTALL,
)


def parse(values: Sequence[str], subject: str) -> Filter:
    """The filter that the request's `filter` values, one for each alternative, make together."""
    if not values:
        return Filter.NONE
    if sum(map(len, values)) > MAX_TEXT:
        raise _bad(subject, values[0][:60] + "...", f"longer than {MAX_TEXT} characters")
    alternatives = [clauses for clauses in (tuple(_clauses(value, subject)) for value in values) if clauses]
    every = [clause for clauses in alternatives for clause in clauses]
    if len(every) > MAX_CLAUSES:
        raise _bad(subject, every[MAX_CLAUSES].text, f"more than {MAX_CLAUSES} expressions")
    texts = [clause.text for clause in every]
    if EXCLUDEALL not in texts:
        return Filter(tuple(alternatives))
    if set(texts) != {EXCLUDEALL}:
        raise _bad(subject, texts[1], f'"{EXCLUDEALL}" must not appear with any other expression')
    return Filter(excludeall=True)


def _clauses(text: str, subject: str) -> Iterator[Clause]:
    position = 0
    while position < len(text):
        found = _EXPRESSION.match(text, position)
        assert found is not None  # the pattern matches any text
        position = found.end()
        path, sign, value = found["path"].strip(), found["operator"] or "", found["value"] or ""
        if path or sign:
            yield _clause(path, sign, value, subject)


def _clause(path: str, sign: str, raw: str, subject: str) -> Clause:
    try:
        steps = parse_path(path)
    except PathError as error:
        raise _bad(subject, path or sign + raw, str(error)) from None
    value = Comparand.from_text(raw)
    raw = "null" if raw.strip() == "null" else raw
    operator = "!=" if sign == "<>" else sign
    if operator in _ORDERING:
        if raw == "null" or value.pieces is not None:
            what = "null" if raw == "null" else "a wildcard"
            raise _bad(subject, path + sign + raw, f'{what} is not allowed with "{sign}"')
    elif operator and (raw == "null" or _is_any(value)):
        # `=null` is absence, `=*` presence, and `!=` the opposite of each
        operator = "null" if (operator == "=") == (raw == "null") else ""
    return Clause(steps, operator, value, sign + raw)


_ORDERING = frozenset({"<", "<=", ">", ">="})


def _is_any(value: Comparand) -> bool:
    return value.pieces is not None and not any(value.pieces)


def _bad(subject: str, value: str, detail: str) -> RegistryError:
    return RegistryError("bad_filter", subject, value=value, error_detail=detail)


def split(clauses: Iterable[Clause], is_collection: Callable[[str], bool]) -> tuple[Clauses, dict[str, Clauses]]:
    """The clauses about an entity itself, and by collection those about its members, their first step taken off."""
    own: list[Clause] = []
    nested: dict[str, Clauses] = {}
    for clause in clauses:
        head = clause.head
        if head is not None and is_collection(head):
            nested[head] = (*nested.get(head, ()), clause.tail())
        else:
            own.append(clause)
    return tuple(own), nested


# RFC 3986 section 3.4: what a query may hold as it is, without `&` and `+`, which separate and stand for a space.
_QUERY_SAFE = "!$'()*,;=:@/?-._~"


def query(alternatives: Iterable[Clauses]) -> str:
    """The `filter` parameters that ask for these alternatives, encoded for a URL (FILTER-10)."""
    texts = (",".join(clause.text for clause in clauses) for clauses in alternatives)
    return "&".join(f"filter={quote(text, safe=_QUERY_SAFE)}" for text in texts)


def terms(attrs: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every (path, folded value) under which an index finds an entity with these attributes; arrays have none."""
    for name, value in attrs.items():
        if isinstance(value, str | int | float):  # a bool is an int
            yield join_name(prefix, name), fold(value)
        elif isinstance(value, dict | Mapping):
            yield from terms(value, join_name(prefix, name))
