"""The dialects that catalog documents have been written in since 2022, each as one value.

Rule: what differs between two dialects is data here; `signalbook.dialects.convert` reads and writes by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from signalbook.spec.dialects.dialect import Dialect, Format, Row, Table
from signalbook.spec.dialects.v01 import V01
from signalbook.spec.dialects.v05 import DISCOVERY, V05
from signalbook.spec.dialects.v1 import RC1, RC2, RC2_SEPTEMBER, RC2_TAG, RC3, RC4

__all__ = ["DIALECTS", "WRITTEN", "Dialect", "Format", "Row", "Table"]

# In the order in which they are recognised: an older one has names that no newer one has.
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (V01, DISCOVERY, V05, RC1, RC2_TAG, RC2_SEPTEMBER, RC4, RC3, RC2)}
)
WRITTEN = tuple(dialect.name for dialect in DIALECTS.values() if dialect.written)
