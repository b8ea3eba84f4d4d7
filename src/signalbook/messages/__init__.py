"""Message definitions that work: a catalog of them, and what it says about messages."""

from signalbook.messages.answer import Answer, Candidate, Outcome
from signalbook.messages.carry import Built
from signalbook.messages.catalog import Catalog, CatalogError, MessageHandle
from signalbook.messages.definition import Definition
from signalbook.messages.dispatch import Delivery, Dispatcher, Unhandled
from signalbook.messages.fill import Origin
from signalbook.messages.schema_library import SchemaPolicy

__all__ = [
    "Answer",
    "Built",
    "Candidate",
    "Catalog",
    "CatalogError",
    "Definition",
    "Delivery",
    "Dispatcher",
    "MessageHandle",
    "Origin",
    "Outcome",
    "SchemaPolicy",
    "Unhandled",
]
