"""AMQP 1.0: the messages of python-qpid-proton.

Rule 1: a message goes through its bytes (AMQP 1.0 part 3, section 3.2), section by section: the attributes of a
`proton.Message` do not distinguish what is absent from what has its default.
Rule 2: the members of `header` and `properties` have the types that the specification gives them; on paper their texts
are plain, strings and symbols alike, and everything else keeps its type.
Rule 3: several data sections are one payload; a body that is a value or a sequence is its JSON form on paper.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import orjson

from signalbook.clients import MissingLibrary, checked_to_send, wire_error
from signalbook.errors import Problem
from signalbook.protocols import Message, Typed, WireError, amqp

__all__ = ["FORMATS", "Format", "decode", "encode", "read_value", "to_client", "to_paper", "write_value"]

# Decimal floating-point numbers as AMQP has them: IEEE 754-2008, section 3.5.2, binary integer significand.
#
# Rule: a number keeps its digits and its exponent, so that 1.50 stays 1.50; what does not fit is an error, not rounded.


@dataclass(frozen=True, slots=True)
class DecimalFormat:
    """One width: its bits, those of the exponent, and what is subtracted from the exponent."""

    width: int
    exponent_bits: int
    bias: int
    digits: int

    def read(self, bits: int) -> str:
        """The number's text; raises ValueError for an infinity and for what is not a number."""
        sign = bits >> (self.width - 1)
        rest = bits & ((1 << (self.width - 1)) - 1)
        low = self.width - 1 - self.exponent_bits
        if rest >> (self.width - 3) != 0b11:
            exponent, significand = rest >> low, rest & ((1 << low) - 1)
        else:
            if rest >> (self.width - 5) == 0b1111:
                raise ValueError("is an infinity or not a number")
            exponent = (rest >> (low - 2)) & ((1 << self.exponent_bits) - 1)
            significand = (0b100 << (low - 2)) | (rest & ((1 << (low - 2)) - 1))
        # Section 3.5.2: a significand beyond the digits of the format is a zero.
        significand = significand if significand < 10**self.digits else 0
        return str(Decimal((sign, tuple(map(int, str(significand))), exponent - self.bias)))

    def write(self, text: str) -> int:
        """The bits of a number; raises ValueError where it does not fit."""
        try:
            sign, figures, exponent = Decimal(text).as_tuple()
        except InvalidOperation:
            raise ValueError("is not a decimal number") from None
        biased = -1 if isinstance(exponent, str) else exponent + self.bias  # an infinity has a letter there
        if len(figures) > self.digits or not 0 <= biased < 3 << (self.exponent_bits - 2):
            raise ValueError(f"has more than {self.digits} digits, or an exponent out of range")
        significand = int("".join(map(str, figures)))
        low = self.width - 1 - self.exponent_bits
        if significand < 1 << low:
            rest = (biased << low) | significand
        else:
            rest = (0b11 << (self.width - 3)) | (biased << (low - 2)) | (significand & ((1 << (low - 2)) - 1))
        return (sign << (self.width - 1)) | rest


# The public name; "format" by itself means a schema's elsewhere in this package.
Format = DecimalFormat

FORMATS: Mapping[str, DecimalFormat] = {
    "decimal32": DecimalFormat(32, 8, 101, 7),
    "decimal64": DecimalFormat(64, 10, 398, 16),
    "decimal128": DecimalFormat(128, 14, 6176, 34),
}


# The values of AMQP 1.0 as python-qpid-proton has them, and as they are on paper: one row a type.
#
# Rule 1: a value keeps its type both ways; a list is a tuple on paper, and bytes are bytes.
# Rule 2: an array is read as the list of its values, and a described value as the value alone: paper has neither.


try:
    import proton
except ImportError as error:
    raise MissingLibrary("python-qpid-proton", "amqp") from error

_MAX_DEPTH = 64

_PLAIN = frozenset((str, bool, int, float, bytes, type(None)))
# The name of the type on paper, proton's class for it, and how the value inside is read from that.
_READ: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    proton.symbol: ("symbol", str),
    proton.char: ("char", str),
    proton.timestamp: ("timestamp", int),
    proton.ubyte: ("ubyte", int),
    proton.ushort: ("ushort", int),
    proton.uint: ("uint", int),
    proton.ulong: ("ulong", int),
    proton.byte: ("byte", int),
    proton.short: ("short", int),
    proton.int32: ("int", int),
    proton.float32: ("float", float),
    uuid.UUID: ("uuid", str),
    proton.decimal32: ("decimal32", FORMATS["decimal32"].read),
    proton.decimal64: ("decimal64", FORMATS["decimal64"].read),
    proton.decimal128: ("decimal128", lambda value: FORMATS["decimal128"].read(int.from_bytes(value, "big"))),
}
_WRITE: Mapping[str, Callable[[Any], Any]] = {name: kind for kind, (name, _) in _READ.items()} | {
    "decimal32": lambda text: proton.decimal32(FORMATS["decimal32"].write(text)),
    "decimal64": lambda text: proton.decimal64(FORMATS["decimal64"].write(text)),
    "decimal128": lambda text: proton.decimal128(FORMATS["decimal128"].write(text).to_bytes(16, "big")),
}


def read_value(value: Any, path: str, depth: int = 0) -> Any:
    """The value on paper of one that proton has decoded; raises `WireError` where it has no form there."""
    _check_depth(path, depth)
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is memoryview:
        return bytes(value)
    if kind is proton.Described:
        return read_value(value.value, path, depth + 1)
    if kind in (list, proton.Array):
        return tuple(read_value(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value))
    if isinstance(value, dict):
        return {_name(name, path): read_value(item, f"{path}/{name}", depth + 1) for name, item in value.items()}
    name, read = _READ[kind]
    try:
        return Typed(name, read(value))
    except ValueError as error:
        raise wire_error(path, f"{error}, which has no form on paper") from None


def write_value(value: Any, path: str, depth: int = 0) -> Any:
    """The value for proton to encode of one on paper; raises `WireError` where it is not of its type."""
    _check_depth(path, depth)
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {name: write_value(item, f"{path}/{name}", depth + 1) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [write_value(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value)]
    try:
        return _WRITE[value.type](value.value)
    except (AttributeError, KeyError):
        raise wire_error(path, "does not have an AMQP type") from None
    except (AssertionError, TypeError, ValueError) as error:
        raise wire_error(path, f"is not a valid {value.type}: {error}") from None


def _name(name: Any, path: str) -> str:
    """A key on paper: a text, or the number of a reserved annotation."""
    if isinstance(name, str) and not isinstance(name, proton.char):
        return str(name)
    if isinstance(name, proton.ulong):
        return str(int(name))
    raise wire_error(path, f"is a map with a key that is not a text: {name!r}")


def _check_depth(path: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise wire_error(path, f"is nested deeper than {_MAX_DEPTH} levels")


try:
    import proton
except ImportError as error:
    raise MissingLibrary("python-qpid-proton", "amqp") from error

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
    """The message for `sender.send`; proton has no footer: raises `WireError` for a message with one."""
    if message.get("footer"):
        raise wire_error("/footer", "is not sent by python-qpid-proton")
    made = proton.Message()
    made.decode(encode(message))
    return made


def decode(content: bytes) -> Message:
    """The message on paper of an encoded one; raises `WireError` where it is not one."""
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
    return Message("AMQP/1.0", fields | {"body": name}, orjson.dumps(amqp.write_value(body)))


def encode(message: Message) -> bytes:
    """The bytes of a message, section after section in their order."""
    message = checked_to_send(message, "AMQP/1.0")
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
            raise _malformed("", f"is not an AMQP message: {error}") from None
        if not isinstance(section, proton.Described):
            raise _malformed("", "is not an AMQP message: something stands outside its sections")
        yield section.descriptor, section.value


def _read_members(values: Any, members: Mapping[str, str], path: str) -> dict[str, Any]:
    if not isinstance(values, list) or len(values) > len(members):
        raise _malformed(path, f"is not a list of at most {len(members)} members")
    found = {name: read_value(value, f"{path}/{name}") for name, value in zip(members, values, strict=False)}
    return {name: _plainly(value) for name, value in found.items() if value is not None}


def _read_map(value: Any, path: str) -> dict[str, Any]:
    section = read_value(value, path)
    if not isinstance(section, dict):
        raise _malformed(path, "is not a map")
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
            raise wire_error(path, f"is a {given}; it may be one of {', '.join(sorted(_IDS))}")
    if given != kind and (given, kind) not in _TAKEN:
        raise wire_error(path, f"is a {given} and must be a {kind}")
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
        value = amqp.read_value(msgspec.json.decode(payload), "/payload", problems)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise wire_error("/payload", f"must be JSON where the body is a {name}: {error}") from None
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
        raise wire_error(f"/{name}", f"cannot be encoded: {error}") from None
