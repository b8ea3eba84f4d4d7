"""Entity tags: a tag names exact bytes, and a change below changes the tag of everything that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbook.settings import Settings
from tests.conftest import POSTGRES, FreshStore
from tests.registry.conftest import Api, MakeApi, Reply

FILES = {"singular": "file", "hasdocument": False, "attributes": {"*": {"type": "any"}}}
DOCUMENTS = {"singular": "doc", "hasdocument": True}
MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": FILES, "docs": DOCUMENTS}}}}
WIDER = {
    "groups": {
        "dirs": {"singular": "dir", "resources": {"files": FILES, "docs": DOCUMENTS, "more": {"singular": "mo"}}}
    }
}
FILE = "/dirs/d1/files/f1"

# What shows version v1 of f1, which is not the default, and what shows the default version v2 as well.
SHOW_V1 = [
    f"{FILE}/versions/v1", f"{FILE}/versions", f"{FILE}?inline=versions", f"{FILE}?inline=*",
    f"{FILE}/versions?sort=name", "/dirs/d1/files?inline=versions", "/dirs/d1?inline=files.versions",
    "/dirs?inline=*", "/?inline=*", "/?inline=dirs.files.versions",
    "/export", "/?doc&inline=*", "/dirs/d1?doc&inline=*", "/dirs/d1?collections", "/?collections",
    "/dirs/d2/files/shown/versions/v1", "/dirs/d2/files/shown?inline=versions", "/dirs/d2/files?inline=versions",
    f"{FILE}/versions?filter=name=one*", "/dirs?inline=*&filter=files.versions.name=one*", f"{FILE}/versions?limit=1",
]  # fmt: skip
SHOW_V2 = [
    FILE, "/dirs/d1/files", "/dirs/d1?inline=files", "/?inline=dirs.files", "/dirs/d2/files/shown", "/dirs/d2/files",
    "/dirs/d1/files?sort=name", "/dirs/d1/files?limit=5", "/dirs/d1/files?filter=name=*", f"{FILE}/versions/v2",
]  # fmt: skip
# Lone entities that show neither: their tags are their own epochs.
SHOW_NEITHER = ["/dirs/d1", "/dirs/d2", "/dirs/d1/files/f2", "/dirs/d1/files/f2/versions/1"]


@pytest.fixture
def filled(make_api: MakeApi) -> Api:
    """A file with two versions, another beside it, and one in another group that shows the first."""
    api = make_api(model="empty", specversion="1.0-rc4")
    assert 200 == api("PUT", "/modelsource", MODEL).status
    api("PUT", f"{FILE}/versions/v1", {"name": "one"})
    api("PUT", f"{FILE}/versions/v2", {"name": "two"})
    api("PUT", "/dirs/d1/files/f2", {"name": "other"})
    api("PUT", "/dirs/d2/files/shown", {"meta": {"xref": FILE}})
    return api


def tags(api: Api, paths: list[str]) -> dict[str, str]:
    """The tags of what is at these paths now."""
    found = {}
    for path in paths:
        reply = api("GET", path)
        assert 200 == reply.status, (path, reply.body)
        found[path] = reply.headers["etag"]
    return found


def unchanged(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The paths whose tag is still the same."""
    return [path for path in before if before[path] == after[path]]


@pytest.mark.parametrize(
    ("version", "shown", "shown_not"),
    [
        ("v1", SHOW_V1, [f"{FILE}/versions/v2", *SHOW_NEITHER]),
        ("v2", [*SHOW_V1[1:15], *SHOW_V2], [f"{FILE}/versions/v1", *SHOW_NEITHER]),
    ],
)
def test_a_grandchild_changes_whatever_shows_it(
    filled: Api, version: str, shown: list[str], shown_not: list[str]
) -> None:
    """A modified version changes the tag of every response that shows it, and that of no lone entity that does not."""
    before, quiet = tags(filled, shown), tags(filled, shown_not)
    assert 200 == filled("PATCH", f"{FILE}/versions/{version}", {"name": "one more"}).status
    assert [] == unchanged(before, tags(filled, shown))
    assert shown_not == unchanged(quiet, tags(filled, shown_not))


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        (("PATCH", "/dirs/d1", {"name": "x"}), ["/dirs/d1", "/dirs", "/?inline=*", "/export"]),
        (("PUT", "/dirs/d1/files/f3", {}), ["/dirs/d1", "/dirs/d1/files", "/?inline=*", "/dirs"]),
        (("DELETE", "/dirs/d1/files/f2", None), ["/dirs/d1", "/dirs/d1/files", "/?inline=*", "/dirs"]),
        (("DELETE", f"{FILE}/versions/v1", None), [FILE, f"{FILE}/meta", f"{FILE}/versions", "/dirs/d2/files/shown"]),
        (("PATCH", f"{FILE}/meta", {"labels": {"a": "b"}}), [f"{FILE}/meta", f"{FILE}?inline=meta", "/export"]),
        (("PATCH", f"{FILE}/meta", {"defaultversionid": "v1"}), [FILE, f"{FILE}/versions/v1", f"{FILE}/versions/v2"]),
        (("PATCH", "/", {"name": "x"}), ["/", "/export"]),
        (("PUT", "/modelsource", WIDER), ["/model", "/modelsource", "/dirs/d1", "/dirs", "/?inline=model", "/export"]),
        (("PATCH", "/capabilities", {"pagination": False}), ["/capabilities", "/?inline=capabilities", "/export"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_what_changes_a_tag(filled: Api, change: tuple[str, str, Any], paths: list[str]) -> None:
    """Whatever a write does to an answer, its tag changes with it."""
    before = tags(filled, paths)
    assert filled(*change).status < 300
    assert [] == unchanged(before, tags(filled, paths))


def test_an_entity_made_anew(filled: Api) -> None:
    """The tag of an entity that was deleted and made again is another, though epoch and times are the same."""
    times = {"createdat": "2030-01-01T00:00:00Z", "modifiedat": "2030-01-01T00:00:00Z"}
    seen = []
    for name in ("first", "second"):
        filled("PUT", "/dirs/d9", {"name": name, **times})
        filled("PUT", "/dirs/d9/files/f9", {"name": name, "versionid": "v1", **times})
        seen.append(tags(filled, ["/dirs/d9/files/f9", "/dirs/d9/files/f9/versions/v1"]))
        filled("DELETE", "/dirs/d9")
    assert [] == unchanged(*seen)


@pytest.mark.parametrize(
    "path", ["/dirs/nope", "/dirs/d1/files/nope", "/dirs/d1/files/nope/meta", f"{FILE}/versions/nope"]
)
def test_nothing_is_not_unmodified(filled: Api, path: str) -> None:
    """`If-None-Match: *` asks whether there is anything at all, so what is missing stays 404."""
    assert 404 == filled("GET", path, headers={"if-none-match": "*"}).status
    assert 304 == filled("GET", FILE, headers={"if-none-match": "*"}).status
    assert 304 == filled("GET", f"{FILE}/meta", headers={"if-none-match": "*"}).status


def test_a_write_that_names_the_state_it_knows(filled: Api) -> None:
    """`If-Match` lets a write pass while the tag holds, and refuses it with 412 afterwards; nothing is written then."""
    tag = filled("GET", FILE).headers["etag"]
    assert 200 == filled("PATCH", FILE, {"name": "x"}, {"if-match": tag}).status
    refused = filled("PATCH", FILE, {"name": "y"}, {"if-match": tag})
    assert (412, "precondition_failed", "x") == (refused.status, refused.error, filled("GET", FILE).json["name"])
    assert 412 == filled("PUT", FILE, {"name": "z"}, {"if-none-match": "*"}).status
    assert 201 == filled("PUT", "/dirs/d1/files/new", {}, {"if-none-match": "*"}).status
    assert 412 == filled("PUT", "/dirs/d1/files/newer", {}, {"if-match": "*"}).status


# ---- the law

PATHS = [
    "/", "/dirs", "/dirs/d1", "/dirs/d1/files", FILE, f"{FILE}/meta", f"{FILE}/versions", f"{FILE}/versions/v1",
    f"{FILE}/versions/v2", "/dirs/d1/files/f2", "/dirs/d1/files/f2/versions/v1", "/?inline=*", "/export", "/model",
    "/capabilities", "/dirs/d1/docs/x", "/dirs/d1/docs/x$details", "/dirs/d1/docs/x/versions/1",
    "/dirs/d1/files?filter=name=one", f"{FILE}?specversion=1.0-rc2",
]  # fmt: skip
TIME = "2030-01-01T00:00:00Z"
ATTRS = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(["one", "two"]), "modifiedat": st.just(TIME), "createdat": st.just(TIME)}
)
XREF = {"meta": {"xref": "/dirs/d1/files/f2"}}
WRITES = st.one_of(
    st.tuples(st.sampled_from(["PUT", "PATCH"]), st.sampled_from(["/", "/dirs/d1", FILE, "/dirs/d1/files/f2"]), ATTRS),
    st.tuples(st.just("PUT"), st.sampled_from([f"{FILE}/versions/v1", f"{FILE}/versions/v2"]), ATTRS),
    st.tuples(st.just("PUT"), st.just(FILE), st.just(XREF) | st.just({"meta": {}})),
    st.tuples(
        st.just("PATCH"),
        st.just(f"{FILE}/meta"),
        st.sampled_from([{"defaultversionid": "v1"}, {}, {"labels": {"a": "b"}}]),
    ),
    st.tuples(
        st.just("DELETE"), st.sampled_from(["/dirs/d1", FILE, f"{FILE}/versions/v1", "/dirs/d1/files/f2"]), st.none()
    ),
    st.tuples(st.just("PUT"), st.just("/modelsource"), st.sampled_from([MODEL, WIDER])),
    st.tuples(st.just("PATCH"), st.just("/capabilities"), st.sampled_from([{"shortself": True}, {"shortself": False}])),
    st.tuples(st.just("PUT"), st.just("/dirs/d1/docs/x"), st.sampled_from([b"hello", b"world", b""])),
)


def replies(api: Api) -> Iterator[tuple[str, Reply]]:
    """What every path answers now."""
    for path in PATHS:
        reply = api("GET", path)
        if reply.status == 200:
            yield path, reply


@given(writes=st.lists(WRITES, min_size=1, max_size=12))
@settings(max_examples=15 if POSTGRES else 50, suppress_health_check=list(HealthCheck))
def test_a_tag_names_bytes(fresh_store: FreshStore, writes: list[tuple[str, str, Any]]) -> None:
    """Whatever was written in between: answers of one path with one tag are equal, and 304 comes only for such."""
    api = Api(Settings(store=fresh_store(), model="empty", specversion="1.0-rc4"))
    try:
        api("PUT", "/modelsource", MODEL)
        seen: dict[tuple[str, str], bytes] = {}
        for write in writes:
            api(*write)
            for path, reply in replies(api):
                assert seen.setdefault((path, reply.headers["etag"]), reply.body) == reply.body, path
                everything = ", ".join(tag for known, tag in seen if known == path)
                assert 304 == api("GET", path, headers={"if-none-match": everything}).status
                older = ", ".join(tag for (known, tag), body in seen.items() if known == path and body != reply.body)
                if older:
                    assert 200 == api("GET", path, headers={"if-none-match": older}).status
    finally:
        api.service.close()
