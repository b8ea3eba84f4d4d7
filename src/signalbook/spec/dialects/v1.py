"""The dialects of 1.0: three release candidates, and the three texts that share the label 1.0-rc2.

Rule: what all of them accept alike is in `signalbook.model.normalise`; here is what a whole document has elsewhere.

    1.0-rc1            v1.0-rc1   2025-04-01    message-level `deprecated`, the old marker for "now"
    1.0-rc2-2025-06    v1.0-rc2   2025-06-19    `basemessageurl`
    1.0-rc2-2025-09    9071629    2025-09-09    `basemessage` is an xid; `urireference`
    1.0-rc2            7f31467    2026-05-22    `basemessage` is a URI
    1.0-rc3            v1.0-rc3   2026-06-20    `ancestor` beside the validation attributes
    1.0-rc4            v1.0-rc4   2026-08-19    `ancestorid`
"""

from __future__ import annotations

from signalbook.spec import versions
from signalbook.spec.dialects.dialect import Dialect, Row, Sign, Table

__all__ = ["RC1", "RC2", "RC2_SEPTEMBER", "RC2_TAG", "RC3", "RC4"]

# core/spec.md up to 1.0-rc2: `none` was the default of `compatibility`, and there was a `compatibilityauthority`.
# Its text calls `documentation` of `deprecated` `docs`.
_DEPRECATED = Row("deprecated", "deprecated", "deprecation")
_OLD_META = Table(
    (
        Row("compatibility", "compatibility", "compatibility", only="in"),
        Row("compatibilityauthority", "labels/1.0-rc2.compatibilityauthority", "text", only="in"),
        Row("validation", "labels/1.0-rc2.validation", "json", only="in"),
        _DEPRECATED,
    )
)
_OLD_ENDPOINT = Table(
    (
        _DEPRECATED,
        Row("protocoloptions/authorization", "protocoloptions/authorization", "authorization", only="in"),
    )
)
_OLD_GROUP = Table((_DEPRECATED,))
_OLD = {"meta": _OLD_META, "endpoint": _OLD_ENDPOINT, "messagegroup": _OLD_GROUP, "schemagroup": _OLD_GROUP}

RC1 = Dialect(
    name="1.0-rc1",
    label="1.0-rc1",
    title="xRegistry 1.0-rc1 (April 2025)",
    modern=True,
    tables={
        **_OLD,
        "message": Table(
            (
                Row("deprecated", "meta/deprecated", "deprecation", only="in"),
                Row("envelopemetadata", "envelopemetadata", "metadata", only="in"),
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
    tables={"meta": Table((_DEPRECATED,)), "messagegroup": _OLD_GROUP, "schemagroup": _OLD_GROUP},
    signs=(
        Sign("resource", "ancestorid"),
        Sign("message", "basemessageuri", rank="shared"),  # the model files have it since May 2026, before 1.0-rc3
    ),
    spec=versions.RC4,
)
