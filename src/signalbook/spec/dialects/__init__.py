"""The dialects that catalog documents have been written in since 2022, each as one value.

Rule 1: what differs between two dialects is data here; `signalbook.dialects.convert` reads and writes by it.
Rule 2: the dialects before 1.0 have a module each. Those of 1.0 are below: three release candidates, and the three
texts that share the label 1.0-rc2. What all of them accept alike is in `signalbook.model.normalise`; here is what a
whole document has elsewhere.

    1.0-rc1            v1.0-rc1   2025-04-01    message-level `deprecated`, the old marker for "now"
    1.0-rc2-2025-06    v1.0-rc2   2025-06-19    `basemessageurl`
    1.0-rc2-2025-09    9071629    2025-09-09    `basemessage` is an xid; `urireference`
    1.0-rc2            7f31467    2026-05-22    `basemessage` is a URI
    1.0-rc3            v1.0-rc3   2026-06-20    `ancestor` beside the validation attributes
    1.0-rc4            v1.0-rc4   2026-08-19    `ancestorid`
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from signalbook.spec import versions
from signalbook.spec.dialects.dialect import Dialect, DialectRow, DialectTable, Format01, Sign
from signalbook.spec.dialects.v01 import V01
from signalbook.spec.dialects.v05 import DISCOVERY, V05

__all__ = ["DIALECTS", "WRITTEN", "Dialect", "DialectRow", "DialectTable", "Format01"]

# core/spec.md up to 1.0-rc2: `none` was the default of `compatibility`, and there was a `compatibilityauthority`.
# Its text calls `documentation` of `deprecated` `docs`.
_DEPRECATED = DialectRow("deprecated", "deprecated", "deprecation")
_OLD_META = DialectTable(
    (
        DialectRow("compatibility", "compatibility", "compatibility", only="in"),
        DialectRow("compatibilityauthority", "labels/1.0-rc2.compatibilityauthority", "text", only="in"),
        DialectRow("validation", "labels/1.0-rc2.validation", "json", only="in"),
        _DEPRECATED,
    )
)
_OLD_ENDPOINT = DialectTable(
    (
        _DEPRECATED,
        DialectRow("protocoloptions/authorization", "protocoloptions/authorization", "authorization", only="in"),
    )
)
_OLD_GROUP = DialectTable((_DEPRECATED,))
_OLD = {"meta": _OLD_META, "endpoint": _OLD_ENDPOINT, "messagegroup": _OLD_GROUP, "schemagroup": _OLD_GROUP}

RC1 = Dialect(
    name="1.0-rc1",
    label="1.0-rc1",
    title="xRegistry 1.0-rc1 (April 2025)",
    modern=True,
    tables={
        **_OLD,
        "message": DialectTable(
            (
                DialectRow("deprecated", "meta/deprecated", "deprecation", only="in"),
                DialectRow("envelopemetadata", "envelopemetadata", "metadata", only="in"),
            )
        ),
    },
    now="01-01-0000T00:00:00Z",
    overrides=True,
    signs=(
        Sign("message", "deprecated", dict),
        Sign("property", "value", str, "01-01-0000T00:00:00Z"),
    ),
)

RC2_TAG = Dialect(
    name="1.0-rc2-2025-06",
    label="1.0-rc2",
    title="xRegistry 1.0-rc2 as tagged (June 2025)",
    modern=True,
    tables=_OLD,
    overrides=True,
    signs=(Sign("message", "basemessageurl"),),
)

RC2_SEPTEMBER = Dialect(
    name="1.0-rc2-2025-09",
    label="1.0-rc2",
    title="xRegistry 1.0-rc2, message text of September 2025",
    modern=True,
    tables=_OLD,
    signs=(Sign("property", "type", str, "urireference"), Sign("property", "type", str, "uri-reference")),
)

RC2 = Dialect(
    name="1.0-rc2",
    label="1.0-rc2",
    title="xRegistry 1.0-rc2, message text of May 2026",
    modern=True,
    written=True,
    tables=_OLD,
    signs=(Sign("resource", "ancestor"),),
    spec=versions.RC2,
)

RC3 = Dialect(
    name="1.0-rc3",
    label="1.0-rc3",
    title="xRegistry 1.0-rc3 (June 2026)",
    modern=True,
    tables={"endpoint": _OLD_ENDPOINT},
    signs=(Sign("resource", "ancestor", beside="formatvalidated"),),
)

RC4 = Dialect(
    name="1.0-rc4",
    label="1.0-rc4",
    title="xRegistry 1.0-rc4 (August 2026)",
    modern=True,
    written=True,
    tables={"meta": DialectTable((_DEPRECATED,)), "messagegroup": _OLD_GROUP, "schemagroup": _OLD_GROUP},
    signs=(
        Sign("resource", "ancestorid"),
        Sign("message", "basemessageuri", rank="shared"),  # the model files have it since May 2026, before 1.0-rc3
    ),
    spec=versions.RC4,
)

# In the order in which they are recognised: an older one has names that no newer one has.
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (V01, DISCOVERY, V05, RC1, RC2_TAG, RC2_SEPTEMBER, RC4, RC3, RC2)}
)
WRITTEN = tuple(dialect.name for dialect in DIALECTS.values() if dialect.written)
