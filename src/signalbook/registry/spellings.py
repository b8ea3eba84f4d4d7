"""The spelling of each type of a model: what its documents' names and shapes are inside, and for a client.

Rule: a type's spelling follows from its `modelcompatiblewith`, less the names that its model declares itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from signalbook.document.model import GroupType, ResourceType
from signalbook.document.spelling import Spelling, spelling_for

__all__ = ["canonical", "spelling_of"]


@lru_cache(maxsize=128)  # types of models that are gone fall out
def spelling_of(kind: GroupType | ResourceType) -> Spelling:
    """Return the spelling of a type."""
    return spelling_for(kind.modelcompatiblewith, kind.attributes.keys())


def canonical(kind: GroupType | ResourceType, attrs: Mapping[str, Any], subject: str = "") -> Mapping[str, Any]:
    """Return attributes of an entity of this type with every name and shape in canonical form."""
    return spelling_of(kind).to_canonical(attrs, subject)
