"""Messages to the functions that handle them, by the definition they match; the rest to a sideline.

Rule 1: a message goes to exactly one function: the one registered for its definition's xid, else the first whose
pattern takes the xid, else the sideline. What is not `matched` goes to the sideline.
Rule 2: nothing is dropped: a dispatcher without a sideline raises where one would be needed.
Rule 3: what a function raises is the caller's; what it gives back is given back.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from signalbook.errors import SignalbookError, UsageError
from signalbook.messages.answer import Answer
from signalbook.messages.catalog import Catalog
from signalbook.messages.observe import each, holds_batch

__all__ = ["Delivery", "Dispatcher", "Unhandled"]

Handler = Callable[["Delivery"], Any]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message with the answer about it: what a handler is called with."""

    message: Any
    answer: Answer


class Unhandled(SignalbookError):
    """A message that no function takes, where there is no sideline."""

    def __init__(self, delivery: Delivery) -> None:
        super().__init__(delivery)
        self.delivery = delivery

    def __str__(self) -> str:
        answer = self.delivery.answer
        what = f"{answer.outcome} {answer.definition or ''}".strip()
        return f"no handler takes a message that is {what}, and there is no sideline"


class Dispatcher:
    """Sends messages to handlers; `within` is the scope that a match has.

    dispatcher = Dispatcher(catalog, sideline=dead_letters.append)

    @dispatcher.on("/messagegroups/fleet/messages/moved")
    def moved(delivery): ...

    @dispatcher.on("/messagegroups/fleet/messages/*")
    async def other(delivery): ...
    """

    def __init__(self, catalog: Catalog, *, within: Iterable[str] = (), sideline: Handler | None = None) -> None:
        if sideline is not None:
            _check_callable(sideline, "the sideline")
        self.catalog = catalog
        self.counts: Counter[str] = Counter()
        self._within = (within,) if isinstance(within, str) else tuple(within)
        self._sideline = sideline
        self._exact: dict[str, Handler] = {}
        self._patterns: list[tuple[re.Pattern[str], Handler]] = []
        self._chosen: dict[str, Handler | None] = {}

    def on(self, *targets: str) -> Callable[[H], H]:
        """Register a function for definitions: xids, or patterns in which `*` is one step and `**` any number."""
        if not targets:
            raise UsageError("name the xids, or the patterns of xids, that the function is for")
        for target in targets:
            self._check_target(target)

        def register(handler: H) -> H:
            for target in targets:
                self.add(target, handler)
            return handler

        return register

    def add(self, target: str, handler: Handler) -> None:
        """The same without a decorator."""
        self._check_target(target)
        _check_callable(handler, f"the handler of {target}")
        if "*" in target:
            self._patterns.append((_compiled(target), handler))
        else:
            self._exact[target] = handler
        self._chosen.clear()

    def _check_target(self, target: str) -> None:
        """Raise `UsageError` where no handler can be registered for the target."""
        if not isinstance(target, str) or not target.startswith("/"):
            raise UsageError(f'"{target}" is not an xid, nor a pattern of one; they are texts that begin with /')
        if target in self._exact:
            raise UsageError(f"{target} has a handler already")
        if "*" not in target and target not in self.catalog.definitions:
            near = get_close_matches(target, self.catalog.definitions, 1)
            raise UsageError(
                f'"{target}" is not a message of the catalog' + (f'; is "{near[0]}" meant?' if near else "")
            )

    def dispatch(self, message: Any) -> Any:
        """What the handler of the message gives back; of a batch, or of any iterable of messages, a list of that."""
        results = [_finished(handler(delivery)) for handler, delivery in self._deliveries(message)]
        return results[0] if len(results) == 1 and not holds_batch(message) else results

    async def dispatch_async(self, message: Any) -> Any:
        """The same, where handlers may be coroutine functions; the events of a batch are handled in their order."""
        results = []
        for handler, delivery in self._deliveries(message):
            result = handler(delivery)
            results.append(await result if inspect.isawaitable(result) else result)
        return results[0] if len(results) == 1 and not holds_batch(message) else results

    def _deliveries(self, message: Any) -> Iterator[tuple[Handler, Delivery]]:
        for one in each(message):
            for answer in self.catalog.match_all((one,), self._within):
                delivery = Delivery(one, answer)
                self.counts[answer.outcome.value] += 1
                yield self._handler(delivery), delivery

    def _handler(self, delivery: Delivery) -> Handler:
        answer = delivery.answer
        handler = self._choose(answer.definition) if answer.matched and answer.definition else None
        handler = handler or self._sideline
        if handler is None:
            raise Unhandled(delivery)
        return handler

    def _choose(self, xid: str) -> Handler | None:
        if xid not in self._chosen:
            fitting = (handler for pattern, handler in self._patterns if pattern.fullmatch(xid))
            self._chosen[xid] = self._exact.get(xid) or next(fitting, None)
        return self._chosen[xid]


def _check_callable(handler: Any, what: str) -> None:
    if not callable(handler):
        raise UsageError(f"{what} must be a function, not {type(handler).__name__}")


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = ({"**": ".*", "*": "[^/]*"}.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", pattern) if part)
    return re.compile("".join(parts))


def _finished(result: Any) -> Any:
    if inspect.iscoroutine(result):
        result.close()
        raise UsageError("a handler is a coroutine function; call dispatch_async")
    return result
