"""Where the properties of a definition stand in a message."""

import pytest

from signalbook.messages.protocols import PROTOCOLS
from signalbook.messages.slots import OPTIONS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_matched_can_be_built(protocol: str) -> None:
    """The table for building has the properties that the table for matching has, and no others."""
    row = PROTOCOLS[protocol]
    assert {*row.options, *row.collections} == OPTIONS[protocol].keys()
