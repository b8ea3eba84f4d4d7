"""All that `signalbook lint` finds: unreadable files, what a registry would refuse, what the whole catalog shows.

Rule 1: every finding is yielded, in the order of the files, then of the catalog; a file that cannot be read is one
finding, and the others are checked.
Rule 2: a configuration silences findings by rule and xid, and says how bad a rule's are; nothing else is hidden.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from signalbook.errors import Problem, UsageError
from signalbook.messages.catalog import Catalog
from signalbook.messages.lint import Subjects
from signalbook.messages.lint import lint as lint_definitions
from signalbook.sources.check import Finding, check
from signalbook.sources.documents import Document, UnreadableDocument, read_each

__all__ = ["CONFIG", "Config", "lint"]

CONFIG = ".signalbook-lint.toml"
UNREADABLE = "unreadable_document"
Level = Literal["error", "warning", "note", "off"]


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
        if not isinstance(severities, dict) or not set(severities.values()) <= set(get_args(Level)):
            raise UsageError(f"{source}: a severity is one of {', '.join(get_args(Level))}")
        return cls(tuple(_silence(row, source) for row in given.get("silence", ())), severities)

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings that are left, as bad as the project says."""
        for finding in findings:
            level = self.severities.get(finding.rule, finding.severity)
            if level != "off" and not any(silence.covers(finding) for silence in self.silences):
                yield finding if level == finding.severity else replace(finding, severity=level)


def _silence(row: Any, source: str) -> Silence:
    if not isinstance(row, dict) or row.keys() - {"rule", "xid", "reason"} or not {"rule", "xid"} & row.keys():
        raise UsageError(f"{source}: a [[silence]] has a rule, an xid or both, and perhaps a reason")
    return Silence(**{name: str(value) for name, value in row.items()})


def lint(locations: Sequence[str], model: str = "builtin", seen: Callable[[str], object] = len) -> Iterator[Finding]:
    """Every finding about the catalog that lies at these places; `model` is as `lint --model` says.

    `seen` is told the name of each document that was looked at.
    """
    documents: list[Document] = []
    for location in locations:
        for found in read_each(location):
            seen(found.source)
            if isinstance(found, UnreadableDocument):
                yield Finding(found.source, "error", "/", UNREADABLE, found.reason)
            else:
                documents.append(found)
    yield from check(documents, model)
    yield from whole_catalog(documents)


def whole_catalog(documents: Sequence[Document]) -> Iterator[Finding]:
    """What only the documents together show."""
    sources = _sources(documents)
    catalog = Catalog.from_documents(*(document.content for document in documents))
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
            return schema.message if schema is not None else ""
        # A schema that was read may still not say which of its types a payload is; its check then says so.
        undecided = (one.message for one in schema.check(b"").problems if one.code == "schema_unavailable")
        return next(undecided, "")

    def sample_problem(xid: str) -> str:
        return "; ".join(problem.message for problem in catalog.message(xid).sample().problems)

    endpoints = {xid: endpoint.attributes for xid, endpoint in catalog.entities.endpoints.items()}
    return Subjects(catalog.definitions, endpoints, schema_problem, sample_problem)


def _sources(documents: Sequence[Document]) -> dict[str, str]:
    """The file that each group and resource is in, by xid."""
    found: dict[str, str] = {}
    for document in documents:
        for plural, groups in document.content.items():
            for groupid, group in groups.items() if isinstance(groups, dict) else ():
                found[f"/{plural}/{groupid}"] = document.source
                for name, resources in group.items() if isinstance(group, dict) else ():
                    for resourceid in resources if isinstance(resources, dict) else ():
                        found[f"/{plural}/{groupid}/{name}/{resourceid}"] = document.source
    return found
