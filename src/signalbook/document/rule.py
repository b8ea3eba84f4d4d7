"""A named rule as a value: what it is asked about, and how it answers.

Rule 1: a check takes a `Subject` and yields findings; it reads nothing else and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from signalbook.errors import Problem

__all__ = ["Check", "Finding", "Level", "Path", "Rule", "Severity", "Subject"]

Path = tuple[str | int, ...]
Finding = tuple[Path, str]
Level = Literal["group", "version"]
Severity = Literal["error", "warning"]


def _nothing(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Subject:
    """One entity in canonical spelling, with its owning group and a way to look at others by xid.

    `lookup` gives the attributes of a group, of a resource's default version or of a version, or None. `by_model` gives
    the faults that the entity would have by its model with other attributes. `whole` is a message definition with what
    it has from its bases and its group (`inherited`), and any other entity as it is.
    """

    xid: str
    attrs: Mapping[str, Any]
    group: Mapping[str, Any] = field(default_factory=dict)
    lookup: Callable[[str], Mapping[str, Any] | None] = _nothing
    by_model: Callable[[Mapping[str, Any], str], Iterator[Problem]] | None = None
    inherited: Mapping[str, Any] | None = None

    @property
    def whole(self) -> Mapping[str, Any]:
        """The entity with what it inherits."""
        return self.attrs if self.inherited is None else self.inherited


Check = Callable[[Subject], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `check` runs where the attribute `on` is present ("" is always) and the protocol is one of `protocols`.

    Both are asked of the entity with what it inherits. `reads` names the attributes of the owning group that it looks
    at.
    """

    name: str
    text: str
    check: Check
    domain: str
    level: Level
    on: str = ""
    protocols: tuple[str, ...] = ()
    severity: Severity = "error"
    reads: tuple[str, ...] = ()

    def problem(self, path: Path, words: str) -> Problem:
        """A finding as the specification's error `invalid_attribute`."""
        detail = f"{words} [{self.name}]"
        pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
        name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
        return Problem(pointer, "invalid_attribute", detail, {"name": name, "error_detail": detail})
