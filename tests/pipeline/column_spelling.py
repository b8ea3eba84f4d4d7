"""How names are spelled as columns, as `tables.md` says; it shares no code with the product."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["columns"]


def columns(names: Iterable[str]) -> dict[str, str]:
    """The column of each name."""
    names = list(names)
    return {name: _spelled(name, [one for one in names if one != name]) for name in names}


def _spelled(name: str, others: list[str]) -> str:
    # `_additional` and `_extensions` are columns of ours.
    if name.lower() in ("_additional", "_extensions"):
        return f"~5f{name[1:]}"
    clashes = name != name.lower() and name.lower() in {one.lower() for one in others}
    return "".join(_bytes(one) if not _stays(one) or (clashes and one.isupper()) else one for one in name)


def _stays(one: str) -> bool:
    return one.isalnum() or one in "_-"


def _bytes(one: str) -> str:
    return "".join(f"~{byte:02x}" for byte in one.encode())
