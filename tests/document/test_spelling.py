"""Every accepted spelling becomes one canonical form, which each version spells in its own way."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from signalbook.document.spelling import canonical_name, from_canonical, spelling_for, to_canonical
from signalbook.errors import RegistryError
from signalbook.spec.builtin import ENDPOINT, MESSAGE, SCHEMA
from signalbook.spec.versions import RC2, RC4, VERSIONS

FILE = Path(__file__).parent.parent / "cases" / "spelling" / "spellings.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
DOMAINS = {"message": MESSAGE, "endpoint": ENDPOINT, "schema": SCHEMA, "": ""}
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])


@each_case
def test_one_canonical_form(case: dict[str, Any]) -> None:
    """What was written in any spelling is held in one."""
    before = copy.deepcopy(case["given"])
    assert case["canonical"] == to_canonical(DOMAINS[case["domain"]], case["given"])
    assert before == case["given"], "an argument was changed"


@each_case
def test_canonical_stays(case: dict[str, Any]) -> None:
    """What is canonical is returned as the same object."""
    canonical = case["canonical"]
    assert to_canonical(DOMAINS[case["domain"]], canonical) is canonical


@each_case
@pytest.mark.parametrize("version", VERSIONS.values(), ids=str)
def test_each_version_has_its_spelling(case: dict[str, Any], version: Any) -> None:
    """A version spells the canonical form in its own way, and reads its own spelling back."""
    domain = DOMAINS[case["domain"]]
    spelled = from_canonical(domain, case["canonical"], version)
    assert case[version.name] == spelled
    assert case["canonical"] == to_canonical(domain, spelled)


def test_two_spellings_that_contradict() -> None:
    """Two spellings of one attribute with different values are an error that names the second."""
    with pytest.raises(RegistryError) as caught:
        to_canonical(MESSAGE, {"basemessage": "/a", "basemessageuri": "/b"}, "/messagegroups/g/messages/m")
    assert ("invalid_attribute", "/messagegroups/g/messages/m") == (caught.value.name, caught.value.subject)
    assert caught.value.args_["name"] == "basemessageuri"


def test_a_model_with_a_name_of_its_own() -> None:
    """A name that a model declares is no alias there: the published model has `basemessageuri`."""
    spelling = spelling_for(MESSAGE, {"basemessageuri", "envelope"})
    attrs = {"basemessageuri": "/a", "ancestorid": "1"}
    assert attrs is spelling.to_canonical(attrs)
    assert {"basemessageuri": "/a", "ancestor": "1"} == spelling.from_canonical(attrs, RC2)
    assert {"basemessage": "/a"} == spelling.from_canonical({"basemessage": "/a"}, RC4)
    assert spelling_for(MESSAGE, {"basemessage"}) is spelling_for(MESSAGE, ())


def test_names_in_filters() -> None:
    """A filter may name an attribute in any spelling."""
    assert canonical_name(MESSAGE, "basemessageuri") == "basemessage"
    assert canonical_name(SCHEMA, "ancestor") == "ancestorid"
    assert canonical_name(SCHEMA, "name") == "name"
