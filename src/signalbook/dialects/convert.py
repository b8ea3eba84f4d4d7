"""Catalog documents in every dialect since 2022: recognised, read into one form, written out of it.

Rule 1: a dialect is a value of `signalbook.spec.dialects`; nothing here asks which one it has.
Rule 2: a conversion says what it did: each note is a `Problem` whose code is `held`, `lost`, `changed`, `assigned` or
`respelled`.
Rule 3: what the text of a document's own dialect forbids is reported beside the conversion, as `invalid`.
Rule 4: whole, a document of today's specification is taken as it stands, and any other is read into the canonical form;
a definition of 0.1 with older versions makes several documents, the oldest first, which are its history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from signalbook.dialects.catalog01_documents import read_catalog, read_definition, write_catalog, write_lone
from signalbook.dialects.checks import check
from signalbook.dialects.detect import Detection, ForeignDocument, detect, level_of, relabelled
from signalbook.dialects.registry_documents import (
    filled_formats,
    meaning,
    overrides,
    read_entity,
    read_registry,
    refuse,
    respellings,
    rewritten,
    write_entity,
    write_registry,
)
from signalbook.errors import Problem, UsageError
from signalbook.jsontext import Json
from signalbook.spec.dialects import Dialect, DialectTable
from signalbook.spec.dialects.dialect import CANONICAL

__all__ = [
    "Conversion",
    "Detection",
    "ForeignDocument",
    "Reading",
    "check",
    "convert",
    "detect",
    "is_lone",
    "level_of",
    "meaning",
    "read",
    "relabelled",
    "respellings",
    "whole",
    "write",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """A document in the canonical form: the level of what it holds, and the notes of the way."""

    level: str
    content: Json
    notes: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversion:
    """A document in another dialect, the notes of the way, how the original was recognised, and what is wrong in it."""

    content: Any
    notes: tuple[Problem, ...]
    source: Detection
    problems: tuple[Problem, ...] = ()


def read(document: Any, dialect: Dialect, level: str = "") -> Reading:
    """A document of a dialect in the canonical form; raises `RegistryError` where it cannot be one.

    `level` says what the document holds, where that is known and need not be found.
    """
    notes: list[Problem] = []
    level, content = _READERS[dialect.form](document, dialect, notes, level)
    if dialect.overrides:
        notes.extend(_named(note, dialect) for note in (*overrides(content), *filled_formats(content)))
    return Reading(level, content, tuple(notes))


def _named(note: Problem, dialect: Dialect) -> Problem:
    """A note about an attribute of a message, by the name that the dialect has for it."""
    place, _, name = note.path.rpartition("/")
    table = dialect.tables.get("message", DialectTable())
    return replace(note, path=f"{place}/{next((row.there for row in table.rows if row.here == name), name)}")


def write(reading: Reading, dialect: Dialect) -> tuple[Any, tuple[Problem, ...]]:
    """What was read, in a dialect that can be written, and the notes of the way."""
    notes: list[Problem] = []
    return _WRITERS[dialect.form](reading, dialect, notes), tuple(notes)


def convert(document: Any, to: Dialect, source: Dialect | Detection | None = None) -> Conversion:
    """A document in another dialect; `source` is its own, recognised where it is not given."""
    found = detect(document) if source is None else source
    found = found if isinstance(found, Detection) else Detection(found, "", "")
    reading = read(document, found.dialect)
    content, notes = write(reading, to)
    wrong = tuple(check(document, found.dialect, reading.level))
    spelled = _spelled(document, found.dialect, reading, content, to) if found.dialect.modern else ()
    against = () if wrong else tuple(check(content, to, reading.level))
    ruled = (Problem(one.path, "changed", f"is against the rules of {to.name}: {one.message}") for one in against)
    return Conversion(content, (*relabelled(found), *reading.notes, *spelled, *notes, *ruled), found, wrong)


def _spelled(document: Json, dialect: Dialect, reading: Reading, content: Any, to: Dialect) -> Iterator[Problem]:
    """A note for each respelling on the way of a document of 1.0.

    In another version of 1.0 that is all that differs; an older dialect has other names for everything, so there it is
    what the document does not spell as its own text does.
    """
    if to.spec is not None:
        return rewritten(document, content, reading.notes)
    return respellings(document, dialect, reading.level, verb="is read")


def is_lone(document: Any, dialect: Dialect) -> bool:
    """Whether a document is one definition by itself, without a group."""
    if not isinstance(document, dict):
        return False
    if dialect.form == "catalog":
        return "definition" in document or "versions" in document
    return level_of(document) == "message"


def _read_maps(document: Any, dialect: Dialect, notes: list[Problem], level: str) -> tuple[str, Json]:
    if not isinstance(document, dict):
        raise refuse("", "document", "must be an object")
    level = level or level_of(document)
    if level == "registry":
        return level, read_registry(document, dialect, notes)
    return level, read_entity(document, level, dialect, notes)


def _read_lists(document: Any, dialect: Dialect, notes: list[Problem], level: str) -> tuple[str, Json]:
    if is_lone(document, dialect):
        return "message", read_definition(document, dialect, notes)
    return "registry", read_catalog(document, dialect, notes)


def _write_maps(reading: Reading, dialect: Dialect, notes: list[Problem]) -> Any:
    if reading.level == "registry":
        return write_registry(reading.content, dialect, notes)
    return write_entity(reading.content, reading.level, dialect, notes)


def _write_lists(reading: Reading, dialect: Dialect, notes: list[Problem]) -> Any:
    content = reading.content
    if reading.level == "registry":
        return write_catalog(content, dialect, notes)
    if reading.level == "messagegroup":
        return write_catalog({"messagegroups": {str(content.get("messagegroupid", "group")): content}}, dialect, notes)
    if reading.level == "message":
        return write_lone(str(content.get("messageid", "")), content, dialect, notes)
    notes.append(Problem("", "lost", f"a {reading.level} has no place in a catalog of {dialect.label}"))
    return []


_READERS: Mapping[str, Callable[[Any, Dialect, list[Problem], str], tuple[str, Json]]] = {
    "registry": _read_maps,
    "catalog": _read_lists,
}
_WRITERS: Mapping[str, Callable[[Reading, Dialect, list[Problem]], Any]] = {
    "registry": _write_maps,
    "catalog": _write_lists,
}


# --- whole documents --------------------------------------------------------------------------------------------------

_PLURALS = {level: plural for plural, (level, _) in CANONICAL.items()}


def whole(document: Any, dialect: Dialect, group: str = "") -> tuple[tuple[Json, ...], tuple[Problem, ...]]:
    """The registry documents that a document makes, one after the other, and the notes of the way.

    `group` is for a lone definition, which has none. Raises `UsageError` where there is no place for what it holds.
    """
    if not isinstance(document, dict) and not (isinstance(document, list) and dialect.form == "catalog"):
        raise UsageError("is not a JSON object, which a catalog document has to be")
    if isinstance(document, dict) and dialect.spec is not None and level_of(document) == "registry":
        return (document,), ()
    reading = read(document, dialect)
    placed = _placed(reading, group)
    return tuple(_rounds(placed)) if dialect.form == "catalog" else (placed,), reading.notes


def _placed(reading: Reading, group: str) -> Json:
    """A registry document with what was read in its place."""
    content = reading.content
    if reading.level == "registry":
        return content
    plural = _PLURALS.get(reading.level)
    if plural is not None:
        return {plural: {_id(content, reading.level): content}}
    if not group:
        raise UsageError("holds one definition and no group; put it into a group, or name its group with --group")
    selectors = {name: content[name] for name in ("envelope", "protocol") if name in content}
    return {"messagegroups": {group: {**selectors, "messages": {_id(content, "message"): content}}}}


def _id(content: Json, level: str) -> str:
    found = content.get(f"{level}id")
    if not isinstance(found, str) or not found:
        raise UsageError(f"holds a {level} without an id, so there is no place for it")
    return found


def _rounds(content: Json) -> Iterator[Json]:
    """A document of 0.1 once for each version that a message of it has, the newest last."""
    groups = content.get("messagegroups") or {}
    most = max((len(_line(message)) for group in groups.values() for message in _messages(group)), default=1)
    for number in range(most):
        rest = content if number == most - 1 else {}
        turned = {key: _turn(group, number - most) for key, group in groups.items()}
        yield {**rest, **({"messagegroups": turned} if groups else {})}


def _messages(group: Json) -> list[Json]:
    return list((group.get("messages") or {}).values())


def _line(message: Json) -> list[Json]:
    versions = message.get("versions")
    return list(versions.values()) if isinstance(versions, dict) and len(versions) > 1 else [message]


def _turn(group: Json, place: int) -> Json:
    """A group with that version of each message, counted from the newest; those that have none so old stay out."""
    messages = {
        key: {name: value for name, value in _line(message)[place].items() if name not in ("versionid", "versions")}
        for key, message in (group.get("messages") or {}).items()
        if -place <= len(_line(message))
    }
    return {**group, "messages": messages}
