"""The two kinds of failure, and how text from outside is said.

Rule 1: a wrong *request* raises `RegistryError`; it carries the specification's error name, its subject and its
arguments, and the words are composed from the table in `signalbook.spec.error_types`.
Rule 2: a finding about *data* is a `Problem`, a value that checks yield and callers collect.
Rule 3: text of a catalog, a message or a peer goes to a terminal, a log or a CI runner through `one_line`, so that it
can neither steer them nor look like a line of ours. JSON that went through it is the same data.

    SignalbookError
    ├── RegistryError     a request the specification refuses, by error name
    ├── StoreError        the database cannot be opened, migrated or reached
    └── UsageError        a setting or command-line argument that cannot work
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Problem", "RegistryError", "SignalbookError", "StoreError", "UsageError", "one_line"]

# Control and format characters (bidirectional ones among them), halves of surrogate pairs, line and paragraph ends.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# What a CI runner takes for a command: `::warning::` where a line begins, `##[error]` and `##vso[task]` anywhere.
_COMMAND = re.compile(r"^\s*:(?=:)|#(?=#(?:vso)?\[)", re.IGNORECASE)


def one_line(text: str) -> str:
    r"""The text with every character that is not to be seen, a line's end too, written as JSON escapes it.

    What a CI runner would carry out is broken by an escape, too.

    >>> print(one_line("a\nb\x1b[31m"), one_line("::warning::x"))
    a\nb\u001b[31m \u003a:warning::x
    """
    if not text.isprintable():
        text = "".join(_escape(one) if unicodedata.category(one) in _UNSEEN else one for one in text)
    if "::" in text or "##" in text:
        text = _COMMAND.sub(lambda found: found[0][:-1] + _escape(found[0][-1]), text)
    return text


def _escape(character: str) -> str:
    if character in "\n\r\t":
        return repr(character)[1:-1]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: where, of which kind, and in words; `args` are those of the specification's error `code`."""

    path: str
    code: str
    message: str
    args: Mapping[str, str] = field(default_factory=dict)


class SignalbookError(Exception):
    """Anything this package raises on purpose."""


class StoreError(SignalbookError):
    """The database cannot be opened, migrated or reached."""


class UsageError(SignalbookError):
    """A setting or argument that cannot work, with what to do instead."""


class RegistryError(SignalbookError):
    """A request that the specification refuses: `name` is the error's name in its list."""

    def __init__(self, name: str, subject: str = "", /, *, detail: str = "", **args: object) -> None:
        super().__init__(name, subject)
        self.name = name
        self.subject = subject
        self.detail = detail
        self.args_: dict[str, str] = {key: str(value) for key, value in args.items()}

    def __str__(self) -> str:
        words = ", ".join(f"{key}: {value}" for key, value in self.args_.items())
        return f"{self.name} at {self.subject or '(request)'}" + (f" ({words})" if words else "")
