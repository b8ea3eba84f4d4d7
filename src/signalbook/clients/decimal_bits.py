"""Decimal floating-point numbers as AMQP has them: IEEE 754-2008, section 3.5.2, binary integer significand.

Rule: a number keeps its digits and its exponent, so that 1.50 stays 1.50; what does not fit is refused, not rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """One width: its bits, those of the exponent, and what is subtracted from the exponent."""

    width: int
    exponent_bits: int
    bias: int
    digits: int

    def read(self, bits: int) -> str:
        """The number's text; raises ValueError for an infinity and for what is no number."""
        sign = bits >> (self.width - 1)
        rest = bits & ((1 << (self.width - 1)) - 1)
        low = self.width - 1 - self.exponent_bits
        if rest >> (self.width - 3) != 0b11:
            exponent, significand = rest >> low, rest & ((1 << low) - 1)
        else:
            if rest >> (self.width - 5) == 0b1111:
                raise ValueError("is an infinity or no number")
            exponent = (rest >> (low - 2)) & ((1 << self.exponent_bits) - 1)
            significand = (0b100 << (low - 2)) | (rest & ((1 << (low - 2)) - 1))
        # Section 3.5.2: a significand beyond the digits of the format is a zero.
        significand = significand if significand < 10**self.digits else 0
        return str(Decimal((sign, tuple(map(int, str(significand))), exponent - self.bias)))

    def write(self, text: str) -> int:
        """The bits of a number; raises ValueError where it does not fit."""
        try:
            sign, figures, exponent = Decimal(text).as_tuple()
        except InvalidOperation:
            raise ValueError("is no decimal number") from None
        biased = -1 if isinstance(exponent, str) else exponent + self.bias  # an infinity has a letter there
        if len(figures) > self.digits or not 0 <= biased < 3 << (self.exponent_bits - 2):
            raise ValueError(f"has more than {self.digits} digits, or an exponent out of range")
        significand = int("".join(map(str, figures)))
        low = self.width - 1 - self.exponent_bits
        if significand < 1 << low:
            rest = (biased << low) | significand
        else:
            rest = (0b11 << (self.width - 3)) | (biased << (low - 2)) | (significand & ((1 << (low - 2)) - 1))
        return (sign << (self.width - 1)) | rest


FORMATS: Mapping[str, Format] = {
    "decimal32": Format(32, 8, 101, 7),
    "decimal64": Format(64, 10, 398, 16),
    "decimal128": Format(128, 14, 6176, 34),
}
