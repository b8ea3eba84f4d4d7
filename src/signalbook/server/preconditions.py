"""`If-Match` and `If-None-Match` on writes, and the tags that answers carry: design section 3.

Rule 1: the tag of one entity is `"e<epoch>-<modifiedat>-<view>"`, that of anything larger `"s<change>-<view>"`: a
parent's epoch does not move when a grandchild changes, the name of the latest change does.
Rule 2: a write compares the state, not the view: what a tag begins with, whatever view or content coding it came with.
A bare epoch is taken too.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from signalbook.errors import RegistryError
from signalbook.registry.requests import latest_change
from signalbook.registry.state import ResourceState, Work
from signalbook.registry.targets import Target
from signalbook.server.http import Headers

__all__ = ["check_preconditions", "tag", "view_name"]

# The state that a tag names: a change number, an epoch with its time, or an epoch alone; of any other tag nothing.
_TAG = re.compile(r'"(s[0-9a-f.]+|e[0-9.]+-[0-9T:.-]+Z)-[^"]*"|"([0-9]+)"|"[^"]*"|([0-9]+)')


def view_name(*parts: str) -> str:
    """Return a short name for everything about a view that changes its bytes."""
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def tag(state: str, view: str) -> str:
    """Return an entity tag."""
    return f'"{state}-{view}"'


def check_preconditions(headers: Headers, work: Work, target: Target) -> None:
    """Refuse a write whose condition does not hold."""
    if_match, if_none_match = headers.get("if-match"), headers.get("if-none-match")
    if if_match is None and if_none_match is None:
        return
    states = _states(work, target)
    if if_match is not None and not _meets(if_match, states):
        raise RegistryError("precondition_failed", target.path)
    if if_none_match is not None and _meets(if_none_match, states):
        raise RegistryError("precondition_failed", target.path)


def _meets(header: str, states: set[str]) -> bool:
    """Tell whether one of the tags in a header names one of these states."""
    if header.strip() == "*":
        return bool(states)
    return any(not states.isdisjoint(named) for named in _TAG.findall(header))


def _states(work: Work, target: Target) -> set[str]:
    """Return the names of the state that the addressed entity is in; none where it does not exist."""
    sequence = f"s{latest_change(work.db)}"
    if target.kind in ("registry", "capabilities", "modelsource", "groups"):
        return {sequence, str(work.registry.row.epoch)}
    group = work.group(target.group_type, target.gid)
    if group is None or group.row is None or group.id != target.gid:
        return set()
    if target.kind in ("group", "resources"):
        return {sequence, f"e{group.row.epoch}-{group.row.modifiedat}", str(group.row.epoch)}
    state = work.resource(group, target.resource_type, target.rid)
    if state is None or state.row is None or state.id != target.rid:
        return set()
    return _resource_states(work, state, target, sequence)


def _resource_states(work: Work, state: ResourceState, target: Target, sequence: str) -> set[str]:
    assert state.row is not None
    meta = state.row.epoch
    if target.kind in ("meta", "versions"):
        return {sequence, str(meta)}
    if state.xref is not None:
        return {sequence}
    versionid = target.vid if target.kind == "version" else state.default
    version = work.complete(state).get(versionid or "")
    if version is None or version.row is None:
        return set()
    return {sequence, f"e{meta}.{version.row.epoch}-{version.row.modifiedat}", str(version.row.epoch)}
