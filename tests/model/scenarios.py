"""Who does what in the explored worlds: each process calls the driver that its Lambda calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.model.stepping import Phase, Ports, Process, Scenario
from tests.protocol.promises import Conversation, forbidden_moves, partitions, violations
from turngate.adapters.memory.edges import FixedClock, MemoryQueue, SeededIds
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.accept import PROTECT_AFTER_MS, START_GRACE_MS, TURN_DEADLINE_MS, AcceptResult
from turngate.domain.finish import Ending
from turngate.domain.rate import RateLimit
from turngate.domain.shapes import Draft, TenantContext
from turngate.errors import RefusedError, TurngateError
from turngate.protocol.accepting import IncomingMessage, accept_message
from turngate.protocol.beginning import Begun, begin_run
from turngate.protocol.finishing import Committed, cancelled, finish_run
from turngate.protocol.handing_over import Change, change_hands, reply_as_human
from turngate.protocol.sweeping import Sweeper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.domain.records import Run
    from turngate.domain.transaction import Item, Key

ACCOUNT = "acme"
ANN = TenantContext(account=ACCOUNT, principal="ann")
CONVERSATION = keys.conversation_id_for(ACCOUNT, "ann", "m1")
HEAD = keys.head(ACCOUNT, CONVERSATION)
T0 = 1_000_000
LATE_START = T0 + START_GRACE_MS
LATE_END = T0 + TURN_DEADLINE_MS
OLD = T0 + PROTECT_AFTER_MS
GENEROUS = RateLimit(burst=1000, per_minute=1)
CONFIGURED: dict[Key, Item] = {
    keys.config_active(ACCOUNT): {"version": 1},
    keys.knowledge_pins(ACCOUNT): {"versions": {}},
}


def run_id(seq: int) -> str:
    return keys.run_id_for(ACCOUNT, CONVERSATION, seq)


def run_key(seq: int) -> Key:
    return keys.run(ACCOUNT, CONVERSATION, run_id(seq))


# ---- processes


def message(name: str, delivery: int = 1) -> Process:
    """One delivery of a message; all messages belong to the conversation that m1 opens."""
    writer = f"{name}/{delivery}"
    remembered = keys.message_idempotency(ACCOUNT, CONVERSATION, name)

    def run(ports: Ports) -> AcceptResult:
        return accept_message(
            ports.store,
            ports.clock,
            ports.ids,
            tenant=ANN,
            message=IncomingMessage(name, name, "user_chat", opening="m1"),
            writer=writer,
            limit=GENEROUS,
        )

    def check(result: Any, items: Mapping[Key, Item], _: int) -> list[str]:
        if not isinstance(result, AcceptResult):
            return [f"I7: {writer} ended in {result!r}"]
        stored = items.get(remembered)
        if stored is None:
            return [f"I7: {writer} was told {result} and nothing is remembered"]
        told = (result.message_seq, result.run, result.evt, result.duplicate)
        kept = (stored["seq"], stored.get("run"), stored["evt"], stored["writer"] != writer)
        return [] if told == kept else [f"I7: {writer} was told {told}, remembered is {kept}"]

    twin = f"{name}/{delivery - 1}" if delivery > 1 else None
    return Process(writer, Phase(f"accept {writer}", run, check=check), twin_of=twin)


def execution(
    seq: int, name: str, *, fails: bool = False, twin_of: str | None = None, process: str = ""
) -> Process:
    """One execution of the run that message `seq` triggers: begins it, thinks, and commits a reply that names the
    messages it answers, or a stated failure."""

    def begin(ports: Ports) -> Any:
        return begin_run(
            ports.store,
            ports.clock,
            account=ACCOUNT,
            conversation=CONVERSATION,
            run_id=run_id(seq),
            execution=name,
        )

    def end(begun: Any) -> Phase | None:
        if isinstance(begun, TurngateError):
            return finish(seq, failed(name), f"fail {name}")  # FailTurn catches whatever a state raised
        if not isinstance(begun, Begun):
            return None
        if fails:
            return finish(seq, failed(name), f"fail {name}")
        answered = ",".join(str(m.message_seq) for m in begun.messages)
        draft = Draft(content=answered, outcome="answer")
        return finish(seq, Ending("completed", "execution", name, draft), f"commit {name} to {answered}")

    return Process(
        process or f"run{seq}/{name}",
        Phase(f"begin run{seq}/{name}", begin, end),
        lambda items, _: run_key(seq) in items,
        twin_of,
    )


def failed(execution_name: str) -> Ending:
    draft = Draft(content="sorry", outcome="decline", response_source="stated_failure")
    return Ending("failed", "execution", execution_name, draft, problem="p")


def finish(seq: int, ending: Ending, name: str) -> Phase:
    def run(ports: Ports) -> Any:
        return finish_run(
            ports.store,
            ports.clock,
            ports.ids,
            account=ACCOUNT,
            conversation=CONVERSATION,
            run_id=run_id(seq),
            ending=ending,
        )

    def check(done: Any, items: Mapping[Key, Item], _: int) -> list[str]:
        if isinstance(done, TurngateError):
            return [f"{name} ended in {done!r}"]
        if isinstance(done, Committed):
            stored = items[run_key(seq)]
            told = (done.state, done.evt, done.next_run)
            kept = (stored["state"], stored.get("ended_evt"), stored.get("next_run"))
            if told != kept or stored["writer"] != ending.writer:
                return [f"I1: {name} was told {told}, stored is {kept} by {stored.get('writer')}"]
        return []

    return Phase(name, run, check=check)


def fail_turn(seq: int, name: str) -> Process:
    """FailTurn of an execution whose begin failed: it knows the run, and not whose it is."""
    return Process(
        f"run{seq}/{name} fails",
        finish(seq, failed(name), f"fail {name}"),
        lambda items, _: run_key(seq) in items,
    )


def cancel(seq: int, name: str = "stop", twin_of: str | None = None) -> Process:
    """The customer's stop of a run, sent under a name: a resend has the same one."""
    phase = finish(seq, cancelled(name), f"cancel {name}")
    return Process(f"cancel run{seq}/{name}", phase, lambda items, _: run_key(seq) in items, twin_of)


def hands(change: Change, term: int, agent: str = "bob", copy: int = 1) -> Process:
    def run(ports: Ports) -> Any:
        return change_hands(
            ports.store,
            ports.clock,
            ports.ids,
            account=ACCOUNT,
            conversation=CONVERSATION,
            change=change,
            term=term,
            agent=agent,
        )

    def check(result: Any, _: Mapping[Key, Item], __: int) -> list[str]:
        fine = result is None or isinstance(result, str | RefusedError)
        return [] if fine else [f"{change} ended in {result!r}"]

    def enabled(items: Mapping[Key, Item], _: int) -> bool:
        return HEAD in items and items[HEAD]["term"] >= term

    name = f"{change} t{term} by {agent}"
    twin = f"{name}/{copy - 1}" if copy > 1 else None
    return Process(f"{name}/{copy}", Phase(name, run, check=check), enabled, twin)


def human_reply(name: str = "h1", agent: str = "bob", copy: int = 1) -> Process:
    remembered = keys.message_idempotency(ACCOUNT, CONVERSATION, name)

    def run(ports: Ports) -> Any:
        return reply_as_human(
            ports.store,
            ports.clock,
            ports.ids,
            account=ACCOUNT,
            conversation=CONVERSATION,
            agent=agent,
            client_message_id=name,
            text=name,
            writer=f"{name}/{copy}",
        )

    def check(result: Any, items: Mapping[Key, Item], _: int) -> list[str]:
        if isinstance(result, RefusedError):
            return []
        stored = items.get(remembered)
        ok = stored is not None and stored["evt"] == result
        return [] if ok else [f"I7: {name} was told {result}, remembered is {stored}"]

    def enabled(items: Mapping[Key, Item], _: int) -> bool:
        return HEAD in items and items[HEAD]["mode"] == "HUMAN"

    twin = f"{name}/{copy - 1}" if copy > 1 else None
    return Process(f"{name}/{copy}", Phase(f"reply {name}/{copy}", run, check=check), enabled, twin)


def sweeper(key: Key, name: str, copy: int = 1) -> Process:
    """The sweeper as it meets one item of the due index; others wait for another pass."""

    def run(ports: Ports) -> Any:
        sweep = Sweeper(ports.store, ports.clock, ports.ids, ports, ports, timed_out)
        return sweep.sweep(until_ms=ports.now_ms() + 1000)

    def check(findings: Any, _: Mapping[Key, Item], __: int) -> list[str]:
        # a sweeper that lost every attempt comes again: that is no failure of the protocol
        return [text for text in findings.failures if not text.endswith("ContentionError")]

    def enabled(items: Mapping[Key, Item], now: int) -> bool:
        due = keys.due_at(items[key]) if key in items else None
        return due is not None and due <= now

    name = f"sweep {name}"
    phase = Phase(name, run, check=check, due=(key,), forgets=False, reads_clock_first=True)
    return Process(f"{name}/{copy}", phase, enabled, f"{name}/{copy - 1}" if copy > 1 else None)


def timed_out(_conversation: str, run: Run) -> Ending:
    draft = Draft(content="late", outcome="decline", response_source="stated_failure")
    return Ending("timed_out", "sweeper", f"sweeper-{run.seq}", draft, problem="turn_timed_out")


# ---- judges


def judge_move(before: Mapping[Key, Item], after: Mapping[Key, Item]) -> list[str]:
    return [*forbidden_moves(before, after), *_answers_all_that_waited(before, after)]


def _answers_all_that_waited(before: Mapping[Key, Item], after: Mapping[Key, Item]) -> list[str]:
    """A committed reply answers exactly the customer's messages between the last answer and its trigger."""
    found = []
    for key in set(after) - set(before):
        if key.sk.startswith("MSG#") and key.sk.endswith("#R") and after[key]["outcome"] == "answer":
            seq, through = after[key]["seq"], before[HEAD]["answered_through"]
            waited = sorted(
                item["seq"]
                for other, item in before.items()
                if other.sk.startswith("MSG#") and other.sk.endswith("#U") and through < item["seq"] <= seq
            )
            if after[key]["text"] != ",".join(map(str, waited)):
                found.append(f"I1: the reply to {seq} answers {after[key]['text']}, waiting were {waited}")
    return found


def recovers(items: Mapping[Key, Item]) -> list[str]:
    """I8: with every process dead and every start lost, sweepers alone end what is open and serve what waits.

    A first sweep after the deadline of whatever is open; a second one, a deadline later, for what had to wait behind
    a protected run. Nothing but the table is known to them."""
    if HEAD not in items:
        return []
    store = MemoryConversationStore()
    for key, item in items.items():
        store.put_all(ACCOUNT, [(key, item)])
    latest = max((item["deadline"] for key, item in items.items() if key.sk.startswith("RUN#")), default=T0)
    clock, queue = FixedClock(latest), MemoryQueue()
    sweep = Sweeper(store, clock, SeededIds(1), queue, queue, timed_out)
    for _ in range(2):
        sweep.sweep(until_ms=clock.now_ms() + 1)
        clock.advance(TURN_DEADLINE_MS)
    after = store.snapshot()
    found = [f"after recovery: {text}" for text in violations(after)]
    for partition in partitions(after):
        conversation = Conversation(after, partition)
        if still := [
            item["seq"] for item in conversation.runs.values() if item["state"] in {"queued", "running"}
        ]:
            found.append(f"I8: runs of {still} stay open whoever sweeps")
    return found


def conversation(name: str, *processes: Process, times: tuple[int, ...] = (T0,), **options: Any) -> Scenario:
    """A scenario about one conversation, judged by all promises."""
    chosen = {
        "table": CONFIGURED,
        "judge": violations,
        "judge_move": judge_move,
        "recover": recovers,
        **options,
    }
    return Scenario(name, processes, times=times, **chosen)
