"""What the message specification says about definitions and a model cannot: one check a rule.

Rule 1: a check sees canonical attributes that passed the model, yet trusts no shape: another model may be in place.
Rule 2: what a definition may inherit from its `basemessage` is not missing.

message/spec.md of 1.0-rc2 (texts of September 2025 and May 2026) and 1.0-rc4; M-n are the rules of the digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from signalbook.document.rule import Check, Finding, Path, Subject
from signalbook.document.value_types import check as check_value
from signalbook.document.xid import Xid

__all__ = ["MAX_CHAIN"]

MAX_CHAIN = 100  # definitions in one basemessage chain; a longer one is a mistake, and each write walks it

NAME_AND_VERSION = re.compile(r"[^/\s]+/\S+")
NAME = re.compile(r"[^/\s]+(/\S+)?")
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S+")
# RFC 9110 section 5.6.2: a token, which header names and methods are.
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# RFC 2045 section 5.1: type "/" subtype *(";" parameter).
_MEDIA_TYPE = re.compile(
    rf"{TOKEN.pattern}/{TOKEN.pattern}(\s*;\s*{TOKEN.pattern}=(\"[^\"]*\"|{TOKEN.pattern}))*\s*;?\s*"
)


def section(attrs: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The object at `path`, or an empty one."""
    for name in path:
        value = attrs.get(name)
        if value.__class__ is not dict:
            return _EMPTY
        attrs = value
    return attrs


_EMPTY: Mapping[str, Any] = {}


def is_template(value: object) -> bool:
    """Whether a value has a placeholder, and so says little before it is filled in."""
    return isinstance(value, str) and "{" in value


# --- envelope and protocol --------------------------------------------------------------------------------------


def named(attribute: str, form: re.Pattern[str], words: str) -> Check:
    """A check that the attribute's value has the form."""

    def check(subject: Subject) -> Iterator[Finding]:
        value = subject.attrs[attribute]
        if isinstance(value, str) and not form.fullmatch(value):
            yield (attribute,), f"value ({value}) must be {words}"

    return check


def of_group(attribute: str) -> Check:
    """M-3, E-3: a message has its group's value, or a more precise one where the group names no version."""

    def check(subject: Subject) -> Iterator[Finding]:
        own, groups = subject.attrs[attribute], subject.group.get(attribute)
        if not (isinstance(own, str) and isinstance(groups, str) and groups):
            return
        if own.lower() != groups.lower() and not own.lower().startswith(groups.lower() + "/"):
            yield (attribute,), f"value ({own}) must be the same as that of its group ({groups})"

    return check


def stated(attribute: str, because: str) -> Check:
    """M-4, M-8: the text requires the attribute, the published model does not."""

    def check(subject: Subject) -> Iterator[Finding]:
        if attribute not in subject.attrs and "basemessage" not in subject.attrs:
            yield (attribute,), f"is missing although {because}"

    return check


def envelope_stated(subject: Subject) -> Iterator[Finding]:
    """M-4: a message repeats the envelope of its group, since it may be borrowed by others."""
    if subject.group.get("envelope") and "envelope" not in subject.attrs and "basemessage" not in subject.attrs:
        yield ("envelope",), f"is missing although its group has one ({subject.group['envelope']})"


# --- basemessage ------------------------------------------------------------------------------------------------


def base_reference(subject: Subject) -> Iterator[Finding]:
    """M-5: an absolute URI, which nobody checks, or the xid of a message or of its version."""
    base = subject.attrs["basemessage"]
    if not isinstance(base, str) or ABSOLUTE.fullmatch(base):
        return
    try:
        xid = Xid.parse(base)
    except ValueError as problem:
        yield ("basemessage",), f"value ({base}) must be an absolute URI or the xid of a message: {problem}"
        return
    if xid.resources != "messages" or xid.kind == "meta":
        yield ("basemessage",), f"value ({base}) must be the xid of a message or of its version"


def base_chain(subject: Subject) -> Iterator[Finding]:
    """M-5: following the references never comes back to a message already seen."""
    chain = [message_of(subject.xid)]
    attrs: Mapping[str, Any] | None = subject.attrs
    while attrs is not None:
        base = attrs.get("basemessage")
        if not isinstance(base, str) or not base.startswith("/"):
            return
        message = message_of(base)
        if message in chain:
            yield ("basemessage",), f"must not lead back to a message: {' -> '.join([*chain, message])}"
            return
        chain.append(message)
        if len(chain) > MAX_CHAIN:
            yield ("basemessage",), f"must not lead through more than {MAX_CHAIN} messages"
            return
        attrs = subject.lookup(base)


def message_of(xid: str) -> str:
    return xid.partition("/versions/")[0]


# --- payload ----------------------------------------------------------------------------------------------------


def one_dataschema(subject: Subject) -> Iterator[Finding]:
    """M-9: the schema is here or elsewhere."""
    if "dataschemauri" in subject.attrs:
        yield ("dataschema",), 'must not be present together with "dataschemauri"'


def dataschema_has_format(subject: Subject) -> Iterator[Finding]:
    """M-9: a schema cannot be read without its format."""
    for name in ("dataschema", "dataschemauri"):
        if name in subject.attrs and not {"dataschemaformat", "basemessage"} & subject.attrs.keys():
            yield ("dataschemaformat",), f'must be present together with "{name}"'
            return


def dataschemaxid_agrees(subject: Subject) -> Iterator[Finding]:
    """M-10: the URI is the `self` of the entity that the xid names; it may point into the document."""
    xid, uri = subject.attrs["dataschemaxid"], subject.attrs.get("dataschemauri")
    if not isinstance(xid, str) or not isinstance(uri, str) or not xid:
        return
    root, found, rest = uri.partition("#")[0].replace("$details", "").rpartition(xid)
    if not found or (rest and not rest.startswith(":")) or (root and not ABSOLUTE.fullmatch(root)):
        yield ("dataschemauri",), f'value ({uri}) must be the "self" URL of "dataschemaxid" ({xid})'


def content_type_syntax(subject: Subject) -> Iterator[Finding]:
    """M-11: a media type as RFC 2046 has it."""
    value = subject.attrs["datacontenttype"]
    if isinstance(value, str) and not is_template(value) and not _MEDIA_TYPE.fullmatch(value):
        yield ("datacontenttype",), f"value ({value}) must be a media type"


def content_types_agree(subject: Subject) -> Iterator[Finding]:
    """M-11: wherever the content type stands, it is the same; for a structured event it is the envelope's."""
    attrs = subject.attrs
    found = [(path, value) for path, value in _content_types(attrs) if isinstance(value, str) and "{" not in value]
    event = section(attrs, "envelopemetadata", "datacontenttype").get("value")
    if isinstance(event, str) and "{" not in event and not _is_structured(attrs, found):
        found.append((("envelopemetadata", "datacontenttype", "value"), event))
    for path, value in found[1:]:
        if _media_type(value) != _media_type(found[0][1]):
            first = ".".join(str(step) for step in found[0][0])
            yield path, f'value ({value}) must be the same as "{first}" ({found[0][1]})'


def _is_structured(attrs: Mapping[str, Any], found: Iterable[tuple[Path, str]]) -> bool:
    return section(attrs, "envelopeoptions").get("mode") == "structured" or any(
        value.lower().startswith("application/cloudevents") for _, value in found
    )


def _content_types(attrs: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    if "datacontenttype" in attrs:
        yield ("datacontenttype",), attrs["datacontenttype"]
    options = section(attrs, "protocoloptions")
    if "content_type" in options:
        yield ("protocoloptions", "content_type"), options["content_type"]
    if value := section(options, "properties", "content-type").get("value"):
        yield ("protocoloptions", "properties", "content-type", "value"), value
    for key, member in members(options, "headers"):
        if isinstance(member, dict) and str(member.get("name", key)).lower() == "content-type":
            yield ("protocoloptions", "headers", key, "value"), member.get("value")


def _media_type(value: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """RFC 2045: type and parameter names without case, parameters in any order, quoted or not."""
    kind, *parameters = value.split(";")
    pairs = (parameter.partition("=") for parameter in parameters if parameter.strip())
    return kind.strip().lower(), frozenset(
        (name.strip().lower(), text.strip().strip('"').lower()) for name, _, text in pairs
    )


# --- property definitions ---------------------------------------------------------------------------------------


def members(options: Mapping[str, Any], name: str) -> Iterator[tuple[str | int, Any]]:
    """The members of an array or a map, each with its key."""
    value = options.get(name)
    if isinstance(value, dict):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list) else iter(())


_SECTIONS = frozenset(
    {
        "properties",
        "application-properties",
        "message-annotations",
        "delivery-annotations",
        "footer",
        "headers",
        "query",
        "user_properties",
    }
)


def _text(pattern: str) -> Callable[[Any], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _number(kinds: tuple[type, ...], pattern: str) -> Callable[[Any], bool]:
    text = _text(pattern)
    return lambda value: (isinstance(value, kinds) and not isinstance(value, bool)) or text(value)


_is_integer = _number((int,), r"-?\d+")
# M-12: in JSON's own type, or as the string that a header would carry; the published model has strings only.
_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda _: True,
    "binary": _text(r"[A-Za-z0-9+/]*={0,2}"),
    "boolean": lambda value: isinstance(value, bool) or value in ("true", "false"),
    "duration": _text(r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)"),
    "integer": _is_integer,
    "number": _number((int, float), r"-?\d+(\.\d+)?([eE][+-]?\d+)?"),
    "string": _text(r"(?s).*"),
    "symbol": _text(r"[\x21-\x7e]+"),
    "timestamp": lambda value: check_value("timestamp", value) is None,
    "ulong": lambda value: _is_integer(value) and int(value) >= 0,
    "uri": _text(r"[^\s\x00-\x1f]+"),
    "uritemplate": _text(r"(?s).*"),
    "uuid": _text(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}


def properties(subject: Subject) -> Iterator[Finding]:
    """M-12, M-13: a value is one of its type, where a type is stated; a description says something."""
    for key, member in members(subject.attrs, "envelopemetadata"):
        if isinstance(member, dict) and not _STATEMENTS.isdisjoint(member):
            for step, words in _property(member):
                yield ("envelopemetadata", key, step), words
    options = section(subject.attrs, "protocoloptions")
    for name in _SECTIONS.intersection(options):
        for key, member in members(options, name):
            if isinstance(member, dict) and not _STATEMENTS.isdisjoint(member):
                for step, words in _property(member):
                    yield ("protocoloptions", name, key, step), words


_STATEMENTS = frozenset({"type", "description"})


def _property(member: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind, value = str(member.get("type")), member.get("value")
    if value is not None and kind in _VALUES and not _VALUES[kind](value):
        yield "value", f"value ({value}) must be of type {kind}"
    if member.get("description") == "":
        yield "description", "must not be empty"
