"""Compressed files as a stream of bytes, whatever becomes of them: cut short, damaged, several in one.

Rule: what could be read is given before `Damaged` is raised, so a cut file loses its cut end only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import zstandard

__all__ = ["CODECS", "Codec", "Damaged", "decompressed"]

_GZIP = 31
# What one step may give: a few bytes can stand for very many.
_MOST_AT_ONCE = 4 << 20
_ZSTD_STEP = 1024

Step = Callable[[Any, bytes], Iterator[bytes]]


class Damaged(Exception):
    """A compressed file that ends too early, or is none, in words."""


def _gzip_steps(reader: Any, chunk: bytes) -> Iterator[bytes]:
    while chunk:
        yield reader.decompress(chunk, _MOST_AT_ONCE)
        chunk = reader.unconsumed_tail


def _zstd_steps(reader: Any, chunk: bytes) -> Iterator[bytes]:
    for at in range(0, len(chunk), _ZSTD_STEP):
        yield reader.decompress(chunk[at : at + _ZSTD_STEP])
        if reader.eof:
            reader.rest = chunk[at + _ZSTD_STEP :]
            return


@dataclass(frozen=True, slots=True)
class Codec:
    """How a compressed file is read: what reads one, and step by step."""

    open: Callable[[], Any]
    steps: Step


class _Zstd:
    """A reader of one frame, which knows what followed it."""

    def __init__(self) -> None:
        self._reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        self.rest = b""

    @property
    def eof(self) -> bool:
        return bool(self._reader.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._reader.unused_data) + self.rest

    def decompress(self, chunk: bytes) -> bytes:
        return bytes(self._reader.decompress(chunk))


_GZIP_CODEC = Codec(lambda: zlib.decompressobj(_GZIP), _gzip_steps)
_ZSTD_CODEC = Codec(_Zstd, _zstd_steps)
# How a file is compressed, by the end of its name.
CODECS: Mapping[str, Codec] = {".gz": _GZIP_CODEC, ".zst": _ZSTD_CODEC, ".zstd": _ZSTD_CODEC}


def decompressed(chunks: Iterable[bytes], codec: Codec) -> Iterator[bytes]:
    """The bytes that compressed chunks hold; raises `Damaged` after the last that can be had."""
    reader, begun = codec.open(), False
    for chunk in chunks:
        rest = chunk
        while rest:
            begun = True
            try:
                yield from codec.steps(reader, rest)
            except (zlib.error, zstandard.ZstdError) as error:
                raise Damaged(f"the compressed file is damaged: {error}") from None
            rest = b""
            if reader.eof:
                # Several compressed files one behind the other are one.
                rest, reader, begun = reader.unused_data, codec.open(), False
    if begun:
        raise Damaged("the compressed file ends too early")
