"""Random JSON Schemas with few names and small numbers, so that two of them often meet, and values that meet them.

Made from a seed and not by Hypothesis: thousands of pairs a second count for more here than a small example.
"""

import copy
import random
from collections.abc import Callable
from typing import Any

NAMES = ["a", "b", "ab"]
SCALARS = [None, True, False, 0, 1, 2, 3, -1, 1.5, 0.5, 2.0, 10, "", "a", "b", "ab", "abc", "a1"]
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"]
UNIONS = [["string", "null"], ["integer", "string"], ["object", "array"]]
LEAVES = [True, False, {}, *({"type": name} for name in TYPES)]


class Maker:
    """Schemas, pairs of them and values, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        some = self.random
        count = lambda _: some.randint(0, 3)  # noqa: E731 - a row of a table
        bound = lambda _: some.choice([0, 1, 2, 1.5, 10])  # noqa: E731
        several = lambda depth: [self.schema(depth) for _ in range(some.randint(1, 3))]  # noqa: E731
        names = lambda _: some.sample(NAMES, some.randint(1, 2))  # noqa: E731
        of_names = lambda value: lambda depth: {some.choice(NAMES): value(depth)}  # noqa: E731
        self.keywords: dict[str, Callable[[int], Any]] = {
            "properties": lambda depth: {name: self.schema(depth) for name in names(0)},
            "required": names,
            "additionalProperties": self.schema,
            "patternProperties": lambda depth: {some.choice(["^a", "b$"]): self.schema(depth)},
            "propertyNames": lambda _: some.choice([{"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}]),
            "dependentRequired": of_names(names),
            "dependentSchemas": of_names(self.schema),
            "unevaluatedProperties": lambda depth: some.choice([False, self.schema(depth)]),
            "minProperties": count,
            "maxProperties": count,
            "items": self.schema,
            "prefixItems": several,
            "contains": self.schema,
            "unevaluatedItems": lambda depth: some.choice([False, self.schema(depth)]),
            "minItems": count,
            "maxItems": count,
            "uniqueItems": lambda _: True,
            "minimum": bound,
            "maximum": bound,
            "exclusiveMinimum": bound,
            "exclusiveMaximum": bound,
            "multipleOf": lambda _: some.choice([1, 2, 0.5, 3]),
            "minLength": count,
            "maxLength": count,
            "pattern": lambda _: some.choice(["^a", "b$", "^ab", "[0-9]"]),
            "enum": lambda _: some.sample([*SCALARS, [], [1], {"a": 1}], some.randint(1, 3)),
            "const": lambda _: some.choice(SCALARS),
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": self.schema,
            "if": self.schema,
            "then": self.schema,
            "else": self.schema,
            "$ref": lambda _: some.choice(["#/$defs/x", "#/$defs/y"]),
        }

    def schema(self, depth: int) -> Any:
        """A schema with up to three keywords beside its type."""
        if depth == 0 or self.random.random() < 0.05:
            return copy.deepcopy(self.random.choice(LEAVES))
        made: dict[str, Any] = {}
        if self.random.random() < 0.6:
            made["type"] = self.random.choice([*TYPES, *UNIONS])
        for keyword in self.random.sample(list(self.keywords), self.random.randint(0, 3)):
            made[keyword] = self.keywords[keyword](depth - 1)
        return made

    def document(self) -> dict[str, Any]:
        """A document with two definitions, one of which may be recursive."""
        body = self.schema(3)
        recursive = {"type": "object", "properties": {"a": {"$ref": "#/$defs/y"}}}
        made: dict[str, Any] = body if isinstance(body, dict) else {"allOf": [body]}
        return {**made, "$defs": {"x": self.schema(2), "y": self.random.choice([self.schema(1), recursive])}}

    def pair(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A document, and mostly one that was made from it by a few edits."""
        older = self.document()
        if self.random.random() < 0.2:
            return older, self.document()
        newer = copy.deepcopy(older)
        for _ in range(self.random.randint(1, 2)):
            self._edit(self.random.choice([node for node in _nodes(newer) if node]))
        return older, newer

    def _edit(self, node: dict[str, Any]) -> None:
        keyword = self.random.choice(list(node))
        value, turn = node[keyword], self.random.random()
        if turn < 0.3 and keyword not in ("$defs", "x", "y"):
            del node[keyword]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            node[keyword] = max(0, value + self.random.choice([-1, 1])) or 1
        elif isinstance(value, list) and len(value) > 1:
            value.pop()
        elif turn > 0.7 and isinstance(more := self.schema(1), dict):
            node.update(more)

    def value(self, depth: int = 2) -> Any:
        """A value that has some chance with such schemas."""
        if depth == 0 or self.random.random() < 0.35:
            return self.random.choice(SCALARS)
        if self.random.random() < 0.5:
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]
        return {name: self.value(depth - 1) for name in self.random.sample(NAMES, self.random.randint(0, 3))}

    def values(self) -> list[Any]:
        """The scalars, the empty ones, and three hundred others."""
        return [*SCALARS, [], {}, *(self.value() for _ in range(300))]


def _nodes(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(node for child in value.values() for node in _nodes(child))]
    return [node for child in value for node in _nodes(child)] if isinstance(value, list) else []
