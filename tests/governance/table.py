"""The table of utterances, and one row's way through the product's own rules: pre-routing, resuming, governance.

Understanding is given from outside: scripted, or by the offline demo model. So what governance does can be shown
apart from what a model understands."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turngate.adapters.memory.edges import FixedClock
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys, wire
from turngate.domain.config import AssistantConfig, GovernanceSlice, governance_slice
from turngate.domain.governance import Ruling, govern
from turngate.domain.pending import PendingItem, stored
from turngate.domain.preroute import Answered, pre_route
from turngate.domain.resuming import Resumption
from turngate.domain.shapes import InputMessage, Option, TenantContext, TurnInput, TurnRef
from turngate.states.resume_pending import ResumeRequest, resume_pending
from turngate.wiring import Ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turngate.domain.route_trace import PartRuling, RouteTrace
    from turngate.domain.shapes import Understanding

    Understands = Callable[[TurnInput, GovernanceSlice, Resumption], Understanding]

HERE = Path(__file__).resolve().parent
NOW = 1_900_000_000_000
CONFIGS = {
    "mall": HERE.parents[1] / "examples" / "mall" / "config.json",
    "cashier": HERE / "cashier.json",
}
SPEAKERS: dict[str, dict[str, Any]] = {
    "customer": {"customer": "C-1009"},
    "guest": {},
    "terminal": {"customer": "C-1009", "client_type": "android", "capabilities": ("ui.show_guide",)},
}


@dataclass(frozen=True)
class Row:
    """One line of a table; the columns are explained at the head of utterances.csv."""

    id: str
    tenant: str
    before: str
    speaker: str
    language: str
    utterance: str
    ruling: str
    resource: str
    reply: str
    features: str

    @property
    def expected(self) -> tuple[str, str, str]:
        return self.ruling, self.resource, self.reply

    @property
    def as_compared(self) -> tuple[str, str, str]:
        """A plain cancel is ruled ROUTED to a fixed answer; the blind half writes "-" for that."""
        ruling = "ROUTED" if (self.ruling, self.reply) == ("-", "cancel") else self.ruling
        return ruling, self.resource, self.reply


def rows(name: str = "utterances") -> list[Row]:
    with (HERE / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        return [Row(**row) for row in csv.DictReader(line for line in lines if not line.startswith("#"))]


@cache
def governed(tenant: str) -> GovernanceSlice:
    return governance_slice(wire.read_json(CONFIGS[tenant].read_text(encoding="utf-8"), AssistantConfig))


def speaker(row: Row) -> TenantContext:
    return wire.read(
        {"account": row.tenant, "principal": f"user:{row.speaker}", **SPEAKERS[row.speaker]}, TenantContext
    )


def _item(kind: str, text: str, question: str, **more: object) -> PendingItem:
    return wire.read(
        {
            "pending_id": f"q-{kind}",
            "kind": kind,
            "text": text,
            "question": question,
            "resume_token": f"w-{kind}",
            "run": "r0",
            "asked_seq": 1,
            "expires_at": NOW + 60_000,
            **more,
        },
        PendingItem,
    )


BEFORE = {
    "two_watches": _item(
        "entity_choice",
        "两块手表都符合，请选择：\n1. Turngate Watch S3\n2. Turngate Watch Lite",
        "我上个月买的手表还在保吗",
        intent_id="WARRANTY_STATUS",
        missing_fields=("device_sn",),
        candidates=(
            Option(id="W-S3", name="Turngate Watch S3"),
            Option(id="W-LITE", name="Turngate Watch Lite"),
        ),
    ),
    "return_or_exchange": _item(
        "intent_guidance",
        "您想问的是下面哪一项？可以回复序号。\n1. 退货与退款政策\n2. 质量问题换货",
        "刚买的手机有问题想处理",
        candidates=(
            Option(id="RETURN_POLICY", name="退货与退款政策", also=("Return and refund policy",)),
            Option(id="EXCHANGE_POLICY", name="质量问题换货", also=("Exchange of faulty items",)),
        ),
    ),
    "order_number": _item(
        "missing_parameter",
        "请提供订单号。",
        "我的包裹到哪了",
        intent_id="LOGISTICS_QUERY",
        missing_fields=("order_no",),
    ),
}


def ruled(
    row: Row, understands: Understands, slice_: GovernanceSlice | None = None
) -> tuple[tuple[str, str, str], Ruling | None]:
    """(ruling, resource, reply) as the table writes them, and the ruling itself (None: pre-routed). `slice_` stands in
    for the tenant's own."""
    slice_, tenant = slice_ or governed(row.tenant), speaker(row)
    spoken = wire.read(
        {"messages": [{"message_seq": 2, "text": row.utterance}], "language": row.language}, TurnInput
    )
    resumption: Resumption | None = None
    if row.before == "-":
        routed = pre_route(slice_, spoken, tenant)
        if isinstance(routed, Answered):
            return ("ROUTED", " + ".join(f"rule:{rule}" for rule in routed.rules), "-"), None
        spoken = routed.input
    else:
        resumed = _resume(row, spoken)
        resumption, spoken = resumed.resumption, resumed.input
        if resumed.kind == "resumed":
            ruling = govern(spoken, None, slice_, tenant, resumption)
            return columns(row, ruling.trace), ruling
        if resumed.kind == "fixed":
            return ("ROUTED", "rule", "new"), None
    understanding = understands(spoken, slice_, resumption or Resumption())
    ruling = govern(spoken, understanding, slice_, tenant, resumption)
    return columns(row, ruling.trace), ruling


def _resume(row: Row, spoken: TurnInput):  # type: ignore[no-untyped-def]  # ResumedTurn, named by the state
    store, item = MemoryConversationStore(), BEFORE[row.before]
    store.put_all(row.tenant, [(keys.pending(row.tenant, "c1", item.pending_id), stored(item))])
    turn = TurnRef(
        account=row.tenant,
        conversation="c1",
        run="r1",
        execution="x",
        epoch=1,
        seq=2,
        config_version=1,
        deadline=NOW + 60_000,
    )
    request = ResumeRequest(
        turn=turn,
        tenant=speaker(row),
        input=spoken,
        governance=governed(row.tenant),
        pending=(item.pending_id,),
    )
    return resume_pending(request, Ports(store=store, clock=FixedClock(NOW)))


def columns(row: Row, trace: RouteTrace) -> tuple[str, str, str]:
    """What a trace says, as the table writes it."""
    parts, reply = trace.parts, "-"
    if row.before != "-":
        reply = next((_reply(part) for part in parts if part.resumed is not None), "new")
    return " + ".join(p.outcome for p in parts), " + ".join(_resource(p) for p in parts), reply


def _reply(part: PartRuling) -> str:
    assert part.resumed is not None
    how = part.resumed.how
    return {"choice": f"choice:{part.resumed.option_id}", "value": f"value:{part.resumed.value}"}.get(
        how, how
    )


def _resource(part: PartRuling) -> str:
    if part.fallback:
        return "public"
    if part.contract is not None:
        return part.contract.resource_name
    certain = part.route_kind == "FIXED" and part.resumed is None
    rules = part.resource_name.split(",") if certain else []
    return " + ".join(f"rule:{rule}" for rule in rules) or "-"


def said(*texts: str, language: str = "zh-CN") -> TurnInput:
    messages = tuple(InputMessage(message_seq=n, text=text) for n, text in enumerate(texts, start=1))
    return wire.read({"messages": messages, "language": language}, TurnInput)


def read_script(name: str) -> Iterator[tuple[str, list[tuple[str, dict[str, float]]]]]:
    """(row id, sub-questions with scored intents) of a script."""
    for key, subs in json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")).items():
        yield key, [(text, scores) for text, scores in subs]
