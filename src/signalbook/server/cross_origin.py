"""`OPTIONS` and CORS: which methods a path has, and that any web page may read what needs no token (HTTP-9, HTTP-10).

Rule: a page may read; whether it may write is decided in `access`, not by hiding headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from signalbook.server.http import Request, Response

__all__ = ["ALL_METHODS", "ANY_ORIGIN", "allow_list", "options"]

ALL_METHODS = "DELETE, GET, OPTIONS, PATCH, POST, PUT"
"""Every method some path of the API has, in the form of `Allow`."""

ANY_ORIGIN = (
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", ALL_METHODS),
    ("access-control-expose-headers", "*"),
)
"""What the edge adds to a response that does not name its own methods."""

_PREFLIGHT_HEADERS = "authorization, content-type, if-match, if-none-match"
_XREGISTRY = re.compile(r"xregistry-[a-z0-9._-]+")
_EXPOSED = "etag, link, location, content-location, content-disposition"


def allow_list(methods: Iterable[str]) -> str:
    """The value of `Allow`: the methods and `OPTIONS`, in alphabetical order."""
    return ", ".join(sorted({*methods, "OPTIONS"}))


def options(request: Request, allow: str = ALL_METHODS) -> Response:
    """The answer to `OPTIONS`: the same list twice, and for a browser's preflight what a page may send and see."""
    headers = [("allow", allow), ("access-control-allow-origin", "*"), ("access-control-allow-methods", allow)]
    if "access-control-request-method" in request.headers:
        wanted = (request.headers.get("access-control-request-headers") or "").lower().split(",")
        own = sorted({name.strip() for name in wanted if _XREGISTRY.fullmatch(name.strip())})
        headers.append(("access-control-allow-headers", ", ".join([_PREFLIGHT_HEADERS, *own])))
        headers.append(("access-control-expose-headers", _EXPOSED))
        headers.append(("access-control-max-age", "600"))
    return Response(200, headers)
