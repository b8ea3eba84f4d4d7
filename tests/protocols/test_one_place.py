"""What is known of a protocol stands in `protocols`: nothing else spells its name, its fields or its aliases."""

import ast
from pathlib import Path

import pytest

from signalbook.protocols import PROTOCOLS
from signalbook.protocols.message import ALIASES
from signalbook.protocols.values import PropertySection

SOURCE = Path(__file__).parents[2] / "src" / "signalbook"
# Where protocols are spoken, read from a source, or spelled as older documents have them.
AT_HOME = ("protocols/", "clients/", "pipeline/read/", "dialects/", "spec/dialects/")
# Words that other things are called by, too: nobody can say of which a text speaks.
COMMON = frozenset(
    {
        *("body", "content-encoding", "content-type", "content_type", "durable", "footer", "header", "headers"),
        *("http", "kafka", "key", "method", "nats", "path", "priority", "properties", "query", "status", "subject"),
        *("timestamp", "to", "ttl"),
    }
)
# Everybody else who may spell a name, which ones, and why.
ALLOWED = {
    # Where a message states the encoding of its content.
    "messages/build.py": {"user_properties"},
    # The names of sources and targets on the command line, and of what to install for them.
    "cli/event.py": {*PROTOCOLS, "amqp", "mqtt"},
    "cli/output.py": {"amqp", "mqtt"},
    # What the texts of the specification call an option in one version and not in another.
    "spec/versions.py": {"MQTT/5.0", "NATS", "payload_format", "payload_format_indicator", "reply", "reply-to"},
    # The named rules: each quotes what the specification says of one protocol.
    "model/rules.py": {
        *PROTOCOLS,
        *("application-properties", "message-annotations", "delivery-annotations", "user_properties", "topic"),
    },
    "model/protocol_rules.py": {"HTTP", "KAFKA", "message-id"},
    # What comes over HTTP because it is asked over HTTP; an example of a message that may come over any protocol.
    "server/messages.py": {"HTTP"},
    "server/events/subscriptions.py": {"HTTP"},
    "replication/webhook.py": {"HTTP"},
    "messages/sample.py": {"HTTP"},
    # The API of Kafka's Schema Registry: which topic an endpoint has; `offset` is a parameter of its lists.
    "server/confluent/changes.py": {"KAFKA", "topic"},
    "server/confluent/subjects.py": {"offset"},
    # The columns of records, and the fast path for them.
    "pipeline/tables.py": {"KAFKA", "topic", "partition", "offset"},
    "pipeline/columns/events.py": {"KAFKA", "partition", "offset"},
    "pipeline/columns/kafka.py": {"KAFKA"},
}


def names_of_protocols() -> frozenset[str]:
    """Every name that a protocol, a field of its message, an option or a member of one has."""
    names = {*PROTOCOLS, *ALIASES}
    for row in PROTOCOLS.values():
        names |= {*row.fields, *row.options, *row.option_aliases, *row.endpoint_aliases}
        for place in row.options.values():
            names |= place.named.keys() if isinstance(place, PropertySection) else set()
    return frozenset(names - COMMON)


NAMES = names_of_protocols()


def spelled_in(text: str) -> set[str]:
    """The names that a module's strings and keyword arguments are; docstrings and messages may speak of them."""
    nodes = list(ast.walk(ast.parse(text)))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return NAMES & (strings | {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg})


def test_a_protocol_is_spelled_in_one_place() -> None:
    """Outside of `protocols` nobody spells a protocol, its fields or its aliases, but those listed here."""
    found = {}
    for module in sorted(SOURCE.rglob("*.py")):
        place = module.relative_to(SOURCE).as_posix()
        if not place.startswith(AT_HOME) and (spelled := spelled_in(module.read_text(encoding="utf-8"))):
            found[place] = spelled
    more = {place: spelled - ALLOWED.get(place, set()) for place, spelled in found.items()}
    assert {} == {place: sorted(spelled) for place, spelled in more.items() if spelled}
    assert [] == sorted(ALLOWED.keys() - found.keys()), "these spell none any more; take them off the list"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('NAMES = {"MQTT/5.0": "topic_name"}', {"MQTT/5.0", "topic_name"}),
        ("make(correlation_data=1)", {"correlation_data"}),
        ('"""The topic_name of MQTT/5.0."""', set()),
        ('words = f"the {topic_name} is missing"', set()),
    ],
)
def test_what_counts_as_spelled(text: str, found: set[str]) -> None:
    """A string or an argument that is the name counts; a sentence does not."""
    assert found == spelled_in(text)
