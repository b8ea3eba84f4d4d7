from datetime import UTC, datetime

import pytest

from signalbook.messages.observe import Observed
from signalbook.pipeline.tables import CellError, gives_back, moment, transport_cells
from signalbook.protocols import Message
from tests.cases import Case, cases


@cases("pipeline/moments")
def test_moments(case: Case) -> None:
    """A timestamp is a moment in UTC, and a column can give its text back or not."""
    at = moment(case.given)
    assert case.expect == [at.isoformat(), gives_back(case.given, at)]


def test_a_moment_before_all_moments() -> None:
    """What the type cannot hold is told."""
    with pytest.raises(CellError, match="0000-01-01"):
        moment("0000-01-01T00:00:00Z")


@cases("pipeline/transport")
def test_transport(case: Case) -> None:
    """What the transport said stands in columns, and what has none in `fields`."""
    cells = transport_cells(Observed(Message.from_json(case.given), None), None)
    assert cells is not None
    assert case.expect == {name: value for name, value in cells.items() if value is not None}


def test_a_kafka_record() -> None:
    """A record's key is bytes, its time a moment."""
    message = Message("KAFKA", {"topic": "t", "key": b"\0k", "partition": 3, "offset": 9, "timestamp": 1500})
    cells = transport_cells(Observed(message, None), 7)
    assert cells is not None
    assert (b"\0k", 3, 9, 7) == (cells["key"], cells["partition"], cells["offset"], cells["schemaid"])
    assert datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC) == cells["timestamp"]
