"""The tags of answers and the conditions of writes, as a client meets them."""

from __future__ import annotations

import pytest

from tests.registry.conftest import Api

GROUP = "/messagegroups/g"
MESSAGE = f"{GROUP}/messages/m"


@pytest.fixture
def message(api: Api) -> Api:
    """A registry with one message."""
    assert 201 == api("PUT", MESSAGE, {"name": "one"}).status
    return api


@pytest.mark.parametrize("path", [GROUP, MESSAGE, f"{MESSAGE}/versions/1"])
def test_a_tag_is_never_given_twice(message: Api, path: str) -> None:
    """An entity that was deleted and made again has another tag, though its epoch is the same."""
    before = message("GET", path)
    message("DELETE", GROUP)
    message("PUT", MESSAGE, {"name": "two"})
    after = message("GET", path, headers={"if-none-match": before.headers["etag"]})
    assert 200 == after.status
    assert before.json["epoch"] == after.json["epoch"]
    assert before.headers["etag"] != after.headers["etag"]


def test_a_new_model_makes_new_tags(message: Api) -> None:
    """A default that a new model brings shows in an entity whose epoch stays; so does its tag."""
    before = message("GET", MESSAGE)
    source = message("GET", "/modelsource").json
    added = {"name": "stage", "type": "string", "required": True, "default": "draft"}
    source["groups"]["messagegroups"]["resources"]["messages"]["attributes"]["stage"] = added
    assert 200 == message("PUT", "/modelsource", source).status
    for _ in range(2):  # the first answer after a change is made on the long road
        after = message("GET", MESSAGE, headers={"if-none-match": before.headers["etag"]})
        assert (200, "draft") == (after.status, after.json["stage"])


# What a client may send back, made from the tag of the message's own address and from that of a view of it.
CONDITIONS = {
    "the tag itself": ("{plain}", 200),
    "the tag as a weak one": ("W/{plain}", 200),
    "the tag of a compressed answer": ('"{inside}-zstd"', 200),
    "the tag of a view with flags": ("{view}", 200),
    "one of several": ('"e9.9-2026-01-01T00:00:00Z-x", {plain}', 200),
    "the epoch": ("1", 200),
    "the epoch in quotes": ('"1"', 200),
    "anything": ("*", 200),
    "an older epoch": ("7", 412),
    "the tag of one that was there before": ('"e1.1-2026-01-01T00:00:00Z-abc"', 412),
    "some other server's tag": ('"abc-1"', 412),
    "no tag at all": ("what", 412),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_if_match_compares_the_state(message: Api, name: str) -> None:
    """A write goes through where the entity is as the client saw it, whichever view or coding it saw it in."""
    plain = message("GET", MESSAGE).headers["etag"]
    view = message("GET", f"{MESSAGE}?inline=meta").headers["etag"]
    header, status = CONDITIONS[name]
    sent = header.format(plain=plain, view=view, inside=plain.strip('"'))
    assert status == message("PATCH", MESSAGE, {"name": "two"}, {"if-match": sent}).status
    name_ = message("GET", MESSAGE).json["name"]
    assert ("two" if status == 200 else "one") == name_


def test_if_none_match_creates_only(message: Api) -> None:
    """`If-None-Match: *` on a PUT refuses to replace what is there."""
    assert 412 == message("PUT", MESSAGE, {}, {"if-none-match": "*"}).status
    assert 201 == message("PUT", f"{GROUP}/messages/n", {}, {"if-none-match": "*"}).status
