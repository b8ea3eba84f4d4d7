from collections.abc import Callable

import httpx
import pytest

from signalbook.cli.output import Unreachable
from signalbook.cli.target import Shown, _Server

ADDRESS = "http://registry.example/prefix"
Answer = Callable[[httpx.Request], httpx.Response]


def server(answer: Answer) -> _Server:
    """A server that answers so."""
    client = httpx.Client(base_url=ADDRESS, transport=httpx.MockTransport(answer))
    return _Server(client, ADDRESS)


def pages(link: str, *texts: str) -> Answer:
    """Answers with one text a page; `link` is the address of a page, as the server writes it."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert "http://registry.example/prefix/things" == str(request.url).partition("?")[0]
        number = int(request.url.params.get("page", "0"))
        links = ["</>;rel=xregistry-root"]
        if number + 1 < len(texts):
            links.append(f"<{link.format(number + 1)}>;rel=next;count=7")
        return httpx.Response(200, text=texts[number], headers=[("link", value) for value in links])

    return answer


@pytest.mark.parametrize(
    "link",
    [
        "http://registry.example/prefix/things?page={}",
        "https://elsewhere.example/things?page={}",
        "/prefix/things?sort=a&page={}",
        "?page={}",
    ],
)
def test_pages_are_followed_at_the_address_that_was_named(link: str) -> None:
    """Every page is asked for where the first one was, and all of them are one object, however each is laid out."""
    shown = server(pages(link, '{"a":1}', '{\n  "b": 2\n}\n', "{}", '{"c":3}')).show("/things?sort=a")
    assert Shown('{"a":1,"b": 2,"c":3}') == shown


def test_a_limit_ends_it() -> None:
    """With a limit one page is shown, with where the next is and how many entries there are."""
    answer = pages("http://registry.example/prefix/things?limit=1&page={}", '{"a":1}', '{"b":2}')
    assert Shown('{"a":1}', "/things?limit=1&page=1", 7) == server(answer).show("/things?limit=1")


def test_a_circle_is_left() -> None:
    """A server whose pages never end is not followed for ever."""
    answer = httpx.Response(200, text="{}", headers={"link": "<?page=1>;rel=next"})
    with pytest.raises(Unreachable, match="links the pages of /things in a circle"):
        server(lambda request: answer).show("/things")
