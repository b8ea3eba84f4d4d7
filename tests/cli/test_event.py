from __future__ import annotations

import json
from pathlib import Path

import pytest

from signalbook.cli.event import PROTOCOLS
from signalbook.cloudevents import CloudEvent, decode, encode
from tests.cli.conftest import Run

EVENTS = [
    CloudEvent.create({"specversion": "1.0", "id": str(n), "source": "/s", "type": "t"}, {"n": n}) for n in range(3)
]
LINES = "\n".join(encode(event).decode() for event in EVENTS) + "\n"


@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("mode", [None, "structured"])
def test_there_and_back(run: Run, target: str, mode: str | None) -> None:
    """Events written as messages of any binding and read back are the same events."""
    options = ("--mode", mode) if mode else ()
    there = run("event", "encode", "--to", target, *options, stdin=LINES)
    assert (0, "") == (there.code, there.err)
    back = run("event", "decode", "--from", target, stdin=there.out)
    assert EVENTS == [decode(line) for line in back.out.splitlines()]
    assert back == run("event", "decode", stdin=there.out)


def test_batches(run: Run) -> None:
    """Lines become a batch or an HTTP message with one, and a batch becomes lines again."""
    batch = run("event", "convert", "--to", "batch", stdin=f"\n{LINES}\n")
    assert LINES == run("event", "decode", stdin=batch.out).out
    assert LINES == run("event", "decode", "--from", "batch", stdin=batch.out).out
    message = run("event", "encode", "--to", "http", "--mode", "batch", "--set", "path=/in", stdin=LINES)
    assert "/in" == message.json["path"]
    assert LINES == run("event", "convert", "--to", "json", stdin=message.out).out
    assert "[]\n" == run("event", "convert", "--to", "batch").out


def test_a_document_of_several_lines(run: Run, tmp_path: Path) -> None:
    """A single document may be laid out over several lines, in a file or on standard input."""
    file = tmp_path / "event.json"
    file.write_text(json.dumps(json.loads(encode(EVENTS[0])), indent=2), encoding="utf-8")
    assert EVENTS[0] == decode(run("event", "decode", str(file)).out)


def test_fields(run: Run) -> None:
    """--set gives messages their own fields: text as it is, the rest as JSON."""
    result = run("event", "encode", "--to", "kafka", "--set", "key=a=b", "--set", "partition=3", stdin=LINES)
    assert ("a=b", 3) == tuple(json.loads(result.out.splitlines()[0])[name] for name in ("key", "partition"))


def test_what_is_wrong_is_said(run: Run) -> None:
    """Each bad line, element or message is named on standard error; the others come out, and the exit code is 1."""
    stdin = LINES + '{"id":""}\n\n[{},1]\n{"protocol":"HTTP"}\n{"protocol":"X"}\nrubbish\n'
    result = run("event", "decode", stdin=stdin)
    assert (1, LINES) == (result.code, result.out)
    places = ["line 4", "line 6, event 0", "line 6, event 1", "line 7", "line 8", "line 9"]
    assert places == [line.split(":")[1].strip() for line in result.err.splitlines()]
    lines = run("event", "decode", stdin="rubbish\n" + LINES)
    assert (1, LINES) == (lines.code, lines.out)


def test_what_cannot_be_carried_is_said(run: Run) -> None:
    """An event that the binding cannot carry in the mode is named, and the others go out."""
    empty = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":""}\n'
    result = run("event", "encode", "--to", "http", stdin=empty + LINES)
    assert (1, 3) == (result.code, len(result.out.splitlines()))
    assert "line 1: /data: zero bytes" in result.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--to", "json", "--mode", "binary"), "for messages"),
        (("--to", "kafka", "--mode", "batch"), "no batches"),
        (("--to", "kafka", "--set", "topic"), "is not a field of"),
        (("--to", "kafka", "--set", "subject=x"), "is not a field of"),
        (("--to", "kafka", "--set", "partition=x"), "takes JSON"),
        (("--to", "kafka", "--set", "partition=-1"), "must be an integer"),
        (("--to", "kafka", "--set", "topic=a/b"), "must be a topic"),
        (("--to", "http", "--set", 'headers=[["X-A","a\\r\\nb"]]'), "control characters"),
        (("--to", "http", "--set", 'headers=[["X A:","a"]]'), "as headers have"),
        (("--to", "json", "--from", "nats"), "leave --from out"),
    ],
)
def test_wrong_usage(run: Run, options: tuple[str, ...], said: str) -> None:
    """What the options cannot mean is refused with what to do instead."""
    result = run("event", "convert", *options, stdin='{"protocol":"HTTP"}')
    assert 2 == result.code
    assert said in result.err


@pytest.mark.parametrize(
    ("target", "setting"),
    [("http", 'headers=[["content-type","text/x"]]'), ("amqp", 'properties={"content-type":"text/x"}')],
)
def test_another_content_type(run: Run, target: str, setting: str) -> None:
    """A content type that is not the event's does not vanish: it is refused."""
    result = run("event", "encode", "--to", target, "--set", setting, stdin=LINES)
    assert (1, "") == (result.code, result.out)
    assert 3 == result.err.count("R39")


def test_own_fields_go_along(run: Run) -> None:
    """A message's own fields stay with its event within a protocol, and are named where they cannot."""
    there = run(
        "event", "encode", "--to", "kafka", "--set", "topic=t", "--set", "key=k",
        "--set", 'headers=[["x-team","a"]]', stdin=LINES,
    )  # fmt: skip
    same = run("event", "convert", "--to", "kafka", "--mode", "structured", stdin=there.out)
    first = json.loads(same.out.splitlines()[0])
    assert ("t", "k", ["x-team", "a"]) == (first["topic"], first["key"], first["headers"][0])
    assert (0, "") == (same.code, same.err)
    other = run("event", "convert", "--to", "http", stdin=there.out)
    assert (0, 3) == (other.code, len(other.out.splitlines()))
    assert "signalbook: line 1: /topic: topic is not carried: HTTP has no place for it; /key: " in other.err
    batch = run("event", "convert", "--to", "batch", stdin=there.out)
    assert 3 == batch.err.count("/headers/0: x-team is not carried")
    assert "" == run("event", "decode", stdin=there.out).err


def test_findings_in_json(run: Run) -> None:
    """With --json, what is wrong or left is one object a line on standard error."""
    message = {"protocol": "NATS", "subject": "s", "payload": LINES.splitlines()[0]}
    left = run("event", "convert", "--to", "json", "--json", stdin=json.dumps(message))
    words = "subject is not carried: an event alone has no place for it"
    assert {"place": "line 1", "path": "/subject", "code": "lost", "message": words} == json.loads(left.err)
    wrong = run("event", "decode", "--json", stdin='{"specversion":"1.0","id":"","source":"a b","type":"t"}')
    assert ["R8", "R19"] == [json.loads(line)["code"] for line in wrong.err.splitlines()]
    assert 1 == wrong.code
