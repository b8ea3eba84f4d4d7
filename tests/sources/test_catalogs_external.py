"""Base messages that are kept elsewhere: which of them are fetched, and what of them counts."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from signalbook.client import RemoteError
from signalbook.errors import UsageError
from signalbook.sources.catalogs import Fetched, Fetcher, Reach, external_bases, place_of

BASE = "http://base.example/messagegroups/h/messages/b"
SAID = {"name": "near", "envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "b"}}}
SERVED = {
    "messageid": "b",
    "versionid": "1",
    "self": BASE,
    "xid": "/messagegroups/h/messages/b",
    "epoch": 3,
    "isdefault": True,
    "createdat": "2024-01-01T00:00:00Z",
    "modifiedat": "2024-01-01T00:00:00Z",
    "ancestor": "1",
    "metaurl": f"{BASE}/meta",
    "versionsurl": f"{BASE}/versions",
    "versionscount": 1,
}


class Pages(Fetcher):
    """A web of pages that a test lays out."""

    def __init__(self, **pages: dict[str, Any]) -> None:
        super().__init__(Reach())
        self.pages = pages
        self.asked: list[str] = []

    def get(self, address: str, known: Fetched | None = None, *, trusted: bool = True) -> Fetched:
        """The page at an address, asked for without the token."""
        assert not trusted
        self.asked.append(address)
        if address not in self.pages:
            raise RemoteError(f"{address} answered 404", status=404)
        return Fetched(self.pages[address])


def document(base: str) -> dict[str, Any]:
    """A catalog of one message with that base."""
    return {"messagegroups": {"g": {"messages": {"m": {"basemessage": base}}}}}


def found(base: str, pages: dict[str, dict[str, Any]], *hosts: str) -> tuple[dict[str, Any], list[str]]:
    """The bases that are had, and the addresses that were asked."""
    web = Pages(**pages)
    return dict(external_bases([document(base)], web, frozenset(hosts))), web.asked


def test_only_what_its_author_said() -> None:
    """What the other registry keeps about a message is no part of a definition that derives from it."""
    assert {BASE: SAID} == found(BASE, {BASE: {**SERVED, **SAID}}, "base.example")[0]
    borrowed = {**SERVED, **SAID, "meta": {"xref": "/messagegroups/i/messages/b", "epoch": 1}}
    assert {BASE: SAID} == found(BASE, {BASE: borrowed}, "base.example")[0]


@pytest.mark.parametrize("spelling", ["basemessage", "basemessageuri", "basemessageurl"])
def test_a_relative_base_belongs_to_its_registry(spelling: str) -> None:
    """The base of a base is looked up where that came from, however it is spelled."""
    far = "http://base.example/messagegroups/h/messages/a"
    pages = {BASE: {**SERVED, spelling: "/messagegroups/h/messages/a"}, far: {"name": "far"}}
    assert {BASE: {"basemessage": far}, far: {"name": "far"}} == found(BASE, pages, "base.example")[0]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"b": {**SERVED, **SAID}},
        {"b": {"messageid": "b"}, "c": {"xid": "/messagegroups/h/messages/c"}},
        {"messagegroupid": "h", "xid": "/messagegroups/h", "messages": {"b": SAID}},
        {"messagegroupid": "h", "messages": {"b": SAID}},
        {"registryid": "r", "specversion": "1.0-rc2", "xid": "/"},
        {"messageid": "b", "xid": "/messagegroups/h/messages/b/meta", "epoch": 1},
        {"schemaid": "s", "xid": "/schemagroups/h/schemas/s"},
        {"name": "twice", "basemessage": "/a", "basemessageuri": "/b"},
    ],
    ids=["nothing", "collection", "two", "group", "group alone", "registry", "meta", "schema", "two bases"],
)
def test_what_is_no_message_is_no_base(content: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Another entity, a collection, and a message that says two things at once are left out and said."""
    assert ({}, [BASE]) == found(BASE, {BASE: content}, "base.example")
    assert [f"the base message {BASE} is left out"] == [one.message.partition(": ")[0] for one in caplog.records]


def test_a_message_of_an_endpoint_and_a_version_are_bases() -> None:
    """A message of an endpoint, and a version of a message, are messages."""
    for xid in ("/endpoints/e/messages/b", "/messagegroups/h/messages/b/versions/1"):
        address = f"http://base.example{xid}"
        assert {address: SAID} == found(address, {address: {**SERVED, **SAID, "xid": xid}}, "base.example")[0]


@pytest.mark.parametrize(
    ("base", "host"),
    [
        ("http://127.0.0.1:18555/b", "127.0.0.1"),
        ("http://base.example/b", "base.example:8080"),
        ("http://base.example:81/b", "base.example:82"),
    ],
)
def test_another_port_is_said(base: str, host: str, caplog: pytest.LogCaptureFixture) -> None:
    """A base at a host that is allowed at another port is not followed, and it is said what would allow it, once."""
    assert ({}, []) == found(base, {base: SAID}, host)
    assert [logging.WARNING] == [one.levelno for one in caplog.records]
    assert f"only the host {place_of(base)} would allow it" in caplog.text


@pytest.mark.parametrize("host", ["base.example:81", "base.example"])
def test_an_address_is_said_in_one_line(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """What an address holds neither ends a line of a log nor steers a terminal."""
    assert {} == found("http://base.example:81/\x1b[31m\n::warning::x\u202e", {}, host)[0]
    (record,) = caplog.records
    assert record.getMessage().isprintable()


def test_other_hosts_are_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    """A base at a host that nobody named stays where it is, without a word."""
    assert ({}, []) == found(BASE, {BASE: SAID}, "other.example", "[::1]:8080")
    assert "" == caplog.text


@pytest.mark.parametrize(
    ("base", "host"),
    [
        ("http://base.example:80/b", "base.example"),
        ("https://base.example/b", "BASE.example"),
        ("https://base.example:443/b", "base.example"),
        ("http://base.example/b", "base.example:80"),
        ("http://[::1]:8080/b", "[::1]:8080"),
        ("http://Base.Example:8080/b", "base.example:8080"),
    ],
)
def test_one_host_in_two_spellings(base: str, host: str) -> None:
    """The usual port may be named or not, a host has no case, and an address of IPv6 stands in brackets."""
    assert {base: SAID} == found(base, {base: SAID}, host)[0]


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("http://127.0.0.1:18555/b", "127.0.0.1:18555"),
        ("https://base.example", "base.example"),
        ("base.example/messagegroups", "base.example:8080"),
        ("a@base.example", "base.example:8080"),
        ("base.example:99999", "base.example:8080"),
        ("::1", "base.example:8080"),
        ("", "base.example:8080"),
        ("*", "base.example:8080"),
    ],
)
def test_what_is_no_host_is_refused(host: str, meant: str) -> None:
    """A host that could never be met is refused before anything is read, with what it should look like."""
    with pytest.raises(UsageError, match=f"write it as in {meant}$"):
        external_bases([], Pages(), frozenset({host}))
