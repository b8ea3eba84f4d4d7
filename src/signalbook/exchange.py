"""HTTP to a server that need not be a friend: bounded in time and in bytes, whatever it sends.

Rule 1: an exchange has one deadline, from the connection to the last byte of the answer; a server that sends a byte now
and then, in its head or in its body, gains no time by it.
Rule 2: what comes from the network is counted as it comes, the head and interim answers (1xx) too; what it becomes when
it is decompressed is counted as it is made, a little at a time.
Rule 3: an answer has no content coding but one that was asked for, and only one.
Rule 4: a redirect is an answer like any other; proxies are those of the environment, as of every other program.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any, Protocol
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import zstandard

__all__ = ["ACCEPTED_CODINGS", "LARGEST_HEAD", "LARGEST_WINDOW", "Excess", "Exchange"]

ACCEPTED_CODINGS = "zstd, gzip"
"""The value of `Accept-Encoding`: what can be undone within bounds."""

LARGEST_HEAD = 1 << 20
"""Bytes that may come besides a body: the head of an answer (httpcore takes 100 KiB), and interim answers before it."""

LARGEST_WINDOW = 8 << 20
"""The largest window of Zstandard over HTTP (RFC 9659)."""

_STEP = 1 << 20  # bytes that are decompressed at once
_ZSTD_STEP = 256  # bytes that are read at once: a block of 4 bytes can become 128 KiB


class Excess(Exception):
    """An answer that goes beyond its bounds, or is not what it says; the words go on behind the server's name."""


class Exchange:
    """The connections to a server, and what an exchange of the present thread has left of its bounds.

    `trusted` gives the certificates, which are read when they are needed.
    """

    def __init__(self, trusted: Callable[[], SSLContext], transport: httpx.BaseTransport | None = None) -> None:
        self._bounds = threading.local()
        self._client = httpx.Client(
            follow_redirects=False, transport=transport or _Transport(trusted, _Backend(self))
        )  # fmt: skip

    def ask(
        self, method: str, url: str, content: bytes | None, headers: Mapping[str, str], *,
        silence: float, seconds: float, largest: int,
    ) -> tuple[int, httpx.Headers, bytes]:  # fmt: skip
        """The status, the headers and the whole body of an answer.

        The server may be silent for `silence` seconds and may take `seconds` in all; its body has at most `largest`
        bytes. `Excess` where it does otherwise, and httpx's errors where it does not answer.
        """
        sent = {"accept-encoding": ACCEPTED_CODINGS, **headers}
        self._bounds.until = time.monotonic() + seconds
        self._bounds.left = largest + LARGEST_HEAD
        try:
            with self._client.stream(method, url, content=content, headers=sent, timeout=silence) as answer:
                return answer.status_code, answer.headers, self._read(answer, largest)
        finally:
            self._bounds.until = None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _read(self, answer: httpx.Response, largest: int) -> bytes:
        coding = answer.headers.get("content-encoding", "").strip().lower()
        assert isinstance(answer.stream, httpx.SyncByteStream)
        pieces: Iterable[bytes] = answer.stream
        content = bytearray()
        for piece in _decompressed(pieces, coding) if coding not in ("", "identity") else pieces:
            content += piece
            if len(content) > largest:
                size = f"{largest >> 20} MiB" if largest >> 20 else f"{largest} bytes"
                raise Excess(f"sends more than {size} in one answer")
            self.seconds_left(None)
        return bytes(content)

    def seconds_left(self, timeout: float | None) -> float | None:
        """How long the next step of this thread's exchange may take."""
        until = getattr(self._bounds, "until", None)
        if until is None:
            return timeout
        left = float(until) - time.monotonic()
        if left <= 0:
            raise Excess("takes too long to send its answer")
        return left if timeout is None else min(left, timeout)

    def count(self, size: int) -> None:
        """Count bytes that came from the network."""
        if getattr(self._bounds, "until", None) is not None:
            self._bounds.left -= size
            if self._bounds.left < 0:
                raise Excess("sends more than it was allowed to in one answer")


class _Backend(httpcore.NetworkBackend):
    """Connections whose every step is within the bounds of its exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:  # fmt: skip
        timeout = self._exchange.seconds_left(timeout)
        return _Stream(self._plain.connect_tcp(host, port, timeout, local_address, socket_options), self._exchange)

    def sleep(self, seconds: float) -> None:
        self._plain.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, plain: httpcore.NetworkStream, exchange: Exchange) -> None:
        self._plain = plain
        self._exchange = exchange

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found = self._plain.read(max_bytes, self._exchange.seconds_left(timeout))
        self._exchange.count(len(found))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._plain.write(buffer, self._exchange.seconds_left(timeout))

    def close(self) -> None:
        self._plain.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        timeout = self._exchange.seconds_left(timeout)
        return _Stream(self._plain.start_tls(ssl_context, server_hostname, timeout), self._exchange)

    def get_extra_info(self, info: str) -> Any:
        return self._plain.get_extra_info(info)


class _Transport(httpx.BaseTransport):
    """What httpx sends its requests by: a pool of connections, or one for each proxy that the environment names."""

    def __init__(self, trusted: Callable[[], SSLContext], backend: httpcore.NetworkBackend) -> None:
        self._trusted = trusted
        self._backend = backend
        self._pools: dict[tuple[str, bool], httpcore.ConnectionPool] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        raw = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        sent = httpcore.Request(
            request.method, raw, headers=request.headers.raw, content=request.stream, extensions=request.extensions
        )  # fmt: skip
        with _named_by_httpx():
            answer = self._pool(url).handle_request(sent)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )  # fmt: skip

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def _pool(self, url: httpx.URL) -> httpcore.ConnectionPool:
        proxy = _proxy_for(url)
        key = proxy, "https" in (url.scheme, proxy.partition(":")[0])
        if key not in self._pools:
            self._pools[key] = httpcore.ConnectionPool(
                ssl_context=self._trusted() if key[1] else None,  # to read the certificates takes a while
                proxy=httpcore.Proxy(proxy) if proxy else None,
                network_backend=self._backend,
            )
        return self._pools[key]


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _named_by_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _proxy_for(url: httpx.URL) -> str:
    """The proxy that the environment names for an address; empty for none."""
    proxies = getproxies()
    if not proxies or proxy_bypass(f"{url.host}:{url.port}" if url.port else url.host):
        return ""
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


_FAILURES = (
    httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)  # fmt: skip


@contextmanager
def _named_by_httpx() -> Iterator[None]:
    """Raise a failure of httpcore as the failure of httpx that has its name."""
    try:
        yield
    except _FAILURES as error:
        named = getattr(httpx, type(error).__name__, httpx.TransportError)
        raise named(str(error)) from error


# ---- the body of an answer


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    def steps(self, piece: bytes) -> Iterator[bytes]: ...

    def unused(self) -> bytes: ...


class _GzipBody:
    def __init__(self) -> None:
        self._reader = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._reader.eof

    def steps(self, piece: bytes) -> Iterator[bytes]:
        while piece and not self._reader.eof:
            yield self._reader.decompress(piece, _STEP)
            piece = self._reader.unconsumed_tail

    def unused(self) -> bytes:
        return self._reader.unused_data


class _ZstdBody:
    def __init__(self) -> None:
        self._reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).decompressobj()
        self._rest = b""

    @property
    def eof(self) -> bool:
        return self._reader.eof

    def steps(self, piece: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(piece) and not self._reader.eof:
            yield self._reader.decompress(piece[at : at + _ZSTD_STEP])
            at += _ZSTD_STEP
        self._rest = piece[at:]

    def unused(self) -> bytes:
        return self._reader.unused_data + self._rest


_DECODERS: Mapping[str, type[_Decoder]] = {"gzip": _GzipBody, "x-gzip": _GzipBody, "zstd": _ZstdBody}


def _decompressed(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """The bytes that were compressed, a little at a time; a body may consist of several members or frames."""
    made = _DECODERS.get(coding)
    if made is None:
        raise Excess(f"answers in the content coding '{coding[:40]}', which it was not asked for")
    decoder: _Decoder | None = None
    try:
        for piece in pieces:
            while piece:
                decoder = made() if decoder is None or decoder.eof else decoder
                yield from decoder.steps(piece)
                piece = decoder.unused() if decoder.eof else b""
    except (zlib.error, zstandard.ZstdError) as error:
        raise Excess(f"sends a body that is not {coding}, which it says it is ({error})") from None
    if decoder is not None and not decoder.eof:
        raise Excess(f"sends a body that ends in the middle of its {coding}")
