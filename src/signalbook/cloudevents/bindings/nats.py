"""The NATS binding: JSON as the payload (1.0.2), and binary mode with headers as later texts have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from signalbook.cloudevents.bindings import binding
from signalbook.cloudevents.bindings.binding import Binding, Mode
from signalbook.cloudevents.bindings.header_value import read_header, write_header
from signalbook.cloudevents.event import CloudEvent
from signalbook.wire import Message

__all__ = ["NATS", "from_nats", "to_nats"]
