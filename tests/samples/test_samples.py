"""The sample catalogs are right by the built-in model and by every named rule."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from signalbook.model.message_rules import Subject
from signalbook.model.model import read_model
from signalbook.model.normalise import to_canonical
from signalbook.model.rules import check
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA, builtin_modelsource

FOLDER = Path(__file__).resolve().parent.parent.parent / "samples"
SAMPLES = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.xreg.json"))}
MODEL = read_model(builtin_modelsource())
SYSTEM = {"meta", "versions", "versionid", "ancestorid", "schema", "schemabase64", "schemaurl"}
each_sample = pytest.mark.parametrize("name", SAMPLES)


def entities(name: str) -> Iterator[tuple[str, str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Every group and version of a sample: domain, level, xid, canonical attributes, the group's attributes."""
    for plural, groups in SAMPLES[name].items():
        kind = MODEL.groups[plural]
        for group_id, document in groups.items():
            own = {key: value for key, value in document.items() if key not in kind.resources}
            group = to_canonical(kind.modelcompatiblewith, own)
            yield kind.modelcompatiblewith, "group", f"/{plural}/{group_id}", group, {}
            for collection, resource in kind.resources.items():
                for id_, body in document.get(collection, {}).items():
                    if "xref" in body.get("meta", {}):
                        continue
                    for version in body.get("versions", {"": body}).values():
                        attrs = to_canonical(resource.modelcompatiblewith, version)
                        seen = {key: value for key, value in attrs.items() if key not in SYSTEM}
                        xid = f"/{plural}/{group_id}/{collection}/{id_}"
                        yield resource.modelcompatiblewith, "version", xid, seen, group


@each_sample
def test_the_model_accepts_it(name: str) -> None:
    """Every entity passes the built-in model unchanged: nothing is filled in, nothing refused."""
    for _, level, xid, attrs, _ in entities(name):
        kind = MODEL.groups[xid.split("/")[1]]
        scope = kind.level if level == "group" else kind.resources[xid.split("/")[3]].version_level
        assert dict(attrs) == scope.normalise(dict(attrs), xid)


@each_sample
def test_no_rule_complains(name: str) -> None:
    """No named rule finds an error or has a warning."""
    found = {xid: attrs for _, _, xid, attrs, _ in entities(name)}
    for domain, level, xid, attrs, group in entities(name):
        subject = Subject(xid, attrs, group, found.get)
        assert [] == [problem.message for problem in check(domain, level, subject)], xid  # type: ignore[arg-type]


@each_sample
def test_what_it_refers_to_is_there(name: str) -> None:
    """Base messages, schemas, borrowed messages, alternatives and message groups exist in the same sample."""
    found = {xid for _, _, xid, _, _ in entities(name)}
    for _, _, xid, attrs, _ in entities(name):
        wanted = [attrs.get("basemessage"), attrs.get("dataschemaxid"), *attrs.get("messagegroups", ())]
        assert {reference for reference in wanted if reference} <= found, xid
    for document in SAMPLES[name]["messagegroups"].values():
        for body in document["messages"].values():
            meta = body.get("meta", {})
            wanted = [meta.get("xref"), meta.get("deprecated", {}).get("alternative")]
            assert {reference for reference in wanted if reference} <= found


def test_together_they_show_everything() -> None:
    """The samples have every protocol, bases, borrowed and deprecated messages, and five schema languages."""
    text = json.dumps(SAMPLES)
    protocols = {attrs.get("protocol") for name in SAMPLES for _, _, _, attrs, _ in entities(name)}
    assert {"AMQP/1.0", "HTTP", "KAFKA", "MQTT/3.1.1", "MQTT/5.0", "NATS"} <= protocols
    formats = {attrs.get("format") for name in SAMPLES for domain, _, _, attrs, _ in entities(name) if domain == SCHEMA}
    assert {"JsonSchema/draft-07", "JsonSchema/draft/2020-12", "Avro/1.11.0", "Protobuf/3", "XSD/1.0"} <= formats
    words = ["basemessage", "xref", "deprecated", "dataschema", "dataschemauri", "dataschemaxid", "labels", "channel"]
    assert [] == [word for word in words if f'"{word}"' not in text]
    domains = {domain for name in SAMPLES for domain, _, _, _, _ in entities(name)}
    assert {MESSAGE, SCHEMA, ENDPOINT} == domains


def test_the_readme_names_them() -> None:
    """Each sample has its row in the README."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [] == [name for name in SAMPLES if f"`{name}`" not in readme]
