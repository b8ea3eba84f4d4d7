"""match, validate, build, sample and show: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.conftest import StartServer
from tests.patience import LONG

XID = "/messagegroups/g/messages/com.example.moved"
CATALOG: dict[str, Any] = {
    "messagegroups": {
        "g": {
            "messages": {
                "com.example.moved": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {
                        "type": {"value": "com.example.moved"},
                        "source": {"value": "/vehicles/{vin}", "type": "uritemplate"},
                    },
                    "dataschemaformat": "JsonSchema/draft-07",
                    "dataschema": {"type": "object", "properties": {"speed": {"type": "number"}}},
                },
                "com.example.stopped": {
                    "basemessage": XID,
                    "envelopemetadata": {"type": {"value": "com.example.stopped"}},
                },
            }
        },
        "h": {"messages": {"ping": {"protocol": "NATS", "protocoloptions": {"subject": "ping.{who}"}}}},
    }
}
MOVED = {"specversion": "1.0", "id": "1", "type": "com.example.moved", "source": "/vehicles/A1", "data": {"speed": 1}}


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """A file with the catalog."""
    path = tmp_path / "moved.xreg.json"
    path.write_text(json.dumps(CATALOG), encoding="utf-8")
    return str(path)


def lines(text: str) -> list[Any]:
    """What each line is."""
    return [json.loads(line) for line in text.splitlines()]


def text_of(*values: Any) -> str:
    """Values as JSON lines."""
    return "".join(json.dumps(value) + "\n" for value in values)


def test_match(run: Run, catalog: str) -> None:
    """One answer a line, in order, a summary on standard error, and exit code 1 where one is not matched."""
    wrong = {**MOVED, "data": {"speed": "fast"}}
    other = {"protocol": "NATS", "subject": "ping.me"}
    result = run("match", "--catalog", catalog, "--json", stdin=text_of(MOVED, wrong, other) + "\nnonsense\n")
    answers = lines(result.out)
    assert ["matched", "nonconformant", "matched", "malformed"] == [answer["outcome"] for answer in answers]
    assert [XID, XID, "/messagegroups/h/messages/ping", None] == [answer["definition"] for answer in answers]
    assert [{"vin": "A1"}, {"who": "me"}] == [answers[0]["context"], answers[2]["context"]]
    assert [("/data/speed", "payload")] == [(one["path"], one["code"]) for one in answers[1]["problems"]]
    assert 1 == result.code
    assert "4 message(s): 2 matched, 1 nonconformant, 1 malformed\n" == result.err
    assert {"outcome", "definition", "context", "problems", "candidates", "cloudevent", "data"} == answers[0].keys()


def test_match_within(run: Run, catalog: str) -> None:
    """--within looks among the messages of a group only; a scope that is not there is refused."""
    result = run("match", "--catalog", catalog, "--within", "/messagegroups/h", "--json", stdin=text_of(MOVED))
    assert ("unexpected", 1) == (result.json["outcome"], result.code)
    refused = run("match", "--catalog", catalog, "--within", "/messagegroups/z", "--json", stdin=text_of(MOVED))
    assert "" == refused.out
    assert 0 != refused.code
    assert "/messagegroups/z" in refused.err


def test_match_in_words(run: Run, catalog: str) -> None:
    """Without --json an answer is a sentence, with the problems and what comes near below it."""
    near = {**MOVED, "source": "/ships/A1"}
    result = run("match", "--catalog", catalog, stdin=text_of(MOVED, near))
    assert result.out.startswith(f"line 1: matched {XID} (vin=A1)\nline 2: nonconformant {XID}\n")
    assert "[template]" in result.out


def test_a_batch_has_an_answer_for_each_event(run: Run, catalog: str) -> None:
    """A line with an array of events gives as many lines."""
    result = run("match", "--catalog", catalog, "--json", stdin=text_of([MOVED, {**MOVED, "type": "z"}]))
    assert ["matched", "unexpected"] == [answer["outcome"] for answer in lines(result.out)]


def test_validate(run: Run, catalog: str) -> None:
    """By a named definition everything that is wrong is listed, whatever the message would match."""
    assert 0 == run("validate", "--catalog", catalog, "--json", stdin=text_of(MOVED)).code
    other = {**MOVED, "type": "x", "data": {"speed": "y"}}
    result = run("validate", "--catalog", catalog, "--definition", XID, "--json", stdin=text_of(other))
    assert {"/envelopemetadata/type", "/data/speed"} == {one["path"] for one in result.json["problems"]}
    assert 1 == result.code
    absent = run("validate", "--catalog", catalog, "--definition", "/messagegroups/g/messages/z", stdin=text_of(other))
    assert "is not a message of the catalog" in absent.err


def test_build(run: Run, catalog: str) -> None:
    """A line of values gives a line with the result; what is missing and wrong is all there."""
    given = text_of(
        {"context": {"vin": "A 1"}, "attributes": {"id": "7"}, "data": {"speed": 3}},
        {"data": {"speed": "x"}},
        {"context": {"vin": "A"}, "protocol": {"protocol": "KAFKA", "topic": "t"}, "attributes": {"id": "8"}},
        {"contexts": {}},
    )
    result = run("build", "--catalog", catalog, "--definition", XID, "--json", stdin=given)
    first, second, third, fourth = lines(result.out)
    expected = {
        "specversion": "1.0",
        "type": "com.example.moved",
        "source": "/vehicles/A%201",
        "id": "7",
        "datacontenttype": "application/json",
        "data": {"speed": 3},
    }
    assert {"ok": True, "cloudevent": expected} == first
    assert (False, ["vin"]) == (second["ok"], second["missing"])
    assert ["missing", "payload"] == [one["code"] for one in second["problems"]]
    assert "KAFKA" == third["message"]["protocol"]
    assert (False, "malformed") == (fourth["ok"], fourth["problems"][0]["code"])
    assert (1, "2 message(s) built, 2 not\n") == (result.code, result.err)


def test_build_is_used_wrongly(run: Run, catalog: str) -> None:
    """A protocol that nobody knows is wrong before a line is read; --number goes with --json."""
    result = run("build", "--catalog", catalog, "--definition", XID, "--protocol", "SMTP")
    assert (2, "") == (result.code, result.out)
    assert "--protocol 'SMTP' is not one of " in result.err
    assert 2 == run("build", "--catalog", catalog, "--definition", XID, "--number").code
    assert 0 == run("build", "--catalog", catalog, "--definition", XID, "--protocol", "kafka").code


def test_what_was_built_names_its_line(run: Run, catalog: str) -> None:
    """With --number a result begins with the number of its line; values over several lines are said to be so."""
    given = "\n" + text_of({"context": {"vin": "A"}}, {}) + json.dumps({"context": {}}, indent=1)
    result = run("build", "--catalog", catalog, "--definition", XID, "--json", "--number", stdin=given)
    assert [2, 3, 4, 5, 6] == [one["line"] for one in lines(result.out)]
    assert "signalbook: line 4 is only the beginning of a document" in result.err


def test_what_is_said_of_a_build_is_one_line(run: Run, catalog: str) -> None:
    """A value that a problem repeats does not end its line."""
    given = text_of({"context": {"vin": "A"}, "attributes": {"type": "x\ny\u001b"}})
    said = run("build", "--catalog", catalog, "--definition", XID, stdin=given).err
    assert "\x1b" not in said
    assert [] == [one for one in said.splitlines()[:-1] if not one.startswith("signalbook: line 1: ")]


def test_a_line_may_name_its_definition(run: Run, catalog: str) -> None:
    """A line of values that names a definition is built by that one."""
    given = text_of({"definition": "/messagegroups/h/messages/ping", "context": {"who": "me"}}, {"definition": "/z"})
    first, second = lines(run("build", "--catalog", catalog, "--definition", XID, "--json", stdin=given).out)
    assert {"protocol": "NATS", "subject": "ping.me"} == first["message"]
    assert '"/z" is not a message of the catalog' == second["problems"][0]["message"]
    assert 3 == run("build", "--catalog", catalog, "--definition", "/z", "--json", stdin="{}").code


def test_build_and_match_in_a_pipe(run: Run, catalog: str) -> None:
    """Without --json the messages alone are printed, as match reads them; what is wrong goes to standard error."""
    given = text_of({"context": {"vin": "A"}}, {})
    built = run("build", "--catalog", catalog, "--definition", XID, "--protocol", "http", stdin=given)
    assert 1 == len(built.out.splitlines())
    assert "signalbook: line 2: /envelopemetadata/source: source needs a value for vin [missing]" in built.err
    assert "matched" == run("match", "--catalog", catalog, "--json", stdin=built.out).json["outcome"]


def test_sample_and_match_in_a_pipe(run: Run, catalog: str) -> None:
    """The samples of a catalog are matched by it, each by its own definition."""
    xids = [f"/messagegroups/{name}" for name in ("g/messages/com.example.moved", "g/messages/com.example.stopped")]
    made = run("sample", "--catalog", catalog)
    result = run("match", "--catalog", catalog, "--json", stdin=made.out)
    assert [*xids, "/messagegroups/h/messages/ping"] == [answer["definition"] for answer in lines(result.out)]
    one = run("sample", "--catalog", catalog, "--definition", XID, "--json")
    assert (XID, True, {"speed": 0.5}) == (one.json["definition"], one.json["ok"], one.json["cloudevent"]["data"])


def test_show(run: Run, catalog: str) -> None:
    """A definition is shown as materialised, each value with the definition it comes from."""
    xid = "/messagegroups/g/messages/com.example.stopped"
    shown = run("show", "--catalog", catalog, xid, "--json").json
    assert "/vehicles/{vin}" == shown["definition"]["envelopemetadata"]["source"]["value"]
    assert [XID] == shown["bases"]
    assert XID == shown["origins"]["/envelopemetadata/source/value"]
    assert xid == shown["origins"]["/envelopemetadata/type/value"]
    words = run("show", "--catalog", catalog, xid)
    assert f'"com.example.stopped"  <- {xid}\n' in words.out
    assert 0 != run("show", "--catalog", catalog, "/messagegroups/g/messages/z").code


def test_what_is_shown_stays_on_its_line(run: Run, tmp_path: Path) -> None:
    """A value of a definition can neither end a line nor steer a terminal."""
    path = tmp_path / "odd.xreg.json"
    message = {"name": "a\u202eb\u0085c", "labels": {"x\ny": "z"}}
    path.write_text(json.dumps({"messagegroups": {"g": {"messages": {"m": message}}}}), encoding="utf-8")
    shown = run("show", "--catalog", str(path), "/messagegroups/g/messages/m").out
    assert 2 == len(shown.splitlines())
    assert "a\\u202eb\\u0085c" in shown


def test_a_catalog_from_anywhere(run: Run, catalog: str, shared_store_url: str, start_server: StartServer) -> None:
    """A file, a folder, a store and a running registry give the same answer."""
    assert 0 == run("load", catalog, "--store", shared_store_url, "--quiet").code
    server = start_server(store=shared_store_url)
    places = (catalog, str(Path(catalog).parent), shared_store_url, server)
    if "://" not in shared_store_url:
        assert Path(shared_store_url).is_file()
    answers = [run("match", "--catalog", place, "--json", stdin=text_of(MOVED)).out for place in places]
    assert 1 == len(set(answers))
    assert "matched" == json.loads(answers[0])["outcome"]


def test_a_schema_by_the_address_of_its_registry(run: Run, start_server: StartServer, tmp_path: Path) -> None:
    """A schema that is named by the registry's own address is found with --catalog URL, and what is built names it."""
    server = start_server(store=str(tmp_path / "own.db"))
    definition = {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "t"}},
        "dataschemaformat": "JsonSchema/draft-07",
    }
    messages = {
        "own": {**definition, "dataschemauri": f"{server}/schemagroups/s/schemas/n$details"},
        "path": {
            **definition,
            "envelopemetadata": {"type": {"value": "p"}},
            "dataschemauri": "/schemagroups/s/schemas/n",
        },
    }
    schemas = {"n": {"format": "JsonSchema/draft-07", "schema": {"type": "integer"}}}
    path = tmp_path / "own.xreg.json"
    path.write_text(
        json.dumps({"messagegroups": {"g": {"messages": messages}}, "schemagroups": {"s": {"schemas": schemas}}})
    )
    loaded = run("load", str(path), "--server", server, "--quiet")
    assert 0 == loaded.code, loaded.err
    events = [{"specversion": "1.0", "id": "1", "type": "t", "source": "/s", "data": data} for data in (1, "x")]
    answers = lines(run("match", "--catalog", server, "--json", stdin=text_of(*events)).out)
    assert [("matched", None), ("nonconformant", None)] == [(one["outcome"], one.get("unchecked")) for one in answers]
    made = run("sample", "--catalog", server, "--definition", "/messagegroups/g/messages/path")
    assert f"{server}/schemagroups/s/schemas/n" == lines(made.out)[0]["dataschema"]


def test_a_store_stands_alone(run: Run, catalog: str, tmp_path: Path) -> None:
    """A store beside another catalog is refused; so is one that is not there."""
    store = str(tmp_path / "one.db")
    run("load", catalog, "--store", store, "--quiet")
    assert 2 == run("match", "--catalog", catalog, "--catalog", store, stdin="").code
    assert 2 == run("match", "--catalog", str(tmp_path / "nothing"), stdin="").code
    assert 3 == run("match", "--catalog", "http://127.0.0.1:9", stdin="").code


def test_answers_come_as_soon_as_messages_do(catalog: str) -> None:
    """In a pipe an answer is written before the next message is read."""
    command = [sys.executable, "-m", "signalbook", "match", "--catalog", catalog, "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(text_of(MOVED).encode())
            process.stdin.flush()
            assert b'"matched"' in process.stdout.readline()
        process.stdin.close()
        assert 0 == process.wait(timeout=LONG)


def test_a_line_is_bounded(run: Run, catalog: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is too long is one malformed message, and the next is read."""
    monkeypatch.setattr("signalbook.cli.catalog.LARGEST_LINE", 1000)
    given = json.dumps({**MOVED, "data": {"x": "y" * 5000}}) + "\n" + text_of(MOVED)
    result = run("match", "--catalog", catalog, "--json", stdin=given)
    assert ["malformed", "matched"] == [answer["outcome"] for answer in lines(result.out)]


def foreign_catalog(folder: Path) -> str:
    """A catalog of a definition whose schema lies elsewhere, and of one whose schema is nowhere."""
    event = {"envelope": "CloudEvents/1.0", "dataschemaformat": "JsonSchema/draft-07"}
    messages = {
        "far": {**event, "envelopemetadata": {"type": {"value": "far"}}, "dataschemauri": "https://example.com/s.json"},
        "gone": {
            **event,
            "envelopemetadata": {"type": {"value": "gone"}},
            "dataschemauri": "/schemagroups/s/schemas/x",
        },
    }
    path = folder / "foreign.xreg.json"
    path.write_text(json.dumps({"messagegroups": {"g": {"messages": messages}}}))
    return str(path)


def test_a_payload_that_is_not_checked(run: Run, tmp_path: Path) -> None:
    """Where the schema lies elsewhere the metadata decide, and the answer says so; --schemas required refuses it."""
    catalog = foreign_catalog(tmp_path)
    event = {"specversion": "1.0", "id": "1", "type": "far", "source": "/s", "data": 1}
    for command in (("match",), ("validate",), ("validate", "--definition", "/messagegroups/g/messages/far")):
        loose = run(*command, "--catalog", catalog, "--json", stdin=text_of(event))
        (answer,) = lines(loose.out)
        assert (0, "matched", ["payload"]) == (loose.code, answer["outcome"], answer["unchecked"])
        strict = run(*command, "--catalog", catalog, "--json", "--schemas", "required", stdin=text_of(event))
        (answer,) = lines(strict.out)
        assert (1, "nonconformant") == (strict.code, answer["outcome"])
    words = run("match", "--catalog", catalog, stdin=text_of(event)).out
    assert "line 1: matched /messagegroups/g/messages/far; unchecked: payload\n" == words


def test_sample_prints_what_was_made(run: Run, tmp_path: Path) -> None:
    """What cannot be made is said on standard error with exit code 1, and is never a sample."""
    catalog = foreign_catalog(tmp_path)
    for more in ((), ("--json",)):
        result = run("sample", "--catalog", catalog, *more)
        assert (1, 1) == (result.code, len(lines(result.out)))
        assert "/messagegroups/g/messages/gone: /dataschemauri:" in result.err
        assert result.err.endswith("\n1 message(s) made, 1 not\n")
    assert "far" == lines(run("sample", "--catalog", catalog).out)[0]["type"]


def test_the_decoded_payload_is_in_the_answer(run: Run, tmp_path: Path) -> None:
    """The JSON answer has the decoded payload as data, and the id of Confluent's frame as schemaid."""
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    fields = [{"name": "at", "type": moment}, {"name": "raw", "type": "bytes"}]
    schema = {"type": "record", "name": "R", "fields": fields}
    definition = {"protocol": "KAFKA", "protocoloptions": {"topic": "t"}, "dataschemaformat": "Avro/1.11"}
    one = {**definition, "dataschema": schema, "dataschemaframing": "confluent"}
    path = tmp_path / "framed.xreg.json"
    path.write_text(json.dumps({"messagegroups": {"g": {"messages": {"m": one}}}}))
    values = {"data": {"at": 0, "raw": "ab"}, "schemaid": 258}
    xid = "/messagegroups/g/messages/m"
    built = run("build", "--catalog", str(path), "--definition", xid, stdin=text_of(values))
    (answer,) = lines(run("match", "--catalog", str(path), "--json", stdin=built.out).out)
    assert ({"at": "1970-01-01T00:00:00Z", "raw": "YWI="}, 258) == (answer["data"], answer["schemaid"])
