"""`BadValue`: a value that cannot be written as a payload of a schema."""

from __future__ import annotations

from signalbook.schemas.format import pointer

__all__ = ["BadValue"]


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
