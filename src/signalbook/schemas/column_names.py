"""Column names that Delta, Parquet and Spark take, made from names that formats allow; the same rule for each format.

Rule 1: letters (of any script), digits, `_` and `-` stay; each byte of anything else, and `~`, becomes `~` and two hex
digits. The empty name is `~`.
Rule 2: Spark compares column names without case. Of names that differ only in case the one in lower case stays as it
is; in each other one, every capital is escaped as well.
Rule 3: a name that the table itself uses there has its first character escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

__all__ = ["column_names"]


def column_names(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """The column of each name, all different without regard to case; `reserved` names are in lower case.

    >>> column_names(["id", "ID", "a b", "_more", ""], reserved=["_more"])
    {'id': 'id', 'ID': '~49~44', 'a b': 'a~20b', '_more': '~5fmore', '': '~'}
    """
    plain = {name: _escaped(name) for name in names}
    for name, column in plain.items():
        if column.lower() in reserved:
            plain[name] = _hex(name[0]) + column[1:]
    often = Counter(column.lower() for column in plain.values())
    return {
        name: column if often[column.lower()] == 1 or column == column.lower() else _without_capitals(column)
        for name, column in plain.items()
    }


def _escaped(name: str) -> str:
    return "".join(one if one.isalnum() or one in "_-" else _hex(one) for one in name) or "~"


def _without_capitals(column: str) -> str:
    return "".join(one if one == one.lower() else _hex(one) for one in column)


def _hex(one: str) -> str:
    return "".join(f"~{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))
