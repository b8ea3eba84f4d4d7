"""Whether libxml2 can match an XSD pattern in bounded time: it backtracks, so an ambiguous one can blow up.

Rule: a pattern is taken where no text can be read by one of its loops in two ways, and at most two loops can share a
text; any other is named as dangerous. What cannot be read here is left to the compiler, which refuses it.

XSD 1.0 part 2, appendix F: branches, pieces, atoms; no anchors, no back references, nothing lazy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["danger"]

MOST_POSITIONS = 1000
MOST_COPIES = 32  # of one character
MOST_COPIES_OF_LOOPS = 8
MOST_COPIES_OF_GROUPS = 4
MOST_CHOICES = 20
STEPS = 300_000
_LONGEST = 2000
_DEEPEST = 30
# Two sets of characters that share none of these share none that matters; those of the pattern itself are added.
_SAMPLES = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("\t\n\r\xa0\xe9\u0100\u03b1\u4e2d")


@dataclass(slots=True)
class _Node:
    """A part of a pattern as a position automaton has it: where it may begin and end, and if it may be empty."""

    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    empty: bool = True
    loops: bool = False


class _UnreadableError(Exception):
    """A pattern that is none, or that is more than is looked at."""


@dataclass(slots=True)
class PatternBudget:
    """How many steps may still be spent on looking at patterns."""

    left: int = STEPS

    def spend(self, steps: int = 1) -> None:
        """Take steps away; raises where there are no more."""
        self.left -= steps
        if self.left < 0:
            raise _PatternTooLargeError


def danger(pattern: str, budget: PatternBudget | None = None) -> str:
    """Why a pattern is not given to libxml2; nothing where it may be.

    >>> danger("[a-z]+(-[0-9]{1,4})?"), danger("(a|aa)+")
    ('', 'can be matched in ever more ways')
    """
    if len(pattern) > _LONGEST:
        return f"is longer than {_LONGEST:,} characters"
    reading = _PatternReader(pattern, budget or PatternBudget())
    try:
        reading.branches(0)
        if reading.at != len(pattern):
            return ""
        return reading.verdict()
    except _PatternTooLargeError:
        return "repeats what repeats, or is too long"
    except (_UnreadableError, IndexError):
        return ""


class _PatternTooLargeError(Exception):
    """More than is looked at."""


class _PatternReader:
    """Reads one pattern into a position automaton (Glushkov's)."""

    def __init__(self, pattern: str, budget: PatternBudget) -> None:
        self.text = pattern
        self.budget = budget
        self.at = 0
        self.sets: list[frozenset[str]] = []
        self.follow: list[set[int]] = []
        self.samples = _SAMPLES | frozenset(pattern)

    # ---- reading

    def branches(self, depth: int) -> _Node:
        if depth > _DEEPEST:
            raise _PatternTooLargeError
        found = self._branch(depth)
        while self.at < len(self.text) and self.text[self.at] == "|":
            self.at += 1
            other = self._branch(depth)
            found = _Node(
                found.first | other.first, found.last | other.last, found.empty or other.empty,
                found.loops or other.loops,
            )  # fmt: skip
        return found

    def _branch(self, depth: int) -> _Node:
        found = _Node()
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            found = self._join(found, self._piece(depth))
        return found

    def _join(self, one: _Node, two: _Node) -> _Node:
        for position in one.last:
            self.follow[position] |= two.first
        return _Node(
            one.first | two.first if one.empty else one.first,
            two.last | one.last if two.empty else two.last,
            one.empty and two.empty,
            one.loops or two.loops,
        )

    def _piece(self, depth: int) -> _Node:
        start = self.at
        atom = self._atom(depth)
        end = self.at
        low, high = self._quantifier()
        if (low, high) == (1, 1):
            return atom
        single = atom.first == atom.last and len(atom.first) == 1
        most = MOST_COPIES_OF_LOOPS if atom.loops else MOST_COPIES_OF_GROUPS
        if single and not atom.loops:
            most = MOST_COPIES if low == high else 1
        if high is not None and high <= most:
            return self._copies(atom, start, end, low, high, depth)
        if atom.loops and high is not None:
            raise _PatternTooLargeError
        # A loop, be it bounded or not: `x{2,5}` can be ambiguous only where `x+` is.
        for position in atom.last:
            self.follow[position] |= atom.first
        return _Node(atom.first, atom.last, atom.empty or low == 0, loops=True)

    def _copies(self, atom: _Node, start: int, end: int, low: int, high: int, depth: int) -> _Node:
        """A few repetitions of what repeats itself, written out."""
        after = self.at
        found = _Node(atom.first, atom.last, atom.empty or low == 0, atom.loops)
        for count in range(2, high + 1):
            self.at = start
            copy = self._atom(depth)
            assert self.at == end
            copy.empty = copy.empty or count > low
            found = self._join(found, copy)
        self.at = after
        return found if high else _Node()

    def _quantifier(self) -> tuple[int, int | None]:
        mark = self.text[self.at] if self.at < len(self.text) else ""
        if mark in ("?", "*", "+"):
            self.at += 1
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[mark]
        if mark != "{":
            return 1, 1
        end = self.text.index("}", self.at) if "}" in self.text[self.at :] else -1
        if end < 0:
            raise _UnreadableError
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        self.at = end + 1
        if not low.isdigit() or (high and not high.isdigit()):
            raise _UnreadableError
        return int(low[:9]), (int(high[:9]) if high else None if comma else int(low[:9]))

    def _atom(self, depth: int) -> _Node:
        mark = self.text[self.at]
        if mark == "(":
            self.at += 1
            found = self.branches(depth + 1)
            if self.at >= len(self.text) or self.text[self.at] != ")":
                raise _UnreadableError
            self.at += 1
            return found
        characters = self._class() if mark == "[" else self._single()
        self.sets.append(characters)
        self.follow.append(set())
        if len(self.sets) > MOST_POSITIONS:
            raise _PatternTooLargeError
        position = len(self.sets) - 1
        return _Node({position}, {position}, empty=False)

    def _single(self) -> frozenset[str]:
        mark = self.text[self.at]
        self.at += 1
        if mark == ".":
            return self.samples - {"\n", "\r"}
        if mark == "\\":
            return self._escape()
        if mark in "?*+{}])":
            raise _UnreadableError
        return frozenset(mark)

    def _escape(self) -> frozenset[str]:
        mark = self.text[self.at]
        self.at += 1
        if mark in "pP":
            self.at = self.text.index("}", self.at) + 1 if "}" in self.text[self.at :] else len(self.text)
            return self.samples  # more than it holds, which errs on the safe side
        if mark.lower() in _SETS:
            inside = frozenset(one for one in self.samples if _SETS[mark.lower()](one))
            return inside if mark.islower() else self.samples - inside
        return frozenset({"n": "\n", "r": "\r", "t": "\t"}.get(mark, mark))

    def _class(self) -> frozenset[str]:
        """A class in brackets; what is subtracted from it stays in, which errs on the safe side."""
        self.at += 1
        negative = self.text[self.at] == "^"
        self.at += negative
        found: frozenset[str] = frozenset()
        first = True
        while first or self.text[self.at] != "]":
            if self.text[self.at] == "-" and self.text[self.at + 1] == "[":
                self.at += 1
                self._class()
                break
            first = False
            mark = self.text[self.at]
            self.at += 1
            one = self._escape() if mark == "\\" else frozenset(mark)
            ranged = self.text[self.at] == "-" and self.text[self.at + 1] not in "[]" and len(one) == 1
            if ranged:
                self.at += 1
                mark = self.text[self.at]
                self.at += 1
                low = min(one)
                high = max(self._escape() if mark == "\\" else mark)
                one = frozenset(sample for sample in self.samples if low <= sample <= high) | {low, high}
            found |= one
        self.at += 1
        return self.samples - found if negative else found

    # ---- judging

    def verdict(self) -> str:
        """What makes the automaton dangerous; nothing where it is not."""
        reach = {position: self._reachable(position) for position in range(len(self.sets))}
        loops = [position for position in reach if position in reach[position]]
        if any(self._is_ambiguous(position) for position in loops):
            return "can be matched in ever more ways"
        if self._chain(loops, reach) > 2:
            return "has more than two loops that can share a text"
        if sum(self._is_choice(position) for position in reach) > MOST_CHOICES:
            return "leaves too many choices open"
        return ""

    def _is_choice(self, position: int) -> bool:
        """Whether a character after a position can be read as more than one."""
        after = sorted(self.follow[position])
        return any(self._meet(one, two) for index, one in enumerate(after) for two in after[:index])

    def _meet(self, *positions: int) -> bool:
        self.budget.spend()
        found = self.sets[positions[0]]
        for position in positions[1:]:
            found &= self.sets[position]
        return bool(found)

    def _reachable(self, start: int) -> set[int]:
        seen: set[int] = set()
        stack = list(self.follow[start])
        while stack:
            position = stack.pop()
            if position not in seen:
                self.budget.spend()
                seen.add(position)
                stack.extend(self.follow[position])
        return seen

    def _is_ambiguous(self, start: int) -> bool:
        """Whether one text leads from a position back to it in two ways, which repeats make exponential."""
        seen: dict[tuple[int, int], bool] = {}
        stack = [(start, start, False)]
        while stack:
            a, b, apart = stack.pop()
            for one in self.follow[a]:
                for two in self.follow[b]:
                    parted = apart or one != two
                    if seen.get((one, two), -1) >= parted or not self._meet(one, two):
                        continue
                    if (one, two) == (start, start) and parted:
                        return True
                    seen[one, two] = parted
                    stack.append((one, two, parted))
        return False

    def _shares(self, p: int, q: int) -> bool:
        """Whether one text leads from p to p, from p to q, and from q to q: then both loops can take it."""
        seen = {(p, p, q)}
        stack = [(p, p, q)]
        while stack:
            a, b, c = stack.pop()
            for one in self.follow[a]:
                for two in self.follow[b]:
                    for three in self.follow[c]:
                        after = (one, two, three)
                        if after in seen or not self._meet(one, two, three):
                            continue
                        if after == (p, q, q):
                            return True
                        seen.add(after)
                        stack.append(after)
        return False

    def _chain(self, loops: list[int], reach: dict[int, set[int]]) -> int:
        """The most loops, one after the other, that can share a text; time grows with that power of its length."""
        shared = [(p, q) for p in loops for q in loops if q in reach[p] and p not in reach[q] and self._shares(p, q)]
        longest = dict.fromkeys(loops, 1)
        for _ in range(min(len(shared), 3)):
            for p, q in shared:
                longest[p] = max(longest[p], longest[q] + 1)
        return max(longest.values(), default=0)


def _is_name_start(one: str) -> bool:
    return one.isalpha() or one in "_:"


_SETS: Mapping[str, Callable[[str], bool]] = {
    "d": str.isdigit,
    "s": lambda one: one in " \t\n\r",
    "w": lambda one: one.isalnum() or one in "$+<=>^`|~",
    "i": _is_name_start,
    "c": lambda one: _is_name_start(one) or one.isdigit() or one in "-.\xb7",
}
