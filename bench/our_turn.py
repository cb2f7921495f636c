"""A turn of ours for `make bench`: the real handlers one after another, as `statemachines/turn.asl.yaml` orders them.

Counted, for each invocation of a function: the event read from JSON (as the Lambda runtime does), the handler, its
answer written as JSON. Store, queues, sockets, starter, knowledge and embedder are the memory adapters and are counted
with the handler that uses them; the model is asked by the product's own HTTP client.
Not counted, because AWS does it: choosing the next state and building its input, queues and sockets themselves, the
Lambda runtime's loop, log formatting, and what botocore would add to each request.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bench.seeding import play_turn
from functions.chat.accept_message import handler as accept_message
from functions.chat.connect import handler as connect
from functions.chat.push_events import handler as push_events
from functions.turn.begin_turn import handler as begin_turn
from functions.turn.commit_turn import handler as commit_turn
from functions.turn.govern import handler as govern
from functions.turn.model import handler as model
from functions.turn.retrieve import handler as retrieve
from local.tenants import MALL, private_collections, read_tenant
from turngate.adapters.memory.edges import FixedClock, MemoryPusher, MemoryQueue, MemoryStarter, SeededIds
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.adapters.memory.knowledge import MemoryKnowledge
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.adapters.openai_chat import OpenAIChatModel
from turngate.chat.identity import as_context
from turngate.domain.shapes import TenantContext
from turngate.protocol.configuring import activate_config, activate_knowledge, put_config
from turngate.settings import Settings
from turngate.wiring import Ports

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.worker import Stopwatch
    from turngate.domain.transaction import Item, Key, Transaction

START_MS = 1_900_000_000_000
BETWEEN_TURNS_MS = 60_000
"""Nobody runs into his rate limit."""
WITH_PORTS = (accept_message, connect, push_events, begin_turn, commit_turn, model, retrieve)
CONTEXT = SimpleNamespace(aws_request_id="bench", get_remaining_time_in_millis=lambda: 9_000)


class CountedStore(MemoryConversationStore):
    """Each request a DynamoDB request."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    def get(self, account: str, wanted: Sequence[Key]) -> dict[Key, Item]:
        self.requests += 1
        return super().get(account, wanted)

    def query(self, account: str, pk: str, **rest: Any) -> list[Item]:  # noqa: ANN401 - passed on as it is
        self.requests += 1
        return super().query(account, pk, **rest)

    def write(self, account: str, transaction: Transaction) -> None:
        self.requests += 1
        super().write(account, transaction)

    def put_all(self, account: str, items: Iterable[tuple[Key, Item]]) -> None:
        self.requests += 1
        super().put_all(account, items)


class OurTurns:
    """The mall, and one customer with an open socket a conversation."""

    def __init__(self, scenario: dict[str, Any], base_url: str) -> None:
        self._question: str = scenario["question"]
        self._said: list[list[str]] = scenario["said"]
        self._clock = FixedClock(START_MS)
        self._ids = SeededIds(7)
        self._store = CountedStore()
        self._pushes = MemoryQueue()
        self._starter = MemoryStarter()
        self._pusher = MemoryPusher()
        self._customers: dict[str, TenantContext] = {}
        self._turns = 0
        knowledge, embedder = MemoryKnowledge(), HashingEmbedder()
        self._load_mall(knowledge, embedder)
        ports = Ports(
            Settings(public_http_url="https://chat.invalid"),
            clock=self._clock,
            ids=self._ids,
            store=self._store,
            events_to_push=self._pushes,
            runs_to_start=MemoryQueue(),
            turns=self._starter,
            pusher=self._pusher,
            model=OpenAIChatModel(base_url=base_url, api_key="none", model="fake"),
            knowledge=knowledge,
            embedder=embedder,
        )
        for module in WITH_PORTS:
            vars(module)["ports"] = ports

    def _load_mall(self, knowledge: MemoryKnowledge, embedder: HashingEmbedder) -> None:
        config, collections = read_tenant(MALL)
        private = private_collections(MALL)
        for name, documents in collections.items():
            knowledge.put_version(config.account, name, 1, documents, embedder)
        put_config(self._store, config, 1, collections={name: name not in private for name in collections})
        activate_config(self._store, config.account, 1)
        activate_knowledge(self._store, config.account, dict.fromkeys(collections, 1))
        self._account = config.account

    def seed(self, turns: int, conversation: str | None = None) -> str:
        tenant = self._customers[conversation] if conversation else self._new_customer()
        for number in range(turns):
            self._clock.advance(BETWEEN_TURNS_MS)
            question, reply = self._said[number % len(self._said)]
            conversation = play_turn(
                self._store,
                self._clock,
                self._ids,
                tenant=tenant,
                ident=f"seeded-{self._turns}-{number}",
                conversation=conversation,
                question=question,
                reply=reply,
            )
        if conversation is None:
            raise ValueError("a conversation has at least one turn")
        self._customers[conversation] = tenant
        return conversation

    def _new_customer(self) -> TenantContext:
        tenant = TenantContext(account=self._account, principal=f"user:{len(self._customers)}")
        connect.lambda_handler(self._socket_event(tenant, "$connect"), CONTEXT)
        return tenant

    def turn(self, conversation: str, watch: Stopwatch) -> str:
        self._turns += 1
        self._clock.advance(BETWEEN_TURNS_MS)
        tenant = self._customers[conversation]
        frame = {
            "type": "message.send",
            "client_message_id": f"asked-{self._turns}",
            "conversation_id": conversation,
            "text": self._question,
        }
        event = self._socket_event(tenant, "$default", json.dumps(frame))
        self._invoke(watch, "AcceptMessage", accept_message, event)
        name, order = self._starter.started.pop()
        ended = self._run_machine(watch, name, order)
        orders = [*self._pushes.sent, ended["announcement"]]
        self._pushes.sent.clear()
        for number, order in enumerate(orders):  # at low load SQS hands them over one by one
            record = {"messageId": f"order-{number}", "body": json.dumps(order, ensure_ascii=False)}
            self._invoke(watch, "PushEvents", push_events, {"Records": [record]})
        return self._reply_seen_by(tenant)

    def _socket_event(self, tenant: TenantContext, route: str, body: str | None = None) -> dict[str, Any]:
        context = {
            "routeKey": route,
            "authorizer": {**as_context(tenant), "principalId": tenant.principal},
            "connectionId": tenant.principal,
            "connectedAt": START_MS,
            "requestId": f"request-{self._turns}",
        }
        return {"requestContext": context, "isBase64Encoded": False, "body": body}

    def _reply_seen_by(self, tenant: TenantContext) -> str:
        """What the turn's last `message.completed` said on the customer's socket."""
        frames = [json.loads(frame) for frame in self._pusher.frames.pop(tenant.principal, [])]
        texts = [frame["data"]["content"] for frame in frames if frame["type"] == "message.completed"]
        return str(texts[-1]) if texts else ""

    def _run_machine(self, watch: Stopwatch, name: str, order: dict[str, Any]) -> dict[str, Any]:
        """The path of a knowledge turn through the machine; any other one is an error of the scenario."""
        begun = self._invoke(watch, "BeginTurn", begin_turn, {"order": order, "execution": name})
        if begun["kind"] != "fresh":
            raise ValueError(f"BeginTurn said {begun['kind']}, and the bench plays knowledge turns only")
        turn, spoken, governance = begun["turn"], begun["input"], begun["governance"]
        understand = {
            "task": "understand",
            "turn": turn,
            "input": spoken,
            "history": begun["history"],
            "governance": governance,
            "resumption": {},
        }
        understood = self._invoke(watch, "Understand", model, understand)
        ruling = {
            "input": spoken,
            "tenant": begun["tenant"],
            "understanding": understood["understanding"],
            "governance": governance,
            "resumption": {},
        }
        ruled = self._invoke(watch, "Govern", govern, ruling)
        results = [
            self._invoke(watch, "Retrieve", retrieve, {"turn": turn, "part": part})
            for part in ruled["parts"]
            if part["route"]["kind"] == "KB"
        ]
        compose = {
            "task": "compose",
            "turn": turn,
            "input": spoken,
            "governance": governance,
            "parts": ruled["parts"],
            "results": results,
            "events": ruled["events"],
            "trace": ruled["trace"],
            "usage": understood["usage"],
        }
        composed = self._invoke(watch, "ComposeReply", model, compose)
        commit = {
            "turn": turn,
            "draft": composed["draft"],
            "usage": composed["usage"],
            "pending": ruled["pending"],
        }
        return self._invoke(watch, "CommitTurn", commit_turn, commit)

    def _invoke(self, watch: Stopwatch, step: str, function: Any, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a module
        """One invocation as the Lambda runtime makes it: JSON in, JSON out."""
        sent = json.dumps(event, ensure_ascii=False)
        before = self._store.requests
        with watch.step(step):
            answer = json.dumps(function.lambda_handler(json.loads(sent), CONTEXT), ensure_ascii=False)
        watch.requests[step] += self._store.requests - before
        received: dict[str, Any] = json.loads(answer)
        return received
