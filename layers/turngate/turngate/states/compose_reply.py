"""ComposeReply: what do we say, from these facts only? At most one model call; none when nothing needs phrasing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from turngate.domain import run_log, wire
from turngate.domain.composing import composed_parts, composing_request, draft_of, stated_result
from turngate.domain.config import GovernanceSlice
from turngate.domain.shapes import Draft, Frozen, Part, PartResult, RunEvent, TurnInput, TurnRef, Usage
from turngate.protocol.asking import Answered, Unanswered, ask
from turngate.states import working_texts
from turngate.states.status import tell_watchers

if TYPE_CHECKING:
    from turngate.domain.composing import Composed
    from turngate.domain.prompting import ModelRequest
    from turngate.wiring import Ports


class ComposeRequest(Frozen, tag_field="task", tag="compose"):
    """`events` and `trace` are Govern's, which has no right to write them."""

    task: ClassVar = "compose"
    turn: TurnRef
    input: TurnInput
    governance: GovernanceSlice
    parts: tuple[Part, ...]
    results: tuple[PartResult, ...]
    events: tuple[dict[str, Any], ...]
    trace: dict[str, Any]
    usage: Usage


class ComposedReply(Frozen):
    draft: Draft
    usage: Usage


def compose_reply(request: ComposeRequest, ports: Ports) -> ComposedReply:
    """Phrase what was found and state what was ruled. Without the model the evidence itself is quoted (F-630)."""
    turn, language = request.turn, request.input.language
    stated = (stated_result(part) for part in request.parts)
    results = (*request.results, *(result for result in stated if result is not None))
    with_evidence = tuple(result.part_id for result in results if result.evidence_refs)
    evidence = working_texts.read_evidence(ports.store, turn, with_evidence)
    prompt = composing_request(request.parts, results, evidence, language)
    started = ports.clock.now_ms()
    reply = _phrase(ports, request, prompt) if prompt is not None else None
    answer = reply.document if isinstance(reply, Answered) else None
    composed = composed_parts(request.parts, results, evidence, answer, request.governance, language)
    draft = draft_of(composed, request.governance, language, request.input.truncated)
    _write_log(ports, request, composed, reply, started)
    usage = request.usage.plus(reply.usage) if reply is not None else request.usage
    return ComposedReply(draft=draft, usage=usage)


def _phrase(ports: Ports, request: ComposeRequest, prompt: ModelRequest) -> Answered | Unanswered:
    turn = request.turn
    tell_watchers(ports, turn, "run.status", {"phase": "generating"})
    spent = request.usage.model_calls
    return ask(ports.model, ports.store, ports.clock, ports.ids, turn=turn, prompt=prompt, spent=spent)


def _write_log(
    ports: Ports,
    request: ComposeRequest,
    composed: tuple[Composed, ...],
    reply: Answered | Unanswered | None,
    started: int,
) -> None:
    """One request: Govern's rulings, what came of each part, and the model call if there was one."""
    turn, now = request.turn, ports.clock.now_ms()
    rulings = [
        RunEvent(
            step=run_log.STEP_RULED, kind=event["kind"], part=event["part"], at=started, data=event["data"]
        )
        for event in request.events
    ]
    call = {
        "started_at": started,
        "tries": reply.tries if reply is not None else 0,
        "error": reply.reason if isinstance(reply, Unanswered) else "",
        "usage": wire.write(reply.usage) if reply is not None else {},
    }
    done = RunEvent(
        step=run_log.STEP_COMPOSED,
        kind="model.finished" if reply is not None else "reply.stated",
        at=now,
        data={
            "task": "compose",
            "parts": [
                {
                    "part": each.part_id,
                    "outcome": each.outcome,
                    "origin": each.origin,
                    "check": each.check,
                    "used": [piece.ref for piece in each.used],
                }
                for each in composed
            ],
            **(call if reply is not None else {}),
        },
    )
    entries = [run_log.entry(turn.account, turn.run, event) for event in (*rulings, done)]
    ports.store.put_all(turn.account, [*entries, working_texts.route_trace(turn, request.trace)])
