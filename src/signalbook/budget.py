"""How much work a task may do: one request, one message, one comparison of schemas.

Rule 1: work is counted where it is done and never timed, so that the same input has the same answer everywhere. A step
is some microseconds of work on an ordinary machine.
Rule 2: `spend` comes before the work that it pays for. Once it has raised, each later `spend` of the same budget raises
too, so that whoever catches it by mistake does not go on for long.
Rule 3: a part of a budget has a limit of its own and takes from the whole. Who made a budget catches what it raises and
says what follows; `TooMuch.budget` tells whose limit it was.
Rule 4: another thread may cancel a budget. The work ends at its next `spend`.
Rule 5: the budget of a thread's work is the one that it is `within`; `spend` of this module takes from it. Outside of
any there is no limit: a program that uses the package decides for itself.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

__all__ = ["BYTES", "UNLIMITED", "Budget", "Cancelled", "TooMuch", "current", "of_bytes", "of_value", "spend", "within"]

# The bytes that a native reader or validator goes through in one step.
BYTES = 1024


class TooMuch(Exception):  # noqa: N818, RUF100 - not always an error: a comparison that takes too much is unknown
    """That a budget is spent: what it is for, how many steps it allows, and whose limit it was."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget.what, budget.allowed)
        self.budget = budget

    def __str__(self) -> str:
        return f"{self.budget.what} takes more than {self.budget.allowed:,} steps of work"


class Cancelled(TooMuch):
    """That nobody waits for the work any more."""

    def __str__(self) -> str:
        return f"{self.budget.what} was cancelled"


class Budget:
    """Steps that a task may take; `what` is the task in words, as a sentence begins with it.

    >>> budget = Budget(10, "This request")
    >>> budget.spend(8)
    >>> budget.left
    2
    >>> budget.spend(3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    signalbook.budget.TooMuch: This request takes more than 10 steps of work
    """

    __slots__ = ("_most", "_whole", "allowed", "spent", "what")

    def __init__(self, allowed: int, what: str = "This", whole: Budget | None = None) -> None:
        self.allowed = allowed
        self.what = what
        self.spent = 0
        # Only `cancel` and `add` write it, and the task only what it spent: neither undoes what the other writes.
        self._most = allowed
        self._whole = whole

    def spend(self, steps: int = 1) -> None:
        """Take some steps; `TooMuch` where fewer are left, `Cancelled` where the work was cancelled."""
        self.spent += steps
        if self.spent > self._most:
            raise Cancelled(self) if self._most < 0 else TooMuch(self)
        if self._whole is not None:
            self._whole.spend(steps)

    def part(self, steps: int, what: str = "") -> Budget:
        """A budget for one part of the task, which takes from this one."""
        return Budget(steps, what or self.what, self)

    def add(self, steps: int) -> None:
        """Allow more steps."""
        self.allowed += steps
        if self._most >= 0:
            self._most = self.allowed

    def cancel(self) -> None:
        """End the work at its next `spend`; for any thread."""
        self._most = -1

    @property
    def left(self) -> int:
        """How many steps may still be taken; less than none where it is spent."""
        return self._most - self.spent

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the work any more."""
        return self._most < 0 or (self._whole is not None and self._whole.is_cancelled)


class _Unlimited(Budget):
    """What work takes from that nobody gave a budget."""

    __slots__ = ()

    def spend(self, steps: int = 1) -> None:
        """Take nothing."""

    def part(self, steps: int, what: str = "") -> Budget:
        """A budget of its own."""
        return Budget(steps, what or "This")


UNLIMITED: Budget = _Unlimited(0)
"""For work that nobody in particular asked for: what many will use does not end with the first who wanted it."""

_current: ContextVar[Budget] = ContextVar("budget", default=UNLIMITED)

current = _current.get
"""The budget that this thread's work takes from."""


def spend(steps: int = 1) -> None:
    """Take some steps from the budget that this thread's work is within."""
    _current.get().spend(steps)


def of_bytes(size: int) -> int:
    """The steps for so many bytes that native code reads.

    >>> of_bytes(0), of_bytes(1), of_bytes(10_000)
    (1, 1, 10)
    """
    return 1 + size // BYTES


def of_value(value: Any) -> int:
    """The steps to check a JSON value: one for each two values in it, and for the length of its names and texts.

    >>> of_value(None), of_value({"a": {"value": "x"}, "b": {"value": "x"}}), of_value(["x" * 10_000])
    (1, 3, 11)
    """
    count = size = 0
    left = [value]
    while left:
        one = left.pop()
        count += 1
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict):
            size += sum(map(len, one))
            left += one.values()
        elif isinstance(one, list):
            left += one
    return count // 2 + of_bytes(size)


def within(budget: Budget) -> _BudgetedBlock:
    """Do the work of a `with` block within a budget."""
    return _BudgetedBlock(budget)


class _BudgetedBlock:
    """A block whose work takes from a budget; half as much to enter as what `contextmanager` makes."""

    __slots__ = ("_budget", "_token")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __enter__(self) -> Budget:
        self._token = _current.set(self._budget)
        return self._budget

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
