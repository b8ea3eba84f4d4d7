"""An Avro schema document becomes a graph of nodes, or problems that say where and why.

Rule 1: what the specification (Avro 1.12, "Schema Declaration") forbids is a problem, also where libraries let it pass:
names, namespaces, aliases, defaults, symbols, sizes, unions, and records that no finite value can have.
Rule 2: all problems are found in one reading; a path is a JSON Pointer into the document.
Rule 3: the document is untrusted: its size and depth are bounded, and the only other documents are those that
`References` gives for a name that it does not define itself.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from signalbook.budget import spend
from signalbook.errors import Problem
from signalbook.schemas.format import LARGEST, REFERENCE, References, SchemaError, Text, pointer, unmarked, unusable

__all__ = [
    "DEEPEST",
    "NAMED",
    "NOTHING",
    "PRIMITIVES",
    "Field",
    "Node",
    "default_problem",
    "inner_types",
    "logical_type",
    "of_values",
    "raw_default",
    "read_graph",
    "single",
    "walk",
]

# What an Avro schema is once it is read: a graph of nodes, the same node wherever a name leads to it.
#
# Rule 1: a graph is built by `read_graph` and never changes after that.
# Rule 2: a logical type stands on a node only where the specification (Avro 1.12, "Logical Types") calls it valid
# there; everywhere else it is ignored, as the specification says, and the node is what lies under it.


PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "enum", "fixed"})


class _Nothing:
    """The default of a field that has none; JSON null is a default."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Any = _Nothing()


@dataclass(slots=True, eq=False)
class Node:
    """One type: `inner` are an array's items or a map's values, `members` those of a union."""

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    inner: Node | None = None
    members: tuple[Node, ...] = ()
    logical: str = ""
    precision: int = 0
    scale: int = 0
    numbers_: dict[str, int] | None = None

    @property
    def numbers(self) -> Mapping[str, int]:
        """The number of each symbol of an enum."""
        if self.numbers_ is None:
            self.numbers_ = {symbol: number for number, symbol in enumerate(self.symbols)}
        return self.numbers_

    @property
    def label(self) -> str:
        """The name that a union's value carries in Avro's JSON encoding."""
        return self.name or self.kind


@dataclass(slots=True, eq=False)
class Field:
    """One field of a record; `default` is the JSON value, or `NOTHING`."""

    name: str
    node: Node
    aliases: tuple[str, ...] = ()
    default: Any = NOTHING


def of_values(node: Node) -> tuple[Node, ...]:
    """The members of a union that are not null; for any other node, itself."""
    if node.kind != "union":
        return (node,)
    return tuple(member for member in node.members if member.kind != "null")


def inner_types(node: Node) -> list[Node]:
    """The types directly within a type, in their order."""
    found = [field.node for field in node.fields]
    found.extend(node.members)
    if node.inner is not None:
        found.append(node.inner)
    return found


def walk(node: Node) -> Iterator[Node]:
    """Yield every node that can be reached, each once."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting.extend(inner_types(one))


# Logical types by the type they annotate; those with conditions of their own are below.
_LOGICAL: dict[str, frozenset[str]] = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "timestamp-nanos",
            "local-timestamp-millis",
            "local-timestamp-micros",
            "local-timestamp-nanos",
        }
    ),
    "string": frozenset({"uuid"}),
    "bytes": frozenset({"big-decimal"}),
}
_FIXED_SIZES = {"duration": 12, "uuid": 16}


def logical_type(kind: str, size: int, spec: Mapping[str, Any]) -> tuple[str, int, int]:
    """The valid logical type of a definition, with a decimal's precision and scale; an empty name: it has none."""
    name = spec.get("logicalType")
    if not isinstance(name, str):
        return "", 0, 0
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = _whole(spec.get("precision")), _whole(spec.get("scale", 0))
        # "floor(log10(2^(8 * n - 1) - 1))" digits fit in n bytes.
        digits = math.inf if kind == "bytes" else math.floor((8 * size - 1) * math.log10(2))
        if 0 < precision <= digits and 0 <= scale <= precision:
            return name, precision, scale
        return "", 0, 0
    if name in _LOGICAL.get(kind, ()) or (kind == "fixed" and _FIXED_SIZES.get(name) == size):
        return name, 0, 0
    return "", 0, 0


def _whole(value: Any) -> int:
    """A whole number, or -1 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


# The default values of Avro fields, which stand in the schema as JSON.
#
# Rule: bytes and fixed are text with one character a byte; the default of a union is one of any member (Avro 1.12;
# until 1.11 it was the first member), and carries no label.


Steps = tuple[str | int, ...]

_FLOAT = struct.Struct("<f")
_WHOLE = {"int": 31, "long": 63}
_DEEPEST = 100
# What the defaults of a schema may hold together. Those of unions are tried member by member, and one of a record has
# all that its fields have: a hostile one could go on for ever.
_MOST = 100_000


class _Wrong(Exception):
    """A default that its type does not take."""

    def __init__(self, steps: Steps, message: str) -> None:
        super().__init__(steps, message)
        self.steps = steps
        self.message = message


def single(value: float) -> float:
    """The number of 32 bits that is nearest; beyond their range, infinity."""
    try:
        found: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def default_problem(default: Any, node: Node, steps: Steps, left: list[int]) -> tuple[Steps, str] | None:
    """Where and why a default is none of its type; None where it is one. `left` is how many values it may hold."""
    try:
        _raw(default, node, steps, left)
    except _Wrong as wrong:
        return wrong.steps, wrong.message
    return None


def raw_default(field: Field) -> Any:
    """The default of a field as decoding the same value from bytes would give it, before logical types."""
    return _raw(field.default, field.node, (), [_MOST])


def _raw(default: Any, node: Node, steps: Steps, left: list[int]) -> Any:  # noqa: C901  one line a kind
    kind = node.kind
    spend()
    left[0] -= 1
    if len(steps) > _DEEPEST or left[0] < 0:
        words = f"the default is nested too deeply, or all defaults together hold more than {_MOST:,} values"
        raise _Wrong(steps, words)
    if kind == "union":
        return _of_union(default, node, steps, left)
    if kind == "null" and default is None:
        return None
    if kind == "boolean" and isinstance(default, bool):
        return default
    if kind in _WHOLE and _number(default, whole=True) and -(1 << _WHOLE[kind]) <= default < 1 << _WHOLE[kind]:
        return int(default)
    if kind in ("float", "double") and (_number(default) or default in ("NaN", "Infinity", "-Infinity")):
        value = float(default)
        return value if kind == "double" else single(value)
    if kind == "string" and isinstance(default, str):
        return default
    if kind in ("bytes", "fixed") and isinstance(default, str):
        return _of_bytes(default, node, steps)
    if kind == "enum" and isinstance(default, str) and default in node.numbers:
        return default
    if kind == "array" and isinstance(default, list):
        return [_raw(item, _inner(node), (*steps, number), left) for number, item in enumerate(default)]
    if kind == "map" and isinstance(default, dict):
        return {key: _raw(item, _inner(node), (*steps, key), left) for key, item in default.items()}
    if kind == "record" and isinstance(default, dict):
        return _of_record(default, node, steps, left)
    raise _Wrong(steps, f"the default {default!r:.60} is not a valid {node.label}")


def _inner(node: Node) -> Node:
    assert node.inner is not None
    return node.inner


def _number(value: Any, whole: bool = False) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and (not whole or value.is_integer()))


def _of_bytes(default: str, node: Node, steps: Steps) -> bytes:
    try:
        found = default.encode("latin-1")
    except UnicodeEncodeError:
        raise _Wrong(steps, "the default of bytes holds characters beyond U+00FF") from None
    if node.kind == "fixed" and len(found) != node.size:
        raise _Wrong(steps, f"the default has {len(found)} bytes, {node.name} has {node.size}")
    return found


def _of_union(default: Any, node: Node, steps: Steps, left: list[int]) -> Any:
    for number, member in enumerate(node.members):
        try:
            return (number, _raw(default, member, steps, left))
        except _Wrong:
            continue
    raise _Wrong(steps, f"the default {default!r:.60} does not fit any member of the union")


def _of_record(default: dict[str, Any], node: Node, steps: Steps, left: list[int]) -> dict[str, Any]:
    found = {}
    for field in node.fields:
        value = default.get(field.name, field.default)
        if value is NOTHING:
            raise _Wrong(steps, f"the default lacks {field.name}, which has no default of its own")
        found[field.name] = _raw(value, field.node, (*steps, field.name), left)
    return found


# A schema deeper than this is not a schema of data anybody keeps, and would be walked by recursion.
DEEPEST = 100
_REFERENCES = 200
_SYMBOLS_A_STEP = 8
_PROBLEMS = 100

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_ELSEWHERE = ("references",)  # what the steps into a document of the catalog begin with
_ORDERS = ("ascending", "descending", "ignore")


def read_graph(text: Text, references: References | None = None) -> tuple[Node, dict[str, Node]]:
    """The type that a document declares, and every named type in it; `SchemaError` with all problems."""
    document = _json(text)
    reading = _SchemaReader(references)
    node = reading.type(document, "", ())
    reading.finish(node)
    if reading.problems:
        raise SchemaError(reading.problems)
    return node, reading.names


def _json(text: Text) -> Any:
    if not isinstance(text, bytes | str):
        return text  # an inline value: an object, or a list where the top is a union
    if len(text) > LARGEST:
        raise unusable(f"the schema is larger than {LARGEST} bytes")
    try:
        return orjson.loads(unmarked(text))
    except orjson.JSONDecodeError as error:
        raise unusable(f"not JSON: {error}") from None


class _SchemaReader:
    """One reading: the names found so far, and the problems."""

    def __init__(self, references: References | None) -> None:
        self.references = references
        self.problems: list[Problem] = []
        self.names: dict[str, Node] = {}
        self._missing: dict[int, Node] = {}  # the stand-ins for names that nobody defines
        self._asked = 0
        self._depth = 0
        self._defaults: list[tuple[Any, Node, Steps]] = []
        self._places: dict[int, Steps] = {}

    def problem(self, steps: Steps, message: str, code: str = "schema") -> None:
        if len(self.problems) < _PROBLEMS:
            code = REFERENCE if steps[:1] == _ELSEWHERE else code
            self.problems.append(Problem(pointer(steps), code, message))

    def type(self, spec: Any, namespace: str, steps: Steps) -> Node:
        """The node of one declaration; where it is wrong, a stand-in, so that reading goes on."""
        spend()
        self._depth += 1
        if self._depth > DEEPEST:
            words = f"nested deeper than {DEEPEST} types"
            raise SchemaError([*self.problems, Problem(pointer(steps), "schema", words)])
        node = self._type(spec, namespace, steps)
        self._depth -= 1
        return node

    def _type(self, spec: Any, namespace: str, steps: Steps) -> Node:
        if isinstance(spec, str):
            return self._named(spec, namespace, steps)
        if isinstance(spec, list):
            return self._union(spec, namespace, steps)
        if not isinstance(spec, Mapping):
            self.problem(steps, f"a type is a name, an object or a list, not {_shown(spec)}")
            return Node("null")
        kind = spec.get("type", NOTHING)
        if kind is NOTHING:
            self.problem(steps, 'an object that declares a type needs "type"')
            return Node("null")
        if not isinstance(kind, str):
            # {"type": {"type": "string"}}: the inner declaration is meant; every implementation reads it so.
            return self.type(kind, namespace, (*steps, "type"))
        if kind in PRIMITIVES:
            logical, precision, scale = logical_type(kind, 0, spec)
            return Node(kind, logical=logical, precision=precision, scale=scale)
        if kind in ("array", "map"):
            return self._collection(kind, spec, namespace, steps)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition("record" if kind == "error" else kind, spec, namespace, steps)
        return self._named(kind, namespace, (*steps, "type"))

    def _named(self, name: str, namespace: str, steps: Steps) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self.names:
            self._refer(full)
        if full in self.names:
            return self.names[full]
        if name in ("record", "enum", "fixed", "array", "map"):
            self.problem(steps, f"no type is named {full}; {_named_hint(full)}")
        else:
            self.problem(steps, f"no type is named {full}", REFERENCE)
        node = Node("record", name=full)
        self._missing[id(node)] = node
        return node

    def _refer(self, full: str) -> None:
        if self.references is None or self._asked >= _REFERENCES or not _FULL_NAME.fullmatch(full):
            return
        self._asked += 1
        try:
            found = self.references(full)
            document = None if found is None else _json(found)
        except SchemaError as error:
            self.problem((*_ELSEWHERE, full), str(error))
            return
        if found is not None:
            self.type(document, "", (*_ELSEWHERE, full))

    def _union(self, members: list[Any], namespace: str, steps: Steps) -> Node:
        nodes = []
        seen: set[str] = set()
        for number, member in enumerate(members):
            place = (*steps, number)
            node = self.type(member, namespace, place)
            if node.kind == "union":
                self.problem(place, "a union cannot directly hold another union")
            elif node.label in seen:
                self.problem(place, f"a union cannot hold {node.label} twice")
            seen.add(node.label)
            nodes.append(node)
        return Node("union", members=tuple(nodes))

    def _collection(self, kind: str, spec: Mapping[str, Any], namespace: str, steps: Steps) -> Node:
        member = "items" if kind == "array" else "values"
        if member not in spec:
            self.problem(steps, f'a type {kind} needs "{member}"')
            return Node(kind, inner=Node("null"))
        return Node(kind, inner=self.type(spec[member], namespace, (*steps, member)))

    def _definition(self, kind: str, spec: Mapping[str, Any], namespace: str, steps: Steps) -> Node:
        name, inside = self._full_name(spec, namespace, steps)
        node = Node(kind, name=name, aliases=self._aliases(spec, inside, steps))
        if name in self.names:
            self.problem((*steps, "name"), f"the name {name} is defined twice")
        elif name:
            self.names[name] = node
        self._places[id(node)] = steps
        match kind:
            case "record":
                node.fields = self._fields(spec, inside, steps)
            case "enum":
                node.symbols = self._symbols(spec, steps)
                node.default = self._enum_default(spec, node.symbols, steps)
            case _:
                size = spec.get("size")
                if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**31:
                    self.problem(steps, f'a fixed type needs a "size", a whole number from 0, not {_shown(size)}')
                    size = 0
                node.size = size
                node.logical, node.precision, node.scale = logical_type(kind, size, spec)
        return node

    def _full_name(self, spec: Mapping[str, Any], namespace: str, steps: Steps) -> tuple[str, str]:
        """The full name of a definition, and the namespace that holds within it."""
        name = spec.get("name")
        if not isinstance(name, str) or not _FULL_NAME.fullmatch(name):
            self.problem(steps, f'"name" must be letters, digits and _, not starting with a digit: {_shown(name)}')
            return "", namespace
        given = spec.get("namespace")
        if given is not None and not (isinstance(given, str) and (not given or _FULL_NAME.fullmatch(given))):
            self.problem((*steps, "namespace"), f"a namespace is a dotted sequence of names, not {_shown(given)}")
            given = None
        inside, dot, simple = name.rpartition(".")
        if not dot:
            inside, simple = namespace if given is None else given, name
        # Java and Python let `ns.int` pass, though the text says "in any namespace".
        if simple in PRIMITIVES and not inside:
            self.problem((*steps, "name"), f"{simple} is the name of a primitive type")
        return (f"{inside}.{simple}" if inside else simple), inside

    def _aliases(self, spec: Mapping[str, Any], namespace: str, steps: Steps) -> tuple[str, ...]:
        given = spec.get("aliases", [])
        if not isinstance(given, list) or not all(
            isinstance(alias, str) and _FULL_NAME.fullmatch(alias) for alias in given
        ):
            self.problem((*steps, "aliases"), f"aliases are a list of names, not {_shown(given)}")
            return ()
        return tuple(alias if "." in alias or not namespace else f"{namespace}.{alias}" for alias in given)

    def _fields(self, spec: Mapping[str, Any], namespace: str, steps: Steps) -> tuple[Field, ...]:
        given = spec.get("fields")
        if not isinstance(given, list):
            self.problem(steps, f'a record needs "fields", a list, not {_shown(given)}')
            return ()
        found: list[Field] = []
        taken: set[str] = set()
        for number, one in enumerate(given):
            field = self._field(one, namespace, (*steps, "fields", number))
            if field is None:
                continue
            if field.name in taken:
                self.problem((*steps, "fields", number, "name"), f"the record has two fields {field.name}")
            taken.add(field.name)
            found.append(field)
        return tuple(found)

    def _field(self, spec: Any, namespace: str, steps: Steps) -> Field | None:
        if not isinstance(spec, Mapping):
            self.problem(steps, f"a field is an object, not {_shown(spec)}")
            return None
        name = spec.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.problem(steps, f'a field\'s "name" must be letters, digits and _: {_shown(name)}')
            name = ""
        aliases = spec.get("aliases", [])
        if not isinstance(aliases, list) or not all(isinstance(one, str) and _NAME.fullmatch(one) for one in aliases):
            self.problem((*steps, "aliases"), f"aliases are a list of names, not {_shown(aliases)}")
            aliases = []
        if "order" in spec and spec["order"] not in _ORDERS:
            self.problem((*steps, "order"), f"order is one of {', '.join(_ORDERS)}, not {_shown(spec['order'])}")
        if "type" not in spec:
            self.problem(steps, 'a field needs a "type"')
            return None
        node = self.type(spec["type"], namespace, (*steps, "type"))
        default = spec.get("default", NOTHING)
        if default is not NOTHING:
            self._defaults.append((default, node, (*steps, "default")))
        return Field(name, node, tuple(aliases), default)

    def _symbols(self, spec: Mapping[str, Any], steps: Steps) -> tuple[str, ...]:
        given = spec.get("symbols")
        if not isinstance(given, list):
            self.problem(steps, f'an enum needs "symbols", a list, not {_shown(given)}')
            return ()
        found: dict[str, None] = {}
        spend(len(given) // _SYMBOLS_A_STEP)
        for number, symbol in enumerate(given):
            if not isinstance(symbol, str) or not _NAME.fullmatch(symbol):
                self.problem((*steps, "symbols", number), f"a symbol is letters, digits and _, not {_shown(symbol)}")
            elif symbol in found:
                self.problem((*steps, "symbols", number), f"the symbol {symbol} is listed twice")
            else:
                found[symbol] = None
        return tuple(found)

    def _enum_default(self, spec: Mapping[str, Any], symbols: tuple[str, ...], steps: Steps) -> str | None:
        default = spec.get("default")
        if default is None or (isinstance(default, str) and default in symbols):  # once an enum
            return default
        self.problem((*steps, "default"), f"the default {_shown(default)} is not one of the symbols")
        return None

    def finish(self, top: Node) -> None:
        """Check what needs the whole graph: its depth, defaults, and records that contain themselves."""
        if _too_deep(top):
            raise unusable(f"nested deeper than {DEEPEST} types, from one name to the next")
        unknown = _users_of(self._missing, [node for _, node, _ in self._defaults])
        left = [_MOST]
        for default, node, steps in self._defaults:
            # Where a type is missing, of which type the default should be nobody knows.
            found = default_problem(default, node, steps, left) if id(node) not in unknown else None
            if found is not None:
                self.problem(*found)
            if left[0] < 0:
                break
        for node in _endless([*self.names.values(), *self._missing.values()]):
            self.problem(self._places[id(node)], f"no finite value exists: {node.name} always contains itself")


def _users_of(wanted: Mapping[int, Node], nodes: list[Node]) -> set[int]:
    """The types, of all that can be reached from some, from which one of those wanted can be reached."""
    if not wanted:
        return set()
    users: dict[int, list[int]] = {}
    seen: set[int] = set()
    waiting = list(nodes)
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            for inner in inner_types(one):
                users.setdefault(id(inner), []).append(id(one))
                waiting.append(inner)
    found: set[int] = set()
    open_ = list(wanted)
    while open_:
        key = open_.pop()
        if key not in found:
            found.add(key)
            open_.extend(users.get(key, ()))
    return found


def _endless(named: list[Node]) -> list[Node]:
    """The records that no finite value can have: what is left when every record that can end is taken away."""
    records = [node for node in named if node.kind == "record"]
    waiting_for: dict[int, int] = {}
    waiters: dict[int, list[tuple[int, int]]] = {}
    for node in records:
        needs = [found for field in node.fields if (found := _needs(field.node))]
        waiting_for[id(node)] = len(needs)
        for number, alternatives in enumerate(needs):
            for other in alternatives:
                waiters.setdefault(id(other), []).append((id(node), number))
    ready = [id(node) for node in records if not waiting_for[id(node)]]
    met: set[tuple[int, int]] = set()
    ended = set(ready)
    while ready:
        for need in waiters.get(ready.pop(), ()):
            if need not in met:
                met.add(need)
                waiting_for[need[0]] -= 1
                if not waiting_for[need[0]]:
                    ended.add(need[0])
                    ready.append(need[0])
    return [node for node in records if id(node) not in ended]


def _too_deep(top: Node) -> bool:
    """Tell whether a walk from type to type, as all that is made of a schema walks, goes too deep."""
    seen = {id(top)}
    path = [iter(inner_types(top))]
    while path:
        node = next(path[-1], None)
        if node is None:
            path.pop()
        elif id(node) not in seen:
            seen.add(id(node))
            path.append(iter(inner_types(node)))
            if len(path) > 2 * DEEPEST:
                return True
    return False


def _needs(node: Node) -> tuple[Node, ...]:
    """The records of which one must end for this type to have a finite value; none: it has one anyhow."""
    if node.kind == "record":
        return (node,)
    if node.kind == "union" and node.members and all(member.kind == "record" for member in node.members):
        return node.members
    return ()


def _named_hint(name: str) -> str:
    simple = name.rpartition(".")[2]
    return f'"{simple}" as a type needs an object: {{"type": "{simple}", …}}'


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
