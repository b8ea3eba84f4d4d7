"""Events of every shape that the specification allows, for hypothesis."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import strategies as st

from signalbook.cloudevents import CloudEvent, Data
from signalbook.cloudevents.attributes import ATTRIBUTE_TYPES, is_clean

NAMES = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=24).filter(
    lambda name: name not in ATTRIBUTE_TYPES and name != "data"
)
STRINGS = st.text(st.characters(exclude_categories=("Cs", "Cc"))).filter(is_clean)
FULL = STRINGS.filter(bool)
URIS = st.sampled_from(
    ["/a", "urn:x:1", "https://h.example:80/p?q=1#f", "//h/p", "#f", "?q", "1-555-123", "a%20b", "."]
)
TIMES = st.builds(
    "{:04d}-{:02d}-{:02d}{}{:02d}:{:02d}:{:02d}{}{}".format,
    st.integers(0, 9999),
    st.integers(1, 12),
    st.integers(1, 28),
    st.sampled_from("Tt"),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 59),
    st.sampled_from(["", ".5", ".000", ".12345678901234567890"]),
    st.sampled_from(["Z", "z", "+00:00", "-00:00", "+23:59", "-05:30"]),
)
JSON_TYPES = st.sampled_from(
    ["application/json", "APPLICATION/JSON; charset=utf-8", "text/json", "application/vnd.x+json"]
)
OTHER_TYPES = st.sampled_from(
    [
        "text/plain",
        "application/xml",
        "text/plain; charset=utf-16",
        'text/plain;charset="latin-1"',
        "application/json-seq",
    ]
)
VALUES = STRINGS | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.binary(max_size=40)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def attributes(draw: st.DrawFn) -> dict[str, Any]:
    """Context attributes without a content type."""
    given: dict[str, Any] = {"specversion": "1.0", "id": draw(FULL), "source": draw(URIS), "type": draw(FULL)}
    given |= draw(
        st.fixed_dictionaries({}, optional={"subject": FULL, "time": TIMES, "dataschema": st.just("urn:s:1#x")})
    )
    given |= draw(st.dictionaries(NAMES, VALUES, max_size=4))
    return dict(draw(st.permutations(list(given.items()))))


@st.composite
def events(draw: st.DrawFn) -> CloudEvent:
    """Valid events: every kind of data under every kind of content type."""
    given = draw(attributes())
    kind = draw(st.sampled_from(["absent", "json", "text", "binary"]))
    if kind == "absent":
        named = draw(st.none() | JSON_TYPES | OTHER_TYPES)
        return CloudEvent({**given, "datacontenttype": named})
    if kind == "json":
        return CloudEvent({**given, "datacontenttype": draw(st.none() | JSON_TYPES)}, Data.json(draw(JSON_VALUES)))
    if kind == "text":
        text = st.text(st.characters(exclude_categories=("Cs",)))
        return CloudEvent({**given, "datacontenttype": draw(OTHER_TYPES)}, Data.text(draw(text)))
    content = st.binary(max_size=60) | st.sampled_from([b"", b"1", b'{"a": 1.0}', b"\xff"])
    return CloudEvent(
        {**given, "datacontenttype": draw(st.none() | JSON_TYPES | OTHER_TYPES)}, Data.binary(draw(content))
    )
