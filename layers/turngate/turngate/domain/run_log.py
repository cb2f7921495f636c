"""The run's own log: which events exist, and their order (I16, F-353, F-354).

A step number orders the events of one part; a state's retry writes the same keys again, so the log has no
duplicates. The ending's event is written in the transaction that ends the run."""

from __future__ import annotations

import json

from turngate.domain import keys
from turngate.domain.shapes import RunEvent
from turngate.domain.transaction import Absent, Item, Key, Put

STEP_BEGUN = 0
STEP_PREROUTED = 5
STEP_RESUMED = 6
STEP_UNDERSTOOD = 10
STEP_RULED = 20
STEP_RETRIEVED = 30
STEP_COMPOSED = 80
STEP_ENDED = 999

LOG_RETENTION_S = 90 * 24 * 3600
WORK_RETENTION_S = 7 * 24 * 3600


def entry(account: str, run: str, event: RunEvent) -> tuple[Key, Item]:
    """Key and item of one log entry. `data` is kept as JSON: it may hold scores, and DynamoDB has no floats."""
    key = keys.run_event(account, run, event.part, event.step, event.kind)
    ttl = event.at // 1000 + LOG_RETENTION_S
    data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
    return key, {"entity": "run_event", "kind": event.kind, "at": event.at, "data": data, "ttl": ttl}


def ending(account: str, run: str, state: str, now: int, **data: str | int) -> Put:
    """The last event of a run."""
    key, item = entry(account, run, RunEvent(step=STEP_ENDED, kind=f"run.{state}", at=now, data=data))
    return Put("run_log", key, item, (Absent(),))
