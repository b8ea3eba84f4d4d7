"""What is wrong with a message on paper, in the words of its definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from signalbook.errors import Problem
from signalbook.wire import Message
from signalbook.wire.fields import pointer
from signalbook.wire.http_headers import is_token

__all__ = ["in_definition", "unescaped"]


def in_definition(message: Message, problems: Iterable[Problem]) -> Iterator[tuple[str, Problem]]:
    """Each problem with its path there: a header or user property stands under its name, the payload is the data."""
    for problem in problems:
        field, _, rest = problem.path.removeprefix("/").partition("/")
        place = rest.partition("/")[0]
        pairs = message.get(field)
        if field == "payload":
            yield "/data", problem
        elif isinstance(pairs, tuple) and place.isdecimal() and int(place) < len(pairs):
            name = str(pairs[int(place)][0])
            if is_token(name):
                yield pointer(f"/protocoloptions/{field}", name), replace(problem, message=f"{name} {problem.message}")
            else:  # what is no name cannot be one of a place either
                yield f"/protocoloptions/{field}/{place}", problem
        else:
            yield f"/protocoloptions{problem.path}", replace(problem, message=f"{field} {problem.message}")


def unescaped(step: str) -> str:
    """A step of a JSON Pointer as the name that it stands for."""
    return step.replace("~1", "/").replace("~0", "~")
