"""Whole turns as the product's own protocol leaves them, played without a model: the past of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.finish import Ending
from turngate.domain.rate import RateLimit
from turngate.domain.shapes import Draft
from turngate.domain.upkeep import announced
from turngate.protocol.accepting import IncomingMessage, accept_message
from turngate.protocol.beginning import begin_run
from turngate.protocol.finishing import Committed, finish_run

if TYPE_CHECKING:
    from turngate.domain.shapes import TenantContext
    from turngate.ports import Clock, ConversationStore, Ids

UNLIMITED = RateLimit(burst=10**6, per_minute=10**6)


def play_turn(
    store: ConversationStore,
    clock: Clock,
    ids: Ids,
    *,
    tenant: TenantContext,
    ident: str,
    conversation: str | None,
    question: str,
    reply: str,
) -> str:
    """A question and a fixed reply, accepted, begun, committed and announced; the conversation, which the first
    message opens. `ident` is the client's id of the message."""
    message = IncomingMessage(
        client_message_id=ident, text=question, message_type="user_chat", conversation=conversation
    )
    accepted = accept_message(
        store, clock, ids, tenant=tenant, message=message, writer=ident, limit=UNLIMITED
    )
    if accepted.run is None:
        raise ValueError("a conversation that an agent holds cannot be seeded")
    where = {"account": tenant.account, "conversation": accepted.conversation, "run_id": accepted.run}
    begin_run(store, clock, **where, execution="seeded")
    draft = Draft(content=reply, outcome="answer", response_source="fixed")
    ending = Ending(state="completed", by="execution", writer="seeded", draft=draft)
    done = finish_run(store, clock, ids, **where, ending=ending)
    if not isinstance(done, Committed):
        raise TypeError(f"a seeded turn was not committed: {done}")
    for evt in (accepted.evt, done.evt):
        store.write(tenant.account, announced(tenant.account, accepted.conversation, evt))
    return accepted.conversation
