import json
import logging

import pytest

from signalbook.errors import RegistryError, StoreError
from signalbook.server.http import JSON
from signalbook.server.problems import _StoreFailures, not_supported, problem, respond
from signalbook.spec.error_types import ERROR_TYPES


def test_the_form_of_an_error() -> None:
    """ERR-1 to ERR-4: type, title, detail, subject and args, as JSON, and nothing else."""
    error = RegistryError("mismatched_epoch", "/dirs/d1", detail="Read it again.", bad_epoch=3, epoch=4)
    response = respond(error, "/ignored")
    assert (400, [JSON]) == (response.status, response.headers)
    assert {
        "type": "https://github.com/xregistry/spec/blob/main/core/spec.md#mismatched_epoch",
        "title": 'The specified epoch value (3) for "/dirs/d1" does not match its current value (4).',
        "detail": "Read it again.",
        "subject": "/dirs/d1",
        "args": {"bad_epoch": "3", "epoch": "4"},
    } == json.loads(response.body)


@pytest.mark.parametrize("name", sorted(ERROR_TYPES))
def test_every_error_has_a_response(name: str) -> None:
    """Each error of the list becomes a response with its status and type."""
    row = ERROR_TYPES[name]
    error = RegistryError(name, "/x", **dict.fromkeys(row.args, "value"))
    response = respond(error, "/x")
    body = json.loads(response.body)
    assert (row.status, name) == (response.status, body["type"].rpartition("#")[2])
    assert set(row.args) == set(body.get("args", {}))
    assert "<" not in body["title"]


def test_a_failure_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is no RegistryError is `server_error`; its traceback is in the log under the instance that is shown."""
    with caplog.at_level(logging.ERROR, "signalbook.server"):
        logging.getLogger("signalbook").propagate = True
        response = respond(ValueError("a secret"), "/x")
    body = json.loads(response.body)
    assert 500 == response.status
    assert b"secret" not in response.body
    assert body["instance"].startswith("urn:signalbook:failure:")
    assert body["instance"] in caplog.text
    assert "a secret" in caplog.text


def test_a_store_that_cannot_answer_is_busy() -> None:
    """A StoreError is 503 with the advice to try again."""
    response = respond(StoreError("locked"), "/x")
    assert (503, True) == (response.status, ("retry-after", "1") in response.headers)
    assert b"locked" not in response.body


def test_a_failure_of_the_store_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Many requests that meet the same failure show one `instance`, which the log has once, without a traceback."""
    logging.getLogger("signalbook").propagate = True
    with caplog.at_level(logging.ERROR, "signalbook.server"):
        shown = {json.loads(respond(StoreError("it is away"), f"/x{number}").body)["instance"] for number in range(50)}
        other = json.loads(respond(StoreError("another\nreason"), "/x").body)["instance"]
    (instance,) = shown
    assert instance != other
    assert [
        f"{instance}: the store failed: it is away",
        rf"{other}: the store failed: another\nreason",
    ] == caplog.messages
    assert not any(one.exc_info for one in caplog.records)


def test_a_failure_that_lasts_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    """After a minute there is another line; how many failures are remembered is bounded."""
    clock = iter([0.0, 59.0, 60.0, 61.0, *[200.0] * 1000])
    failures = _StoreFailures(lambda: next(clock))
    logging.getLogger("signalbook").propagate = True
    with caplog.at_level(logging.ERROR, "signalbook.server"):
        assert 1 == len({failures.instance("away") for _ in range(4)})
        assert 2 == len(caplog.messages)
        for number in range(500):
            failures.instance(str(number))
    assert len(failures._known) <= 64


@pytest.mark.parametrize(
    ("error", "header"),
    [
        (RegistryError("unauthorized", "/x"), ("www-authenticate", 'Bearer realm="signalbook"')),
        (RegistryError("request_too_large", "/x", limit=1), ("connection", "close")),
        (not_supported("/x", "PUT", "GET, OPTIONS"), ("allow", "GET, OPTIONS")),
    ],
    ids=["401", "413", "405"],
)
def test_headers_that_belong_to_an_error(error: RegistryError, header: tuple[str, str]) -> None:
    """Some errors need a header: how to log in, that the connection ends, which methods there are."""
    assert header in respond(error, "/x").headers


def test_text_without_utf8_is_still_an_answer() -> None:
    """Half a surrogate pair in a subject does not break the error about it."""
    response = respond(RegistryError("not_found", "/\ud800"), "/")
    assert (404, "/?") == (response.status, json.loads(response.body.decode())["subject"])


def test_an_error_may_have_no_subject() -> None:
    """What is empty is left out."""
    assert {"type", "title"} == set(problem(RegistryError("server_error")))
