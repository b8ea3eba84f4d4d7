"""The commands event decode, encode and convert: events from any binding to any other.

Rule 1: one document a line, or one document in all; what comes out is one line each, in the order it came.
Rule 2: nothing is dropped in silence: an event that cannot be read or carried is a line on standard error and exit code
1; what of a message cannot go along with its event is a line on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

import click
import orjson

from signalbook.cli.output import Exit, say
from signalbook.cloudevents import CloudEvent, CloudEventError, decode, encode, encode_batch, iter_batch
from signalbook.errors import Problem, UsageError
from signalbook.jsontext import JsonError, is_json_text, split_members
from signalbook.protocols import FIELDS, Message, Mode, WireError, batch_to_http, events_of, sendable, to_message
from signalbook.protocols.binding import Carried, carry_over, left_behind

__all__ = ["event"]

# What --from and --to name, beside the JSON format itself, and the protocol of the messages on paper.
PROTOCOLS = {
    "http": "HTTP",
    "kafka": "KAFKA",
    "amqp": "AMQP/1.0",
    "mqtt": "MQTT/5.0",
    "mqtt3": "MQTT/3.1.1",
    "nats": "NATS",
}
FORMATS = ("json", "batch")
_TEXTS = ("text", "bytes", "base64", "moment", "choice")


Written = tuple[bytes, Sequence[Problem]]


@dataclass(frozen=True, slots=True)
class Found:
    """An event or what is wrong, where in the input it stood, and the message it stood in."""

    place: str
    item: CloudEvent | CloudEventError | WireError
    source: Message | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """What makes a line of an event and says what of its message is left, and the last line where they go together."""

    one: Callable[[CloudEvent, Message | None], Written]
    together: Callable[[list[CloudEvent]], bytes] | None = None


_FILE = click.argument("file", metavar="[FILE]", type=click.File("rb"), default="-")
_FROM = click.option(
    "--from",
    "source",
    type=click.Choice(["auto", *FORMATS, *PROTOCOLS]),
    default="auto",
    show_default=True,
    help="What is read: events, a batch, or messages of a protocol written as JSON; auto decides for each input.",
)
_TO = click.option("--to", "target", type=click.Choice([*FORMATS, *PROTOCOLS]), required=True, help="What is written.")
_MODE = click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    help="The content mode; by default binary if the binding has it.",
)
_SET = click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A field of the messages, such as topic=orders; may be repeated.",
)

_JSON = click.option("--json", "as_json", is_flag=True, help="Report one JSON object a finding and line.")


@click.group(
    short_help="Read, write and convert CloudEvents.",
    epilog="Example: signalbook event convert --from http --to kafka messages.jsonl",
)
def event() -> None:
    """Read, write and convert CloudEvents, from and to JSON, batches and messages of every binding.

    Events are CloudEvents in JSON, messages the JSON form of an observed message ("protocol", its fields, "payload");
    one a line, or a single document of any layout. FILE is standard input unless it is named.
    """


@event.command(
    "decode",
    short_help="Read events out of messages.",
    epilog="Example: signalbook event decode --from http messages.jsonl",
)
@_FILE
@_FROM
@_JSON
def decode_command(file: IO[bytes], source: str, as_json: bool) -> int:
    """Read events, batches or messages and write one event in JSON a line, without the rest of its message."""
    return _convert(file, source, Writer(lambda item, _: (encode(item), ())), as_json)


@event.command(
    "encode",
    short_help="Write events as messages.",
    epilog="Example: signalbook event encode --to kafka --set topic=orders events.jsonl",
)
@_FILE
@_TO
@_MODE
@_SET
@_JSON
def encode_command(file: IO[bytes], target: str, mode: str | None, settings: tuple[str, ...], as_json: bool) -> int:
    """Read events in JSON, or a batch, and write one message a line."""
    return _convert(file, "auto", _writer(target, mode, settings), as_json)


@event.command(
    "convert",
    short_help="Convert events from one binding to another.",
    epilog="Example: signalbook event convert --from http --to mqtt --set topic_name=orders messages.jsonl",
)
@_FILE
@_FROM
@_TO
@_MODE
@_SET
@_JSON
def convert_command(
    file: IO[bytes], source: str, target: str, mode: str | None, settings: tuple[str, ...], as_json: bool
) -> int:
    """Read events, batches or messages and write them in another form.

    To the same protocol, a message's own fields (topic, key, other headers) go along, but for those that --set gives.
    What cannot be carried over is reported on standard error.
    """
    return _convert(file, source, _writer(target, mode, settings), as_json)


def _convert(file: IO[bytes], source: str, writer: Writer, as_json: bool) -> int:
    """Write each event that is read; what is wrong or left goes to standard error as it is met."""
    wrong = 0
    kept: list[CloudEvent] = []
    for found in _read_events(file, source):
        try:
            if not isinstance(found.item, CloudEvent):
                raise found.item
            line, left = writer.one(found.item, found.source)
            if writer.together:
                kept.append(found.item)
            else:
                _print(line)
            _report(found.place, left, as_json)
        except (CloudEventError, WireError) as error:
            wrong += 1
            if as_json:
                _report(found.place, error.problems, as_json)
            else:
                say(f"signalbook: {found.place}: {error}")
    if writer.together:
        _print(writer.together(kept))
    sys.stdout.buffer.flush()
    return Exit.REFUSED if wrong else Exit.OK


def _report(place: str, problems: Sequence[Problem], as_json: bool) -> None:
    if as_json:
        for one in problems:
            facts = {"place": place, "path": one.path, "code": one.code, "message": one.message}
            say(orjson.dumps(facts).decode())
    elif problems:
        say(f"signalbook: {place}: {'; '.join(f'{one.path}: {one.message}' for one in problems)}")


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")


# Reading -------------------------------------------------------------------------------------------------------------


def _documents(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each document and its place: a line each, or everything where the first line is not a document by itself."""
    number = 1
    first = file.readline()
    while first and not first.strip():
        first, number = file.readline(), number + 1
    lines: Iterable[bytes] = file
    if not is_json_text(first.strip()):
        whole = first + file.read()
        if is_json_text(whole):
            yield "input", whole.strip()
            return
        lines = whole.splitlines()[1:]
    for place, line in enumerate(chain([first], lines), number):
        if line.strip():
            yield f"line {place}", line.strip()


def _read_events(file: IO[bytes], source: str) -> Iterator[Found]:
    for place, document in _documents(file):
        kind = _looks_like(document) if source == "auto" else source
        try:
            if kind == "json":
                yield Found(place, decode(document))
            elif kind == "batch":
                for index, item in enumerate(iter_batch(document)):
                    yield Found(f"{place}, event {index}", item)
            else:
                yield from _of_message(place, Message.from_json(document), PROTOCOLS.get(kind))
        except (CloudEventError, WireError) as error:
            yield Found(place, error)


def _of_message(place: str, message: Message, expected: str | None) -> Iterator[Found]:
    if expected not in (None, message.protocol):
        raise UsageError(
            f'{place} is a message of "{message.protocol}", but --from says "{expected}"; leave --from out'
        )
    several = list(events_of(message))
    for index, item in enumerate(several):
        yield Found(f"{place}, event {index}" if len(several) > 1 else place, item, message)


def _looks_like(document: bytes) -> str:
    """A batch is an array, a message has a protocol, and the rest is to be an event."""
    if document.startswith(b"["):
        return "batch"
    try:
        return "message" if "protocol" in split_members(document) else "json"
    except JsonError:
        return "json"


# Writing -------------------------------------------------------------------------------------------------------------


def _writer(target: str, mode: str | None, settings: tuple[str, ...]) -> Writer:
    protocol = PROTOCOLS.get(target)
    if protocol is None:
        if mode or settings:
            raise UsageError(f'--mode and --set are for messages; "{target}" has neither')
        return Writer(_as_event, encode_batch if target == "batch" else None)
    fields = _fields(protocol, settings)
    if mode != Mode.BATCH:
        return Writer(lambda item, source: _as_message(item, source, protocol, mode, fields))
    if protocol != "HTTP":
        raise UsageError(f'"{protocol}" has no batches; HTTP alone does')
    return Writer(_as_event, lambda events: batch_to_http(events, **fields).to_bytes())


def _as_event(item: CloudEvent, source: Message | None) -> Written:
    return encode(item), () if source is None else left_behind(item, source)


def _as_message(
    item: CloudEvent, source: Message | None, protocol: str, mode: str | None, fields: dict[str, Any]
) -> Written:
    if source is None:
        carried = Carried(to_message(item, protocol, mode, **fields))
    else:
        carried = carry_over(item, source, protocol, mode, **fields)
    return sendable(carried.message).to_bytes(), carried.left


def _fields(protocol: str, settings: tuple[str, ...]) -> dict[str, Any]:
    """The fields that --set names, read as the message on paper has them; what is not a text is JSON."""
    paper: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        row = FIELDS[protocol].get(name)
        if not equals or row is None:
            known = ", ".join(FIELDS[protocol])
            raise UsageError(f"--set {setting!r} is not a field of {protocol}; write NAME=VALUE with one of {known}")
        try:
            paper[name] = text if row.kind.name in _TEXTS else orjson.loads(text)
        except orjson.JSONDecodeError:
            raise UsageError(f'--set {name} takes JSON, such as 1, true or [["name","value"]]') from None
    try:
        return dict(sendable(Message.from_json({"protocol": protocol, **paper})).fields)
    except WireError as error:
        raise UsageError(f"--set {error}") from None
