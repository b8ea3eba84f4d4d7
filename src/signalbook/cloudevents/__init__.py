"""CloudEvents 1.0.2: the event, the JSON format, batches and every protocol binding, exactly.

Rule: reading adds, drops and changes nothing; what cannot be read or carried exactly is a `CloudEventError`.
"""

from signalbook.cloudevents.attributes import RULES, CloudEventError
from signalbook.cloudevents.event import ABSENT, CloudEvent, Data, Kind
from signalbook.cloudevents.json_format import decode, decode_batch, encode, encode_batch, iter_batch

__all__ = [
    "ABSENT",
    "RULES",
    "CloudEvent",
    "CloudEventError",
    "Data",
    "Kind",
    "decode",
    "decode_batch",
    "encode",
    "encode_batch",
    "iter_batch",
]
