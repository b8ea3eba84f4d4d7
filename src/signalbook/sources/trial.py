"""Which schema documents of a catalog a registry would refuse, found by writing them into one in memory.

Rule 1: the registry that a load meets judges, so lint and load say the same of formats, references and compatibility.
Rule 2: each resource is judged with the documents of all others there, so neither the order of documents nor another's
fault matters.
Rule 3: what is refused for another reason than its document is not judged here: the other checks tell it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbook.document.model import Model
from signalbook.document.model_read import read_model
from signalbook.errors import RegistryError
from signalbook.registry.incoming import is_id
from signalbook.registry.registry import Registry
from signalbook.sources.documents import Document

__all__ = ["refused_documents"]

_JUDGED = frozenset(
    {"compatibility_unknown", "compatibility_violation", "format_external", "format_unknown", "format_violation"}
)


@dataclass(frozen=True, slots=True)
class _Schema:
    """A resource whose documents claim a format."""

    source: str
    xid: str
    resource: Mapping[str, Any]


def refused_documents(
    documents: Sequence[Document], modelsource: Mapping[str, Any]
) -> Iterator[tuple[str, RegistryError]]:
    """Each refusal of a document, with the source that holds it."""
    found = list(_schemas(documents, read_model(modelsource)))
    if not found:
        return
    with Registry.open(model=modelsource) as registry:
        for schema in found:
            with contextlib.suppress(RegistryError):
                registry.put(f"{schema.xid}?ignore=epoch", _unjudged(schema.resource))
        refused: list[tuple[_Schema, RegistryError]] = []
        while found:
            refused = [(schema, error) for schema in found if (error := _judge(registry, schema)) is not None]
            if len(refused) == len(found):
                break
            found = [schema for schema, _ in refused]  # what they refer to may have its format only now
    yield from ((schema.source, error) for schema, error in refused if error.name in _JUDGED)


def _judge(registry: Registry, schema: _Schema) -> RegistryError | None:
    """Why the registry does not take a resource that it has no format of yet."""
    try:
        with registry.transaction() as tx:
            with contextlib.suppress(RegistryError):
                tx.delete(schema.xid)
            tx.put(f"{schema.xid}?ignore=epoch", schema.resource)
    except RegistryError as error:
        return error
    return None


def _schemas(documents: Sequence[Document], model: Model) -> Iterator[_Schema]:
    for document in documents:
        for plural, group_type in model.groups.items():
            for groupid, group in _entries(document.content.get(plural)):
                for collection, kind in group_type.resources.items():
                    if kind.hasdocument and kind.validateformat:
                        for resourceid, resource in _entries(group.get(collection)):
                            if any("format" in version for version in _versions(resource)):
                                yield _Schema(
                                    document.source, f"/{plural}/{groupid}/{collection}/{resourceid}", resource
                                )


def _entries(value: object) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(value, dict):
        return []
    return [(key, entry) for key, entry in value.items() if isinstance(entry, dict) and is_id(key)]


def _versions(resource: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [resource, *(version for _, version in _entries(resource.get("versions")))]


def _unjudged(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A resource that claims no format, so that nobody looks at its documents."""
    plain = {name: value for name, value in resource.items() if name != "format"}
    if "versions" in resource:
        plain["versions"] = {key: _unjudged(version) for key, version in _entries(resource["versions"])}
    return plain
