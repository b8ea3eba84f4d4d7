from __future__ import annotations

from typing import Any

import pytest

from signalbook.errors import RegistryError
from signalbook.registry.capabilities import OFFER, Capabilities, Choice, Offer, update
from tests.cases import Case, cases

ALL_RULES = ("backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive")
SMALL = Offer(formats={"avro*": ("backward", "forward"), "text": ()})

# A server that speaks 1.0-rc4 only, does not paginate and knows two version modes.
OTHER = Offer(
    formats=dict.fromkeys(("avro*", "jsonschema*", "jsonstructure*", "numbers", "protobuf*", "xmlschema*"), ALL_RULES),
    pagination=Choice(False, (False,)),
    specversions=frozenset({"1.0-rc4"}),
    versionmodes=frozenset({"createdat", "manual"}),
)


@cases("registry/capabilities")
def test_cases(case: Case) -> None:
    """A client's request changes the capabilities, or is refused by the error that the specification names."""
    ((method, body),) = case.given.items()
    before = SMALL.initial()
    if any(name.startswith("capability_") for name in case.expect):
        with pytest.raises(RegistryError) as caught:
            update(before, body, replace=method == "put", offer=SMALL)
        assert ("/capabilities", case.expect) == (caught.value.subject, {caught.value.name: caught.value.args_})
    else:
        expected = case.expect if method == "put" else {**before.to_dict(), **case.expect}
        assert expected == update(before, body, replace=method == "put", offer=SMALL).to_dict()


@cases("registry/capabilities_shown")
def test_shown(case: Case) -> None:
    """All capabilities are listed, and offered even where there is no choice, in order of their names."""
    found: dict[str, Any] = OTHER.to_dict() if case.given == "offered" else OTHER.initial().to_dict()
    assert case.expect == found
    assert list(case.expect) == list(found)


def test_a_mandatory_kind_of_data() -> None:
    """A server may insist on more kinds of data staying available."""
    strict = Offer(mandatory=("capabilities", "entities", "model"))
    with pytest.raises(RegistryError) as caught:
        update(strict.initial(), {"available": {"capabilities": {}, "entities": {}}}, replace=True, offer=strict)
    assert {"name": "available", "value": "model"} == caught.value.args_


def test_older_version() -> None:
    """1.0-rc2 has `stickyversions` besides, in the capabilities and in the offer."""
    old, new = OFFER.initial().to_dict("1.0-rc2"), OFFER.initial().to_dict("1.0-rc4")
    assert {**new, "stickyversions": True} == old
    assert sorted(old) == list(old)
    offered = {**OFFER.to_dict(), "stickyversions": {"type": "boolean", "enum": [True]}}
    assert offered == OFFER.to_dict("1.0-rc2")


@pytest.mark.parametrize("offer", [OFFER, SMALL, OTHER])
def test_stored(offer: Offer) -> None:
    """What was stored is read back the same, and what is shown may be sent back unchanged."""
    start = offer.initial()
    for capabilities in (start, offer.reset()):
        assert capabilities == Capabilities.from_json(capabilities.to_json())
        assert capabilities == update(start, capabilities.to_dict("1.0-rc2"), replace=True, offer=offer)


def test_parameters() -> None:
    """Requests may use the flags that are on, and those of pagination where it is on."""
    start = OFFER.initial()
    assert {"limit", "page", "inline"} <= start.parameters
    assert frozenset({"doc"}) == update(start, {"flags": ["doc"], "pagination": False}, replace=False).parameters


def test_is_mutable() -> None:
    """Data that is not available cannot be changed."""
    start = OFFER.initial()
    assert [True, False, False] == [start.is_mutable(name) for name in ("entities", "model", "unknown")]
