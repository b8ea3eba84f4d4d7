"""How an entity of an older dialect was written, where the way there and back would write it otherwise.

Rule 1: what differs is a merge patch (RFC 7396) in the label `PREFIX.written`: `HTTP/2` where the dialect writes
`HTTP/1.1`, `a, b` where it writes `a,b`. Nothing there says anything of its own.
Rule 2: it is shown as long as it means what the entity says now; once somebody changed that, it is shown no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import orjson

from signalbook.document.dialects.meaning import meaning
from signalbook.document.dialects.rows import MAX_LABEL, parsed
from signalbook.spec.dialects.dialect import Dialect

__all__ = ["as_it_came", "keep_as_it_came"]

Json = dict[str, Any]
Read = Callable[[Json], Json]


def keep_as_it_came(given: Json, shown: Json, found: Json, dialect: Dialect, names: Collection[str] = ()) -> bool:
    """Keep with `found`, which was read from `given`, what of it is shown otherwise; whether there is room for it.

    `names` are the members of which this is kept; all of them where there are none.
    """
    patch = _patch(shown, {name: value for name, value in given.items() if value is not None})
    if names:
        patch = {name: value for name, value in patch.items() if name in names}
    if not patch:
        return True
    text = orjson.dumps(patch, option=orjson.OPT_SORT_KEYS).decode()
    if len(text.encode()) + len(_label(dialect)) > MAX_LABEL:
        return False
    labels = found.get("labels")
    if labels is not None and not isinstance(labels, dict):
        return True
    found["labels"] = {**(labels or {}), _label(dialect): text}
    return True


def as_it_came(source: Json, dialect: Dialect, write: Callable[[Json], Json], read: Read) -> Json:
    """What `write` makes of an entity, as it was written once where that reads alike."""
    labels = source.get("labels")
    if not isinstance(labels, dict) or _label(dialect) not in labels:
        return write(source)
    patch = parsed(labels[_label(dialect)])
    rest = {name: value for name, value in labels.items() if name != _label(dialect)}
    plain = {name: value for name, value in source.items() if name != "labels"} | ({"labels": rest} if rest else {})
    shown = write(plain)
    if not isinstance(patch, dict):
        return shown
    told = meaning(read(shown))
    patched: Json = _patched(shown, patch)
    for candidate in (_without_held(patched, labels), patched):
        if meaning(read(candidate)) == told:
            return candidate
    return shown


def _without_held(patched: Json, given: Json) -> Json:
    """An entity without the labels for what it had no room for as it was shown, and may say itself once patched."""
    labels = patched.get("labels")
    if not isinstance(labels, dict):
        return patched
    kept = {name: value for name, value in labels.items() if name in given or not name.startswith("1.0.")}
    return {name: value for name, value in patched.items() if name != "labels"} | ({"labels": kept} if kept else {})


def _label(dialect: Dialect) -> str:
    return f"{dialect.prefix}.written"


def _patch(before: Json, after: Json) -> Json:
    """The merge patch that makes the one of the other."""
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        known = before.get(name)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = _patch(known, value)
            if inner:
                patch[name] = inner
        elif (name not in before or known != value or type(known) is not type(value)) and not _has_null(value):
            patch[name] = value
    return patch


def _has_null(value: Any) -> bool:
    """Whether a value says somewhere that something is not there, which a patch cannot add."""
    if isinstance(value, dict):
        return any(_has_null(member) for member in value.values())
    return value is None


def _patched(before: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _patched(found.get(name), value)
    return found
