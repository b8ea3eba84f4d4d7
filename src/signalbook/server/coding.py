"""Content codings: gzip or zstd where the client asks for one and the body is worth it (RFC 9110 section 12.5.3).

Rule 1: only bodies over 1 KiB, only responses that have a text-like type and no coding yet.
Rule 2: a coded body is another representation: its tag says so (`dispatch.coded`) and `Vary` names the reason.
Rule 3: an answer in a spool is coded piece by piece into another.
"""

from __future__ import annotations

import gzip
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import zstandard

from signalbook.server import dispatch
from signalbook.server.http import LargeAnswers, Response

__all__ = ["SMALLEST", "VARY", "choose", "coded_pieces", "encode"]

SMALLEST = 1024
"""Bodies up to this size travel as they are."""

VARY = ("vary", "accept-encoding")

_TEXT = re.compile(r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|yaml)|application/(?:javascript|schema)", re.ASCII)
_here = threading.local()


def _zstd(body: bytes) -> bytes:
    compressor: zstandard.ZstdCompressor | None = getattr(_here, "zstd", None)
    if compressor is None:  # a compressor may not be shared between threads
        compressor = _here.zstd = zstandard.ZstdCompressor(level=3)
    return compressor.compress(body)


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=4, mtime=0)


_CODERS: Mapping[str, Callable[[bytes], bytes]] = {"zstd": _zstd, "gzip": _gzip}


def choose(accepted: str) -> str:
    """The coding to use for an `Accept-Encoding`, or an empty text for none."""
    if not accepted:
        return ""
    weights: dict[str, float] = {}
    for item in accepted.lower().split(","):
        name, _, parameters = item.partition(";")
        weight = parameters.replace(" ", "").removeprefix("q=") or "1"
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            continue
    return max(
        (coding for coding in dispatch.CODINGS if weights.get(coding, weights.get("*", 0)) > 0),
        key=lambda coding: weights.get(coding, weights.get("*", 0)),
        default="",
    )


def encode(response: Response, coding: str, answers: LargeAnswers | None = None, path: str = "") -> Response:
    """The same response in `coding`; itself where its type or an existing coding forbids it.

    One that is in a spool comes back in another, which `answers` keeps; whoever has the tag of it shares it.
    """
    names = {name.lower(): value for name, value in response.headers}
    if "content-encoding" in names or not _TEXT.match(names.get("content-type", "")):
        return response
    headers = [
        (name, dispatch.coded(value, coding) if name.lower() == "etag" else value)
        for name, value in response.headers
        if name.lower() != "content-length"
    ]
    headers.append(("content-encoding", coding))
    spool = response.spool
    if spool is None or answers is None:
        return Response(response.status, headers, _CODERS[coding](response.body))

    def make() -> Response:
        return Response(response.status, headers, *answers.collect(coded_pieces(spool.pieces(), coding), path))

    try:
        tag = names.get("etag")
        return make() if tag is None else answers.shared(dispatch.coded(tag, coding), make)
    finally:
        spool.close()


_STREAM_CODERS: Mapping[str, Callable[[], Any]] = {
    "zstd": lambda: zstandard.ZstdCompressor(level=3).compressobj(),
    "gzip": lambda: zlib.compressobj(4, zlib.DEFLATED, 31),  # 31: with the head and tail of gzip, and no time in it
}


def coded_pieces(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Yield the same content in a content coding, `zstd` or `gzip`."""
    work = _STREAM_CODERS[coding]()
    for piece in pieces:
        if coded := work.compress(piece):
            yield coded
    yield work.flush()
