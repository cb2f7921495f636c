"""Understand: what does the message look like? One model call over at most a shortlist; it grants nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from turngate.domain import run_log, wire
from turngate.domain.config import GovernanceSlice
from turngate.domain.resuming import Resumption
from turngate.domain.shapes import Frozen, HistoryMessage, RunEvent, TurnInput, TurnRef, Understanding, Usage
from turngate.domain.understanding import (
    Reading,
    failed_understanding,
    read_understanding,
    understanding_request,
)
from turngate.protocol.asking import Answered, ask
from turngate.states.shortlisting import shortlist

if TYPE_CHECKING:
    from turngate.wiring import Ports


class UnderstandRequest(Frozen, tag_field="task", tag="understand"):
    task: ClassVar = "understand"
    turn: TurnRef
    input: TurnInput
    history: tuple[HistoryMessage, ...] = ()
    governance: GovernanceSlice
    resumption: Resumption = Resumption()


class Understood(Frozen):
    understanding: Understanding
    usage: Usage


def understand(request: UnderstandRequest, ports: Ports) -> Understood:
    """Ask once, believe little. A model that gives nothing usable is a stated routing error, never a guess (F-094)."""
    turn, spoken, governed = request.turn, request.input, request.governance
    history = request.history
    started = ports.clock.now_ms()
    offer = shortlist(ports, turn, spoken, history, governed)
    waiting = request.resumption.waiting
    prompt = understanding_request(spoken, history, offer.governed, waiting)
    reply = ask(ports.model, ports.store, ports.clock, ports.ids, turn=turn, prompt=prompt, spent=0)
    if isinstance(reply, Answered):
        reading = read_understanding(reply.document, offer.governed, spoken, history, waiting)
        error = reading.understanding.error
    else:
        reading = Reading(understanding=failed_understanding(reply.reason), dropped={})
        error = reply.reason
    finished = ports.clock.now_ms()
    event = RunEvent(
        step=run_log.STEP_UNDERSTOOD,
        kind="model.finished",
        at=finished,
        data={
            "task": "understand",
            "started_at": started,
            "offered": len(offer.governed.intents),
            "of": len(governed.intents),
            "shortlist": offer.by,
            "degraded": offer.degraded,
            "tries": reply.tries,
            "error": error,
            "dropped": reading.dropped,
            "drift": list(reading.drift),
            "usage": wire.write(reply.usage),
        },
    )
    ports.store.put_all(turn.account, [run_log.entry(turn.account, turn.run, event)])
    understanding = replace(reading.understanding, offered=offer.ids)
    return Understood(understanding=understanding, usage=reply.usage)
