"""Random interleavings of both APIs on one store: Confluent's and the registry's own.

A simple model keeps what each promises: an id stands for one text for ever, the numbers of versions are not given again
while a subject is there, everything that refers to a version finds it, and both APIs show the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from signalbook.settings import Settings
from tests.registry.conftest import Api

SUBJECTS = st.sampled_from(["a", "A", "yard/part", ":.dock:a", "b"])
NAMES = st.sampled_from(["One", "Two", "Three", "Four"])
GROUPS = {"a": "/schemagroups/confluent/schemas/a", "b": "/schemagroups/confluent/schemas/b"}


def text_of(name: str, needs: str = "") -> str:
    """An Avro record, which may need another."""
    fields = [{"name": "x", "type": needs}] if needs and needs != name else []
    return orjson.dumps({"type": "record", "name": name, "fields": fields}).decode()


class BothApis(RuleBasedStateMachine):
    """Requests to both APIs, and what must hold after each."""

    store: Callable[[], str]

    @initialize()
    def begin(self) -> None:
        """A new registry, in which anything may follow anything."""
        self.api = Api(Settings(store=type(self).store(), deliver=False))
        self.api("PUT", "/confluent/config", {"compatibility": "NONE"})
        self.texts: dict[tuple[str, int], str] = {}  # what an id stands for, by context
        self.given: dict[str, set[int]] = {}  # the numbers that a subject has had since it was made
        self.gone: dict[str, set[int]] = {}  # those of them that went

    def teardown(self) -> None:
        """Give the store back."""
        if hasattr(self, "api"):
            self.api.service.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to Confluent's API, which never fails by itself."""
        reply = self.api(method, f"/confluent{path}", body)
        assert reply.status < 500, reply.body
        return reply.json

    @rule(subject=SUBJECTS, name=NAMES)
    def register(self, subject: str, name: str) -> None:
        """Register a schema."""
        found = self.ask("POST", f"/subjects/{subject}/versions", {"schema": text_of(name)})
        self.note(subject, found)

    @rule(subject=SUBJECTS, name=NAMES, other=st.sampled_from(["a", "b"]))
    def register_with_reference(self, subject: str, name: str, other: str) -> None:
        """Register a schema that refers to the latest version of another subject."""
        latest = self.ask("GET", f"/subjects/{other}/versions/latest")
        if "schema" not in latest:
            return
        needs = orjson.loads(latest["schema"])["name"]
        refers = [{"name": needs, "subject": latest["subject"], "version": latest["version"]}]
        body = {"schema": text_of(name, needs), "references": refers}
        found = self.ask("POST", f"/subjects/{subject}/versions", body)
        if "id" in found:
            self.note(subject, found)

    def note(self, subject: str, found: Any) -> None:
        """Keep what an answer says, and compare it with what was said before."""
        live = self.ask("GET", f"/subjects/{subject}/versions?deleted=true")
        assert found["version"] in live
        self.given.setdefault(subject, set()).add(found["version"])

    def forget(self, subject: str) -> None:
        """Begin anew with a subject that went as a whole."""
        self.given.pop(subject, None)
        self.gone.pop(subject, None)

    @rule(subject=SUBJECTS, permanent=st.booleans())
    def delete(self, subject: str, permanent: bool) -> None:
        """Delete a subject."""
        found = self.ask("DELETE", f"/subjects/{subject}?permanent={permanent}")
        if permanent and isinstance(found, list):
            self.forget(subject)

    @rule(subject=SUBJECTS, number=st.integers(1, 4), permanent=st.booleans())
    def delete_version(self, subject: str, number: int, permanent: bool) -> None:
        """Delete a version."""
        self.ask("DELETE", f"/subjects/{subject}/versions/{number}?permanent={permanent}")
        if not isinstance(self.ask("GET", f"/subjects/{subject}/versions?deleted=true"), list):
            self.forget(subject)

    @rule(subject=st.sampled_from(["a", "b"]), name=NAMES, versionid=st.sampled_from(["1", "2", "7", "x", "y"]))
    def put(self, subject: str, name: str, versionid: str) -> None:
        """Put a version on the registry."""
        body = {"format": "Avro/1.11.0", "schema": orjson.loads(text_of(name))}
        reply = self.api("PUT", f"{GROUPS[subject]}/versions/{versionid}$details", body)
        # An id that differs from another only by case is refused on the registry; as a subject it has another id.
        assert reply.status in (200, 201) or b"only by case" in reply.body, reply.body

    @rule(subject=st.sampled_from(["a", "b"]))
    def delete_on_the_registry(self, subject: str) -> None:
        """Delete a schema on the registry."""
        if self.api("DELETE", GROUPS[subject]).status == 204:
            self.forget(subject)

    @rule(subject=st.sampled_from(["a", "b"]), versionid=st.sampled_from(["1", "2", "7", "x", "y"]))
    def delete_version_on_the_registry(self, subject: str, versionid: str) -> None:
        """Delete a version on the registry."""
        self.api("DELETE", f"{GROUPS[subject]}/versions/{versionid}")
        if not isinstance(self.ask("GET", f"/subjects/{subject}/versions?deleted=true"), list):
            self.forget(subject)

    @rule(all_of_them=st.booleans())
    def delete_group(self, all_of_them: bool) -> None:
        """Delete a group, now and then."""
        if all_of_them and self.api("DELETE", "/schemagroups/confluent").status == 204:
            for name in [name for name in self.given if not name.startswith(":")]:
                self.forget(name)

    @invariant()
    def holds(self) -> None:
        """Ids are bound for ever, numbers are new, references resolve, and both APIs show the same."""
        if not hasattr(self, "api"):
            return
        for name in self.ask("GET", "/subjects?deleted=true"):
            numbers = self.ask("GET", f"/subjects/{name}/versions?deleted=true")
            known = self.given.get(name, set())
            assert not self.gone.get(name, set()) & set(numbers), "a number was given again"
            self.gone[name] = self.gone.get(name, set()) | (known - set(numbers))
            self.given[name] = known | set(numbers)
            for number in numbers:
                shown = self.ask("GET", f"/subjects/{name}/versions/{number}?deleted=true")
                self.is_bound(shown)
                for one in shown.get("references", ()):
                    around = "" if not name.startswith(":") or one["subject"].startswith(":") else ":.dock:"
                    path = f"/subjects/{around}{one['subject']}/versions/{one['version']}?deleted=true"
                    found = self.ask("GET", path)
                    # On the registry a schema may be deleted whoever refers to it; here it may not.
                    assert "schema" in found or found["error_code"] in (40401, 40402)
        self.is_the_same()

    def is_bound(self, shown: Any) -> None:
        """An id stands for one text and its references, in each context."""
        context = shown["subject"].rpartition(":")[0]
        content = orjson.dumps([shown["schema"], shown.get("references")]).decode()
        assert content == self.texts.setdefault((context, shown["id"]), content)
        by_id = self.ask("GET", f"/schemas/ids/{shown['id']}?subject={shown['subject']}")
        assert shown["schema"] == by_id["schema"]

    def is_the_same(self) -> None:
        """Every version of the registry has the id that Confluent's API shows, and no two share a number."""
        reply = self.api("GET", "/schemagroups/confluent/schemas?inline=versions")
        schemas = reply.json if reply.status == 200 else {}
        versions = [one for schema in schemas.values() for one in schema["versions"].values()]
        ids = sorted(one["confluentid"] for one in versions if "confluentid" in one)
        shown = [one["id"] for one in self.ask("GET", "/schemas?deleted=true")]
        assert ids == sorted(shown)


def run(store: Callable[[], str], examples: int) -> None:
    """Run the machine on new stores."""
    machine = type("Machine", (BothApis,), {"store": staticmethod(store)})
    bounds = settings(
        max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=bounds)  # type: ignore[no-untyped-call]


def test_both_apis(fresh_store: Callable[[], str]) -> None:
    """What must hold does, whatever comes after what."""
    run(fresh_store, 10)


@pytest.mark.slow
def test_both_apis_for_long(fresh_store: Callable[[], str]) -> None:
    """The same, many times."""
    run(fresh_store, 200)
