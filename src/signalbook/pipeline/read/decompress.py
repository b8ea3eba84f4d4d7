"""Compressed files as a stream of bytes, whatever becomes of them: cut short, damaged, several in one.

Rule 1: what could be read is given before `Damaged` is raised, so a damaged file loses nothing before the damage.
Rule 2: `Damaged` has the rest of the compressed file, byte for byte: all that follows the last byte which gave
something, and so the whole of what is not compressed at all.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol

import zstandard

__all__ = ["CODECS", "Codec", "CompressedMember", "Damaged", "decompressed"]

_GZIP = 31
# What one step may give: a few bytes can decompress to very many.
_MOST_AT_ONCE = 4 << 20
# How much of a compressed file may give nothing: a name in a header, a frame to be skipped.
_MOST_BARREN = 64 << 20
# What a frame of Zstandard may ask a reader to hold: as much as `zstd -d` gives it. Eight bytes can ask for 2 GiB.
_LARGEST_WINDOW = 128 << 20
# RFC 8878, 3.1: the magic numbers of a frame, and of one to be skipped without its last four bits.
_ZSTD_FRAME, _ZSTD_SKIPPED = 0xFD2FB528, 0x184D2A5
# RFC 8878, 3.1.1.1: how long the fields of a frame's header are, by the bits of its descriptor.
_DICTIONARY_ID = (0, 1, 2, 4)
_CONTENT_SIZE = (0, 2, 4, 8)
_RLE_BLOCK = 1


class Damaged(Exception):
    """A compressed file that ends too early or is not compressed; `rest` is what was not read of it, in parts."""

    def __init__(self, words: str, rest: Iterable[bytes] = ()) -> None:
        super().__init__(words)
        self.rest = rest


class _Broken(Exception):
    """The bytes are not in the format, in words."""


class CompressedMember(Protocol):
    """A reader of one compressed member; a file may have several, one after the other."""

    @property
    def eof(self) -> bool:
        """Whether its end was read."""

    @property
    def unused(self) -> bytes:
        """What followed its end in what it was fed."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What some more bytes decompress to; raises `_Broken` after the last that can be read."""

    def left(self) -> bytes:
        """What it was fed after the last byte that gave output."""


Codec = Callable[[], CompressedMember]


class _Gzip:
    """A gzip file. The last step that gave output is kept, to be repeated byte by byte where damage follows."""

    def __init__(self) -> None:
        self._reader: Any = zlib.decompressobj(_GZIP)
        self._fertile: tuple[Any, bytes] | None = None
        self._barren: list[bytes] = []

    @property
    def eof(self) -> bool:
        return bool(self._reader.eof)

    @property
    def unused(self) -> bytes:
        return bytes(self._reader.unused_data)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        more = True
        while more:
            before = self._reader.copy()
            try:
                given = self._reader.decompress(chunk, _MOST_AT_ONCE)
            except zlib.error as error:
                yield from self._up_to_damage(before, chunk)
                raise _Broken(str(error)) from None
            tail = self._reader.unconsumed_tail
            used = chunk[: len(chunk) - len(tail)]
            if given:
                self._fertile, self._barren = (before, used), []
                yield given
            else:
                self._barren.append(used)
            more = not self._reader.eof and (bool(tail) or len(given) == _MOST_AT_ONCE)
            chunk = tail

    def _up_to_damage(self, before: Any, chunk: bytes) -> Iterator[bytes]:
        """What the step that failed gives byte by byte."""
        given, used = _byte_by_byte(before.copy(), chunk)
        if given:
            self._fertile, self._barren = (before, chunk[:used]), [chunk[used:]]
            yield given
        else:
            self._barren.append(chunk)

    def left(self) -> bytes:
        if self._fertile is None:
            return b"".join(self._barren)
        before, chunk = self._fertile
        _, used = _byte_by_byte(before.copy(), chunk)
        return chunk[used:] + b"".join(self._barren)


def _byte_by_byte(reader: Any, chunk: bytes) -> tuple[bytes, int]:
    """What a reader gives before it fails, and how many bytes gave it."""
    given, used = [], 0
    try:
        for at in range(len(chunk)):
            part = reader.decompress(chunk[at : at + 1])
            if part:
                given.append(part)
                used = at + 1
    except zlib.error:
        pass
    return b"".join(given), used


class _Zstd:
    """A frame of Zstandard, fed block by block: a block gives what it holds, or nothing."""

    def __init__(self) -> None:
        self._reader = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()
        self._waiting = b""
        self._barren: list[bytes] = []
        self._size: Callable[[bytes, int], int] = self._header
        self._has_checksum = False
        self.eof = False

    @property
    def unused(self) -> bytes:
        return self._waiting

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        text, at = self._waiting + chunk, 0
        self._waiting = b""
        try:
            while not self.eof:
                now = self._size
                size = now(text, at)
                if not 0 < size <= len(text) - at:
                    # The same is asked again when there is more.
                    self._size = now
                    break
                part = text[at : at + size]
                given = bytes(self._reader.decompress(part))
                at += size
                self.eof = bool(self._reader.eof)
                self._barren.append(part)
                if given:
                    self._barren = []
                    yield given
        except zstandard.ZstdError as error:
            raise _Broken(str(error)) from None
        finally:
            self._waiting = text[at:]

    def left(self) -> bytes:
        return b"".join(self._barren) + self._waiting

    # Each says how long the next part is, 0 where too little is there to know, and which is asked next.

    def _header(self, text: bytes, at: int) -> int:
        if len(text) - at < 8:
            return 0
        magic = int.from_bytes(text[at : at + 4], "little")
        if magic >> 4 == _ZSTD_SKIPPED:
            size = 8 + int.from_bytes(text[at + 4 : at + 8], "little")
            if size > _MOST_BARREN:
                raise _Broken(f"a frame of {size:,} bytes is to be skipped")
            return size
        if magic != _ZSTD_FRAME:
            raise _Broken("a Zstandard frame is expected there")
        descriptor = text[at + 4]
        single = descriptor >> 5 & 1
        self._has_checksum = bool(descriptor >> 2 & 1)
        self._size = self._block
        return 6 - single + _DICTIONARY_ID[descriptor & 3] + (_CONTENT_SIZE[descriptor >> 6] or single)

    def _block(self, text: bytes, at: int) -> int:
        if len(text) - at < 3:
            return 0
        header = int.from_bytes(text[at : at + 3], "little")
        if header & 1:
            self._size = self._checksum
        return 3 + (1 if header >> 1 & 3 == _RLE_BLOCK else header >> 3)

    def _checksum(self, text: bytes, at: int) -> int:
        if not self._has_checksum:
            raise _Broken("the last block of a frame does not end it")
        return 4


# How a file is compressed, by the end of its name.
CODECS: Mapping[str, Codec] = {".gz": _Gzip, ".zst": _Zstd, ".zstd": _Zstd}


def decompressed(chunks: Iterable[bytes], codec: Codec) -> Iterator[bytes]:
    """The bytes that compressed chunks hold; raises `Damaged` after the last that can be had."""
    coming = iter(chunks)
    reader, begun, barren = codec(), False, 0
    for chunk in coming:
        rest = chunk
        while rest:
            begun, barren = True, barren + len(rest)
            try:
                for given in reader.feed(rest):
                    barren = 0
                    yield given
                if barren > _MOST_BARREN:
                    raise _Broken(f"more than {_MOST_BARREN:,} bytes hold nothing")
            except _Broken as error:
                raise Damaged(f"the compressed file is damaged: {error}", chain((reader.left(),), coming)) from None
            rest = b""
            if reader.eof:
                # Several compressed files one behind the other are one.
                rest, reader, begun, barren = reader.unused, codec(), False, 0
    if begun:
        raise Damaged("the compressed file ends too early", (reader.left(),))
