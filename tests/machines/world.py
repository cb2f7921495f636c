"""The whole product but AWS: real handlers and the real turn machine over memory adapters, driven as clients drive it.

A frame goes in through `$default`, executions are run one by one, orders are delivered to `push_events` and
`start_run`, and what comes out are the frames each socket received. Every write is held to the promises by
`WatchedStore`; everything that crosses a queue or a state passes through JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.chat.accept_message import handler as accept_message
from functions.chat.authorize import handler as authorize
from functions.chat.connect import handler as connect
from functions.chat.disconnect import handler as disconnect
from functions.chat.issue_ticket import handler as issue_ticket
from functions.chat.push_events import handler as push_events
from functions.turn.begin_turn import handler as begin_turn
from functions.turn.commit_turn import handler as commit_turn
from functions.turn.fail_turn import handler as fail_turn
from functions.turn.govern import handler as govern
from functions.turn.model import handler as model
from functions.turn.resume_pending import handler as resume_pending
from functions.turn.retrieve import handler as retrieve
from functions.turn.start_run import handler as start_run
from functions.upkeep.sweep_due_items import handler as sweep_due_items
from tests.machines.aws_events import CONTEXT, socket_event, sqs_event
from tests.machines.interpreter import Execution, Interpreter, StateFailedError
from tests.machines.tenant import ACCOUNT, CUSTOMER, DOCUMENTS, StubVerifier
from tests.protocol.promises import violations
from tests.protocol.world import START, WatchedStore
from tests.template.template_rules import warm_ports
from tests.unit.assistant_example import config
from tools.asl import read_machine
from turngate.adapters.memory.edges import FixedClock, MemoryPusher, MemoryQueue, MemoryStarter, SeededIds
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.adapters.memory.knowledge import MemoryKnowledge
from turngate.adapters.memory.model import ScriptedModelClient
from turngate.domain import keys
from turngate.domain.packing import unpack
from turngate.domain.records import Head, Run
from turngate.errors import TransientError
from turngate.protocol.configuring import activate_config, activate_knowledge, put_config
from turngate.settings import Settings
from turngate.wiring import Ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from turngate.domain.config import AssistantConfig
    from turngate.domain.shapes import TenantContext
    from turngate.domain.transaction import Item, Key, Transaction

ROOT = Path(__file__).resolve().parents[2]
SOCKET = "conn-ann"
MACHINE = read_machine(ROOT / "statemachines" / "turn.asl.yaml")
QUEUE_URL = "https://queues.invalid/events-to-push"
WITH_PORTS = (
    accept_message,
    authorize,
    connect,
    disconnect,
    issue_ticket,
    push_events,
    begin_turn,
    commit_turn,
    fail_turn,
    model,
    resume_pending,
    retrieve,
    start_run,
    sweep_due_items,
)
"""Every handler module that holds ports."""
FUNCTIONS: Mapping[str, Callable[[dict[str, Any], object], dict[str, Any]]] = {
    "BeginTurn": begin_turn.lambda_handler,
    "ResumePending": resume_pending.lambda_handler,
    "Model": model.lambda_handler,
    "Govern": govern.lambda_handler,
    "Retrieve": retrieve.lambda_handler,
    "CommitTurn": commit_turn.lambda_handler,
    "FailTurn": fail_turn.lambda_handler,
}


class CountingStore(WatchedStore):
    """Counts requests by the state or function that makes them. `drop["put_all"]` makes that many batches fail."""

    def __init__(self) -> None:
        super().__init__()
        self.user = "setup"
        self.requests: Counter[str] = Counter()

    def get(self, account: str, wanted: Any) -> dict[Key, Item]:
        self.requests[self.user] += 1
        return super().get(account, wanted)

    def query(self, account: str, pk: str, **rest: Any) -> list[Item]:
        self.requests[self.user] += 1
        return super().query(account, pk, **rest)

    def write(self, account: str, transaction: Transaction) -> None:
        self.requests[self.user] += 1
        super().write(account, transaction)

    def put_all(self, account: str, items: Iterable[tuple[Key, Item]]) -> None:
        self.requests[self.user] += 1
        if self._take(self.drop, "put_all"):
            raise TransientError("never arrived")
        super().put_all(account, items)


class TurnWorld:
    """Two customers' sockets, one account, one machine. Methods are named as people would say it.

    `before[state]` runs ahead of the next task of that state (once); `faults[state]` are the errors its next tasks end
    with, before they do anything; `lost[state]` counts tasks that do their work and then time out."""

    def __init__(self, answers: Iterable[Any] = (), configuration: AssistantConfig | None = None) -> None:
        self.store = CountingStore()
        self.clock = FixedClock(START)
        self.pushes = MemoryQueue()
        self.starts = MemoryQueue()
        self.starter = MemoryStarter()
        self.pusher = MemoryPusher()
        self.model = ScriptedModelClient(answers)
        self.scripted = len(self.model._answers)
        self.knowledge = MemoryKnowledge()
        self.embedder: Any = HashingEmbedder()
        self.before: dict[str, Callable[[], object]] = {}
        self.faults: defaultdict[str, deque[str]] = defaultdict(deque)
        self.lost: Counter[str] = Counter()
        self.conversation = ""
        self.executions = 0
        self.frames_sent: list[dict[str, Any]] = []
        self.ports = self._ports()
        self._load(configuration or config())
        functions = {f"{name}FunctionArn": name for name in FUNCTIONS}
        self.machine = Interpreter(
            MACHINE, {**functions, "EventsToPushQueueUrl": QUEUE_URL}, _MachineTasks(self)
        )

    def _ports(self) -> Ports:
        return Ports(
            Settings(public_http_url="https://chat.example"),
            store=self.store,
            clock=self.clock,
            ids=SeededIds(7),
            events_to_push=self.pushes,
            runs_to_start=self.starts,
            turns=self.starter,
            pusher=self.pusher,
            model=self.model,
            knowledge=self.knowledge,
            embedder=self,
            tokens=StubVerifier(),
        )

    def ports_of(self, module: Any) -> Ports:
        """Only what the handler names in `wiring.live`: with anything else it would fail in its Lambda, too."""
        named = list(warm_ports(Path(module.__file__)))
        if module is authorize:
            named.append("tokens")  # built for the first bearer token, if ever
        given = {name: getattr(self.ports, name) for name in ("clock", "ids", *named)}
        return Ports(self.ports.settings, **given)

    def embed(self, texts: Iterable[str], *, timeout_s: float | None = None) -> list[list[float]]:
        """The embedder of the moment, so that a story can take it away."""
        vectors: list[list[float]] = self.embedder.embed(texts, timeout_s=timeout_s)
        return vectors

    def _load(self, configuration: AssistantConfig) -> None:
        for name, documents in DOCUMENTS.items():
            self.knowledge.put_version(ACCOUNT, name, 1, documents, self.embedder)
        put_config(self.store, configuration, 1, collections=dict.fromkeys(DOCUMENTS, True))
        activate_config(self.store, ACCOUNT, 1)
        activate_knowledge(self.store, ACCOUNT, dict.fromkeys(DOCUMENTS, 1))

    # what a client does

    def open_socket(self, who: TenantContext = CUSTOMER, socket: str = SOCKET) -> None:
        self._as(
            "connect", lambda: connect.lambda_handler(socket_event(None, who, socket, "$connect"), CONTEXT)
        )

    def send(self, frame: object, who: TenantContext = CUSTOMER, socket: str = SOCKET) -> dict[str, Any]:
        """One frame, as an object or as the very text of it."""
        body = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
        event = socket_event(body, who, socket, "$default", request=f"req-{len(self.frames_sent)}")
        self.frames_sent.append({"body": body})
        return self._as("accept", lambda: accept_message.lambda_handler(event, CONTEXT))

    def say(self, text: str, id_: str = "", who: TenantContext = CUSTOMER, **fields: Any) -> None:
        """`message.send` into the world's conversation, which the first message opens."""
        id_ = id_ or f"m{len(self.frames_sent) + 1}"
        if self.conversation:
            fields = {"conversation_id": self.conversation, **fields}
        self.send({"type": "message.send", "client_message_id": id_, "text": text, **fields}, who)
        self.conversation = self.conversation or keys.conversation_id_for(ACCOUNT, who.principal, id_)

    # what AWS does

    def turn(self, which: int = 0) -> Execution:
        """Run the execution that was started `which`-th of those still waiting."""
        name, order = self.starter.started.pop(which)
        return self.execute(name, order)

    def execute(self, name: str, order: dict[str, Any]) -> Execution:
        """One more execution of a start; EXPRESS starts at least once."""
        self.executions += 1
        arn = f"arn:aws:states:eu-central-1:000000000000:express:turn:{name}:{self.executions}"
        return self.machine.run(order, arn)

    def invoke(self, state: str, function: str, payload: Any) -> Any:
        if (interruption := self.before.pop(state, None)) is not None:
            interruption()
        if self.faults[state]:
            raise StateFailedError(self.faults[state].popleft(), "injected")
        try:
            answer = self._as(state, lambda: FUNCTIONS[function](payload, CONTEXT))
        except AssertionError:
            raise  # a broken promise is never a turn that fails
        except Exception as error:  # as the Lambda runtime reports it
            cause = {"errorMessage": str(error), "errorType": type(error).__name__}
            raise StateFailedError(type(error).__name__, json.dumps(cause)) from error
        if self.lost[state]:
            self.lost[state] -= 1
            raise StateFailedError("Lambda.Unknown", "no response")
        return answer

    def deliver_pushes(self) -> None:
        """Everything in `events-to-push`, as one batch of records."""
        bodies, self.pushes.sent[:] = list(self.pushes.sent), []
        self._batch("push", push_events.lambda_handler, bodies)

    def deliver_starts(self) -> None:
        bodies, self.starts.sent[:] = list(self.starts.sent), []
        self._batch("start", start_run.lambda_handler, bodies)

    def sweep(self) -> dict[str, Any]:
        return self._as("sweep", lambda: sweep_due_items.lambda_handler({}, CONTEXT))

    def _batch(self, user: str, function: Any, bodies: list[Any]) -> None:
        if bodies:
            event = sqs_event([json.dumps(body, ensure_ascii=False) for body in bodies])
            assert self._as(user, lambda: function(event, CONTEXT)) == {"batchItemFailures": []}

    def _as(self, user: str, act: Callable[[], Any]) -> Any:
        outer, self.store.user = self.store.user, user
        try:
            return act()
        finally:
            self.store.user = outer

    # what one sees afterwards

    def received(self, socket: str = SOCKET) -> list[dict[str, Any]]:
        """Every frame that a socket got, in order."""
        self.deliver_pushes()
        return [json.loads(frame) for frame in self.pusher.frames[socket]]

    @property
    def head(self) -> Head:
        return Head.from_item(self.store.snapshot()[keys.head(ACCOUNT, self.conversation)])

    def runs(self) -> list[Run]:
        """In the order of their triggers."""
        partition = keys.conversation(ACCOUNT, self.conversation)
        found = [
            Run.from_item(item)
            for key, item in self.store.snapshot().items()
            if key.pk == partition and key.sk.startswith("RUN#")
        ]
        return sorted(found, key=lambda run: run.seq)

    @property
    def replies(self) -> list[dict[str, Any]]:
        partition = keys.conversation(ACCOUNT, self.conversation)
        items = sorted(self.store.snapshot().items())
        return [item for key, item in items if key.pk == partition and key.sk.endswith("#R")]

    @property
    def reply(self) -> dict[str, Any]:
        (only,) = self.replies
        return only

    def run_log(self, run: str) -> list[tuple[str, int, str, dict[str, Any]]]:
        """(part, step, kind, data) in the order of the keys."""
        partition = keys.run_partition(ACCOUNT, run)
        found = []
        for key, item in sorted(self.store.snapshot().items()):
            if key.pk == partition and key.sk.startswith("EV#"):
                _, part, step, _ = key.sk.split("#")
                found.append((part, int(step), item["kind"], json.loads(item["data"])))
        return found

    def work(self, run: str, part: str, name: str) -> Any:
        """A working text of a run, None when there is none."""
        item = self.store.snapshot().get(keys.working(ACCOUNT, run, part, name))
        return json.loads(unpack(item["text"])) if item else None

    def close(self) -> None:
        """The end of every story: no promise is broken, nothing scripted is left, nothing was asked beyond it."""
        assert violations(self.store.snapshot()) == []
        self.model.assert_used()
        assert len(self.model.calls) == self.scripted, "the model was asked more often than the story says"


class _MachineTasks:
    """The world as the machine sees it."""

    def __init__(self, world: TurnWorld) -> None:
        self._world = world

    def invoke(self, state: str, function: str, payload: Any) -> Any:
        return self._world.invoke(state, function, payload)

    def send(self, state: str, queue_url: str, body: Any) -> None:
        assert queue_url == QUEUE_URL, state
        if self._world.pushes.down:
            raise StateFailedError("SQS.SdkClientException", "the queue is down")
        self._world.pushes.send(body)
