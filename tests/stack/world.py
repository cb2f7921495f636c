"""The deployed stack, and the questions tests ask about it: who is on the line, what the table holds, what ran."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from bench.seeding import play_turn
from local.chat_client import ChatClient, call, welcome
from local.stack import ROOT, Stack
from tests.protocol.promises import violations
from turngate.adapters.dynamodb.marshal import from_attributes
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.adapters.system import SystemClock, SystemIds
from turngate.domain import keys
from turngate.domain.fence import NO_ACCOUNT
from turngate.domain.transaction import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.stack.model_double import ModelDouble
    from turngate.domain.shapes import TenantContext
    from turngate.domain.transaction import Item

NEEDED = (".venvs/emulator", ".venvs/sam", ".venvs/runtime", ".venvs/demo-model")
BATCH = 25
"""DynamoDB's bound of one batch."""
PASSWORD = "Correct-horse-7"


def skip_without_setup() -> None:
    for venv in NEEDED:
        if not (ROOT / venv / ".installed").exists():
            pytest.skip(f"{venv} is missing: run `make setup`")


@dataclass
class Person:
    """Somebody with a token; every chat of theirs is closed with the test."""

    world: World
    token: str
    chats: ExitStack = field(default_factory=ExitStack)

    def chat(self, conversation: str | None = None, ticket: str | None = None) -> ChatClient:
        """A connected client that has been told `session.ready`."""
        client = ChatClient(self.world.stack.http_url, self.world.stack.socket_url, self.token, conversation)
        client.connect(ticket)
        self.chats.callback(client.disconnect)
        self.world.clients.append(client)
        return client


@dataclass
class World:
    """One deployed stack. `double` stands between it and the demo model."""

    stack: Stack
    double: ModelDouble
    clients: list[ChatClient] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)

    # who is on the line

    def guest(self, account: str = "mall") -> Person:
        return self.person(welcome(self.stack.http_url, account))

    def person(self, token: str) -> Person:
        made = Person(self, token)
        self.people.append(made)
        return made

    def guest_as(self, tenant: TenantContext) -> Person:
        """Somebody whose identity a test chose, for conversations that were seeded."""
        token = f"guest.{uuid.uuid4().hex}"
        item: Item = {
            "entity": "guest",
            "tenant": tenant.known(),
            "expires_at": int(time.time() * 1000) + 600_000,
        }
        key = keys.ticket(hashlib.sha256(token.encode()).hexdigest())
        self.stack.store.put_all(NO_ACCOUNT, [(key, item)])
        return self.person(token)

    def sign_in(self, **claims: str) -> str:
        """The id token of a new user of the stack's user pool with these custom attributes."""
        identity = self.stack.emulator.client("cognito-idp")
        pool, app = self.stack.outputs["UserPoolId"], self.stack.outputs["UserPoolClientId"]
        name = f"user-{uuid.uuid4().hex[:8]}"
        attributes = [{"Name": f"custom:{key}", "Value": value} for key, value in claims.items()]
        identity.admin_create_user(
            UserPoolId=pool, Username=name, UserAttributes=attributes, MessageAction="SUPPRESS"
        )
        identity.admin_set_user_password(UserPoolId=pool, Username=name, Password=PASSWORD, Permanent=True)
        answer = identity.admin_initiate_auth(
            UserPoolId=pool,
            ClientId=app,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": name, "PASSWORD": PASSWORD},
        )
        return str(answer["AuthenticationResult"]["IdToken"])

    def call(self, method: str, path: str, token: str = "", body: object = None, language: str = "en"):
        raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return call(method, f"{self.stack.http_url}{path}", token=token, body=raw, language=language)

    # what the table holds

    def get(self, account: str, key: Key) -> Item | None:
        return self.stack.store.get(account, (key,)).get(key)

    def head(self, conversation: str, account: str = "mall") -> Item:
        item = self.get(account, keys.head(account, conversation))
        assert item is not None, f"no conversation {conversation}"
        return item

    def partition(self, pk: str) -> dict[Key, Item]:
        """Every item of one partition."""
        client = self.stack.emulator.client("dynamodb")
        pages = client.get_paginator("query").paginate(
            TableName=self.stack.outputs["TableName"],
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": pk}},
            ConsistentRead=True,
        )
        return {
            Key(item["PK"]["S"], item["SK"]["S"]): from_attributes(item)
            for page in pages
            for item in page["Items"]
        }

    def conversation(self, conversation: str, account: str = "mall") -> dict[Key, Item]:
        """Every item of a conversation and of its runs."""
        items = self.partition(keys.conversation(account, conversation))
        runs = [key.sk.removeprefix("RUN#") for key in items if key.sk.startswith("RUN#")]
        for run in runs:
            items |= self.partition(keys.run_partition(account, run))
        return items

    def runs(self, conversation: str, account: str = "mall") -> list[Item]:
        """Runs of a conversation by their trigger's seq."""
        items = self.partition(keys.conversation(account, conversation))
        return sorted(
            (item for key, item in items.items() if key.sk.startswith("RUN#")), key=lambda run: run["seq"]
        )

    def run_log(self, run: str, account: str = "mall") -> dict[str, dict[str, Any]]:
        """Data of a run's log entries, by `part#step#kind`."""
        items = self.partition(keys.run_partition(account, run))
        return {
            key.sk.removeprefix("EV#"): json.loads(item["data"])
            for key, item in items.items()
            if key.sk.startswith("EV#")
        }

    def settle(self, conversation: str, account: str = "mall", timeout: float = 30) -> dict[Key, Item]:
        """Wait until no run is open; the conversation's items then, which keep every promise."""
        self.wait(
            lambda: not self.head(conversation, account).get("active_run"), f"end of {conversation}", timeout
        )
        items = self.conversation(conversation, account)
        assert violations(items) == []
        return items

    # what ran

    @cached_property
    def function_names(self) -> dict[str, str]:
        """Deployed name of each function by its logical name without `Function`."""
        found = self.stack.emulator.client("lambda").get_paginator("list_functions").paginate()
        return {
            each["FunctionName"].split("-")[1].removesuffix("Function"): each["FunctionName"]
            for page in found
            for each in page["Functions"]
        }

    def sweep(self) -> None:
        """What the schedule does each minute, now; does not wait for the second pass."""
        self.stack.emulator.client("lambda").invoke(
            FunctionName=self.function_names["SweepDueItems"], InvocationType="Event", Payload=b"{}"
        )

    def wait(self, until: Callable[[], bool], what: str, timeout: float = 30) -> None:
        deadline = time.monotonic() + timeout
        while not until():
            assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}"
            time.sleep(0.1)

    def close_clients(self) -> None:
        for person in self.people:
            person.chats.close()
        self.people.clear()
        self.clients.clear()


def seed_turns(world: World, tenant: TenantContext, turns: int, said: Sequence[tuple[str, str]]) -> str:
    """A conversation of whole turns (question, reply, over and over), as the product's own protocol leaves it; its id.

    Played on the memory store, which keeps the same items, and then copied into the table: hundreds of turns in a
    second."""
    store, account = MemoryConversationStore(), tenant.account
    pinned = (keys.config_active(account), keys.knowledge_pins(account))
    store.put_all(account, list(world.stack.store.get(account, pinned).items()))
    opening, conversation = uuid.uuid4().hex, None
    for number in range(turns):
        question, reply = said[number % len(said)]
        conversation = play_turn(
            store,
            SystemClock(),
            SystemIds(),
            tenant=tenant,
            ident=f"{opening}-{number}",
            conversation=conversation,
            question=question,
            reply=reply,
        )
    assert conversation is not None
    items = [(key, item) for key, item in store.snapshot().items() if key not in pinned]
    for first in range(0, len(items), BATCH):
        world.stack.store.put_all(account, items[first : first + BATCH])
    return conversation


@contextmanager
def all_clients_closed(world: World) -> Iterator[World]:
    try:
        yield world
    finally:
        world.double.forget()
        world.close_clients()
