import threading
from collections.abc import Iterator

import pytest

from signalbook.errors import RegistryError
from signalbook.server.answers import LARGE, AnswerLimits, encoded
from signalbook.server.http import Response
from tests.patience import LONG

PIECES = [b"x" * 100_000] * 5


def test_small_answers_stay_in_memory() -> None:
    """Up to `LARGE` bytes there is no file."""
    limits = AnswerLimits()
    assert (b"ab", None) == limits.collect([b"a", b"b"], "/")
    response = Response(200, body=b"x" * LARGE)
    assert limits.kept(response, "/") is response
    assert 0 == limits.held


def test_a_large_answer_is_counted_until_its_last_holder_closes_it() -> None:
    """Its bytes come back as they were, and its room is free when nobody holds it."""
    limits = AnswerLimits()
    body, spool = limits.collect(PIECES, "/")
    assert spool is not None
    assert (b"", 500_000, 500_000) == (body, spool.size, limits.held)
    assert spool.hold()
    spool.close()
    assert (b"".join(PIECES), 500_000) == (b"".join(spool.pieces()), limits.held)
    spool.close()
    assert (False, 0) == (spool.hold(), limits.held)


def test_beyond_its_room_the_server_is_busy() -> None:
    """What does not fit is refused, and what it had taken is given back."""
    limits = AnswerLimits(held=900_000)
    _, first = limits.collect(PIECES, "/")
    with pytest.raises(RegistryError, match="server_busy"):
        limits.collect(PIECES, "/export")
    assert 500_000 == limits.held
    assert first is not None
    first.close()


def test_an_error_in_the_middle_gives_the_room_back() -> None:
    """Nothing of half an answer stays."""
    limits = AnswerLimits()

    def broken() -> Iterator[bytes]:
        yield from PIECES
        raise RegistryError("too_large", "/export")

    with pytest.raises(RegistryError):
        limits.collect(broken(), "/export")
    assert 0 == limits.held


def test_a_spool_that_nobody_closes_is_closed_with_its_response() -> None:
    """A request that ends without an answer leaks nothing."""
    limits = AnswerLimits()
    limits.collect(PIECES, "/")
    assert 0 == limits.held


def test_many_who_ask_for_the_same_share_one_answer() -> None:
    """It is made once, whoever comes while it is made or sent, and made again when all have gone."""
    limits = AnswerLimits()
    made = []
    go = threading.Event()

    def make() -> Response:
        go.wait(LONG)
        made.append(1)
        return Response(200, [], *limits.collect(PIECES, "/"))

    found: list[Response] = []
    threads = [threading.Thread(target=lambda: found.append(limits.shared('"s1"', make))) for _ in range(20)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    found.append(limits.shared('"s1"', make))
    assert (1, 21, 500_000) == (len(made), len(found), limits.held)
    for response in found:
        assert response.spool is not None
        response.spool.close()
    assert 0 == limits.held
    again = limits.shared('"s1"', make)
    assert 2 == len(made)
    assert again.spool is not None
    again.spool.close()


def test_few_answers_are_made_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third that would be is told to come later."""
    monkeypatch.setattr("signalbook.server.answers._PATIENCE", 0.01)
    limits = AnswerLimits()
    with limits.in_memory("/export"), limits.in_memory("/export"), pytest.raises(RegistryError):
        limits.in_memory("/export").__enter__()
    with limits.in_memory("/export"):
        pass


def test_pieces_of_text_are_gathered() -> None:
    """Many small texts become few writes, and no byte is lost."""
    texts = ["é" * 10] * 100_000
    pieces = list(encoded(texts))
    assert "".join(texts).encode() == b"".join(pieces)
    assert len(pieces) < 50
