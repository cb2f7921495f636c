"""A conversation on the memory store with a clock that stands still, driven through the product's own drivers.

Every write is held to the promises as it happens (`promises.py`), whatever the test at hand asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.protocol.promises import forbidden_moves, violations
from turngate.adapters.memory.edges import FixedClock, MemoryPusher, MemoryQueue, SeededIds
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.finish import Ending
from turngate.domain.rate import RateLimit
from turngate.domain.records import Head, Run
from turngate.domain.shapes import Draft, TenantContext
from turngate.errors import TransientError
from turngate.protocol.accepting import IncomingMessage, accept_message
from turngate.protocol.announcing import push_events
from turngate.protocol.beginning import Begun, begin_run
from turngate.protocol.finishing import Committed, NotCurrent, cancelled, finish_run
from turngate.protocol.handing_over import Change, change_hands, reply_as_human
from turngate.protocol.sweeping import Sweeper, SweepFindings

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.domain.accept import AcceptResult
    from turngate.domain.begin import Duplicate
    from turngate.domain.records import RunState
    from turngate.domain.transaction import Item, Key, Transaction

START = 1_900_000_000_000
ACCOUNT = "acme"
GENEROUS = RateLimit(burst=1000, per_minute=6000)


class WatchedStore(MemoryConversationStore):
    """Holds every write to the promises, and does to single writes what networks do.

    `before` runs ahead of the next write that its name matches (once); `lose` makes that many writes of that name
    succeed and report a lost response; `drop` makes them fail before they reach the table. `watching` False leaves the
    checks to the end of the test: they read the whole table at every write."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], object]] = {}
        self.lose: dict[str, int] = {}
        self.drop: dict[str, int] = {}
        self.written: list[str] = []
        self.watching = True

    def write(self, account: str, transaction: Transaction) -> None:
        name = transaction.name
        interruption = self.before.pop(name, None)
        if interruption is not None:
            interruption()
        if self._take(self.drop, name):
            raise TransientError("never arrived")
        was = self.snapshot() if self.watching else {}
        super().write(account, transaction)
        self.written.append(name)
        if self.watching:
            now = self.snapshot()
            assert forbidden_moves(was, now) + violations(now) == []
        if self._take(self.lose, name):
            raise TransientError("the response was lost")

    def _take(self, counts: dict[str, int], name: str) -> bool:
        left = counts.get(name, 0)
        counts[name] = max(0, left - 1)
        return left > 0


@dataclass
class World:
    """One customer, one conversation, and everyone who works on it. Methods are named as people would say it."""

    store: WatchedStore = field(default_factory=WatchedStore)
    clock: FixedClock = field(default_factory=lambda: FixedClock(START))
    ids: SeededIds = field(default_factory=lambda: SeededIds(7))
    pusher: MemoryPusher = field(default_factory=MemoryPusher)
    starts: MemoryQueue = field(default_factory=MemoryQueue)
    pushes: MemoryQueue = field(default_factory=MemoryQueue)
    limit: RateLimit = GENEROUS
    conversation: str = ""
    writers: int = 0

    def __post_init__(self) -> None:
        self.activate(1, {"help": 1})

    def activate(self, version: int, pins: dict[str, int]) -> None:
        self.store.put_all(
            ACCOUNT,
            [
                (keys.config_active(ACCOUNT), {"version": version}),
                (keys.knowledge_pins(ACCOUNT), {"versions": pins}),
            ],
        )

    def say(
        self,
        text: str,
        id_: str = "",
        *,
        who: str = "ann",
        conversation: str | None = None,
        opening: str | None = None,
        message_type: str = "user_chat",
        language: str = "en",
        writer: str | None = None,
    ) -> AcceptResult:
        """Send a message; to the world's conversation once there is one."""
        self.writers += 1
        result = accept_message(
            self.store,
            self.clock,
            self.ids,
            tenant=TenantContext(account=ACCOUNT, principal=who, customer=f"cust-{who}"),
            message=IncomingMessage(
                client_message_id=id_ or text,
                text=text,
                message_type=message_type,
                conversation=conversation or (None if opening else self.conversation or None),
                opening=opening,
                language=language,
            ),
            writer=writer or f"w{self.writers}",
            limit=self.limit,
        )
        self.conversation = self.conversation or result.conversation
        return result

    def begin(self, run: str | None, execution: str = "x1") -> Begun | Duplicate:
        assert run is not None
        return begin_run(
            self.store,
            self.clock,
            account=ACCOUNT,
            conversation=self.conversation,
            run_id=run,
            execution=execution,
        )

    def begun(self, run: str | None, execution: str = "x1") -> Begun:
        begun = self.begin(run, execution)
        assert isinstance(begun, Begun)
        return begun

    def reply(
        self, run: str | None, text: str = "an answer", execution: str = "x1"
    ) -> Committed | NotCurrent:
        return self.end(
            run, Ending("completed", "execution", execution, Draft(content=text, outcome="answer"))
        )

    def fail(self, run: str | None, execution: str = "x1") -> Committed | NotCurrent:
        draft = Draft(content="sorry", outcome="decline", response_source="stated_failure")
        return self.end(run, Ending("failed", "execution", execution, draft, problem="model_unavailable"))

    def cancel(self, run: str | None, writer: str = "stop-1") -> Committed | NotCurrent:
        return self.end(run, cancelled(writer))

    def end(self, run: str | None, ending: Ending) -> Committed | NotCurrent:
        assert run is not None
        return finish_run(
            self.store,
            self.clock,
            self.ids,
            account=ACCOUNT,
            conversation=self.conversation,
            run_id=run,
            ending=ending,
        )

    def answer(self, run: str | None, text: str = "an answer", execution: str = "x1") -> Committed:
        """Begin and commit."""
        self.begun(run, execution)
        done = self.reply(run, text, execution)
        assert isinstance(done, Committed)
        return done

    def hands(self, change: Change, *, term: int, agent: str = "bob") -> str | None:
        return change_hands(
            self.store,
            self.clock,
            self.ids,
            account=ACCOUNT,
            conversation=self.conversation,
            change=change,
            term=term,
            agent=agent,
        )

    def human(self, text: str, id_: str = "", *, agent: str = "bob", writer: str = "hw") -> int:
        return reply_as_human(
            self.store,
            self.clock,
            self.ids,
            account=ACCOUNT,
            conversation=self.conversation,
            agent=agent,
            client_message_id=id_ or text,
            text=text,
            writer=writer,
        )

    def sweep(self, for_ms: int = 60_000) -> SweepFindings:
        sweeper = Sweeper(self.store, self.clock, self.ids, self.starts, self.pushes, timed_out)
        return sweeper.sweep(until_ms=self.clock.now_ms() + for_ms)

    def push(self, evt: int) -> int:
        return push_events(
            self.store, self.pusher, self.clock, account=ACCOUNT, conversation=self.conversation, evt=evt
        )

    @property
    def items(self) -> dict[Key, Item]:
        return self.store.snapshot()

    @property
    def head(self) -> Head:
        return Head.from_item(self.items[keys.head(ACCOUNT, self.conversation)])

    def run(self, run: str | None) -> Run:
        return Run.from_item(self.run_item(run))

    def run_item(self, run: str | None) -> Item:
        assert run is not None
        return self.items[keys.run(ACCOUNT, self.conversation, run)]

    def state(self, run: str | None) -> RunState:
        return self.run(run).state

    def messages(self, kinds: str = "URHS") -> list[tuple[int, str, str]]:
        """(seq, kind, text) in order."""
        found = self.store.query(
            ACCOUNT, keys.conversation(ACCOUNT, self.conversation), first="MSG#", last="MSG#~", limit=1000
        )
        return [(m["seq"], m["kind"], m.get("text", "")) for m in found if m["kind"] in kinds]

    @property
    def replies(self) -> list[str]:
        return [text for _, _, text in self.messages("R")]

    def frames(self) -> list[dict[str, Any]]:
        from turngate.protocol.announcing import read_log  # noqa: PLC0415 - reads better beside its only use

        return read_log(self.store, ACCOUNT, self.conversation, 0, 1000)

    def event_types(self) -> list[str]:
        return [frame["type"] for frame in self.frames()]


def timed_out(_conversation: str, run: Run) -> Ending:
    draft = Draft(content="that took too long", outcome="decline", response_source="stated_failure")
    return Ending("timed_out", "sweeper", f"sweeper-{run.run}", draft, problem="turn_timed_out")
