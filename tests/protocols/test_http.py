"""HTTP: which headers belong to a connection."""

from __future__ import annotations

import pytest

from signalbook.protocols.http import connection_headers


@pytest.mark.parametrize(
    ("pairs", "names"),
    [
        ((), ("connection", "transfer-encoding", "content-length", "host", "te", "upgrade", "keep-alive")),
        ((("Connection", "close, X-Hop"), ("connection", "x-two")), ("x-hop", "x-two", "close")),
    ],
)
def test_connection_headers(pairs: tuple[tuple[str, str], ...], names: tuple[str, ...]) -> None:
    """Headers of the connection and of the framing are known, and those that the connection names itself."""
    found = connection_headers(pairs)
    assert set(names) <= found
    assert "content-type" not in found
