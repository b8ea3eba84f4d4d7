import pytest

from signalbook.errors import RegistryError
from signalbook.server.access import Access, access_by, tokens
from signalbook.server.http import Request
from signalbook.settings import Settings
from tests.cases import Case, cases


@cases("server/access")
def test_who_may(case: Case) -> None:
    """Reading and writing need what the settings say, and a web page cannot write unasked."""
    given = dict(case.given)
    headers: dict[str, str] = {}
    if "token" in given:
        headers["authorization"] = f"Bearer {given.pop('token')}"
    for name in ("authorization", "origin"):
        if name in given:
            headers[name] = given.pop(name)
    base = given.pop("base", "http://127.0.0.1:8080")
    asks = given.pop("asks", False)
    request = Request(given.pop("method"), "/x", "", headers, b"", base)
    access = Access(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    outcome = ("", "/x")
    try:
        access.check(request, asks=asks)
    except RegistryError as error:
        outcome = (error.name, error.subject)
    assert (case.expect, "/x") == outcome


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(read_token="r"), "start it with --write-token"),
        (Settings(read_token="r", read_only=True), "without --read-only"),
        (Settings(read_token="r", write_token="w"), "The token is one for reading"),
        (Settings(read_token="r", open=True), ""),
    ],
)
def test_what_a_reader_is_told_who_writes(settings: Settings, words: str) -> None:
    """The words name what the operator could change; `--open` lets whoever may read write."""
    told = ""
    try:
        access_by(settings).check(Request("PUT", "/x", "", {"authorization": "Bearer r"}))
    except RegistryError as error:
        told = error.detail
    assert bool(words) == bool(told)
    assert words in told


def test_several_tokens_in_one_setting() -> None:
    """A setting may hold several tokens between commas, spaces or line ends."""
    assert ("a", "b", "c") == tokens(" a,b\nc\n")
    assert () == tokens("")
