"""Can a reader's schema read what a writer's schema wrote: Avro 1.12, "Schema Resolution".

Rule 1: two types match as the specification says; names match without their namespace, or by a reader's alias, as
Java's `SchemaCompatibility` has it.
Rule 2: a pair of types is readable unless something shows that it is not. So recursive types end, and the answer does
not depend on where one starts.
Rule 3: logical types play no part here; `compare` judges what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from signalbook.schemas.avro.schema import NOTHING, Field, Node
from signalbook.schemas.format import StepBudget

__all__ = ["MOST_PAIRS", "Resolution", "TooManyPairs", "field_of", "names_match", "pair_steps", "promotes"]

MOST_PAIRS = 200_000
_PARTS_A_STEP = 4

_PROMOTIONS = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}

Key = tuple[int, int]
Pair = tuple[Node, Node]


class TooManyPairs(Exception):
    """Two schemas with so many types against each other that the question is not worth its answer."""


def pair_steps(writer: Node, reader: Node) -> int:
    """The steps to hold two types against each other, but not what is in them; of a union few members are looked at."""
    if reader.kind == "union" and writer.kind != "union":
        return 1
    return 1 + sum(
        len(node.fields) + len(node.symbols) + len(node.members) + len(node.aliases) for node in (writer, reader)
    ) // _PARTS_A_STEP  # fmt: skip


def promotes(writer: str, reader: str) -> bool:
    """Tell whether a primitive type is read as another."""
    return reader in _PROMOTIONS.get(writer, ())


def names_match(writer: Node, reader: Node) -> bool:
    """Tell whether a reader's named type means the writer's."""
    return writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2] or writer.name in reader.aliases


def field_of(writer: dict[str, Field], reader: Field) -> Field | None:
    """The writer's field that a reader's field reads: of the same name, else of an alias."""
    found = writer.get(reader.name)
    if found is None:
        found = next((writer[alias] for alias in reader.aliases if alias in writer), None)
    return found


class Resolution:
    """Which types of a reader's schema read which types of a writer's."""

    def __init__(self, writer: Node, reader: Node, budget: StepBudget | None = None) -> None:
        self._budget = budget
        self._pairs: dict[Key, list[list[Key]] | None] = {}
        self._unions: dict[int, _UnionIndex] = {}
        self._discover(writer, reader)
        self._unreadable = self._refute()

    def readable(self, writer: Node, reader: Node) -> bool:
        """Tell whether every value of a writer's type can be read as the reader's."""
        return (id(writer), id(reader)) not in self._unreadable

    def matches(self, writer: Node, reader: Node) -> bool:
        """Tell whether two types match at their surface, whatever lies within."""
        return self._pairs.get((id(writer), id(reader))) is not None or (
            writer.kind == reader.kind and (not writer.name or names_match(writer, reader))
        )

    def member(self, writer: Node, reader: Node) -> Node | None:
        """The member of a reader's union that reads a writer's type: the readable one of its name, else the first."""
        near = self._candidates(writer, reader)
        found = [member for member in near if self.readable(writer, member)]
        same = [member for member in found if member.label == writer.label]
        if same or found:
            return (same or found)[0]
        return next((member for member in near if self.matches(writer, member)), None)

    def _candidates(self, writer: Node, union: Node) -> list[Node]:
        """The members of a reader's union that match a writer's type at their surface, in their order."""
        index = self._unions.get(id(union))
        if index is None:
            index = self._unions[id(union)] = _UnionIndex(union)
        return index.candidates(writer)

    def _discover(self, writer: Node, reader: Node) -> None:
        waiting: list[Pair] = [(writer, reader)]
        while waiting:
            one = waiting.pop()
            key = (id(one[0]), id(one[1]))
            if key in self._pairs:
                continue
            if len(self._pairs) >= MOST_PAIRS:
                raise TooManyPairs
            if self._budget is not None:
                self._budget.spend(pair_steps(*one))
            needs = self._needs(*one)
            self._pairs[key] = None if needs is None else [[(id(w), id(r)) for w, r in any_of] for any_of in needs]
            for any_of in needs or ():
                waiting.extend(any_of)

    def _needs(self, writer: Node, reader: Node) -> list[list[Pair]] | None:
        """What must be readable for a pair to be so, one of each inner list; None where the two do not match at all."""
        if writer.kind == "union":
            return [[(member, reader)] for member in writer.members]
        if reader.kind == "union":
            return [[(writer, member) for member in self._candidates(writer, reader)]]
        if writer.kind != reader.kind:
            return [] if promotes(writer.kind, reader.kind) else None
        if writer.inner is not None and reader.inner is not None:
            return [[(writer.inner, reader.inner)]]
        if writer.name and not names_match(writer, reader):
            return None
        if writer.kind == "record":
            return _fields(writer, reader)
        if writer.kind == "enum" and reader.default is None and not set(writer.symbols) <= set(reader.symbols):
            return None
        return None if writer.size != reader.size else []

    def _refute(self) -> set[Key]:
        """Every pair that is unreadable, found from those that are so by themselves."""
        users: dict[Key, list[tuple[Key, int]]] = {}
        left: dict[tuple[Key, int], int] = {}
        waiting: list[Key] = []
        for key, needs in self._pairs.items():
            if needs is None or not all(needs):
                waiting.append(key)
                continue
            for number, any_of in enumerate(needs):
                alternatives = set(any_of)
                left[key, number] = len(alternatives)
                for other in alternatives:
                    users.setdefault(other, []).append((key, number))
        unreadable: set[Key] = set(waiting)
        while waiting:
            for key, number in users.get(waiting.pop(), ()):
                left[key, number] -= 1
                if not left[key, number] and key not in unreadable:
                    unreadable.add(key)
                    waiting.append(key)
        return unreadable


class _UnionIndex:
    """The members of a reader's union, by what of a writer's type they match."""

    def __init__(self, union: Node) -> None:
        self._members = union.members
        self._by: dict[tuple[str, str], list[int]] = {}
        for number, member in enumerate(union.members):
            for key in _reader_keys(member):
                self._by.setdefault(key, []).append(number)

    def candidates(self, writer: Node) -> list[Node]:
        if writer.name:
            keys = [(writer.kind, writer.name.rpartition(".")[2]), (writer.kind, f"={writer.name}")]
        else:
            keys = [(kind, "") for kind in (writer.kind, *_PROMOTIONS.get(writer.kind, ()))]
        return [self._members[number] for number in sorted({one for key in keys for one in self._by.get(key, ())})]


def _reader_keys(member: Node) -> Iterator[tuple[str, str]]:
    if not member.name:
        yield member.kind, ""
        return
    yield member.kind, member.name.rpartition(".")[2]
    yield from ((member.kind, f"={alias}") for alias in member.aliases)


def _fields(writer: Node, reader: Node) -> list[list[Pair]]:
    by_name = {field.name: field for field in writer.fields}
    needs: list[list[Pair]] = []
    for field in reader.fields:
        found = field_of(by_name, field)
        if found is not None:
            needs.append([(found.node, field.node)])
        elif field.default is NOTHING:
            # One of nothing: never met. The other fields are compared all the same.
            needs.append([])
    return needs
