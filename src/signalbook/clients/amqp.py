"""AMQP 1.0: the messages of python-qpid-proton.

Rule 1: a message goes through its bytes (AMQP 1.0 part 3, section 3.2), section by section: the attributes of a
`proton.Message` do not tell what is absent from what has its default.
Rule 2: the members of `header` and `properties` have the types that the specification gives them; on paper their texts
are plain, strings and symbols alike, and everything else keeps its type.
Rule 3: several data sections are one payload; a body that is a value or a sequence is its JSON form on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import orjson

from signalbook.clients.amqp_types import read_value, write_value
from signalbook.clients.refusals import MissingLibrary, refusal, to_send
from signalbook.errors import Problem
from signalbook.wire import Message, Typed, WireError, amqp_values

try:
    import proton
except ImportError as error:
    raise MissingLibrary("python-qpid-proton", "amqp") from error

__all__ = ["decode", "encode", "to_client", "to_paper"]

# Sections 3.2.1 and 3.2.4: the members in their order, each with its type; "*" is any type that an id may have.
_HEADER: Mapping[str, str] = {
    "durable": "boolean",
    "priority": "ubyte",
    "ttl": "uint",
    "first-acquirer": "boolean",
    "delivery-count": "uint",
}
_PROPERTIES: Mapping[str, str] = {
    "message-id": "*",
    "user-id": "binary",
    "to": "string",
    "subject": "string",
    "reply-to": "string",
    "correlation-id": "*",
    "content-type": "symbol",
    "content-encoding": "symbol",
    "absolute-expiry-time": "timestamp",
    "creation-time": "timestamp",
    "group-id": "string",
    "group-sequence": "uint",
    "reply-to-group-id": "string",
}
_LISTS: Mapping[int, tuple[str, Mapping[str, str]]] = {0x70: ("header", _HEADER), 0x73: ("properties", _PROPERTIES)}
_MAPS: Mapping[int, str] = {
    0x71: "delivery-annotations",
    0x72: "message-annotations",
    0x74: "application-properties",
    0x78: "footer",
}
_BODIES: Mapping[int, str] = {0x75: "data", 0x76: "sequence", 0x77: "value"}
_CODES: Mapping[str, int] = (
    {name: code for code, (name, _) in _LISTS.items()}
    | {name: code for code, name in _MAPS.items()}
    | {name: code for code, name in _BODIES.items()}
)
_NATURAL: Mapping[type, str] = {bool: "boolean", str: "string", bytes: "binary"}
_IDS = frozenset(("ulong", "uuid", "binary", "string"))


def to_paper(message: proton.Message) -> Message:
    """The message that `on_message` was given; proton has dropped its footer, and all data sections but the last.

    `decode(event.delivery.encoded)` reads the whole.
    """
    return decode(message.encode())


def to_client(message: Message) -> proton.Message:
    """The message for `sender.send`; proton has no footer, and a message with one is refused."""
    if message.get("footer"):
        raise refusal("/footer", "is not sent by python-qpid-proton")
    made = proton.Message()
    made.decode(encode(message))
    return made


def decode(content: bytes) -> Message:
    """The message on paper of an encoded one; raises `WireError` where it is none."""
    fields: dict[str, Any] = {}
    bodies: dict[str, list[Any]] = {}
    for code, value in _sections(content):
        # What proton shows is a view that the next section takes away, so each is read at once.
        if code in _BODIES:
            bodies.setdefault(_BODIES[code], []).append(read_value(value, "/payload"))
        elif code in _LISTS:
            name, members = _LISTS[code]
            fields[name] = _read_members(value, members, f"/{name}")
        elif code in _MAPS:
            fields[_MAPS[code]] = _read_map(value, f"/{_MAPS[code]}")
        else:
            raise _malformed("", f"has a section that no message has: {code!r}")
    if len(bodies) > 1:
        raise _malformed("/body", f"is {' and '.join(bodies)} at once")
    fields = {name: section for name, section in fields.items() if section}
    if not bodies:
        return Message("AMQP/1.0", fields)
    name, parts = bodies.popitem()
    body = _JOIN[name](parts)
    if name == "data":
        return Message("AMQP/1.0", fields, body)
    return Message("AMQP/1.0", fields | {"body": name}, orjson.dumps(amqp_values.write_value(body)))


def encode(message: Message) -> bytes:
    """The bytes of a message, section after section in their order."""
    message = to_send(message, "AMQP/1.0")
    sections: dict[str, Any] = {}
    for name, members in _LISTS.values():
        if message.get(name):
            sections[name] = _write_members(message.get(name), members, f"/{name}")
    for name in _MAPS.values():
        if message.get(name):
            sections[name] = _write_map(message.get(name), name)
    if message.payload is not None:
        name = message.get("body", "data")
        sections[name] = _write_body(name, message.payload)
    return b"".join(_encoded(name, sections[name]) for name in sorted(sections, key=lambda name: _CODES[name]))


def _sections(content: bytes) -> Iterator[tuple[Any, Any]]:
    """Each section's code and value."""
    data = proton.Data()
    rest = memoryview(content)
    while rest:
        try:
            data.clear()
            rest = rest[data.decode(bytes(rest)) :]
            data.rewind()
            data.next()
            section = data.get_object()
        except (proton.DataException, OverflowError, RecursionError, ValueError) as error:
            raise _malformed("", f"is no AMQP message: {error}") from None
        if not isinstance(section, proton.Described):
            raise _malformed("", "is no AMQP message: something stands outside its sections")
        yield section.descriptor, section.value


def _read_members(values: Any, members: Mapping[str, str], path: str) -> dict[str, Any]:
    if not isinstance(values, list) or len(values) > len(members):
        raise _malformed(path, f"is no list of at most {len(members)} members")
    found = {name: read_value(value, f"{path}/{name}") for name, value in zip(members, values, strict=False)}
    return {name: _plainly(value) for name, value in found.items() if value is not None}


def _read_map(value: Any, path: str) -> dict[str, Any]:
    section = read_value(value, path)
    if not isinstance(section, dict):
        raise _malformed(path, "is no map")
    return section


def _one_value(parts: list[Any]) -> Any:
    if len(parts) > 1:
        raise _malformed("/body", "is more than one value")
    return parts[0]


def _all_bytes(parts: list[Any]) -> bytes:
    return b"".join(_each(parts, bytes))


def _all_items(parts: list[Any]) -> tuple[Any, ...]:
    return tuple(item for part in _each(parts, tuple) for item in part)


def _each(parts: list[Any], kind: type) -> list[Any]:
    if not all(isinstance(part, kind) for part in parts):
        raise _malformed("/body", "is not of the type that its section has")
    return parts


_JOIN: Mapping[str, Callable[[list[Any]], Any]] = {
    "data": _all_bytes,
    "sequence": _all_items,
    "value": _one_value,
}


def _malformed(path: str, words: str) -> WireError:
    return WireError(Problem(path, "malformed", words))


def _plainly(value: Any) -> Any:
    return value.value if isinstance(value, Typed) and value.type == "symbol" else value


def _write_members(section: Mapping[str, Any], members: Mapping[str, str], path: str) -> list[Any]:
    unknown = [name for name in section if name not in members]
    if unknown:
        words = f"has no member of that name; it has {', '.join(members)}"
        raise WireError(*(Problem(f"{path}/{name}", "unknown", words) for name in unknown))
    return [_write_member(section.get(name), kind, f"{path}/{name}") for name, kind in members.items()]


def _write_member(value: Any, kind: str, path: str) -> Any:
    """A member as its own type: a plain integer or text is taken for one."""
    if value is None:
        return None
    given = value.type if isinstance(value, Typed) else _NATURAL.get(type(value), "long")
    if kind == "*":
        kind = "ulong" if given == "long" else given
        if kind not in _IDS:
            raise refusal(path, f"is a {given}; it may be one of {', '.join(sorted(_IDS))}")
    if given != kind and (given, kind) not in _TAKEN:
        raise refusal(path, f"is a {given} and must be a {kind}")
    if kind in _NATURAL.values():
        return value
    return write_value(Typed(kind, value.value if isinstance(value, Typed) else value), path)


_TAKEN = frozenset((("string", "symbol"), *(("long", kind) for kind in ("ubyte", "uint", "ulong", "timestamp"))))


def _write_map(section: Mapping[str, Any], name: str) -> dict[Any, Any]:
    """A map section; the keys of application properties are strings, those of the others symbols (3.2.10)."""
    key: Callable[[str], Any] = str if name == "application-properties" else proton.symbol
    return {key(member): write_value(value, f"/{name}/{member}") for member, value in section.items()}


def _write_body(name: str, payload: bytes) -> Any:
    if name == "data":
        return payload
    problems: list[Problem] = []
    try:
        value = amqp_values.read_value(msgspec.json.decode(payload), "/payload", problems)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise refusal("/payload", f"must be JSON where the body is a {name}: {error}") from None
    if name == "sequence" and not isinstance(value, tuple):
        problems.append(Problem("/payload", "type", "must be an array where the body is a sequence"))
    if problems:
        raise WireError(*problems)
    return write_value(value, "/payload")


def _encoded(name: str, section: Any) -> bytes:
    data = proton.Data()
    try:
        data.put_object(proton.Described(proton.ulong(_CODES[name]), section))
        return bytes(data.encode())
    except (OverflowError, TypeError, UnicodeEncodeError, proton.DataException) as error:
        raise refusal(f"/{name}", f"cannot be encoded: {error}") from None
