"""The steps that comparisons may take: counted and not timed, so that the same schemas have the same answer everywhere.

Rule: a step is some microseconds of work. What is not decided when none is left is unknown, and is told so.
"""

from __future__ import annotations

__all__ = ["MOST_STEPS", "Budget", "TooMuch"]

# What one comparison may take, both ways together.
MOST_STEPS = 60_000


class TooMuch(Exception):  # noqa: N818, RUF100 - it is no error: the answer is "unknown"
    """There are no steps left."""


class Budget:
    """Steps that are left; a part of a budget has a limit of its own, and takes from the whole."""

    __slots__ = ("_whole", "left")

    def __init__(self, steps: int, whole: Budget | None = None) -> None:
        self.left = steps
        self._whole = whole

    def part(self, steps: int = MOST_STEPS) -> Budget:
        """A budget for one comparison out of this one."""
        return Budget(steps, self)

    def add(self, steps: int) -> None:
        """Allow more steps."""
        self.left += steps

    def spend(self, steps: int = 1) -> None:
        """Take some steps; `TooMuch` where none is left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuch
        if self._whole is not None:
            self._whole.spend(steps)
