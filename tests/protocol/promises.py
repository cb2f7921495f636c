"""The promises of INVARIANTS.md as questions to a table: what may never be seen in it, and between two of its states.

Protocol tests, the exhaustive model and the race oracle all ask these same questions. They know the key table and the
meaning of attributes, and nothing of the code that writes them."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from turngate.domain.client_events import stored_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from turngate.domain.transaction import Item, Key

OPEN = frozenset({"queued", "running"})
SPEAKING_ENDS = {"completed": "run.completed", "failed": "run.failed", "timed_out": "run.timed_out"}
SILENT_ENDS = {"cancelled": "run.cancelled", "superseded": "run.superseded"}
ENDS = {**SPEAKING_ENDS, **SILENT_ENDS}
MOVES = {
    "queued": {"running", "failed", "cancelled", "superseded", "timed_out"},
    "running": {"completed", "failed", "cancelled", "superseded", "timed_out"},
}
"""F-352."""
DUE = ("GSI1PK", "GSI1SK")


class Conversation:
    """The items of one conversation and of its runs, sorted by what they are."""

    def __init__(self, items: Mapping[Key, Item], partition: str) -> None:
        account = partition.split("#")[1]
        self.head: Item | None = None
        self.messages: dict[tuple[int, str], Item] = {}
        self.events: dict[int, Item] = {}
        self.runs: dict[str, Item] = {}
        self.idempotency: dict[str, Item] = {}
        self.pending: dict[str, Item] = {}
        for key, item in items.items():
            if key.pk != partition:
                continue
            kind, _, rest = key.sk.partition("#")
            if kind == "HEAD":
                self.head = item
            elif kind == "MSG":
                seq, _, letter = rest.partition("#")
                self.messages[int(seq), letter] = item
            elif kind == "EVT":
                self.events[int(rest)] = item
            elif kind == "RUN":
                self.runs[rest] = item
            elif kind == "PEND":
                self.pending[rest] = item
            elif kind == "IDEM":
                self.idempotency[rest] = item
        self.log: dict[str, list[str]] = {
            run: [
                key.sk.rpartition("#")[2]
                for key in items
                if key.pk == f"T#{account}#R#{run}" and key.sk.startswith("EV#-#999#")
            ]
            for run in self.runs
        }
        self.stopped = {
            run: {**budget}.get("stopped")
            for run in self.runs
            for budget in [_find(items, f"T#{account}#R#{run}", "BUDGET")]
        }

    @property
    def frames(self) -> list[dict[str, Any]]:
        return [frame for evt in sorted(self.events) for frame in _unpacked(self.events[evt]["events"])]


@lru_cache(maxsize=4096)
def _unpacked(events: str | bytes) -> list[dict[str, Any]]:
    return stored_frames({"events": events})


def _find(items: Mapping[Key, Item], pk: str, sk: str) -> Item:
    from turngate.domain.transaction import Key  # noqa: PLC0415 - only for its type at run time

    return items.get(Key(pk, sk), {})


def partitions(items: Mapping[Key, Item]) -> set[str]:
    return {key.pk for key in items if key.sk == "HEAD"}


def violations(items: Mapping[Key, Item]) -> list[str]:
    """Everything a single state of the table must not show."""
    found = []
    for partition in sorted(partitions(items)):
        conversation = Conversation(items, partition)
        for check in STATE_CHECKS:
            found += [f"{check.__name__}: {text}" for text in check(conversation)]
    return found


def gap_free_messages(c: Conversation) -> Iterator[str]:
    """I18."""
    triggers = sorted(seq for seq, kind in c.messages if kind != "R")
    if c.head is None or triggers != list(range(1, c.head["seq"] + 1)):
        yield f"I18: message numbers {triggers}, HEAD.seq {c.head and c.head['seq']}"
    customers = [seq for seq, kind in c.messages if kind == "U"]
    if c.head is not None and c.head.get("customer_seq", 0) != max(customers, default=0):
        yield f"I18: customer_seq {c.head.get('customer_seq')} of {customers}"


def gap_free_events(c: Conversation) -> Iterator[str]:
    """I18: every event has its number once, in the item that says so."""
    numbers = [frame["seq"] for frame in c.frames]
    if c.head is None or numbers != list(range(1, c.head["evt"] + 1)):
        yield f"I18: event numbers {numbers}, HEAD.evt {c.head and c.head['evt']}"
    for last, item in c.events.items():
        own = [frame["seq"] for frame in _unpacked(item["events"])]
        if own != list(range(item["first"], item["last"] + 1)) or item["last"] != last:
            yield f"I18: item EVT {last} holds {own}"


def one_open_run(c: Conversation) -> Iterator[str]:
    """`active_run` is set exactly while one run is open."""
    still_open = [run for run, item in c.runs.items() if item["state"] in OPEN]
    active = c.head.get("active_run") if c.head else None
    if still_open != ([active] if active else []):
        yield f"I1: open {still_open}, active_run {active}"
    elif active and c.head and c.runs[active]["epoch"] != c.head["epoch"]:
        yield f"I2: active run of epoch {c.runs[active]['epoch']}, HEAD at {c.head['epoch']}"
    protected = c.head.get("protected_run") if c.head else None
    if protected and (protected != active or not c.runs[protected]["protected"]):
        yield f"I20: protected_run {protected}, active_run {active}"
    if active and c.head and c.head["mode"] != "AI":
        yield "I4: a run is open in HUMAN mode"


def endings_match(c: Conversation) -> Iterator[str]:
    """I1, I16: a run's state, its reply, its log and the clients' log tell the same single ending."""
    told = Counter((f["run_id"], f["type"]) for f in c.frames if f["type"] in ENDS.values())
    said = Counter(f["run_id"] for f in c.frames if f["type"] == "message.completed" and "run_id" in f)
    for run, item in c.runs.items():
        state, seq = item["state"], item["seq"]
        ends = {kind: n for (of, kind), n in told.items() if of == run}
        if ends != ({ENDS[state]: 1} if state in ENDS else {}):
            yield f"I1: {run} is {state}, clients were told {ends}"
        if c.log[run] != ([f"run.{state}"] if state in ENDS else []):
            yield f"I16: {run} is {state}, its log ends with {c.log[run]}"
        reply = c.messages.get((seq, "R"))
        speaks = state in SPEAKING_ENDS
        if (reply is not None and reply["run"] == run) != speaks or said[run] != int(speaks):
            yield f"I1: {run} is {state}, reply {reply is not None}, told {said[run]} times"
        if state in {"superseded", "cancelled", "timed_out"} and not c.stopped[run]:
            yield f"I15: {run} is {state} and its budget is not stopped"
        if state in {"completed", "failed"} and item["writer"] != item.get("execution"):
            yield f"I1: {run} of {item.get('execution')} was ended by {item['writer']}"
        if state == "timed_out" and item["ended_at"] < item["deadline"]:
            yield f"I8: {run} was ended before its deadline"
    owners = {item["seq"] for item in c.runs.values()}
    if stray := [seq for seq, kind in c.messages if kind == "R" and seq not in owners]:
        yield f"I1: replies {stray} of no run"


def runs_have_triggers(c: Conversation) -> Iterator[str]:
    """Every run has a trigger of its own."""
    seqs = Counter(item["seq"] for item in c.runs.values())
    if twice := [seq for seq, n in seqs.items() if n > 1]:
        yield f"I1: two runs for {twice}"
    for run, item in c.runs.items():
        if (item["seq"], item["trigger"]) not in c.messages:
            yield f"I18: {run} has no trigger {item['trigger']}{item['seq']}"


def each_message_remembered_once(c: Conversation) -> Iterator[str]:
    """I7."""
    remembered = sorted(item["seq"] for item in c.idempotency.values())
    said = sorted(seq for seq, kind in c.messages if kind in "UH")
    if remembered != said:
        yield f"I7: messages {said}, remembered {remembered}"


def debts_are_indexed(c: Conversation) -> Iterator[str]:
    """I8: an open run is on the due index, an ended one is not."""
    for run, item in c.runs.items():
        owing = all(name in item for name in DUE)
        if owing != (item["state"] in OPEN):
            yield f"I8: {run} is {item['state']}, on the due index: {owing}"


def nobody_waits_for_nobody(c: Conversation) -> Iterator[str]:
    """I8: in AI mode, unanswered customer messages have an open run."""
    head = c.head
    if head and head["mode"] == "AI" and not head.get("active_run"):
        waiting = [s for s, kind in c.messages if kind == "U" and s > head["answered_through"]]
        if waiting:
            yield f"I8: {waiting} wait and no run is open"


def open_questions_are_listed(c: Conversation) -> Iterator[str]:
    """HEAD lists exactly the questions that are open, at most four, with the time until which each may be answered."""
    listed = {each["id"]: each["expires_at"] for each in (c.head or {}).get("open_pending", ())}
    still_open = {key: item["expires_at"] for key, item in c.pending.items() if item["state"] == "open"}
    if listed != still_open or len(listed) > 4:
        yield f"HEAD lists {listed}, open are {still_open}"


STATE_CHECKS: tuple[Callable[[Conversation], Iterator[str]], ...] = (
    gap_free_messages,
    gap_free_events,
    one_open_run,
    endings_match,
    runs_have_triggers,
    each_message_remembered_once,
    debts_are_indexed,
    nobody_waits_for_nobody,
    open_questions_are_listed,
)


def forbidden_moves(before: Mapping[Key, Item], after: Mapping[Key, Item]) -> list[str]:
    """Everything that must not happen between two states of the table that follow each other."""
    found = []
    for partition in sorted(partitions(after) | partitions(before)):
        old, new = Conversation(before, partition), Conversation(after, partition)
        for check in MOVE_CHECKS:
            found += [f"{check.__name__}: {text}" for text in check(old, new)]
    return found


def runs_move_legally(old: Conversation, new: Conversation) -> Iterator[str]:
    """I9, I11, I12: terminal states never change; an execution and its pins are given once; F-352."""
    for run, was in old.runs.items():
        now = new.runs.get(run)
        if now is None:
            yield f"I9: {run} vanished"
        elif was["state"] not in OPEN and now != was:
            yield f"I9: {run} was {was['state']} and changed"
        elif now["state"] != was["state"] and now["state"] not in MOVES[was["state"]]:
            yield f"I9: {run} moved {was['state']} -> {now['state']}"
        else:
            for name in ("execution", "config_version", "knowledge_pins", "epoch", "seq", "deadline"):
                if name in was and now.get(name) != was[name]:
                    yield f"I11: {name} of {run} changed"
            if was["state"] == "running" and now["state"] == "running" and now != was:
                yield f"I1: {run} changed while it ran"


def what_was_said_stays(old: Conversation, new: Conversation) -> Iterator[str]:
    """Messages, remembered ids and durable events never change; an event only pays its debt."""
    for name, was in {**old.messages, **old.idempotency}.items():
        now = new.messages.get(name) if isinstance(name, tuple) else new.idempotency.get(name)  # type: ignore[call-overload]
        if now != was:
            yield f"I1: {name} changed"
    for evt, item in old.events.items():
        now = new.events.get(evt)
        if now is None or any(now.get(k) != v for k, v in item.items() if k not in DUE):
            yield f"I2: event {evt} changed"
    for run, log in old.log.items():
        if not set(log) <= set(new.log.get(run, [])):
            yield f"I16: the log of {run} lost an ending"


def counters_grow(old: Conversation, new: Conversation) -> Iterator[str]:
    if old.head is None or new.head is None:
        return
    for name in ("seq", "customer_seq", "evt", "epoch", "term", "answered_through", "state_version"):
        if new.head.get(name, 0) < old.head.get(name, 0):
            yield f"I18: {name} fell from {old.head[name]} to {new.head.get(name)}"
    if new.head["owner"] != old.head["owner"]:
        yield "I6: the conversation changed its owner"
    if new.head != old.head and new.head["evt"] == old.head["evt"]:
        yield "I18: HEAD changed without an event"


def replies_count(old: Conversation, new: Conversation) -> Iterator[str]:
    """I1, I2, I4: a reply is committed for the latest message, in AI mode, and answers what no reply answered."""
    fresh = [seq for seq, kind in set(new.messages) - set(old.messages) if kind == "R"]
    for seq in fresh:
        item = new.messages[seq, "R"]
        run = new.runs[item["run"]]
        head = old.head or {}
        if head.get("mode") != "AI":
            yield f"I4: {item['run']} spoke in mode {head.get('mode')}"
        if head.get("active_run") != item["run"] or head.get("epoch") != run["epoch"]:
            yield f"I2: {item['run']} (epoch {run['epoch']}) spoke while HEAD was at {head.get('epoch')}"
        if newer := [r for r, other in old.runs.items() if other["seq"] > run["seq"]]:
            yield f"I2: {item['run']} spoke although {newer} are newer"
        if head.get("answered_through", 0) >= run["seq"]:
            yield f"I1: {seq} was answered before"


def protected_runs_are_left_alone(old: Conversation, new: Conversation) -> Iterator[str]:
    """I20: a customer's message never supersedes a protected run, nor a fourth run in a row."""
    for run, was in old.runs.items():
        now = new.runs.get(run, was)
        by_message = (
            now["state"] == "superseded" != was["state"] and now["reason"] == "newer_customer_message"
        )
        if was["protected"] and by_message:
            yield f"I20: protected {run} was superseded by a message"
    for run in set(new.runs) - set(old.runs):
        item, answered = new.runs[run], (new.head or {}).get("answered_through", 0)
        overtaken = [
            r
            for r in new.runs.values()
            if r.get("reason") == "newer_customer_message" and answered < r["seq"] < item["seq"]
        ]
        if len(overtaken) >= 3 and not item["protected"] and item["trigger"] == "U":
            yield f"I20: {run} follows {len(overtaken)} superseded runs and is not protected"


MOVE_CHECKS: tuple[Callable[[Conversation, Conversation], Iterator[str]], ...] = (
    runs_move_legally,
    what_was_said_stays,
    counters_grow,
    replies_count,
    protected_runs_are_left_alone,
)
