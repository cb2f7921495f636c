"""Working texts of a run: evidence, route trace. They live in the run's own partition, and expire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from turngate.domain import keys, wire
from turngate.domain.packing import pack, unpack
from turngate.domain.run_log import WORK_RETENTION_S
from turngate.domain.shapes import Evidence

if TYPE_CHECKING:
    from turngate.domain.shapes import TurnRef
    from turngate.domain.transaction import Item, Key
    from turngate.ports import ConversationStore


def evidence(turn: TurnRef, part: str, pieces: tuple[Evidence, ...]) -> tuple[Key, Item]:
    return _work(turn, part, "evidence", [wire.write(piece) for piece in pieces])


def route_trace(turn: TurnRef, trace: dict[str, Any]) -> tuple[Key, Item]:
    return _work(turn, "-", "route", trace)


def read_evidence(store: ConversationStore, turn: TurnRef, parts: tuple[str, ...]) -> tuple[Evidence, ...]:
    """Evidence of these parts, in their order; one request."""
    wanted = [keys.working(turn.account, turn.run, part, "evidence") for part in parts]
    if not wanted:
        return ()
    found = store.get(turn.account, wanted)
    return tuple(
        piece
        for key in wanted
        if key in found
        for piece in wire.read_json(unpack(found[key]["text"]), tuple[Evidence, ...])
    )


def _work(turn: TurnRef, part: str, name: str, content: object) -> tuple[Key, Item]:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    item: Item = {"entity": "work", "text": pack(text), "ttl": turn.deadline // 1000 + WORK_RETENTION_S}
    return keys.working(turn.account, turn.run, part, name), item
