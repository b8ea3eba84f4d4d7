"""What schemas cost at one size and at eight times it: processor time in proportion, in native libraries too.

`python bench/bounds.py`, or with the names of some formats: `python bench/bounds.py avro xsd`. The tests count steps
and calls (`tests/proofs/test_bounds_schemas.py`); what lxml, jsonschema-rs, fastavro, the compiler of Protobuf and the
engines of regular expressions do inside one call nobody can count, so it is timed here.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench.figures import Figure, show
from signalbook import schemas
from signalbook.budget import Budget
from signalbook.schemas import SchemaError
from tests.schemas.shapes import REFUSED, SHAPES, Shape

__all__ = ["figures"]

SIZE, TIMES = 80, 8
# In proportion is eight; some more is for caches that no longer hold everything, and for a machine that is busy.
LIMIT = 16.0
# What takes less than this at the large size is not worth a ratio, and is taken for this at the small one.
LEAST = 0.002
ROUNDS = 3


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """The least processor time of some rounds, and what the work returns."""
    least, result = float("inf"), None
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        began = time.process_time()
        result = work()
        least = min(least, time.process_time() - began)
        gc.enable()
    return least, result


def _read(name: str, text: bytes) -> Any:
    try:
        return schemas.read(name, text, lambda uri: None)
    except SchemaError as error:
        return error


def _spent(name: str, shape: Shape, size: int) -> dict[str, float]:
    """The processor time of each thing that is done with a schema."""
    texts = [shape(size, variant) for variant in (0, 1)]
    found: dict[str, float] = {}
    found["read"], schema = _seconds(lambda: _read(name, texts[0]))
    if isinstance(schema, SchemaError):
        return {"refuse": found["read"]}
    other, row = _read(name, texts[1]), schemas.find(name)
    assert row is not None
    found["compare"], _ = _seconds(lambda: list(row.compare(schema, other, Budget(10**12))))
    found["sample"], payload = _seconds(lambda: schemas.sample(schema))
    if payload is not None:
        found["check"], _ = _seconds(lambda: schema.check(payload))
    found["columns"], _ = _seconds(lambda: _read(name, texts[0]).columns())
    return found


def figures(*names: str) -> list[Figure]:
    """A figure for each shape of each format: the worst ratio of all that is done with it."""
    found = []
    for name in SHAPES:
        family = name.partition("/")[0]
        if names and family.lower() not in names:
            continue
        for words, shape in {**SHAPES[name], **{f"wrong {one}": made for one, made in REFUSED[name].items()}}.items():
            _spent(name, shape, 10)
            few, many = _spent(name, shape, SIZE), _spent(name, shape, TIMES * SIZE)
            ratios = {what: many[what] / max(few.get(what, 0.0), LEAST) for what in many}
            worst = max(ratios, key=lambda what: ratios[what])
            note = ", ".join(f"{what} {few.get(what, 0) * 1000:.1f} to {many[what] * 1000:.1f} ms" for what in many)
            anchor = f"CPU to {worst} {TIMES} times as much"
            found.append(Figure(f"{family}: {words}", ratios[worst], LIMIT, anchor, note=note))
    return found


if __name__ == "__main__":
    raise SystemExit(not show(figures(*sys.argv[1:])))
