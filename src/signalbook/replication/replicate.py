"""Replication from one catalog to another: once, or following.

Rule 1: the state of a replication is in the target, written with the entries; a run may end anywhere and the next goes
on. What cannot be gone on from (a trimmed feed, another history) is compared in full. A source whose history went back
is believed against its former self.
Rule 2: a comparison takes the newest cursor first and reads then; so what changes meanwhile is read again, and nothing
is missed.
Rule 3: what could not be copied is kept in the target too, and each run tries it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property

from signalbook.client import MOST_PAGES, Client, RemoteError
from signalbook.errors import StoreError, UsageError
from signalbook.jsontext import Json
from signalbook.replication.catalog01 import Catalog01Source
from signalbook.replication.catalog01_target import Catalog01Target
from signalbook.replication.scope import ReplicationScope
from signalbook.replication.source import (
    FeedSource,
    PlainSource,
    Source,
    asked,
    check_authority,
    is_there,
    open_source,
    speaks_01,
)
from signalbook.replication.target import ReplicationReport, SignalbookTarget
from signalbook.replication.webhook import Catalog01Webhook, Webhook

__all__ = ["Replication"]

_PAGE = 500
_COMPARE_IN_FULL = ("feed_trimmed", "unknown_cursor")


class Replication:
    """The way from one catalog to another for what is within a scope."""

    def __init__(
        self, source: Client, target: Client, scope: ReplicationScope, *, authority: str = "", keep_both: bool = False,
        apis: tuple[str, str] = ("auto", "auto"),
    ) -> None:  # fmt: skip
        self.source = source
        self._apis = apis
        self._keep_both = keep_both
        self._authority = check_authority(authority)
        self._target = target
        self._scope = scope
        self._pushed: dict[str, str] = {}

    @cached_property
    def _source(self) -> Source:
        """The source, asked at its first use what it is; one that does not answer then is asked again at the next."""
        return open_source(self.source, self._authority, self._apis[0])

    @cached_property
    def _is_01(self) -> bool:
        """Whether the target is a catalog that speaks the 0.1 API alone."""
        if self._apis[1] != "auto" or isinstance(asked(self._target, "/replicas"), dict):
            return self._apis[1] == "0.1"
        root = asked(self._target, "/")
        return not (isinstance(root, dict) and "specversion" in root) and speaks_01(self._target)

    def webhook(self, place: str, sink: str) -> Webhook:
        """Return a webhook that listens at a place here, in the form that the source can call."""
        if isinstance(self._source, Catalog01Source):
            return Catalog01Webhook(self.source, place, sink, self._source.subjects(self._scope))
        return Webhook(self.source, place, sink)

    def run(self, *, compare: bool = False, named: list[str] | None = None) -> ReplicationReport:
        """Bring the target up to date; with `compare` everything is read, whatever the cursor or the epochs say.

        With `named` only these definitions of a catalog of 0.1 are read.
        """
        report = ReplicationReport()
        if self._is_01:
            self._push_01(report)
            return self._checked(report)
        name = f"{self._source.catalog} {self._scope.name}"
        target = SignalbookTarget(self._target, name, report, self._earlier, keep_both=self._keep_both)
        self._source.known_as(target.authority)
        if isinstance(self._source, Catalog01Source) and named is not None:
            target.write(self._source.entries([xid for xid in named if self._scope.holds(xid)], self._scope))
        elif not isinstance(self._source, FeedSource):
            self._compare_epochs(self._source, target, trusting=not compare)
        else:
            self._run(self._source, target, compare=compare)
        return self._checked(report)

    def _checked(self, report: ReplicationReport) -> ReplicationReport:
        """A report that says so where the scope names nothing."""
        if not report.outcomes and self._scope.xid != "/" and not is_there(self._source, self.source, self._scope):
            report.failure = f"{self.source.name or 'the source'} has no {self._scope.xid}; is the scope spelled right?"
        return report

    def _run(self, source: FeedSource, target: SignalbookTarget, *, compare: bool) -> None:
        try:
            if target.link.cursor and not compare:
                self._catch_up(source, target)
                return
            if target.link.cursor:
                source.changes(target.link.cursor, self._scope)  # whether it is one of this history
        except RemoteError as error:
            if error.name not in _COMPARE_IN_FULL:
                raise
            target.anew = error.name == "unknown_cursor"
        self._compare(source, target)
        target.anew = False
        self._catch_up(source, target)

    def _earlier(self, xid: str, before: int) -> Json | None:
        """More of the log of an entity at the source: what is before a number."""
        return None if isinstance(self._source, PlainSource) else self._source.earlier(xid, before, self._scope)

    def follow(
        self, every: float, *, wait: float = 25, pause: Callable[[float], None] = time.sleep,
        webhook: Webhook | None = None, listen: tuple[str, str] | None = None,
    ) -> Iterator[ReplicationReport]:  # fmt: skip
        """Bring the target up to date again and again: when the source changes, or else `every` so many seconds.

        A source says that it changed by calling the `webhook`, or by answering a request that waits at its feed. A
        catalog that does not answer is asked again after a while, and the report has its error. A refusal of the first
        request is raised, because the next one would be refused too. With `listen`, a place and a sink, a webhook is
        made there as soon as the kind of the source is known.
        """
        with ExitStack() as stack:
            yield from self._follow(every, wait, pause, webhook, listen, stack)

    def _follow(
        self, every: float, wait: float, pause: Callable[[float], None], webhook: Webhook | None,
        listen: tuple[str, str] | None, stack: ExitStack,
    ) -> Iterator[ReplicationReport]:  # fmt: skip
        failures = 0
        reached = False
        named: list[str] | None = None
        while True:
            try:
                report = self.run(named=named)
                failures, reached, named = 0, True, None
                yield report
                if webhook is None and listen is not None:
                    webhook = self.webhook(*listen)
                    stack.callback(webhook.close)
                if isinstance(webhook, Catalog01Webhook):
                    if webhook.wait(every):
                        named = None if self._is_01 else webhook.named()
                        continue
                    if webhook.refusal:
                        yield ReplicationReport(
                            failure=f"{webhook.refusal.rstrip('.')}; the source is compared periodically instead"
                        )
                        webhook.refusal = ""
                    pause(every)
                elif not isinstance(self._source, FeedSource) or not report.cursor:
                    pause(every)
                elif webhook is None or not webhook.wait(every):
                    if webhook is not None and webhook.refusal:
                        yield ReplicationReport(
                            failure=f"{webhook.refusal.rstrip('.')}; the source's change feed is polled instead"
                        )
                        webhook.refusal = ""
                    self._source.changes(report.cursor, self._scope, wait)
            except (RemoteError, StoreError) as error:
                if isinstance(error, RemoteError) and error.name in _COMPARE_IN_FULL:
                    continue  # while it waited; the next run does that
                if not reached and (isinstance(error, StoreError) or 300 <= error.status < 500):
                    raise
                failures += 1
                named = None
                yield ReplicationReport(failure=str(error))
                pause(min(0.2 * 2**failures, 30.0))

    # ---- the ways

    def _compare(self, source: FeedSource, target: SignalbookTarget) -> None:
        target.report.compared = True
        newest = source.newest()
        target.begin()
        target.write(source.everything(self._scope))
        target.retry()
        target.sweep()
        target.reached(newest)

    def _catch_up(self, source: FeedSource, target: SignalbookTarget) -> None:
        target.report.cursor = target.link.cursor
        if not target.report.compared and target.problems:
            target.write(source.entries(target.problems, self._scope))
            target.retry()
        for _ in range(MOST_PAGES):
            xids, following = source.changes(target.link.cursor, self._scope)
            if following == target.link.cursor:
                return
            target.write(source.entries(xids, self._scope))
            target.retry()
            target.reached(following)
        raise RemoteError("the change feed of the source does not end; the next run goes on from here")

    def _push_01(self, report: ReplicationReport) -> None:
        if self._keep_both:
            raise UsageError("--on-conflict keep-both needs a target that is a Signalbook: in 0.1 an id is its type's")
        source, scope = self._source, self._scope
        report.compared = True
        newest = source.newest() if isinstance(source, FeedSource) else ""

        def was_deleted(xids: set[str]) -> set[str]:
            return source.deleted(scope) & xids if isinstance(source, FeedSource) else set()

        target = Catalog01Target(
            self._target, scope, report, lambda: source.authority, self._earlier, was_deleted, self._pushed
        )
        every = source.everything(scope) if isinstance(source, FeedSource) else source.everything(scope, lambda _: {})
        target.write(entry for entry in every if isinstance(entry, dict))
        report.cursor = newest

    def _compare_epochs(
        self, source: PlainSource | Catalog01Source, target: SignalbookTarget, *, trusting: bool
    ) -> None:
        target.report.compared = True
        target.begin()
        known = target.marks if trusting else lambda _: {}
        met: list[str] = []
        page: list[Json] = []
        for entry in source.everything(self._scope, known):
            if isinstance(entry, str):
                met.append(entry)
            else:
                page.append(entry)
            if len(met) + len(page) >= _PAGE:
                target.write(page)
                target.met(met)
                met, page = [], []
        target.write(page)
        target.met(met)
        target.retry()
        target.sweep()
