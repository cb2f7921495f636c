"""Carry out orders of the `events-to-push` queue: a stored event, an ephemeral frame, or what a client missed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from turngate.domain import wire
from turngate.protocol.announcing import push_events, push_frame, replay
from turngate.protocol.orders import EventOrder, FrameOrder, PushOrder, ResumeOrder

if TYPE_CHECKING:
    from turngate.wiring import Ports


def carry_out(body: str, ports: Ports) -> int:
    """Carry out one order; the number of frames delivered. Raises TransientError when it may work later."""
    order: PushOrder = wire.read_json(body, PushOrder)
    store, pusher, clock = ports.store, ports.pusher, ports.clock
    match order:
        case EventOrder(account=account, conversation=conversation, evt=evt):
            return push_events(store, pusher, clock, account=account, conversation=conversation, evt=evt)
        case FrameOrder(connection=connection):
            return push_frame(
                store,
                pusher,
                clock,
                account=order.account,
                frame=order.frame,
                conversation=order.conversation,
                connection=wire.write(connection) if connection else None,
            )
        case ResumeOrder():
            return _resume(order, ports)


def _resume(order: ResumeOrder, ports: Ports) -> int:
    store, pusher, clock = ports.store, ports.pusher, ports.clock
    target = wire.write(order.connection)
    delivered = push_frame(store, pusher, clock, account=order.account, frame=order.frame, connection=target)
    if order.conversation is None or order.after_seq >= order.last_seq:
        return delivered
    base = ports.settings.public_http_url.rstrip("/")
    return delivered + replay(
        store,
        pusher,
        clock,
        account=order.account,
        conversation=order.conversation,
        after_seq=order.after_seq,
        last_seq=order.last_seq,
        connection=target,
        fetch_url=f"{base}/v1/conversations/{quote(order.conversation)}/events",
    )
