"""Small random registries that speak Confluent's API: a copy of a copy has every id and setting of the first."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, closing
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook.client import RemoteError
from signalbook.replication.confluent import ConfluentCopy
from tests.replication.confluent_peers import Served, segment

SUBJECTS = st.sampled_from(["a", "A", "yard/part", "Straße 1", ":.dock:a", ":.dock:b", ":.q:a"])
SCOPES = st.sampled_from(["a", "yard/part", ":.dock:a", ":.dock:"])
NAMES = st.sampled_from(["One", "Two", "Three"])
LEVELS = st.sampled_from(["NONE", "BACKWARD", "FULL_TRANSITIVE"])
MODES = st.sampled_from(["READONLY", "READWRITE", "IMPORT"])
BESIDE: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"metadata": {"properties": {"team": "a"}}}, {"metadata": {"tags": {"x": ["y"]}}}]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), SUBJECTS, NAMES, BESIDE),
        st.tuples(st.just("refer"), SUBJECTS, NAMES, SUBJECTS),
        st.tuples(st.just("import"), SUBJECTS, st.integers(1, 9), st.integers(1, 40)),
        st.tuples(st.just("hide"), SUBJECTS, st.integers(1, 3), st.just(0)),
        st.tuples(st.just("delete"), SUBJECTS, st.integers(1, 3), st.just(0)),
        st.tuples(st.just("level"), SCOPES, LEVELS, st.booleans()),
        st.tuples(st.just("mode"), SCOPES, MODES, st.just(0)),
    ),
    max_size=14,
)


def text_of(name: str, needs: str = "") -> str:
    """An Avro record, which may need another."""
    fields = [{"name": "x", "type": needs}] if needs and needs != name else []
    return orjson.dumps({"type": "record", "name": name, "fields": fields}).decode()


def take(registry: Served, step: tuple[str, str, Any, Any]) -> None:
    """One step; it may be refused."""
    kind, subject, first, second = step
    at = f"/subjects/{segment(subject)}"
    if kind == "register":
        registry("POST", f"{at}/versions", {"schema": text_of(first), **second})
    elif kind == "refer":
        latest = registry("GET", f"/subjects/{segment(second)}/versions/latest")
        if "schema" in latest and latest["subject"] == (second if second.startswith(":") else latest["subject"]):
            needs = orjson.loads(latest["schema"])["name"]
            named = latest["subject"] if latest["subject"].startswith(":") else f":.:{latest['subject']}"
            refers = [{"name": needs, "subject": named, "version": latest["version"]}]
            registry("POST", f"{at}/versions", {"schema": text_of(first, needs), "references": refers})
    elif kind == "import":
        before = registry("GET", f"/mode/{segment(subject)}").get("mode")
        registry("PUT", f"/mode/{segment(subject)}?force=true", {"mode": "IMPORT"})
        registry("POST", f"{at}/versions", {"schema": text_of(f"Imported{second}"), "id": second, "version": first})
        if before is None:
            registry("DELETE", f"/mode/{segment(subject)}")
        else:
            registry("PUT", f"/mode/{segment(subject)}?force=true", {"mode": before})
    elif kind in ("hide", "delete"):
        registry("DELETE", f"{at}/versions/{first}")
        if kind == "delete":
            registry("DELETE", f"{at}/versions/{first}?permanent=true")
    elif kind == "level":
        registry("PUT", f"/config/{segment(subject)}", {"compatibility": first, "normalize": second})
    else:
        registry("PUT", f"/mode/{segment(subject)}?force=true", {"mode": first})


def settled(registry: Served, scopes: Iterable[str]) -> tuple[Any, ...]:
    """What a registry holds, as it is compared; a context that is empty and has no settings cannot be told."""
    state, peer = registry.state(), registry.peer
    return state.subjects, state.versions, [(peer.config(scope), peer.mode(scope)) for scope in scopes]


@given(steps=STEPS, broken=st.integers(0, 60))
@settings(max_examples=60)
def test_a_copy_of_a_copy(steps: list[tuple[str, str, Any, Any]], broken: int) -> None:
    """An export of an import gives every id, number, deleted version and setting back, also after it broke off."""
    with ExitStack() as stack:
        first, second, third = (stack.enter_context(closing(Served("memory:", name))) for name in "abc")
        first("PUT", "/config", {"compatibility": "NONE"})
        for step in steps:
            take(first, step)
        left = [broken]

        def before(call: Any) -> None:
            left[0] -= 1
            if not left[0]:
                raise RemoteError("nothing answers")

        second.before = before
        try:
            ConfluentCopy(first.peer, second.peer).run()
        except RemoteError:
            assert left[0] <= 0
        second.before = lambda call: None
        for source, target in ((first, second), (second, third)):
            assert {} == ConfluentCopy(source.peer, target.peer).run().problems
        scopes = sorted(first.state().configs)
        assert settled(first, scopes) == settled(second, scopes)
        scopes = sorted(second.state().configs)
        assert settled(second, scopes) == settled(third, scopes)
        for one in first.state().versions.values():
            inside = "" if one.context == "." else f"/contexts/{one.context}"
            shown = [each("GET", f"{inside}/schemas/ids/{one.id}") for each in (first, third)]
            assert shown[0]["schema"] == shown[1]["schema"]
