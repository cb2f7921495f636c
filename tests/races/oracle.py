"""Many threads on one real table, each thread a Lambda that may die, wake up late or lose an answer; and an oracle that
reads along and judges.

Everything runs on the product's drivers and the DynamoDB adapter. Chaos is worked by botocore's event hooks, below the
adapter: before a request (the Lambda dies, or sleeps and wakes late), and after it was answered (the answer is lost:
the adapter sees a broken connection, the table has the write). Starts are delivered at least once, some twice.

The oracle knows nothing of the drivers. It reads one conversation's items by a strongly consistent query while work
goes on, and once more when everything has come to rest, and asks `promises.py`; and it keeps its own account of what
callers were told and when: a commit that began after a newer message was accepted and still succeeded is a
violation, whatever the table looks like afterwards."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ReadTimeoutError

from tests.protocol.emulated_table import create_table, dynamodb_client
from tests.protocol.promises import forbidden_moves, violations
from turngate.adapters.dynamodb.marshal import from_attributes
from turngate.adapters.dynamodb.store import DynamoDBConversationStore
from turngate.adapters.system import SystemIds
from turngate.domain import accept, client_events, keys
from turngate.domain.finish import Ending
from turngate.domain.rate import RateLimit
from turngate.domain.shapes import Draft, TenantContext
from turngate.domain.transaction import Key
from turngate.errors import BrokenInvariantError, RefusedError, TransientError
from turngate.protocol.accepting import IncomingMessage, accept_message
from turngate.protocol.beginning import Begun, begin_run
from turngate.protocol.finishing import Committed, cancelled, finish_run
from turngate.protocol.handing_over import change_hands
from turngate.protocol.sweeping import Sweeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from turngate.domain.records import Run
    from turngate.domain.transaction import Item, Transaction

ACCOUNT = "acme"
SWEEPS_S = 30
"""I8 grants two passes of the sweeper behind a deadline. Here most passes die on the way, and each begins at another
shard: this is how long they may take together."""
GENEROUS = RateLimit(burst=10_000, per_minute=600_000)


class DiedError(BaseException):
    """The Lambda is gone: nothing after this line runs, and nothing can catch it."""


@dataclass(frozen=True)
class Chaos:
    """Shares of requests (0 to 1) that something happens to, and how long a late worker sleeps."""

    dies_before: float = 0.02
    dies_after: float = 0.02
    loses_answer: float = 0.03
    sleeps: float = 0.05
    longest_sleep_s: float = 0.2


@dataclass(frozen=True)
class Plan:
    """How much is sent. A conversation's messages come in bursts of 1 to `burst` at once, each delivered
    `deliveries` times, from threads of their own."""

    conversations: int = 12
    messages: int = 6
    burst: int = 2
    deliveries: int = 2
    executions: int = 2
    threads: int = 8
    takeovers: float = 0.1
    cancels: float = 0.1
    patience: float = 0.85
    stops_at_violation: bool = False
    seed: int = 1
    deadline_ms: int = 4_000
    grace_ms: int = 400
    chaos: Chaos = field(default_factory=Chaos)


@dataclass
class Report:
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    first_violation_s: float | None = None

    @property
    def commit_share(self) -> float:
        return self.counts["replies"] / max(1, self.counts["runs"])

    def line(self) -> str:
        parts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return (
            f"races: {parts}; {self.commit_share:.0%} of runs committed a reply; {self.seconds:.1f} s; "
            f"{len(self.violations)} violations"
        )


class FastClock:
    """Real time; protocol pauses are kept short so that a run of minutes fits into seconds."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep_ms(self, ms: float) -> None:
        time.sleep(min(ms, 20) / 1000)


class ChaoticStore(DynamoDBConversationStore):
    """The real adapter over a client whose hooks work chaos, when this thread's Lambda is exposed to it. `mutate`
    removes guards from transactions, for the proof that the oracle would notice."""

    def __init__(self, client: Any, table: str, chaos: Chaos, seed: int, counts: Counter[str]) -> None:
        super().__init__(client, table)
        self.chaos = chaos
        self.random = random.Random(seed)
        self.counts = counts
        self.exposed = threading.local()
        self.mutate: Callable[[Transaction], Transaction] = lambda transaction: transaction
        client.meta.events.register("before-send.dynamodb", self._before)
        client.meta.events.register("after-call.dynamodb", self._after)

    def write(self, account: str, transaction: Transaction) -> None:
        super().write(account, self.mutate(transaction))

    @contextmanager
    def a_lambda(self) -> Iterator[None]:
        """What runs inside may die at each of its calls."""
        self.exposed.now = True
        try:
            yield
        except DiedError:
            self.counts["crashes"] += 1
        except (TransientError, RefusedError):
            self.counts["gave up"] += 1
        finally:
            self.exposed.now = False

    def _before(self, **_: object) -> None:
        self.counts["requests"] += 1
        if not getattr(self.exposed, "now", False):
            return
        if self.random.random() < self.chaos.dies_before:
            raise DiedError
        if self.random.random() < self.chaos.sleeps:
            self.counts["late workers"] += 1
            time.sleep(self.random.random() * self.chaos.longest_sleep_s)

    def _after(self, **_: object) -> None:
        if not getattr(self.exposed, "now", False):
            return
        if self.random.random() < self.chaos.dies_after:
            raise DiedError
        if self.random.random() < self.chaos.loses_answer:
            self.counts["lost answers"] += 1
            raise ReadTimeoutError(endpoint_url="lost")


@dataclass
class Told:
    """What happened to one conversation as its callers know it: (seq, run) of accepted messages, results by message."""

    conversation: str
    accepted: list[tuple[int, str | None]] = field(default_factory=list)
    results: dict[str, set[tuple[int, str | None]]] = field(default_factory=dict)
    fence: int = 0
    """Runs of triggers up to here were taken over: nothing of them may be committed any more."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    last: dict[Key, Item] = field(default_factory=dict)


class Races:
    """One run of a plan on a table of its own."""

    def __init__(
        self, endpoint: str, plan: Plan, mutate: Callable[[Transaction], Transaction] | None = None
    ) -> None:
        self.plan = plan
        self.report = Report()
        client = dynamodb_client(endpoint, connections=plan.threads + 4)
        self.table = f"races{time.time_ns()}"
        create_table(client, self.table)
        self.client = client
        self.store = ChaoticStore(client, self.table, plan.chaos, plan.seed, self.report.counts)
        if mutate is not None:
            self.store.mutate = mutate
        self.judge_client = dynamodb_client(endpoint, connections=plan.threads + 4)
        configured = [
            (keys.config_active(ACCOUNT), {"version": 1}),
            (keys.knowledge_pins(ACCOUNT), {"versions": {}}),
        ]
        self.store.put_all(ACCOUNT, configured)
        self.clock, self.ids = FastClock(), SystemIds()
        self.random = random.Random(plan.seed)
        self.starts: Queue[tuple[str, str]] = Queue()
        self.told: dict[str, Told] = {}
        self.stop = threading.Event()
        self.began = time.monotonic()

    # ---- what Lambdas do

    def send(self, told: Told, tenant: TenantContext, name: str, opening: str, delivery: int) -> None:
        with self.store.a_lambda():
            self.report.counts["deliveries"] += 1
            result = accept_message(
                self.store,
                self.clock,
                self.ids,
                tenant=tenant,
                message=IncomingMessage(name, name, "user_chat", opening=opening),
                writer=f"{name}/{delivery}",
                limit=GENEROUS,
            )
            with told.lock:
                told.accepted.append((result.message_seq, result.run))
                told.results.setdefault(name, set()).add((result.message_seq, result.run))
            if result.run:
                for _ in range(self.plan.executions):
                    self.starts.put((told.conversation, result.run))

    def execute(self, told: Told, run: str, execution: str) -> None:
        with self.store.a_lambda():
            self.report.counts["executions"] += 1
            try:
                begun = begin_run(
                    self.store,
                    self.clock,
                    account=ACCOUNT,
                    conversation=told.conversation,
                    run_id=run,
                    execution=execution,
                )
            except BrokenInvariantError as error:
                # FailTurn's turn: it finds out that the run was ended from outside while its input was read
                self.report.counts["ended while begun"] += 1
                if self.state(told, run) in {"queued", "running"}:
                    self.object(f"{error}")
                return
            if not isinstance(begun, Begun):
                self.report.counts["duplicates"] += 1
                return
            self.report.counts["begun"] += 1
            content = ",".join(str(m.message_seq) for m in begun.messages)
            ending = Ending("completed", "execution", execution, Draft(content=content, outcome="answer"))
            self.commit(told, run, begun.turn.seq, ending)

    def commit(self, told: Told, run: str, seq: int, ending: Ending) -> None:
        """Judged by what callers had been told before the commit began."""
        with told.lock:
            newer = [s for s, started in told.accepted if s > seq and started]
            fenced = seq <= told.fence
        already = self.state(told, run)
        done = finish_run(
            self.store,
            self.clock,
            self.ids,
            account=ACCOUNT,
            conversation=told.conversation,
            run_id=run,
            ending=ending,
        )
        if not isinstance(done, Committed):
            self.report.counts["not current"] += 1
            return
        if already in {"queued", "running"}:
            if newer:
                self.object(f"I2: the reply to {seq} was committed after {newer} had been accepted")
            if fenced:
                self.object(f"I4: the reply to {seq} was committed after a takeover")
        for next_run in [done.next_run] if done.next_run else []:
            self.starts.put((told.conversation, next_run))

    def state(self, told: Told, run: str) -> str:
        item = self.judge_get(keys.run(ACCOUNT, told.conversation, run))
        return str(item["state"]) if item else "none"

    def take_over_and_release(self, told: Told) -> None:
        with self.store.a_lambda():
            head = self.store.get(ACCOUNT, [keys.head(ACCOUNT, told.conversation)])
            if not head:
                return
            ((_, item),) = head.items()
            term, where = item["term"], {"account": ACCOUNT, "conversation": told.conversation}
            ports = (self.store, self.clock, self.ids)
            change_hands(*ports, **where, change="takeover", term=term, agent="bob")
            self.report.counts["takeovers"] += 1
            with told.lock:
                told.fence = max(told.fence, item["seq"])
            time.sleep(self.random.random() * 0.05)
            run = change_hands(*ports, **where, change="release", term=term + 1, agent="bob")
            if run:
                self.starts.put((told.conversation, run))

    def cancel(self, told: Told) -> None:
        with self.store.a_lambda():
            head = self.judge_get(keys.head(ACCOUNT, told.conversation))
            if head and "active_run" in head:
                done = finish_run(
                    self.store,
                    self.clock,
                    self.ids,
                    account=ACCOUNT,
                    conversation=told.conversation,
                    run_id=head["active_run"],
                    ending=cancelled("stop"),
                )
                if isinstance(done, Committed):
                    self.report.counts["cancels"] += 1
                    if done.next_run:
                        self.starts.put((told.conversation, done.next_run))

    # ---- the world around them

    def customer(self, number: int) -> None:
        tenant = TenantContext(account=ACCOUNT, principal=f"p{number}")
        opening = f"c{number}m0"
        told = self.told_of(keys.conversation_id_for(ACCOUNT, tenant.principal, opening))
        with ThreadPoolExecutor(self.plan.burst * self.plan.deliveries) as pool:
            count = 0
            while count < self.plan.messages and not self.seen_enough:
                size = min(self.random.randint(1, self.plan.burst), self.plan.messages - count)
                sent = [
                    pool.submit(self.send, told, tenant, f"c{number}m{n}", opening, delivery)
                    for n in range(count, count + size)
                    for delivery in range(self.plan.deliveries)
                ]
                count += size
                for each in sent:
                    each.result()
                if self.random.random() < self.plan.takeovers:
                    pool.submit(self.take_over_and_release, told).result()
                if self.random.random() < self.plan.cancels:
                    pool.submit(self.cancel, told).result()
                if self.random.random() < self.plan.patience:
                    self.wait_for_the_answer(told)

    def wait_for_the_answer(self, told: Told) -> None:
        """Most customers wait for an answer before they go on; the others keep the machine racing."""
        limit = time.monotonic() + 2 * self.plan.deadline_ms / 1000
        while time.monotonic() < limit and not self.seen_enough:
            head = self.judge_get(keys.head(ACCOUNT, told.conversation))
            if head is None or "active_run" not in head:
                return
            time.sleep(0.02)

    def told_of(self, conversation: str) -> Told:
        return self.told.setdefault(conversation, Told(conversation))

    def worker(self, number: int) -> None:
        count = 0
        while not self.stop.is_set():
            try:
                conversation, run = self.starts.get(timeout=0.05)
            except Empty:
                continue
            count += 1
            self.execute(self.told_of(conversation), run, f"x{number}.{count}")

    def sweep(self) -> int:
        """A pass of the sweeper, which may die too (`swept` counts passes that lived); how much was still owed."""
        owed = 0
        sweeper = Sweeper(self.store, self.clock, self.ids, _Starts(self.starts), _Swallow(), _timed_out)
        with self.store.a_lambda():
            findings = sweeper.sweep(until_ms=self.clock.now_ms() + 10_000)
            owed = findings.started_again + findings.timed_out
            self.report.counts["swept"] += owed
        return owed

    def sweeper(self) -> None:
        while not self.stop.wait(0.3):
            self.sweep()

    # ---- the oracle

    def object(self, text: str) -> None:
        if self.report.first_violation_s is None:
            self.report.first_violation_s = time.monotonic() - self.began
        self.report.violations.append(text)

    @property
    def seen_enough(self) -> bool:
        return self.plan.stops_at_violation and bool(self.report.violations)

    def judge_get(self, key: Key) -> Item | None:
        answer = self.judge_client.get_item(
            TableName=self.table, Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}}, ConsistentRead=True
        )
        return from_attributes(answer["Item"]) if "Item" in answer else None

    def seen(self, told: Told) -> dict[Key, Item]:
        """The conversation in one consistent query; its runs' own partitions one by one."""
        items: dict[Key, Item] = {}
        partition = keys.conversation(ACCOUNT, told.conversation)
        self._query(partition, items)
        for key in [key for key in items if key.sk.startswith("RUN#")]:
            self._query(keys.run_partition(ACCOUNT, key.sk.removeprefix("RUN#")), items)
        return items

    def _query(self, partition: str, items: dict[Key, Item]) -> None:
        request: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": "PK = :pk",
            "ExpressionAttributeValues": {":pk": {"S": partition}},
            "ConsistentRead": True,
        }
        while True:
            answer = self.judge_client.query(**request)
            for item in answer["Items"]:
                items[Key(item["PK"]["S"], item["SK"]["S"])] = from_attributes(item)
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def watch(self) -> None:
        """While work goes on: no forbidden move between two looks, and no impossible conversation in one look.

        A look reads the runs' logs a moment after the conversation, so those are judged when all is at rest."""
        while not self.stop.wait(0.02):
            for told in list(self.told.values()):
                items = self.seen(told)
                self.report.counts["looks"] += 1
                self.judge(told, items, at_rest=False)
                if self.stop.is_set():
                    return

    def judge(self, told: Told, items: Mapping[Key, Item], *, at_rest: bool) -> None:
        found = [text for text in violations(items) if at_rest or not _needs_rest(text)]
        if told.last:
            found += [text for text in forbidden_moves(told.last, items) if not _between_looks(text)]
        told.last = dict(items)
        for text in found:
            self.object(f"{told.conversation[:6]}: {text}")

    def at_rest(self) -> None:
        for told in self.told.values():
            items = self.seen(told)
            self.judge(told, items, at_rest=True)
            for name, results in told.results.items():
                if len(results) > 1:
                    self.object(f"I7: deliveries of {name} were told {sorted(results, key=str)}")
            runs = [item for key, item in items.items() if key.sk.startswith("RUN#")]
            self.report.counts["runs"] += len(runs)
            self.report.counts["replies"] += sum(item["state"] == "completed" for item in runs)
            self.report.counts["messages"] += sum(key.sk.endswith("#U") for key in items)
            for item in runs:
                self.report.counts[f"runs {item['state']}"] += 1
                if item["state"] in {"queued", "running"}:
                    self.object(f"I8: run {item['seq']} is still {item['state']}")
            self.answers(told, items)

    def answers(self, told: Told, items: Mapping[Key, Item]) -> None:
        """I1: no message is answered by two replies, judged by what the replies say they answer."""
        answered: Counter[str] = Counter()
        for key, item in items.items():
            if key.sk.startswith("MSG#") and key.sk.endswith("#R") and item["outcome"] == "answer":
                answered.update(item["text"].split(","))
        if twice := [seq for seq, count in answered.items() if count > 1]:
            self.object(f"{told.conversation[:6]}: I1: {twice} were answered twice")

    # ---- a run

    def run(self) -> Report:
        with _shortened(self.plan):
            threads = [threading.Thread(target=self.worker, args=(n,)) for n in range(self.plan.threads)]
            threads += [threading.Thread(target=self.watch), threading.Thread(target=self.sweeper)]
            for thread in threads:
                thread.start()
            try:
                with ThreadPoolExecutor(max(2, self.plan.threads // 2)) as customers:
                    list(customers.map(self.customer, range(self.plan.conversations)))
                self.settle()
            finally:
                self.stop.set()
                for thread in threads:
                    thread.join()
            self.at_rest()
        self.report.seconds = time.monotonic() - self.began
        self.client.close()
        self.judge_client.close()
        return self.report

    def settle(self) -> None:
        """Until nothing is open, at most as long as I8 allows: deadline and two sweeps behind a protected run."""
        limit = time.monotonic() + 2 * self.plan.deadline_ms / 1000 + SWEEPS_S
        while time.monotonic() < limit and not self.seen_enough:
            if not any(
                item["state"] in {"queued", "running"}
                for told in self.told.values()
                for key, item in self.seen(told).items()
                if key.sk.startswith("RUN#")
            ):
                return
            time.sleep(0.2)


class _Starts:
    """`runs-to-start`, at least once."""

    def __init__(self, starts: Queue[tuple[str, str]]) -> None:
        self.starts = starts

    def send(self, body: Mapping[str, Any]) -> None:
        self.starts.put((body["conversation"], body["run"]))


class _Swallow:
    def send(self, body: Mapping[str, Any]) -> None:
        """Pushes are not part of the races."""


def _timed_out(_conversation: str, run: Run) -> Ending:
    draft = Draft(content="late", outcome="decline", response_source="stated_failure")
    return Ending("timed_out", "sweeper", f"sweeper-{run.run}", draft, problem="turn_timed_out")


def _needs_rest(text: str) -> bool:
    """What a look cannot judge because it reads a run's own partition a moment after the conversation."""
    return "I16" in text or "I15" in text


def _between_looks(text: str) -> bool:
    """What is true of two neighbouring states and not of two looks with many writes between them: the moves of a run
    (queued -> completed), and what HEAD was just before a reply. Endings that change are judged (`was …ended`)."""
    return text.startswith(("replies_count", "protected_runs")) or " moved " in text or "while it ran" in text


@contextmanager
def _shortened(plan: Plan) -> Iterator[None]:
    """A turn of seconds instead of minutes: the same rules at another scale."""
    from turngate.domain import finish, upkeep  # noqa: PLC0415 - only to set their scale

    places = [
        (accept, "TURN_DEADLINE_MS", plan.deadline_ms),
        (finish, "TURN_DEADLINE_MS", plan.deadline_ms),
        (accept, "START_GRACE_MS", plan.grace_ms),
        (upkeep, "START_GRACE_MS", plan.grace_ms),
        (accept, "PROTECT_AFTER_MS", plan.deadline_ms // 2),
        # nobody pushes here: events that stay owed would keep the sweeper busy with nothing but them
        (client_events, "PUSH_GRACE_MS", 10**9),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in places]
    for module, name, value in places:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


__all__ = ["ACCOUNT", "Chaos", "DiedError", "Plan", "Races", "Report"]
