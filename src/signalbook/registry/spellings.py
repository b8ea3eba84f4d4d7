"""The spelling of each type of a model: what its documents' names and shapes are inside, and for a client.

Rule: a type's spelling follows from its `modelcompatiblewith`, less the names that its model declares itself. Members
of `deprecated`, which groups and metas of every type have, are named as the version of the request names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from signalbook.document.model import GroupType, ResourceType
from signalbook.document.spelling import Spelling, spelling_for
from signalbook.errors import RegistryError
from signalbook.spec.protocols import find_protocol
from signalbook.spec.versions import SpecVersion

__all__ = ["canonical", "canonical_members", "patched", "read_request", "spelled_error", "spelling_of"]


@lru_cache(maxsize=128)  # types of models that are gone fall out
def spelling_of(kind: GroupType | ResourceType) -> Spelling:
    """Return the spelling of a type."""
    return spelling_for(kind.modelcompatiblewith, kind.attributes.keys(), group=isinstance(kind, GroupType))


def canonical(kind: GroupType | ResourceType, attrs: Mapping[str, Any], subject: str = "") -> Mapping[str, Any]:
    """Return attributes of an entity of this type with every name and shape in canonical form."""
    return spelling_of(kind).to_canonical(attrs, subject)


def read_request(
    kind: GroupType | ResourceType, attrs: Mapping[str, Any], subject: str, *, patch: bool
) -> Mapping[str, Any]:
    """Return what a request says of an entity: canonical, but for shapes of a PATCH, which is not the whole of it."""
    spelling = spelling_of(kind)
    return spelling.named(attrs, subject) if patch else spelling.to_canonical(attrs, subject)


def patched(
    kind: GroupType | ResourceType, stored: Mapping[str, Any], given: Mapping[str, Any], spec: SpecVersion, subject: str
) -> Mapping[str, Any]:
    """Return what is stored of an entity, with what a PATCH says of it laid over, in canonical form.

    Options whose protocol goes are first as a client of `spec` reads them: their canonical names are that protocol's.
    """
    spelling, whole = spelling_of(kind), {**stored, **given}
    kept = "protocoloptions" in stored and "protocoloptions" not in given
    if kept and spelling.outward is not None and find_protocol(whole.get("protocol")) != stored.get("protocol"):
        whole["protocoloptions"] = spelling.outward(stored, spec)["protocoloptions"]
    return spelling.to_canonical(whole, subject)


def canonical_members(attrs: Mapping[str, Any], spec: SpecVersion, subject: str) -> Mapping[str, Any]:
    """Return attributes of a group or meta, as `spec` has them, with the canonical names of their members."""
    for name, names in spec.members.items():
        for one, spelled in names.items():
            value = attrs.get(name)
            if not isinstance(value, dict) or spelled not in value:
                continue
            if value.get(one, value[spelled]) != value[spelled]:
                words = f'is another spelling of "{name}.{one}", which has a different value'
                raise RegistryError("invalid_attribute", subject, name=f"{name}.{spelled}", error_detail=words)
            attrs = {**attrs, name: {(one if key == spelled else key): member for key, member in value.items()}}
    return attrs


def spelled_error(error: RegistryError, spec: SpecVersion) -> RegistryError:
    """Return the error with the attributes it is about named as `spec` names them."""
    names = {"ancestorid": spec.ancestor}
    for name, members in spec.members.items():
        names |= {f"{name}.{one}": f"{name}.{spelled}" for one, spelled in members.items()}
    for place in ("name", "list"):
        if place in error.args_:
            error.args_[place] = ",".join(names.get(one, one) for one in error.args_[place].split(","))
    return error
