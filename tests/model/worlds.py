"""The explored worlds: small ones that find a missing guard at once, and the large ones of `make test-model`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model import side_scenarios as side
from tests.model.scenarios import (
    LATE_END,
    LATE_START,
    OLD,
    T0,
    cancel,
    conversation,
    execution,
    fail_turn,
    hands,
    human_reply,
    message,
    run_key,
    sweeper,
)

if TYPE_CHECKING:
    from tests.model.stepping import Process, Scenario


def executions(seq: int, count: int = 1) -> list[Process]:
    """`count` starts of the run that message `seq` triggers."""
    names = [f"x{seq}.{n}" for n in range(1, count + 1)]
    return [
        execution(seq, name, twin_of=f"run{seq}/{names[n - 1]}" if n else None)
        for n, name in enumerate(names)
    ]


def deliveries(name: str, count: int) -> list[Process]:
    return [message(name, delivery) for delivery in range(1, count + 1)]


def sweepers(*seqs: int) -> list[Process]:
    return [sweeper(run_key(seq), f"run{seq}") for seq in seqs]


TAKEOVER = hands("takeover", 0)
BOTH_DELIVERED_TWICE = [*deliveries("m1", 2), *deliveries("m2", 2)]

DOUBLE_DELIVERY = conversation(
    "1 message, 2 deliveries, 2 starts, a lost response", *deliveries("m1", 2), *executions(1, 2), losses=1
)
DOUBLE_TEXTING = conversation(
    "2 messages, a lost response",
    *deliveries("m1", 1),
    *deliveries("m2", 1),
    *executions(1),
    *executions(2),
    losses=1,
)
DUPLICATE_STARTS = conversation(
    "2 messages, every run started twice", message("m1"), message("m2"), *executions(1, 2), *executions(2, 2)
)
TORN_DELIVERY = conversation("2 deliveries, torn reads", *deliveries("m1", 2), *executions(1), torn=True)
TAKEN_OVER = conversation(
    "2 messages against a takeover", message("m1"), message("m2"), *executions(1), *executions(2), TAKEOVER
)
CANCELLED = conversation(
    "2 messages, 2 cancels",
    message("m1"),
    message("m2"),
    *executions(1),
    *executions(2),
    cancel(1),
    cancel(1, "stop2"),
)
LATE_WORKER = conversation(
    "a worker wakes up beside its own retry",
    message("m1"),
    execution(1, "x1", process="run1/x1"),
    execution(1, "x1", fails=True, process="run1/x1 again"),
    losses=1,
)
FAILED_ELSEWHERE = conversation(
    "another execution's FailTurn", message("m1"), execution(1, "x1"), fail_turn(1, "x2"), fail_turn(1, "x3")
)
EARLY_SWEEPER = conversation(
    "a sweeper comes early",
    message("m1"),
    *executions(1),
    sweeper(run_key(1), "run1"),
    times=(T0, LATE_START),
)
FOUR_MESSAGES = conversation("4 messages", *(message(f"m{n}") for n in (1, 2, 3, 4)))
TORN_CANCEL = conversation(
    "2 messages and a cancel, torn reads",
    message("m1"),
    message("m2"),
    *executions(1),
    *executions(2),
    cancel(1),
    torn=True,
)
SWEPT = conversation(
    "2 messages against two sweepers",
    message("m1"),
    message("m2"),
    *executions(1),
    sweeper(run_key(1), "run1"),
    sweeper(run_key(1), "run1", 2),
    times=(T0, LATE_END),
)
HANDED_OVER = conversation(
    "takeover, reply and release, each sent twice",
    message("m1"),
    *executions(1),
    *executions(2),
    TAKEOVER,
    human_reply(),
    human_reply(copy=2),
    hands("release", 1),
    hands("release", 1, copy=2),
)
TWO_AGENTS = conversation(
    "two agents, two takeovers, two releases",
    message("m1"),
    TAKEOVER,
    hands("takeover", 0, "cy"),
    hands("release", 1),
    hands("release", 1, "cy"),
    human_reply(),
    hands("takeover", 2, "cy"),
)
PROTECTED = conversation(
    "3 messages, the second protected by age, a cancel",
    message("m1"),
    message("m2"),
    message("m3"),
    *executions(2),
    *executions(4),
    cancel(2),
    times=(T0, OLD),
)
PROTECTED_BY_COUNT = conversation(
    "5 messages, the fourth protected by count",
    *(message(f"m{n}") for n in range(1, 6)),
    *executions(4),
    *executions(6),
)

SMALL: tuple[Scenario, ...] = (
    DOUBLE_DELIVERY,
    DOUBLE_TEXTING,
    DUPLICATE_STARTS,
    TORN_DELIVERY,
    TAKEN_OVER,
    CANCELLED,
    LATE_WORKER,
    FAILED_ELSEWHERE,
    EARLY_SWEEPER,
    FOUR_MESSAGES,
    TORN_CANCEL,
    SWEPT,
    HANDED_OVER,
    TWO_AGENTS,
    PROTECTED,
    side.PICK_UP,
    side.LOST_START,
    side.TICKET_REUSED,
    side.TICKET_EXPIRED,
    side.TICKET_TWICE_ISSUED,
    side.MODEL_CALLS,
    side.MORE_MODEL_CALLS,
    side.FIRST_TOKEN,
    side.LAST_TOKEN,
    side.PUSH_AND_DELETE,
)

LARGE: tuple[Scenario, ...] = (
    conversation(
        "3 messages x 1 delivery",
        *(message(f"m{n}") for n in (1, 2, 3)),
        *executions(1),
        *executions(2),
        *executions(3),
        losses=1,
    ),
    PROTECTED_BY_COUNT,
    conversation(
        "protected by age: cancel and takeover",
        *(message(f"m{n}") for n in (1, 2, 3)),
        *executions(1),
        *executions(2),
        *executions(4),
        cancel(2),
        TAKEOVER,
        times=(T0, OLD),
    ),
    conversation("2 x 2 deliveries, 2 starts", *BOTH_DELIVERED_TWICE, *executions(1, 2), *executions(2, 2)),
    conversation(
        "2 x 2 deliveries, a lost response", *BOTH_DELIVERED_TWICE, *executions(1), *executions(2), losses=1
    ),
    conversation(
        "2 x 2 deliveries, 2 starts, takeover",
        *BOTH_DELIVERED_TWICE,
        *executions(1, 2),
        *executions(2, 2),
        TAKEOVER,
    ),
    conversation(
        "2 messages, takeover, sweepers, a loss",
        message("m1"),
        message("m2"),
        *executions(1),
        *executions(2),
        TAKEOVER,
        *sweepers(1, 2),
        times=(T0, LATE_END),
        losses=1,
    ),
    conversation(
        "2 messages, 2 starts, sweepers",
        message("m1"),
        message("m2"),
        *executions(1, 2),
        *executions(2, 2),
        *sweepers(1, 2),
        times=(T0, LATE_END),
    ),
    conversation(
        "2 x 2 deliveries, takeover, sweepers",
        *BOTH_DELIVERED_TWICE,
        *executions(1),
        *executions(2),
        TAKEOVER,
        *sweepers(1, 2),
        times=(T0, LATE_END),
    ),
)
