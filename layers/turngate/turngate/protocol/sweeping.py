"""The sweeper: whatever owes a follow-up and is late gets it, whoever died on the way (I8)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from turngate.domain import keys
from turngate.domain.upkeep import AnnounceAgain, GiveUp, NothingOwed, StartAgain, TimeOut, decide_follow_up
from turngate.errors import ConditionFailedError, TurngateError
from turngate.protocol.finishing import Committed, finish_run
from turngate.protocol.orders import push_order, start_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.domain.finish import Ending
    from turngate.domain.records import Run
    from turngate.domain.transaction import Key, Transaction
    from turngate.ports import Clock, ConversationStore, Ids, Queue

BATCH = 50


@dataclass(slots=True)
class SweepFindings:
    """How many items needed the sweeper; anything but zero is worth a look."""

    started_again: int = 0
    timed_out: int = 0
    announced_again: int = 0
    given_up: int = 0
    nothing_owed: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def progress(self) -> int:
        return self.started_again + self.timed_out + self.announced_again + self.given_up


@dataclass(frozen=True, slots=True)
class Sweeper:
    """`time_out` states the failure of a run, in the language of its conversation."""

    store: ConversationStore
    clock: Clock
    ids: Ids
    runs_to_start: Queue
    events_to_push: Queue
    time_out: Callable[[str, Run], Ending]

    def sweep(self, *, until_ms: int) -> SweepFindings:
        """One pass over what is late now, ending early at `until_ms`; the rest waits for the next pass.

        Runs come before events: a customer waits for an answer, and a push is made good by resume."""
        findings = SweepFindings()
        for shards in (keys.RUN_SHARDS, keys.EVENT_SHARDS):
            self._sweep(shards, findings, until_ms)
        return findings

    def _sweep(self, shards: range, findings: SweepFindings, until_ms: int) -> None:
        """The shards take turns, a batch each, beginning anywhere: a flood in one, or a pass that ends early, must not
        keep the same others waiting. What a pass postpones is not late for this pass any more."""
        began = self.clock.now_ms()
        waiting = deque(shards)
        waiting.rotate(began // 1000 % len(shards))
        while waiting and self.clock.now_ms() < until_ms:
            shard = waiting.popleft()
            try:
                late = self.store.due(shard, began, BATCH)
            except TurngateError as error:  # a throttled shard must not keep the others waiting
                findings.failures.append(f"shard {shard}: {type(error).__name__}")
                continue
            before = findings.progress
            for key in late:
                self._take(key, findings)
            if len(late) == BATCH and findings.progress > before:
                waiting.append(shard)

    def _take(self, key: Key, findings: SweepFindings) -> None:
        """One broken item must not keep the others waiting, whatever is wrong with it."""
        try:
            self._follow_up(key, findings)
        except Exception as error:
            findings.failures.append(f"{key.pk} {key.sk}: {type(error).__name__}")

    def _follow_up(self, key: Key, findings: SweepFindings) -> None:
        account = keys.account_of(key)
        item = self.store.get(account, (key,)).get(key)
        decision = decide_follow_up(key, item, self.clock.now_ms())
        conversation = key.pk.rpartition("#C#")[2]
        match decision:
            case NothingOwed():
                findings.nothing_owed += 1
            case TimeOut(run=run):
                findings.timed_out += self._end(account, conversation, run)
            case StartAgain(postponed=postponed, run=run):
                if self._won(account, postponed):
                    self.runs_to_start.send(start_order(account, conversation, run.run))
                    findings.started_again += 1
            case GiveUp(announced=announced):
                self._won(account, announced)
                findings.given_up += 1
            case AnnounceAgain(postponed=postponed, evt=evt):
                if self._won(account, postponed):
                    self.events_to_push.send(push_order(account, conversation, evt))
                    findings.announced_again += 1

    def _won(self, account: str, postponed: Transaction) -> bool:
        try:
            self.store.write(account, postponed)
        except ConditionFailedError:
            return False
        return True

    def _end(self, account: str, conversation: str, run: Run) -> bool:
        done = finish_run(
            self.store,
            self.clock,
            self.ids,
            account=account,
            conversation=conversation,
            run_id=run.run,
            ending=self.time_out(conversation, run),
        )
        if not isinstance(done, Committed):
            return False
        self.events_to_push.send(push_order(account, conversation, done.evt))
        if done.next_run:
            self.runs_to_start.send(start_order(account, conversation, done.next_run))
        return True
