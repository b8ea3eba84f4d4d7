"""`MessageHandle`: one definition of a catalog, to build, show and check messages by.

catalog.message("/messagegroups/fleet/messages/moved").build(context={"vin": "A1"}, data={"speed": 80})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from signalbook.cloudevents import ABSENT
from signalbook.errors import Problem
from signalbook.messages.answer import Answer
from signalbook.messages.build import Built, Plan, build
from signalbook.messages.definition import Definition
from signalbook.messages.filling import Origin
from signalbook.messages.observed import Given
from signalbook.messages.sample import sample
from signalbook.schemas import Schema

__all__ = ["Judge", "MessageHandle"]


class Judge(Protocol):
    """What a handle asks of its catalog."""

    def schema(self, xid: str) -> Schema | Problem | None:
        """The payload schema of a definition, or why it cannot be had."""
        ...

    def validate(self, message: Given, xid: str) -> Answer:
        """What one definition says about a message."""
        ...

    def absolute(self, reference: str) -> str | None:
        """The absolute form of a reference into the catalog."""
        ...

    def schemaid(self, xid: str) -> int | None:
        """The id of Confluent's framing that is known for a definition's schema."""
        ...


@dataclass(frozen=True, slots=True)
class MessageHandle:
    """A definition, and the catalog that it stands in."""

    catalog: Judge
    definition: Definition

    @property
    def xid(self) -> str:
        """The definition's xid."""
        return self.definition.xid

    @property
    def document(self) -> Mapping[str, Any]:
        """The definition as materialised."""
        return self.definition.document

    def build(
        self,
        *,
        data: Any = ABSENT,
        context: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        protocol: str | Mapping[str, Any] | None = None,
        schemaid: int | None = None,
        origin: Origin | None = None,
    ) -> Built:
        """The message that these values make, or all that is missing or wrong; see `messages.build.build`."""
        if self.definition.problems:
            return Built(problems=self.definition.problems)
        return build(
            self._plan(),
            data=data,
            context=context,
            attributes=attributes,
            protocol=protocol,
            schemaid=schemaid,
            origin=origin,
        )

    def sample(self) -> Built:
        """An example message, payload included; the same each time. Where none can be made, the problems say why.

        Where the payload's schema lies elsewhere, the example has no payload.
        """
        if self.definition.problems:
            return Built(problems=self.definition.problems)
        return sample(self._plan(), self.xid)

    def validate(self, message: Given) -> Answer:
        """What is wrong with a message that is to be one of this definition."""
        return self.catalog.validate(message, self.xid)

    def _plan(self) -> Plan:
        catalog = self.catalog
        return Plan(
            self.definition.document,
            catalog.schema(self.xid),
            self.validate,
            catalog.absolute,
            catalog.schemaid(self.xid),
        )
