"""What a row of the table of schema formats is made of.

Rule 1: a schema that cannot be used raises `SchemaError` when it is read, with every problem and its place; what is
wrong with a payload is a `Problem` that a check returns. A check never raises.
Rule 2: a read schema never changes: threads share it, and a forked worker inherits it.
Rule 3: nothing outside the catalog is ever asked: other schemas come from `References`, which the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from signalbook.errors import Problem, SignalbookError
from signalbook.schemas.budget import Budget

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "BREAKS_BOTH",
    "LARGEST",
    "REFERENCE",
    "Checked",
    "Difference",
    "Direction",
    "Format",
    "Located",
    "References",
    "Schema",
    "SchemaError",
    "Text",
    "base_of",
    "pointer",
    "unmarked",
    "unreachable",
    "unsupported",
    "unusable",
]

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

    `compare` takes the older and the newer schema, and the steps that it may take; `media` lists the content types of
    payloads, the usual one first.
    """

    name: str
    aliases: tuple[str, ...]
    read: Callable[[Text, References | None], Schema]
    compare: Callable[[Schema, Schema, Budget], Iterator[Difference]]
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
