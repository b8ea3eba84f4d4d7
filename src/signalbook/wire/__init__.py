"""The message on paper: one value for an observed message, whatever protocol it came over.

Rule 1: a message keeps what was observed, byte for byte and in order; nothing is filled in, lower-cased or joined.
Rule 2: one that is to be sent goes through `sendable` first.
"""

from signalbook.spec.protocols import find_protocol
from signalbook.wire.amqp_values import Typed
from signalbook.wire.json_members import JsonError, read_members
from signalbook.wire.message import FIELDS, Message, WireError
from signalbook.wire.sending import address_of, sendable, sending_problems

__all__ = [
    "FIELDS",
    "JsonError",
    "Message",
    "Typed",
    "WireError",
    "address_of",
    "find_protocol",
    "read_members",
    "sendable",
    "sending_problems",
]
