"""The specification's list of errors as one table: name, HTTP status, arguments and title.

Rule 1: every error a request can meet is a row here; nothing else in the program knows a status or a title.
Rule 2: names, statuses and titles are those of core/spec.md and core/http.md at 1.0-rc4, word for word, because
tooling keys on the name and people read the title. An error's arguments are the placeholders of its title.
Rule 3: a row of other origin says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from signalbook.errors import RegistryError

__all__ = ["ERROR_TYPES", "ErrorType", "title", "type_uri"]

_PLACEHOLDER = re.compile(r"<([a-z][a-z0-9_]*)>")


@dataclass(frozen=True, slots=True)
class ErrorType:
    """One error: what a `RegistryError` of this name means to a client."""

    name: str
    status: int
    title: str
    document: Literal["spec", "http"] = "spec"
    origin: Literal["specification", "reference", "signalbook"] = "specification"

    @property
    def args(self) -> tuple[str, ...]:
        """The names of the arguments its title has besides the subject."""
        return tuple(dict.fromkeys(name for name in _PLACEHOLDER.findall(self.title) if name != "subject"))

    @property
    def ours(self) -> bool:
        """Whether the specification's list does not have it."""
        return self.origin != "specification"


# core/spec.md, all of status 400.
_SPEC_400 = {
    "ancestor_circular_reference": 'For "<subject>", the request would create a circular list of ancestors: <list>.',
    "bad_defaultversionid": 'For "<subject>", an error was found in the "defaultversionid" value specified (<value>): '
    "<error_detail>.",
    "bad_details": 'Use of "$details" in this context is not allowed: <subject>.',
    "bad_filter": 'For "<subject>", an error was found in "filter" value (<value>): <error_detail>.',
    "bad_flag": "The specified flag (<flag>) is not allowed in this context: <subject>.",
    "bad_ignore": 'For "<subject>", an error was found in "ignore" value (<value>): <error_detail>.',
    "bad_inline": 'For "<subject>", an error was found in "inline" value (<value>): <error_detail>.',
    "bad_request": "<error_detail>.",
    "bad_sort": 'For "<subject>", an error was found in "sort" value (<value>): <error_detail>.',
    "cannot_doc_xref": 'Retrieving the document view of a Version for "<subject>" is not allowed because it uses '
    '"xref".',
    "capability_error": "There was an error in the capabilities provided: <error_detail>.",
    "capability_missing_value": 'The "<name>" capability needs to contain "<value>".',
    "capability_unknown": "Unknown capability specified: <field>.",
    "capability_value": 'Invalid value (<value>) specified for capability "<field>". Allowable values include: <list>.',
    "capability_wildcard": 'When "<field>" includes a value of "*" then no other values are allowed.',
    "compatibility_unknown": 'The compatibility value (<compat>) on Resource "<subject>" is not supported for format '
    '"<format>".',
    "compatibility_violation": 'The request would cause one or more Versions of "<subject>" to violate its '
    "compatibility rule (<compat>).",
    "constraint_failure": 'The request would result in one or more Versions of "<subject>" not being compliant with '
    'its owning Group\'s "<kind>" constraint for attribute "<path>".',
    "defaultversionid_request": 'Processing "<subject>", the "defaultversionid" attribute is not allowed to be '
    '"request" since a Version wasn\'t processed.',
    "extra_xref_attribute": 'Attribute "<name>" is not allowed to be present since the "<singular>" (<subject>) uses '
    '"xref".',
    "format_external": 'Version "<subject>" references a document stored outside of the Registry, therefore no '
    "validation was performed.",
    "format_unknown": 'Version "<subject>" has a "format" value (<format>) that it not supported.',
    "format_violation": 'The request would cause Version "<subject>" to be non-compliant with its "format" (<format>).',
    "groups_only": 'Attribute "<name>" is invalid. Only Group types are allowed to be specified on this request: '
    "<subject>.",
    "hasdocument_violation": 'The request would cause Version "<subject>" to be non-compliant. The model definition of '
    '"<plural>" has "hasdocument" set to "false" but this Version has document content.',
    "inline_noninlineable": "Attempting to inline a non-inlineable attribute (<name>) on: <subject>.",
    "invalid_attribute": 'The attribute "<name>" for "<subject>" is not valid: <error_detail>.',
    "malformed_id": 'For "<subject>", the specified ID value (<id>) is malformed: <error_detail>.',
    "malformed_xid": 'For "<subject>", the specified XID value (<xid>) is malformed: <error_detail>.',
    "malformed_xref": 'For "<subject>", the specified xref value (<xref>) is malformed: <error_detail>.',
    "mismatched_epoch": 'The specified epoch value (<bad_epoch>) for "<subject>" does not match its current value '
    "(<epoch>).",
    "mismatched_id": 'The specified "<singular>id" value (<invalid_id>) for "<subject>" needs to be "<expected_id>".',
    "mismatched_version_attribute": 'The request would cause the "<name>" attribute across the Versions of "<subject>" '
    "to be different.",
    "misplaced_epoch": 'The specified "epoch" value for "<subject>" needs to be within a "meta" entity.',
    "model_compliance_error": "The model provided would cause one or more entities in the Registry to become "
    "non-compliant.",
    "model_error": "There was an error in the model definition provided: <error_detail>.",
    "model_required_true": 'Model attribute "<name>" needs to have a "required" value of "true" since a default value '
    "is provided.",
    "model_scalar_default": 'Model attribute "<name>" is not allowed to have a default value since it is not a scalar.',
    "multiple_roots": 'The operation would result in multiple root Versions for "<subject>", which is not allowed for '
    '"<plural>".',
    "not_available": "The requested data (<subject>) is not available.",
    "one_resource": 'Only one attribute from "<list>" can be present at a time for: <subject>.',
    "parsing_data": "There was an error parsing the data: <error_detail>.",
    "readonly": "Updating a read-only entity (<subject>) is not allowed.",
    "required_attribute_missing": 'One or more mandatory attributes for "<subject>" are missing: <list>.',
    "resources_only": 'Attribute "<name>" is invalid. Only Resource types are allowed to be specified on this request: '
    "<subject>.",
    "setdefaultversionsticky_false": 'For "<subject>", setting "defaultversionsticky" to "true" is not allowed since '
    '"maxversions" is "1".',
    "sort_noncollection": "Can't sort on a non-collection result set. Query path: <subject>.",
    "too_many_versions": 'For "<subject>", when the "setdefaultversionid" flag is set to "request", only one Version '
    "is allowed to be specified in the request message.",
    "unknown_attribute": 'An unknown attribute (<name>) was specified for "<subject>".',
    "unknown_group_type": 'An unknown Group type (<name>) was specified in "<subject>".',
    "unknown_id": 'While processing "<subject>", the "<singular>" with a "<singular>id" value of "<id>" cannot be '
    "found.",
    "unknown_resource_type": 'An unknown Resource type (<name>) was specified for Group type "<group>".',
    "unsupported_specversion": 'The specified "specversion" value (<specversion>) is not supported. Supported '
    "versions: <list>.",
    "versionid_not_allowed": 'While creating a new Version for "<subject>", a "versionid" was specified but the '
    '"setversionid" model aspect for entities of type "<plural>" is "false".',
}

# core/http.md, all of status 400.
_HTTP_400 = {
    "extra_xregistry_header": 'For "<subject>", xRegistry HTTP header "<name>" is not allowed on this request: '
    "<error_detail>.",
    "header_error": 'For "<subject>", there was an error processing HTTP header "<name>": <error_detail>.',
    "missing_body": "For \"<subject>\", the request is missing an HTTP body - try '{}'.",
    "missing_versions": 'For "<subject>", at least one Version needs to be included in the request.',
}

# Both documents; the text calls 503 "Internal Server Error" at `server_busy`, the number is meant.
_OTHER_STATUS = (
    ErrorType("api_not_found", 404, "The specified API is not supported: <subject>.", document="http"),
    ErrorType("not_found", 404, "The targeted entity (<subject>) cannot be found."),
    ErrorType("action_not_supported", 405, "The specified action (<action>) is not supported for: <subject>."),
    ErrorType(
        "details_required",
        405,
        "$details suffix is needed when using PATCH for the entity: <subject>.",
        document="http",
    ),
    ErrorType(
        "too_large", 406, 'For "<subject>", the size of the response is too large to return in a single response.'
    ),
    ErrorType("data_retrieval_error", 500, "The server was unable to retrieve all of the requested data."),
    ErrorType("server_error", 500, "An unexpected error occurred, please try again later."),
    ErrorType(
        "server_busy",
        503,
        'Due to excessive requests, the server could not complete "<subject>", please try again later.',
    ),
)

# The reference server's own: the mirror image of `hasdocument_violation`.
_REFERENCE = (
    ErrorType(
        "hasdocument_enable_violation",
        400,
        'The request would cause Version "<subject>" to be non-compliant. The Resource model is changing '
        '"hasdocument" to "true" but this Version already has data for the reserved attribute "<name>".',
        origin="reference",
    ),
)

# What an HTTP server needs and the specification leaves out; it allows new errors (core/spec.md "Error Processing").
_SIGNALBOOK = (
    ErrorType("unauthorized", 401, "A valid token is needed for: <subject>.", origin="signalbook"),
    ErrorType("forbidden", 403, 'The action "<action>" is not allowed on: <subject>.', origin="signalbook"),
    ErrorType("request_timeout", 408, "The request did not arrive in time: <subject>.", origin="signalbook"),
    ErrorType(
        "precondition_failed",
        412,
        "The precondition in the request's headers fails for: <subject>.",
        origin="signalbook",
    ),
    ErrorType(
        "unknown_cursor", 400, "The cursor (<cursor>) is not one of this catalog's: <subject>.", origin="signalbook"
    ),
    ErrorType("sink_refused", 400, "The sink (<sink>) cannot be delivered to: <error_detail>.", origin="signalbook"),
    ErrorType(
        "feed_trimmed",
        410,
        "Changes behind the cursor (<cursor>) are not kept any more; compare in full and go on from the newest.",
        origin="signalbook",
    ),
    ErrorType("request_too_large", 413, "The body is larger than <limit> bytes: <subject>.", origin="signalbook"),
    ErrorType(
        "unsupported_content_encoding",
        415,
        'A body in the coding "<coding>" is not read, send it as it is: <subject>.',
        origin="signalbook",
    ),
    ErrorType(
        "unsupported_media_type", 415, 'A body of type "<contenttype>" is not read at: <subject>.', origin="signalbook"
    ),
)

ERROR_TYPES: Mapping[str, ErrorType] = MappingProxyType(
    {
        row.name: row
        for row in (
            *(ErrorType(name, 400, words) for name, words in _SPEC_400.items()),
            *(ErrorType(name, 400, words, document="http") for name, words in _HTTP_400.items()),
            *_OTHER_STATUS,
            *_REFERENCE,
            *_SIGNALBOOK,
        )
    }
)

_DOCUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "spec": "https://github.com/xregistry/spec/blob/main/core/spec.md",
        "http": "https://github.com/xregistry/spec/blob/main/core/http.md",
    }
)
_OUR_DOCUMENT = "urn:signalbook:errors"


def title(error: RegistryError) -> str:
    """The sentence for a person: the row's title with subject and arguments filled in."""
    values = {**error.args_, "subject": error.subject}
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], ""), ERROR_TYPES[error.name].title)


def type_uri(name: str) -> str:
    """The URI that stands in an error's `type`; what follows the `#` is the error's name."""
    row = ERROR_TYPES[name]
    return f"{_OUR_DOCUMENT if row.origin == 'signalbook' else _DOCUMENTS[row.document]}#{name}"
