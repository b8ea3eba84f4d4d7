"""The text of a .proto file in one spelling: what it declares, part by part, without comments and spacing.

Rule 1: the compiler judges a text; a sign that does not belong there is an error in words here, not a report for its
author.
Rule 2: within a part everything stays in the order it was written in: the indexes of a frame hang on it. Normalised,
what has no meaning by its order is sorted, and type names are absolute; the order of messages stays.
Rule 3: the same file as a descriptor, which some clients send, has the same text as far as it says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from signalbook.schemas.format import unusable
from signalbook.schemas.protobuf.compile import place, scan, tokens

__all__ = ["ProtoFile", "of_descriptor", "parse", "resolved"]

_LABELS = ("optional", "required", "repeated")
_TYPES = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in FieldDescriptorProto.Type.items()
    if value not in (10, 11, 14)
}
_SCALARS = frozenset(_TYPES.values())
_MAX = 536870911
_ENUM_MAX = 2147483647


@dataclass(slots=True)
class _Option:
    name: str
    value: str


@dataclass(slots=True)
class _Field:
    label: str
    type: str
    name: str
    number: int
    options: list[_Option] = field(default_factory=list)
    body: _Block | None = None  # of a group


@dataclass(slots=True)
class _Reserved:
    word: str  # `reserved` or `extensions`
    items: list[str] = field(default_factory=list)
    options: list[_Option] = field(default_factory=list)


@dataclass(slots=True)
class _Rpc:
    name: str
    request: str
    response: str
    request_stream: bool
    response_stream: bool
    options: list[_Option] = field(default_factory=list)


@dataclass(slots=True)
class _Block:
    """A message, an enum, a oneof, an extend or a service: what it declares, part by part."""

    kind: str
    name: str
    reserved: list[_Reserved] = field(default_factory=list)
    options: list[_Option] = field(default_factory=list)
    fields: list[_Field] = field(default_factory=list)
    oneofs: list[_Block] = field(default_factory=list)
    extensions: list[_Reserved] = field(default_factory=list)
    messages: list[_Block] = field(default_factory=list)
    enums: list[_Block] = field(default_factory=list)
    extends: list[_Block] = field(default_factory=list)
    rpcs: list[_Rpc] = field(default_factory=list)


@dataclass(slots=True)
class ProtoFile:
    """One file."""

    syntax: str = ""
    package: str = ""
    imports: list[str] = field(default_factory=list)
    public: list[str] = field(default_factory=list)
    weak: list[str] = field(default_factory=list)
    top: _Block = field(default_factory=lambda: _Block("file", ""))
    services: list[_Block] = field(default_factory=list)

    def text(self) -> str:
        """The file in its one spelling."""
        head = [f"syntax = {_quoted(self.syntax)};"] if self.syntax else []
        head += [f"package {self.package};"] if self.package else []
        imports = [f"import {_quoted(name)};" for name in self.imports]
        imports += [f"import public {_quoted(name)};" for name in self.public]
        imports += [f"import weak {_quoted(name)};" for name in self.weak]
        parts: list[list[str]] = [head] if head else []
        parts += [imports] if imports else []
        parts += [[f"option {_option(one)};" for one in self.top.options]] if self.top.options else []
        parts += [list(_block(one)) for one in (*self.top.messages, *self.top.enums)]
        parts += [list(_block(one)) for one in (*self.top.extends, *self.services)]
        return "".join("\n".join(part) + "\n" for part in _spaced(parts))


def _spaced(parts: Iterable[list[str]]) -> Iterator[list[str]]:
    for number, part in enumerate(parts):
        yield ["", *part] if number else part


# ---- writing


def _block(one: _Block) -> Iterator[str]:
    parts: list[list[str]] = []
    if one.reserved:
        parts.append([f"{_numbers(numbers)};" for numbers in one.reserved])
    if one.options:
        parts.append([f"option {_option(option)};" for option in one.options])
    plain = [entry for entry in one.fields if entry.body is None]
    if plain:
        parts.append([line for entry in plain for line in _field(entry, one.kind)])
    if one.rpcs:
        parts.append([line for rpc in one.rpcs for line in _rpc(rpc)])
    parts += [list(_block(oneof)) for oneof in one.oneofs]
    parts += [list(_group(entry)) for entry in one.fields if entry.body is not None]
    if one.extensions:
        parts.append([f"{_numbers(numbers)};" for numbers in one.extensions])
    parts += [list(_block(inner)) for inner in (*one.messages, *one.enums, *one.extends)]
    head = f"{one.kind} {one.name} {{"
    if not parts:
        yield head + "}"
        return
    yield head
    for lines in _spaced(parts):
        yield from (f"  {line}" if line else "" for line in lines)
    yield "}"


def _field(one: _Field, kind: str) -> Iterator[str]:
    label = f"{one.label} " if one.label else ""
    head = f"{one.name} = {one.number}" if kind == "enum" else f"{label}{one.type} {one.name} = {one.number}"
    yield from _with_options(head, one.options)


def _with_options(head: str, options: list[_Option]) -> Iterator[str]:
    if not options:
        yield f"{head};"
        return
    yield f"{head} ["
    for number, option in enumerate(options):
        yield f"  {_option(option)}{',' if number < len(options) - 1 else ''}"
    yield "];"


def _group(one: _Field) -> Iterator[str]:
    assert one.body is not None
    lines = list(_block(one.body))
    label = f"{one.label} " if one.label else ""
    opened = "{}" if len(lines) == 1 else "{"
    yield f"{label}group {one.name} = {one.number} {opened}"
    yield from lines[1:]


def _rpc(one: _Rpc) -> Iterator[str]:
    asked = f"stream {one.request}" if one.request_stream else one.request
    given = f"stream {one.response}" if one.response_stream else one.response
    head = f"rpc {one.name} ({asked}) returns ({given})"
    if not one.options:
        yield f"{head};"
        return
    yield f"{head} {{"
    yield from (f"  option {_option(option)};" for option in one.options)
    yield "};"


def _option(one: _Option) -> str:
    return f"{one.name} = {one.value}"


def _numbers(one: _Reserved) -> str:
    options = f" [{', '.join(_option(option) for option in one.options)}]" if one.options else ""
    return f"{one.word} {', '.join(one.items)}{options}"


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(sign, sign) for sign in text) + '"'


# ---- reading a text


class _ProtoReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._found = list(tokens(text))
        self._at = 0

    def peek(self) -> str:
        return self._found[self._at][0] if self._at < len(self._found) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            raise unusable("the text ends in the middle of a statement")
        self._at += 1
        return token

    def expect(self, sign: str) -> None:
        token = self.next()
        if token != sign:
            raise unusable(f'"{sign}" is expected, not "{token}"', place(self._text, self._found[self._at - 1][1]))

    def skip(self, sign: str) -> bool:
        if self.peek() == sign:
            self._at += 1
            return True
        return False

    # ---- a file

    def file(self) -> ProtoFile:
        made = ProtoFile()
        while (token := self.peek()) != "":
            if token == "syntax":
                self._at += 1
                self.expect("=")
                made.syntax = _unquoted(self.next())
                self.expect(";")
            elif token == "package":
                self._at += 1
                made.package = self._name()
                self.expect(";")
            elif token == "import":
                self._import(made)
            elif token == "service":
                made.services.append(self._named("service"))
            else:
                self._member(made.top)
        return made

    def _import(self, made: ProtoFile) -> None:
        self._at += 1
        into = made.imports
        if self.skip("public"):
            into = made.public
        elif self.skip("weak"):
            into = made.weak
        into.append(self._string())
        self.expect(";")

    def _name(self) -> str:
        """A name, whose parts may stand apart: `a . b`."""
        name = self.next()
        while name.endswith(".") or self.peek().startswith("."):
            name += self.next()
        return name

    def _string(self) -> str:
        value = _unquoted(self.next())
        while self.peek()[:1] in ("'", '"'):
            value += _unquoted(self.next())
        return value

    def _named(self, kind: str) -> _Block:
        self.expect(kind)
        made = _Block(kind, self._name())
        self._body(made)
        return made

    def _body(self, made: _Block) -> None:
        self.expect("{")
        while not self.skip("}"):
            self._member(made)
        self.skip(";")

    def _member(self, made: _Block) -> None:
        token = self.peek()
        following = self._found[self._at + 1][0] if self._at + 1 < len(self._found) else ""
        if token == ";":
            self._at += 1
        elif token == "option":
            self._at += 1
            made.options.append(self._one_option())
            self.expect(";")
        elif made.kind == "enum" and token == "reserved" and following != "=":
            made.reserved.append(self._ranges("reserved", _ENUM_MAX))
        elif made.kind == "enum":
            self._value(made)
        elif made.kind == "service":
            made.rpcs.append(self._rpc())
        elif token == "message" and following != "=" and made.kind in ("file", "message", "group"):
            made.messages.append(self._named("message"))
        elif token == "enum" and made.kind in ("file", "message", "group"):
            made.enums.append(self._named("enum"))
        elif token == "extend" and made.kind in ("file", "message", "group"):
            made.extends.append(self._named("extend"))
        elif token == "oneof" and made.kind in ("message", "group"):
            made.oneofs.append(self._named("oneof"))
        elif token == "reserved" and made.kind in ("message", "group"):
            made.reserved.append(self._ranges("reserved", _MAX))
        elif token == "extensions" and made.kind in ("message", "group"):
            made.extensions.append(self._ranges("extensions", _MAX))
        else:
            made.fields.append(self._field())

    def _field(self) -> _Field:
        label = self.next() if self.peek() in _LABELS else ""
        if self.peek() == "group":
            self._at += 1
            name = self.next()
            self.expect("=")
            found = _Field(label, "group", name, _number(self.next()))
            found.options = self._options()
            found.body = _Block("group", name)
            self._body(found.body)
            return found
        type_ = self._type()
        name = self.next()
        self.expect("=")
        number = _number(self.next())
        options = self._options()
        self.expect(";")
        return _Field(label, type_, name, number, options)

    def _type(self) -> str:
        name = self._name()
        if name != "map" or not self.skip("<"):
            return name
        key = self._name()
        self.expect(",")
        value = self._name()
        self.expect(">")
        return f"map<{key}, {value}>"

    def _value(self, made: _Block) -> None:
        name = self.next()
        self.expect("=")
        minus = self.skip("-")
        number = _number(self.next())
        options = self._options()
        self.expect(";")
        made.fields.append(_Field("", "", name, -number if minus else number, options))

    def _ranges(self, word: str, most: int) -> _Reserved:
        self._at += 1
        made = _Reserved(word)
        while True:
            if self.peek()[:1] in ("'", '"'):
                made.items.append(_quoted(self._string()))
            else:
                made.items.append(self._range(most))
            if not self.skip(","):
                break
        made.options = self._options()
        self.expect(";")
        return made

    def _range(self, most: int) -> str:
        first = self._signed()
        if not self.skip("to"):
            return first
        last = self._signed()
        return f"{first} to {'max' if last in ('max', str(most)) else last}"

    def _signed(self) -> str:
        minus = "-" if self.skip("-") else ""
        token = self.next()
        return minus + (str(_number(token)) if token[:1].isdigit() else token)

    def _options(self) -> list[_Option]:
        if not self.skip("["):
            return []
        found = []
        while True:
            found.append(self._one_option())
            if not self.skip(","):
                break
        self.expect("]")
        return found

    def _one_option(self) -> _Option:
        name = ""
        while self.peek() != "=":
            token = self.next()
            if token == "(":
                name += f"({self._name()})"
                self.expect(")")
            else:
                name += token
        self.expect("=")
        return _Option(name, self._constant())

    def _constant(self) -> str:
        token = self.peek()
        if token[:1] in ("'", '"'):
            return _quoted(self._string())
        if token == "{":
            return self._aggregate()
        if token in ("-", "+"):
            self._at += 1
            return ("-" if token == "-" else "") + self.next()
        return self._name()

    def _aggregate(self) -> str:
        """A value in braces, in one line with single blanks."""
        words: list[str] = []
        depth = 0
        while True:
            token = self.next()
            depth += (token in "{[<") - (token in "}]>")
            words.append(_quoted(_unquoted(token)) if token[:1] in ("'", '"') else token)
            if depth == 0:
                break
        return " ".join(words).replace(" :", ":").replace(" ,", ",")

    def _rpc(self) -> _Rpc:
        self.expect("rpc")
        name = self.next()
        asked, asked_stream = self._endpoint()
        self.expect("returns")
        given, given_stream = self._endpoint()
        made = _Rpc(name, asked, given, asked_stream, given_stream)
        if self.skip("{"):
            while not self.skip("}"):
                if self.skip("option"):
                    made.options.append(self._one_option())
                self.expect(";")
            self.skip(";")
        else:
            self.expect(";")
        return made

    def _endpoint(self) -> tuple[str, bool]:
        self.expect("(")
        following = self._found[self._at + 1][0] if self._at + 1 < len(self._found) else ""
        streams = self.peek() == "stream" and following != ")"
        self._at += streams
        name = self._name()
        self.expect(")")
        return name, streams


def _number(token: str) -> int:
    try:
        return int(token, 8) if len(token) > 1 and token.isdigit() and token[0] == "0" else int(token, 0)
    except ValueError:
        raise unusable(f'"{token}" is not a number') from None


_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unquoted(token: str) -> str:
    body = token[1:-1]
    if "\\" not in body:
        return body
    found, at = [], 0
    while at < len(body):
        if body[at] == "\\" and at + 1 < len(body):
            at += 1
            found.append(_UNESCAPES.get(body[at], body[at] if body[at] in "\\'\"?" else "\\" + body[at]))
        else:
            found.append(body[at])
        at += 1
    return "".join(found)


def parse(text: str) -> ProtoFile:
    """What a .proto text declares; refused where it is beyond the bounds of what is compiled."""
    scan(text)
    return _ProtoReader(text).file()


# ---- reading a descriptor


def of_descriptor(proto: FileDescriptorProto) -> ProtoFile:
    """What a descriptor declares; types of its own and of imports are named in full."""
    made = ProtoFile(syntax=proto.syntax or "proto2", package=proto.package)
    public, weak = set(proto.public_dependency), set(proto.weak_dependency)
    for number, name in enumerate(proto.dependency):
        (made.public if number in public else made.weak if number in weak else made.imports).append(name)
    made.top.options = _known_options(proto.options)
    proto3 = made.syntax == "proto3"
    made.top.messages = [_message(one, proto3) for one in proto.message_type]
    made.top.enums = [_enum(one) for one in proto.enum_type]
    made.top.extends = _extends(proto.extension, proto3)
    made.services = [_service(one) for one in proto.service]
    return made


def _message(proto: DescriptorProto, proto3: bool) -> _Block:
    made = _Block("message", proto.name)
    if proto.reserved_range or proto.reserved_name:
        numbers = [_Reserved("reserved", [_span(one.start, one.end - 1, _MAX)]) for one in proto.reserved_range]
        made.reserved = [*numbers, *(_Reserved("reserved", [_quoted(name)]) for name in proto.reserved_name)]
    made.options = _known_options(proto.options)
    entries = {one.name: one for one in proto.nested_type if one.options.map_entry}
    made.oneofs = [_Block("oneof", one.name, options=_known_options(one.options)) for one in proto.oneof_decl]
    for one in proto.field:
        found = _described(one, proto3, entries)
        if one.HasField("oneof_index") and not one.proto3_optional:
            found.label = ""
            made.oneofs[one.oneof_index].fields.append(found)
        else:
            made.fields.append(found)
    made.oneofs = [one for one in made.oneofs if one.fields]
    made.extensions = [_Reserved("extensions", [_span(one.start, one.end - 1, _MAX)]) for one in proto.extension_range]
    made.messages = [_message(one, proto3) for one in proto.nested_type if not one.options.map_entry]
    made.enums = [_enum(one) for one in proto.enum_type]
    made.extends = _extends(proto.extension, proto3)
    return made


def _span(first: int, last: int, most: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last == most else last}"


def _described(proto: FieldDescriptorProto, proto3: bool, entries: dict[str, DescriptorProto]) -> _Field:
    label = _LABELS[{1: 0, 2: 1, 3: 2}[proto.label]]
    if proto3 and label == "optional" and not proto.proto3_optional:
        label = ""
    type_ = _TYPES.get(proto.type) or proto.type_name
    entry = entries.get(proto.type_name.rpartition(".")[2]) if proto.type == FieldDescriptor.TYPE_MESSAGE else None
    if entry is not None:
        key, value = (_TYPES.get(one.type) or one.type_name for one in entry.field)
        label, type_ = "", f"map<{key}, {value}>"
    options = []
    if proto.HasField("default_value"):
        text = proto.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
        options.append(_Option("default", _quoted(proto.default_value) if text else proto.default_value))
    if proto.HasField("json_name"):
        options.append(_Option("json_name", _quoted(proto.json_name)))
    return _Field(label, type_, proto.name, proto.number, [*options, *_known_options(proto.options)])


def _enum(proto: EnumDescriptorProto) -> _Block:
    made = _Block("enum", proto.name, options=_known_options(proto.options))
    made.reserved = [_Reserved("reserved", [_span(one.start, one.end, _ENUM_MAX)]) for one in proto.reserved_range]
    made.reserved += [_Reserved("reserved", [_quoted(name)]) for name in proto.reserved_name]
    made.fields = [_Field("", "", one.name, one.number, _known_options(one.options)) for one in proto.value]
    return made


def _extends(found: Sequence[FieldDescriptorProto], proto3: bool) -> list[_Block]:
    made: dict[str, _Block] = {}
    for one in found:
        made.setdefault(one.extendee, _Block("extend", one.extendee)).fields.append(_described(one, proto3, {}))
    return list(made.values())


def _service(proto: ServiceDescriptorProto) -> _Block:
    made = _Block("service", proto.name, options=_known_options(proto.options))
    for one in proto.method:
        streams = (one.client_streaming, one.server_streaming)
        made.rpcs.append(_Rpc(one.name, one.input_type, one.output_type, *streams, _known_options(one.options)))
    return made


def _known_options(options: Any) -> list[_Option]:
    """The options that a descriptor states and that are part of the language."""
    found = []
    for descriptor, value in options.ListFields():
        if descriptor.message_type is not None or descriptor.is_extension or descriptor.is_repeated:
            continue
        if descriptor.enum_type is not None:
            text = descriptor.enum_type.values_by_number[value].name
        elif isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = _quoted(value) if isinstance(value, str) else str(value)
        found.append(_Option(descriptor.name, text))
    return found


# ---- normalising

_Names = dict[tuple[str, ...], Any]


def resolved(made: ProtoFile, proto: FileDescriptorProto) -> ProtoFile:
    """A file normalised: sorted where order means nothing, with the type names that its descriptor has."""
    full: _Names = {}
    prefix = f".{proto.package}" if proto.package else ""
    for one in proto.message_type:
        _collect(one, prefix, full)
    for one in proto.extension:
        full["", one.extendee, one.name] = one.type_name
    made.syntax = "" if made.syntax == "proto2" else made.syntax
    made.imports, made.public = sorted(set(made.imports)), sorted(set(made.public))
    _normalise(made.top, prefix, full)
    for service, described in zip(made.services, proto.service, strict=True):
        service.options.sort(key=_by_name)
        for rpc, method in zip(service.rpcs, described.method, strict=True):
            rpc.request, rpc.response = method.input_type, method.output_type
            rpc.options.sort(key=_by_name)
    return made


def _collect(proto: DescriptorProto, prefix: str, full: _Names) -> None:
    name = f"{prefix}.{proto.name}"
    entries = {one.name: one for one in proto.nested_type if one.options.map_entry}
    for one in proto.field:
        entry = entries.get(one.type_name.rpartition(".")[2])
        full[name, str(one.number)] = entry.field[1].type_name if entry is not None else one.type_name
    for one in proto.nested_type:
        _collect(one, name, full)


def _by_name(option: _Option) -> str:
    return option.name


def _normalise(block: _Block, name: str, full: _Names) -> None:
    block.options.sort(key=_by_name)
    for numbers in (*block.reserved, *block.extensions):
        numbers.items.sort(key=_in_order)
    block.reserved.sort(key=lambda one: _in_order(one.items[0]))
    block.extensions.sort(key=lambda one: _in_order(one.items[0]))
    block.fields.sort(key=lambda one: (one.number, one.name))
    for one in block.fields:
        one.options.sort(key=_by_name)
        known = full.get((name, str(one.number)))
        if block.kind != "enum" and known:
            one.type = f"{one.type.partition(',')[0]}, {known}>" if one.type.startswith("map<") else known
        if one.body is not None:
            _normalise(one.body, f"{name}.{one.name}", full)
    for oneof in block.oneofs:
        _normalise(oneof, name, full)
    block.oneofs.sort(key=lambda one: one.fields[0].number if one.fields else 0)
    for inner in block.messages:
        _normalise(inner, f"{name}.{inner.name}", full)
    for inner in block.enums:
        _normalise(inner, "", {})


def _in_order(item: str) -> tuple[bool, int, str]:
    first = item.partition(" ")[0]
    return (item.startswith('"'), int(first) if first.lstrip("-").isdigit() else 0, item)
