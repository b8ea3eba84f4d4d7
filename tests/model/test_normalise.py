"""Every accepted spelling becomes one canonical form, which each version spells in its own way."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.model.normalise import canonical_name, from_canonical, normaliser_for, to_canonical
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.versions import RC2, RC4, VERSIONS
from tests.cases import Case, cases

FILE = Path(__file__).parent.parent / "cases" / "spelling" / "spellings.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
DOMAINS = {"message": MESSAGE, "endpoint": ENDPOINT, "schema": SCHEMA, "": ""}
GROUPS = ("endpoint",)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])


def _to_canonical(domain: str, attrs: Any, subject: str = "") -> Any:
    return to_canonical(DOMAINS[domain], attrs, subject, group=domain in GROUPS)


@each_case
def test_one_canonical_form(case: dict[str, Any]) -> None:
    """What was written in any spelling is held in one."""
    before = copy.deepcopy(case["given"])
    assert case["canonical"] == _to_canonical(case["domain"], case["given"])
    assert before == case["given"], "an argument was changed"


@each_case
def test_canonical_stays(case: dict[str, Any]) -> None:
    """What is canonical is returned as the same object."""
    canonical = case["canonical"]
    assert _to_canonical(case["domain"], canonical) is canonical


@each_case
@pytest.mark.parametrize("version", VERSIONS.values(), ids=str)
def test_each_version_has_its_spelling(case: dict[str, Any], version: Any) -> None:
    """A version spells the canonical form in its own way, and reads its own spelling back."""
    domain = case["domain"]
    spelled = from_canonical(DOMAINS[domain], case["canonical"], version, group=domain in GROUPS)
    assert case[version.name] == spelled
    assert case["canonical"] == _to_canonical(domain, spelled)


@cases("spelling/contradictions")
def test_two_spellings_that_contradict(case: Case) -> None:
    """Of two spellings that say something different neither is dropped: the error names both and the entity."""
    spelled, beside = case.expect
    with pytest.raises(RegistryError) as caught:
        _to_canonical(case.given["domain"], case.given["attributes"], "/x/y")
    assert ("invalid_attribute", "/x/y") == (caught.value.name, caught.value.subject)
    assert spelled == caught.value.args_["name"]
    assert f'"{beside}"' in caught.value.args_["error_detail"]


@pytest.mark.parametrize("domain", [MESSAGE, SCHEMA, ENDPOINT, ""])
def test_a_group_has_no_names_of_messages(domain: str) -> None:
    """What only a message has another name for is an attribute like any other of a group."""
    attrs = {"ancestor": "1", "basemessageurl": "/a", "basemessageuri": "/b", "envelopemetadata": {"attributes": {}}}
    assert attrs is to_canonical(domain, attrs, group=True)
    for version in VERSIONS.values():
        assert attrs == from_canonical(domain, attrs, version, group=True)


def test_a_model_with_a_name_of_its_own() -> None:
    """A name that a model declares is no alias there: the published model has `basemessageuri`."""
    spelling = normaliser_for(MESSAGE, {"basemessageuri", "envelope"})
    attrs = {"basemessageuri": "/a", "ancestorid": "1"}
    assert attrs is spelling.to_canonical(attrs)
    assert {"basemessageuri": "/a", "ancestor": "1"} == spelling.from_canonical(attrs, RC2)
    assert {"basemessage": "/a"} == spelling.from_canonical({"basemessage": "/a"}, RC4)
    assert normaliser_for(MESSAGE, {"basemessage"}) is normaliser_for(MESSAGE, ())


def test_names_in_filters() -> None:
    """A filter may name an attribute in any spelling."""
    assert canonical_name(MESSAGE, "basemessageuri") == "basemessage"
    assert canonical_name(SCHEMA, "ancestor") == "ancestorid"
    assert canonical_name(SCHEMA, "name") == "name"
