"""Tell the watchers what a run is doing, only while it really does it (F-622)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from turngate.domain import wire
from turngate.domain.client_events import ephemeral
from turngate.errors import TransientError
from turngate.protocol.orders import FrameOrder

if TYPE_CHECKING:
    from turngate.domain.shapes import TurnRef
    from turngate.wiring import Ports


def tell_watchers(ports: Ports, turn: TurnRef, type_: str, data: dict[str, Any]) -> None:
    """Ephemeral: a lost status must not cost the customer the answer."""
    frame = ephemeral(
        type_,
        data,
        now=ports.clock.now_ms(),
        conversation=turn.conversation,
        run_id=turn.run,
        epoch=turn.epoch,
    )
    order = FrameOrder(account=turn.account, conversation=turn.conversation, frame=frame)
    with suppress(TransientError):
        ports.events_to_push.send(wire.write(order))
