"""The documents that an older dialect is read into, as one that a registry takes whole.

Rule: a definition with older versions is one resource of one request, so its history is there as a whole or not at all,
and what of it is there already is not written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signalbook.document.dialects.history import in_line
from signalbook.sources.documents import Document

__all__ = ["with_history"]


def with_history(documents: Sequence[Document], *, anew: bool = False) -> Document:
    """The last of these documents, each message of it with the versions that the ones before have of it.

    `anew` leaves the times of messages to the registry also where there is one document.
    """
    last = documents[-1]
    if (len(documents) == 1 and not anew) or "messagegroups" not in last.content:
        return last
    groups = {
        groupid: {**group, "messages": {key: in_line(_versions(documents, groupid, key)) for key in group["messages"]}}
        for groupid, group in last.content["messagegroups"].items()
    }
    return Document(last.source, {**last.content, "messagegroups": groups})


def _versions(documents: Sequence[Document], groupid: str, messageid: str) -> list[dict[str, Any]]:
    found = []
    for document in documents:
        messages: Mapping[str, Any] = document.content["messagegroups"][groupid]["messages"]
        if messageid in messages:
            found.append(messages[messageid])
    return found
