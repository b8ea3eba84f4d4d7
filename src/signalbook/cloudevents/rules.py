"""The rules of CloudEvents 1.0.2 that this package holds, by the names its errors carry.

Rule: an error names the first rule that was broken and lists every problem; each problem's `code` is a row here.
The sections are those of the JSON format ("json"), the core ("core") and the HTTP binding ("http"); the other
bindings say the same about their own carriers.
"""

from __future__ import annotations

from collections.abc import Mapping

from signalbook.errors import Problem, SignalbookError

__all__ = ["RULES", "CloudEventError"]

RULES: Mapping[str, str] = {
    "R1": "An event is exactly one JSON object (json 3).",
    "R2": "The text is UTF-8, without a byte order mark and without unpaired surrogates (RFC 8259 section 8).",
    "R3": "An attribute occurs once.",
    "R4": "The media type of an event is application/cloudevents+json, of a batch application/cloudevents-batch+json.",
    "R5": "An attribute's name is made of a to z and 0 to 9 (core, Attribute Naming Convention).",
    "R7": "id, source, specversion and type are there (core, REQUIRED Attributes).",
    "R8": "id, source, specversion and type are strings that are not empty.",
    "R9": "specversion is 1.0.",
    "R11": "data and data_base64 are no attributes.",
    "R12": "An attribute is a Boolean, an Integer, a String, or a type written as a string (json 2.2).",
    "R13": "An Integer is whole, from -2147483648 to 2147483647, without fraction or exponent.",
    "R15": "A String has no control characters, noncharacters or unpaired surrogates (core, Type System).",
    "R17": "time is an RFC 3339 timestamp.",
    "R18": "dataschema is an absolute URI (RFC 3986).",
    "R19": "source is a URI-reference (RFC 3986).",
    "R20": "subject is not empty; datacontenttype is a media type (RFC 2045).",
    "R24": "data and data_base64 exclude each other (json 3.1.1).",
    "R25": "data_base64 is a string of Base64 (RFC 4648 section 4), padded and without other characters.",
    "R28": "Data of a content type that is not JSON is a string (json 3.1).",
    "R31": "What cannot be written as its content type says is not written (json 3.1.1).",
    "R32": "A number in the data keeps its value.",
    "R34": "What has no JSON form is not written: NaN, infinity, unpaired surrogates.",
    "R35": "A batch is a JSON array of events (json 4).",
    "R37": "A batch is read and written as a batch only, an event as an event (json 4).",
    "R38": "The content type says which mode a message is in (http 3).",
    "R39": "Each attribute is one header; datacontenttype is the content type (http 3.1).",
    "R40": "A header's value is percent-encoded UTF-8 (http 3.1.3.2).",
    "R41": "The body is the data's bytes in its content type (http 3.1.2).",
    "R43": "An event is read whole or not at all; it has at most 10,000 attributes.",
}


class CloudEventError(SignalbookError):
    """What is not a CloudEvent, or cannot be written as one: every problem, with its path and its rule."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    @property
    def path(self) -> str:
        """Where the first problem is, as a JSON Pointer."""
        return self.problems[0].path

    @property
    def rule(self) -> str:
        """The rule that the first problem breaks, a name in `RULES`."""
        return self.problems[0].code

    def within(self, path: str) -> CloudEventError:
        """The same error, of an event that stands at `path`."""
        return CloudEventError(
            *(Problem(path + problem.path, problem.code, problem.message) for problem in self.problems)
        )

    def __str__(self) -> str:
        shown = [f"{_place(problem.path)}: {problem.message} [{problem.code}]" for problem in self.problems[:20]]
        more = len(self.problems) - len(shown)
        return "; ".join(shown) + (f"; and {more} more" if more else "")


def _place(path: str) -> str:
    """The path on one line and not too long, whatever a document calls its members."""
    return (path or "(event)") if path.isprintable() and len(path) <= 100 else repr(path[:100])
