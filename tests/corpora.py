"""Catalogs with the messages that are kept or made for them, which laws about messages are tried with."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from examples.demo import traffic

from signalbook.messages.catalog import Catalog
from tests.cases import read_cases
from tests.messages.test_match import FILES, message_of

__all__ = ["Corpus", "corpora"]

SAMPLES = [
    json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).resolve().parent.parent / "samples").glob("*.xreg.json"))
]
_LONG_CORPUS = 400


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents of a catalog and the lines of its messages, each in the spellings that writers of JSON have."""

    name: str
    documents: tuple[Any, ...]
    lines: tuple[bytes, ...]
    roots: tuple[str, ...] = ()
    within: tuple[str, ...] = ()


@cache
def corpora() -> tuple[Corpus, ...]:
    """The samples, the demo's traffic, and every case of `tests/cases/messages`, the seeds' examples among them."""
    samples = Catalog.from_documents(*SAMPLES)
    both = (*SAMPLES, traffic.CATALOG)
    made = tuple(_spelled(traffic._samples(samples)))
    sent = tuple(traffic._messages(Catalog.from_documents(*both), random.Random(7), _LONG_CORPUS))
    return (Corpus("samples", tuple(SAMPLES), made), Corpus("demo", both, sent), *_of_cases())


def _of_cases() -> Iterator[Corpus]:
    for file in FILES:
        for case in read_cases(f"messages/{file}"):
            given, message = case.given, message_of(case.given)
            groups = {"g": {"messages": given["messages"]}, **given.get("groups", {})}
            schemas = {"s": {"schemas": given.get("schemas", {})}}
            document = {"messagegroups": groups, "schemagroups": schemas, "endpoints": given.get("endpoints", {})}
            lines = tuple(_spelled([message if isinstance(message, bytes) else message.encode()]))
            name, within = f"{file}: {case.name}", given.get("within", ())
            yield Corpus(name, (document,), lines, tuple(given.get("roots", ())), tuple(within))


def _spelled(lines: Any) -> Iterator[bytes]:
    """Each line twice, with and without white space, and changed: what is learned from one is used for the next."""
    for line in lines:
        yield line
        yield line
        try:
            value = json.loads(line)
        except ValueError:
            continue
        yield json.dumps(value).encode()
        compact = {"separators": (",", ":"), "ensure_ascii": False}
        yield json.dumps(value, **compact).encode(errors="surrogatepass")
        if isinstance(value, dict) and isinstance(value.get("id"), str):
            for change in ({"id": "another"}, {"source": "/another/place"}, {"data": {"unheard": 1.0}}, {"extra": "x"}):
                yield json.dumps({**value, **change}, **compact).encode(errors="surrogatepass")
