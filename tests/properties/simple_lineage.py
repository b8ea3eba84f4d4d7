"""How versions follow each other: core/model.md 1.0-rc4, `versionmode`, as plainly as it can be said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Versions = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the model says about files."""

    versionmode: str = "manual"
    maxversions: int = 0
    singleversionroot: bool = False
    setversionid: bool = True
    color: bool = True  # whether versions may have this attribute

    def source(self) -> dict[str, Any]:
        """The model: files in dirs, and the same files in boxes."""
        color = {"color": {"type": "string"}} if self.color else {}
        files = {
            "singular": "file", "hasdocument": False, "versionmode": self.versionmode, "maxversions": self.maxversions,
            "singleversionroot": self.singleversionroot, "setversionid": self.setversionid, "attributes": color,
        }  # fmt: skip
        dirs = {"singular": "dir", "resources": {"files": files}}
        return {"groups": {"dirs": dirs, "boxes": {"singular": "box", "ximportresources": ["/dirs/files"]}}}


def in_order(rules: Rules, versions: Versions) -> list[str]:
    """The versionids from old to new by what the mode compares."""

    def place(vid: str) -> tuple[Any, ...]:
        if rules.versionmode == "semver":
            return precedence(vid)
        return (versions[vid]["modifiedat" if rules.versionmode == "modifiedat" else "createdat"], vid.lower())

    return sorted(versions, key=place)


def newest(rules: Rules, versions: Versions) -> str:
    """The newest version of those whose ancestor is known; `manual` looks only at those that are nobody's ancestor."""
    known = {vid: version for vid, version in versions.items() if version["ancestorid"] is not None}
    if rules.versionmode == "manual":
        known = {vid: version for vid, version in known.items() if vid not in parents(known)} or known
    return in_order(rules, known)[-1]


def oldest_first(rules: Rules, versions: Versions) -> list[str]:
    """The versions in the order they go; the text names only roots, so in `manual` the others follow, leaves last."""
    order = in_order(rules, versions)
    if rules.versionmode == "manual":
        named = parents(versions)
        order.sort(key=lambda vid: 0 if versions[vid]["ancestorid"] == vid else 1 if vid in named else 2)
    return order


def parents(versions: Versions) -> set[str]:
    """The versionids that others name as their ancestor."""
    return {version["ancestorid"] for vid, version in versions.items() if version["ancestorid"] != vid}


def lineage_problems(rules: Rules, versions: Versions) -> list[str]:
    """What is wrong with the ancestors at the end of a request."""
    for vid in versions:
        seen, at = {vid}, vid
        while versions[at]["ancestorid"] != at:
            at = versions[at]["ancestorid"]
            if at in seen:
                return ["ancestor_circular_reference"]
            seen.add(at)
    roots = [vid for vid, version in versions.items() if version["ancestorid"] == vid]
    return ["multiple_roots"] if rules.singleversionroot and len(roots) > 1 else []


def precedence(vid: str) -> tuple[Any, ...]:
    """semver.org section 11; missing numbers are 0, and what is no semantic version comes before all others."""
    match = re.fullmatch(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([\w.-]+))?", vid)
    if match is None:
        return (0, vid.lower())
    numbers = tuple(int(number or 0) for number in match.groups()[:3])
    names = (match[4] or "").split(".")
    pre = tuple((0, int(name), "") if name.isdigit() else (1, 0, name) for name in names)
    return (1, *numbers, not match[4], *([pre] if match[4] else []), vid.lower())
