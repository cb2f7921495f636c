"""Everybody double-texts, every execution is started twice, and every tenth Lambda invocation is killed.

The default size fits `make test`; the full one (docs/measured.md) is
`STORM_CONVERSATIONS=40 STORM_ROUNDS=5 pytest tests/stack/test_storm.py`. `STORM_AT_ONCE` customers talk at the same
time: each killed worker is a cold start, of which a small machine makes two at once.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from local.chat_client import ChatError
from tests.protocol.promises import OPEN, violations
from turngate.domain import keys
from turngate.domain.accept import TURN_DEADLINE_MS

CONVERSATIONS = int(os.environ.get("STORM_CONVERSATIONS", "6"))
ROUNDS = int(os.environ.get("STORM_ROUNDS", "2"))
AT_ONCE = int(os.environ.get("STORM_AT_ONCE", "2"))
SEED = int(os.environ.get("STORM_SEED", "1"))
KILLED = 0.10
LEAST_COMMITS = 0.30
SWEEP_EVERY_S = 30.0
RESEND_AFTER_S = 5.0
COVERED_WITHIN_MS = 2 * TURN_DEADLINE_MS + 120_000
"""I8, also behind a protected run."""
QUESTIONS = (
    ("How long do refunds take?", "And who pays for the return parcel?"),
    ("七天无理由退货怎么算？", "退款多久到账？"),
    ("hello", "How do I get an electronic invoice?"),
    ("What will the weather be tomorrow?", "How long is the warranty?"),
    ("谢谢", "保修期是多久？"),
)


@dataclass
class Told:
    """What one customer did and heard."""

    conversation: str = ""
    sent: list[str] = field(default_factory=list)
    resent: int = 0


@pytest.mark.invariant("I1", "I2", "I7", "I8", "I18")
def test_nothing_is_lost_said_twice_or_out_of_order(world, report):
    emulator = world.stack.emulator
    talkers = [(world.guest(), random.Random(f"{SEED}-{n}")) for n in range(CONVERSATIONS)]
    emulator.clear_faults(SEED)
    emulator.add_fault(action="duplicate", service="states", operation="StartExecution")
    share = KILLED / 3
    emulator.add_fault(action="kill_before", probability=share)
    emulator.add_fault(action="kill_during", probability=share / (1 - share), seconds=0.2)
    emulator.add_fault(action="kill_after", probability=share / (1 - 2 * share))
    seen, began = len(emulator.records()), time.monotonic()
    with sweeping(world), ThreadPoolExecutor(AT_ONCE) as pool:
        told = list(pool.map(lambda talker: talk(world, *talker), talkers))
        took = time.monotonic() - began
        finish(world, told)
        faults = emulator.faults()
    emulator.clear_faults()
    records = emulator.records()[seen:]
    found = summary(world, told, records, faults)
    report(f"storm of {CONVERSATIONS} conversations: {took:.0f} s, {dict(found)}")
    assert found["messages"] == CONVERSATIONS * ROUNDS * 2
    assert found["started twice"] == found["starts"] - found["started twice"] > 0
    assert found["killed"] > 0.05 * found["invocations"]
    assert found["commits"] >= LEAST_COMMITS * found["runs"]


def talk(world, person, rng):
    """One customer: two messages a round, the second before the first is answered; resends what was not accepted."""
    told = Told()
    chat = insist(person.chat)
    for _ in range(ROUNDS):
        idents = []
        for text in rng.choice(QUESTIONS):
            idents.append(chat.say(text))
            time.sleep(rng.uniform(0, 0.4))
            told.sent.append(idents[-1])
            told.resent += until_accepted(world, chat, idents[-1], text)
        told.conversation = chat.conversation
        last = accepted_seq(world, chat.conversation, idents[-1])
        answered = keys.head("mall", chat.conversation)
        world.wait(
            lambda answered=answered, last=last: world.get("mall", answered)["answered_through"] >= last,
            f"an answer to message {last} of {chat.conversation}",
            COVERED_WITHIN_MS / 1000,
        )
    return told


def until_accepted(world, chat, ident, text):
    """Resend until an acceptance is heard, as a client does; the number of resends."""
    for resent in range(12):
        deadline = time.monotonic() + RESEND_AFTER_S * min(8, 1.5**resent)
        while time.monotonic() < deadline:
            heard = [*chat.log(), *chat.ephemeral]
            if any(
                f["type"] == "message.accepted" and f["data"]["client_message_id"] == ident for f in heard
            ):
                return resent
            time.sleep(0.05)
        chat.say(text, client_message_id=ident)
    raise ChatError(f"{ident} was never accepted")


def accepted_seq(world, conversation, ident):
    return world.get("mall", keys.message_idempotency("mall", conversation, ident))["seq"]


def insist(connect):
    """Connect as a client does: again, when the gateway's Lambdas died on the way."""
    for _ in range(20):
        try:
            return connect()
        except Exception as error:
            last = error
            time.sleep(0.2)
    raise last


class sweeping:
    """The schedule, at a test's pace."""

    def __init__(self, world):
        self._world, self._done = world, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_error):
        self._done.set()
        self._thread.join(30)

    def _run(self):
        while not self._done.wait(SWEEP_EVERY_S):
            self._world.sweep()


def finish(world, told):
    """Every run ended, every event pushed or owed by nobody."""
    for each in told:
        world.wait(
            lambda each=each: not open_debts(world, each.conversation),
            f"the end of {each.conversation}",
            COVERED_WITHIN_MS / 1000,
        )


def open_debts(world, conversation):
    items = world.partition(keys.conversation("mall", conversation))
    return [key.sk for key, item in items.items() if "GSI1PK" in item]


def summary(world, told, records, faults):
    found = Counter()
    for each in told:
        items = world.conversation(each.conversation)
        assert violations(items) == []
        runs = sorted(
            (item for key, item in items.items() if key.sk.startswith("RUN#")), key=lambda run: run["seq"]
        )
        messages = {
            item["seq"]: item
            for key, item in items.items()
            if key.sk.startswith("MSG#") and key.sk.endswith("#U")
        }
        assert len(messages) == len(each.sent), "a message was lost or stored twice"
        for seq, message in messages.items():
            ends = [run for run in runs if run["seq"] >= seq and run["state"] not in ("superseded", *OPEN)]
            assert ends, f"message {seq} of {each.conversation} is covered by no ending"
            waited = ends[0]["ended_at"] - message["at"]
            assert waited <= COVERED_WITHIN_MS
            found["longest wait ms"] = max(found["longest wait ms"], waited)
        found["messages"] += len(messages)
        found["runs"] += len(runs)
        found["resent"] += each.resent
        for run in runs:
            found["commits" if run["state"] == "completed" else run["state"]] += 1
    executions = {r["execution"] for r in records if r["kind"] == "state"}
    worked = {r["execution"] for r in records if r["kind"] == "state" and r["name"] == "ChooseEnding"}
    found["starts"] = len(executions)
    found["executions without an ending"] = len(executions - worked)
    found["invocations"] = sum(record["kind"] == "lambda" for record in records)
    found["killed"] = sum(
        each["injected"] for each in faults.values() if each["rule"]["action"].startswith("kill")
    )
    found["started twice"] = sum(
        each["injected"] for each in faults.values() if each["rule"]["action"] == "duplicate"
    )
    return found
