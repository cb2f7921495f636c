"""The sweep of the due index, twice a minute, because a schedule is precise to a minute only (I8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.protocol.sweeping import Sweeper, SweepFindings
from turngate.states.commit_turn import language_of, stated_failure

if TYPE_CHECKING:
    from turngate.domain.finish import Ending
    from turngate.domain.records import Run
    from turngate.wiring import Ports

PASS_MS = 25_000
PAUSE_MS = 30_000


def sweep_twice(ports: Ports, *, writer: str) -> tuple[SweepFindings, ...]:
    """Two passes that start 30 s apart; each stops after 25 s and leaves the rest to the next."""
    began = ports.clock.now_ms()
    first = sweep_once(ports, writer=writer)
    ports.clock.sleep_ms(max(0, began + PAUSE_MS - ports.clock.now_ms()))
    return first, sweep_once(ports, writer=writer)


def sweep_once(ports: Ports, *, writer: str) -> SweepFindings:
    def time_out(conversation: str, run: Run) -> Ending:
        language = language_of(ports, run.tenant.account, conversation)
        return stated_failure("timed_out", by="sweeper", writer=writer, language=language)

    sweeper = Sweeper(
        store=ports.store,
        clock=ports.clock,
        ids=ports.ids,
        runs_to_start=ports.runs_to_start,
        events_to_push=ports.events_to_push,
        time_out=time_out,
    )
    return sweeper.sweep(until_ms=ports.clock.now_ms() + PASS_MS)
