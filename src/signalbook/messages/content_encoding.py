"""Undoing the content encodings of a payload, within a bound.

Rule 1: what cannot be undone, or would become larger than the bound, is a problem in words; nothing else is raised.
Rule 2: `identity` and the names of character sets, which some senders write here, are labels: there is nothing to undo.
An encoding that is neither known nor a label is `UnknownEncoding`, and the payload stays as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import brotli
import zstandard

__all__ = ["LARGEST", "CannotUndo", "UnknownEncoding", "is_label", "undo"]

LARGEST = 64 * 1024 * 1024
_MOST_ENCODINGS = 4
_CHUNK = 64 * 1024


class CannotUndo(Exception):
    """Why a payload stays encoded, in words."""


class UnknownEncoding(CannotUndo):
    """That nobody knows a content encoding."""


def is_label(name: str) -> bool:
    """Whether the name of a content encoding says nothing that would have to be undone.

    >>> [name for name in ("", "identity", "utf-8", "ISO-8859-1", "gzip", "hex", "aes") if is_label(name)]
    ['', 'identity', 'utf-8', 'ISO-8859-1']
    """
    name = name.strip().lower()
    if name in ("", "identity"):
        return True
    try:
        "".encode(name)  # which takes the encodings of texts, and no others
    except (LookupError, ValueError):
        return False
    return True


def undo(encodings: str, payload: bytes) -> bytes:
    """The payload before it was encoded; `encodings` is the list of a header, the last applied last."""
    names = [name.strip().lower() for name in encodings.split(",")]
    if len(names) > _MOST_ENCODINGS:
        raise CannotUndo(f"{len(names)} content encodings are more than are undone")
    for name in reversed(names):
        undo_one = _ENCODINGS.get(name)
        if undo_one is not None:
            payload = undo_one(payload)
        elif not is_label(name):
            raise UnknownEncoding(f'the content encoding "{name[:40]}" is not known')
    return payload


def _inflate(window: int) -> Callable[[bytes], bytes]:
    def undo_one(payload: bytes) -> bytes:
        parts: list[bytes] = []
        size = 0
        # A gzip file may have several members one after another.
        while payload:
            reader = zlib.decompressobj(window)
            try:
                parts.append(reader.decompress(payload, LARGEST - size + 1))
            except zlib.error as error:
                raise CannotUndo(f"the payload is not what its content encoding says: {error}") from None
            size += len(parts[-1])
            _bound(size)
            if not reader.eof:
                raise CannotUndo("the payload is not what its content encoding says: it ends too early")
            payload = reader.unused_data
        return b"".join(parts)

    return undo_one


def _deflate(payload: bytes) -> bytes:
    """RFC 9110 section 8.4.1.2 means zlib's format; some senders leave its header out."""
    has_header = len(payload) > 1 and payload[0] & 15 == 8 and int.from_bytes(payload[:2], "big") % 31 == 0
    return _inflate(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)(payload)


def _zstd(payload: bytes) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        # RFC 9659: a window of 8 MiB is what every reader has.
        with zstandard.ZstdDecompressor(max_window_size=2**23).stream_reader(
            payload, read_across_frames=True
        ) as reader:
            while part := reader.read(_CHUNK):
                parts.append(part)
                size += len(part)
                _bound(size)
    except zstandard.ZstdError as error:
        raise CannotUndo(f"the payload is not what its content encoding says: {error}") from None
    return b"".join(parts)


def _brotli(payload: bytes) -> bytes:
    reader = brotli.Decompressor()
    parts: list[bytes] = []
    size = 0
    try:
        while not reader.is_finished():
            parts.append(reader.process(payload, output_buffer_limit=_CHUNK))
            payload = b""
            size += len(parts[-1])
            _bound(size)
            if not parts[-1] and reader.can_accept_more_data():
                raise CannotUndo("the payload is not what its content encoding says: it ends too early")
    except brotli.error as error:
        raise CannotUndo(f"the payload is not what its content encoding says: {error}") from None
    return b"".join(parts)


def _bound(size: int) -> None:
    if size > LARGEST:
        raise CannotUndo(f"the payload becomes larger than {LARGEST:,} bytes")


_gzip = _inflate(zlib.MAX_WBITS | 16)
_ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
