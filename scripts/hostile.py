"""Requests that are wrong on purpose: valid ones, bent in one to three places.

Rule: everything comes from the `random.Random` that is given, so a seed gives the same requests again.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scripts.valid_requests import ATTRIBUTES, BUILTIN, EMPTY


@dataclass(slots=True)
class Sent:
    """One request."""

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path[:300]!r} ?{self.query[:300]!r} {self.headers!r:.500}\n{self.body[:1500]!r}"


# ---- what is hostile

IDS = [
    "", ".", "..", "/", "//", "a b", "a\0b", "\0", "ä", "日本", "a" * 128, "a" * 129, "a" * 5000, "-a", "~", "$details",
    "a$details", "null", "request", "meta", "versions", "%", "%2F", "%zz", "a%00b", "..%2F..", "'", '"', "`", "<x>", "&",
    "a;b", "a?b", "a#b", "\\", "\ud800", "\uffff", "\u202e", "🦊", "İ", "ß", "ſ", "A", "a", "1e5", "-1", "0", "{x}", "${x}", "a\r\nb", "*",
    "a:b@c~d", "' OR 1=1 --", "__proto__", "constructor", "\x7f",
]  # fmt: skip
NUMBERS = [
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    10**30,
    -(2**63) - 1,
    1.5,
    -0.0,
    1e308,
    1e-320,
]
TEXTS = [*IDS, "x" * 4096, "x" * 70_000, "2030-01-01T00:00:00Z", "9999-99-99T99:99:99Z", "0000-01-01T00:00:00Z",
         "2030-01-01T00:00:00." + "9" * 500 + "Z", "2030-01-01T24:00:00+99:99", "http://", "https://example.com/a b", "urn:x", "{", "{}", "{a", "{+a}",
         "/messagegroups/g1", "/messagegroups/g1/messages/m1", "/a/b/c/d/e/f/g", "file:///etc/passwd", "true", "JSONSchema/draft-07", "CloudEvents/1.0"]  # fmt: skip
VALUES: list[Any] = [None, True, False, [], {}, [None], [[]], {"a": None}, {"": ""}, [1, "a"], *NUMBERS, *TEXTS]
# Text that is no JSON value of Python's, put in where `"@raw@"` stands.
RAW = [
    "1e400", "-1e400", "1" * 400, "0." + "1" * 400, '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', "NaN", "Infinity", "-", "01", "1.", "tru", "'a'",
    '{"a":1,"a":2}', "[" * 70 + "]" * 70, "[" * 5000, '{"a":' * 65 + "1" + "}" * 65, *('{"a":' * levels + "1" + "}" * levels for levels in (56, 57, 58, 60, 62, 64)), "/* x */1", "1,", '"\t"', '"\x01"', "1e" + "9" * 50,
]  # fmt: skip
HEADERS = [
    ("If-Match", "*"), ("If-Match", '"'), ("If-Match", '"e1-x", W/"s2-y"'), ("If-None-Match", "*"), ("If-None-Match", "W/" * 50), ("Content-Type", "application/json"),
    ("Content-Type", ""), ("Content-Type", "text/plain; charset=x"), ("Content-Type", "a" * 3000), ("Accept", "*/*"), ("Accept-Encoding", "gzip, zstd"),
    ("xRegistry-name", "%"), ("xRegistry-name", "%C0%AF"), ("xRegistry-name", '"a\\'), ("xRegistry-name", "null"), ("xRegistry-labels.a", "b"), ("xRegistry-labels.", ""), ("xRegistry-labels.A B", "c"),
    ("xRegistry-epoch", "99"), ("xRegistry-epoch", "x"), ("xRegistry-epoch", "9" * 100), ("xRegistry-versionid", "a/b"), ("xRegistry-schemaid", "zz"), ("xRegistry-", "x"), ("xRegistry-.", "x"), ("xRegistry-schema", "x"),
    ("xRegistry-schemaurl", "http://127.0.0.1:9/never"), ("xRegistry-schemabase64", "x"), ("xRegistry-createdat", "yesterday"), ("xRegistry-ancestor", "request"), ("xRegistry-format", "JSONSchema/draft-07"),
    ("xRegistry-deprecated", "x"), ("xRegistry-nope", "1"), ("xRegistry-labels", "x"), ("xRegistry-xref", "/"), ("xRegistry-isdefault", "maybe"), ("Range", "bytes=0-1"), ("Expect", "x"), ("Host", ""),
    ("X-Forwarded-Host", "evil.test\x7f"), ("Origin", "null"), ("Access-Control-Request-Method", "X"), ("Authorization", "Bearer x"), ("xRegistry-self", "x"), ("xRegistry-name", "x" * 5000), ("xRegistry-name", "\u00e4\u00f6"),
]  # fmt: skip
METHODS = ["GET", "GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS", "TRACE", "FOO", "get", ""]
PATHS = [
    "a", "a.b", "*", "a.*", "*.a", "['x']", "['", '["a"]', "[0]", "[999999999999999999999]", "[-1]", "[*]", "a..b", ".", "", "labels.x", "labels['a b']", "a'b", "versions", "messages.versions.labels.stage", "meta", "model",
    "messagegroups", "messagegroups.messages", "messagegroups.messages.versions", "schemagroups.schemas.schema", "endpoints.messages", "name", "epoch", "createdat", "self", "a[", "a]", "[", "a" * 3000, "a." * 500 + "a", "['" * 200, "\0", "\ud800",
]  # fmt: skip
OPERATORS = [
    "=",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "",
    "==",
    "=<",
    "=null",
    "!=null",
    "<null",
    "=*",
    "=**",
    "=*a*b*c*",
    "=\\*",
    "=\\",
]


def _filter(chance: random.Random) -> str:
    expression = (
        chance.choice(PATHS)
        + chance.choice(OPERATORS)
        + chance.choice([*map(str, NUMBERS), *IDS, "dev", "*" * 50, "a*" * 300])
    )
    return ",".join([expression] * chance.choice([1, 1, 1, 2, 50])) if chance.random() < 0.95 else "excludeall"


FLAGS: dict[str, Callable[[random.Random], str]] = {
    "filter": _filter,
    "inline": lambda chance: ",".join(chance.choices(PATHS, k=chance.choice([1, 1, 2, 40]))),
    "sort": lambda chance: chance.choice(PATHS) + chance.choice(["", "=asc", "=desc", "=up", "="]),
    "doc": lambda chance: chance.choice(["", "true", "false", "x"]),
    "collections": lambda chance: chance.choice(["", "true", "x"]),
    "binary": lambda chance: chance.choice(["", "x"]),
    "epoch": lambda chance: chance.choice(["", "1", "-1", "x", "9" * 30, "1.5", "²"]),
    "ignore": lambda chance: chance.choice(["", "*", "epoch", "id", "readonly", "x", "epoch,id", "capabilities,modelsource"]),
    "setdefaultversionid": lambda chance: chance.choice(["", "null", "request", "1", "v1", *IDS]),
    "specversion": lambda chance: chance.choice(["", "1.0-rc2", "1.0-rc4", "1.0-RC4", "1.0.5-rc4", "9", "x" * 100]),
    "limit": lambda chance: chance.choice(["", "0", "1", "2", "-1", "x", "9" * 19, "9" * 30]),
    "page": lambda chance: chance.choice(["", "YQ", "MQ", "!!!", "/w", "A" * 5000, "8J-mig"]),
    "unknown": lambda chance: chance.choice(IDS),
}  # fmt: skip


# ---- bending


def _one_attribute(chance: random.Random) -> tuple[str, str, Any]:
    """A write that gives one attribute a value that it hardly takes."""
    path, steps, needed = chance.choice(ATTRIBUTES)
    value = chance.choice([*VALUES, "@raw@"])
    for step in reversed(steps[1:]):
        value = {step: value} if step != "x" or chance.random() < 0.5 else [value]
    body = {**needed, **({"usage": ["producer"]} if path.startswith("/endpoints") and path.count("/") == 2 else {})}
    return chance.choice(["PUT", "PATCH"]), path, {**body, steps[0]: value}


def requests(chance: random.Random, model: str, count: int) -> Iterator[Sent]:
    """So many requests for a registry with this model."""
    valid = BUILTIN if model == "builtin" else EMPTY
    for number in range(count):
        method, path, value = valid[number] if number < len(valid) else chance.choice(valid)
        bends = 0 if number < len(valid) else chance.choice([0, 1, 1, 1, 2, 3])
        if bends == 1 and model == "builtin" and chance.random() < 0.5:
            method, path, value = _one_attribute(chance)
            bends = 0
        yield _bent(chance, method, path, copy.deepcopy(value), bends)


def _bent(chance: random.Random, method: str, path: str, value: Any, bends: int) -> Sent:
    sent = Sent(method, path, "", [], b"")
    raw = False
    for _ in range(bends):
        kind = chance.choice(["body", "body", "body", "body", "path", "query", "query", "header", "method", "bytes"])
        if kind == "body" and isinstance(value, dict):
            value = _bend_value(chance, value)
        elif kind == "path":
            sent.path = _bend_path(chance, sent.path)
        elif kind == "query":
            sent.query = _query(chance)
        elif kind == "header":
            sent.headers.append(chance.choice(HEADERS))
        elif kind == "method":
            sent.method = chance.choice(METHODS)
        else:
            raw = True
    sent.body = _encoded(chance, value)
    if raw:
        sent.body = _bend_bytes(chance, sent.body)
    return sent


def _encoded(chance: random.Random, value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    while '"@raw@"' in text:
        text = text.replace('"@raw@"', chance.choice(RAW), 1)
    return text.encode("utf-8", "surrogatepass")


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as a container and its key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        _places(value[key], found)
    return found


def _bend_value(chance: random.Random, value: Any) -> Any:
    if chance.random() < 0.03:
        return chance.choice(VALUES)
    places = _places(value, [])
    if not places:
        return {chance.choice(IDS): chance.choice(VALUES)}
    holder, key = chance.choice(places)
    kind = chance.randrange(8)
    if kind < 4:
        holder[key] = chance.choice(VALUES)
    elif kind == 4:
        holder[key] = "@raw@"
    elif kind == 5:
        del holder[key]
    elif kind == 6:
        other, name = chance.choice(places)
        holder[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else None)
    elif isinstance(holder, dict):
        names = [
            "epoch",
            "xid",
            "self",
            "meta",
            "versions",
            "*",
            "labels",
            "$include",
            "$includes",
            "name",
            "type",
            "xref",
            "createdat",
            "constraints",
            "ifvalues",
            "readonly",
            *IDS,
        ]
        holder[chance.choice(names)] = chance.choice([holder[key], *chance.choices(VALUES, k=3)])
    return value


def _bend_path(chance: random.Random, path: str) -> str:
    parts = path.split("/")
    at = chance.randrange(len(parts))
    kind = chance.randrange(6)
    if kind < 2:
        parts[at] = chance.choice(IDS)
    elif kind == 2:
        parts.insert(at, chance.choice(IDS))
    elif kind == 3:
        del parts[at]
    elif kind == 4:
        parts[at] = parts[at].swapcase() + chance.choice(["", "$details", "$", " "])
    else:
        parts.extend(chance.choices([*IDS, "meta", "versions", "1"], k=chance.choice([1, 2, 300])))
    return "/" + "/".join(parts).removeprefix("/")


def _query(chance: random.Random) -> str:
    parts = []
    for name in chance.choices(list(FLAGS), k=chance.choice([1, 1, 2, 3])):
        text = FLAGS[name](chance)
        quoted = chance.random() < 0.7
        value = (
            "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))
            if quoted and len(text) < 500
            else text
        )
        parts += [f"{name}={value}" if text or chance.random() < 0.5 else name] * chance.choice([1, 1, 1, 2, 30])
    return chance.choice(["&", "&", "&", "&&", ";"]).join(parts)[:60_000]  # servers refuse longer ones unread


def _bend_bytes(chance: random.Random, body: bytes) -> bytes:
    kind = chance.randrange(7)
    if kind == 0:
        return body[: chance.randrange(len(body) + 1)]
    if kind == 1:
        return chance.choice(RAW).encode("utf-8", "surrogatepass")
    if kind == 2:
        return b"\xef\xbb\xbf" + body
    if kind == 3:
        return body.decode("utf-8", "replace").encode("utf-16")
    if kind == 4:
        return chance.randbytes(chance.choice([1, 10, 1000]))
    if kind == 5:
        return body + chance.choice([b"\0", b" ", b"{}", b"\xff", body])
    at = chance.randrange(len(body) + 1)
    return body[:at] + chance.randbytes(1) + body[at + 1 :]
