from __future__ import annotations

import base64
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from signalbook import Registry
from signalbook.model.model import read_model
from signalbook.registry.registry import carry_documents
from signalbook.spec.builtin import builtin_modelsource
from tests.cases import Case, cases

MODEL = read_model(builtin_modelsource())
CONTENTTYPES = st.sampled_from(["application/json", "text/plain", "application/xml", "image/png", None])


def exported(version: dict[str, Any]) -> dict[str, Any]:
    """An export with one version."""
    return {"schemagroups": {"g": {"schemas": {"s": {"versions": {"1": version}}}}}}


@cases("document/carried")
def test_forms(case: Case) -> None:
    """A document stands in the most readable form that gives its bytes back."""
    content = case.given.get("base64") or base64.b64encode(case.given["document"].encode()).decode()
    rest = {name: case.given[name] for name in ("contenttype",) if name in case.given}
    document = exported({**rest, "schemabase64": content})
    carry_documents(document, MODEL)
    assert exported({**rest, **case.expect}) == document


@settings(max_examples=20)  # each opens two registries
@given(
    st.binary()
    | st.text().map(lambda text: text.encode("utf-8", "replace"))
    | st.sampled_from([b"null", b'"a"', b"{}"]),
    CONTENTTYPES,
)
def test_a_load_gives_the_bytes_back(content: bytes, contenttype: str | None) -> None:
    """load(export) == bytes, whatever the document and its media type."""
    path = "/schemagroups/g/schemas/s"
    with Registry.open() as one, Registry.open() as other:
        body = {"contenttype": contenttype, "schemabase64": base64.b64encode(content).decode()}
        one.put(path, {name: value for name, value in body.items() if value is not None})
        other.post("/?ignore=epoch", {"schemagroups": one.export()["schemagroups"]})
        asked = f"{path}?inline=schema&binary"
        kept = [registry.get(asked) for registry in (one, other)]
    assert content == base64.b64decode(kept[0]["schemabase64"])
    assert kept[0]["schemabase64"] == kept[1]["schemabase64"]
    assert kept[0].get("contenttype") == kept[1].get("contenttype")
