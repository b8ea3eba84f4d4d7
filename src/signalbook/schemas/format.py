"""What a row of the table of schema formats is made of.

Rule 1: a schema that cannot be used raises `SchemaError` when it is read, with every problem and its place; what is
wrong with a payload is a `Problem` that a check returns. A check never raises.
Rule 2: a read schema never changes: threads share it, and a forked worker inherits it.
Rule 3: nothing outside the catalog is ever asked: other schemas come from `References`, which the caller gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from signalbook.budget import Budget as StepBudget
from signalbook.budget import TooMuch
from signalbook.errors import Problem, SignalbookError

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "BREAKS_BOTH",
    "LARGEST",
    "MOST_STEPS",
    "REFERENCE",
    "SECOND",
    "BadValue",
    "Checked",
    "Difference",
    "Direction",
    "Format",
    "Located",
    "References",
    "Schema",
    "SchemaError",
    "StepBudget",
    "Text",
    "TooMuch",
    "base_of",
    "column_names",
    "pointer",
    "reading_steps",
    "too_large",
    "unmarked",
    "unreachable",
    "unsupported",
    "unusable",
]

# The steps that comparisons may take: counted and not timed, so that the same schemas have the same answer everywhere.
#
# Rule: a step is some microseconds of work. What is not decided when none is left is reported as unknown.


# What one comparison may take, both ways together.
MOST_STEPS = 60_000


# How much a schema document holds, counted in its text before anything reads it.
#
# Rule: a document at its format's limit takes about a second to read, which is more than those may take for whom others
# wait: the registry while it writes. They keep what is beyond it as it is. No schema that people write comes near.


# The steps (`StepBudget`) that a document at its limit takes, and what each takes besides.
SECOND, _EACH = 100_000, 50


@dataclass(frozen=True, slots=True)
class _Limit:
    """How often a sign may stand in a text, and what it stands for."""

    sign: bytes
    most: int
    what: str


_LIMITS: dict[str, tuple[_Limit, ...]] = {
    "jsonschema": (_Limit(b"{", 40_000, "objects"), _Limit(b"true", 200_000, "times true")),
    "avro": (_Limit(b"{", 30_000, "objects"), _Limit(b'"', 800_000, "quotes")),
    # What the compiler takes, which refuses more; libxml2 has no bound of its own.
    "protobuf": (_Limit(b"{", 4_000, "blocks"), _Limit(b";", 20_000, "statements")),
    "xsd": (_Limit(b"<", 100_000, "tags"),),
    "jsonstructure": (_Limit(b"{", 15_000, "objects"),),
}


def too_large(family: str, text: bytes) -> str:
    """The words for what a document of a format's family has too much of; empty where it is within the limits.

    >>> too_large("protobuf", b"enum E { A = 0; }" * 5000)
    'The document has more than the 4,000 blocks that are checked'
    """
    for limit in _LIMITS.get(family, ()):
        if text.count(limit.sign) > limit.most:
            return f"The document has more than the {limit.most:,} {limit.what} that are checked"
    return ""


def reading_steps(family: str, text: bytes) -> int:
    """The steps that it takes to read a document of a format's family.

    >>> reading_steps("xsd", b"<a/>" * 1000)
    1050
    """
    shares = (text.count(limit.sign) / limit.most for limit in _LIMITS.get(family, ()))
    return _EACH + int(SECOND * max(shares, default=0))


# `BadValue`: a value that cannot be written as a payload of a schema.


class BadValue(ValueError):
    """A value that a schema does not take: in words, and where in the value."""

    def __init__(self, message: str, *steps: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.steps: tuple[str | int, ...] = steps

    @property
    def path(self) -> str:
        """The JSON Pointer of the place."""
        return pointer(self.steps)

    def within(self, step: str | int) -> BadValue:
        """The same, seen from around."""
        return BadValue(self.message, step, *self.steps)


# Column names that Delta, Parquet and Spark take, made from names that formats allow; the same rule for each format.
#
# Rule 1: letters (of any script), digits, `_` and `-` stay; each byte of anything else, and `~`, becomes `~` and two
# hex digits. The empty name is `~`.
# Rule 2: Spark compares column names without case. Of names that differ only in case the one in lower case stays as it
# is; in each other one, every capital is escaped as well.
# Rule 3: a name that the table itself uses there has its first character escaped.


def column_names(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """The column of each name, all different without regard to case; `reserved` names are in lower case.

    >>> column_names(["id", "ID", "a b", "_more", ""], reserved=["_more"])
    {'id': 'id', 'ID': '~49~44', 'a b': 'a~20b', '_more': '~5fmore', '': '~'}
    """
    plain = {name: _escaped(name) for name in names}
    for name, column in plain.items():
        if column.lower() in reserved:
            plain[name] = _hex(name[0]) + column[1:]
    often = Counter(column.lower() for column in plain.values())
    return {
        name: column if often[column.lower()] == 1 or column == column.lower() else _without_capitals(column)
        for name, column in plain.items()
    }


def _escaped(name: str) -> str:
    return "".join(one if one.isalnum() or one in "_-" else _hex(one) for one in name) or "~"


def _without_capitals(column: str) -> str:
    return "".join(one if one == one.lower() else _hex(one) for one in column)


def _hex(one: str) -> str:
    return "".join(f"~{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))


# A schema document is untrusted: none is read beyond this size, in bytes.
LARGEST = 10 * 1024 * 1024

Direction: TypeAlias = Literal["backward", "forward"]
BREAKS_BOTH: frozenset[Direction] = frozenset({"backward", "forward"})

# A schema document as it arrives: bytes, text, or the JSON value a catalog holds inline.
Text: TypeAlias = bytes | str | Mapping[str, Any] | bool

T = TypeVar("T", bytes, str, bytes | str)

# The code of a problem that lies in what a document refers to, and not in the document.
REFERENCE = "reference"
# The code of a problem that lies in what this package can do, and not in the document.
UNSUPPORTED = "unsupported"


class References(Protocol):
    """The other schemas of the same catalog, by URI or name; None where the catalog has none of that name."""

    def __call__(self, uri: str, /) -> Text | None:
        """The document of that name."""
        ...


@dataclass(frozen=True, slots=True)
class Located:
    """References for a schema that has a place in the catalog: the path that relative references start from."""

    find: References
    base: str

    def __call__(self, uri: str, /) -> Text | None:
        """The document of that name."""
        return self.find(uri)


def base_of(references: References | None) -> str:
    """The path of the schema that is read; empty where it has no place in a catalog."""
    return references.base if isinstance(references, Located) else ""


class SchemaError(SignalbookError):
    """A schema document that cannot be used, with all problems found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    @property
    def by_others(self) -> bool:
        """Whether all problems lie in what the document refers to."""
        return bool(self.problems) and all(problem.code == REFERENCE for problem in self.problems)

    @property
    def is_unsupported(self) -> bool:
        """Whether it is the format, or its version, that cannot be used, and not the document."""
        return any(problem.code == UNSUPPORTED for problem in self.problems)

    def __str__(self) -> str:
        return "; ".join(
            f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in self.problems
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding of a comparison: where, of which kind, in words, and which promises it breaks.

    `breaks` is empty for a change that breaks nothing; `certain` is false where it could not be decided.
    """

    path: str
    kind: str
    message: str
    breaks: frozenset[Direction] = frozenset()
    certain: bool = True


class Checked(NamedTuple):
    """The answer about a payload: its problems, and its decoded value where it could be decoded.

    A named tuple and not a dataclass: one is made for each message, and it costs a third.
    """

    problems: tuple[Problem, ...]
    value: Any


class Schema(Protocol):
    """One schema that was read: immutable, for use in threads and in forked workers."""

    @property
    def format(self) -> str:
        """The canonical name of its format."""
        ...

    def check(self, payload: bytes, contenttype: str = "") -> Checked:
        """The problems of a payload, with JSON Pointers into it, and the value it holds."""
        ...

    def at(self, fragment: str) -> Schema:
        """The schema that a deep link leads to; `SchemaError` where it leads nowhere."""
        ...

    def columns(self) -> pyarrow.DataType:
        """The Arrow struct that holds every payload which the check accepts."""
        ...

    def convert(self, value: Any) -> Any:
        """A checked value as that struct holds it."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One row: the canonical name, other spellings (lower case, `*` allowed), and what the format can do.

    `compare` takes the older and the newer schema, and the steps that it may take; `encode` writes a value as a payload
    of a content type, or raises `BadValue`; `samples` yields payloads to try; `media` lists the content types of
    payloads, the usual one first.
    """

    name: str
    aliases: tuple[str, ...]
    read: Callable[[Text, References | None], Schema]
    compare: Callable[[Schema, Schema, StepBudget], Iterator[Difference]]
    encode: Callable[[Schema, Any, str], bytes]
    samples: Callable[[Schema, str], Iterator[bytes]]
    media: tuple[str, ...]

    @property
    def family(self) -> str:
        """What all drafts and releases of the format have in common: `jsonschema`, `avro`."""
        return self.name.partition("/")[0].lower()


def unusable(message: str, path: str = "") -> SchemaError:
    """The error for a schema document with one problem."""
    return SchemaError([Problem(path, "schema", message)])


def unsupported(message: str, path: str = "") -> SchemaError:
    """The error for a schema document of a format, or a version of one, that is not supported."""
    return SchemaError([Problem(path, UNSUPPORTED, message)])


def unreachable(message: str, path: str = "") -> SchemaError:
    """The error for a schema document with one problem in what it refers to."""
    return SchemaError([Problem(path, REFERENCE, message)])


def unmarked(text: T) -> T:
    r"""The text of a document without the byte order mark that some editors write before it.

    >>> unmarked(b"\xef\xbb\xbf{}"), unmarked("\ufeff{}")
    (b'{}', '{}')
    """
    return text.removeprefix(b"\xef\xbb\xbf") if isinstance(text, bytes) else text.removeprefix("\ufeff")


def pointer(steps: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a list of steps.

    >>> pointer(["a/b", 0, "m~n"])
    '/a~1b/0/m~0n'
    """
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
