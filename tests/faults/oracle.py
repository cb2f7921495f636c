"""The verdict on one conversation: what its items and its customer's log must say, whatever was broken meanwhile."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tests.faults.customer import ENDINGS
from tests.protocol.promises import OPEN, SPEAKING_ENDS, violations
from turngate.domain.accept import TURN_DEADLINE_MS
from turngate.domain.client_events import stored_frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.faults.customer import Customer
    from turngate.domain.transaction import Item, Key

GRACE_MS = 120_000
"""I8: deadline + 120 s, twice the deadline behind a protected run."""


def is_settled(items: Mapping[Key, Item]) -> bool:
    """No run is open and nothing is owed."""
    return bool(items) and not any(
        item.get("state") in OPEN or "GSI1SK" in item for key, item in items.items() if "#C#" in key.pk
    )


def verdict(items: Mapping[Key, Item], customer: Customer) -> list[str]:
    """Broken promises, in words; empty when all are kept."""
    found = violations(items) + list(customer.contradictions)
    for check in (_in_time, _heard, _one_ending, _run_logs, _remembered):
        found += [f"{check.__name__}: {text}" for text in check(items, customer)]
    return found


def recovery_s(items: Mapping[Key, Item]) -> float:
    """Seconds from the birth of a run to its end: the longest."""
    return (
        max((each["ended_at"] - each["created_at"] for each in _runs(items) if "ended_at" in each), default=0)
        / 1000
    )


def waited_s(customer: Customer) -> float:
    """Seconds from the acceptance of the first message to the moment the customer heard the last ending."""
    accepted = [each["ts"] for each in customer.frames.values() if each["type"] == "message.accepted"]
    ends = [customer.heard_at[seq] for seq, each in customer.frames.items() if each["type"] in ENDINGS]
    return max(ends) - min(accepted) / 1000 if accepted and ends else 0.0


def _runs(items: Mapping[Key, Item]) -> list[Item]:
    return sorted(
        (each for key, each in items.items() if key.sk.startswith("RUN#")), key=lambda run: run["seq"]
    )


def _in_time(items: Mapping[Key, Item], _customer: Customer) -> Iterator[str]:
    """I8."""
    runs = _runs(items)
    deadline = TURN_DEADLINE_MS * (2 if any(run["protected"] for run in runs) else 1)
    for run in runs:
        took = run.get("ended_at", 10**15) - run["created_at"]
        if took > deadline + GRACE_MS:
            yield f"I8: {run['run']} ended after {took} ms"


def _heard(items: Mapping[Key, Item], customer: Customer) -> Iterator[str]:
    """I2: the customer has every durable event as it was stored, and no other."""
    stored = {
        frame["seq"]: frame
        for key, item in items.items()
        if key.sk.startswith("EVT#")
        for frame in stored_frames(item)
    }
    if missing := sorted(set(stored) - set(customer.frames)):
        yield f"I2: never heard events {missing}"
    if wrong := [seq for seq, frame in customer.frames.items() if stored.get(seq) != frame]:
        yield f"I2: events {wrong} were pushed and are not what is stored"


def _one_ending(_items: Mapping[Key, Item], customer: Customer) -> Iterator[str]:
    """I1, as the customer sees it: each run ended once, and the last one spoke."""
    frames = [customer.frames[seq] for seq in sorted(customer.frames)]
    ends = Counter(each["run_id"] for each in frames if each["type"] in ENDINGS)
    started = {each["run_id"] for each in frames if each["type"] == "message.accepted" and "run_id" in each}
    if twice := [run for run, count in ends.items() if count != 1]:
        yield f"I1: {twice} ended more than once"
    if never := started - set(ends):
        yield f"I1: {never} never ended"
    last = [each["type"] for each in frames if each["type"] in ENDINGS][-1:]
    if not set(last) & set(SPEAKING_ENDS.values()):
        yield f"I1: the customer's last word is {last}"
    answered = max((each["message_seq"] for each in frames if each["type"] == "message.completed"), default=0)
    asked = max((each["message_seq"] for each in frames if each["type"] == "message.accepted"), default=0)
    if answered < asked:
        yield f"I8: message {asked} has no reply, the last one covers {answered}"


def _run_logs(items: Mapping[Key, Item], _customer: Customer) -> Iterator[str]:
    """I16: first and last event, and the steps of a part in order."""
    logs: defaultdict[str, list[tuple[str, int, str, Item]]] = defaultdict(list)
    for key, item in items.items():
        if key.sk.startswith("EV#"):
            _, part, step, kind = key.sk.split("#")
            logs[key.pk.rpartition("#")[2]].append((part, int(step), kind, item))
    for run in _runs(items):
        entries = sorted(logs[run["run"]], key=lambda each: each[1])
        if not entries or entries[-1][2] != f"run.{run['state']}":
            yield f"I16: the log of {run['run']} ({run['state']}) ends with {entries[-1:]}"
        if run["state"] == "completed" and entries and entries[0][2] != "run.running":
            yield f"I16: the log of {run['run']} begins with {entries[0][2]}"
        for part in {each[0] for each in entries}:
            steps = [each[1] for each in entries if each[0] == part]
            if len(steps) != len(
                set(zip(steps, (each[2] for each in entries if each[0] == part), strict=True))
            ):
                yield f"I16: {run['run']} has a step of {part} twice"


def _remembered(items: Mapping[Key, Item], customer: Customer) -> Iterator[str]:
    """I7: each message that was sent, however often, is there once."""
    ids = sorted(key.sk.removeprefix("IDEM#MSG#") for key in items if key.sk.startswith("IDEM#MSG#"))
    if ids != sorted(customer.sent):
        yield f"I7: {len(customer.sent)} messages were sent, {len(ids)} are remembered"
