"""The sweeper: whatever owes a follow-up and is late gets it, whoever died on the way (I8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from turngate.domain import keys
from turngate.domain.upkeep import AnnounceAgain, NothingOwed, StartAgain, TimeOut, decide_follow_up
from turngate.errors import ConditionFailedError, TurngateError
from turngate.protocol.finishing import Committed, finish_run

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
    nothing_owed: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def progress(self) -> int:
        return self.started_again + self.timed_out + self.announced_again


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
        """One pass over all shards, ending early at `until_ms`; the rest waits for the next pass."""
        findings = SweepFindings()
        for shard in range(keys.DUE_SHARDS):
            while self.clock.now_ms() < until_ms:
                late = self.store.due(shard, self.clock.now_ms(), BATCH)
                before = findings.progress
                for key in late:
                    try:
                        self._follow_up(key, findings)
                    except TurngateError as error:  # one broken item must not keep the others waiting
                        findings.failures.append(f"{key.pk} {key.sk}: {error}")
                if len(late) < BATCH or findings.progress == before:
                    break
        return findings

    def _follow_up(self, key: Key, findings: SweepFindings) -> None:
        account = keys.account_of(key)
        item = self.store.get(account, (key,)).get(key)
        decision = decide_follow_up(key, item, self.clock.now_ms())
        conversation = key.pk.rpartition("#C#")[2]
        match decision:
            case NothingOwed():
                findings.nothing_owed += 1
            case TimeOut(run=run):
                self._end(account, conversation, run)
                findings.timed_out += 1
            case StartAgain(postponed=postponed, run=run):
                if self._won(account, postponed):
                    self.runs_to_start.send(start_order(account, conversation, run.run))
                    findings.started_again += 1
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

    def _end(self, account: str, conversation: str, run: Run) -> None:
        done = finish_run(
            self.store,
            self.clock,
            self.ids,
            account=account,
            conversation=conversation,
            run_id=run.run,
            ending=self.time_out(conversation, run),
        )
        if isinstance(done, Committed):
            self.events_to_push.send(push_order(account, conversation, done.evt))
            if done.next_run:
                self.runs_to_start.send(start_order(account, conversation, done.next_run))


def push_order(account: str, conversation: str, evt: int) -> dict[str, object]:
    """Body of an `events-to-push` message for a stored event."""
    return {"kind": "event", "account": account, "conversation": conversation, "evt": evt}


def start_order(account: str, conversation: str, run: str) -> dict[str, object]:
    """Body of a `runs-to-start` message, and input of the turn machine."""
    return {"account": account, "conversation": conversation, "run": run, "schema_version": 1}
