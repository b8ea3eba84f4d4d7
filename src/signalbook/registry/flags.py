"""Request flags: the query string, read once.

Rule 1: only flags that the registry has switched on are read; every other parameter is ignored (FLAGS-10).
Rule 2: nothing here knows the model or the entity: paths, filters and versions stay text until the module that owns
them reads them.
Rule 3: most requests have no query, and cost nothing: they share `Flags.EMPTY`.

core/spec.md 1.0-rc4 "Request Flags" and core/http.md "Request Flags / Query Parameters".
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import unquote_plus

from signalbook.errors import RegistryError

__all__ = ["BOOLEANS", "FLAGS", "IGNORES", "PAGING", "Flags", "epoch_value", "parse_flags"]

_BOOLEAN_FLAGS = frozenset({"binary", "collections", "doc"})
_LIST_FLAGS = frozenset({"filter", "ignore", "inline"})
FLAGS: frozenset[str] = _BOOLEAN_FLAGS | _LIST_FLAGS | {"epoch", "setdefaultversionid", "sort", "specversion"}
PAGING: frozenset[str] = frozenset({"limit", "page"})
IGNORES: frozenset[str] = frozenset(
    {"capabilities", "defaultversionid", "defaultversionsticky", "epoch", "id", "modelsource", "readonly"}
)
BOOLEANS: Mapping[str, bool] = {"": True, "true": True, "false": False}

_MAX_UINT64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Flags:
    """What a request asks for beside its path; `inline`, `filters` and `sort` are still text."""

    EMPTY: ClassVar[Flags]

    inline: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    sort: str | None = None
    doc: bool = False
    collections: bool = False
    binary: bool = False
    epoch: str | None = None
    ignore: frozenset[str] = field(default_factory=frozenset)
    setdefaultversionid: str | None = None
    specversion: str | None = None
    limit: int | None = None
    page: str | None = None
    raw: str = ""

    def as_export(self, available: Container[str]) -> Flags:
        """The flags of `GET /export`: document view with everything inlined, unless `inline` says what (FLAGS-9)."""
        everything = ("*", *(name for name in ("capabilities", "modelsource") if name in available))
        return replace(self, doc=True, inline=self.inline or everything)


Flags.EMPTY = Flags()


def parse_flags(
    query: str, enabled: frozenset[str] = FLAGS | PAGING, *, path: str = "/", ignores: frozenset[str] = IGNORES
) -> Flags:
    """The flags in `query` that are among `enabled`; `path` and `query` make the subject of an error."""
    if not query:
        return Flags.EMPTY
    given: dict[str, list[str]] = {}
    for part in query.split("&"):
        name, _, text = part.partition("=")
        if name in enabled:
            given.setdefault(name, []).append(_decoded(text))
    fields: dict[str, Any] = {"raw": query}
    for name, values in given.items():
        if name in _LIST_FLAGS:
            fields["filters" if name == "filter" else name] = tuple(values)
        elif name in _BOOLEAN_FLAGS:
            fields[name] = _boolean(name, values, path)
        elif len(values) > 1:
            raise RegistryError("bad_flag", path, flag=name)
        else:
            fields[name] = values[0]
    return Flags(**_checked(fields, path, f"{path}?{query}", ignores))


def _decoded(text: str) -> str:
    return unquote_plus(text) if "%" in text or "+" in text else text


def _boolean(name: str, values: list[str], path: str) -> bool:
    on = {BOOLEANS.get(value) for value in values}
    if len(on) != 1 or None in on:
        raise RegistryError("bad_flag", path, flag=name)
    return True in on


def _checked(fields: dict[str, Any], path: str, address: str, ignores: frozenset[str]) -> dict[str, Any]:
    """`fields` with the values that need no model read and checked."""
    if "ignore" in fields:
        fields["ignore"] = _ignored(fields["ignore"], address, ignores)
    if fields.get("setdefaultversionid") == "":
        raise RegistryError("bad_defaultversionid", address, value='""', error_detail="value must not be empty")
    if "limit" in fields:
        fields["limit"] = _limit(fields["limit"], path)
    if fields.get("collections"):  # "MUST implicitly turn on inlining with a value of `*`"
        fields["inline"] = (*fields.get("inline", ()), "*")
    return fields


def _ignored(values: tuple[str, ...], address: str, ignores: frozenset[str]) -> frozenset[str]:
    """What to ignore: no value, an empty one and `*` mean everything the registry lets a client ignore (FLAGS-6)."""
    names: set[str] = set()
    for value in values:
        for part in value.split(","):
            name = part.strip().lower()
            if name == "*" or not value:
                names |= ignores
            elif name and name not in ignores:
                allowed = ", ".join(sorted(ignores)) or "none"
                raise RegistryError(
                    "bad_ignore", address, value=part.strip(), error_detail=f"not one of the allowed values: {allowed}"
                )
            elif name:
                names.add(name)
    return frozenset(names)


def _limit(text: str, path: str) -> int:
    """The page size: an unsigned 64-bit integer above zero (PAGE-2)."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
    if not 0 < number <= _MAX_UINT64:
        detail = f'value ({text[:40]}) of "limit" must be an integer above zero'
        raise RegistryError("bad_request", path, error_detail=detail)
    return number


def epoch_value(text: str, subject: str) -> int:
    """The number that the `epoch` flag holds; `subject` is the entity whose epoch it is."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise RegistryError(
            "invalid_attribute", subject, name="epoch", error_detail=f"value ({text}) must be a uinteger"
        )
    return int(text)
