"""The values that a message has under one name, where it may have the name many times.

Rule 1: the names of a message are sorted once, however many definitions ask for one of them.
Rule 2: whether one of many values is a certain text is one question, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from signalbook.document.property_types import canonical

__all__ = ["Named", "Several", "texts_of"]

# So few pairs are gone through as fast as they are sorted.
_FEW_PAIRS = 16
_Pairs = Sequence[tuple[str, Any]]


class Several(list[Any]):
    """All values of one name, and their texts."""

    __slots__ = ("_texts",)

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self._texts: dict[str, Any] | None = None

    @property
    def texts(self) -> dict[str, Any]:
        """Each text that is among the values, in their order, with a value that it is the text of."""
        if self._texts is None:
            self._texts = {}
            for value in self:
                text = canonical(value)
                if value.__class__ is str or text not in self._texts:
                    self._texts[text] = value
        return self._texts


def texts_of(values: Sequence[Any]) -> Collection[str]:
    """The texts of values, each once."""
    return values.texts if isinstance(values, Several) else dict.fromkeys(map(canonical, values))


class Named:
    """Reads the values of a name from pairs; what the pairs of one message hold is kept until another's are read."""

    __slots__ = ("_fold", "_last", "_value")

    def __init__(self, value: Callable[[Any], Any] | None = None, fold: Callable[[str], str] | None = None) -> None:
        self._value = value
        self._fold = fold
        # One tuple, so that what another thread reads at the same time is of one message.
        self._last: tuple[_Pairs, dict[str, Several]] = ((), {})

    def __call__(self, pairs: _Pairs, name: str) -> Sequence[Any]:
        """Every value that the pairs have under the name, in their order."""
        fold = self._fold
        if fold is not None:
            name = fold(name)
        if len(pairs) > _FEW_PAIRS:
            return self._sorted(pairs).get(name, ())
        if fold is None:
            found = [value for own, value in pairs if own == name]
        else:
            found = [value for own, value in pairs if fold(own) == name]
        return found if self._value is None else [self._value(value) for value in found]

    def _sorted(self, pairs: _Pairs) -> dict[str, Several]:
        last, names = self._last
        if last is pairs:
            return names
        names = {}
        for own, value in pairs:
            name = own if self._fold is None else self._fold(own)
            names.setdefault(name, Several()).append(value if self._value is None else self._value(value))
        if isinstance(pairs, tuple):  # what cannot change is worth keeping
            self._last = (pairs, names)
        return names
