"""All that `signalbook lint` finds: unreadable files, what a registry would refuse, what the whole catalog shows.

Rule 1: every finding is yielded, in the order of the files, then of the catalog; a file that cannot be read is one
finding, and the others are checked.
Rule 2: a configuration silences findings by rule and xid, and says how bad a rule's are; nothing else is hidden.
Rule 3: a document of an older dialect is checked as a load would write it, each of its versions; what it loses on the
way is a finding. The whole catalog is what its newest versions make.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from signalbook.document.dialects import check as check_dialect
from signalbook.document.dialects import level_of, relabelled, respellings
from signalbook.document.rules import RULES as NAMED_RULES
from signalbook.errors import Problem, RegistryError, UsageError
from signalbook.messages.catalog import Catalog
from signalbook.messages.lint import RULES as LINT_RULES
from signalbook.messages.lint import WHOLE, Subjects
from signalbook.messages.lint import lint as lint_definitions
from signalbook.messages.schema_library import UncheckedSchema
from signalbook.sources.check import Finding, check
from signalbook.sources.dialects import Raw, in_canonical, read_each, recognise
from signalbook.sources.documents import Document, UnreadableDocument
from signalbook.spec.error_types import ERROR_TYPES, title

__all__ = ["CONFIG", "NOTED", "Config", "lint", "noted"]

CONFIG = ".signalbook-lint.toml"
UNREADABLE = "unreadable_document"
TWICE = "defined_twice"
Level = Literal["error", "warning", "note", "off"]
# What reading a document tells (`document.dialects`); what a server gives anew is no news.
NOTED: Mapping[str, Literal["error", "warning", "note"]] = {
    "invalid": "error",
    "changed": "warning",
    "lost": "warning",
    "held": "note",
    "respelled": "note",
}


@dataclass(frozen=True, slots=True)
class Silence:
    """Findings that are known and accepted: of a rule, about xids; both may be patterns."""

    rule: str = "*"
    xid: str = "*"
    reason: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is meant."""
        return fnmatchcase(finding.rule, self.rule) and fnmatchcase(finding.xid, self.xid)


@dataclass(frozen=True, slots=True)
class Config:
    """What a project has decided about findings."""

    silences: tuple[Silence, ...] = ()
    severities: Mapping[str, Level] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | None) -> Config:
        """The configuration in a file; without one, that of the current folder where it has one."""
        found = path or Path(CONFIG)
        try:
            return cls.from_dict(tomllib.loads(found.read_text(encoding="utf-8")), str(found))
        except FileNotFoundError:
            if path is None:
                return cls()
            raise UsageError(f"there is no file '{path}'") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"'{found}' is not TOML: {error}") from None

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], source: str = "the configuration") -> Config:
        """The configuration that a TOML document means."""
        unknown = given.keys() - {"silence", "severity"}
        if unknown:
            raise UsageError(f"{source} has '{min(unknown)}'; it may have [[silence]] and [severity]")
        severities = given.get("severity", {})
        if not isinstance(severities, dict) or not all(level in get_args(Level) for level in severities.values()):
            raise UsageError(f"{source}: a severity is one of {', '.join(get_args(Level))}")
        for rule in severities:
            _check_rule(rule, source)
        rows = given.get("silence", [])
        return cls(tuple(_silence(row, source) for row in (rows if isinstance(rows, list) else [rows])), severities)

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings that are left, as bad as the project says."""
        for finding in findings:
            level = self.severities.get(finding.rule, finding.severity)
            if level != "off" and not any(silence.covers(finding) for silence in self.silences):
                yield finding if level == finding.severity else replace(finding, severity=level)


def _silence(row: Any, source: str) -> Silence:
    if not isinstance(row, dict) or row.keys() - {"rule", "xid", "reason"} or not {"rule", "xid"} & row.keys():
        raise UsageError(f"{source}: a [[silence]] has a rule, an xid or both, and perhaps a reason")
    if not all(isinstance(value, str) for value in row.values()):
        raise UsageError(f"{source}: what a [[silence]] says is text, in quotes")
    _check_rule(row.get("rule", "*"), source)
    return Silence(**row)


def _check_rule(pattern: str, source: str) -> None:
    """Refuse the name of a rule, or a pattern of names, that no finding will ever have."""
    if not any(fnmatchcase(rule, pattern) for rule in _RULES):
        near = get_close_matches(pattern, _RULES, 1)
        hint = f"did you mean '{near[0]}'?" if near else "docs/reference/lint-rules.md has the names"
        raise UsageError(f"{source}: there is no rule '{pattern}'; {hint}")


_RULES = frozenset(
    {UNREADABLE, TWICE, "dangling_reference", "deprecated_reference", *NOTED, *ERROR_TYPES, *WHOLE}
    | {rule.name for rule in LINT_RULES}
    | {rule.name for rule in NAMED_RULES}
)


def lint(
    locations: Sequence[str],
    model: str = "builtin",
    seen: Callable[[Raw | UnreadableDocument], object] = lambda _: None,
    *,
    group: str = "",
) -> Iterator[Finding]:
    """Every finding about the catalog that lies at these places; `model` is as `lint --model` says.

    `seen` is given each document that was looked at, as it was read. `group` is for definitions that have none.
    """
    documents: list[Document] = []
    newest: list[Document] = []
    for location in locations:
        for found in read_each(location):
            seen(found)
            if isinstance(found, UnreadableDocument):
                yield Finding(found.source, "error", "/", UNREADABLE, found.reason)
                continue
            try:
                versions, notes = _documents(found, model, group)
            except UsageError as error:
                yield Finding(found.source, "error", "/", UNREADABLE, str(error))
            except RegistryError as error:
                yield Finding(found.source, "error", error.subject or "/", error.name, title(error), error.args_)
            else:
                documents.extend(versions)
                newest.append(versions[-1])
                yield from noted(versions[-1], notes)
    yield from _once(check(documents, model))
    yield from _twice(newest)
    yield from whole_catalog(newest)


def _documents(raw: Raw, model: str, group: str) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """What a registry takes for a document; by another model than the built-in one, which dialects have not, itself."""
    if model != "builtin" and isinstance(raw.value, dict):
        return (Document(raw.source, raw.value),), ()
    found = recognise(raw, any_model=True)
    documents, notes = in_canonical(raw, found.dialect, group=group)
    # by the text of its own dialect; what is of today is checked by its model and rules alone
    wrong = check_dialect(raw.value, found.dialect) if found.dialect.spec is None else ()
    spelled = respellings(raw.value, found.dialect, level_of(raw.value)) if found.dialect.modern else ()
    return documents, (*wrong, *relabelled(found), *notes, *spelled)


def noted(document: Document, notes: Sequence[Problem]) -> Iterator[Finding]:
    """What is wrong by an older dialect or did not come along from it, at the entity where that is."""
    known = _sources([document])
    for note in notes:
        if note.code in NOTED:
            steps = note.path.split("/")
            deepest = (
                len(steps) if steps[3:4] in (["messages"], ["schemas"]) else 3
            )  # a group's own members are no entity
            places = ("/".join(steps[:length]) for length in range(deepest, 1, -1))
            xid = next((place for place in places if place in known), "/")
            words = f"{note.path or '/'} {note.message}."
            yield Finding(document.source, NOTED[note.code], xid, note.code, words, {"path": note.path})


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings without those that an older version of a definition, or its group, has told already."""
    told: set[tuple[str, ...]] = set()
    for finding in findings:
        mark = (finding.source, finding.severity, finding.xid, finding.code, finding.message)
        if mark not in told:
            told.add(mark)
            yield finding


def _twice(documents: Sequence[Document]) -> Iterator[Finding]:
    """Resources that two documents define differently: only the last would be kept."""
    first: dict[str, tuple[str, Any]] = {}
    for document in documents:
        for xid, resource in _resources(document):
            source, before = first.setdefault(xid, (document.source, resource))
            if _contradict(before, resource):
                words = f"{xid} is defined here and, differently, in {source}; only the last definition is kept."
                yield Finding(document.source, "warning", xid, TWICE, words, {"other": source})


def _contradict(before: Any, after: Any) -> bool:
    """Whether two definitions of one resource cannot both be kept; each may have other versions."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False  # no resource, but a label of a group
    one, other = before.get("versions"), after.get("versions")
    if isinstance(one, dict) and isinstance(other, dict):
        return any(one[version] != other[version] for version in one.keys() & other.keys())
    return before != after


def whole_catalog(documents: Sequence[Document]) -> Iterator[Finding]:
    """What only the documents together show."""
    sources = _sources(documents)
    catalog = Catalog.from_canonical(*(document.content for document in documents))
    for finding in lint_definitions(_subjects(catalog)):
        place = finding.xid + (f" at {finding.path}" if finding.path else "")
        words = f"{place}: {finding.message}."
        source = sources.get(finding.xid, documents[0].source)
        args = {"path": finding.path}
        yield Finding(source, finding.severity, finding.xid, finding.rule, words, args, finding.rule)


def _subjects(catalog: Catalog) -> Subjects:
    def schema_problem(xid: str) -> str:
        schema = catalog.schema(xid)
        if schema is None or isinstance(schema, Problem):
            return schema.message if schema is not None and not schema_unchecked(xid) else ""
        # A schema that was read may still not say which of its types a payload is; its check then says so.
        undecided = (one.message for one in schema.check(b"").problems if one.code == "schema_unavailable")
        return next(undecided, "")

    def schema_unchecked(xid: str) -> str:
        payload = catalog.compiled(xid).payload
        return (
            payload.schema.message if isinstance(payload.schema, UncheckedSchema) and payload.may_be_unchecked else ""
        )

    def sample_problem(xid: str) -> str:
        return "; ".join(problem.message for problem in catalog.message(xid).sample().problems)

    endpoints = {xid: endpoint.attributes for xid, endpoint in catalog.entities.endpoints.items()}
    return Subjects(catalog.definitions, endpoints, schema_problem, sample_problem, schema_unchecked)


def _sources(documents: Sequence[Document]) -> dict[str, str]:
    """The file that each group and resource is in, by xid."""
    found: dict[str, str] = {}
    for document in documents:
        for xid, _ in _groups(document):
            found[xid] = document.source
        for xid, _ in _resources(document):
            found[xid] = document.source
    return found


def _groups(document: Document) -> Iterator[tuple[str, Any]]:
    for plural, groups in document.content.items():
        for groupid, group in groups.items() if isinstance(groups, dict) else ():
            yield f"/{plural}/{groupid}", group


def _resources(document: Document) -> Iterator[tuple[str, Any]]:
    """What may be a resource: the members of the maps in a group, labels among them."""
    for place, group in _groups(document):
        for plural, resources in group.items() if isinstance(group, dict) else ():
            for resourceid, resource in resources.items() if isinstance(resources, dict) else ():
                yield f"{place}/{plural}/{resourceid}", resource
