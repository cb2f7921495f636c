"""What a turn costs, counted from a real run and held against the budgets; equal however long the conversation is."""

from __future__ import annotations

import uuid

import pytest

from bench.scenario import QUESTION, mall_scenario
from bench.turn_costs import count, dollars_per_1000, table_of
from tests.stack.world import seed_turns
from turngate.domain import keys
from turngate.domain.shapes import TenantContext

KNOWLEDGE = QUESTION
FIXED = "hello"
SHORT, LONG = 20, 300
"""Ten turns are said over and over, so that both lengths have the same last 24 messages."""
WRITES = 42
"""BUDGETS.md, accept included."""


@pytest.fixture(scope="module")
def turns(started, report):
    """Costs of a knowledge turn and of a fixed reply, as turn 20 and as turn 300 of a conversation."""
    world, _ = started
    world.stack.emulator.clear_faults()
    warm(world)
    measured = {}
    for length in (SHORT, LONG):
        tenant = TenantContext(account="mall", principal=f"user:{uuid.uuid4().hex}")
        conversation = seed_turns(world, tenant, length - 2, mall_scenario().said)
        for name, question in (("fixed reply", FIXED), ("knowledge turn", KNOWLEDGE)):
            measured[name, length] = measure(world, tenant, conversation, question)
    lines = [table_of({f"{name} {length}": costs for (name, length), costs in measured.items()})]
    for name in ("fixed reply", "knowledge turn"):
        costs = measured[name, LONG]
        lines.append(
            f"{name}: " + ", ".join(f"{sk} {size} B {units} WRU" for sk, size, units in costs.written)
        )
        for seconds in (0, 3) if costs.model_calls else (0,):
            lines.append(f"$ per 1,000, model {seconds} s: {dollars_per_1000(costs, model_seconds=seconds)}")
    report("\n".join(lines))
    return measured


def warm(world):
    """The worker that was used last is used next: one turn of each kind, and it holds the configuration. Orders that
    killed workers of an earlier test left in flight for a minute are dropped: the sweeper has repeated them."""
    world.stack.emulator.client("sqs").purge_queue(QueueUrl=world.stack.outputs["EventsToPushQueueUrl"])
    person = world.guest()
    with person.chats:
        chat = person.chat()
        for question in (KNOWLEDGE, FIXED):
            chat.ending(chat.ask(question, timeout=60)["run_id"])
    world.people.remove(person)
    world.wait(lambda: nothing_queued(world), "all pushes")


def nothing_queued(world):
    """Every order to push was carried out and deleted."""
    found = world.stack.emulator.client("sqs").get_queue_attributes(
        QueueUrl=world.stack.outputs["EventsToPushQueueUrl"], AttributeNames=["All"]
    )["Attributes"]
    waiting = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
    return all(found[name] == "0" for name in waiting)


def measure(world, tenant, conversation, question):
    emulator = world.stack.emulator
    person = world.guest_as(tenant)
    with person.chats:
        chat = person.chat()  # without the conversation: nothing is replayed to it
        chat.conversation = conversation
        before = [
            *raw_partition(world, keys.conversation(tenant.account, conversation)),
            *raw_partition(world, keys.principal(tenant.account, tenant.principal)),
            *raw_partition(world, f"{keys.account_prefix(tenant.account)}CFG"),
        ]
        asked = len(world.double.asked)
        seen = len(emulator.records())
        reply = chat.ask(question)
        chat.ending(reply["run_id"])
        world.wait(lambda: nothing_queued(world), "all pushes")
        records = emulator.records()[seen:]
        names = {deployed: name for name, deployed in world.function_names.items()}
        costs = count(records, before, names)
        costs.model_calls = len(world.double.asked) - asked
    world.people.remove(person)
    principal = keys.principal(tenant.account, tenant.principal)
    world.wait(lambda: not any(k.sk.startswith("CONN") for k in world.partition(principal)), "the goodbye")
    assert reply["data"]["outcome"] == "answer"
    return costs


def raw_partition(world, pk):
    client = world.stack.emulator.client("dynamodb")
    pages = client.get_paginator("query").paginate(
        TableName=world.stack.outputs["TableName"],
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": pk}},
        ConsistentRead=True,
    )
    return [item for page in pages for item in page["Items"]]


@pytest.mark.parametrize("name", ["knowledge turn", "fixed reply"])
def test_a_turn_costs_the_same_however_long_the_conversation_is(turns, name):
    """Also read units: at turn 20 begin reads what there is, from turn 35 on its whole window."""
    short, long = (turns[name, length].as_counts() for length in (SHORT, LONG))
    window = long["steps"]["BeginTurn"].pop("reads") - short["steps"]["BeginTurn"].pop("reads")
    assert short == long
    assert 0 <= window <= 3


def test_a_knowledge_turn_keeps_its_budget(turns):
    costs = turns["knowledge turn", LONG]
    assert costs.total("requests", ("PushEvents",)) <= 20
    assert costs.total("writes", ("PushEvents",)) <= WRITES
    assert costs.states <= 12
    assert costs.path_lambdas <= 6
    assert costs.model_calls <= 2
    assert costs.pushes <= 5
    assert dollars_per_1000(costs, model_seconds=0)["total"] <= 0.12


def test_a_fixed_reply_keeps_its_budget(turns):
    costs = turns["fixed reply", LONG]
    assert costs.states <= 6
    assert costs.path_lambdas <= 2
    assert costs.model_calls == 0
    assert costs.pushes <= 5
