"""Avro object container files, read within bounds.

Rule 1: the file's own schema is as untrusted as the payload: it is read by `avro_read`, and its records are resolved
to the schema that the check is for.
Rule 2: what a block unpacks to is bounded; a codec that is not here is a problem that says so.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from signalbook.schemas.avro_decode import BadPayload, Cursor, Decoder, decoder
from signalbook.schemas.avro_read import read_graph
from signalbook.schemas.avro_resolve import TooManyPairs
from signalbook.schemas.avro_types import Node, canonical_form
from signalbook.schemas.format import SchemaError

__all__ = ["MAGIC", "MOST_UNPACKED", "read_container"]

MAGIC = b"Obj\x01"
MOST_UNPACKED = 256 * 1024 * 1024
_BYTES = Node("bytes")
_META = decoder(Node("map", inner=_BYTES))
_SCHEMA = 10 * 1024 * 1024


def read_container(payload: bytes, node: Node, strict: Decoder) -> Iterator[Any]:
    """Yield the records of a file; `BadPayload` where something is wrong, with the record's number as first step."""
    cursor = Cursor(payload, len(MAGIC))
    meta = _META(cursor)
    sync = cursor.take(16)
    decode = _records(meta, node, strict)
    unpack = _codec(meta.get("avro.codec", b"null"))
    number = unpacked = 0
    while cursor.at < len(payload):
        count = cursor.long()
        block = unpack(cursor.take(cursor.long()), MOST_UNPACKED - unpacked)
        unpacked += len(block)
        if cursor.take(16) != sync:
            raise BadPayload("a block does not end with the file's sync marker", number)
        inside = Cursor(block)
        inside.left = cursor.left
        inside.spend(max(count, 0))
        for _ in range(count):
            try:
                yield decode(inside)
            except BadPayload as bad:
                bad.steps.insert(0, number)
                raise
            number += 1
        cursor.left = inside.left
        if count < 0 or inside.at != len(block):
            raise BadPayload(f"a block of {count} records has {len(block) - inside.at} bytes more", number)


def _records(meta: dict[str, bytes], node: Node, strict: Decoder) -> Decoder:
    """What reads a record of the file as the schema sees it."""
    text = meta.get("avro.schema", b"")
    if len(text) > _SCHEMA:
        raise BadPayload("the file's own schema is too large")
    try:
        writer, _ = read_graph(text)
    except SchemaError as error:
        raise BadPayload(f"the file's own schema is wrong: {error}") from None
    if canonical_form(writer) == canonical_form(node):
        return strict
    try:
        return decoder(writer, node)
    except TooManyPairs:
        raise BadPayload("the file's own schema is too far from this one to be compared") from None


def _codec(name: bytes) -> Callable[[bytes, int], bytes]:
    found = _CODECS.get(name)
    if found is None:
        raise BadPayload(f"the file is packed with {name.decode('utf-8', 'replace')!r}, which cannot be unpacked here")
    return found


def _plain(block: bytes, most: int) -> bytes:
    if len(block) > most:
        raise BadPayload(f"the file unpacks to more than {MOST_UNPACKED} bytes")
    return block


def _unpacked(make: Callable[[], Any], wrong: type[Exception]) -> Callable[[bytes, int], bytes]:
    def unpack(block: bytes, most: int) -> bytes:
        opened = make()
        try:
            found: bytes = opened.decompress(block, most + 1)
        except (wrong, EOFError) as error:
            raise BadPayload(f"a block cannot be unpacked: {error}") from None
        if len(found) > most:
            raise BadPayload(f"the file unpacks to more than {MOST_UNPACKED} bytes")
        if not opened.eof:
            raise BadPayload("a packed block ends too early")
        return found

    return unpack


def _zstandard(block: bytes, most: int) -> bytes:
    found = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(block) as opened:
            while chunk := opened.read(1 << 16):
                found += chunk
                if len(found) > most:
                    raise BadPayload(f"the file unpacks to more than {MOST_UNPACKED} bytes")
    except zstandard.ZstdError as error:
        raise BadPayload(f"a block cannot be unpacked: {error}") from None
    return bytes(found)


_CODECS: dict[bytes, Callable[[bytes, int], bytes]] = {
    b"null": _plain,
    b"deflate": _unpacked(lambda: zlib.decompressobj(-15), zlib.error),
    b"bzip2": _unpacked(bz2.BZ2Decompressor, OSError),
    b"xz": _unpacked(lzma.LZMADecompressor, lzma.LZMAError),
    b"zstandard": _zstandard,
}
