"""Record what Lambda was ever invoked with, deliver all of it again, shuffled, and see whether anything moved (I10).

The digest is of business state: every item of every conversation (HEAD, messages, events, runs, remembered ids,
watchers, questions), configuration and knowledge pointers, the rate buckets, and the ending of each run's log. Not in
it, because a later delivery may rightly touch them:

| left out | why |
|---|---|
| tickets, guest tokens, connections | edge items with a TTL: a repeated request makes another, nobody is handed it |
| WORK and BUDGET of a run | working state with a TTL: a repeated model state works, and spends, again |
| log entries before the ending | a repeated state writes its own entry anew, under the same key; none may vanish |
| GSI1 keys of events | an event that is announced again owes nothing afterwards, as before |
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.faults.bench import Bench

Event = tuple[str, dict[str, Any]]
"""Name of the function, and what it was invoked with."""


def source(event: dict[str, Any]) -> str:
    """Where an event came from."""
    context = event.get("requestContext")
    if "Records" in event:
        return "SQS"
    if isinstance(context, dict) and "connectionId" in context:
        return "WebSocket"
    if "rawPath" in event or "routeKey" in event:
        return "HTTP"
    if event.get("source") == "aws.events" or not event:
        return "schedule"
    return "Lambda (machine)"


def recorded(bench: Bench, since: int) -> list[Event]:
    """Every invocation whose event was kept, but the sweeper's: it holds nothing but the time."""
    return [
        (each["function"], each["event"])
        for each in bench.stack.emulator.records("lambda")[since:]
        if "event" in each and each["function"] != bench.functions["SweepDueItems"]
    ]


def deliver(bench: Bench, events: list[Event], times: int, seed: int, workers: int = 4) -> Counter[str]:
    """Invoke the functions with all events `times` times over, in an order of the seed's; outcomes by kind."""
    order = events * times
    random.Random(seed).shuffle(order)
    client = bench.stack.emulator.client("lambda")

    def invoke(each: Event) -> str:
        function, event = each
        answer = client.invoke(FunctionName=function, Payload=json.dumps(event, ensure_ascii=False).encode())
        body = answer["Payload"].read()
        return f"error {json.loads(body).get('errorType')}" if "FunctionError" in answer else "ok"

    with ThreadPoolExecutor(workers) as pool:
        return Counter(pool.map(invoke, order))


def business_state(bench: Bench) -> dict[str, Any]:
    """What must be equal, by key."""
    client = bench.stack.emulator.client("dynamodb")
    pages = client.get_paginator("scan").paginate(
        TableName=bench.stack.outputs["TableName"], ConsistentRead=True
    )
    kept: dict[str, Any] = {}
    for page in pages:
        for item in page["Items"]:
            pk, sk = item.pop("PK")["S"], item.pop("SK")["S"]
            if (state := _kept(pk, sk, item)) is not None:
                kept[f"{pk} {sk}"] = state
    return kept


def _kept(pk: str, sk: str, item: dict[str, Any]) -> object:
    kind = pk.split("#")[2] if pk.startswith("T#") else ""
    if kind == "C":
        return {
            name: value
            for name, value in item.items()
            if not (sk.startswith("EVT#") and name.startswith("GSI1"))
        }
    if kind == "R" and sk.startswith("EV#"):
        return item if sk.startswith("EV#-#999#") else None
    if kind == "P" and sk == "RATE":
        return item
    return item if kind in ("CFG",) or kind.startswith("KB") else None


def digest(state: dict[str, Any]) -> str:
    """SHA-256 of a business state."""
    return hashlib.sha256(json.dumps(state, sort_keys=True, default=repr).encode()).hexdigest()


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Keys that moved, with what they were and are."""
    return [
        f"{key}: {before.get(key)} -> {after.get(key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
