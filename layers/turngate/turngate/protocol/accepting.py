"""Accept a message: read three items in one request, decide, write one transaction; start the run.

The start may be lost: the run owes it until BeginTurn claims it, and the sweeper starts it again (I8)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from msgspec import Struct

from turngate.domain import keys
from turngate.domain.accept import AcceptResult, Refuse, Replay, Submission, decide_accept
from turngate.domain.rate import RateLimit
from turngate.domain.records import Head
from turngate.errors import ConditionFailedError, RefusedError, TransientError
from turngate.protocol.retrying import attempts

if TYPE_CHECKING:
    from turngate.domain.shapes import TenantContext
    from turngate.ports import Clock, ConversationStore, Ids

_DEFAULT_LIMIT = RateLimit()


class IncomingMessage(Struct, frozen=True):
    """`message.send` as the client sent it, already checked for form and size."""

    client_message_id: str
    text: str
    message_type: str
    conversation: str | None = None
    opening: str | None = None
    language: str = ""


def accept_message(  # the ports it uses, the message, and who sends it
    store: ConversationStore,
    clock: Clock,
    ids: Ids,
    *,
    tenant: TenantContext,
    message: IncomingMessage,
    writer: str,
    limit: RateLimit = _DEFAULT_LIMIT,
) -> AcceptResult:
    """Commit the message, or return what was committed for it before. Raises RefusedError
    (`message_conflict`, `conversation_not_found`, `rate_limited`) and ContentionError."""
    submission = _submission(tenant, message, writer)
    wanted = (
        keys.head(tenant.account, submission.conversation),
        keys.message_idempotency(tenant.account, submission.conversation, submission.client_message_id),
        keys.rate(tenant.account, tenant.principal),
    )
    for _ in attempts(clock, ids, "accept"):
        seen = store.get(tenant.account, wanted)
        head, idempotency, bucket = (seen.get(key) for key in wanted)
        decision = decide_accept(
            submission,
            head=Head.from_item(head) if head is not None else None,
            idempotency=idempotency,
            bucket=bucket,
            now=clock.now_ms(),
            limit=limit,
        )
        if isinstance(decision, Refuse):
            raise RefusedError(decision.code, retry_after_ms=decision.retry_after_ms)
        if isinstance(decision, Replay):
            return decision.result
        try:
            store.write(tenant.account, decision.transaction)
        except (ConditionFailedError, TransientError):
            continue  # somebody was faster; or it was us and the next read finds our own IDEM
        return decision.result
    raise AssertionError("attempts() raises when it is used up")


def _submission(tenant: TenantContext, message: IncomingMessage, writer: str) -> Submission:
    opening = message.opening or message.client_message_id
    conversation = message.conversation or keys.conversation_id_for(tenant.account, tenant.principal, opening)
    body = json.dumps([message.text, message.message_type], ensure_ascii=False)
    return Submission(
        tenant=tenant,
        conversation=conversation,
        is_opening=message.conversation is None,
        client_message_id=message.client_message_id,
        body_sha256=hashlib.sha256(body.encode()).hexdigest(),
        text=message.text,
        message_type=message.message_type,
        language=message.language,
        writer=writer,
    )
