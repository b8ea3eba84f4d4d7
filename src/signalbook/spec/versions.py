"""The specification versions the server speaks, each as one value.

Rule 1: a version is data. What differs between two versions is a field here; nobody compares versions elsewhere.
Rule 2: inside, everything is canonical (the 1.0-rc4 core's names, the message text's `basemessage`, and the option
names of the published model files); a version's tables say which canonical names it spells differently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["DEFAULT", "OLDER", "RC2", "RC4", "VERSIONS", "SpecVersion", "find", "find_older", "plain_label"]


@dataclass(frozen=True, slots=True)
class SpecVersion:
    """One version of the specification: its label, and its spelling of the canonical names that it has others for."""

    name: str
    ancestor: str
    # Canonical attribute name -> this version's: of entities, and of the members of a message's `protocoloptions`.
    attributes: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Attribute of groups and metas -> canonical name of its members -> this version's.
    members: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The member of an endpoint's `protocoloptions.endpoints` that holds a network address.
    address: str = "uri"
    # Whether models may say `matchcase`, which tells how the values of an enum are compared.
    matchcase: bool = False
    # The dialect that whole answers are rewritten into, where other names alone do not make one.
    dialect: str = ""
    # Whether only a registry as a whole can be had in it, each message with its log of changes.
    logged: bool = False

    def __str__(self) -> str:
        return self.name


# The texts of xregistry/spec at 7f31467 (2026-05-22); the message text of September 2025 has the same label.
RC2 = SpecVersion(
    name="1.0-rc2",
    ancestor="ancestor",
    attributes=MappingProxyType({"ancestorid": "ancestor"}),
    options=MappingProxyType(
        {
            "MQTT/5.0": MappingProxyType({"payload_format_indicator": "payload_format"}),
            "NATS": MappingProxyType({"reply": "reply-to"}),
        }
    ),
    members=MappingProxyType({"deprecated": MappingProxyType({"documentation": "docs"})}),
    address="url",
    matchcase=True,
)

# The texts and model files of xregistry/spec at v1.0-rc4 (2026-08-19).
RC4 = SpecVersion(
    name="1.0-rc4",
    ancestor="ancestorid",
    attributes=MappingProxyType({"basemessage": "basemessageuri"}),
)

VERSIONS: Mapping[str, SpecVersion] = MappingProxyType({version.name: version for version in (RC2, RC4)})

DEFAULT = RC2

# Versions that answers can be had in and requests cannot be made in; so no capability lists them.
OLDER: Mapping[str, SpecVersion] = MappingProxyType(
    {
        "0.5-wip": SpecVersion(name="0.5-wip", ancestor="ancestorid", dialect="0.5-wip"),
        "0.1": SpecVersion(name="0.1", ancestor="ancestorid", dialect="0.1", logged=True),
    }
)

# core/spec.md 1.0-rc4 "SpecVersion Flag": major.minor, a patch number that is ignored, and a suffix that is not.
_LABEL = re.compile(r"v?(\d+)\.(\d+)(?:\.\d+)?(-[a-z0-9.]+)?", re.ASCII)


def find(text: str) -> SpecVersion | None:
    """The version a client means by `text`, in any case and with any patch number, or None."""
    return VERSIONS.get(plain_label(text))


def find_older(text: str) -> SpecVersion | None:
    """The older version, for reading only, that a client means by `text`, or None."""
    return OLDER.get(plain_label(text))


def plain_label(text: str) -> str:
    """A label in lower case and without a patch number; an empty text where it is not one."""
    found = _LABEL.fullmatch(text.strip().lower())
    return f"{found[1]}.{found[2]}{found[3] or ''}" if found else ""
