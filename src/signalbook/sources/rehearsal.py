"""Loading catalog documents on trial: what a registry would refuse, found by `signalbook lint` as a load finds it.

Rule 1: all documents are loaded into a registry in memory by the code of `signalbook load`; where that takes them,
nothing is an error here.
Rule 2: where it refuses, each group is loaded by itself, and again without the resource that was refused, so that a
fault hides few others. Refusals for what a schema refers to are not reported then: what it needs may be what was left
out.
Rule 3: what another check has reported of an entity is not reported again.
Rule 4: documents are loaded by the model that they are linted by; those with models of their own, by each model apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from signalbook.client import Client
from signalbook.errors import RegistryError, UsageError
from signalbook.sources.documents import Document, Raw, choose_model
from signalbook.sources.lint import UNREADABLE, Finding, refusal
from signalbook.sources.loading import Loadable, Loading, Unkept, holder, loadable

__all__ = ["rehearse"]

LOST = "lost"
INVALID = "invalid"
MOST_OF_A_GROUP = 20  # refusals that are reported of one group
_OF_A_DOCUMENT = (UNREADABLE, INVALID)
# A refusal by a named rule ends with the rule's name (`model.message_rules`).
_RULE = re.compile(r"\[([a-z0-9-]+)\]\.?$")


Model = Mapping[str, Any] | str


def rehearse(
    raws: Iterable[Raw], model: str = "builtin", *, open_client: Callable[[Model], Client], group: str = "",
    known: Collection[Finding] = (),
) -> Iterator[Finding]:  # fmt: skip
    """Each refusal that loading these documents meets, or where there is none, the versions that would not stay.

    `model` is as `lint --model` says, `known` is what other checks have found already, and `open_client` opens a new
    registry in memory with a model.
    """
    marks = {_mark(one) for one in known} | {(UNREADABLE, one.source) for one in known}
    found: list[Loadable] = []
    findings: list[Finding] = []
    for raw in raws:
        try:
            found.append(loadable(raw, group))
        except UsageError as error:
            findings.append(Finding(raw.source, "error", "/", UNREADABLE, str(error)))
        except RegistryError as error:
            findings.append(_refused(raw.source, error))
        else:
            findings.extend(_invalid(found[-1]))
    for together, own in _together(found, model):
        findings.extend(_findings(together, own, open_client))
    yield from (one for one in findings if one.severity != "error" or _mark(one) not in marks)


def _mark(one: Finding) -> tuple[str, str]:
    """What two findings of the same have in common: the error, and the group or resource or else the source."""
    entity = "/".join(one.xid.split("/")[:5])
    return one.code, one.source if one.code in _OF_A_DOCUMENT or entity == "/" else entity


def _invalid(one: Loadable) -> Iterator[Finding]:
    """What breaks the rules of a document's own dialect, for which a load refuses all."""
    for note in one.notes:
        if note.code == INVALID:
            words = f"{note.path or '/'} {note.message}."
            yield Finding(one.document.source, "error", "/", note.code, words, {"path": note.path})


def _together(found: Sequence[Loadable], model: str) -> Iterator[tuple[list[Loadable], Model | None]]:
    """The documents that one registry takes, and its model; none where it is their own."""
    if model != "document":
        yield list(found), choose_model(model)
        return
    apart: dict[bytes, list[Loadable]] = {}
    for one in found:
        apart.setdefault(orjson.dumps(_own_model(one.document), option=orjson.OPT_SORT_KEYS), []).append(one)
    yield from ((documents, None) for documents in apart.values())


def _own_model(document: Document) -> Any:
    return document.content.get("modelsource") or document.content.get("model") or {}


def _findings(
    documents: Sequence[Loadable], model: Model | None, open_client: Callable[[Model], Client]
) -> Iterator[Finding]:
    with open_client("empty" if model is None else model) as client:
        loading = Loading(client, with_model=model is None)
        first = _first(loading, documents)
        if first is None:
            yield from (_lost(one, loading.gone(one)) for one in loading.unkept())
            return
    chosen = _own_model(documents[0].document) if model is None else model
    others = list(_each(documents, chosen, open_client))
    if not any((first.xid, first.code, first.message) == (one.xid, one.code, one.message) for one in others):
        yield first
    yield from others


def _first(loading: Loading, documents: Sequence[Loadable]) -> Finding | None:
    """Why a load of these documents stops, if it does."""
    source = ""
    try:
        for one in documents:
            source = one.document.source
            loading.load(one)
        source = ""
        loading.finish()
    except RegistryError as error:
        return _refused(source or holder(documents, error.subject).document.source, error)
    except UsageError as error:
        return Finding(source, "error", "/", UNREADABLE, str(error))
    return None


def _each(documents: Sequence[Loadable], model: Model, open_client: Callable[[Model], Client]) -> Iterator[Finding]:
    """The refusals of each group loaded by itself, with the groups before it there."""
    with open_client(model) as client:
        try:
            types = client.get("/model")
        except RegistryError:  # a model of their own that is refused: the first refusal has reported it
            return
        for one in documents:
            for plural in types.get("groups") or {}:
                groups = one.document.content.get(plural)
                for groupid, group in groups.items() if isinstance(groups, dict) else ():
                    for error in _of_group(client, types, plural, groupid, group):
                        yield _refused(one.document.source, error)


def _of_group(
    client: Client, types: Mapping[str, Any], plural: str, groupid: str, group: Any
) -> Iterator[RegistryError]:
    left = group
    for _ in range(MOST_OF_A_GROUP):
        # A part that waits for what it refers to stays unwritten, for nothing finishes this load.
        loading = Loading(client, model=types)
        try:
            loading.load(Loadable(Document("", {plural: {groupid: left}})))
        except UsageError:
            return
        except RegistryError as error:
            yield error
            less = _without(left, error.subject.removeprefix(f"/{plural}/{groupid}/").split("/"))
            if less is None:
                return
            left = less
        else:
            return


def _without(group: Mapping[str, Any], steps: Sequence[str]) -> dict[str, Any] | None:
    """A group without the resource at these steps; nothing where they lead to none."""
    resources = group.get(steps[0])
    if len(steps) < 2 or not isinstance(resources, dict) or steps[1] not in resources:
        return None
    return {**group, steps[0]: {key: value for key, value in resources.items() if key != steps[1]}}


def _refused(source: str, error: RegistryError) -> Finding:
    """The same as a check would say it, under the name of the rule where one refused it."""
    found = refusal(source, error)
    named = _RULE.search(found.message.removesuffix(f": {error.detail}"))
    return replace(found, xid=error.subject or "/", rule=named[1] if named else "")


def _lost(unkept: Unkept, gone: Sequence[str]) -> Finding:
    named = ", ".join(xid.rpartition("/")[2] for xid in gone)
    words = f"{unkept.xid} has {len(unkept.given)} versions, and its type keeps {unkept.most}; not kept: {named}."
    return Finding(unkept.source, "warning", unkept.xid, LOST, words, {"path": f"{unkept.xid}/versions"})
