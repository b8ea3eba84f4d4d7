from signalbook.errors import RegistryError
from signalbook.server.access import Access, tokens
from signalbook.server.http import Request
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
    request = Request(given.pop("method"), "/x", "", headers, b"", base)
    access = Access(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    outcome = ("", "/x")
    try:
        access.check(request)
    except RegistryError as error:
        outcome = (error.name, error.subject)
    assert (case.expect, "/x") == outcome


def test_several_tokens_in_one_setting() -> None:
    """A setting may hold several tokens between commas, spaces or line ends."""
    assert ("a", "b", "c") == tokens(" a,b\nc\n")
    assert () == tokens("")
