"""ResumePending: is this the next step of something we asked? Rules only; what they cannot decide goes on as fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from turngate.domain import keys, run_log, wire
from turngate.domain.composing import MAX_CONTENT_BYTES
from turngate.domain.config import GovernanceSlice
from turngate.domain.pending import read_open
from turngate.domain.preroute import Answered, is_social, matching_rule, pre_route
from turngate.domain.resuming import Resumption, resume
from turngate.domain.route_trace import certain_trace
from turngate.domain.shapes import Draft, Frozen, Ident, RunEvent, TenantContext, TurnInput, TurnRef
from turngate.domain.texts import cut
from turngate.states import working_texts

if TYPE_CHECKING:
    from turngate.domain.shapes import InputMessage
    from turngate.domain.transaction import Item, Key
    from turngate.wiring import Ports


_LOGGED = ("pending_id", "how", "option_id", "field", "reason")
"""Of an answer: codes and ids; its words are the customer's."""


class ResumeRequest(Frozen):
    turn: TurnRef
    tenant: TenantContext
    input: TurnInput
    governance: GovernanceSlice
    pending: tuple[Ident, ...]


class ResumedTurn(Frozen):
    """`resumed`: everything said answers what we asked; Govern rules on it. `fresh`: `input` is left to understand,
    `resumption` is what was answered and what still waits. `fixed`: nothing was answered, and a rule replies."""

    kind: Literal["resumed", "fresh", "fixed"]
    input: TurnInput
    resumption: Resumption
    draft: Draft | None = None


def resume_pending(request: ResumeRequest, ports: Ports) -> ResumedTurn:
    """Try what is open in its order, then pre-routing, which was left out while something was open (R-04)."""
    turn, spoken = request.turn, request.input
    now = ports.clock.now_ms()
    wanted = [keys.pending(turn.account, turn.conversation, each) for each in request.pending]
    found = ports.store.get(turn.account, wanted)
    resumption, left = resume(read_open(found.values(), now), spoken.messages)
    resumed = _outcome(request, resumption, left)
    event = RunEvent(
        step=run_log.STEP_RESUMED,
        kind="pending.tried",
        at=now,
        data={
            "open": [{"id": item.pending_id, "kind": item.kind} for item in resumption.open],
            "taken": [{name: getattr(taken, name) for name in _LOGGED} for taken in resumption.taken],
            "kind": resumed.kind,
        },
    )
    items: list[tuple[Key, Item]] = [run_log.entry(turn.account, turn.run, event)]
    if resumed.kind == "fixed":
        routed = pre_route(request.governance, spoken, request.tenant)
        rules = routed.rules if isinstance(routed, Answered) else ()
        trace = certain_trace(spoken.text, rules)
        items.append(working_texts.route_trace(turn, wire.write(trace)))
    ports.store.put_all(turn.account, items)
    return resumed


def _outcome(request: ResumeRequest, resumption: Resumption, left: tuple[InputMessage, ...]) -> ResumedTurn:
    spoken, governed = request.input, request.governance
    if resumption.taken:
        rules = governed.pre_routing
        left = tuple(message for message in left if not is_social(matching_rule(rules, message.text)))
    if not left:
        return ResumedTurn(kind="resumed", input=spoken, resumption=resumption)
    remaining = replace(spoken, messages=left)
    routed = pre_route(governed, remaining, request.tenant)
    if not isinstance(routed, Answered):
        return ResumedTurn(kind="fresh", input=routed.input, resumption=resumption)
    if resumption.taken:
        return ResumedTurn(kind="fresh", input=remaining, resumption=resumption)
    content = cut(routed.content, MAX_CONTENT_BYTES)
    draft = Draft(content=content, outcome="answer", response_source="fixed")
    return ResumedTurn(kind="fixed", input=spoken, resumption=resumption, draft=draft)
