"""Payloads generated from a schema, by hypothesis-jsonschema.

Its release 0.23.1 draws objects with a method that Hypothesis dropped in 6.170; where it is missing, it is put back.
"""

from typing import Any

from hypothesis.internal.conjecture.utils import many
from hypothesis_jsonschema import from_schema

__all__ = ["from_schema"]

_STEPS = "_steps_of_json_schema"


def _more(self: Any) -> bool:
    """Tell whether one more element is to be drawn, as `many.more` did."""
    if not hasattr(self, _STEPS):
        self.__enter__()
        setattr(self, _STEPS, iter(self))
    for _ in getattr(self, _STEPS):
        return True
    self.__exit__(None, None, None)
    return False


if not hasattr(many, "more"):
    many.more = _more  # type: ignore[attr-defined]
