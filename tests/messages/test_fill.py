"""Where the properties of a definition stand in a message."""

import pytest

from signalbook.messages.compile import PROTOCOLS
from signalbook.protocols.places import PLACES


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_judged_can_be_matched(protocol: str) -> None:
    """The table of places, by which definitions are judged and built, has what the table for matching has."""
    row = PROTOCOLS[protocol]
    assert {*row.options, *row.collections} == PLACES[protocol].keys()
