"""The transitions beside the turn: tickets, paying for model calls, the rate of a principal, announcing.

Some promises here are about what a caller does after it was told yes (open a connection, make a model call). Such a
process then leaves a mark in the table, and the judges count marks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.model.scenarios import (
    ACCOUNT,
    ANN,
    CONFIGURED,
    CONVERSATION,
    GENEROUS,
    HEAD,
    LATE_START,
    T0,
    conversation,
    execution,
    hands,
    human_reply,
    judge_move,
    message,
    run_id,
    run_key,
    sweeper,
)
from tests.model.stepping import Phase, Ports, Process, Scenario
from tests.protocol.promises import forbidden_moves, violations
from turngate.adapters.memory.edges import FixedClock, MemoryPusher, SeededIds
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.rate import RateLimit
from turngate.domain.shapes import TenantContext, TurnRef
from turngate.domain.transaction import Delete, Item, Key, Put, Transaction
from turngate.protocol.accepting import IncomingMessage, accept_message
from turngate.protocol.announcing import push_events
from turngate.protocol.beginning import begin_run
from turngate.protocol.connecting import TICKET_TTL_MS, issue_ticket, redeem_ticket
from turngate.protocol.handing_over import change_hands
from turngate.protocol.spending import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EVE = TenantContext(account=ACCOUNT, principal="eve")


def mark(account: str, key: Key, then: Callable[[Any], bool]) -> Callable[[Any], Phase | None]:
    """Leave a mark when the caller was told yes."""

    def phase(outcome: Any) -> Phase | None:
        if not then(outcome):
            return None

        def run(ports: Ports) -> None:
            ports.store.write(account, Transaction("mark", (Put("mark", key, {"marked": True}),)))

        return Phase(f"mark {key.sk}", run)

    return phase


# ---- tickets


def _issued() -> dict[Key, Item]:
    store = MemoryConversationStore()
    issue_ticket(store, FixedClock(T0), _SameToken(), ANN)
    return store.snapshot()


class _SameToken(SeededIds):
    """Random numbers that repeat: what 256 bits make improbable, the condition makes harmless."""

    def __init__(self) -> None:
        super().__init__(0)

    def token(self) -> str:
        return "token"


def _redeem(name: str) -> Process:
    def run(ports: Ports) -> Any:
        return redeem_ticket(ports.store, ports.clock, "token")

    opened = mark(
        ACCOUNT, Key(f"T#{ACCOUNT}#OPENED", name), lambda outcome: isinstance(outcome, TenantContext)
    )
    return Process(f"connect {name}", Phase(f"redeem {name}", run, opened, forgets=False))


def _issue(tenant: TenantContext) -> Process:
    def run(ports: Ports) -> Any:
        return issue_ticket(ports.store, ports.clock, _SameToken(), tenant)

    return Process(
        f"ticket for {tenant.principal}",
        Phase(f"issue {tenant.principal}", run, forgets=False, reads_clock_first=True),
    )


def _opened_once(items: Mapping[Key, Item]) -> list[str]:
    opened = [key.sk for key in items if key.pk.endswith("#OPENED")]
    return [f"one ticket opened {opened}"] if len(opened) > 1 else []


def _a_ticket_keeps_its_owner(before: Mapping[Key, Item], after: Mapping[Key, Item]) -> list[str]:
    key = next((k for k in before if k.pk.startswith("TKT#")), None)
    kept = key is None or key not in after or after[key]["tenant"] == before[key]["tenant"]
    return [] if kept else ["I6: a ticket changed its owner"]


TICKET_REUSED = Scenario(
    "a ticket used twice", (_redeem("a"), _redeem("b")), _issued(), _opened_once, lambda *_: []
)
TICKET_EXPIRED = Scenario(
    "an expired ticket",
    (_redeem("a"),),
    _issued(),
    lambda items: ["an expired ticket opened"] if any(key.pk.endswith("#OPENED") for key in items) else [],
    lambda *_: [],
    times=(T0 + TICKET_TTL_MS + 1,),
)
TICKET_TWICE_ISSUED = Scenario(
    "the same ticket issued twice", (_issue(ANN), _issue(EVE)), {}, lambda _: [], _a_ticket_keeps_its_owner
)


# ---- model calls


def _begun() -> dict[Key, Item]:
    store = MemoryConversationStore()
    for key, item in CONFIGURED.items():
        store.put_all(ACCOUNT, [(key, item)])
    said = IncomingMessage("m1", "m1", "user_chat", opening="m1")
    clock, ids = FixedClock(T0), SeededIds(1)
    accept_message(store, clock, ids, tenant=ANN, message=said, writer="w", limit=GENEROUS)
    begin_run(store, clock, account=ACCOUNT, conversation=CONVERSATION, run_id=run_id(1), execution="x1")
    return store.snapshot()


_TURN = TurnRef(
    account=ACCOUNT,
    conversation=CONVERSATION,
    run=run_id(1),
    execution="x1",
    epoch=1,
    seq=1,
    config_version=1,
    deadline=T0 + 10**9,
)


def _model_call(name: str) -> Process:
    def run(ports: Ports) -> Any:
        return spend(ports.store, ports.clock, ports.ids, turn=_TURN, expected=0)

    def check(outcome: Any, items: Mapping[Key, Item], _: int) -> list[str]:
        budget = items.get(keys.budget(ACCOUNT, run_id(1)), {})
        return ["I15: a stopped run was allowed a call"] if outcome is None and "stopped" in budget else []

    called = mark(ACCOUNT, Key(f"T#{ACCOUNT}#CALLED", name), lambda outcome: outcome is None)
    return Process(
        f"model {name}", Phase(f"spend {name}", run, called, check, forgets=False, reads_clock_first=True)
    )


def _calls_are_counted(items: Mapping[Key, Item]) -> list[str]:
    made = sum(key.pk.endswith("#CALLED") for key in items)
    counted = items.get(keys.budget(ACCOUNT, run_id(1)), {}).get("model_calls", 0)
    made += 1 if Key(f"T#{ACCOUNT}#EARLIER", "call") in items else 0
    return [f"I15: {made} calls, {counted} counted"] if made > counted else []


def _counts_only_grow(before: Mapping[Key, Item], after: Mapping[Key, Item]) -> list[str]:
    key = keys.budget(ACCOUNT, run_id(1))
    one, other = (items.get(key, {}) for items in (before, after))
    found = []
    if other.get("model_calls", 0) < one.get("model_calls", 0):
        found.append("I15: a counted call was forgotten")
    if "stopped" in one and other.get("model_calls", 0) > one.get("model_calls", 0):
        found.append("I15: a stopped run counted a call")
    return found


MODEL_CALLS = conversation(
    "model calls against a newer message",
    _model_call("a"),
    _model_call("b"),
    message("m2"),
    table=_begun(),
    judge=lambda items: [*_calls_are_counted(items), *violations(items)],
    judge_move=lambda before, after: [*_counts_only_grow(before, after), *judge_move(before, after)],
    losses=1,
)
MORE_MODEL_CALLS = replace(
    MODEL_CALLS,
    name="model calls after a first one",
    processes=MODEL_CALLS.processes[:2],
    table={
        **_begun(),
        keys.budget(ACCOUNT, run_id(1)): {"model_calls": 1},
        Key(f"T#{ACCOUNT}#EARLIER", "call"): {"marked": True},
    },
)


# ---- rates


def _first_of(name: str) -> Process:
    """A message that opens a conversation of its own; the principal may send one."""

    def run(ports: Ports) -> Any:
        return accept_message(
            ports.store,
            ports.clock,
            ports.ids,
            tenant=ANN,
            message=IncomingMessage(name, name, "user_chat", opening=name),
            writer=name,
            limit=RateLimit(burst=1, per_minute=1),
        )

    return Process(name, Phase(f"accept {name}", run, forgets=False))


def _one_message(items: Mapping[Key, Item]) -> list[str]:
    said = [key for key in items if key.sk.startswith("MSG#")]
    return [f"I15: {len(said)} messages for one token"] if len(said) > 1 else []


_BUCKET = {keys.rate(ACCOUNT, "ann"): {"entity": "rate", "tokens": 1000, "at": T0, "version": 3}}
FIRST_TOKEN = Scenario(
    "two conversations, a fresh bucket",
    (_first_of("a"), _first_of("b")),
    CONFIGURED,
    _one_message,
    forbidden_moves,
)
LAST_TOKEN = replace(FIRST_TOKEN, name="two conversations, one token left", table={**CONFIGURED, **_BUCKET})


# ---- announcing


def _push() -> Process:
    def run(ports: Ports) -> Any:
        return push_events(
            ports.store, MemoryPusher(), ports.clock, account=ACCOUNT, conversation=CONVERSATION, evt=1
        )

    return Process("push", Phase("push 1", run, forgets=False))


def _delete_events() -> Process:
    """What the deletion of a conversation will do."""
    key = keys.events(ACCOUNT, CONVERSATION, 1)

    def run(ports: Ports) -> None:
        ports.store.write(ACCOUNT, Transaction("delete", (Delete("events", key),)))

    return Process("delete", Phase("delete", run))


def _no_stubs(items: Mapping[Key, Item]) -> list[str]:
    return [
        f"{key.sk} came back empty"
        for key, item in items.items()
        if key.sk.startswith("EVT#") and "events" not in item
    ]


def _accepted() -> dict[Key, Item]:
    return {key: item for key, item in _begun().items() if key.sk.startswith("EVT#")}


PUSH_AND_DELETE = Scenario(
    "a push meets a deletion", (_push(), _delete_events()), _accepted(), _no_stubs, lambda *_: []
)

LOST_START = conversation(
    "a lost start, two sweepers and the start after all",
    message("m1"),
    execution(1, "x1"),
    sweeper(run_key(1), "run1"),
    sweeper(run_key(1), "run1", 2),
    times=(T0, LATE_START),
)


# ---- pick-up


def _waiting() -> dict[Key, Item]:
    """HUMAN mode without an agent, as a hand-off by the AI leaves it."""
    store = MemoryConversationStore()
    for key, item in _begun().items():
        store.put_all(ACCOUNT, [(key, item)])
    ports = (store, FixedClock(T0), SeededIds(1))
    change_hands(
        *ports, account=ACCOUNT, conversation=CONVERSATION, change="takeover", term=0, agent="nobody"
    )
    items = store.snapshot()
    items[HEAD] = {name: value for name, value in items[HEAD].items() if name != "agent"}
    return items


def _agents_are_not_replaced(before: Mapping[Key, Item], after: Mapping[Key, Item]) -> list[str]:
    one, other = before.get(HEAD, {}), after.get(HEAD, {})
    found = []
    if "agent" in one and "agent" in other and one["agent"] != other["agent"]:
        found.append(f"I4: {other['agent']} took the conversation from {one['agent']}")
    if other.get("mode") == "AI" and "agent" in other:
        found.append("I4: the AI's conversation has an agent")
    return found


PICK_UP = conversation(
    "two agents pick up what waits",
    hands("accept_handoff", 1),
    hands("accept_handoff", 1, copy=2),
    hands("accept_handoff", 1, "cy"),
    hands("release", 1),
    human_reply(),
    message("m2"),
    table=_waiting(),
    judge_move=lambda before, after: [*judge_move(before, after), *_agents_are_not_replaced(before, after)],
)
