"""I10: whatever Lambda was invoked with may come again, later and in any order, and changes nothing."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.bench import Aim, newcomer
from tests.faults.playing import BY_NAME, settle
from tests.faults.replay import business_state, deliver, differences, digest, recorded, source

BUSY_S = float(os.environ.get("REPLAY_BUSY_S", "6"))
"""How long new conversations begin; `make test-faults` records a whole minute."""
TIMES, SEED = 3, 1
KINDS = {"HTTP", "WebSocket", "SQS", "Lambda (machine)"}


def cancel(bench, customer):
    """The customer stops the turn: the frame is part of the record too."""
    BY_NAME["overtaken"].play(bench, customer)
    accepted = customer.accepted(customer.sent[-1])
    customer._send(
        {
            "v": 1,
            "type": "run.cancel",
            "conversation_id": customer.conversation,
            "run_id": accepted["run_id"],
        }
    )


def busy_conversations(bench, seconds):
    """Customers who ask, overtake themselves, fail, and cancel, for so long; all settled, and still connected."""
    plays = ["turn", "overtaken", "failing", "cancel", "behind a protected run", "unannounced"]
    until = time.monotonic() + seconds
    customers = []

    def one(number):
        if number >= len(plays) and time.monotonic() > until:
            return
        name = plays[number % len(plays)]
        scenario = BY_NAME["overtaken" if name == "cancel" else name]
        aim = Aim(bench, list(scenario.rules), scenario.model_faults())
        customer = newcomer(bench, aim)
        customers.append(customer)
        with bench.busy:
            customer.arrive()
            (cancel if name == "cancel" else scenario.play)(bench, customer)
        settle(bench, scenario, customer, hurry=True)
        aim.lower()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(max(len(plays), int(seconds) * 4))))
    return customers


@pytest.mark.invariant("I10")
def test_every_recorded_event_delivered_three_times_again_changes_nothing(attacked, record_property):
    emulator = attacked.stack.emulator
    emulator.clear_faults()
    already = len(emulator.records("lambda"))
    emulator.keep_events()
    customers = busy_conversations(attacked, BUSY_S)
    emulator.keep_events(False)
    events = recorded(attacked, already)
    kinds = Counter(source(event) for _, event in events)
    assert set(kinds) == KINDS
    before, heard = business_state(attacked), [dict(each.frames) for each in customers]

    outcomes = deliver(attacked, events, TIMES, SEED)
    settle_again(attacked, customers)

    after = business_state(attacked)
    told = (
        f"{len(customers)} conversations, {len(events)} events {dict(kinds)}, {sum(outcomes.values())} deliveries "
        f"{dict(outcomes)}, {len(before)} items, digest {digest(before)[:16]} -> {digest(after)[:16]}"
    )
    record_property("replay", told)
    print(told)  # noqa: T201 - the figures of docs/faults.md
    assert differences(before, after) == []
    assert digest(before) == digest(after)
    assert [each.contradictions for each in customers] == [[] for _ in customers]
    assert [each.frames for each in customers] == heard, "a customer heard an event that was not there before"
    customers[0].say("One more thing", len(customers[0].sent))
    assert differences(after, business_state(attacked)), "a new message must show in what is compared"
    settle_again(attacked, customers[:1])
    for each in customers:
        each.leave()


def settle_again(bench, customers):
    """Executions that were started again have ended as duplicates, and what they sent was pushed."""
    states = bench.stack.emulator.client("stepfunctions")
    machine = bench.stack.outputs["TurnMachineArn"]
    until = time.monotonic() + 120
    while states.list_executions(stateMachineArn=machine, statusFilter="RUNNING")["executions"]:
        assert time.monotonic() < until, "executions still run"
        time.sleep(0.5)
    for each in customers:
        settle(bench, BY_NAME["turn"], each, hurry=True)
