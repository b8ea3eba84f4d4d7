"""The two kinds of failure, and nothing else.

Rule 1: a wrong *request* raises `RegistryError`; it carries the specification's error name, its subject and its
arguments, and the words are composed from the table in `signalbook.spec.error_types`.
Rule 2: a finding about *data* is a `Problem`, a value that checks yield and callers collect.

    SignalbookError
    ├── RegistryError     a request the specification refuses, by error name
    ├── StoreError        the database cannot be opened, migrated or reached
    └── UsageError        a setting or command-line argument that cannot work
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Problem", "RegistryError", "SignalbookError", "StoreError", "UsageError"]


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
