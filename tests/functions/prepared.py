"""The world that events/ speak of: Ann has asked something, Bob has a conversation of his own, tokens lie about."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from functions.turn.begin_turn import handler as begin_turn
from tests.machines.aws_events import CONNECTED_AT, CONTEXT
from tests.machines.tenant import ACCOUNT, GUEST
from tests.machines.world import ROOT
from tests.protocol.world import START
from turngate.domain import keys
from turngate.domain.fence import NO_ACCOUNT
from turngate.domain.shapes import TenantContext

if TYPE_CHECKING:
    from pathlib import Path

    from tests.machines.world import TurnWorld

EVENTS = ROOT / "events"
ANN = TenantContext(account=ACCOUNT, principal="user:ann", customer="C-1009")
BOB = TenantContext(account=ACCOUNT, principal="user:bob", customer="C-2")
SOCKET = "conn-ann="
NEED_A_BEGUN_RUN = {"resume_pending", "model", "retrieve", "commit_turn", "fail_turn"}


def prepare(world: TurnWorld, function: str) -> TurnWorld:
    """Everything the events of `function` refer to; the queues are empty afterwards."""
    world.open_socket(ANN, SOCKET)
    opening = {"type": "message.send", "client_message_id": "m-1", "text": "May I return it?"}
    world.send(opening, ANN, SOCKET)
    world.conversation = keys.conversation_id_for(ACCOUNT, ANN.principal, "m-1")
    world.send({**opening, "client_message_id": "b-1"}, BOB, "conn-bob=")
    for name, entity, life in (
        ("ticket-valid", "ticket", 60_000),
        ("ticket-expired", "ticket", -1),
        ("guest.valid", "guest", 60_000),
        ("guest.expired", "guest", -1),
    ):
        tenant = ANN if entity == "ticket" else GUEST
        key = keys.ticket(hashlib.sha256(name.encode()).hexdigest())
        kept = {"entity": entity, "tenant": tenant.known()}
        world.store.put_all(NO_ACCOUNT, [(key, {**kept, "expires_at": START + life})])
    world.pusher.gone.add("conn-gone=")
    world.pusher.failing.add("conn-failing=")
    if function in NEED_A_BEGUN_RUN:
        begin_turn.lambda_handler(read(EVENTS / "begin_turn" / "queued.json"), CONTEXT)
    world.pushes.sent.clear()
    world.starter.started.clear()
    assert CONNECTED_AT == START - 60_000
    return world


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
