"""BeginTurn: is this execution the run's only one, what is pinned, and does a certain rule answer already?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec.structs import replace

from turngate.domain import run_log, wire
from turngate.domain.begin import Duplicate
from turngate.domain.composing import MAX_CONTENT_BYTES
from turngate.domain.config import AssistantConfig, GovernanceSlice, governance_slice
from turngate.domain.preroute import Answered, fixed_reply, pre_route
from turngate.domain.route_trace import certain_trace
from turngate.domain.shapes import (
    Draft,
    Frozen,
    HistoryMessage,
    Ident,
    InputMessage,
    Language,
    RunEvent,
    TenantContext,
    TurnInput,
    TurnRef,
)
from turngate.domain.texts import cut, detect_language
from turngate.protocol.beginning import Begun, begin_run
from turngate.protocol.configuring import load_config
from turngate.states import working_texts
from turngate.states.status import tell_watchers

if TYPE_CHECKING:
    from turngate.protocol.orders import StartOrder
    from turngate.wiring import Ports


class TurnStart(Frozen):
    """`fixed`: `draft` is the reply. `fresh`: `input` has to be understood. `pending`: questions of ours are open,
    and `input` may answer one. `duplicate`: nothing may be done."""

    kind: Literal["fresh", "fixed", "pending", "duplicate"]
    turn: TurnRef | None = None
    tenant: TenantContext | None = None
    input: TurnInput | None = None
    history: tuple[HistoryMessage, ...] = ()
    governance: GovernanceSlice | None = None
    draft: Draft | None = None
    pending: tuple[Ident, ...] = ()


def begin_turn(order: StartOrder, execution: str, ports: Ports) -> TurnStart:
    """Claim the run; write what the later states read; tell the watchers that it runs."""
    begun = begin_run(
        ports.store,
        ports.clock,
        account=order.account,
        conversation=order.conversation,
        run_id=order.run,
        execution=execution,
    )
    if isinstance(begun, Duplicate):
        return TurnStart(kind="duplicate")
    config = load_config(ports.store, order.account, begun.turn.config_version)
    spoken = TurnInput(messages=begun.messages, language=_language(begun, config), truncated=begun.truncated)
    tenant = begun.run.tenant
    rules, content = _certain_answer(config, spoken, tenant, may_resume=bool(begun.pending))
    fresh = content if isinstance(content, TurnInput) else None
    events = _log(ports.clock.now_ms(), begun, rules)
    items = [run_log.entry(order.account, order.run, event) for event in events]
    if fresh is None:
        trace = certain_trace(spoken.text, rules)
        items.append(working_texts.route_trace(begun.turn, wire.write(trace)))
    ports.store.put_all(order.account, items)
    if fresh is not None:
        started = {"phase": "routing", "config_version": begun.turn.config_version}
        tell_watchers(ports, begun.turn, "run.started", started)
        return TurnStart(
            kind="pending" if begun.pending else "fresh",
            turn=begun.turn,
            tenant=tenant,
            input=fresh,
            history=begun.history,
            governance=governance_slice(config),
            pending=begun.pending,
        )
    said = cut(cast("str", content), MAX_CONTENT_BYTES)
    draft = Draft(content=said, outcome="answer", response_source="fixed")
    return TurnStart(kind="fixed", turn=begun.turn, draft=draft)


def _language(begun: Begun, config: AssistantConfig) -> Language:
    """What the newest chat message is written in; when it has no letters, what the client asked for. A form is
    written by a program: its letters say something only when the client does not."""
    default = cast("Language", begun.language or config.default_language)
    chat = _chat(begun.messages)
    if not chat and begun.language:
        return default
    return detect_language((chat or begun.messages)[-1].text, default)


def _certain_answer(
    config: AssistantConfig, spoken: TurnInput, tenant: TenantContext, *, may_resume: bool
) -> tuple[tuple[str, ...], str | TurnInput]:
    """The rules that answer and their text, or no rule and the input that has to be understood. A message that is not
    chat has its reply only while no chat waits beside it: the question is what the customer wants answered. Open
    questions of ours come before pre-routing (R-04): "谢谢" is pre-routed by ResumePending then."""
    message_type = spoken.messages[-1].message_type
    fixed = fixed_reply(config, message_type, spoken.language)
    chat = _chat(spoken.messages)
    if fixed is not None and not chat:
        return (f"message_type:{message_type}",), fixed
    if may_resume:
        return (), replace(spoken, messages=chat)
    routed = pre_route(config, replace(spoken, messages=chat), tenant)
    if isinstance(routed, Answered):
        return routed.rules, routed.content
    return (), routed.input


def _chat(messages: tuple[InputMessage, ...]) -> tuple[InputMessage, ...]:
    return tuple(message for message in messages if message.message_type == "user_chat")


def _log(now: int, begun: Begun, rules: tuple[str, ...]) -> list[RunEvent]:
    turn = begun.turn
    data: dict[str, Any] = {
        "config_version": turn.config_version,
        "knowledge_pins": turn.knowledge_pins,
        "messages": len(begun.messages),
        "truncated": begun.truncated,
        "execution": turn.execution.rpartition(":")[2],
    }
    events = [RunEvent(step=run_log.STEP_BEGUN, kind="run.running", at=now, data=data)]
    if rules:
        events.append(
            RunEvent(step=run_log.STEP_PREROUTED, kind="route_resolved", at=now, data={"rules": list(rules)})
        )
    return events
